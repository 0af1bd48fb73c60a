# MLflow has one writer: these rules, on the head node, after training (and `make ui` while it goes on).
import hashlib
import shlex

TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def records_of(wildcards):
    """The records of every run of a study."""
    return [f"results/runs/{wildcards.study}/{key}/summary.json" for key in RUNS[wildcards.study]]


localrules:
    list_runs,
    import_runs,
    log_study,


rule list_runs:
    message:
        "listing the runs of {wildcards.study}"
    output:
        "results/{study}/keys.txt",
    params:
        # too many for a command line; the digest makes a changed grid a changed rule
        digest=lambda wildcards: hashlib.sha256("\n".join(RUNS[wildcards.study]).encode()).hexdigest(),
    run:
        Path(output[0]).write_text("\n".join(RUNS[wildcards.study]) + "\n")


rule import_runs:
    message:
        "importing the runs of {wildcards.study} into MLflow"
    input:
        records=records_of,
        listed="results/{study}/keys.txt",
    output:
        "results/{study}/runs.parquet",
    log:
        "results/logs/import_runs/{study}.log",
    shell:
        "{PYTHON} {SCRIPTS}/import_runs.py --results results --study {wildcards.study} --keys {input.listed} {TRACKING}"
        " --out {output} > {log} 2>&1"


rule log_study:
    message:
        "logging the figures and tables of {wildcards.study} as one summary run"
    input:
        fit="results/{study}/fit.json",
        files=lambda wildcards: STUDY_RESULTS[wildcards.study],
    output:
        touch("results/{study}/logged"),
    log:
        "results/logs/log_study/{study}.log",
    shell:
        "{PYTHON} {SCRIPTS}/log_study.py --results results --study {wildcards.study} --metrics {input.fit} {TRACKING}"
        " --artifacts {input.files} > {log} 2>&1"

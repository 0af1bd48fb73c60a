# MLflow has one writer: this rule, on the head node, after training (and `make ui` while it goes on).
def records_of(wildcards):
    """The records of every run of a study."""
    return [f"results/runs/{wildcards.study}/{key}/summary.json" for key in RUNS[wildcards.study]]


localrules:
    import_runs,


rule import_runs:
    message:
        "importing the runs of {wildcards.study} into MLflow"
    input:
        records_of,
    output:
        keys=temp("results/{study}/keys.txt"),
        runs="results/{study}/runs.parquet",
    log:
        "results/logs/import_runs/{study}.log",
    params:
        uri=f"--uri {CONFIG.tracking.uri}" if CONFIG.tracking.uri else "",
        keys=lambda wildcards: "\n".join(RUNS[wildcards.study]),
    shell:
        "echo {params.keys:q} > {output.keys} && {PYTHON} {SCRIPTS}/import_runs.py --results results"
        " --study {wildcards.study} --keys {output.keys} {params.uri} --out {output.runs} 2>&1 | tee {log}"

# MLflow has one writer: these rules, after training (and `make ui` while it goes on).
if not EXECUTION.submit_analysis:

    localrules:
        list_runs,
        import_runs,
        log_study,


rule list_runs:
    output:
        f"{CONFIG.results}/{{study}}/keys.txt",
    log:
        "results/logs/list_runs/{study}.log",
    retries: 0
    conda:
        "../../envs/shapelaw.yaml"
    params:
        # too many for a command line; the digest, by which the start wrote them, makes a changed grid a changed rule
        digest=lambda wildcards: submitted().keys_digest(wildcards.study),
    message:
        "listing the runs of {wildcards.study}"
    shell:
        "cp results/submitted/runs/{params.digest}.txt {output} 2> {log} || (echo"
        ' "No start listed the runs of {wildcards.study}; Snakemake does when it starts (without --no-hooks)."'
        " | tee -a {log} && exit 2)"


rule import_runs:
    input:
        trained=lambda wildcards: work().done_paths(wildcards.study),
        listed=f"{CONFIG.results}/{{study}}/keys.txt",
    output:
        f"{CONFIG.results}/{{study}}/runs.parquet",
    log:
        "results/logs/import_runs/{study}.log",
    retries: 0
    conda:
        "../../envs/shapelaw.yaml"
    params:
        tracking=TRACKING,
    message:
        "importing the runs of {wildcards.study} into MLflow"
    shell:
        'python "$SCRIPTS/import_runs.py" --results results --study {wildcards.study} --keys {input.listed} {params.tracking}'
        " --submitted $SUBMITTED --out {output} 2>&1 | tee {log}"


rule log_study:
    input:
        fit=f"{CONFIG.results}/{{study}}/fit.json",
        files=lambda wildcards: STUDIES[wildcards.study].artifacts,
    output:
        f"{CONFIG.results}/{{study}}/logged",
    log:
        "results/logs/log_study/{study}.log",
    retries: 0
    conda:
        "../../envs/shapelaw.yaml"
    params:
        tracking=TRACKING,
    message:
        "logging the figures and tables of {wildcards.study} as one summary run"
    shell:
        'python "$SCRIPTS/log_study.py" --results results --study {wildcards.study} --fit {input.fit} {params.tracking}'
        " --submitted $SUBMITTED --artifacts {input.files} --out {output} 2>&1 | tee {log}"

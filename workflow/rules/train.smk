# One job, one run. The record is the output; checkpoints live outside it, because Snakemake deletes the
# outputs of a job before it starts it again.
rule train:
    input:
        unpack(stores_of),
    output:
        spec="results/runs/{study}/{key}/spec.json",
        history="results/runs/{study}/{key}/history.parquet",
        summary="results/runs/{study}/{key}/summary.json",
    log:
        "results/logs/train/{study}/{key}.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: CONFIG.execution.threads
    resources:
        # on one machine: snakemake --resources gpu=<its GPUs> keeps one job a GPU
        gpu=CONFIG.execution.gpus,
    params:
        # the whole spec: change anything that decides the result and this run, only this one, is trained again
        spec=lambda wildcards: json.dumps(run_to_dict(run_of(wildcards))),
    message:
        "training {wildcards.key}"
    shell:
        "python $LAUNCH $SCRIPTS/train.py --spec {params.spec:q} --train-store {input.train_store}"
        " --test-store {input.test_store} --out results/runs/{wildcards.study}/{wildcards.key}"
        " --checkpoints results/checkpoints/{wildcards.study}/{wildcards.key}"
        " --checkpoint-minutes $CHECKPOINT_MINUTES --threads {threads}"
        " --tag config_hash=$CONFIG_HASH ${{SLURM_JOB_ID:+--tag slurm_job=$SLURM_JOB_ID}} >> {log} 2>&1"

# Runs that are trained in packs, as one computation each, and leave a record each.
rule train_together:
    output:
        "results/packs/{pack}.json",
    log:
        "results/logs/train_together/{pack}.log",
    wildcard_constraints:
        pack=WORK.pack_names,
    conda:
        "../../envs/shapelaw.yaml"
    threads: EXECUTION.threads
    resources:
        gpu=min(EXECUTION.gpus, 1),
        nodes=1,
        mem_mb=lambda wildcards, attempt: WORK.together_resources(
            ATTEMPTS.memory(wildcards, attempt)
        ).memory_mb,
        runtime=lambda wildcards, attempt: WORK.together_resources(
            ATTEMPTS.minutes(wildcards, attempt)
        ).minutes,
    params:
        packs=lambda wildcards: json.dumps(
            [[run.to_dict() for run in pack] for pack in asked(WORK.packs_together, wildcards.pack)]
        ),
    message:
        "training pack {wildcards.pack}"
    shell:
        "ln -sf {wildcards.pack}.attempts {log} && echo \"== $(date '+%F %T') on $(hostname)\" >> {log}"
        ' && exec python "$SCRIPTS/train_together.py" --packs {params.packs:q}'
        " --checkpoints results/checkpoints --out {output} --checkpoint-minutes $CHECKPOINT_MINUTES --wait-minutes $WAIT_MINUTES --threads {threads}"
        " --tag config_hash=$CONFIG_HASH $SLURM_OPTIONS >> {log} 2>&1"


rule take_record:
    input:
        job_path,
    output:
        # written last; spec.json and history.parquet lie beside it, unlisted: Snakemake keeps a file for each output
        summary="results/runs/{key}/summary.json",
    log:
        "results/logs/train/{key}.log",
    wildcard_constraints:
        key=WORK.keys("packed"),
    localrule: not EXECUTION.submit_analysis
    conda:
        "../../envs/shapelaw.yaml"
    resources:
        mem_mb=1000,
        runtime=lambda wildcards, attempt: 2 * ATTEMPTS.minutes(wildcards, attempt),
    message:
        "taking the record of {wildcards.key}"
    shell:
        'python "$SCRIPTS/take_record.py" --checkpoints results/checkpoints/{wildcards.key}'
        " --pack {input} --out results/runs/{wildcards.key} --log {log}"

# One job, one run. The record is the output; checkpoints live outside it, because Snakemake deletes the
# outputs of a job before it starts it again.
#
# `exec`: a scheduler's SIGTERM reaches the shell too, which would end there and then.
#
# The log is a link: Snakemake deletes it before each attempt, and the first failure's reason must not go with it.
#
# Three rules that differ in which runs they take, by their estimated time: so a cluster profile can send each
# where it belongs. Small runs can share a job (execution.runs_per_job), which trains them one after the other:
# then their own rule only takes the record.
rule train_large:
    input:
        unpack(lambda wildcards: stores_of(run_of(wildcards))),
    output:
        # written last; spec.json and history.parquet lie beside it, unlisted: Snakemake keeps a file for each output
        summary="results/runs/{key}/summary.json",
    log:
        "results/logs/train/{key}.log",
    wildcard_constraints:
        key=WORK.keys("large"),
    conda:
        "../../envs/shapelaw.yaml"
    threads: CONFIG.execution.threads
    resources:
        # on one machine: snakemake --resources gpu=<its GPUs> keeps one job a GPU
        gpu=CONFIG.execution.gpus,
        nodes=1,
        cpus_per_task=TRAIN_CPUS,
        mem_mb=lambda wildcards, attempt: WORK.resources(
            wildcards.key, ATTEMPTS.memory(wildcards, attempt)
        ).memory_mb,
        runtime=lambda wildcards, attempt: WORK.resources(
            wildcards.key, ATTEMPTS.minutes(wildcards, attempt)
        ).minutes,
    params:
        # the whole spec: change anything that decides the result and this run, only this one, is trained again
        spec=lambda wildcards: json.dumps(run_to_dict(run_of(wildcards))),
    message:
        "training {wildcards.key}"
    shell:
        "ln -sf {wildcards.key}.attempts {log} && echo \"== $(date '+%F %T') on $(hostname)\" >> {log}"
        ' && exec python ${{PROCESSES:+"$SCRIPTS/launch.py" --processes $PROCESSES}} "$SCRIPTS/train.py" --spec {params.spec:q} --train-store {input.train_store}'
        " --test-store {input.test_store} --out results/runs/{wildcards.key}"
        " --checkpoints results/checkpoints/{wildcards.key}"
        ' --checkpoint-minutes $CHECKPOINT_MINUTES --wait-minutes $WAIT_MINUTES --threads {threads} --keep-weights-of "$KEEP_WEIGHTS"'
        " --tag config_hash=$CONFIG_HASH $SLURM_OPTIONS >> {log} 2>&1"


use rule train_large as train_medium with:
    wildcard_constraints:
        key=WORK.keys("medium"),


if WORK.runs_per_job == 1:

    use rule train_large as train_small with:
        wildcard_constraints:
            key=WORK.keys("small"),

else:

    rule train_in_turn:
        input:
            unpack(lambda wildcards: stores_of(asked(WORK.runs_in_turn, wildcards.pack)[0])),
        output:
            "results/packs/{pack}.json",
        log:
            "results/logs/train_in_turn/{pack}.log",
        wildcard_constraints:
            pack=WORK.in_turn_names,
        conda:
            "../../envs/shapelaw.yaml"
        threads: CONFIG.execution.threads
        resources:
            gpu=CONFIG.execution.gpus,
            nodes=1,
            cpus_per_task=TRAIN_CPUS,
            mem_mb=lambda wildcards, attempt: WORK.in_turn_resources(
                ATTEMPTS.memory(wildcards, attempt)
            ).memory_mb,
            runtime=lambda wildcards, attempt: WORK.in_turn_resources(
                ATTEMPTS.minutes(wildcards, attempt)
            ).minutes,
        params:
            specs=lambda wildcards: json.dumps(
                [run_to_dict(run) for run in asked(WORK.runs_in_turn, wildcards.pack)]
            ),
        message:
            "training small runs in turn: job {wildcards.pack}"
        shell:
            "ln -sf {wildcards.pack}.attempts {log} && echo \"== $(date '+%F %T') on $(hostname)\" >> {log}"
            ' && exec python "$SCRIPTS/train_in_turn.py" --specs {params.specs:q} --train-store {input.train_store}'
            " --test-store {input.test_store} --checkpoints results/checkpoints --out {output}"
            ' --checkpoint-minutes $CHECKPOINT_MINUTES --wait-minutes $WAIT_MINUTES --threads {threads} --keep-weights-of "$KEEP_WEIGHTS"'
            " --tag config_hash=$CONFIG_HASH $SLURM_OPTIONS >> {log} 2>&1"

    rule train_small:
        input:
            job_path,
        output:
            # written last; spec.json and history.parquet lie beside it, unlisted: Snakemake keeps a file for each output
            summary="results/runs/{key}/summary.json",
        log:
            "results/logs/train/{key}.log",
        wildcard_constraints:
            key=WORK.keys("small"),
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

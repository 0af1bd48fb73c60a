# A job trains a list of runs, which its file names, and writes their records to results/runs. The graph has a node for
# each job, not for each run. Records and checkpoints are no outputs: Snakemake deletes the outputs of a job before it
# starts it again.
#
# Three rules that differ in the estimated time of a run (at most 10 minutes, at most 4 hours, longer), so that a cluster
# profile can send each where it belongs.
#
# `exec`: a scheduler's SIGTERM reaches the shell too, which would end there and then.
#
# The log is a link: Snakemake deletes it before each attempt, and the first failure's reason must not go with it.
localrules:
    record,


rule train_large:
    input:
        lambda wildcards: ask(wildcards).stores,
    output:
        "results/jobs/large/{job}.done",
    log:
        "results/logs/train/{job}.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: EXECUTION.threads
    resources:
        # on one machine: snakemake --resources gpu=<its GPUs> keeps one job a GPU
        gpu=lambda wildcards: ask(wildcards).gpus,
        nodes=1,
        cpus_per_task=lambda wildcards: ask(wildcards).cpus,
        mem_mb=lambda wildcards, attempt: resources_of(wildcards, attempt).memory_mb,
        runtime=lambda wildcards, attempt: resources_of(wildcards, attempt).minutes,
    message:
        "training {wildcards.job}"
    shell:
        "ln -sf {wildcards.job}.attempts {log} && echo \"== $(date '+%F %T') on $(hostname)\" >> {log}"
        ' && if [ {resources.gpu} -gt 1 ]; then set -- "$SCRIPTS/launch.py" --processes {resources.gpu}; fi'
        ' && exec python "$@" "$SCRIPTS/train.py" --job results/jobs/{wildcards.job}.json --results results --out {output}'
        ' --checkpoint-minutes $CHECKPOINT_MINUTES --wait-minutes $WAIT_MINUTES --threads {threads} --keep-weights-of "$KEEP_WEIGHTS"'
        " --tag config_hash=$CONFIG_HASH $SLURM_OPTIONS >> {log} 2>&1"


use rule train_large as train_medium with:
    output:
        "results/jobs/medium/{job}.done",


use rule train_large as train_small with:
    output:
        "results/jobs/small/{job}.done",


# One run as a target: its job has written the record. `update`, since Snakemake would delete an output.
rule record:
    input:
        lambda wildcards: ancient(asked(work().done_path, wildcards.key)),
    output:
        update("results/runs/{key}/summary.json"),
    log:
        "results/logs/record/{key}.log",
    conda:
        "../../envs/shapelaw.yaml"
    message:
        "the record of {wildcards.key}"
    shell:
        "test -e {output} > {log} 2>&1"

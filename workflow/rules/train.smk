# One job, one run. The record is the output; checkpoints live outside it, because Snakemake deletes the
# outputs of a job before it starts it again.
from shapelaw.runs import run_to_dict

CHECKPOINT_MINUTES = CONFIG.execution.checkpoint_minutes


def run_of(wildcards):
    """The run of a record's path; a sentence when the config has no such run."""
    runs = RUNS.get(wildcards.study, {})
    if wildcards.key not in runs:
        raise WorkflowError(
            f"The config has no run {wildcards.key} in study {wildcards.study}; it has {len(runs)} runs"
            + (f", such as {next(iter(runs))}." if runs else ".")
        )
    return runs[wildcards.key]


def stores_of(wildcards):
    """Headers and tokens of the run's training and test sets."""
    run = run_of(wildcards)
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }


rule train:
    message:
        "training {wildcards.key}"
    input:
        unpack(stores_of),
    output:
        spec="results/runs/{study}/{key}/spec.json",
        history="results/runs/{study}/{key}/history.parquet",
        summary="results/runs/{study}/{key}/summary.json",
    log:
        "results/logs/train/{study}/{key}.log",
    params:
        # the whole spec: change anything that decides the result and this run, only this one, is trained again
        spec=lambda wildcards: json.dumps(run_to_dict(run_of(wildcards))),
    threads: CONFIG.execution.threads
    shell:
        "{PYTHON} {SCRIPTS}/train.py --spec {params.spec:q} --train-store {input.train_store}"
        " --test-store {input.test_store} --out results/runs/{wildcards.study}/{wildcards.key}"
        " --checkpoints results/checkpoints/{wildcards.study}/{wildcards.key}"
        " --checkpoint-minutes {CHECKPOINT_MINUTES} --threads {threads}"
        ' --tag slurm_job="${{SLURM_JOB_ID:-}}" >> {log} 2>&1'

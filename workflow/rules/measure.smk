# What is measured before it can be analysed: exact separation ranks, the theorem's assumptions on real networks, and
# ReLU networks on the memorizers' data.
from shapelaw.studies.assumptions.study import measuring_options, section
from shapelaw.studies.memorization.study import ALONG_HEADS
from shapelaw.studies.separation_rank.study import measuring_minutes, rank_grids

RANK_MB = 6000  # of the largest grids
ASSUMPTION_MINUTES = 60  # a model; of 2,000 examples the slowest takes 11 on one thread
ASSUMPTION_MB = 6000
RELU_MB = 6000  # beside the largest memorizers


rule measure_separation_ranks:
    output:
        "results/separation_rank/measured.json",
    log:
        "results/logs/measure_separation_ranks.log",
    conda:
        "../../envs/shapelaw.yaml"
    resources:
        mem_mb=RANK_MB,
        runtime=lambda wildcards, attempt: min(
            measuring_minutes(CONFIG, ATTEMPTS.minutes(wildcards, attempt)), EXECUTION.most_minutes
        ),
    params:
        grids=rank_grids(CONFIG).model_dump_json(),
    message:
        "measuring separation ranks"
    shell:
        'python "$SCRIPTS/measure_separation_ranks.py" --grids {params.grids:q} --kept results/separation_ranks'
        " --out {output} > {log} 2>&1"


rule measure_assumptions:
    output:
        # so that Snakemake deletes what it has of other models
        directory("results/assumptions/layers"),
    log:
        "results/logs/measure_assumptions.log",
    conda:
        "../../envs/shapelaw.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: ASSUMPTION_MB * ATTEMPTS.memory(wildcards, attempt),
        runtime=minutes_of(ASSUMPTION_MINUTES * len(section(CONFIG).models)),
    params:
        options=shlex.join(measuring_options(CONFIG)),
    message:
        "checking the theorem's assumptions on real networks"
    shell:
        'python "$SCRIPTS/check_assumptions.py" {params.options} --measure-only --cache results/corpora/downloads'
        " --out results/assumptions > {log} 2>&1"


rule measure_relu:
    input:
        trained=lambda wildcards: work().done_paths(ALONG_HEADS),
        listed=f"{CONFIG.results}/{ALONG_HEADS}/keys.txt",
    output:
        "results/relu/measured.csv",
    log:
        "results/logs/measure_relu.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: EXECUTION.threads
    resources:
        mem_mb=lambda wildcards, attempt: RELU_MB * ATTEMPTS.memory(wildcards, attempt),
        runtime=EXECUTION.most_minutes,
    message:
        "training a ReLU network beside each attention network"
    shell:
        'python "$SCRIPTS/compare_relu.py" --runs results --keys {input.listed}'
        " --out {output} --threads {threads} > {log} 2>&1"

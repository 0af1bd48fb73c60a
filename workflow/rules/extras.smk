# Beside the studies: the theorem's assumptions on real networks, ReLU networks on the memorizers' data, and the analysis
# of runs that are committed here.
EXTRAS = {
    "assumptions": "results/assumptions/layers.csv",
    "relu": "results/memorization_heads/relu.csv",
    "laptop_runs": "results/laptop_runs/fit.json",
}
ASSUMPTIONS = CONFIG.assumptions
IMAGE_MODELS = ("vit", "vit_base")
ASSUMPTION_TABLES = ["layers", "sensitivity", "pass_rate"]
if any(model in IMAGE_MODELS for model in ASSUMPTIONS.models):
    ASSUMPTION_TABLES.append("assumptions_images")
if any(model not in IMAGE_MODELS for model in ASSUMPTIONS.models):
    ASSUMPTION_TABLES.append("assumptions_text")
ASSUMPTION_MINUTES = 60  # a model; of 2,000 examples the slowest takes 11 on one thread
ASSUMPTION_MB = 6000


rule assumptions:
    output:
        # so that Snakemake deletes what it has of other models
        directory("results/assumptions/layers"),
        expand("results/assumptions/{table}.{ending}", table=ASSUMPTION_TABLES, ending=["md", "tex"]),
        "results/assumptions/pass_rate.png",
        [
            report(
                f"results/assumptions/{table}.csv",
                caption="../report/assumptions_table.rst",
                category="Assumptions",
                subcategory="Tables",
                labels={"table": table.replace("_", " ")},
            )
            for table in ASSUMPTION_TABLES
        ],
        report(
            "results/assumptions/pass_rate.svg",
            caption="../report/assumptions_pass_rate.rst",
            category="Assumptions",
            subcategory="Figures",
            labels={"figure": "pass rate", "published as": "figure 1 of the memorization paper"},
        ),
    log:
        "results/logs/assumptions.log",
    conda:
        "../../envs/shapelaw.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: ASSUMPTION_MB * attempt,
        runtime=lambda wildcards, attempt: min(
            ASSUMPTION_MINUTES * len(ASSUMPTIONS.models) * attempt, JOB_MINUTES
        ),
    params:
        options=assumptions_options(),
    message:
        "checking the theorem's assumptions on real networks"
    shell:
        "python $SCRIPTS/check_assumptions.py {params.options} --cache results/corpora/downloads"
        " --out results/assumptions > {log} 2>&1"


rule relu:
    input:
        records=lambda wildcards: records_of_study("memorization_heads"),
        listed="results/memorization_heads/keys.txt",
    output:
        expand("results/memorization_heads/relu.{ending}", ending=["md", "tex"]),
        report(
            "results/memorization_heads/relu.csv",
            caption="../report/memorization_relu.rst",
            category="Memorization",
            subcategory="heads: tables",
            labels={"table": "relu"},
        ),
    log:
        "results/logs/relu.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: EXECUTION.threads
    resources:
        mem_mb=lambda wildcards, attempt: packed_job_resources(attempt).memory_mb,
        runtime=JOB_MINUTES,
    message:
        "training a ReLU network beside each one of memorization_heads"
    shell:
        "python $SCRIPTS/compare_relu.py --runs results --study memorization_heads --keys {input.listed}"
        " --out results/memorization_heads/relu --threads {threads} > {log} 2>&1"


rule laptop_runs:
    input:
        BASE / "docs" / "results" / "laptop_depth_width.parquet",
    output:
        "results/laptop_runs/fit.json",
        expand("results/laptop_runs/{table}.{ending}", table=TABLES, ending=["md", "tex"]),
        expand("results/laptop_runs/{figure}.png", figure=FIGURES),
        [
            report(
                f"results/laptop_runs/{table}.csv",
                caption="../report/laptop_runs.rst",
                category="Depth and width, 34 laptop runs trained before",
                subcategory="Tables",
                labels={"table": table.replace("_", " ")},
            )
            for table in TABLES
        ],
        [
            report(
                f"results/laptop_runs/{figure}.svg",
                caption="../report/laptop_runs.rst",
                category="Depth and width, 34 laptop runs trained before",
                subcategory="Figures",
                labels={"figure": figure.replace("_", " "), "published as": source},
            )
            for figure, source in FIGURES.items()
        ],
    log:
        "results/logs/laptop_runs.log",
    localrule: True
    conda:
        "../../envs/shapelaw.yaml"
    params:
        size=CONFIG.depth_width.size_axis,
    message:
        "analysing the committed runs of scale laptop"
    shell:
        "python $SCRIPTS/fit_transitions.py --runs {input} --size {params.size} --out results/laptop_runs 2>&1 | tee {log}"

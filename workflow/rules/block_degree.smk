# The degree of the building block: product networks of degrees 1, 2, 3, ... at equal budgets.
DEGREE_TABLES = ["pooled", "losses", "differences", "speed", "mixtures", "rank_losses", "rank_correlation"]
DEGREE_FIGURES = ["losses", "differences", "speed", "mixtures", "rank"]
STUDY_RESULTS["block_degree"] = results_of("block_degree", DEGREE_TABLES, DEGREE_FIGURES)


rule block_degree:
    input:
        "results/block_degree/runs.parquet",
    output:
        "results/block_degree/fit.json",
        expand("results/block_degree/{table}.{ending}", table=DEGREE_TABLES, ending=["md", "tex"]),
        expand("results/block_degree/{figure}.png", figure=DEGREE_FIGURES),
        [
            report(
                f"results/block_degree/{table}.csv",
                caption="../report/block_degree_table.rst",
                category="Degree of the building block",
                subcategory="Tables",
                labels={"table": table.replace("_", " ")},
            )
            for table in DEGREE_TABLES
        ],
        [
            report(
                f"results/block_degree/{figure}.svg",
                caption=f"../report/block_degree_{figure}.rst",
                category="Degree of the building block",
                subcategory="Figures",
                labels={"figure": figure, "published as": "our own"},
            )
            for figure in DEGREE_FIGURES
        ],
    log:
        "results/logs/block_degree.log",
    localrule: True
    conda:
        "../../envs/shapelaw.yaml"
    message:
        "comparing degrees of the building block"
    shell:
        "python $SCRIPTS/fit_degrees.py --runs {input} --out results/block_degree 2>&1 | tee {log}"

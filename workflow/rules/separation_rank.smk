# Exact separation ranks beside the theorems: nothing is trained, so there are no runs and no corpus.
RANK_TABLES = [
    "ranks",
    "bounds",
    "theorems",
    "residual",
    "degree_budget",
    "degree_ranking",
    "fractional_degree",
]
RANK_FIGURES = {
    "rank_depth": "theorems 1 and 2 of the depth-width paper",
    "rank_width": "theorem 1 of the depth-width paper",
    "rank_embedding": "theorems 1 and 2 of the vocabulary paper",
    "rank_heads": "our own",
    "rank_tokens": "our own",
    "rank_residual": "theorems 5 and 6 of the depth-width paper",
    "degree": "section 1.2 of the note on building blocks",
}
RANK_MB = 6000  # of the largest grids
STUDY_RESULTS[RANK_STUDY] = results_of(RANK_STUDY, RANK_TABLES, RANK_FIGURES)


localrules:
    separation_rank,


rule measure_separation_ranks:
    output:
        "results/separation_rank/measured.json",
    log:
        "results/logs/measure_separation_ranks.log",
    conda:
        "../../envs/shapelaw.yaml"
    resources:
        mem_mb=RANK_MB,
        runtime=rank_minutes,
    params:
        grids=rank_grids(CONFIG).model_dump_json(),
    message:
        "measuring separation ranks"
    shell:
        "python $SCRIPTS/measure_separation_ranks.py --grids {params.grids:q} --kept results/separation_ranks"
        " --out {output} > {log} 2>&1"


rule separation_rank:
    input:
        "results/separation_rank/measured.json",
    output:
        "results/separation_rank/fit.json",
        expand("results/separation_rank/{table}.{ending}", table=RANK_TABLES, ending=["md", "tex"]),
        expand("results/separation_rank/{figure}.png", figure=RANK_FIGURES),
        [
            report(
                f"results/separation_rank/{table}.csv",
                caption="../report/separation_rank_table.rst",
                category="Separation rank",
                subcategory="Tables",
                labels={"table": table.replace("_", " ")},
            )
            for table in RANK_TABLES
        ],
        [
            report(
                f"results/separation_rank/{figure}.svg",
                caption=f"../report/separation_{figure}.rst",
                category="Separation rank",
                subcategory="Figures",
                labels={"figure": figure.replace("_", " "), "about": source},
            )
            for figure, source in RANK_FIGURES.items()
        ],
    log:
        "results/logs/separation_rank.log",
    conda:
        "../../envs/shapelaw.yaml"
    message:
        "tables and figures of the separation ranks"
    shell:
        "python $SCRIPTS/tabulate_separation_ranks.py --measured {input} --out results/separation_rank 2>&1"
        " | tee {log}"

# Study 1: the transitions between depths, the line through them, and what it projects.
TABLES = ["transitions", "fit", "projection", "forms", "comparison"]
TABLES += ["size_axes", "seed_noise", "best_depth"]
FIGURES = {
    "loss_adjacent": "figures 1b and 2 of the depth-width paper, adjacent depths",
    "loss_doubled": "figure 2 of the depth-width paper, one depth against its double",
    "transition_width": "figure 3a of the depth-width paper",
    "transition_size": "figure 3b of the depth-width paper",
    "best_depth": "figure 3c of the depth-width paper",
    "extrapolation": "figure 4 of the depth-width paper",
}
STUDY_RESULTS = {"depth_width": results_of("depth_width", TABLES, FIGURES)}


localrules:
    depth_width,


rule depth_width:
    input:
        "results/depth_width/runs.parquet",
    output:
        "results/depth_width/fit.json",
        expand("results/depth_width/{table}.{ending}", table=TABLES, ending=["md", "tex"]),
        expand("results/depth_width/{figure}.png", figure=FIGURES),
        [
            report(
                f"results/depth_width/{table}.csv",
                caption="../report/depth_width_table.rst",
                category="Depth and width",
                subcategory="Tables",
                labels={"table": table.replace("_", " ")},
            )
            for table in TABLES
        ],
        [
            report(
                f"results/depth_width/{figure}.svg",
                caption=f"../report/depth_width_{figure}.rst",
                category="Depth and width",
                subcategory="Figures",
                labels={"figure": figure.replace("_", " "), "published as": source},
            )
            for figure, source in FIGURES.items()
        ],
    log:
        "results/logs/depth_width.log",
    conda:
        "../../envs/shapelaw.yaml"
    params:
        size=CONFIG.depth_width.size_axis,
    message:
        "transitions and fits of depth_width"
    shell:
        "python $SCRIPTS/fit_transitions.py --runs {input} --size {params.size} --out results/depth_width 2>&1 | tee {log}"

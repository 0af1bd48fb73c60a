# The memorization studies: from the runs of packs to tables and figures.
MEMORIZATION_TABLES = {
    "memorization_heads": [
        *("points", "monotony", "capacity", "linear_part", "linear_rules"),
        *("growth", "saturated", "comparison"),
    ],
    "memorization_context": ["points", "monotony", "capacity", "comparison"],
    "memorization_head_dim": ["points", "monotony", "capacity", "knee", "comparison"],
    "memorization_saturation": ["saturation", "perfect", "comparison"],
}
MEMORIZATION_FIGURES = {
    "memorization_heads": {
        "share": "figures 2a, 4 and 5 of the memorization paper",
        "per_head": "our own",
        "saturated": "our own, on figure 3's subject",
        "capacity": "our own",
    },
    "memorization_context": {"share": "figures 2b, 4 and 5 of the memorization paper", "capacity": "our own"},
    "memorization_head_dim": {"share": "figure 2c of the memorization paper", "capacity": "our own"},
    "memorization_saturation": {"saturation": "figure 3 of the memorization paper"},
}
for study, tables in MEMORIZATION_TABLES.items():
    STUDY_RESULTS[study] = results_of(study, tables, MEMORIZATION_FIGURES[study])


for study, tables in MEMORIZATION_TABLES.items():

    rule:
        name:
            study
        input:
            f"results/{study}/runs.parquet",
        output:
            f"results/{study}/fit.json",
            expand("results/{study}/{table}.{ending}", study=study, table=tables, ending=["md", "tex"]),
            expand("results/{study}/{figure}.png", study=study, figure=MEMORIZATION_FIGURES[study]),
            [
                report(
                    f"results/{study}/{table}.csv",
                    caption="../report/memorization_table.rst",
                    category="Memorization",
                    subcategory=f"{study.removeprefix('memorization_').replace('_', ' ')}: tables",
                    labels={"table": table.replace("_", " ")},
                )
                for table in tables
            ],
            [
                report(
                    f"results/{study}/{figure}.svg",
                    caption=f"../report/memorization_{figure}.rst",
                    category="Memorization",
                    subcategory=f"{study.removeprefix('memorization_').replace('_', ' ')}: figures",
                    labels={"figure": figure.replace("_", " "), "published as": source},
                )
                for figure, source in MEMORIZATION_FIGURES[study].items()
            ],
        log:
            f"results/logs/{study}.log",
        localrule: True
        conda:
            "../../envs/shapelaw.yaml"
        params:
            study=study,
            # the largest weights of the records
            attention=(
                "--attention results/runs/memorization_saturation" if study.endswith("saturation") else ""
            ),
        message:
            f"fits and figures of {study}"
        shell:
            "python $SCRIPTS/fit_memorization.py --study {params.study} --runs {input} {params.attention}"
            " --out results/{params.study} 2>&1 | tee {log}"

# Decoders with linear attention of each degree, beside softmax, at equal parameters.
ATTENTION_TABLES = ["losses", "differences"]
STUDY_RESULTS["attention_degree"] = results_of("attention_degree", ATTENTION_TABLES, ["losses"])


rule attention_degree:
    input:
        "results/attention_degree/runs.parquet",
    output:
        "results/attention_degree/fit.json",
        expand("results/attention_degree/{table}.{ending}", table=ATTENTION_TABLES, ending=["md", "tex"]),
        "results/attention_degree/losses.png",
        [
            report(
                f"results/attention_degree/{table}.csv",
                caption="../report/attention_degree_table.rst",
                category="Degree of the building block",
                subcategory="Linear attention: tables",
                labels={"table": table},
            )
            for table in ATTENTION_TABLES
        ],
        report(
            "results/attention_degree/losses.svg",
            caption="../report/attention_degree_losses.rst",
            category="Degree of the building block",
            subcategory="Linear attention: figures",
            labels={"figure": "losses", "published as": "our own"},
        ),
    log:
        "results/logs/attention_degree.log",
    localrule: True
    conda:
        "../../envs/shapelaw.yaml"
    message:
        "comparing degrees of attention"
    shell:
        "python $SCRIPTS/fit_attention_degree.py --runs {input} --out results/attention_degree 2>&1 | tee {log}"

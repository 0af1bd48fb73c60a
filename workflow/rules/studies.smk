# From what a study's runs, or its measurements, left to its tables, figures and fit.json: a rule a study.
#
# No lambda here that reads the loop's variable: they would all see the last study.
for study in STUDIES.values():

    rule:
        name:
            study.name
        input:
            study.analysed,
        output:
            f"{study.folder}/fit.json",
            # tables.md, tables.tex and a .png of each figure lie beside them, unlisted: Snakemake keeps a file for each
            # output
            study.files(study.tables, ["csv"]),
            [
                report(
                    f"{study.folder}/{table}.html",
                    caption=study.table_caption,
                    category=study.title,
                    subcategory=partial(heading_in_report, study, "tables"),
                    labels={"table": table.replace("_", " ")},
                )
                for table in study.tables
            ],
            [
                report(
                    f"{study.folder}/{figure}.svg",
                    caption=study.figure_caption(figure),
                    category=study.title,
                    subcategory=partial(heading_in_report, study, "figures"),
                    labels={"figure": figure.replace("_", " "), "published as": source},
                )
                for figure, source in study.figures.items()
            ],
        log:
            f"results/logs/{study.name}.log",
        retries: 0
        localrule: not EXECUTION.submit_analysis
        conda:
            "../../envs/shapelaw.yaml"
        params:
            study=study.name,
            folder=lambda wildcards, output: str(Path(output[0]).parent),
            options=shlex.join(study.options(CONFIG)),
        message:
            study.message
        shell:
            'python "$SCRIPTS/analyse.py" {params.study} --input {input} {params.options}'
            " --out {params.folder} > {log} 2>&1"


rule findings:
    input:
        [STUDIES[name].target for name in FOUND],
        [f"{STUDIES[name].folder}/fit.json" for name in FOUND],
        # all of them: of results of an older version, the report misses no table that they don't have
        [STUDIES[name].artifacts for name in FOUND],
    output:
        report(f"{CONFIG.results}/findings.html", category="Findings", labels=page_in_report),
    log:
        "results/logs/findings.log",
    retries: 0
    localrule: True
    conda:
        "../../envs/shapelaw.yaml"
    params:
        studies=FOUND,
        digest=lambda wildcards: submitted().results_digest,
        place=lambda wildcards, output: str(Path(output[0]).parent),
    message:
        "the questions and what was found"
    shell:
        'python "$SCRIPTS/write_findings.py" --results {params.place} --studies {params.studies} --submitted $SUBMITTED --out {output}'
        " > {log} 2>&1"

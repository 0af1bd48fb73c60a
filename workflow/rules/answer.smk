# The advice for every budget as one page, by the published law: sliders, no server.
localrules:
    advisor,


rule advisor:
    output:
        report(
            f"{CONFIG.results}/advisor.html",
            caption="../report/advisor.rst",
            category="A shape for your budget",
            labels={"page": "advisor"},
        ),
    log:
        "results/logs/advisor.log",
    conda:
        "../../envs/shapelaw.yaml"
    message:
        "writing the advice for every budget"
    shell:
        'python "$SCRIPTS/advisor_page.py" --out {output} > {log} 2>&1'

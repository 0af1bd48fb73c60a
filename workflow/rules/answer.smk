# What each depth of every size costs, as one page: sliders, no server.
localrules:
    advisor,


rule advisor:
    input:
        str(BASE / "workflow" / "reference" / "advisor.json"),
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
        "writing what each depth of every size costs"
    shell:
        'python "$SCRIPTS/advisor_page.py" --out {output} > {log} 2>&1'

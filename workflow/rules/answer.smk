# What each depth of every size costs, as one page: sliders, no server.
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
    retries: 0
    conda:
        "../../envs/shapelaw.yaml"
    params:  # files of the checkout, which are as new as the checkout
        numbers=lambda wildcards: digest_of(
            {
                name: (BASE / "workflow" / "reference" / name).read_text("utf-8")
                for name in ("evidence.json", "models.csv", "h200_speed.csv", "published.csv")
            }
        ),
    message:
        "writing what each depth of every size costs"
    shell:
        'PYTHONPATH="$SCRIPTS" python -m shapelaw.advice.commands.advisor_page --out {output} > {log} 2>&1'

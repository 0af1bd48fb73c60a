# What the config would cost, before anything runs.
localrules:
    plan,


rule plan:
    log:
        "results/logs/plan.log",
    retries: 0
    conda:
        "../../envs/shapelaw.yaml"
    params:
        costs=lambda wildcards: costs(),
    message:
        "what config.yaml asks for"
    shell:
        "echo {params.costs:q} | tee {log}"

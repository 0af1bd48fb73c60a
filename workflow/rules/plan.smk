# What the config would cost, before anything runs.
from shapelaw.plan import cost_of


localrules:
    plan,


rule plan:
    message:
        "what config.yaml asks for"
    run:
        for study, runs in RUNS.items():
            cost = cost_of(runs.values(), CONFIG.execution.flops_per_second)
            print(
                f"{study}: {cost.runs} runs, networks up to {cost.largest_params:,} parameters, {cost.flops:.2e} FLOPs,"
                f" about {cost.hours:.3g} hours of one device at {CONFIG.execution.flops_per_second:.1e} FLOP/s,"
                f" at most {cost.disk_bytes / 2**20:,.0f} MiB on disk"
            )

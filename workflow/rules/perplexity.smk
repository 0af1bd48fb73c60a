# The perplexity of trained decoders on held-out documents, as in the vocabulary paper's table 1: asked for by name,
#   snakemake perplexity
# The weights of those decoders stay in results/checkpoints: the training rules have their keys in the environment, whose
# change trains nothing again.
PERPLEXITY_MB = 8000


localrules:
    perplexity,


rule perplexity:
    input:
        measured_results,


rule measure_perplexity:
    input:
        unpack(measured_inputs),
    output:
        "results/perplexity/{key}.json",
    log:
        "results/logs/measure_perplexity/{key}.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: EXECUTION.threads
    resources:
        gpu=min(EXECUTION.gpus, 1),
        mem_mb=lambda wildcards, attempt: PERPLEXITY_MB * ATTEMPTS.memory(wildcards, attempt),
        runtime=minutes_of(240),
    params:
        options=lambda wildcards: shlex.join(
            perplexity_options(CONFIG.perplexity, CORPORA[run_of(wildcards).corpus])
        ),
    message:
        "measuring the perplexity of {wildcards.key}"
    shell:
        'python "$SCRIPTS/perplexity.py" --run results/checkpoints/{wildcards.key} --tokenizer {input.tokenizer}'
        " --documents {input.documents} {params.options} --cache results/corpora/downloads --out {output} 2>&1 | tee {log}"

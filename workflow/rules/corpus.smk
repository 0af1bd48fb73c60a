# From sources to token stores: documents, one tokenizer a vocabulary size, one store a split.
# What a job asks for grows where it was too little: how much text there is, and of what kind, is not known beforehand.
ENCODE_THREADS = 64  # Snakemake takes as many as there are cores; the Slurm profile sets a number
TOKENIZER_MB = 8000
ENCODE_MB, WORKER_MB = 1000, 250  # of the writer, and of each process


localrules:
    prepare_corpus,


rule prepare_corpus:
    output:
        "results/corpora/{corpus}/documents.parquet",
    log:
        "results/logs/prepare_corpus/{corpus}.log",
    conda:
        "../../envs/shapelaw.yaml"
    params:
        options=lambda wildcards: shlex.join(
            source_options(CORPORA[wildcards.corpus], vocab_sizes(wildcards.corpus))
        ),
        texts=lambda wildcards: asked(texts_digest, CORPORA[wildcards.corpus]),
    message:
        "collecting the documents of {wildcards.corpus}"
    shell:
        'python "$SCRIPTS/prepare_corpus.py" {params.options} --cache results/corpora/downloads --out {output}'
        " 2>&1 | tee {log} && echo {params.options:q} {params.texts} > results/corpora/{wildcards.corpus}/collected.txt"


rule train_tokenizer:
    input:
        "results/corpora/{corpus}/documents.parquet",
    output:
        "results/corpora/{corpus}/V{vocab_size}/tokenizer.json",
    log:
        "results/logs/train_tokenizer/{corpus}-V{vocab_size}.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: ENCODE_THREADS
    resources:
        mem_mb=lambda wildcards, attempt: TOKENIZER_MB * ATTEMPTS.memory(wildcards, attempt),
        runtime=minutes_of(60),
    params:
        gpt2=lambda wildcards: shlex.join(gpt2_options(CORPORA[wildcards.corpus], int(wildcards.vocab_size))),
    message:
        "training a tokenizer of {wildcards.vocab_size} on {wildcards.corpus}"
    shell:
        'RAYON_NUM_THREADS={threads} python "$SCRIPTS/train_tokenizer.py" --documents {input}'
        " --vocab-size {wildcards.vocab_size} {params.gpt2} --out {output} > {log} 2>&1"


rule encode:
    input:
        documents="results/corpora/{corpus}/documents.parquet",
        tokenizer="results/corpora/{corpus}/V{vocab_size}/tokenizer.json",
    output:
        header="results/corpora/{corpus}/V{vocab_size}/{split}.json",
        tokens="results/corpora/{corpus}/V{vocab_size}/{split}.bin",
    log:
        "results/logs/encode/{corpus}-V{vocab_size}-{split}.log",
    conda:
        "../../envs/shapelaw.yaml"
    threads: ENCODE_THREADS
    resources:
        mem_mb=lambda wildcards, threads, attempt: (ENCODE_MB + WORKER_MB * threads)
        * ATTEMPTS.memory(wildcards, attempt),
        runtime=minutes_of(60),
    message:
        "encoding the {wildcards.split} documents of {wildcards.corpus} at V = {wildcards.vocab_size}"
    shell:
        'python "$SCRIPTS/encode_corpus.py" --documents {input.documents} --tokenizer {input.tokenizer}'
        " --split {wildcards.split} --workers {threads} --out {output.header} > {log} 2>&1"

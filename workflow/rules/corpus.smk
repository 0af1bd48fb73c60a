# From sources to token stores: documents, one tokenizer a vocabulary size, one store a split.
import shlex

GPT2_VOCAB_SIZE = 50257
VOCAB_SIZES = {run.shape.vocab_size for runs in RUNS.values() for run in runs.values()}


def source_options():
    """The corpus section as options of prepare_corpus.py."""
    corpus = CONFIG.corpus
    sources = list(corpus.sources)
    if GPT2_VOCAB_SIZE in VOCAB_SIZES and sources == ["wiki"]:
        sources.append("gensim")  # the wiki leads alone can't fill that vocabulary
    options = [option for source in sources for option in ("--source", source)]
    options += ["--test-fraction", str(corpus.test_fraction)]
    if corpus.limit_bytes is not None:
        options += ["--limit-bytes", str(corpus.limit_bytes)]
    return shlex.join(options)


localrules:
    prepare_corpus,


rule prepare_corpus:
    message:
        "collecting the documents of {wildcards.corpus}"
    output:
        "results/corpora/{corpus}/documents.parquet",
    log:
        "results/logs/prepare_corpus/{corpus}.log",
    params:
        options=source_options(),
    shell:
        "{PYTHON} {SCRIPTS}/prepare_corpus.py {params.options} --cache results/corpora/downloads --out {output}"
        " 2>&1 | tee {log}"


rule train_tokenizer:
    message:
        "training a tokenizer of {wildcards.vocab_size} on {wildcards.corpus}"
    input:
        "results/corpora/{corpus}/documents.parquet",
    output:
        "results/corpora/{corpus}/V{vocab_size}/tokenizer.json",
    log:
        "results/logs/train_tokenizer/{corpus}-V{vocab_size}.log",
    params:
        gpt2=f"--gpt2-files {shlex.quote(CONFIG.corpus.gpt2_files)}" if CONFIG.corpus.gpt2_files else "",
    threads: workflow.cores
    shell:
        "{PYTHON} {SCRIPTS}/train_tokenizer.py --documents {input} --vocab-size {wildcards.vocab_size} {params.gpt2}"
        " --out {output} > {log} 2>&1"


rule encode:
    message:
        "encoding the {wildcards.split} documents of {wildcards.corpus} at V = {wildcards.vocab_size}"
    input:
        documents="results/corpora/{corpus}/documents.parquet",
        tokenizer="results/corpora/{corpus}/V{vocab_size}/tokenizer.json",
    output:
        header="results/corpora/{corpus}/V{vocab_size}/{split}.json",
        tokens="results/corpora/{corpus}/V{vocab_size}/{split}.bin",
    log:
        "results/logs/encode/{corpus}-V{vocab_size}-{split}.log",
    threads: workflow.cores
    shell:
        "{PYTHON} {SCRIPTS}/encode_corpus.py --documents {input.documents} --tokenizer {input.tokenizer}"
        " --split {wildcards.split} --out {output.header} > {log} 2>&1"

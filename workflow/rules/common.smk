# What the rules ask: functions of the config and of wildcards.
import hashlib
import json
import shlex

from snakemake.exceptions import WorkflowError

from shapelaw.plan import cost_of
from shapelaw.runs import run_to_dict

GPT2_VOCAB_SIZE = 50257
ENCODE_THREADS = 64  # Snakemake takes as many as there are cores
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


def texts_digest():
    """A hash of the names, sizes and times of the files in the corpus's folders: other files, another corpus."""
    folders = [
        Path(s.partition(":")[2].split(",")[0]) for s in CONFIG.corpus.sources if s.startswith("folder:")
    ]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    listing = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(listing).encode()).hexdigest()


def run_of(wildcards):
    """The run of a record's path; a sentence when the config has no such run."""
    runs = RUNS.get(wildcards.study, {})
    if wildcards.key not in runs:
        raise WorkflowError(
            f"The config has no run {wildcards.key} in study {wildcards.study}; it has {len(runs)} runs"
            + (f", such as {next(iter(runs))}." if runs else ".")
        )
    return runs[wildcards.key]


def stores_of(wildcards):
    """Headers and tokens of the run's training and test sets."""
    run = run_of(wildcards)
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }


TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def records_of(wildcards):
    """The records of every run of a study."""
    return [f"results/runs/{wildcards.study}/{key}/summary.json" for key in RUNS[wildcards.study]]


def costs(wildcards):
    """One line a study."""
    rate = CONFIG.execution.flops_per_second
    costs = {study: cost_of(runs.values(), rate) for study, runs in RUNS.items()}
    return "\n".join(
        f"{study}: {cost.runs} runs, networks up to {cost.largest_params:,} parameters, {cost.flops:.2e} FLOPs, about"
        f" {cost.hours:.3g} hours of one device at {rate:.1e} FLOP/s, at most {cost.disk_bytes / 2**20:,.0f} MiB on disk"
        for study, cost in costs.items()
    )


def failures():
    """A sentence for every run that could not go on, from its live record."""
    digests = {run.digest for runs in RUNS.values() for run in runs.values()}
    for path in sorted(Path("results/checkpoints").glob("*/*/live.json")):
        live = json.loads(path.read_text())
        if live.get("status") == "FAILED" and live.get("spec_digest") in digests:
            yield live["message"]

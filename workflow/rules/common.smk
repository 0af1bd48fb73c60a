# What the rules ask: functions of the config and of wildcards.
import hashlib
import json
import shlex
from functools import cache

from snakemake.exceptions import WorkflowError

from shapelaw.scheduling.jobs import (
    LEVELS,
    job_resources,
    keys_pattern,
    level_of,
    model_packs,
    packed_resources,
    packs_of,
)
from shapelaw.scheduling.plan import cost_line, speed_of
from shapelaw.settings.rank_grids import asked_of, rank_grids
from shapelaw.settings.sections import PACKED_STUDIES, RANK_STUDY
from shapelaw.specs.runs import run_to_dict
from shapelaw.storage.failures import failures

GPT2_VOCAB_SIZE = 50257
LANGUAGE_RUNS = {study: runs for study, runs in RUNS.items() if study not in PACKED_STUDIES}
PACKED_RUNS = {study: runs for study, runs in RUNS.items() if study in PACKED_STUDIES}
LANGUAGE_STUDY, PACKED_STUDY = ("|".join(runs) or "(?!)" for runs in (LANGUAGE_RUNS, PACKED_RUNS))
VOCAB_SIZES = {run.shape.vocab_size for runs in LANGUAGE_RUNS.values() for run in runs.values()}

EXECUTION = CONFIG.execution
SPEED = speed_of(CONFIG, Path.cwd())
JOB_MINUTES = round(60 * EXECUTION.job_hours)
LEVEL_RUNS = {level: [] for level in LEVELS}
for runs in LANGUAGE_RUNS.values():
    for run in runs.values():
        LEVEL_RUNS[level_of(run, SPEED)].append(run)
RUNS_PER_JOB = 1 if EXECUTION.gpus > 1 else EXECUTION.runs_per_job
PACKS = {study: packs_of(runs.values(), RUNS_PER_JOB, SPEED) for study, runs in LANGUAGE_RUNS.items()}
LONGEST_PACK = max((len(pack) for packs in PACKS.values() for pack in packs.values()), default=1)
PACK_NAMES = {
    (study, run.key): name for study, packs in PACKS.items() for name, pack in packs.items() for run in pack
}
# a job of packs that are one computation each
PACKS |= {study: model_packs(runs.values(), EXECUTION) for study, runs in PACKED_RUNS.items()}
PACK_NAMES |= {
    (study, run.key): name
    for study in PACKED_RUNS
    for name, job in PACKS[study].items()
    for pack in job
    for run in pack
}
KEYS = {level: keys_pattern(LEVEL_RUNS[level]) for level in ("small", "medium")}
KEYS["large"] = rf"(?!(?:{KEYS['small']}|{KEYS['medium']})/)[^/]+"  # a wrong key too, which is then told


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


@cache
def level_resources(level, attempt, in_a_row=1):
    """What a job of a level asks for: enough for its largest run."""
    return job_resources(
        LEVEL_RUNS[level],
        SPEED,
        EXECUTION.gpus,
        JOB_MINUTES,
        attempt,
        in_a_row,
    )


def resources_of(wildcards, attempt):
    """What the job of a run asks for."""
    return level_resources(level_of(run_of(wildcards), SPEED), attempt)


def pack_resources(wildcards, attempt):
    """What a pack asks for: enough for the longest of all packs."""
    return level_resources("small", attempt, LONGEST_PACK)


@cache
def packed_job_resources(attempt):
    """What a job of packs that are one computation each asks for: enough for the longest of all jobs."""
    jobs = [job for study in PACKED_RUNS for job in PACKS[study].values()]
    return packed_resources(jobs, EXECUTION, JOB_MINUTES, attempt)


def rank_minutes(wildcards, attempt):
    """Enough for every network that takes all of its time, and for starting; what was measured is kept."""
    seconds = 300 + sum(one.seconds for one in asked_of(rank_grids(CONFIG)))
    return min(JOB_MINUTES, round(seconds * attempt / 60))


def pack_of(wildcards):
    """The runs of a pack, or the packs of a job that trains some; a sentence when the config has none of that name."""
    packs = PACKS.get(wildcards.study, {})
    if wildcards.pack not in packs:
        raise WorkflowError(
            f"The config has no pack {wildcards.pack} in study {wildcards.study}; it has {len(packs)} packs"
            + (f", such as {next(iter(packs))}." if packs else ".")
        )
    return packs[wildcards.pack]


def pack_path(wildcards):
    """What the pack of a run leaves."""
    return f"results/packs/{wildcards.study}/{PACK_NAMES[wildcards.study, run_of(wildcards).key]}.json"


def stores_of(wildcards):
    """Headers and tokens of the run's training and test sets."""
    return stores_of_run(run_of(wildcards))


def stores_of_pack(wildcards):
    """The same of a pack, whose runs share them."""
    return stores_of_run(pack_of(wildcards)[0])


def stores_of_run(run):
    """Where the tokens of a run's corpus are, at its vocabulary size."""
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }


TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def results_of(study, tables, figures):
    """The files of a study's tables and figures."""
    kinds = ((tables, ("csv", "md", "tex")), (figures, ("svg", "png")))
    return [
        f"results/{study}/{name}.{ending}" for names, endings in kinds for name in names for ending in endings
    ]


def records_of(wildcards):
    """The records of every run of a study."""
    return records_of_study(wildcards.study)


def records_of_study(study):
    """The same by its name; none where the config has not that study."""
    return [f"results/runs/{study}/{key}/summary.json" for key in RUNS.get(study, {})]


def assumptions_options():
    """The assumptions section as options of check_assumptions.py."""
    section = CONFIG.assumptions
    options = ["--models", ",".join(section.models), "--source", section.source]
    for name in ("examples", "trials", "sensitivity_trials", "curve_trials"):
        options += [f"--{name.replace('_', '-')}", str(getattr(section, name))]
    if section.images is not None:
        options += ["--images", section.images]
    return shlex.join(options)


def costs(wildcards):
    """One line a study."""
    lines = []
    if RANK_STUDY in CONFIG.studies:
        asked = asked_of(rank_grids(CONFIG))
        lines.append(
            f"{RANK_STUDY}: {len(asked)} separation ranks, nothing trained, at most"
            f" {sum(one.seconds for one in asked) / 3600:.2g} hours of one core"
        )
    lines += [cost_line(study, list(runs.values()), EXECUTION, SPEED) for study, runs in RUNS.items()]
    return "\n".join(lines)


def said_failures():
    """A sentence for every run of the config that could not go on."""
    digests = {run.digest for runs in RUNS.values() for run in runs.values()}
    return failures(Path("results/checkpoints"), digests)

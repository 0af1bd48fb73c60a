# What the rules ask: the config as jobs, and functions of wildcards.
import json
import shlex
import time
from contextlib import chdir
from functools import cache, partial

from shapelaw.campaign.start import cpu_minutes, ending, heading_of
from shapelaw.jobs.executor import SlurmExecutor
from shapelaw.jobs.ledger import State
from shapelaw.jobs.plan import Ask, ask_line, asks_of, cost_line, refused_build, total_line
from shapelaw.jobs.resources import LEVELS, Attempts, JobResources
from shapelaw.jobs.slurm import (
    comment_of,
    impossible,
    left_over,
    left_over_sentence,
    my_jobs,
    out_of_service,
    place_problems,
    refusals,
    silence,
)
from shapelaw.jobs.workload import (
    Workload,
    collected_from,
    gpt2_options,
    measured_paths,
    perplexity_options,
    read_ask,
    replaced_corpora,
    source_options,
    texts_digest,
    tokenizer_path,
)
from shapelaw.settings.command_line import FILES, values_of
from shapelaw.specs.runs import Run, digest_of
from shapelaw.storage.pool import (
    FailedJob,
    SnakemakeErrors,
    begun_of,
    counts_of,
    failures,
    outdated_of,
    recorded_of,
    told_again,
)

EXECUTION = CONFIG.execution
CORPORA = CONFIG.all_corpora
RESULTS = Path("results")


@cache
def submitted():
    """What the workflow was started with, with its runs: a job that trains doesn't read these."""
    return SUBMITTED if DOOR.is_main else read_submission(SUBMITTED_PATH)


@cache
def decoders():
    """The decoders of the config by key."""
    return {key: run for of in submitted().runs.values() for key, run in of.items() if isinstance(run, Run)}


@cache
def collected():
    """What this start collects the documents of each corpus from."""
    return asked(collected_from, decoders().values(), CORPORA) if DOOR.is_main else {}


@cache
def outdated():
    """The keys of the decoders with a record of another text, as this start finds the pool: they are trained again."""
    return outdated_of(RESULTS, decoders().values(), replaced_corpora(collected()))


@cache
def work():
    """The runs and their jobs, as this start finds the pool."""
    runs = submitted().runs
    keys = {key for of in runs.values() for key in of}
    begun = begun_of(RESULTS, keys)
    ledger = LEDGER if DOOR.is_main else read_ledger()
    again = {name for name, job in ledger.items() if not outdated().isdisjoint(job.keys)}
    recorded, done = recorded_of(RESULTS, keys) - outdated(), finished_jobs() - again
    state = State(recorded, done, is_queued, begun.__contains__)
    alone = {Path(target).parent.name for target in targets_of(sys.argv[1:])}
    return Workload(runs, EXECUTION, submitted().speed, ledger, state, alone & keys, DOOR.jobs is None)


own_ask = cache(read_ask)


@cache
def in_queue():
    """The comments of this folder's jobs in Slurm's queue."""
    return {job.comment for job in left_over(my_jobs() or {}, str(Path.cwd()), ())}


def is_queued(name, job):
    """Whether a training job of an earlier start waits or runs."""
    return comment_of(f"train_{job.level}", (name,)) in in_queue()


def ask(wildcards):
    """What a training job asks for; the job itself reads it from its file."""
    return asked(work().ask if DOOR.is_main else own_ask, wildcards.job)


def resources_of(wildcards, attempt):
    """Memory and time of an attempt at a training job."""
    wanted = ATTEMPTS.memory(wildcards, attempt), ATTEMPTS.minutes(wildcards, attempt)
    return ask(wildcards).first.at(*wanted, EXECUTION.most_minutes)


def minutes_of(minutes):
    """The time of an attempt at a job that takes so many minutes."""
    return lambda wildcards, attempt: min(
        minutes * ATTEMPTS.minutes(wildcards, attempt), EXECUTION.most_minutes
    )


def counts():
    """What the pool has of all runs, as it is now."""
    return counts_of(RESULTS, work().pool, replaced_corpora(collected()))


def progress():
    """`113 of 216 runs`, for Snakemake's line on progress."""
    now = counts()
    return f"{now.recorded:,} of {now.runs:,} runs"


# What the next attempt at a job asks for: on Slurm by why the last one ended, elsewhere by its number.
ATTEMPTS = Attempts(lambda name: work().folders(name))
DOOR.use_slurm(SlurmExecutor, ATTEMPTS)
ERRORS = SnakemakeErrors()
FOUND = [*CONFIG.studies, *CONFIG.extras]
STARTED = time.time()
FOLDER = Path.cwd()
ENDED = []  # has an entry once all jobs ended well
TRAINING = {f"train_{level}" for level in LEVELS}
REPORT = report_of(sys.argv[1:])
TRACKING = shlex.join(
    word
    for option, value in (("--uri", CONFIG.tracking.uri), ("--artifact-root", CONFIG.tracking.artifacts))
    if value
    for word in (option, value)
)


def asked(find, *names):
    """What the workload has of that name; its sentence alone when it has none."""
    try:
        return find(*names)
    except UserError as error:
        say_last(str(error))
        raise WorkflowError(str(error)) from error


if DOOR.is_main:
    logger.addHandler(ERRORS)
    DOOR.count_runs(progress)
    DOOR.hush_stopped()

# decoders that keep their weights; their keys are in the environment, whose change trains nothing again
MEASURED = asked(work().measured, CONFIG.perplexity) if CONFIG.perplexity.of else {}
os.environ.update(KEEP_WEIGHTS=" ".join(MEASURED))


def run_of(wildcards):
    """The run of a record's path."""
    return asked(work().run, wildcards.key)


def measured_results(wildcards):
    """The perplexities of all decoders that the config asks to measure."""
    return asked(measured_paths, CONFIG.perplexity, MEASURED)


def measured_inputs(wildcards):
    """A run's record, tokenizer and documents."""
    run = run_of(wildcards)
    return {
        "record": f"results/runs/{run.key}/summary.json",
        "tokenizer": tokenizer_path(run.corpus, run.shape.vocab_size),
        "documents": f"results/corpora/{run.corpus}/documents.parquet",
    }


def vocab_sizes(corpus):
    """The vocabulary sizes of a corpus's decoders."""
    return {run.shape.vocab_size for run in decoders().values() if run.corpus == corpus}


@cache
def costs():
    """One line a study, one a training rule, and the sum."""
    lines = [line for study in CONFIG.studies for line in STUDIES[study].costs(CONFIG)]
    speed, runs = submitted().speed, submitted().runs
    for study, of in runs.items():
        left, now = work().left[study], counts_of(RESULTS, of, replaced_corpora(collected()))
        lines.append(cost_line(study, now, left, EXECUTION, speed))
    asks = asks_of(work())
    lines += [*map(ask_line, asks), total_line(work(), counts(), asks)]
    return "\n".join(lines)


@cache
def heading(name):
    """The report's heading of a study."""
    return heading_of(STUDIES[name], submitted().runs.get(name, {}).values())


def only_own(studies, page=None):
    """Refuse a report where files that it takes are those of another config."""
    if sentences := list(report_problems(submitted(), studies, page)):
        refuse(sentences)


def heading_in_report(study, what, wildcards):
    """The report's heading of a study's tables or figures; called where one is made."""
    only_own([study])
    # without a colon, which ends the name of Snakemake's link
    return f"{heading(study.name)}, {what}".replace(": ", ", ")


def page_in_report(wildcards, output):
    """The report's labels of the page of findings; called where one is made."""
    only_own([STUDIES[name] for name in FOUND], Path(output[0]))
    return {"page": "what was found"}


def say_ending():
    """Say what was trained and found and where to look: of a run that ended well, and of a report that was written."""
    here = Path.cwd()  # of the command: Snakemake has left the folder of `--directory`
    with chdir(FOLDER):
        reported = REPORT and Path(REPORT).exists() and Path(REPORT).stat().st_mtime >= STARTED
        if not ENDED and not reported:
            return
        rules = DOOR.rules()
        if not (found := [STUDIES[name] for name in FOUND if name in rules]):
            return
        of_all = f"{CONFIG.results}/findings.html" if "findings" in rules else f"{found[0].folder}/tables.md"
        page = os.path.relpath(REPORT if reported else of_all, here)
        runs = {name: runs for name, runs in submitted().runs.items() if name in rules}
        minutes = cpu_minutes() if ENDED and DOOR.jobs is None else None
        new = counts().recorded - len(work().state.recorded) if ENDED else None
        for line in ending(found, runs, page, minutes, new):
            print(line)


def said_failures():
    """Why jobs failed: a sentence for every run of the config that could not go on, and what other jobs said last."""
    sentences = list(dict.fromkeys(failures(RESULTS / "checkpoints", work().pool)))
    failed = [
        FailedJob(" ".join(name), job.log, ATTEMPTS.told.get(name, "") or ERRORS.reason_of(job.outputs))
        for job in DOOR.failed_jobs()
        for name in [(job.rule, *job.wildcards)]
    ]
    return told_again(failed, sentences) + sentences


def asks_for(jobs):
    """What the jobs that are to run ask for: those that train, and tokenizers and token stores before them."""
    needed = {job.rule for job in jobs}
    asks = [ask for ask in asks_of(work()) if ask.rule in needed]
    for name in needed & {"train_tokenizer", "encode"}:
        threads, memory = DOOR.largest(name)
        asks.append(Ask(name, 0, sum(job.rule == name for job in jobs), threads, 0, JobResources(memory, 60)))
    return asks


def refused():
    """A sentence for everything that jobs would ask in vain: partitions, accounts, nodes, a GPU of this PyTorch."""
    jobs = DOOR.needed_jobs()
    made = {file for job in jobs for file in job.outputs}
    if missing := list(missing_tokenizers(CONFIG, submitted().runs, Path.cwd(), made.__contains__)):
        return [f"{sentence}." for sentence in missing]
    asks = asks_for(jobs)
    if DOOR.executor != "slurm":
        return refused_build(asks, os.environ)
    if odd := place_problems([str(BASE), str(Path.cwd())]):
        return odd
    default, own = DOOR.default_resources, DOOR.own_resources
    return refusals(default, own) or [*refused_build(asks, os.environ), *impossible(asks, default, own)]


def refuse(sentences):
    """End a start, with these sentences behind what Snakemake prints, which `--quiet all` hides."""
    say_last(*sentences)
    sys.exit(1)


def queued():
    """What to know of the queue: nodes out of service, jobs of an earlier workflow, what this one's jobs still read."""
    found = []
    if DOOR.executor:  # Snakemake hands it on to them
        found += [
            f"jobs read {path} too, as they start: leave it where it is until they end"
            for path in values_of(sys.argv[1:], FILES)
        ]
    if DOOR.executor == "slurm" and (silent := silence()):
        found.append(silent)
    elif DOOR.executor == "slurm":
        jobs = DOOR.needed_jobs()
        found += out_of_service(asks_for(jobs), DOOR.default_resources, DOOR.own_resources)
        taken = {comment_of(job.rule, job.wildcards) for job in jobs if work().folders(job.wildcards)}
        found.append(left_over_sentence(left_over(my_jobs() or {}, str(Path.cwd()), ()), taken))
    return [f"Warning: {sentence}." for sentence in found if sentence]


def left_to_train():
    """What the pool has and what is left to train, which the workflow's number of jobs doesn't tell."""
    return [f"{counts().words}."] if any(job.rule in TRAINING for job in DOOR.needed_jobs()) else []


def how_far():
    """How far the runs are, after a workflow that did not end."""
    now = counts()
    return [] if now.recorded == now.runs else [f"{now.words}. The same command goes on."]


def warned():
    """What the runs of the config will not give, and what is probably a slip."""
    here = None if DOOR.jobs else workflow.cores
    found = [
        *replaced_records(CONFIG, [decoders()[key] for key in outdated()]),
        *warnings(CONFIG, submitted().runs, Path.cwd(), BASE, here, values),
        *tracker_warnings(CONFIG, os.environ),
    ]
    if DOOR.is_dry_run or "plan" in DOOR.rules():
        found += missing_tokenizers(
            CONFIG, submitted().runs, Path.cwd(), lambda path: not Path(path).exists()
        )
    return [f"Warning: {sentence}." for sentence in found]

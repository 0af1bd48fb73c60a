# What the rules ask: the config as jobs, and functions of wildcards.
import json
import shlex
import time

from shapelaw.campaign.ending import cpu_minutes, ending, heading_of
from shapelaw.jobs.executor import SlurmExecutor
from shapelaw.jobs.plan import ask_line, asks_of, cost_line, refused_build, total_line, train_cpus
from shapelaw.jobs.resources import Attempts
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
    gpt2_options,
    measured_paths,
    perplexity_options,
    source_options,
    stores_of,
    texts_digest,
    tokenizer_path,
)
from shapelaw.settings.command_line import FILES, values_of
from shapelaw.specs.runs import digest_of, run_to_dict
from shapelaw.storage.pool import FailedJob, SnakemakeErrors, drop_empty, failures, told_again

EXECUTION = CONFIG.execution
CORPORA = CONFIG.all_corpora
SPEED = SUBMITTED.speed
WORK = Workload(RUNS, EXECUTION, SPEED)
# What the next attempt at a job asks for: on Slurm by why the last one ended, elsewhere by its number.
ATTEMPTS = Attempts(WORK.checkpoint_folders)
DOOR.use_slurm(SlurmExecutor, ATTEMPTS)
ERRORS = SnakemakeErrors()
if DOOR.is_main:
    logger.addHandler(ERRORS)
TRAIN_CPUS = train_cpus(EXECUTION)
FOUND = [*CONFIG.studies, *CONFIG.extras]
STARTED = time.time()
ENDED = []  # has an entry once all jobs ended well
REPORT = report_of(sys.argv[1:])
TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def asked(find, *names):
    """What the workload has of that name; its sentence alone when it has none."""
    try:
        return find(*names)
    except UserError as error:
        say_last(str(error))
        raise WorkflowError(str(error)) from error


# decoders that keep their weights; their keys are in the environment, whose change trains nothing again
MEASURED = asked(WORK.measured, CONFIG.perplexity)
os.environ.update(KEEP_WEIGHTS=" ".join(MEASURED))


def run_of(wildcards):
    """The run of a record's path."""
    return asked(WORK.run, wildcards.key)


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


def job_path(wildcards):
    """The file that the job of a run leaves, where it trains several."""
    return asked(WORK.job_path, wildcards.key)


def vocab_sizes(corpus):
    """The vocabulary sizes of a corpus's decoders."""
    return {run.shape.vocab_size for run in WORK.decoders if run.corpus == corpus}


def costs(wildcards):
    """One line a study, one a training rule, and the sum."""
    lines = [line for study in CONFIG.studies for line in STUDIES[study].costs(CONFIG)]
    lines += [cost_line(study, list(runs.values()), EXECUTION, SPEED) for study, runs in RUNS.items()]
    asks = asks_of(WORK)
    lines += [*map(ask_line, asks), total_line(WORK.trained, asks, EXECUTION, SPEED)]
    return "\n".join(lines)


def subcategory_of(study, what):
    """The report's heading of a study's tables or figures, without a colon, which ends the name of Snakemake's link."""
    heading = heading_of(study, RUNS.get(study.name, {}).values())
    return f"{heading}, {what}".replace(": ", ", ")


def say_ending():
    """Say what was trained and found and where to look: of a run that ended well, and of a report that was written."""
    reported = REPORT and Path(REPORT).exists() and Path(REPORT).stat().st_mtime >= STARTED
    if not ENDED and not reported:
        return
    rules = DOOR.rules()
    if not (found := [STUDIES[name] for name in FOUND if name in rules]):
        return
    of_all = f"{CONFIG.results}/findings.html" if "findings" in rules else f"{found[0].folder}/tables.md"
    runs = {name: runs for name, runs in RUNS.items() if name in rules}
    minutes = cpu_minutes() if ENDED and DOOR.jobs is None else None
    for line in ending(found, runs, REPORT if reported else of_all, minutes):
        print(line)


def said_failures():
    """Why jobs failed: a sentence for every run of the config that could not go on, and what other jobs said last."""
    sentences = list(dict.fromkeys(failures(Path("results/checkpoints"), WORK.pool)))
    failed = [
        FailedJob(" ".join(name), job.log, ATTEMPTS.told.get(name, "") or ERRORS.reason_of(job.outputs))
        for job in DOOR.failed_jobs()
        for name in [(job.rule, *job.wildcards)]
    ]
    return told_again(failed, sentences) + sentences


def refused():
    """A sentence for everything that jobs would ask in vain: partitions, accounts, nodes, a GPU of this PyTorch."""
    jobs = DOOR.needed_jobs()
    made = {file for job in jobs for file in job.outputs}
    if missing := list(missing_tokenizers(CONFIG, RUNS, Path.cwd(), made.__contains__)):
        return [f"{sentence}." for sentence in missing]
    needed = {job.rule for job in jobs}
    asks = [ask for ask in asks_of(WORK) if ask.rule in needed]
    if DOOR.executor != "slurm":
        return refused_build(asks, os.environ)
    if odd := place_problems([str(BASE), str(Path.cwd())]):
        return odd
    default, own = DOOR.default_resources, DOOR.own_resources
    return refusals(default, own) or [*refused_build(asks, os.environ), *impossible(asks, default, own)]


def refuse(sentences):
    """End a start, with these sentences behind what Snakemake prints, which `--quiet all` hides."""
    say_last(*sentences)
    raise WorkflowError("nothing was started; the last lines say why")


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
        needed = {job.rule for job in jobs}
        asks = [ask for ask in asks_of(WORK) if ask.rule in needed]
        found += out_of_service(asks, DOOR.default_resources, DOOR.own_resources)
        taken = {
            comment_of(job.rule, job.wildcards) for job in jobs if WORK.checkpoint_folders(job.wildcards)
        }
        found.append(left_over_sentence(left_over(my_jobs() or {}, str(Path.cwd()), ()), taken))
    return [f"Warning: {sentence}." for sentence in found if sentence]


def left_to_train():
    """How many runs the workflow trains, which its number of steps doesn't tell."""
    made = [Path(file) for job in DOOR.needed_jobs() for file in job.outputs]
    runs = sum(file.match("results/runs/*/summary.json") for file in made)
    if not runs:
        return []
    others = "the other steps prepare texts, import runs, and analyse"
    return [f"{runs:,} of {len(WORK.pool):,} runs {'is' if runs == 1 else 'are'} left to train; {others}."]


def warned():
    """What the runs of the config will not give, and what is probably a slip."""
    here = None if DOOR.jobs else workflow.cores
    found = [*warnings(CONFIG, RUNS, Path.cwd(), here, values), *tracker_warnings(CONFIG, os.environ)]
    if DOOR.is_dry_run:
        found += missing_tokenizers(CONFIG, RUNS, Path.cwd(), lambda path: not Path(path).exists())
    return [f"Warning: {sentence}." for sentence in found]

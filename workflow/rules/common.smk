# What the rules ask: the config as jobs, and functions of wildcards.
import json
import shlex
import time

from shapelaw.campaign.ending import cpu_minutes, ending, heading_of
from shapelaw.cluster.attempts import Attempts
from shapelaw.cluster.refusals import limit_sentence, lowest_limit, place_problems
from shapelaw.scheduling.asks import Queue, impossible, queues_of, refusals, refused_build, requests_of
from shapelaw.scheduling.plan import ask_line, asks_of, cost_line, total_line, train_cpus
from shapelaw.scheduling.workload import (
    Workload,
    gpt2_options,
    measured_paths,
    perplexity_options,
    source_options,
    stores_of,
    texts_digest,
    tokenizer_path,
)
from shapelaw.specs.runs import digest_of, run_to_dict
from shapelaw.storage.pool import FailedJob, SnakemakeErrors, drop_empty, failures, told_again

EXECUTION = CONFIG.execution
CORPORA = CONFIG.all_corpora
SPEED = SUBMITTED.speed
WORK = Workload(RUNS, EXECUTION, SPEED)
# What the next attempt at a job asks for: on Slurm by why the last one ended, elsewhere by its number.
ATTEMPTS = Attempts(WORK.checkpoint_folders)
if workflow.is_main_process and "snakemake_executor_plugin_slurm" in sys.modules:
    from shapelaw.cluster.executor import use_for_slurm

    use_for_slurm(ATTEMPTS)
ERRORS = SnakemakeErrors()
if workflow.is_main_process:
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
    rules = {job.rule.name for job in workflow.dag.jobs}
    if not (found := [STUDIES[name] for name in FOUND if name in rules]):
        return
    of_all = f"{CONFIG.results}/findings.html" if "findings" in rules else f"{found[0].folder}/tables.md"
    runs = {name: runs for name, runs in RUNS.items() if name in rules}
    minutes = cpu_minutes() if ENDED and workflow.resource_settings.nodes is None else None
    for line in ending(found, runs, REPORT if reported else of_all, minutes):
        print(line)


def said_failures():
    """Why jobs failed: a sentence for every run of the config that could not go on, and what other jobs said last."""
    sentences = list(dict.fromkeys(failures(Path("results/checkpoints"), WORK.pool)))
    failed = []
    for job in sorted(workflow.scheduler.failed, key=lambda job: job.jobid):
        for one in job.jobs if job.is_group() else [job]:
            name = (one.rule.name, *one.wildcards)
            reason = ATTEMPTS.told.get(name, "") or ERRORS.reason_of(one.output)
            failed.append(FailedJob(" ".join(name), Path(one.log[0]) if one.log else None, reason))
    return told_again(failed, sentences) + sentences


def refused():
    """A sentence for everything that jobs would ask in vain: partitions, accounts, nodes, a GPU of this PyTorch."""
    jobs = list(workflow.dag.needrun_jobs())
    made = {str(file) for job in jobs for file in job.output}
    if missing := list(missing_tokenizers(CONFIG, RUNS, Path.cwd(), made.__contains__)):
        return [f"{sentence}." for sentence in missing]
    needed = {rule for job in jobs for rule in job.rules}
    asks = [ask for ask in asks_of(WORK) if ask.rule in needed]
    if workflow.executor_plugin.name != "slurm":
        return refused_build(asks, os.environ)
    if odd := place_problems([str(BASE), str(Path.cwd())]):
        return odd
    given = workflow.resource_settings
    default = raw_values(given._parsed_default_resources)
    own = {name: raw_values(parsed) for name, parsed in given._parsed_overwrite_resources.items()}
    queues = refusals(queues_of(default, own.values()))
    return queues or [*refused_build(asks, os.environ), *impossible(requests_of(asks, default, own))]


def limited():
    """A sentence where this workflow would have more jobs in Slurm's queue than it takes."""
    if workflow.executor_plugin.name != "slurm":
        return []
    given = workflow.resource_settings
    default = raw_values(given._parsed_default_resources)
    (queue,) = queues_of(default, []) - {Queue()} or {Queue()}
    jobs = sum(not job.is_local for job in workflow.dag.needrun_jobs())
    limit = lowest_limit(queue.account, queue.partition, workflow.executor_settings.qos or "")
    sentence = limit_sentence(limit, jobs, given.nodes, str(Path.cwd()))
    return [f"Warning: {sentence}."] if sentence else []


def left_to_train():
    """How many runs the workflow trains, which its number of steps doesn't tell."""
    made = [Path(file) for job in workflow.dag.needrun_jobs() for file in job.output]
    runs = sum(file.match("results/runs/*/summary.json") for file in made)
    if not runs:
        return []
    others = "the other steps prepare texts, import runs, and analyse"
    return [f"{runs:,} of {len(WORK.pool):,} runs {'is' if runs == 1 else 'are'} left to train; {others}."]


def raw_values(parsed):
    """Resources as they were written."""
    return {name: one.raw for name, one in parsed.items()}


def warned():
    """What the runs of the config will not give, and what is probably a slip."""
    here = None if workflow.resource_settings.nodes else workflow.cores
    found = [*warnings(CONFIG, RUNS, Path.cwd(), here, values), *tracker_warnings(CONFIG, os.environ)]
    if workflow.output_settings.dryrun:
        found += missing_tokenizers(CONFIG, RUNS, Path.cwd(), lambda path: not Path(path).exists())
    return [f"Warning: {sentence}." for sentence in found]

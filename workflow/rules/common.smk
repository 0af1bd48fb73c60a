# What the rules ask: the config as jobs, and functions of wildcards.
import json
import shlex

from shapelaw.scheduling.plan import cost_line
from shapelaw.scheduling.queues import queues_of, refusals
from shapelaw.scheduling.texts import source_options, texts_digest
from shapelaw.scheduling.workload import Workload, stores_of
from shapelaw.specs.digests import digest_of
from shapelaw.specs.runs import run_to_dict
from shapelaw.storage.failures import FailedJob, failures, told_again

EXECUTION = CONFIG.execution
SPEED = SUBMITTED.speed
WORK = Workload(RUNS, EXECUTION, SPEED)
TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def asked(find, *names):
    """What the workload has of that name; its sentence alone when it has none."""
    try:
        return find(*names)
    except UserError as error:
        say_last(str(error))
        raise WorkflowError(str(error)) from error


def run_of(wildcards):
    """The run of a record's path."""
    return asked(WORK.run, wildcards.study, wildcards.key)


def job_path(wildcards):
    """The file that the job of a run leaves, where it trains several."""
    return asked(WORK.job_path, wildcards.study, wildcards.key)


def costs(wildcards):
    """One line a study."""
    lines = [line for study in CONFIG.studies for line in STUDIES[study].costs(CONFIG)]
    lines += [cost_line(study, list(runs.values()), EXECUTION, SPEED) for study, runs in RUNS.items()]
    return "\n".join(lines)


def said_failures():
    """Why jobs failed: a sentence for every run of the config that could not go on, and what other jobs said last."""
    digests = {run.digest for runs in RUNS.values() for run in runs.values()}
    sentences = list(dict.fromkeys(failures(Path("results/checkpoints"), digests)))
    failed = [
        FailedJob(" ".join([job.rule.name, *job.wildcards]), Path(job.log[0]) if job.log else None)
        for job in sorted(workflow.scheduler.failed, key=lambda job: job.jobid)
    ]
    return told_again(failed, sentences) + sentences


def refused_queues():
    """A sentence for every partition or account that Slurm, where jobs go there, refuses."""
    if workflow.executor_plugin.name != "slurm":
        return []
    asked = workflow.resource_settings
    parsed = [asked._parsed_default_resources, *asked._parsed_overwrite_resources.values()]
    default, *overrides = [{name: one.raw for name, one in resources.items()} for resources in parsed]
    return refusals(queues_of(default, overrides))

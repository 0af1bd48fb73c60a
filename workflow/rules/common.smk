# What the rules ask: the config as jobs, and functions of wildcards.
import hashlib
import json
import shlex

from snakemake.exceptions import WorkflowError

from shapelaw.scheduling.plan import cost_line, speed_of
from shapelaw.scheduling.texts import source_options, texts_digest
from shapelaw.scheduling.workload import Workload, stores_of
from shapelaw.specs.runs import run_to_dict
from shapelaw.storage.failures import failures

EXECUTION = CONFIG.execution
SPEED = speed_of(CONFIG, Path.cwd())
WORK = Workload(RUNS, EXECUTION, SPEED)
TRACKING = f"--uri {shlex.quote(CONFIG.tracking.uri)}" if CONFIG.tracking.uri else ""


def asked(find, *names):
    """What the workload has of that name; its sentence alone when it has none."""
    try:
        return find(*names)
    except UserError as error:
        raise WorkflowError(str(error)) from error


def run_of(wildcards):
    """The run of a record's path."""
    return asked(WORK.run, wildcards.study, wildcards.key)


def pack_path(wildcards):
    """The file that the pack of a run leaves."""
    return asked(WORK.pack_path, wildcards.study, wildcards.key)


def costs(wildcards):
    """One line a study."""
    lines = [line for study in CONFIG.studies for line in STUDIES[study].costs(CONFIG)]
    lines += [cost_line(study, list(runs.values()), EXECUTION, SPEED) for study, runs in RUNS.items()]
    return "\n".join(lines)


def said_failures():
    """A sentence for every run of the config that could not go on."""
    digests = {run.digest for runs in RUNS.values() for run in runs.values()}
    return failures(Path("results/checkpoints"), digests)

# shapelaw: the shape of a Transformer that fits your data and budget.
#
#   snakemake                                            everything that config.yaml asks for
#   snakemake plan                                       what that would cost, before anything runs
#   snakemake results/<study>/fit.json                   one target and what it needs
#   snakemake assumptions                                the theorem's assumptions on real networks
#   snakemake relu                                       a ReLU network beside each one of memorization_heads
#   snakemake perplexity                                 of the decoders that perplexity.of names, on held-out documents
#
# This file is read again at the start of every job: it imports nothing heavy (no torch, no mlflow, no pandas).
import atexit
import logging
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.0")

if "plan" in sys.argv:  # whose profile hides what Snakemake says, an error of Python too
    errors = logging.StreamHandler()
    errors.setLevel(logging.ERROR)
    logger.addHandler(errors)

BASE = Path(workflow.basedir)
sys.path.insert(0, str(BASE / "scripts"))

from shapelaw.errors import UserError, say_last
from shapelaw.jobs.ledger import finished_jobs, read_ledger, write_ledger
from shapelaw.jobs.plan import job_environment
from shapelaw.jobs.snakemake_door import Door
from shapelaw.settings.loading import layered
from shapelaw.campaign.config import load_config, studies_of
from shapelaw.campaign.outlook import missing_tokenizers, replaced_records, warnings
from shapelaw.campaign.start import (
    Start,
    check_start,
    link_scratch,
    report_of,
    report_problems,
    reports_alone,
    targets_of,
    tracker_warnings,
)
from shapelaw.campaign.submission import (
    VARIABLE,
    latest_submission,
    read_config,
    read_submission,
    repeated_submission,
    submission_of,
    submitted_path,
    write_submission,
)

DOOR = Door(workflow)

# No `configfile:`. Snakemake would merge `--config` into it, whose keys are all texts, so that a width of depth '1' would
# stand beside that of depth 1. And a job reads what its workflow was submitted with, whatever config.yaml says by then:
# the file's path reaches it by the environment. A start ignores one that it inherits, as inside of a job.
try:
    if DOOR.is_main:
        values = {}
        # --config submitted=FILE repeats a start; a report without a config of its own is of what was submitted last
        earlier = repeated_submission(config)
        if earlier is None and reports_alone(sys.argv[1:]):
            earlier = latest_submission(Path("results"))
        if earlier is None:
            values = layered([] if DOOR.replaces_config else [BASE / "config.yaml"], config)
            config_given = load_config(values, BASE / "workflow" / "scales", Path.cwd())
            SUBMITTED = submission_of(config_given, BASE, Path.cwd())
        else:
            SUBMITTED = read_submission(earlier)
        CONFIG, SUBMITTED_PATH = SUBMITTED.config, SUBMITTED.path
        start = Start(targets_of(sys.argv[1:]), Path.cwd(), BASE, os.environ, DOOR.cores, DOOR.jobs)
        check_start(start, CONFIG, SUBMITTED.runs)
        LEDGER = read_ledger()
    else:
        SUBMITTED_PATH = submitted_path(os.environ)
        CONFIG, _ = read_config(SUBMITTED_PATH)
except UserError as error:
    sys.exit(str(error))  # the sentences alone, no traceback
STUDIES = studies_of(CONFIG)  # those of the list and the config's own grids

os.environ.update(job_environment(BASE, CONFIG, SUBMITTED_PATH))


envvars:
    VARIABLE,  # Slurm passes on the whole environment, other schedulers what is named here


DOOR.lift_cores()


report: "workflow/report/workflow.rst"


# Only where it is asked for: Snakemake would take an image for another environment and train everything again.
if DOOR.in_containers:

    container: str(BASE / "envs" / "shapelaw.sif")


wildcard_constraints:
    corpus="|".join(CONFIG.all_corpora),
    vocab_size=r"\d+",
    split="train|test",
    study="|".join(CONFIG.studies),
    job=r"[^/]+",
    key=r"[^/]+",


localrules:
    all,


include: "workflow/rules/common.smk"


rule all:
    default_target: True
    input:
        [STUDIES[name].target for name in [*CONFIG.studies, *CONFIG.extras]],
        f"{CONFIG.results}/advisor.html",
        f"{CONFIG.results}/findings.html",


include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/perplexity.smk"
include: "workflow/rules/track.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/answer.smk"
include: "workflow/rules/plan.smk"


# a dry run starts nothing, so its onstart is not called; what it lists may be long
if DOOR.is_main and DOOR.is_dry_run:
    say_last(*warned(), f"{counts().words}.")
elif DOOR.is_main:
    atexit.register(say_ending)


onstart:
    if sentences := refused():
        refuse(sentences)
    for sentence in [*warned(), *queued(), *left_to_train()]:
        print(sentence, file=sys.stderr)
    try:
        if {job.rule for job in DOOR.needed_jobs()} != {"plan"}:
            write_submission(SUBMITTED, Path.cwd())
            submitted_jobs = {job.wildcards[0] for job in DOOR.needed_jobs() if job.rule in TRAINING}
            work().write_jobs(submitted_jobs)
            write_ledger(work().ledger_with(submitted_jobs))
        link_scratch(CONFIG.execution.scratch, Path.cwd())
    except UserError as error:
        refuse([str(error)])


onsuccess:
    ENDED.append(True)


onerror:
    # Snakemake goes on to print its own lines; why it ended is read where they end
    say_last(*how_far(), *said_failures())

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
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.0")

BASE = Path(workflow.basedir)
sys.path.insert(0, str(BASE / "scripts"))

from shapelaw.errors import UserError, say_last
from shapelaw.scheduling.plan import job_environment
from shapelaw.settings.loading import layered
from shapelaw.campaign.config import load_config, studies_of
from shapelaw.campaign.outlook import missing_tokenizers, warnings
from shapelaw.campaign.start import (
    Start,
    check_start,
    link_scratch,
    report_of,
    reports_alone,
    targets_of,
    tracker_warnings,
)
from shapelaw.campaign.submission import (
    latest_submission,
    read_submission,
    submission_of,
    write_submission,
)

# No `configfile:`. Snakemake would merge `--config` into it, whose keys are all texts, so that a width of depth '1' would
# stand beside that of depth 1. And a job reads what its workflow was submitted with, whatever config.yaml says by then:
# `--config submitted=FILE` takes the place of the user's own options in the command of every job.
try:
    if workflow.is_main_process:
        given = workflow.config_settings
        workflow.configfiles[:0] = [] if given.replace_workflow_config else [str(BASE / "config.yaml")]
        values = {}
        # a report without a config of its own is of what was submitted last
        last = latest_submission(Path("results")) if reports_alone(sys.argv[1:]) else None
        if last is None:
            values = layered(map(Path, workflow.configfiles), given.config)
            config_given = load_config(values, BASE / "workflow" / "scales", Path.cwd())
            SUBMITTED = submission_of(config_given, BASE, Path.cwd())
        else:
            SUBMITTED = read_submission(last)
        CONFIG, SUBMITTED_FILE = SUBMITTED.config, SUBMITTED.path
        asked = workflow.resource_settings
        start = Start(targets_of(sys.argv[1:]), Path.cwd(), BASE, os.environ, asked.cores, asked.nodes)
        check_start(start, CONFIG, SUBMITTED.runs)
        given.configfiles, given.config_args = [], [f"submitted={SUBMITTED_FILE}"]
    elif "submitted" not in config:
        raise UserError(
            "Another version of shapelaw submitted this job; stop its workflow and start it again."
        )
    else:
        SUBMITTED_FILE = Path(config["submitted"])
        SUBMITTED = read_submission(SUBMITTED_FILE)
except UserError as error:
    sys.exit(str(error))  # the sentences alone, no traceback
CONFIG, RUNS = SUBMITTED.config, SUBMITTED.runs
STUDIES = studies_of(CONFIG)  # those of the list and the config's own grids

os.environ.update(job_environment(BASE, CONFIG, SUBMITTED_FILE))

# profiles/default gives `cores: all`, this machine's, and wins over any other profile; what runs elsewhere (--jobs) and
# has a bound of its own (max-threads, as in slurm/config.yaml) must not be cut down to it.
if None not in (workflow.resource_settings.nodes, workflow.resource_settings.max_threads):
    workflow.resource_settings.cores = workflow.global_resources["_cores"] = sys.maxsize


report: "workflow/report/workflow.rst"


# Only where it is asked for: Snakemake would take an image for another environment and train everything again.
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:

    container: str(BASE / "envs" / "shapelaw.sif")


wildcard_constraints:
    corpus="|".join(CONFIG.all_corpora),
    vocab_size=r"\d+",
    split="train|test",
    study="|".join(CONFIG.studies),
    key=r"[^/]+",


localrules:
    all,


include: "workflow/rules/common.smk"


rule all:
    default_target: True
    input:
        [STUDIES[name].target for name in [*CONFIG.studies, *CONFIG.extras]],
        # of themselves, so that one that was deleted is made again: what was made of it is still there
        [record for study in CONFIG.studies for record in WORK.records(study)],
        f"{CONFIG.results}/advisor.html",
        f"{CONFIG.results}/findings.html",


include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/together.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/perplexity.smk"
include: "workflow/rules/track.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/answer.smk"
include: "workflow/rules/plan.smk"


# a dry run starts nothing, so its onstart is not called; what it lists may be long
if workflow.is_main_process and workflow.output_settings.dryrun:
    say_last(*warned())
elif workflow.is_main_process:
    atexit.register(say_ending)


onstart:
    if sentences := refused():
        raise WorkflowError("\n".join(sentences))
    for sentence in [*warned(), *limited(), *left_to_train()]:
        print(sentence, file=sys.stderr)
    try:
        if {job.rule.name for job in workflow.dag.needrun_jobs()} != {"plan"}:
            write_submission(SUBMITTED, Path.cwd())
        link_scratch(CONFIG.execution.scratch, Path.cwd())
    except UserError as error:
        raise WorkflowError(str(error)) from error


onsuccess:
    drop_empty(Path("results/logs"))
    ENDED.append(True)


onerror:
    # Snakemake goes on to print its own lines; why it ended is read where they end
    say_last(*said_failures())

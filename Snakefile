# shapelaw: the shape of a Transformer that fits your data and budget.
#
#   snakemake                                            everything that config.yaml asks for
#   snakemake plan                                       what that would cost, before anything runs
#   snakemake results/<study>/fit.json                   one target and what it needs
#   snakemake assumptions                                the theorem's assumptions on real networks
#   snakemake relu                                       a ReLU network beside each one of memorization_heads
#
# This file is read again at the start of every job: it imports nothing heavy (no torch, no mlflow, no pandas).
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")

BASE = Path(workflow.basedir)
sys.path.insert(0, str(BASE / "scripts"))

from shapelaw.errors import UserError
from shapelaw.scheduling.plan import job_environment
from shapelaw.studies.config import load_config, runs_of
from shapelaw.studies.registry import STUDIES


configfile: str(BASE / "config.yaml")


try:
    CONFIG = load_config(config, BASE / "workflow" / "scales", Path.cwd())
    RUNS = {study: runs_of(CONFIG, study, BASE) for study in CONFIG.studies if STUDIES[study].kind}
except UserError as error:
    sys.exit(str(error))  # the sentences alone, no traceback

os.environ.update(job_environment(BASE, CONFIG))

# profiles/default gives `cores: all`, this machine's, and wins over any other profile; what runs elsewhere (--jobs) and
# has a bound of its own (max-threads, as in slurm/config.yaml) must not be cut down to it.
if None not in (workflow.resource_settings.nodes, workflow.resource_settings.max_threads):
    workflow.resource_settings.cores = workflow.global_resources["_cores"] = sys.maxsize


report: "workflow/report/workflow.rst"


wildcard_constraints:
    corpus=CONFIG.corpus.name,
    vocab_size=r"\d+",
    split="train|test",
    study="|".join(CONFIG.studies),
    key=r"[^/]+",


localrules:
    all,


rule all:
    default_target: True
    input:
        [STUDIES[name].target for name in [*CONFIG.studies, *CONFIG.extras]],


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/packed.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/track.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/plan.smk"


onerror:
    for sentence in said_failures():
        print(sentence, file=sys.stderr)

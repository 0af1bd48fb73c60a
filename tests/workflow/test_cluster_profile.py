"""What `snakemake --profile slurm` asks for, without a Slurm: dry runs and the rules' own resources."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from job_server import snakemake_python
from project import Project
from small import REPOSITORY
from snakemake.settings.types import RerunTrigger

ASKED = """
import json, sys
from pathlib import Path
from snakemake.api import OutputSettings, ResourceSettings, SnakemakeApi
from snakemake.iocontainers import InputFiles, Wildcards

wildcards = Wildcards(fromdict={"corpus": "prose", "vocab_size": "300", "split": "train"})
with SnakemakeApi(OutputSettings()) as api:
    workflow = api.workflow(ResourceSettings(cores=int(sys.argv[1])), snakefile=Path("Snakefile"))._workflow
    for name in ("train_tokenizer", "encode"):
        asked = [workflow.get_rule(name).expand_resources(wildcards, InputFiles(), n) for n in (1, 2, 3)]
        print(json.dumps([[a.mem_mb, a.runtime] for a in asked]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    shutil.copytree(REPOSITORY / "slurm", project.folder / "slurm")
    project.configure(execution={"threads": 16})
    return project


def threads_of_commands(project: Project, *options: str) -> tuple[set[int], ...]:
    """Of the commands of a dry run: threads of training, processes of encoding, threads of a tokenizer's training."""
    said = project.snakemake("-n", "-p", *options).stdout
    patterns = (r"train\.py\W .*--threads (\d+)", r"--workers (\d+)", r"RAYON_NUM_THREADS=(\d+) ")
    return tuple({int(number) for number in re.findall(pattern, said)} for pattern in patterns)


def test_the_cores_of_the_head_node_bound_no_job_of_the_cluster(project: Project) -> None:
    """As on a head node of one core: `cores: all` of profiles/default is what it has."""
    assert threads_of_commands(project, "--profile", "slurm", "--cores", "1") == ({16}, {8}, {8})
    assert threads_of_commands(project, "--profile", "slurm") == ({16}, {8}, {8})


def test_the_cores_of_one_machine_bound_its_jobs(project: Project) -> None:
    assert threads_of_commands(project, "--cores", "1") == ({1}, {1}, {1})
    cores = os.cpu_count() or 1
    assert threads_of_commands(project) == ({min(16, cores)}, {min(64, cores)}, {min(64, cores)})


def test_the_devices_of_a_run_are_started_together(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the launcher, which tests/training/test_launch.py starts on CPUs, and tests/slurm in a job."""
    monkeypatch.setenv("SHAPELAW_DEVICE", "cpu")
    project.configure(execution={"threads": 16, "gpus": 2})
    said = project.snakemake("-n", "-p").stdout
    project.configure(execution={"threads": 16})
    (choice,) = {*re.findall(r"&& (if \[ .*?; fi) && exec python \"\$@\" \"\$SCRIPTS/train.py\"", said)}
    words = subprocess.run(["bash", "-c", f'{choice}; echo "$@"'], capture_output=True, text=True, check=True)
    assert words.stdout == "/launch.py --processes 2\n"


def test_jobs_of_the_corpus_ask_for_more_at_each_attempt(project: Project) -> None:
    def asked(cores: int) -> list[list[list[int]]]:
        (project.folder / "asked.py").write_text(ASKED)
        command = [snakemake_python(), "asked.py", str(cores)]
        done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    tokenizer, encode = asked(8)
    assert tokenizer == [[8000, 60], [16000, 120], [24000, 180]]
    assert encode == [[3000, 60], [6000, 120], [9000, 180]]
    project.configure(execution={"threads": 16, "job_hours": 1.5})
    assert asked(2)[1] == [[1500, 60], [3000, 90], [4500, 90]]  # fewer processes, less memory
    project.configure(execution={"threads": 16})


def test_a_command_that_is_written_differently_is_no_reason_in_any_profile() -> None:
    for profile in ("profiles/default", "slurm"):
        values = yaml.safe_load((REPOSITORY / profile / "config.yaml").read_text(encoding="utf-8"))
        assert {*values["rerun-triggers"]} == {*RerunTrigger.choices()} - {"code"}

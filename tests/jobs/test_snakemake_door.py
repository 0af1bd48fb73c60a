"""What is used of Snakemake and not documented: each of it can be away, and the workflow runs."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project import Project
from small import SCRIPTS
from snakemake.scheduling import job_scheduler
from snakemake_executor_plugin_slurm import Executor

from shapelaw.jobs import snakemake_door
from shapelaw.jobs.executor import SlurmExecutor
from shapelaw.jobs.resources import Attempts
from shapelaw.jobs.snakemake_door import LOST, Door

OF_WORKFLOW = list(LOST)[: list(LOST).index("Quietness.PROGRESS")]


@pytest.fixture(autouse=True)
def said_once() -> None:
    """What is said once is said once a test."""
    snakemake_door._miss.cache_clear()


def missing(name: str) -> str:
    return f"This release of Snakemake or of its Slurm plugin has no {name}, so {LOST[name]}. "


def a_workflow() -> Any:
    """What the door reads, of a start with --profile slurm."""
    job = SimpleNamespace(rule=SimpleNamespace(name="train"), wildcards=("k",), output=["o"], log=[], jobid=1)
    job.is_group = lambda: False
    as_written = {"mem_mb": SimpleNamespace(raw="1000")}
    return SimpleNamespace(
        is_main_process=True,
        config_settings=SimpleNamespace(replace_workflow_config=True),
        resource_settings=SimpleNamespace(
            cores=4,
            nodes=500,
            max_threads=128,
            default_resources=as_written,
            overwrite_resources={"train": as_written},
        ),
        global_resources={"_cores": 4},
        deployment_settings=SimpleNamespace(deployment_method={"apptainer"}),
        output_settings=SimpleNamespace(dryrun=True),
        executor_plugin=SimpleNamespace(name="slurm"),
        dag=SimpleNamespace(jobs=[job], needrun_jobs=lambda: [job]),
        scheduler=SimpleNamespace(failed=[job]),
    )


def all_of(door: Door) -> dict[str, Any]:
    """All that the Snakefile asks of the door, by what of the workflow it is."""
    found = {
        "is_main_process": door.is_main,
        "config_settings.replace_workflow_config": door.replaces_config,
        "resource_settings.cores": door.cores,
        "resource_settings.nodes": door.jobs,
        "resource_settings.default_resources": door.default_resources,
        "resource_settings.overwrite_resources": door.own_resources,
        "deployment_settings.deployment_method": door.in_containers,
        "output_settings.dryrun": door.is_dry_run,
        "executor_plugin.name": door.executor,
        "dag.jobs": door.rules(),
        "dag.needrun_jobs": [job.rule for job in door.needed_jobs()],
        "scheduler.failed": [job.outputs for job in door.failed_jobs()],
    }
    door.lift_cores()
    return found


def without(workflow: Any, path: str) -> Any:
    """A workflow that lacks an attribute."""
    *owners, name = path.split(".")
    owner = workflow
    for one in owners:
        owner = getattr(owner, one)
    delattr(owner, name)
    return workflow


@pytest.mark.parametrize("hidden", OF_WORKFLOW)
def test_what_a_newer_snakemake_lacks_is_told_once_and_all_else_is_read(
    hidden: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["snakemake"])
    whole = all_of(Door(a_workflow()))
    assert capsys.readouterr().err == ""
    assert all(value not in (None, False, "", [], {}) for value in whole.values())
    door = Door(without(a_workflow(), hidden))
    for _ in range(2):
        found = all_of(door)
        assert {path for path in found if found[path] != whole[path]} <= {hidden, "resource_settings.cores"}
    told = capsys.readouterr().err
    assert told.count(missing(hidden)) == told.count("This release") == 1


# a workflow as this release has it, but for all of that
HIDING = """
class Hiding:
    def __init__(self, of, hidden):
        self.__dict__.update(of=of, hidden=hidden)

    def __getattr__(self, name):
        if name in self.hidden:
            raise AttributeError(name)
        found = getattr(self.of, name)
        inner = [path.partition(".")[2] for path in self.hidden if path.startswith(f"{{name}}.")]
        return Hiding(found, inner) if inner and found is not None else found


DOOR = Door(Hiding(workflow, {hidden!r}))
"""


@pytest.mark.slow
def test_without_any_of_it_the_workflow_runs(tmp_path: Path, with_corpus: Path) -> None:
    project = Project(tmp_path, with_corpus)
    snakefile = project.folder / "Snakefile"
    text = snakefile.read_text()
    assert "DOOR = Door(workflow)\n" in text
    snakefile.write_text(text.replace("DOOR = Door(workflow)\n", HIDING.format(hidden=OF_WORKFLOW)))
    target = "results/depth_width/keys.txt"
    said = project.snakemake(target, "--quiet", "rules").stderr
    assert (project.folder / target).is_file()
    for name in ("is_main_process", "resource_settings.nodes", "output_settings.dryrun", "dag.jobs"):
        assert said.count(missing(name)) == 1
    assert "Traceback" not in said


def test_without_the_registry_jobs_are_the_plugins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from snakemake_interface_executor_plugins import registry

    door, attempts = Door(SimpleNamespace(is_main_process=True)), Attempts(lambda name: [])
    monkeypatch.delattr(registry, "ExecutorPluginRegistry")
    door.use_slurm(SlurmExecutor, attempts)
    assert f"has no plugins, so {LOST['plugins']}" in capsys.readouterr().err
    plugin = SimpleNamespace(executor=Executor)
    found = SimpleNamespace(plugins={"slurm": plugin})
    monkeypatch.setattr(registry, "ExecutorPluginRegistry", lambda: found, raising=False)
    door.use_slurm(SlurmExecutor, attempts)
    assert issubclass(plugin.executor, SlurmExecutor)
    assert plugin.executor.attempts is attempts


def test_an_attribute_that_is_not_there_yet_is_not_told_as_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the scheduler, before there is one."""
    door = Door(SimpleNamespace(is_main_process=True, scheduler=None, executor_plugin=None))
    assert (door.failed_jobs(), door.executor) == ([], "")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("arguments", "is_main"), [(["--mode", "remote"], False), (["plan"], True)])
def test_a_job_is_told_from_a_start_by_its_command_line_if_need_be(
    arguments: Sequence[str], is_main: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["snakemake", *arguments])
    assert Door(SimpleNamespace()).is_main == is_main


def test_no_other_module_touches_what_is_not_documented() -> None:
    """The Snakefile and the rules ask the door for everything but what Snakemake's documentation names."""
    documented = {"basedir", "cores"}
    asked = {
        word
        for path in [SCRIPTS.parent / "Snakefile", *sorted((SCRIPTS.parent / "workflow/rules").glob("*.smk"))]
        for word in re.findall(r"\bworkflow\.([a-z_]+)", re.sub(r'["#].*', "", path.read_text()))
    }
    assert asked <= documented
    importing = {
        path.name
        for path in SCRIPTS.rglob("*.py")
        if re.search(r"\b(import|from) snakemake", path.read_text())
    }
    # the second takes what an executor reports from the plugins' interface
    assert importing == {"snakemake_door.py", "executor.py"}


def test_what_is_said_better_is_left_out() -> None:
    made = SlurmExecutor.__new__(SlurmExecutor)
    passes = [
        made._hear(logging.LogRecord("", 20, "", 1, text, None, None))
        for text in ("Trying to restart job 5.", "Finished jobid: 5")
    ]
    assert passes == [False, True]


def test_errors_of_jobs_that_ctrl_c_ends_are_left_out() -> None:
    assert f'"{snakemake_door._STOPS}' in Path(job_scheduler.__file__).read_text()
    logger = logging.getLogger("snakemake.logging")
    before = logger.filters[:]
    Door(a_workflow()).hush_stopped()
    try:
        (hush,) = [one for one in logger.filters if one not in before]
    finally:
        logger.filters = before

    def passes(level: int, text: str) -> bool:
        return bool(hush(logging.LogRecord("", level, "", 1, text, None, None)))  # type: ignore[operator]

    assert passes(logging.ERROR, "Error in rule train_small:")
    assert passes(logging.INFO, f"{snakemake_door._STOPS}, this might take some time.")
    assert not passes(logging.ERROR, "Error in rule train_small:")
    assert passes(logging.INFO, "Elapsed time: 0:00:24")

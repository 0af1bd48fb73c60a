"""`snakemake --profile slurm` on a real Slurm: the same results as on one machine, whatever happens to the jobs."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from mlflow.tracking import MlflowClient
from project import ALL_IN_ONE, CONFIG, GRID, KEYS, TWO_A_JOB, ColdProject, key_of, records_of
from small import PYTHON, REPOSITORY

SUBMITTED = re.compile(r"has been submitted with SLURM jobid \d+ \(log: \S+/rule_train_small/")
INTERVAL = ("--slurm-init-seconds-before-status-checks", "2")
SLURM = [
    *("--profile", "slurm", *INTERVAL),
    *("--default-resources", "slurm_partition=preempt", "slurm_account=lab", "runtime=10", "mem_mb=1000"),
    "--set-resources",
]
MEMORY = ["train_small:mem_mb=1000"]
TABLES = ("transitions", "fit", "projection", "forms", "comparison", "size_axes", "seed_noise", "best_depth")
FITTED = "results/depth_width/fit.json"
STORM = {  # two runs of 10 s or more; five faults, each a checkpoint after the one before, take 4 s of them
    "training": {**CONFIG["training"], "steps": 5000, "warmup_steps": 100, "log_every": 500},
    "grids": {"depth_width": {**GRID, "widths": {2: [8, 12]}, "repeated": {}}},
    "execution": {"checkpoint_minutes": 0.01},
}


class SlurmProject(ColdProject):
    """A project with the Slurm profile, and what its runs and jobs are doing."""

    def __init__(self, folder: Path, corpora: Path | None = None) -> None:
        super().__init__(folder)
        shutil.copytree(REPOSITORY / "slurm", folder / "slurm")
        if corpora is not None:
            shutil.copytree(corpora, folder / "results" / "corpora")

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Snakemake in the background, writing to snakemake.log."""
        command = [PYTHON, "-m", "snakemake", *arguments]
        with (self.folder / "snakemake.log").open("a") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def said(self) -> str:
        """Of all that were started."""
        return (self.folder / "snakemake.log").read_text()

    def live(self, key: str) -> dict[str, Any]:
        """Where a run stands; a finished one has its record's numbers."""
        for name in (f"runs/{key}/summary.json", f"checkpoints/{key}/live.json"):
            if (path := self.folder / "results" / name).exists():
                return dict(json.loads(path.read_text()))
        return {"attempts": 0, "status": "WAITING"}

    def newest_step(self, key: str) -> int:
        """Of a run's checkpoints; 0 without one."""
        folder = self.folder / "results/checkpoints" / key
        return max((int(path.stem[5:]) for path in folder.glob("step-*.pt")), default=0)

    def histories(self) -> dict[str, bytes]:
        """The finished histories, byte for byte."""
        folder = self.folder / "results/runs"
        return {path.parent.name: path.read_bytes() for path in folder.glob("*/history.parquet")}

    def tracked(self) -> list[tuple[str, str]]:
        """Key and status of every run in MLflow."""
        client = MlflowClient(f"sqlite:///{self.folder / 'results/mlflow.db'}")
        runs = client.search_runs([e.experiment_id for e in client.search_experiments()])
        return sorted((run.data.tags["key"], run.info.status) for run in runs if "key" in run.data.tags)


def until(true: Callable[[], bool], what: str, seconds: float = 900, every: float = 0.2) -> None:
    """Wait for something that the cluster does in its own time; `every` so many seconds it is looked at."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(every)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Ended:
    """A job of accounting; a requeued one has several."""

    number: str
    name: str
    state: str
    minutes: int  # its limit
    memory: str
    granted: str
    end: str


def named(comment: str) -> str:
    """A job's rule and run, of the comment that the plugin gives it."""
    return comment.removeprefix("rule_").replace("_wildcards_", ".")


def jobs_of(folder: Path, since: str) -> list[Ended]:
    """Every job that was submitted from a folder."""
    fields = "workdir,jobid,comment,state,timelimitraw,reqmem,alloctres,end"
    rows = run("sacct", "-n", "-X", "-D", "-P", "-S", since, "-o", fields).splitlines()
    jobs = [row.split("|") for row in rows]
    return [
        Ended(number, named(comment), state.split()[0], int(limit), memory, granted, end)
        for place, number, comment, state, limit, memory, granted, end in jobs
        if place == str(folder)
    ]


def jobs_are_gone() -> bool:
    """Whether the node has cleaned up after its jobs: no step of theirs lives on."""
    return subprocess.run(["pgrep", "-f", "slurmstepd|slurm-jobstep"], capture_output=True).returncode != 0


def hurry() -> None:
    """Slurm lets a requeued job wait for two minutes; the tests don't."""
    until(lambda: "BeginTime" in run("squeue", "-h", "-o", "%r"), "a requeued job waits")
    for job in run("squeue", "-h", "-t", "pending", "-o", "%i").split():
        subprocess.run(["scontrol", "update", f"jobid={job}", "starttime=now"], check=False)


def partition(state: str) -> None:
    """Down: jobs are taken and wait, and those that run go on. Or up."""
    run("scontrol", "update", "partitionname=preempt", f"state={state}")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> SlurmProject:
    """The whole workflow on this machine, without Slurm; its runs are trained in one process, a warm one."""
    project = SlurmProject(tmp_path_factory.mktemp("local"))
    project.cold = False
    project.configure(execution=ALL_IN_ONE)
    project.snakemake(FITTED, "--quiet", "rules")
    return project


def test_the_daemons_listen_on_the_loopback_alone() -> None:
    listening = {
        (process.name(), connection.laddr.ip)
        for process in psutil.process_iter()
        if process.name() in ("slurmctld", "slurmd", "slurmdbd", "mariadbd")
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {(name, "127.0.0.1") for name in ("slurmctld", "slurmd", "slurmdbd")}


def test_the_grid_through_slurm_gives_the_same_tables_to_the_last_digit(
    local: SlurmProject, tmp_path: Path
) -> None:
    """From the text on; training, import and fits are jobs too.

    As soon as a workflow has started, somebody saves another config, or deletes it: no job takes its rate or its
    shapes. The first one is killed while its jobs wait, the second takes them over, the third does nothing.
    """
    project = SlurmProject(tmp_path)
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    asked = {"execution": {"job_minutes": 0.0076, "submit_analysis": True}}
    edited = {
        "training": {**CONFIG["training"], "learning_rate": 1e-4},
        "grids": {"depth_width": {**GRID, "widths": {1: [4, 16]}, "repeated": {}}},
    }
    command = [FITTED, *SLURM, *MEMORY]
    project.configure(**asked)
    try:
        with project.started(*command):
            until(lambda: any(tmp_path.glob("results/submitted/*.json")), "Snakemake has started")
            project.configure(**asked | edited)
            tokens = [tmp_path / f"results/corpora/prose/V300/{split}.json" for split in ("train", "test")]
            until(lambda: all(path.exists() for path in tokens), "the texts are encoded")
            partition("down")
            until(lambda: "rule_train_" in run("squeue", "-h", "-t", "pending", "-o", "%k"), "training waits")
            until(lambda: len(SUBMITTED.findall(project.said())) == 2, "all of it is submitted")
        project.configure(**asked)
        project.snakemake("--unlock")
        with project.started(*command) as it:
            until(lambda: project.said().count("; taking it over.") == 2, "the jobs are taken over")
            (project.folder / "config.yaml").unlink()
            partition("up")
            assert it.wait() == 0, project.said()
    finally:
        partition("up")
    project.configure(**asked)
    trained = [job.number for job in jobs_of(project.folder, since) if job.name.startswith("train_small.")]
    assert len(trained) == 2
    assert {project.live(key)["attempts"] for key in KEYS} == {1}
    assert "ccount" not in project.said().replace(
        "slurm_account", ""
    )  # nothing is guessed, nothing to explain
    assert project.histories() == local.histories()
    assert set(project.histories()) == KEYS
    for table in TABLES:
        path = f"results/depth_width/{table}.csv"
        assert (project.folder / path).read_bytes() == (local.folder / path).read_bytes()
    assert project.tracked() == [(key, "FINISHED") for key in sorted(KEYS)]
    assert list((project.folder / "results/logs").glob("efficiency_report_*.csv"))
    assert "Nothing to be done" in project.snakemake(FITTED, *SLURM, *MEMORY, "--quiet", "rules").stderr


def test_what_slurm_or_pytorch_would_refuse_is_told_before_anything_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = SlurmProject(tmp_path)
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    said = project.snakemake(*SLURM, "train_small:slurm_partition=nowhere", ok=False).stderr
    refused = (
        "Slurm takes no job for partition nowhere and account lab (invalid partition specified: nowhere); "
    )
    assert said.count(refused) == 1
    assert "Correct slurm_partition and slurm_account in slurm/config.yaml or on the command line.\n" in said
    assert "Traceback" not in said
    # nor has any node eight GPUs, or this PyTorch a use for one
    project.configure(execution={"gpus": 8})
    monkeypatch.setenv("SHAPELAW_DEVICE", "cpu")
    said = project.snakemake(*SLURM, *MEMORY, ok=False).stderr
    assert (
        "No node of partition preempt has what a job of train_small asks for: 8 CPUs, 1,000 MB, 8 GPUs"
        in said
    )
    if torch.version.cuda is None:
        monkeypatch.delenv("SHAPELAW_DEVICE")
        said = project.snakemake(*SLURM, *MEMORY, ok=False).stderr
        assert said.count("execution.gpus asks for GPUs, but PyTorch") == 1
    assert jobs_of(project.folder, since) == []
    assert not (project.folder / "results").exists()


def test_jobs_wait_for_a_node_and_for_room_in_the_queue_and_are_no_failures(
    local: SlurmProject, tmp_path: Path
) -> None:
    """Before a maintenance, and beyond a limit on jobs; with no retries, in an odd place.

    What no node has at all, and what the plugin does not quote, is refused nevertheless.
    """
    (tmp_path / "it's").mkdir()
    refused = SlurmProject(tmp_path / "it's").snakemake(*SLURM, *MEMORY, ok=False).stderr
    assert "in its name, which Snakemake's commands for Slurm don't quote; rename the folder" in refused
    folder = tmp_path / "a checkout, & ü; #1 *[z]~ (=) !"
    folder.mkdir()
    project = SlurmProject(folder, local.folder / "results/corpora")
    keys = set(sorted(KEYS)[:3])
    node = ("scontrol", "update", f"nodename={run('hostname', '-s').strip()}")
    limit = ("sacctmgr", "-i", "modify", "qos", "normal", "set")
    run(*node, "state=drain", "reason=test")
    run(*limit, "MaxSubmitJobsPerUser=1")
    try:
        project.configure(execution={"gpus": 8})
        said = project.snakemake(*SLURM, *MEMORY, ok=False).stderr
        assert "No node of partition preempt has what a job of train_small asks for: 8 CPUs" in said
        project.configure()
        with project.started(*records_of(keys), "--retries", "0", *SLURM, *MEMORY) as it:
            until(lambda: "train_small" in run("squeue", "-h", "-t", "pending", "-o", "%k"), "the job waits")
            run(*node, "state=resume")
            assert it.wait() == 0, project.said()
    finally:
        subprocess.run([*node, "state=resume"], check=False, capture_output=True)
        run(*limit, "MaxSubmitJobsPerUser=-1")
    said = project.said()
    assert (
        "Warning: every node of partition preempt that has what a job of train_small asks for (1 CPU, 1,000 MB) is "
        "drained; its jobs wait in the queue until one is back"
    ) in said
    assert set(project.trained()) == keys
    assert said.count("Slurm takes no more jobs now (") == 1
    assert "no more jobs now (QOSMaxSubmitJobPerUserLimit; Job violates" in said
    for word in ("Error in rule", "Traceback", "Trying to restart", "without a word"):
        assert word not in said


def test_a_job_that_slurm_never_takes_is_told_as_refused(local: SlurmProject, tmp_path: Path) -> None:
    """Once, whatever the retries, with Slurm's reason and no guess at what the job died of."""
    project = SlurmProject(tmp_path, local.folder / "results/corpora")
    key = key_of(1, 4)
    never = ["train_small:constraint=nowhere", "train_small:mem_mb=1000"]
    said = project.snakemake(*records_of([key]), "--retries", "5", *SLURM, *never, ok=False).stderr
    (job,) = re.findall(r"train_small\.(\S+): Slurm does not take it \(Invalid feature specification\)", said)
    assert job.startswith(f"depth_width-{key.removeprefix('prose-').rpartition('-')[0]}-")
    assert (
        f"train_small {job} failed (results/logs/train/{job}.log):\nSlurm did not take it (Invalid feature"
        in said
    )
    assert "without a word" not in said
    assert "Traceback" not in said
    status = [PYTHON, str(REPOSITORY / "scripts/status.py"), "--results", str(project.folder / "results")]
    told = subprocess.run(status, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert f"  failed: {job}: Slurm did not take it (Invalid feature specification)" in told.stdout


def test_a_run_on_two_gpus_gets_them_on_one_node_with_a_cpu_each(
    local: SlurmProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are of Slurm's imagination, so the processes compute on CPUs. By the profile's own intervals.

    Slurm knows the job by its rule and name; Snakemake knows its end within 20 s.
    """
    project, since = (
        SlurmProject(tmp_path, local.folder / "results/corpora"),
        time.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    project.configure(execution={"gpus": 2})
    monkeypatch.setenv("SHAPELAW_DEVICE", "cpu")
    key = key_of(1, 4)
    options = [option for option in SLURM if option not in INTERVAL]
    command = ["--precommand", "date > modules_are_loaded"]  # in the place of `module load`
    memory = "train_small:mem_mb=2000"  # Slurm counts the pages that two processes share twice
    said = project.snakemake(*records_of([key]), *command, *options, memory).stderr
    assert (project.folder / "modules_are_loaded").exists()
    record = project.live(key)
    assert (record["processes"], record["device_type"], record["device"]) == (2, "cpu", "cpu")
    (job,) = [job for job in jobs_of(project.folder, since) if job.name.startswith("train")]
    assert job.name.startswith("train_small.depth_width-V300-L1-d4-")
    assert {"cpu=2", "node=1", "gres/gpu=2"} <= set(job.granted.split(","))
    finished = re.findall(r"\[(.+)\]\nFinished jobid: \d+ \(Rule: train_small\)", said)
    noticed = datetime.strptime(finished[-1], "%a %b %d %H:%M:%S %Y") - datetime.fromisoformat(job.end)
    assert -1 <= noticed.total_seconds() <= 20


def test_runs_survive_everything_that_happens_to_jobs(local: SlurmProject, tmp_path: Path) -> None:
    """kill -9, scancel, the time limit, preemption, a node that goes down, Snakemake itself killed: same histories.

    With one retry: attempts that wrote a checkpoint don't count.
    """
    corpora = local.folder / "results/corpora"
    (tmp_path / "calm").mkdir()
    calm = SlurmProject(tmp_path / "calm", corpora)
    calm.configure(**STORM | {"execution": TWO_A_JOB})
    keys = sorted(key_of(2, width, training=STORM["training"]) for width in (8, 12))
    calm.snakemake(*records_of(keys), "--quiet", "rules")

    (tmp_path / "storm").mkdir()
    project = SlurmProject(tmp_path / "storm", corpora)
    project.configure(**STORM)
    command = [*records_of(keys), "--retries", "1", *SLURM[:-1]]
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    attempts: dict[str, int] = {}
    victims: dict[str, int] = {}

    def training(among: list[str]) -> list[str]:
        """Runs that are at work beyond their last checkpoint's beginning."""
        return [
            key
            for key in among
            if (live := project.live(key))["status"] == "RUNNING"
            and live["attempts"] > attempts.get(key, 0)
            and project.newest_step(key) > live["step"]
        ]

    def finished(key: str) -> bool:
        return bool(project.live(key)["status"] == "FINISHED")

    def at_work() -> bool:
        alive = [key for key in keys if not finished(key)]
        return len(training(alive)) == len(alive)

    def strike(fault: str) -> list[str]:
        """Wait until all unfinished runs train again, note who is hit."""
        until(at_work, f"all runs at work before {fault}")
        hit = training(keys)
        assert hit, f"every run had ended before {fault}"
        for key in hit:
            attempts[key] = project.live(key)["attempts"]
        victims[fault] = len(hit)
        return hit

    def ended(state: str) -> list[int]:
        """The time limits of the jobs that ended so."""
        return [job.minutes for job in jobs_of(project.folder, since) if job.state == state]

    with project.started(*command):
        hit = strike("time limit")
        (asked,) = set(ended("RUNNING"))
        for key in hit:
            os.kill(project.live(key)["pid"], signal.SIGSTOP)  # so slow that it meets its limit
            run("scontrol", "update", f"jobid={project.live(key)['tags']['slurm_job']}", "timelimit=1")
        until(lambda: len(ended("TIMEOUT")) == len(hit), "the time limit has ended both jobs", every=2)
        strike("kill -9 and scancel")
        os.kill(project.live(keys[0])["pid"], signal.SIGKILL)
        run("scancel", project.live(keys[1])["tags"]["slurm_job"])
        strike("preemption")
        higher = ("-W", "-p", "gpu", "-A", "lab", "-c", "16", "--mem", "500", "-o", "/dev/null")
        run("sbatch", *higher, "--wrap", "sleep 1")
        hurry()
        strike("node down")
        node = run("hostname", "-s").strip()
        run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        until(jobs_are_gone, "the node has cleaned up")
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
        until(lambda: "down" not in run("sinfo", "-h", "-o", "%T"), "the node is back")
        hurry()
        hit = strike("Snakemake killed")
        processes = [project.live(key)["pid"] for key in hit]
        for process in processes:
            os.kill(process, signal.SIGSTOP)  # so that they are there when the next Snakemake comes
    submitted = {job.number for job in jobs_of(project.folder, since)}
    project.snakemake("--unlock")
    with project.started(*command) as it:
        until(
            lambda: project.said().count("of an earlier workflow; taking it over.") == len(hit),
            "they are taken over",
        )
        for process in processes:
            os.kill(process, signal.SIGCONT)
        assert it.wait() == 0, project.said()

    assert project.histories() == calm.histories()
    jobs, said = jobs_of(project.folder, since), project.said()
    assert {job.number for job in jobs} == submitted  # none was submitted to wait for them
    assert {"TIMEOUT", "FAILED", "CANCELLED", "PREEMPTED", "NODE_FAIL"} <= {job.state for job in jobs}
    assert min(ended("FAILED") + ended("CANCELLED")) > asked  # after a time limit, more time
    assert len({job.memory for job in jobs}) == 1  # and no more memory
    for state in ("PREEMPTED", "NODE_FAIL"):  # as docs/cluster.md has it
        assert re.search(rf": job \d+ ended {state} on {node}; Slurm put it back into the queue\.", said)
    for state in ("TIMEOUT", "FAILED", "CANCELLED"):
        assert re.search(
            rf": job \d+ ended {state} at step \d+ of 5000; it advanced, so it doesn't count; trying", said
        )


def test_jobs_without_memory_get_more_and_a_run_that_diverges_is_finished(
    local: SlurmProject, tmp_path: Path
) -> None:
    """At this rate width 512 overflows at step 4; width 12 gets through its 8 steps.

    Both ask for too little memory first, and then for twice as much.
    """
    project = SlurmProject(tmp_path, local.folder / "results/corpora")
    jobs_py = project.folder / "scripts/shapelaw/jobs/resources.py"
    jobs_py.write_text(jobs_py.read_text().replace("_START_MB = 2000.0", "_START_MB = 300.0", 1))
    train_py = project.folder / "scripts/train.py"  # Slurm looks at the memory every two seconds
    waiting = "    import time\n\n    time.sleep(4)\n    sys.exit(main())"
    train_py.write_text(train_py.read_text().replace("    sys.exit(main())", waiting))
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    project.configure(
        training={**CONFIG["training"], "steps": 8, "learning_rate": 3e3, "warmup_steps": 0},
        grids={"depth_width": {**GRID, "widths": {1: [512, 12]}, "repeated": {}}},
    )
    table = "results/depth_width/runs.parquet"
    said = project.snakemake(table, *SLURM[:-1], "--retries", "5").stderr
    assert {key.split("-")[3] for key in project.trained()} == {"d12", "d512"}
    (diverged,) = (key for key in project.trained() if "diverged_at_step" in project.live(key))
    assert "-d512-" in diverged
    jobs = [job for job in jobs_of(project.folder, since) if job.name.startswith("train_small")]
    for width in (12, 512):
        first, second = sorted(
            (job for job in jobs if f"-d{width}-" in job.name), key=lambda job: int(job.number)
        )
        assert (first.state, second.state) == ("FAILED", "COMPLETED")
        assert int(second.memory.rstrip("M")) == pytest.approx(2 * int(first.memory.rstrip("M")), abs=1)
    told = [line for line in said.splitlines() if ": job " in line and " ended " in line]
    assert len(told) == 2
    for line in told:
        assert "ended OUT_OF_MEMORY" in line
        assert line.endswith("trying again with more memory.")
    for word in ("Error in rule train_small", "Trying to restart", "Traceback"):
        assert word not in said

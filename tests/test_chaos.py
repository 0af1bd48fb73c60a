"""benchmarks/chaos.py: the real workflow survives a few kills, and a difference would not go unseen."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient
from project import CONFIG, key_of
from small import PYTHON, REPOSITORY

from shapelaw.tracking.command import default_uri

sys.path.append(str(REPOSITORY / "benchmarks"))

from same_results import differences

pytestmark = pytest.mark.slow
STEPS = {"steps": 500, "log_every": 50, "evaluate_every": 1000, "warmup_steps": 50}
KEY = key_of(1, 8, training={**CONFIG["training"], **STEPS})
RECORD = f"runs/{KEY}"
_REST = " ".join(word for word in KEY.split("-")[:-1] if word not in ("L1", "d8", "s0"))
IN_MLFLOW = f"MLflow: depth_width/L1 d8 s0 {_REST}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> Path:
    """After two kills, with the disturbed workflow in storm/ and the undisturbed one in calm/."""
    folder = tmp_path_factory.mktemp("chaos") / "kept"
    options = ["--kills", "2", "--every", "2", "--steps", "500", "--widths", "8", "--folder", str(folder)]
    command = [PYTHON, str(REPOSITORY / "benchmarks/chaos.py"), *options, "--begun", str(with_corpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (folder / "report.md").write_text(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_after_two_kills_every_result_is_that_of_an_undisturbed_run(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    assert "2 of 2 kills survived" in text
    assert "Every file of the results and every run in MLflow equals the undisturbed run's." in text
    kills = json.loads((folder / "kills.json").read_text())
    assert len(kills) == 2
    assert {kill["signal"] for kill in kills} <= {"SIGKILL", "SIGTERM"}
    assert (folder / f"storm/results/{RECORD}/summary.json").exists()


def store(results: Path) -> MlflowClient:
    return MlflowClient(default_uri(results))


def tracked(results: Path) -> str:
    """The id of a run in MLflow."""
    client = store(results)
    experiment = client.get_experiment_by_name("depth_width")
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`key` = '{KEY}'")
    return str(run.info.run_id)


def test_each_difference_is_named(folder: Path, tmp_path: Path) -> None:
    calm, results = folder / "calm/results", tmp_path / "results"
    shutil.copytree(calm, results)

    def found() -> set[str]:
        return {str(difference) for difference in differences(calm, results)}

    noise, history, summary = (
        results / name
        for name in ("depth_width/seed_noise.csv", f"{RECORD}/history.parquet", f"{RECORD}/summary.json")
    )
    noise.write_text(noise.read_text().replace("8", "9", 1))
    history.write_bytes(history.read_bytes()[:-1])
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"test_loss": 0.5}))
    summary.with_name(".summary.json.host.1.tmp").write_text("{")
    (results / "depth_width/loss_adjacent.svg").unlink()
    client, run_id = store(results), tracked(results)
    client.update_run(run_id, status="RUNNING")
    point = client.get_metric_history(run_id, "train_loss")[0]
    client.log_metric(run_id, point.key, point.value, point.timestamp + 1, point.step)
    assert found() >= {
        "depth_width: depth_width/seed_noise.csv: is not the same",
        f"runs: {RECORD}/history.parquet: is not the same",
        f"runs: {RECORD}/summary.json: is not the same",
        f"runs: {RECORD}/.summary.json.host.1.tmp: is left over",
        "depth_width: depth_width/loss_adjacent.svg: is missing",
        f"{IN_MLFLOW}: has other status: RUNNING instead of FINISHED",
        f"{IN_MLFLOW}: has other metrics: train_loss",
    }
    client.delete_run(run_id)
    assert f"{IN_MLFLOW}: is there 0 times instead of 1" in found()
    client.restore_run(run_id)
    run = client.get_run(run_id)
    client.create_run(run.info.experiment_id, run_name=run.info.run_name, tags=run.data.tags)
    assert f"{IN_MLFLOW}: is there 2 times instead of 1" in found()


def test_clocks_and_attempts_are_no_difference(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(folder / "calm/results", results)
    path = results / RECORD / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"attempts": 7, "wall_seconds": 0.5}))
    assert differences(folder / "calm/results", results) == []

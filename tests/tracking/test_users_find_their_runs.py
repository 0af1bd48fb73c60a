"""What users browse in MLflow: names, columns, pages, a summary run with figures; `make ui`."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from commands import script
from made_records import ask, make_run, other_recipe, write_finished
from mlflow.tracking import MlflowClient
from places import SCRIPTS, Place, active_runs, free_port, serve, wait_for

from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.kinds import KINDS, LANGUAGE
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.specs.runs import Run
from shapelaw.tracking.command import LOCAL, address, default_uri
from shapelaw.tracking.entities import Value, read_runs, run_name, shape_name
from shapelaw.tracking.store import open_store
from shapelaw.tracking.summary import (
    EQUAL_SIZES,
    RUNS,
    SEEDS,
    SUMMARY,
    log_summary,
    pages,
    varied_params,
    view,
    write_note,
)


def test_names_begin_with_what_differs() -> None:
    run = make_run(seed=3, depth=4)
    assert run_name(run) == "L4 d16 s3 wiki V257 H2 lr0.003 t60"
    assert sorted(run_name(run).split()) == sorted(run.label.split("-"))
    object.__setattr__(run, "corpus", "L9-s7-text")  # with letters like a part of the shape
    assert run_name(run).startswith("L4 d16 s3 L9 s7 text ")
    one = MemorizationRun(Memorizer(2, 4, 8, 8, 8, 5, "by width"), "classification", "shared", 20, 60, 1)
    assert run_name(one).startswith("H2 T20 n4 h8 s1 ")
    degree = DegreeRun(ProductShape((3, 3), 8, 4, 1), "separable", 2, 60, 0, 8, 1e-05)
    assert run_name(degree).startswith("k3x2 R2 d8 s0 ")
    assert "lr1e-05" in run_name(degree).split()
    assert "s0" not in shape_name(degree).split()


def test_runs_that_differ_by_the_seed_alone_share_the_name_of_a_shape() -> None:
    run = make_run(seed=3, depth=4)
    assert re.fullmatch("L4 d16 wiki V257 H2 lr0.003 t60 [0-9a-f]{4}", shape_name(run))
    assert shape_name(make_run(seed=0, depth=4)) == shape_name(run)
    assert shape_name(other_recipe(run)) != shape_name(run)


def rows_of(*runs: Run, **others: str | int | float) -> list[dict[str, Value]]:
    """Rows of the table, as far as views look at them."""
    empty = dict.fromkeys(column.name for column in LANGUAGE.params)
    return [empty | run.flat() | others for run in runs]


def columns(kind: str, *names: str) -> list[str]:
    return [f"{kind}.`{name}`" for name in names]


def test_the_columns_are_the_results_the_size_and_what_differs_best_first() -> None:
    rows = rows_of(*(make_run(seed, depth) for seed in range(2) for depth in (1, 2)))
    state = view(LANGUAGE, RUNS, rows, ["summary"])
    results = columns("metrics", "test_loss", "bits_per_byte", "tokens_per_second", "block_params")
    assert state["selectedColumns"] == [*results, *columns("params", "depth", "seed")]
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`test_loss`", True)
    assert (state["groupBy"], state["runsPinned"]) == (None, ["summary"])
    # the mean of the seeds' numbers says nothing
    averaged = view(LANGUAGE, SEEDS, rows)
    assert averaged["selectedColumns"] == [*results, *columns("params", "depth")]
    assert averaged["groupBy"]["groupByKeys"] == [{"mode": "tag", "groupByData": "shape"}]
    for kind in KINDS.values():
        assert set(kind.shown) <= {column.name for column in (*kind.params, *kind.metrics)}
        assert view(kind, RUNS)["orderByAsc"] == (kind.shown[-3:-2] != ("accuracy",))


@pytest.mark.parametrize("other", [{"vocab_size": 1000}, {"corpus": "books"}])
def test_losses_of_other_vocabularies_or_texts_are_ordered_in_bits_per_byte(
    other: dict[str, str | int],
) -> None:
    state = view(LANGUAGE, RUNS, [*rows_of(make_run()), *rows_of(make_run(), **other)])
    assert state["orderByKey"] == "metrics.`bits_per_byte`"
    assert state["selectedColumns"][:2] == columns("metrics", "bits_per_byte", "test_loss")


def test_heads_are_seen_side_by_side_at_equal_size() -> None:
    """Whatever else differs, but for depth, width and seed, of which each size has its best."""
    rows = [row for heads in (1, 2) for row in rows_of(make_run(), make_run(1, 4), heads=heads)]
    grouped = view(LANGUAGE, EQUAL_SIZES, rows)["groupBy"]
    assert grouped["aggregateFunction"] == "min"
    assert [(key["mode"], key["groupByData"]) for key in grouped["groupByKeys"]] == [
        ("tag", "size_class"),
        ("param", "heads"),
    ]


def test_a_column_that_follows_from_others_is_none_and_one_that_does_not_is() -> None:
    """Two rates of one shape don't follow, nor does what the list never names."""
    (first,), (wider,) = rows_of(make_run()), rows_of(make_run(), width=32)
    assert varied_params(LANGUAGE, [first, wider]) == ["width"]
    faster = first | {"learning_rate": 0.006}
    other = first | {"weight_decay": 0.5, "seed": 1}
    assert varied_params(LANGUAGE, [first, wider, faster]) == ["width", "learning_rate"]
    again = first | {"seed": 1}
    assert varied_params(LANGUAGE, [first, again, other]) == ["weight_decay", "seed"]
    assert varied_params(LANGUAGE, [first]) == varied_params(LANGUAGE, [])


def state_of(place: Place) -> dict[str, Any]:
    """The state of the view of runs."""
    tags = place.store().client.get_experiment_by_name(place.study).tags
    kept = tags["mlflow.sharedViewState.runs"].removeprefix("deflate;")
    return dict(json.loads(zlib.decompress(base64.b64decode(kept))))


def test_an_imported_study_opens_as_model_training_with_its_views(place: Place) -> None:
    write_finished(place.results, make_run())
    place.import_all()
    store = place.store()
    write_note(store, place.study, "**Deep or wide?**")
    experiment = store.find_experiment(place.study)
    assert experiment
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    assert experiment.tags["mlflow.note.content"].startswith(
        "**Deep or wide?**\n\nPages: [runs](#/experiments/"
    )
    assert state_of(place) == view(LANGUAGE, RUNS)
    links = pages(store, place.study, LOCAL)
    start = f"{LOCAL}/#/experiments/{experiment.experiment_id}/runs"
    for page, key in ((RUNS, "runs"), (SEEDS, "seeds"), (EQUAL_SIZES, "sizes")):
        assert links[page] == f"{start}?workflowType=machine_learning&viewStateShareKey={key}"
    assert SUMMARY not in links
    run_id = log_summary(store, place.study, [], {})
    summary = pages(store, place.study, LOCAL)[SUMMARY]  # its description is what to read
    assert summary == f"{start}/{run_id}?workflowType=machine_learning"
    assert state_of(place)["runsPinned"] == [run_id]
    write_finished(place.results, make_run(1))
    place.import_all()
    assert state_of(place)["runsPinned"] == [run_id]
    write_note(store, "nothing", "no such study")
    assert pages(store, "nothing", LOCAL) == {}


def test_the_address_is_the_servers_without_its_password() -> None:
    assert address("sqlite:////tmp/mlflow.db") == address("postgresql://me:hush@host/db") == LOCAL
    assert address("https://me:hush@host:8080/mlflow/?a=b") == "https://host:8080/mlflow"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    figure, table = tmp_path / "figure.svg", tmp_path / "transitions.csv"
    figure.write_text("<svg/>")
    table.write_text("depth,width\n2,16\n")
    return [figure, table]


NUMBERS = {"effect.heads_1_to_2": -0.02, "best_depth.at_100K": 4.0}


def test_figures_and_numbers_arrive_in_one_run(any_place: Place, files: list[Path]) -> None:
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    store = any_place.store()
    run_id = log_summary(store, any_place.study, files, NUMBERS)
    name = f"{any_place.study} summary"
    summary = active_runs(store, any_place.study)[name]
    assert (summary.info.run_id, summary.info.status) == (run_id, "FINISHED")
    assert (summary.data.metrics, summary.data.params) == (NUMBERS, {})
    assert log_summary(store, any_place.study, files, NUMBERS) == run_id

    assert log_summary(store, any_place.study, files, {}) != run_id
    files[0].write_text("<svg><path/></svg>")
    assert log_summary(store, any_place.study, files, NUMBERS) != run_id
    runs = active_runs(store, any_place.study)
    assert set(runs) == {run.key, name}
    assert [row["key"] for row in read_runs(store, any_place.study).to_pylist()] == [run.key]
    assert any_place.import_all().unchanged == 1


def test_artifacts_go_where_the_config_says(place: Place, tmp_path: Path, files: list[Path]) -> None:
    """Of experiments that are made then; a folder that colleagues share, or what MLflow writes to by a URI."""
    shared = tmp_path / "shared folder"
    store = open_store(place.uri, place.results, str(shared))
    run_id = log_summary(store, "mine (results-b)", files, {})
    assert (shared / "mine-results-b-" / run_id / "artifacts" / "figures" / "figure.svg").is_file()
    assert store.client.list_artifacts(run_id, "tables")[0].path == "tables/transitions.csv"
    assert not (place.results / "mlartifacts").exists()


def test_the_command(place: Place, files: list[Path], tmp_path: Path) -> None:
    fit = tmp_path / "fit.json"
    fit.write_text("{}")
    files[1].write_text("depth,deeper_depth,width,method\n1,2,137.5,bootstrap\n1,2,140,paper rule\n")
    arguments = ["--results", place.results, "--study", place.study, "--fit", fit, "--artifacts", *files]
    done = script("log_study", *arguments)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    summary = active_runs(place.store(), place.study)[f"{place.study} summary"]
    assert summary.info.run_id in done.stderr
    assert summary.data.metrics == {"transition_width.depth1_2": 137.5}
    assert script("log_study", *arguments, files[0].with_name("none.png")).returncode == 2


def listed(client: MlflowClient, run_id: str, folder: str = "") -> set[str]:
    return {item.path for item in client.list_artifacts(run_id, folder)}


def written_files(folder: Path) -> list[Path]:
    """Artifacts."""
    for name in ("drawn.svg", "sizes.html", "sizes.csv", "notes.json"):
        (folder / name).write_text("x")
    return sorted(folder.glob("*.*"))


def test_files_are_found_where_users_look_also_after_the_folder_was_moved(
    place: Place, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    run_id = log_summary(place.store(), place.study, written_files(files), {})
    moved = tmp_path / "elsewhere" / "results"
    moved.parent.mkdir()
    shutil.move(place.results, moved)
    (tmp_path / "served").symlink_to(moved / "mlartifacts")  # what tests/tracking/places.py serves
    with serve(default_uri(moved), tmp_path) as uri:
        client = MlflowClient(uri)
        assert listed(client, run_id) == {"figures", "tables", "notes.json"}
        assert listed(client, run_id, "figures") == {"figures/drawn.svg"}
        assert listed(client, run_id, "tables") == {"tables/sizes.csv", "tables/sizes.html"}
        copy = client.download_artifacts(run_id, "figures/drawn.svg", str(tmp_path))
        assert Path(copy).read_text() == "x"


PASSWORD = "hush%21-hush"


def write_config(folder: Path, uri: str | None) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"scale": "demo", "tracking": {"uri": uri}}))
    return path


@contextmanager
def browsing(*arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The command, as Make starts it."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "browse_runs.py"), *map(str, arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def shown(uri: str, study: str, run: Run) -> bool:
    """Whether a server answers with that run."""
    try:
        return run.key in active_runs(Place(Path(), uri, study).store(), study)
    except Exception as error:  # not up yet; what else it is shows when waiting ends
        print(error)
        return False


def told(process: subprocess.Popen[str], start: str = "Open ") -> str:
    """Where to look, among what it and the importer say."""
    assert process.stderr
    return next(line for line in process.stderr if line.startswith(start))


@pytest.mark.slow
def test_the_store_of_the_config_is_served(tmp_path: Path) -> None:
    """On the loopback alone; no results/mlflow.db beside it."""
    results, run, port = tmp_path / "results", make_run(), free_port()
    write_finished(results, run)
    ask(results, "depth_width", run)
    uri = f"sqlite:///{tmp_path}/elsewhere.db"
    config = write_config(tmp_path, uri)
    with browsing("--results", results, "--config", config, "--port", port) as process:
        link = f"http://127.0.0.1:{port}/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=runs"
        assert told(process, "What the server says: ").startswith(
            f"What the server says: {results}/logs/mlflow.log."
        )
        assert told(process) == f"Open {link}\n"
        wait_for(lambda: shown(f"http://127.0.0.1:{port}", "depth_width", run))
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        opened = [c for each in family for c in each.net_connections() if c.status == psutil.CONN_LISTEN]
        assert {c.laddr.ip for c in opened} == {"127.0.0.1"}
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
        assert process.returncode == 0
        assert not psutil.wait_procs(family[1:], timeout=300)[1]
    assert not (results / "mlflow.db").exists()
    assert (tmp_path / "elsewhere.db").exists()


@pytest.mark.slow
def test_of_a_tracking_server_the_address_is_said(tmp_path: Path, server: str) -> None:
    """Of the environment, as the config names none. Without its password; no second server or store is begun; the
    records are followed into it.
    """
    results, run = tmp_path / "results", make_run()
    write_finished(results, run)
    ask(results, "browsed", run)
    config = write_config(tmp_path, None)
    secret = server.replace("://", f"://me:{PASSWORD}@")
    with browsing("--results", results, "--config", config, MLFLOW_TRACKING_URI=secret) as process:
        assert told(process).startswith(f"Open {server}/#/experiments/")
        wait_for(lambda: shown(server, "browsed", run))
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        assert not [c for each in family for c in each.net_connections() if c.status == psutil.CONN_LISTEN]
        assert not [part for each in family for part in each.cmdline() if "hush" in part]
        process.send_signal(signal.SIGTERM)
        assert "hush" not in process.communicate(timeout=300)[1]
    assert MlflowClient(server).get_experiment_by_name("browsed") is not None
    assert not (results / "mlflow.db").exists()


@pytest.mark.parametrize(
    ("content", "port", "sentence"),
    [
        ("tracking: {url: http://example.org}\nscale: demo\n", 5999, "tracking.url"),
        ("scale: [demo\n", 5999, "line 2 is not YAML"),
        ("scale: demo\n", 0, "--port is 0; a port is a number from 1 to 65535: make ui PORT=5001\n"),
        ("scale: demo\n", 99999, "--port is 99999; a port is a number from 1 to 65535: make ui PORT=5001\n"),
    ],
)
def test_a_wrong_config_or_port_is_a_sentence(tmp_path: Path, content: str, port: int, sentence: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    options = ("--results", tmp_path, "--config", tmp_path / "config.yaml", "--port", port)
    done = script("browse_runs", *options)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_make_gives_it_the_config_of_the_checkout() -> None:
    line = ["make", "--dry-run", "ui", "PORT=5999"]
    said = subprocess.run(line, cwd=SCRIPTS.parent, capture_output=True, text=True, check=True).stdout
    assert "scripts/browse_runs.py --results results --config config.yaml --port 5999" in said


def test_a_port_in_use_is_a_sentence(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = script("browse_runs", "--results", place.results, "--uri", place.uri, "--port", port)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"Port {port} can't be used (Address already in use), by another UI perhaps; take another"
    )

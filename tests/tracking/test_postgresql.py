"""PostgreSQL under the server: it crashes; importers of two machines write into it at once, by mistake."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from disturbed import FULL_LENGTH, OUTAGE, WAITING, importing, undisturbed, with_runs
from made_records import ask, finish, make_run, other_recipe, write_finished, write_live
from places import SCRIPTS, Place, serve, silent, wait_for
from postgres import Cluster
from racing import race
from stored import active_runs, content

from shapelaw.tracking.follow import follow
from shapelaw.tracking.store import Store, make_experiment, open_store
from shapelaw.tracking.views import write_note


@pytest.fixture(scope="module")
def database(postgres: Cluster) -> str:
    """The URI of a database."""
    return postgres.new_database()


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tracking server over it."""
    with serve(database, tmp_path_factory.mktemp("served")) as uri:
        yield uri


@pytest.fixture
def machines(tmp_path: Path, study_names: Iterator[str], server: str) -> list[Place]:
    """Two results folders with the same records and a lock each, as where a lock does not reach other machines."""
    (tmp_path / "a" / "runs").mkdir(parents=True)
    (tmp_path / "a" / "checkpoints").mkdir()
    (tmp_path / "b").mkdir()
    for name in ("runs", "checkpoints"):
        (tmp_path / "b" / name).symlink_to(tmp_path / "a" / name)
    study = next(study_names)
    return [Place(tmp_path / name, server, study) for name in ("a", "b")]


@pytest.mark.slow
@pytest.mark.parametrize("through", ["server", "directly"])
def test_a_postgresql_that_crashes_and_recovers(
    through: str, machines: list[Place], database: str, postgres: Cluster, tmp_path: Path, empty_store: Path
) -> None:
    place = machines[0] if through == "server" else Place(machines[0].results, database, machines[0].study)
    with importing(with_runs(place), hold_after=1) as work:
        with work.held():
            postgres.stop()
        work.wait_for_word(WAITING)
        time.sleep(OUTAGE if FULL_LENGTH else 0)
        postgres.start()
    assert postgres.password not in "".join(work.said)
    assert content(place.store(), place.study) == undisturbed(place, tmp_path / "alone", empty_store)
    assert place.import_all().written == []


@pytest.mark.slow
def test_the_same_runs_at_the_same_moment(
    machines: list[Place], study_names: Iterator[str], tmp_path: Path, empty_store: Path
) -> None:
    figure = tmp_path / "figure.svg"
    figure.write_text("<svg/>")
    studies, sentences = list[str](), list[str]()
    with_runs(machines[0], 3)
    for _ in range(20):  # until they meet
        new = [next(study_names) for _ in range(4)]
        for said in race([place.results for place in machines], machines[0].uri, new, [figure]):
            sentences += said
        studies += new
        if met := any("is also imported by" in sentence for sentence in sentences):
            break
    assert met, "nothing was tested"
    store = machines[0].store()
    for number, study in enumerate(studies):
        runs = content(store, study)
        runs.pop(f"{study} summary")
        assert runs == undisturbed(
            Place(machines[0].results, machines[0].uri, study), tmp_path / f"alone{number}", empty_store
        )
    assert not [sentence for sentence in sentences if "Waiting" in sentence]


@pytest.mark.slow
def test_two_importers_describe_the_same_study_at_the_same_moment(
    machines: list[Place], study_names: Iterator[str]
) -> None:
    stores, studies = [place.store() for place in machines], [next(study_names) for _ in range(8)]
    for study in studies:
        make_experiment(stores[0], study)
    together = threading.Barrier(len(stores))

    def describe(store: Store) -> None:
        for study in studies:
            together.wait(60)
            write_note(store, study, "the same note")

    with ThreadPoolExecutor() as pool:
        list(pool.map(describe, stores))


@pytest.mark.slow
def test_many_runs_by_two_commands(machines: list[Place], tmp_path: Path) -> None:
    place, number = machines[0], 1000 if FULL_LENGTH else 40
    with_runs(place, number)
    command = [sys.executable, str(SCRIPTS / "import_runs.py"), "--uri", place.uri, "--study", place.study]
    both = [
        subprocess.Popen(
            [*command, "--results", each.results, "--out", each.results / "runs.parquet"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in machines
    ]
    errors = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    print(*errors)
    runs = active_runs(place.store(), place.study)
    assert len(runs) == number
    tables = [pq.read_table(each.results / "runs.parquet") for each in machines]
    assert tables[0].num_rows == number
    assert tables[0].drop_columns("run_id").equals(tables[1].drop_columns("run_id"))
    assert place.import_all().unchanged == number


@pytest.mark.slow
def test_one_is_killed_and_the_other_completes(
    machines: list[Place], tmp_path: Path, empty_store: Path
) -> None:
    place, other = machines
    for seed in range(8):
        write_finished(place.results, make_run(seed))
    command = [sys.executable, str(SCRIPTS / "import_runs.py"), "--uri", place.uri, "--study", place.study]
    killed = subprocess.Popen([*command, "--results", place.results, "--out", tmp_path / "runs.parquet"])
    store = place.store()
    wait_for(lambda: store.client.get_experiment_by_name(place.study) is not None)
    wait_for(lambda: bool(active_runs(store, place.study)))
    killed.kill()
    killed.wait()
    other.import_all()
    assert content(store, place.study) == undisturbed(place, tmp_path / "alone", empty_store)
    assert [each.import_all().written for each in machines] == [[], []]


@contextmanager
def following(place: Place) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=follow, args=(place.results, place.uri, 0.02, 600, silent, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(600)
        assert not thread.is_alive()


def test_a_growing_run_followed_twice_has_each_point_once(
    machines: list[Place], tmp_path: Path, empty_store: Path
) -> None:
    place, run = machines[0], make_run()
    store = place.store()

    def steps() -> list[int]:
        experiment = store.client.get_experiment_by_name(place.study)
        found = store.client.search_runs([experiment.experiment_id]) if experiment else []
        histories = [store.client.get_metric_history(each.info.run_id, "loss/train") for each in found]
        return [point.step for points in histories for point in points]

    ask(place.results, place.study, run)
    with following(machines[0]), following(machines[1]):
        for last in (10, 20, 30, 40, 50):
            write_live(place.results, run, last=last)
            wait_for(lambda last=last: last in steps())  # type: ignore[misc]
        finish(place.results, run)
        wait_for(lambda: 60 in steps())
    assert content(store, place.study) == undisturbed(place, tmp_path / "alone", empty_store)


def test_an_importer_leaves_the_live_runs_of_another_alone(machines: list[Place], tmp_path: Path) -> None:
    """Its own folder says nothing of them, but it is not the folder that they come from."""
    place, run = machines[0], make_run()
    write_live(place.results, run)
    place.import_all()
    elsewhere = Place(tmp_path / "elsewhere", place.uri, place.study)
    write_finished(elsewhere.results, make_run(1))
    elsewhere.import_all()
    assert active_runs(place.store(), place.study)[run.key].info.status == "RUNNING"


def test_two_that_disagree_leave_each_others_runs_alone(
    machines: list[Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the digests of two different runs begin alike."""
    monkeypatch.setattr("shapelaw.specs.runs.key_of", lambda label, _: f"{label}-0a1b2c3d")
    place, run = machines[0], make_run()
    elsewhere = Place(tmp_path / "elsewhere", place.uri, place.study)
    write_finished(place.results, run)
    write_finished(elsewhere.results, other_recipe(run))
    with ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(Place.import_all, (place, elsewhere)))
    told = [problem for outcome in outcomes for problem in outcome.problems.values()]
    assert told
    assert all("has another run with the name" in problem for problem in told)
    experiment = place.store().client.get_experiment_by_name(place.study)
    found = place.store().client.search_runs([experiment.experiment_id])
    digests = {each.data.tags["spec_digest"] for each in found}
    assert digests <= {run.digest, other_recipe(run).digest}
    assert (
        len(found) == len(digests) == len(told)
    )  # who comes second writes nothing; at once, both write and both tell


@pytest.mark.slow
def test_two_create_the_tables_at_once(postgres: Cluster, tmp_path: Path) -> None:
    """MLflow's own lock is a file in the temporary folder, so two machines are two such folders."""
    uri = postgres.new_database()
    command = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--once", "--notice", "600"]
    both = []
    for name in ("a", "b"):
        results = tmp_path / name
        (results / "tmp").mkdir(parents=True)
        environment = {**os.environ, "TMPDIR": str(results / "tmp"), "MLFLOW_TRACKING_URI": uri}
        arguments = [*command, "--results", str(results)]
        both.append(subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate()[1] for process in both]
    assert errors == ["", ""]
    assert [process.returncode for process in both] == [0, 0]
    store = open_store(uri, tmp_path)
    assert [each.name for each in store.client.search_experiments()] == ["Default"]

"""An importer that dies at any point leaves a store that the next import makes whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from made_records import finish, make_rows, make_run, write_finished, write_live
from places import Place
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from stored import active_runs, content

RUN = make_run()


class Killed(BaseException):
    """The process dies here."""


@contextmanager
def killed_at_commit(number: int) -> Iterator[None]:
    """Die when the database is about to make a write lasting for the `number`-th time from here, from 0."""
    writes: dict[Connection, bool] = {}
    seen = 0

    def note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            writes[connection] = True

    def die(connection: Connection) -> None:
        nonlocal seen
        if writes.pop(connection, False):
            seen += 1
            if seen > number:
                raise Killed

    event.listen(Engine, "before_cursor_execute", note)
    event.listen(Engine, "commit", die)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        event.remove(Engine, "commit", die)


def nothing(results: Path) -> None:
    """No record yet."""


def live(results: Path) -> None:
    write_live(results, RUN, last=20)


def grown(results: Path) -> None:
    write_live(results, RUN, last=50)


def died(results: Path) -> None:
    write_live(results, RUN, "FAILED", last=50, message="The disk is full.")


def finished(results: Path) -> None:
    if (results / "checkpoints").exists():
        finish(results, RUN)
    else:
        write_finished(results, RUN)


def retrained(results: Path) -> None:
    write_finished(results, RUN, make_rows(RUN, shift=0.1))


@pytest.mark.parametrize(
    ("before", "after", "at_least"),
    [
        (nothing, finished, 7),
        (nothing, live, 3),
        (live, grown, 2),
        (live, finished, 4),
        (grown, died, 3),
        (finished, retrained, 7),
    ],
)
def test_whenever_it_dies_the_next_import_completes_it(
    place: Place, before: Callable[[Path], None], after: Callable[[Path], None], at_least: int
) -> None:
    before(place.results)
    place.import_all()
    saved = (place.results / "mlflow.db").read_bytes()
    after(place.results)
    place.import_all()
    expected = content(place.store(), place.study)
    deaths = 0
    while dies(place, saved, deaths):
        place.import_all()
        assert content(place.store(), place.study) == expected, f"died before write {deaths}"
        assert place.import_all().written == []
        deaths += 1
    assert deaths >= at_least


def test_final_numbers_of_a_half_finished_run_do_not_survive_a_new_training(place: Place) -> None:
    live(place.results)
    place.import_all()
    saved = (place.results / "mlflow.db").read_bytes()
    finished(place.results)
    deaths = 0
    while dies(place, saved, deaths):
        write_finished(place.results, RUN, bits_per_byte=1.25)
        place.import_all()
        run = active_runs(place.store(), place.study)[RUN.key]
        points = place.store().client.get_metric_history(run.info.run_id, "result/bits_per_byte")
        assert [point.value for point in points] == [1.25], f"died before write {deaths}"
        write_finished(place.results, RUN)
        deaths += 1
    assert deaths >= 4


def dies(place: Place, saved: bytes, number: int) -> bool:
    """Go back to the saved store and import; whether that died, which it does before its `number`-th write."""
    with (place.results / "mlflow.db").open("r+b") as file:  # the same file, as the database is kept open
        file.truncate(0)
        file.write(saved)
    try:
        with killed_at_commit(number):
            place.import_all()
    except Killed:
        return True
    return False

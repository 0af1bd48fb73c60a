"""An import that goes on while the test ill-treats the tracker, and what it must have left in the end."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from made_records import make_run, write_finished
from places import Place, wait_for
from stored import content

from shapelaw.tracking.importer import Outcome, import_study
from shapelaw.tracking.store import default_uri
from shapelaw.tracking.waiting import ImportProgress

FULL_LENGTH = bool(os.environ.get("FULL_LENGTH"))
NOTICE = 10.0 if FULL_LENGTH else 1.0  # seconds until a slow answer is said
OUTAGE = 60.0 if FULL_LENGTH else 1.0  # seconds
DELAY = 30.0 if FULL_LENGTH else 3.0  # seconds an answer
RUNS = 2 if FULL_LENGTH else 3
SLOW, WAITING, BACK = "The tracker is slow: ", "Waiting up to ", "The tracker is back after "


def with_runs(place: Place, number: int = RUNS) -> Place:
    """The place, with so many finished records in it."""
    for seed in range(number):
        write_finished(place.results, make_run(seed))
    return place


class HeldProgress(ImportProgress):
    """Holds the import after so many runs until it may go on: a fault then comes between two runs, not too late."""

    def __init__(self, say: Callable[[str], None], hold_after: int | None) -> None:
        # a reason is said again after some time, which a slow machine may need
        super().__init__(say, NOTICE, repeat=3600.0)
        self.hold_after, self.held, self.go_on = hold_after, threading.Event(), threading.Event()

    def advance(self) -> None:
        super().advance()
        if self.done == self.hold_after:
            self.at("")
            self.held.set()
            self.go_on.wait()


@dataclass
class Import:
    """An import that goes on beside the test."""

    place: Place
    progress: HeldProgress
    said: list[str] = field(default_factory=list)
    outcome: Outcome | None = None

    def sentences(self, start: str) -> list[str]:
        """What was said with that beginning."""
        return [each for each in self.said if each.startswith(start)]

    def wait_for_word(self, start: str) -> str:
        """The first sentence with that beginning, when it is said."""
        wait_for(lambda: bool(self.sentences(start)))
        return self.sentences(start)[0]

    @contextmanager
    def held(self) -> Iterator[None]:
        """The import stands still after the run that `importing` was told."""
        wait_for(self.progress.held.is_set)
        yield
        self.progress.go_on.set()


@contextmanager
def importing(place: Place, hold_after: int | None = None) -> Iterator[Import]:
    """Import in a thread; at the end of the block wait until it is done.

    Args:
        hold_after: after so many runs it waits for `Import.held`.
    """
    said: list[str] = []
    work = Import(place, HeldProgress(said.append, hold_after), said)

    def run() -> None:
        work.outcome = import_study(
            place.results, place.study, place.uri, 600, said.append, progress=work.progress
        )[1]

    thread = threading.Thread(target=run, daemon=True)  # a test that fails does not wait for it
    thread.start()
    yield work
    thread.join(900)
    assert work.outcome is not None, said
    for sentence in said:
        print(sentence)  # for the table of faults: pytest -rP


def undisturbed(place: Place, folder: Path, empty_store: Path) -> dict[str, Any]:
    """What one importer leaves in a store of its own, where nothing happens."""
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    for name in ("runs", "checkpoints"):
        (folder / name).symlink_to((place.results / name).resolve())
    alone = Place(folder, default_uri(folder), place.study)
    alone.import_all()
    return content(alone.store(), place.study)

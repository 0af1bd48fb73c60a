"""The tracker ill-treated while an import goes on: a proxy, and what must be left in the end."""

import http.client
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from made_records import make_run, write_finished
from places import Place, QuietHandler, listening, wait_for
from stored import content

from shapelaw.tracking.command import ImportProgress, default_uri
from shapelaw.tracking.importer import Outcome

HOP = {"transfer-encoding", "connection", "content-length", "host"}  # of one connection, not of the message


@dataclass
class Weather:
    """What a proxy does to the requests that pass it; changed while it runs.

    Attributes:
        fault: for the number of a request, from 0: "" (none), "refuse" (500, not passed on), "lose" (passed on,
            the answer is a 500), "cut" (passed on, the connection breaks), "stop" (passed on, answered seconds later).
        requests: how many came in.
    """

    uri: str = ""
    fault: Callable[[int], str] = lambda _: ""
    requests: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def proxy(target: str) -> Iterator[Weather]:
    """A real HTTP proxy before a server."""
    weather, place = Weather(), urlsplit(target)

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            with weather.lock:
                fault = weather.fault(weather.requests)
                weather.requests += 1
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = [("Content-Type", "text/html")]
            status, answer = 500, b"<html>Internal Server Error</html>"
            if fault != "refuse":
                upstream = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
                sent = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
                upstream.request(self.command, self.path, body, sent)
                got = upstream.getresponse()
                content = got.read()
                upstream.close()
                if fault in ("", "stop"):
                    status, answer = got.status, content
                    headers = [(k, v) for k, v in got.getheaders() if k.lower() not in HOP]
            time.sleep(5 if fault == "stop" else 0)
            if fault == "cut":
                self.close_connection = True
                return
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may have given up waiting
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

    with listening(Handler) as weather.uri:
        yield weather


RUNS = 3
WAITING, BACK = "Waiting up to ", "The tracker is back."


def with_runs(place: Place) -> Place:
    """The place, with so many finished records in it."""
    for seed in range(RUNS):
        write_finished(place.results, make_run(seed))
    return place


class HeldProgress(ImportProgress):
    """Holds the import after so many runs until it may go on: a fault then comes between two runs, not too late."""

    def __init__(self, say: Callable[[str], None], hold_after: int | None) -> None:
        super().__init__(say)
        self.hold_after, self.held, self.go_on = hold_after, threading.Event(), threading.Event()

    def advance(self, report: str) -> None:
        super().advance(report)
        if self.done == self.hold_after:
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
        importer = place.importer(patience=600, progress=work.progress)
        work.outcome = importer.import_study(place.study)[1]

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

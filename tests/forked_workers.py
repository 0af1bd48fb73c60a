"""Tests side by side in forks of one process: what they import, and the tests themselves, are read once.

    python -m pytest --workers 4

A worker takes a file at a time and runs its tests in order; fixtures of the session live as long as the worker. With
pytest-xdist every worker starts anew: 15 CPU seconds each for this project's tests, 22 in a clean clone.
"""

import gc
import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

import pytest
from _pytest.runner import CallInfo
from made_once import NUMBER

Files = deque[list[int]]  # of the session's items


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, default=1, help="processes that run tests side by side, forks of one"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Take the place of pytest's loop, where several workers are asked for and there is something to run."""
    options = session.config.option
    if options.workers < 2 or options.collectonly or session.testsfailed or not session.items:
        return None
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    terminal.showfspath = False  # files end in any order
    Workers(session, options.workers).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


@dataclass
class Worker:
    """A process, seen from the one that it was forked from.

    Attributes:
        running: the test that it is at, or the last one.
        left: the tests of its file that it has not begun.
    """

    process: int
    running: int
    left: list[int]


class Workers:
    """Hands out files, and passes on what is said of their tests."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self.session, self.hook = session, session.config.hook
        numbered = groupby(enumerate(session.items), key=lambda numbered: numbered[1].path)
        self.files: Files = deque([number for number, _ in file] for _, file in numbered)
        # before there are several: one folder for all
        self.folder: Path = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self.workers: dict[Connection, Worker] = {}
        self.begun, self.count = 0, min(count, len(self.files))

    def run(self) -> None:
        """Until every test was run, or one too many failed."""
        gc.collect()
        gc.freeze()  # a collection in a worker looks at what is its own
        for _ in range(self.count):
            self.begin()
        try:
            while self.workers and not (self.session.shouldfail or self.session.shouldstop):
                for pipe in wait(list(self.workers)):
                    assert isinstance(pipe, Connection)
                    self.hear(pipe)
        finally:
            for pipe, worker in self.workers.items():  # to a worker a closed pipe means: no further test
                pipe.close()
                os.waitpid(worker.process, 0)

    def begin(self) -> None:
        """Fork one more worker."""
        ours, theirs = Pipe()
        self.begun += 1
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                for pipe in (ours, *self.workers):
                    pipe.close()
                work(self.session, theirs, self.begun, self.folder)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        self.workers[ours] = Worker(process, -1, [])

    def hear(self, pipe: Connection) -> None:
        """Answer what a worker says next."""
        worker = self.workers[pipe]
        try:
            kind, content = pipe.recv()
        except (EOFError, ConnectionResetError):
            self.end(pipe)
            return
        if kind == "next":
            worker.left = self.files.popleft() if self.files else []
            pipe.send(list(worker.left))
        elif kind == "begins":
            worker.running = content
            worker.left.remove(content)
        elif kind == "report":
            report = self.hook.pytest_report_from_serializable(config=self.session.config, data=content)
            self.hook.pytest_runtest_logreport(report=report)
        elif kind == "finished":
            self.hook.pytest_runtest_logfinish(nodeid=content[0], location=content[1])
        elif kind == "warning":
            self.hook.pytest_warning_recorded.call_historic(kwargs=content)

    def end(self, pipe: Connection) -> None:
        """A worker is gone: by itself with code 0, or its test took it along; then another one goes on."""
        worker = self.workers.pop(pipe)
        pipe.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
        if code == 0:
            return
        item = self.session.items[worker.running]
        said = f"The process of this test ended with exit code {code}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        self.hook.pytest_runtest_logreport(report=report)
        if worker.left:
            self.files.appendleft(worker.left)
        if self.files:
            self.begin()


def work(session: pytest.Session, pipe: Connection, number: int, folder: Path) -> None:
    """Run files of tests until there are no more, then end the session's fixtures."""
    os.environ[NUMBER] = str(number)
    own = folder / f"worker-{number}"
    own.mkdir()
    session.config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]
    plugins = session.config.pluginmanager
    for name in ("terminalreporter", "junitxml", "lfplugin"):
        plugins.unregister(name=name)
    if capturing := plugins.getplugin("capturemanager"):  # into files of its own
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
    plugins.register(Told(session, pipe))
    item = session.items[0]
    try:
        for index in _handed_out(pipe):
            item = session.items[index]
            pipe.send(("begins", index))
            # as if a test of another file came next: fixtures of this one's module and class end where they would
            following = session.items[index + 1] if index + 1 < len(session.items) else None
            same = following is not None and following.path == item.path
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following if same else session)
            if session.shouldfail or session.shouldstop:
                break
    except OSError:  # nobody listens any more
        return
    finally:
        call = CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), when="teardown")
        report = pytest.TestReport.from_item_and_call(item, call)
        if report.failed:
            session.config.hook.pytest_runtest_logreport(report=report)


def _handed_out(pipe: Connection) -> Iterator[int]:
    """The numbers of tests to run."""
    while True:
        pipe.send(("next", None))
        try:
            tests = pipe.recv()
        except EOFError:
            return
        if not tests:
            return
        yield from tests


class Told:
    """A plugin of a worker: tells where it is and what came of it."""

    def __init__(self, session: pytest.Session, pipe: Connection) -> None:
        self.config, self.pipe = session.config, pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.pipe.send(("finished", (nodeid, location)))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Its category can be a class that only this worker has, so its name goes; the collection's are known."""
        if when != "runtest":
            return
        said = f"{warning_message.category.__name__}: {warning_message.message}"
        message = warnings.WarningMessage(said, UserWarning, warning_message.filename, warning_message.lineno)
        content = {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
        self.pipe.send(("warning", content))

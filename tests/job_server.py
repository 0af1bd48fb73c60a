"""A `python` for commands and the workflow's jobs without its start: a process imports PyTorch, MLflow, ... and forks.

Those imports are one to two CPU seconds of a command, most of what a small job takes; another such process does it for
Snakemake, whose import takes three times as long as a dry run of a small project. They import nothing of the project:
every command takes the code of its own folder, as it does with the `python` of every day.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

# what our commands import of others, uvicorn before MLflow's server, which asks for it
COMMANDS = """
    torch mlflow mlflow.tracking uvicorn mlflow.cli mlflow.server.fastapi_app pandas pyarrow.parquet scipy.stats
    scipy.optimize lmfit matplotlib.figure matplotlib.backends.backend_agg matplotlib.backends.backend_svg tokenizers
    jinja2 tabulate pydantic yaml flint
"""
# what the tests import beside that, which each worker of a session would
TESTS = """
    pytest xdist.remote hypothesis selenium.webdriver.support.wait markdown_it jsonschema transformers.models.auto
    transformers.models.bert.configuration_bert snakemake.scheduling.job_scheduler snakemake_executor_plugin_slurm
"""
# what a dry run of ours imports
SNAKEMAKE = "snakemake.cli docutils.core dpath jinja2 pydantic requests smart_open yte"
# what is started in place of Python: it lends its files to a fork, passes on signals, and ends as the fork does
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
if len(sys.argv) < 2 or not sys.argv[1].endswith(".py"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(call).to_bytes(8, "big")], [0, 1, 2])
server.sendall(call)
signal.signal(signal.SIGUSR2, lambda *_: server.sendall(bytes([signal.SIGKILL])))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
said = server.recv(16)
if not said:
    sys.exit("The process that jobs are forks of is gone.")
code = int(said)
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


SHARED = "WARM_PYTHON"  # in the environment of a session's workers: the executable of that session


def warm_python(more: str = "") -> Path:
    """An executable `python`; the process that it asks ends with this process, or with the session's first.

    Args:
        more: packages that it has imported beside those of commands, where a session's first asks for it.
    """
    shared = os.environ.get(SHARED)
    return Path(shared) if shared else _python_with(COMMANDS + more)


def snakemake_python() -> Path:
    """Another, which has imported what a dry run does."""
    return _python_with(SNAKEMAKE)


def run_snakemake(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], python: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `python -m snakemake` with these arguments does in a folder, and what it says.

    Args:
        python: starts the jobs (this Python).
    """
    command = [snakemake_python(), __file__, "snakemake", str(python or sys.executable), *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def _python_with(packages: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="shapelaw-jobs-"))
    address = str(folder / "socket")
    listener = socket.socket(socket.AF_UNIX)  # before anyone asks
    listener.bind(address)
    listener.listen(128)
    command = [sys.executable, __file__, "serve", str(listener.fileno()), str(folder), *packages.split()]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    atexit.register(_end, server)
    listener.close()
    python = folder / "python"
    python.write_text(CLIENT.format(python=sys.executable, address=address))
    python.chmod(0o755)
    return python


def _end(server: subprocess.Popen[bytes]) -> None:
    """Wait for it: the CPU time of its jobs is then one of this process's children's."""
    server.communicate()


class WarmProcess(subprocess.Popen[str]):
    """A command of `warm_python` whose process is gone when it was killed."""

    def send_signal(self, sig: int) -> None:
        super().send_signal(signal.SIGUSR2 if sig == signal.SIGKILL else sig)


class Jobs:
    """The jobs that run, by their processes, and whom to tell how they end."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener, self.clients = listener, dict[int, socket.socket]()
        self.selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Until the last process that may ask is gone."""
        woken, waking = socket.socketpair()
        for end in (woken, waking):
            end.setblocking(False)
        signal.set_wakeup_fd(waking.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for source in (self.listener, woken, sys.stdin):
            self.selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is woken:
                    woken.recv(4096)
                    self.reap()
                elif key.fileobj is self.listener:
                    self.begin(self.listener.accept()[0])
                elif isinstance(key.data, int):
                    self.pass_on(key.data)

    def begin(self, client: socket.socket) -> None:
        """Fork a job, which runs as the client would have."""
        head, files, *_ = socket.recv_fds(client, 8, 3)
        left, call = int.from_bytes(head, "big"), b""
        while len(call) < left:
            call += client.recv(left - len(call))
        process = os.fork()
        if process == 0:
            run(json.loads(call), files)
        for file in files:
            os.close(file)
        self.clients[process] = client
        self.selector.register(client, selectors.EVENT_READ, process)

    def pass_on(self, process: int) -> None:
        """A signal to a job; a client that is gone was killed."""
        number = self.clients[process].recv(1)
        if not number:
            self.selector.unregister(self.clients[process])
        os.kill(process, number[0] if number else signal.SIGKILL)

    def reap(self) -> None:
        """Tell the clients of jobs that ended."""
        for process in list(self.clients):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                client = self.clients.pop(process)
                if client in self.selector.get_map():
                    self.selector.unregister(client)
                    client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                client.close()


def run(call: tuple[list[str], str, dict[str, str]], files: list[int]) -> None:
    """Be that job to its end."""
    arguments, folder, environment = call
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, file in enumerate(files):
        os.dup2(file, descriptor)
        os.close(file)
    sys.argv, tempfile.tempdir = arguments, None  # which an import may have asked for
    script = str(Path(arguments[0]).resolve().parent)
    sys.path[:0] = [script, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    end_as(lambda: runpy.run_path(arguments[0], run_name="__main__"))


def end_as(call: Callable[[], object]) -> NoReturn:
    """End a fork as a process that does this ends, but for taking apart all that it was a fork with."""
    code = 1
    try:
        call()
        code = 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        else:
            code = ended.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = 120  # as Python's
        os._exit(code)


def serve(listener: socket.socket, packages: list[str]) -> None:
    """Import packages, and fork until the last process that may ask is gone."""
    sys.path.pop(0)  # this folder
    # as shapelaw.tracking, which comes later
    os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's server has one about a package of its own
        for package in packages:
            importlib.import_module(package)
    gc.freeze()  # a fork need not look through all that again for what is no longer used
    Jobs(listener).serve()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", number, folder, *packages]:
            try:
                serve(socket.socket(fileno=int(number)), packages)
            finally:
                shutil.rmtree(folder)
        case ["snakemake", python, *arguments]:
            from snakemake.cli import main

            sys.path[0] = os.getcwd()  # in place of this folder
            sys.executable, sys.argv = python, ["snakemake", *arguments]
            main()
        case ["worker", *_, line]:  # of a test session: execnet's one line, which waits for the rest of it
            exec(line)

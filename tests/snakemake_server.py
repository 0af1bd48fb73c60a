"""Snakemake's command without its start: a process imports it once and forks for every call.

Importing it takes a second of CPU time, three times as long as a dry run of a small project. The process imports
nothing of the project, so that each call takes the code of its own folder, as the command does.
"""

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from job_server import end_as

# what a dry run of ours imports of others, beyond the command line
PACKAGES = ("docutils.core", "dpath", "jinja2", "pydantic", "requests", "smart_open", "yte")


def run_snakemake(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], python: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `python -m snakemake` with these arguments does in a folder, and what it says.

    Args:
        python: starts the jobs (this Python).
    """
    server = _server()
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as said:
        paths = [Path(said) / name for name in ("stdout", "stderr")]
        call = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        call |= {"said": [str(path) for path in paths], "python": str(python or sys.executable)}
        server.stdin.write(json.dumps(call) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        output, errors = (path.read_text(encoding="utf-8") for path in paths)
    return subprocess.CompletedProcess(["snakemake", *arguments], code, output, errors)


@cache
def _server() -> subprocess.Popen[str]:
    """Ends with this process, which its standard input comes from."""
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # its CPU time is then one of this process's children's
    return server


def serve() -> None:
    """Answer every call, a line of JSON, with the exit code of a fork."""
    from snakemake.cli import get_argument_parser, main

    get_argument_parser()  # imports the plugins, which a fork then has
    for package in PACKAGES:
        importlib.import_module(package)
    gc.freeze()  # a fork need not look through all that again for what is no longer used

    sys.path.pop(0)  # this folder
    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(call["folder"])
            os.environ.clear()
            os.environ.update(call["environment"])
            for descriptor, path in enumerate(call["said"], start=1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.path.insert(0, call["folder"])
            sys.executable, sys.argv = call["python"], ["snakemake", *call["arguments"]]
            end_as(main)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()

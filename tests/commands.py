"""The project's commands in this process, where what they import is imported already."""

import io
import json
import runpy
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from matplotlib.figure import Figure
from small import SCRIPTS, command_path


def not_drawn(figure: Figure, path: Path) -> list[Path]:
    """Empty files in place of a figure's."""
    files = [path.with_name(f"{path.name}.{ending}") for ending in ("svg", "png")]
    for file in files:
        file.touch()
    return files


def script(name: str, *arguments: object, cwd: Path = SCRIPTS.parent) -> subprocess.CompletedProcess[str]:
    """A command of the project: as a process of its own would, it reads its arguments, prints, and ends with a code.

    Figures of its results are made and not drawn, which would take half of the time of an analysis; tests/workflow and
    the commands of the pages (tests/docs/test_commands.py) draw them.
    """
    path = str(command_path(name))
    command = [path, *map(str, arguments)]
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        chdir(cwd),
        patch.object(sys, "argv", command),
        patch("shapelaw.report.write.save_figure", not_drawn),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            code = int(ended.code or 0)  # our commands end with numbers
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def output_of(name: str, *arguments: object, cwd: Path = SCRIPTS.parent) -> str:
    """What a script that has nothing to complain of prints."""
    done = script(name, *arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def json_of(name: str, *arguments: object, cwd: Path = SCRIPTS.parent) -> Any:
    """The value that a script prints with --json."""
    return json.loads(output_of(name, *arguments, "--json", cwd=cwd))


def sentence_of(name: str, *arguments: object, cwd: Path = SCRIPTS.parent) -> str:
    """The one sentence with which a script refuses wrong input, before it prints anything."""
    done = script(name, *arguments, cwd=cwd)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    return done.stderr

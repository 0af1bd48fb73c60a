"""The project's commands in this process, where what they import is imported already."""

import io
import runpy
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch


def run_here(script: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As a process of its own would, the script reads its arguments, prints, and ends with a code."""
    command = [str(script), *map(str, arguments)]
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with chdir(cwd), patch.object(sys, "argv", command), redirect_stdout(output), redirect_stderr(errors):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            code = int(ended.code or 0)  # our commands end with numbers
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())

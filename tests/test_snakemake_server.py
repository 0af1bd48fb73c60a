"""The server of the workflow's tests is to Snakemake what a start of it is."""

import subprocess
from pathlib import Path

import pytest
from small import PYTHON
from snakemake_server import run_snakemake

SNAKEFILE = """
import os
import sys

sys.path.insert(0, "scripts")
from shapelaw.errors import PLACE

shell.prefix(f"echo {PLACE}; echo {os.environ['SEASON']} >&2; ")
if PLACE == "nowhere":
    sys.exit("A sentence.")


rule all:
    output:
        "made",
    shell:
        "touch made"
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["here", "nowhere"])
def test_a_call_takes_the_code_and_the_environment_of_its_folder(tmp_path: Path, place: str) -> None:
    """Its code, output and exit code are those of the command; nothing is left of the calls before."""
    found = []
    for name in ("command", "server"):
        package = tmp_path / name / "scripts" / "shapelaw"
        package.mkdir(parents=True)
        (package / "errors.py").write_text(f"PLACE = {place!r}\n")
        (tmp_path / name / "Snakefile").write_text(SNAKEFILE)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SEASON": f"winter {place}"}
    arguments = ("--cores", "1", "--quiet", "all")
    command = [PYTHON, "-m", "snakemake", *arguments]
    started = subprocess.run(
        command, cwd=tmp_path / "command", env=environment, capture_output=True, text=True, check=False
    )
    served = run_snakemake(arguments, tmp_path / "server", environment)
    for name, done in (("command", started), ("server", served)):
        made = (tmp_path / name / "made").exists()
        found.append((done.returncode, done.stdout, done.stderr, made))
    assert found[0] == found[1]
    assert found[0][0] == (1 if place == "nowhere" else 0)
    assert ("A sentence." if place == "nowhere" else f"winter {place}") in served.stderr

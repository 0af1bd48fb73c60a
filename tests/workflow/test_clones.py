"""A clone is its own: a copy or a moved one runs its own code, or says in a sentence what to do."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import Project, copy_code
from small import REPOSITORY

COMMANDS = runpy.run_path(str(REPOSITORY / "envs/commands.py"))
OF_PIP = "import sys\nprint(sys.executable, *sys.argv[1:])\n"


def environment(clone: Path) -> Path:
    """The commands that pip wrote in a clone's environment; return their folder."""
    folder = clone / ".venv" / "bin"
    folder.mkdir(parents=True)
    python = str(folder / "python")
    Path(python).symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", folder.parent)
    (folder.parent / "lib").symlink_to(Path(sys.prefix) / "lib")
    (folder / "short").write_text(f"#!{python}\n{OF_PIP}")
    (folder / "long").write_text(f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n{OF_PIP}")
    (folder / "other").write_text("#!/bin/sh\necho other\n")
    (folder / "binary").write_bytes(b"\x7fELF\xff")
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def said(command: Path, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["copy", """a 'copy', of "$HOME" & ü"""])
def test_the_commands_of_a_moved_clone_start_its_own_python_and_code(tmp_path: Path, name: str) -> None:
    folder = environment(tmp_path / "clone")
    others = {path: path.read_bytes() for path in (folder / "other", folder / "binary")}
    for _ in range(2):  # the second time there is nothing more to do
        COMMANDS["main"](folder)
    assert {path: path.read_bytes() for path in others} == others
    copy_code(tmp_path / "clone")
    (tmp_path / "clone").rename(tmp_path / name)
    folder = tmp_path / name / ".venv" / "bin"
    for command in ("short", "long"):
        assert said(folder / command, "a b", "c") == f"{folder / 'python'} a b c"
    (tmp_path / "link").symlink_to(folder / "shapelaw")
    cli = tmp_path / name / "scripts/shapelaw/cli.py"
    cli.write_text("import sys\n\n\ndef main() -> int:\n    print(__file__, *sys.argv[1:])\n    return 0\n")
    assert said(folder / "shapelaw", "shape") == said(tmp_path / "link", "shape") == f"{cli} shape"


def test_a_copy_runs_its_own_code_by_the_originals_snakemake(tmp_path: Path) -> None:
    """pip's command, as of an environment that was activated in the original."""
    (tmp_path / "copy").mkdir()
    project = Project(tmp_path / "copy")
    plan = project.folder / "scripts/shapelaw/jobs/plan.py"
    plan.write_text(plan.read_text().replace('f"Together ', 'f"All in the copy: '))
    assert "All in the copy: " in project.snakemake("plan").stdout


def test_make_sees_that_an_environment_came_from_elsewhere(tmp_path: Path) -> None:
    def planned(clone: Path) -> str:
        done = subprocess.run(["make", "-n", "env"], cwd=clone, capture_output=True, text=True, check=True)
        return done.stdout

    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy(REPOSITORY / "Makefile", clone)
    shutil.copytree(REPOSITORY / "envs", clone / "envs")
    first = planned(clone)
    (clone / ".venv").mkdir()
    for line in first.splitlines():
        if line.startswith("touch "):
            (clone / line.removeprefix("touch ")).touch()
    assert "pip install" in first
    assert "nothing" in planned(clone).lower() or planned(clone) == ""
    clone.rename(tmp_path / "moved")
    again = planned(tmp_path / "moved")
    assert "envs/commands.py" in again
    assert "pip install" not in again

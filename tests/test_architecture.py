"""The house of docs/architecture.md, held to: who may import whom, and what."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import PYTHON, SCRIPTS

PACKAGE = SCRIPTS / "shapelaw"
FLOORS = [
    {"errors"},
    {"specs"},
    {"settings", "storage"},
    {"jobs"},
    {"theory"},
    {"models", "corpora", "fits"},
    {"training", "tracking"},
    {"report"},
    {"studies"},
    {"campaign"},
    {"advice"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "shapelaw":
                yield from (f"shapelaw.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_and_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    room, imported = room_of(path), list(imports_of(path))
    for name in imported:
        parts = name.split(".")
        if parts[0] == "shapelaw" and len(parts) > 1 and parts[1] != room:
            below, here = FLOOR_OF[parts[1]], FLOOR_OF[room]
            assert below < here, f"{room} (floor {here}) imports {name} (floor {below})"
    tops = {name.split(".")[0] for name in imported}
    if room in ("training", "models"):
        assert tops <= {"torch", "numpy", "pyarrow", "shapelaw", "__future__"} | set(sys.stdlib_module_names)
    # assumptions look at networks of other libraries; the others import them where a config is read
    elif path.parent.name != "assumptions" and path.name not in (
        "pretrained.py",
        "built_model.py",
        "speed.py",
    ):
        assert not tops & {"torch", "transformers"}
    if room != "tracking" and path.name != "experiments.py":  # the reader of strangers' runs
        assert "mlflow" not in tops


def run(*scripts: str) -> str:
    """Run scripts with their arguments, as far as they go."""
    return "\n".join(
        f"import runpy; sys.argv = {script.split()}\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit: pass"
        for script in scripts
    )


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        (run("shapelaw/cli.py --help"), "torch numpy pandas pydantic snakemake"),
        (
            run(
                "memorization_capacity.py --heads 4 --context 32 --head-dim 8",
                "separation_rank.py --depth 1 --width 2",
            ),
            "torch scipy pandas pydantic mlflow",
        ),
        (run("import_runs.py --help", "follow_runs.py --help", "log_study.py --help"), "mlflow.entities"),
        # the Snakefile reads these at every start; the others would be a second of each of a workflow's imports
        (
            "import shapelaw.campaign.config, shapelaw.jobs.workload, shapelaw.storage.pool",
            "torch mlflow pandas numpy",
        ),
        ("import shapelaw.advice.models.pretrained", "torch transformers"),
        ("import shapelaw.tracking.importer", "torch lmfit matplotlib scipy.stats"),
    ],
)
def test_what_starts_often_loads_nothing_heavy(code: str, heavy: str) -> None:
    """What it really loads; tests/training/test_launch.py looks at what training does."""
    code = f"import sys\n{code}\nprint([one for one in {heavy.split()} if one in sys.modules])"
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

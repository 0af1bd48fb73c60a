"""The house of docs/architecture.md, held to: who may import whom, and what; and where tests lie."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import PYTHON, REPOSITORY, SCRIPTS

PACKAGE = SCRIPTS / "shapelaw"
FLOORS = [
    {"errors", "specs", "settings", "scheduling", "storage"},
    {"theory"},
    {"models", "corpora", "fits"},
    {"training", "tracking"},
    {"report"},
    {"studies"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")

NOTHING_TO_TEST = {  # fields and their sentences; what is wrong with them is in the rooms' test_study.py
    f"studies/{room}/settings"
    for room in (
        "assumptions",
        "attention_degree",
        "block_degree",
        "depth_width",
        "memorization",
        "embedding_rank",
        "separation_rank",
        "vocabulary",
    )
}
TESTED_ELSEWHERE = {  # by test file; to be split
    "fits/test_cost": ["scheduling/cost"],
    "fits/test_crossing": ["fits/crossing_draws", "fits/curves", "fits/scatter", "fits/smooth"],
    "fits/test_plateau": ["fits/saturating"],
    "fits/test_run_tables": ["fits/inputs"],
    "models/test_memorizer": ["models/memorizer_gradients", "models/pack_gradients"],
    "studies/block_degree/test_block_degree": [
        f"studies/block_degree/{name}" for name in ("analysis", "figures", "ranks", "results", "tables")
    ],
    "studies/memorization/test_memorization": [
        f"studies/memorization/{name}" for name in ("analysis", "comparison", "figures", "results", "tables")
    ],
    "studies/memorization/test_memorization_saturation": [
        f"studies/memorization/{name}" for name in ("attention", "saturation")
    ],
    "studies/separation_rank/test_rank_study": [
        f"studies/separation_rank/{name}"
        for name in ("corollaries", "degrees", "figures", "measurements", "results", "tables")
    ],
    "theory/test_memorization_bounds": ["theory/memorization"],
    "theory/test_rank_bounds": ["theory/rank_formulas"],
    "theory/test_separation_rank": [
        f"theory/{name}"
        for name in (
            "attention_layers",
            "finite_field",
            "linear_attention",
            "product_network",
            "token_halves",
        )
    ],
    "training/test_compiled": ["training/batches"],
    "training/test_loop": ["training/evaluation", "training/journal", "training/trainer"],
    "training/test_packed": [
        f"training/{name}"
        for name in ("examples", "memorizer_pack", "pack_runs", "pack_training", "schedule")
    ],
    "training/test_processes": [
        f"training/{name}" for name in ("command", "distributed", "launch", "signals")
    ],
    "training/test_storage_faults": ["training/checkpoint"],
}


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
def test_imports_go_down(path: Path) -> None:
    room = room_of(path)
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "shapelaw" and len(parts) > 1 and parts[1] != room:
            below, here = FLOOR_OF[parts[1]], FLOOR_OF[room]
            assert below < here or below == here == 0, f"{room} (floor {here}) imports {name} (floor {below})"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    room, tops = room_of(path), {name.split(".")[0] for name in imports_of(path)}
    if room in ("training", "models"):
        assert tops <= {"torch", "numpy", "pyarrow", "shapelaw", "__future__"} | set(sys.stdlib_module_names)
    elif path.parent.name != "assumptions":  # which looks at networks of other libraries
        assert not tops & {"torch", "transformers"}
    if room != "tracking":
        assert "mlflow" not in tops


def test_training_runs_where_only_torch_numpy_and_pyarrow_are_installed() -> None:
    """What `scripts/train.py` really loads."""
    code = (
        "import runpy, sys; sys.argv = ['train.py', '--help']\n"
        "try: runpy.run_path('train.py', run_name='__main__')\n"
        "except SystemExit: print([m for m in ('mlflow', 'pandas', 'lmfit', 'yaml', 'pydantic', 'tokenizers', 'scipy')"
        " if m in sys.modules])"
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_module_has_its_tests_in_the_mirrored_folder() -> None:
    """Its exceptions only get fewer: a new module has a test file, and one that gets it leaves the lists."""
    tests = REPOSITORY / "tests"
    modules = [path.relative_to(PACKAGE) for path in MODULES if path.stem != "__init__"]
    without = {str(m.with_suffix("")) for m in modules if not (tests / m.parent / f"test_{m.name}").exists()}
    elsewhere = [module for found in TESTED_ELSEWHERE.values() for module in found]
    assert without == {*elsewhere, *NOTHING_TO_TEST}
    assert [name for name in TESTED_ELSEWHERE if not (tests / f"{name}.py").exists()] == []

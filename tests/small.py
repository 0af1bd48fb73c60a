"""Where things are, cases that stand in YAML files beside their tests, and runs small enough for a test."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "scripts"
COMMANDS = REPOSITORY / "tests" / "bin"  # that stand before the machine's own
LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"  # committed runs
PYTHON = sys.executable


def command_path(name: str) -> Path:
    """The script of a command, of `shapelaw.advice` or beside the package."""
    advice = SCRIPTS / "shapelaw" / "advice" / "commands" / f"{name}.py"
    return advice if advice.is_file() else SCRIPTS / f"{name}.py"


def listed(file: str, section: str) -> list[tuple[Any, str]]:
    """The cases of a section of a file below tests/: what is given, and what is said of it."""
    sections = yaml.safe_load((REPOSITORY / "tests" / file).read_text(encoding="utf-8"))
    return [(case["given"], case["says"]) for case in sections[section]]


def small_run(seed: int = 0, **training: object) -> Run:
    """A run of a second or two on one core."""
    settings = {
        "steps": 60,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "warmup_steps": 5,
        "log_every": 10,
        "evaluate_every": 30,
        "test_sequences": 20,
        **training,
    }
    return Run("prose", make_shape(2, 16, 2, 257, 32), Training(**settings), seed)


def small_llama(**training: object) -> Run:
    """The same of Llama's blocks, with everything that GPT-2's lack."""
    shape = make_shape(
        2, 16, 2, 257, 32, block="llama", kv_heads=1, tied=True, base_width=8, base_attention_dim=4
    )
    return replace(small_run(**training), shape=shape)


def small_completep(**training: object) -> Run:
    """The same again by CompleteP, in depth and width."""
    return small_llama(**training, parametrization="completep")

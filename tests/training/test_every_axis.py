"""Each axis of the table at a second value: named, counted, trained, and told apart wherever runs are."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from small import small_run
from trained_here import Stores, lacking, train

from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import AXES, Budget, Run
from shapelaw.specs.shapes import SHAPE_AXES

BASE = small_run(learning_rate=0.05, steps=6, log_every=1, evaluate_every=3, warmup_steps=1, dropout=0.0)
VALUES = yaml.safe_load(Path(__file__).with_name("axes.yaml").read_text(encoding="utf-8"))
SHAPES, RECIPES = VALUES["shape"], VALUES["training"]
OTHERS: dict[str, Any] = {"corpus": "other", "seed": 1, "budget": Budget("flops", 1e9)}
LEARNING_NOTHING_ELSE = ("corpus", "budget", "log_every", "evaluate_every")
NOT_HERE = ("vocab_size", "patch_embedding", "precision")  # other tokens, or a GPU


def of_shape(**options: Any) -> Run:
    """The base run with another shape."""
    given = {"depth": 2, "width": 16, "heads": 2, "vocab_size": 257, "context_length": 32, **options}
    return replace(BASE, shape=make_shape(**given))


def changed(axis: str) -> Run:
    """A run that differs from the base in one axis, and in what that axis needs."""
    if axis in SHAPES:
        return of_shape(**SHAPES[axis])
    if axis in RECIPES:
        return replace(BASE, training=replace(BASE.training, **{axis: RECIPES[axis]}))
    return replace(BASE, **{axis: OTHERS[axis]})


def test_every_axis_has_a_second_value() -> None:
    assert set(SHAPES) | set(RECIPES) | set(OTHERS) == set(AXES)
    assert set(SHAPES) == set(SHAPE_AXES)


@pytest.mark.parametrize("axis", list(AXES))
def test_it_has_a_key_a_digest_a_column_and_words_of_its_own(axis: str) -> None:
    run = changed(axis)
    assert run.digest != BASE.digest
    assert Run.from_dict(run.to_dict()) == run
    flat, of_base = run.flat(), BASE.flat()
    if AXES[axis].column:
        value, before = (found.get(axis, AXES[axis].default) for found in (flat, of_base))
        assert value != before
        assert AXES[axis].said(value) != AXES[axis].said(before)
    if AXES[axis].key:
        assert run.label != BASE.label


@pytest.fixture(scope="module")
def learned(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> float:
    return loss_of(BASE, stores, tmp_path_factory.mktemp("base"))


def loss_of(run: Run, stores: Stores, folder: Path) -> float:
    record = train(run, stores, folder)
    assert lacking(record) == set()
    return float(record.summary["test_loss"])


@pytest.mark.parametrize("axis", [axis for axis in AXES if axis not in NOT_HERE])
def test_it_trains_and_another_value_learns_something_else(
    axis: str, stores: Stores, learned: float, tmp_path: Path
) -> None:
    found = loss_of(changed(axis), stores, tmp_path)
    assert math.isfinite(found)
    assert (found == learned) == (axis in LEARNING_NOTHING_ELSE)

"""Each axis of the table at a second value: named, counted, trained, and told apart wherever runs are."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from small import small_run
from trained import Stores, counted_flops, lacking, train

from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.making import ShapeError, make_shape
from shapelaw.specs.runs import AXES, Budget, Run
from shapelaw.specs.shapes import BLOCKS, SHAPE_AXES, Shape

BASE = small_run(learning_rate=0.05, steps=6, log_every=1, evaluate_every=3, warmup_steps=1, dropout=0.0)
VALUES = yaml.safe_load(Path(__file__).with_name("axes.yaml").read_text(encoding="utf-8"))
SHAPES, RECIPES = VALUES["shape"], VALUES["training"]
OTHERS: dict[str, Any] = {"corpus": "other", "seed": 1, "budget": Budget("flops", 1e9)}
LEARNING_NOTHING_ELSE = ("corpus", "budget", "log_every", "evaluate_every")
WITHOUT_KEY = ("context_length",)  # which runs were never named by
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
    if AXES[axis].key or (axis in SHAPES and axis not in WITHOUT_KEY):
        assert run.label != BASE.label


def scores_of(shape: Shape) -> torch.Tensor:
    """What a new network computes, once its parameters and FLOPs are the formulas'."""
    model, ids = Decoder(shape), torch.arange(shape.context_length)[None]
    initialise(model, 0)
    assert sum(p.numel() for p in model.parameters()) == shape.total_params
    assert counted_flops(model, ids) == shape.forward_flops(1)
    return model.logits(ids)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("axis", [axis for axis in SHAPES if axis != "block"])
def test_each_block_has_and_counts_it_or_refuses_it(axis: str, block: str) -> None:
    """Ignored, it would be another name of a run that there is."""
    beside = {**SHAPES[axis], "block": block}
    value, problems = beside.pop(axis), list[str]()
    before = after = scores_of(of_shape(**beside).shape)
    try:
        after = scores_of(of_shape(**beside, **{axis: value}).shape)
    except ShapeError as error:
        problems = error.problems
    assert any(axis in sentence for sentence in problems) or not torch.equal(before, after)


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

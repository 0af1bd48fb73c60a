"""The kernel for contexts of their own: the gradients of autograd in float64, whatever the shape and the batch."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from shapelaw.models import memorizer
from shapelaw.models.kernels.cpp import Kernel
from shapelaw.specs.memorizers import Memorizer
from shapelaw.training.packs import can_compile

CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(not can_compile(CPU), reason="there is no C++ compiler")
ROWS = 7  # of the table of contexts
CLASSES = Memorizer(heads=2, context=3, head_dim=8, width=8, value_dim=1, outputs=5)
# few, as each is compiled: W_Q W_K folded and not, tokens and numbers of heads that fill registers and that do not,
# a head_dim that is filled up, several classes and a number
SHAPES = [
    (CLASSES, torch.float64),
    (CLASSES, torch.float32),
    (replace(CLASSES, heads=9, context=16, head_dim=3, width=16, outputs=1), torch.float64),
    (replace(CLASSES, heads=1, context=33, head_dim=2, width=24, outputs=17), torch.float32),
    (replace(CLASSES, heads=5, context=1, head_dim=32, width=32, outputs=16), torch.float32),
]
Problem = tuple[memorizer.Parameters, Tensor, Tensor, memorizer.Picked, Tensor, Tensor | None, Tensor | None]


def problem(m: Memorizer, models: int, examples: int, seed: int, there: bool, absent: bool) -> Problem:
    """In float64: parameters, positions, queries, contexts, labels, and who is missing."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*size: int) -> Tensor:
        return torch.rand(size, generator=generator, dtype=torch.float64)

    every = [memorizer.initial_parameters(m, seed + model, torch.float64) for model in range(models)]
    p = {name: torch.stack([one[name] for one in every]) for name in memorizer.parameter_shapes(m)}
    p["w_q"] *= 20 * draw(models, 1, 1, 1)  # some heads attend to one token alone
    at = torch.randint(ROWS, (models, examples), generator=generator)
    labels = torch.randint(m.outputs, (models, examples), generator=generator)
    length = torch.randint(1, m.context + 1, (models, 1), generator=generator)
    return (
        p,
        memorizer.positions(m, torch.float64),
        draw(models, examples, m.width),
        memorizer.Picked(draw(ROWS, m.context, m.width), at),
        labels if m.outputs > 1 else draw(models, examples),
        # the first one is there, so that a loss is one of something
        (draw(models, examples) < 0.7).index_fill(1, torch.tensor([0]), True).double() if there else None,
        torch.arange(m.context) >= length if absent else None,
    )


def by_kernel(m: Memorizer, problem: Problem, dtype: torch.dtype) -> tuple[Tensor, memorizer.Parameters]:
    """Loss and gradients of a problem by the kernel, in a precision."""
    p, place, queries, (table, at), labels, there, absent = problem
    batch = memorizer.Batch(
        place.to(dtype),
        queries.to(dtype),
        memorizer.Picked(table.to(dtype), at),
        labels.to(dtype) if labels.is_floating_point() else labels,
        None if there is None else there.to(dtype),
        absent,
    )
    return memorizer.kernel_gradients({name: value.to(dtype) for name, value in p.items()}, m, batch)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    scale=st.sampled_from(["none", "head_dim", "width"]),
    models=st.integers(1, 3),
    examples=st.integers(1, 70),  # up to three blocks
    seed=st.integers(0, 2**31),
    there=st.booleans(),
    absent=st.booleans(),
)
def test_gradients_are_those_of_autograd(
    shape: tuple[Memorizer, torch.dtype],
    scale: str,
    models: int,
    examples: int,
    seed: int,
    there: bool,
    absent: bool,
) -> None:
    m, dtype = replace(shape[0], logit_scale=scale), shape[1]
    assert memorizer.is_possible(m, dtype, CPU)
    assert_gradients_are_those_of_autograd(m, dtype, problem(m, models, examples, seed, there, absent))


def test_gradients_are_those_of_autograd_by_the_instructions_of_older_cpus(
    older_cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memorizer.KERNEL, "target", older_cpu)
    monkeypatch.setattr(memorizer.KERNEL, "library", cache(memorizer.KERNEL._compiled))
    m, dtype = SHAPES[3]
    assert_gradients_are_those_of_autograd(m, dtype, problem(m, 2, 40, 0, True, True))


def assert_gradients_are_those_of_autograd(m: Memorizer, dtype: torch.dtype, given: Problem) -> None:
    p, place, queries, contexts, *rest = given
    batch = memorizer.Batch(place, queries, contexts.table_Tnd[contexts.at_PB], *rest)
    expected_loss, expected = memorizer.gradients(p, m, batch)
    loss, found = by_kernel(m, given, dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    assert list(found) == list(expected)
    torch.testing.assert_close(loss.double(), expected_loss, rtol=tolerance, atol=tolerance)
    for name, value in expected.items():
        most = value.abs().max().item()
        torch.testing.assert_close(found[name].double(), value, rtol=0, atol=tolerance * max(most, 1e-2))


@pytest.mark.parametrize(("m", "dtype"), SHAPES)
def test_the_same_bits_twice_alone_and_on_any_thread(m: Memorizer, dtype: torch.dtype) -> None:
    given = problem(m, 3, 40, 0, True, True)
    loss, found = by_kernel(m, given, dtype)
    again: list[tuple[Tensor, memorizer.Parameters]] = []
    threads = [threading.Thread(target=lambda: again.append(by_kernel(m, given, dtype))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(again) == 3
    for other_loss, other in again:
        assert torch.equal(other_loss, loss)
        assert all(torch.equal(other[name], value) for name, value in found.items())
    p, place, queries, (table, at), labels, there, absent = given
    for model in range(3):  # what a model gets does not hang on its neighbours
        one = slice(model, model + 1)
        mine = {name: value[one] for name, value in p.items()}
        masks = (None if mask is None else mask[one] for mask in (there, absent))
        alone = mine, place, queries[one], memorizer.Picked(table, at[one]), labels[one], *masks
        alone_loss, alone_found = by_kernel(m, alone, dtype)
        assert torch.equal(alone_loss, loss[one])
        assert all(torch.equal(alone_found[name], value[one]) for name, value in found.items())


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_what_is_not_a_number_stays_so_and_stays_with_its_model(wrong: float) -> None:
    m, dtype = SHAPES[1]
    p, place, queries, (table, at), labels, _, _ = problem(m, 2, 40, 0, False, False)
    queries[0, 35, 2] = wrong
    loss, found = by_kernel(m, (p, place, queries, memorizer.Picked(table, at), labels, None, None), dtype)
    assert loss.isfinite().tolist() == [False, True]
    assert all(value[1].isfinite().all() for value in found.values())
    assert not found["w_q"][0].isfinite().any()


@pytest.mark.parametrize("place_of_it", range(3))
def test_one_token_that_is_not_a_number_is_enough(place_of_it: int) -> None:
    m, dtype = SHAPES[1]
    p, place, queries, (table, at), labels, _, _ = problem(m, 1, 5, 0, False, False)
    for bits in (0x7FC00000, 0x7FC001FF):  # the usual one, and one that shifted bits would make a number of
        table[at[0, 2], place_of_it, 5] = torch.tensor([bits], dtype=torch.int32).view(torch.float32)[0]
        given = p, place, queries, memorizer.Picked(table, at), labels, None, None
        assert by_kernel(m, given, dtype)[0].isnan().all()


def test_logits_far_apart_leave_weights_of_zero_and_one() -> None:
    m, dtype = SHAPES[0]
    given = problem(m, 1, 20, 1, False, False)
    for factor in (1e2, 1e4, 1e8):  # logits: exp of a difference falls below the smallest number
        given[0]["w_q"] *= factor
        loss, found = by_kernel(m, given, dtype)
        p, place, queries, contexts, labels, *_ = given
        batch = memorizer.Batch(place, queries, contexts.table_Tnd[contexts.at_PB], labels)
        expected_loss, expected = memorizer.gradients(p, m, batch)
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-7)
        assert all(value.isfinite().all() for value in found.values())
        torch.testing.assert_close(found["w_o"], expected["w_o"], rtol=1e-6, atol=1e-7)


def test_labels_are_classes_or_numbers() -> None:
    m = CLASSES
    p, place, queries, contexts, labels, *_ = problem(m, 1, 3, 0, False, False)
    with pytest.raises(ValueError, match="a memorizer with one output needs numbers as labels"):
        memorizer.kernel_gradients(p, m, memorizer.Batch(place, queries, contexts, labels.double()))


def test_one_that_is_wrong_is_not_used(
    make_wrong: Callable[[Kernel, str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    # W_V's gradient is off by 2%
    make_wrong(memorizer.KERNEL, "spread + i, share)", "spread + i, REAL(1.02) * share)")
    shape = Memorizer(heads=3, context=6, head_dim=4, width=8, value_dim=1, outputs=7)  # of this test alone
    assert not memorizer.is_possible(shape, torch.float32, CPU)
    said = capsys.readouterr().err
    assert "memorizer_kernel.cpp is not used (its gradients are not PyTorch's on this CPU)" in said


def test_it_is_for_some_shapes() -> None:
    m, dtype = SHAPES[1]
    assert memorizer.is_possible(m, dtype, CPU)
    assert not memorizer.is_possible(m, dtype, torch.device("cuda"))
    assert not memorizer.is_possible(m, torch.bfloat16, CPU)
    for other in ({"width": 12}, {"value_dim": None}, {"value_dim": 2}, {"attend_to_query": True}):
        assert not memorizer.is_possible(replace(m, **other), dtype, CPU)

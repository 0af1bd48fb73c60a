"""Packed memorizers: every model goes the way that it would go alone; their random examples and the order of these."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from memorizer_options import OPTIONS, RUN, SMALL, losses_of, of_other_shapes, varied

from shapelaw.models.kernels import cpp
from shapelaw.models.memorizer import forward, initial_parameters, losses, positions, reshaped
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.training.memorizer_pack import NONE, MemorizerPack, draw_examples, example_order
from shapelaw.training.optimizer import packed_rate
from shapelaw.training.packs import can_compile

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def alone(run: MemorizationRun, steps: int) -> list[float]:
    """Training losses of one model by autograd and torch.optim.Adam, with nothing of the pack's machinery."""
    m, dtype = run.memorizer, getattr(torch, run.precision)
    parameters = {
        name: value.requires_grad_() for name, value in initial_parameters(m, run.seed, dtype).items()
    }
    optimizer = torch.optim.Adam(parameters.values(), lr=run.learning_rate)
    examples, place, order = draw_examples(run), positions(m, dtype), example_order(run, 0, steps)
    found = []
    for step in range(steps):
        at = torch.from_numpy(order[step][order[step] != NONE])
        contexts = examples.contexts if run.context_type == "shared" else examples.contexts[at]
        stacked = {name: value[None] for name, value in parameters.items()}
        outputs, _ = forward(stacked, m, place, examples.queries[at][None], contexts[None])
        loss = losses(outputs, examples.labels[at][None])[0]
        optimizer.param_groups[0]["lr"] = packed_rate(run, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


LONG = ("full values", "short last batches, numbers, a context each")


@pytest.mark.parametrize(
    ("name", "precision", "tolerance"),
    [*((name, "float64", 1e-9) for name in OPTIONS), *((name, "float32", 5e-6) for name in LONG)],
)
def test_a_packed_model_follows_the_path_of_the_same_model_alone(
    name: str, precision: str, tolerance: float
) -> None:
    """At the paper's learning rate, a tenth of the runs'; and what it is filled up with stays zero."""
    # of models of one shape, and of several; of three or four batches an epoch, and 64 steps a block of batches
    models = (varied if precision == "float32" else of_other_shapes)(OPTIONS[name])
    steps = 70 if name in LONG else 20
    runs = [
        replace(run, precision=precision, steps=2 * steps, learning_rate=run.learning_rate / 10)
        for run in models
    ]
    pack = MemorizerPack(runs, CPU, compiled=False)
    packed = losses_of(pack, steps)
    for column, run in zip(packed.T, runs, strict=True):
        np.testing.assert_allclose(column, alone(run, steps), rtol=0, atol=tolerance)
    for table in (pack.parameters, pack.first, pack.second):
        for model, run in enumerate(runs):
            mine = {name: value[model : model + 1] for name, value in table.items()}
            again = reshaped(reshaped(mine, pack.memorizer, run.memorizer), run.memorizer, pack.memorizer)
            assert all(torch.equal(again[name], value) for name, value in mine.items())


def test_tokens_that_are_gathered_lead_the_same_way_as_those_that_are_read_where_they_lie() -> None:
    options = replace(OPTIONS["short last batches, numbers, a context each"], precision="float64")
    runs = of_other_shapes(options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpp, "compiler", lambda: None)
        gathered = MemorizerPack(runs, CPU, compiled=False)
    assert not gathered._picks
    where_they_lie = MemorizerPack(runs, CPU, compiled=False)
    assert where_they_lie._picks == can_compile(CPU)
    np.testing.assert_allclose(losses_of(gathered, 40), losses_of(where_they_lie, 40), rtol=0, atol=1e-10)


def test_a_pack_takes_the_shape_of_the_models_that_are_left() -> None:
    runs = [
        replace(run, precision="float64", last_batch="short") for run in of_other_shapes(OPTIONS["numbers"])
    ]
    whole, fewer = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    assert (whole.memorizer.heads, whole.memorizer.context, whole.memorizer.head_dim) == (4, 4, 4)
    expected = losses_of(whole, 80)
    losses_of(fewer, 50)
    fewer.keep([1, 3])
    assert (fewer.memorizer.heads, fewer.memorizer.context, fewer.memorizer.head_dim) == (2, 4, 4)
    np.testing.assert_allclose(losses_of(fewer, 30), expected[50:, [1, 3]], rtol=0, atol=1e-12)
    for place, model in enumerate([1, 3]):
        assert fewer.evaluate(place).loss == pytest.approx(whole.evaluate(model).loss, abs=1e-12)
        assert fewer.attention(place).shape == whole.attention(model).shape
    fewer.keep([1])  # one that was filled up, alone now: nothing is filled up any more
    assert fewer.memorizer == runs[3].memorizer


@pytest.mark.parametrize("context_type", ["shared", pytest.param("per_example", marks=pytest.mark.slow)])
def test_a_model_goes_on_in_a_pack_of_another_shape(context_type: str) -> None:
    runs = [replace(run, precision="float64", context_type=context_type) for run in of_other_shapes(RUN)]
    together = MemorizerPack(runs, CPU, compiled=False)
    losses_of(together, 30)
    state = {name: copy.deepcopy(value) for name, value in together.state().items()}
    expected = losses_of(together, 30)
    for model in (0, 2):  # one is filled up by heads, the other inside of its heads
        run = runs[model]
        by_itself = MemorizerPack([run], CPU, compiled=False)
        assert by_itself.memorizer == run.memorizer
        by_itself.load_model(0, state, model)
        by_itself.take_losses([0])
        np.testing.assert_allclose(losses_of(by_itself, 30)[:, 0], expected[:, model], rtol=0, atol=1e-12)
        back = MemorizerPack(runs, CPU, compiled=False)  # and back into one that is filled up
        back.load_model(model, by_itself.state(), 0)
        for name, value in back.alone(model).items():
            assert torch.equal(value, by_itself.parameters[name])


@pytest.mark.skipif(not can_compile(CPU), reason="torch.compile needs a C++ compiler")
@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_the_compiled_step_is_the_same_and_is_the_one_that_runs() -> None:
    """Of models of several shapes, and of the two of one shape that are left, which fill nothing up."""
    from torch._dynamo.utils import counters

    several = of_other_shapes(RUN)
    runs = [replace(run, precision="float64") for run in (*several, replace(several[0], seed=3))]
    counters.clear()
    compiled, plain = MemorizerPack(runs, CPU, compiled=True), MemorizerPack(runs, CPU, compiled=False)
    np.testing.assert_allclose(losses_of(compiled, 30), losses_of(plain, 30), rtol=0, atol=1e-10)
    assert counters["stats"]["unique_graphs"] == 1
    compiled.keep([0, 4])
    plain.keep([0, 4])
    assert compiled.memorizer == several[0].memorizer
    np.testing.assert_allclose(losses_of(compiled, 20), losses_of(plain, 20), rtol=0, atol=1e-10)
    assert counters["stats"]["unique_graphs"] == 2  # a smaller pack is a shape of its own


@given(
    examples=st.integers(1, 40),
    batch=st.integers(1, 16),
    first=st.integers(0, 30),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None)
def test_every_epoch_takes_every_example_once(examples: int, batch: int, first: int, seed: int) -> None:
    run = replace(RUN, examples=examples, batch_size=batch, seed=seed)
    order = example_order(run, 0, 40)
    taken = order.ravel()
    for epoch in range(len(taken) // examples):
        assert sorted(taken[epoch * examples : (epoch + 1) * examples]) == list(range(examples))
    assert np.array_equal(example_order(run, first, 40 - first), order[first:])  # wherever it begins
    short = example_order(replace(run, last_batch="short"), 0, 40)
    steps = math.ceil(examples / run.batch)
    for epoch in range(40 // steps):
        batches = short[epoch * steps : (epoch + 1) * steps]
        assert np.array_equal(batches[batches != NONE], taken_of(run, epoch))
        assert (batches[:-1] != NONE).all()  # only the last one is short


def taken_of(run: MemorizationRun, epoch: int) -> np.ndarray:
    """An epoch's order, where batches are filled."""
    alone = replace(run, batch_size=run.examples)  # one batch an epoch
    return np.asarray(example_order(alone, epoch, 1)[0])


def test_more_examples_begin_with_those_of_fewer() -> None:
    for context_type in ("shared", "per_example"):
        fewer, more = (
            draw_examples(replace(RUN, context_type=context_type, examples=examples)) for examples in (20, 60)
        )
        assert torch.equal(more.queries[:20], fewer.queries)
        assert torch.equal(more.labels[:20], fewer.labels)
        assert torch.equal(more.contexts[: len(fewer.contexts)], fewer.contexts)
        assert more.labels.max() < SMALL.outputs

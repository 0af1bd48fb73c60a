"""Packed training: every model goes the way that it would go alone, whatever the others do."""

import copy
import json
import math
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import PYTHON, SCRIPTS

from shapelaw.errors import UserError
from shapelaw.models import memorizer_kernel
from shapelaw.models.memorizer import cut_down, filled_up, forward, initial_parameters, positions
from shapelaw.models.pack_gradients import losses
from shapelaw.scheduling.packs import in_packs
from shapelaw.specs.kinds import spec_from_dict, spec_to_dict
from shapelaw.specs.memorizers import MemorizationRun, Memorizer, check_memorization_run
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.examples import NONE, draw_examples, example_order
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.pack_runs import train_packs
from shapelaw.training.packed import can_compile
from shapelaw.training.schedule import packed_rate
from shapelaw.training.trainer import Runtime

CPU = torch.device("cpu")
SMALL = Memorizer(heads=3, context=5, head_dim=4, width=8, value_dim=1, outputs=7)
RUN = MemorizationRun(
    "memorization",
    SMALL,
    "classification",
    "shared",
    60,
    300,
    0,
    batch_size=16,
    learning_rate=1e-2,
    evaluate_every=50,
)
OPTIONS = {
    "one value a head": RUN,
    "full values": replace(RUN, memorizer=replace(SMALL, value_dim=None)),
    "logits by width": replace(RUN, memorizer=replace(SMALL, logit_scale="width")),
    "logits by head_dim": replace(RUN, memorizer=replace(SMALL, logit_scale="head_dim")),
    "query among the keys": replace(RUN, memorizer=replace(SMALL, attend_to_query=True)),
    "numbers": replace(RUN, task="regression", memorizer=replace(SMALL, outputs=1)),
    "a context each": replace(RUN, context_type="per_example"),
    "short last batches": replace(RUN, last_batch="short"),
    "short last batches, numbers, a context each": replace(
        RUN,
        last_batch="short",
        task="regression",
        context_type="per_example",
        memorizer=replace(SMALL, outputs=1),
    ),
    "short last batches, full values": replace(
        RUN, last_batch="short", memorizer=replace(SMALL, value_dim=None)
    ),
    "short last batches, query among the keys": replace(
        RUN, last_batch="short", memorizer=replace(SMALL, attend_to_query=True)
    ),
    "numbers, a context each": replace(
        RUN,
        task="regression",
        context_type="per_example",
        memorizer=replace(SMALL, outputs=1, value_dim=None),
    ),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small products are slower on several threads, far slower when the tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def varied(run: MemorizationRun) -> list[MemorizationRun]:
    """Models of one pack that differ in everything that a pack allows."""
    return [run, replace(run, seed=1, examples=40), replace(run, seed=2, steps=700, learning_rate=3e-3)]


def of_other_shapes(run: MemorizationRun) -> list[MemorizationRun]:
    """Models of one pack that differ in their shapes too; the first and the last are no larger in anything."""
    m = run.memorizer
    head_dim = m.head_dim if m.logit_scale == "head_dim" else 3
    shapes = [
        replace(m, context=2),
        replace(m, heads=1, context=4),
        replace(m, heads=4, head_dim=head_dim, context=3),
        replace(m, heads=2, head_dim=head_dim, context=1),
    ]
    others = [run, *varied(run)]
    return [replace(one, memorizer=shape) for one, shape in zip(others, shapes, strict=True)]


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


def losses_of(pack: MemorizerPack, steps: int) -> np.ndarray:
    """[steps, P]"""
    rows = []
    for _ in range(steps):
        pack.step()
        rows.append(pack.take_losses(range(len(pack.runs))))
    return np.array(rows)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("models", "precision", "steps", "tolerance"),
    [
        (varied, "float32", 100, 5e-6),
        pytest.param(varied, "float64", 300, 1e-9, marks=pytest.mark.slow),
        (of_other_shapes, "float32", 100, 5e-6),
        (of_other_shapes, "float64", 150, 1e-9),
    ],
)
def test_a_packed_model_follows_the_path_of_the_same_model_alone(
    name: str,
    models: Callable[[MemorizationRun], list[MemorizationRun]],
    precision: str,
    steps: int,
    tolerance: float,
) -> None:
    assert_same_path(models(OPTIONS[name]), precision, steps, tolerance)


@pytest.mark.slow
def test_a_packed_model_follows_its_path_for_a_thousand_steps() -> None:
    runs = varied(OPTIONS["short last batches, numbers, a context each"])
    assert_same_path(runs, "float64", 1000, 1e-9)


def assert_same_path(models: list[MemorizationRun], precision: str, steps: int, tolerance: float) -> None:
    """At the paper's learning rate, a tenth of the runs'."""
    runs = [
        replace(run, precision=precision, steps=2 * steps, learning_rate=run.learning_rate / 10)
        for run in models
    ]
    packed = losses_of(MemorizerPack(runs, CPU, compiled=False), steps)
    for column, run in zip(packed.T, runs, strict=True):
        np.testing.assert_allclose(column, alone(run, steps), rtol=0, atol=tolerance)


@pytest.mark.parametrize("models", [varied, of_other_shapes])
def test_tokens_that_are_gathered_lead_the_same_way_as_those_that_are_read_where_they_lie(
    models: Callable[[MemorizationRun], list[MemorizationRun]],
) -> None:
    runs = models(replace(OPTIONS["short last batches, numbers, a context each"], precision="float64"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memorizer_kernel, "compiler", lambda: None)
        gathered = MemorizerPack(runs, CPU, compiled=False)
    assert not gathered._picks
    where_they_lie = MemorizerPack(runs, CPU, compiled=False)
    assert where_they_lie._picks == can_compile(CPU)
    np.testing.assert_allclose(losses_of(gathered, 60), losses_of(where_they_lie, 60), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", OPTIONS)
def test_what_models_are_filled_up_with_stays_zero(name: str) -> None:
    runs = of_other_shapes(OPTIONS[name])
    pack = MemorizerPack(runs, CPU, compiled=False)
    losses_of(pack, 30)
    for table in (pack.parameters, pack.first, pack.second):
        for model, run in enumerate(runs):
            mine = {name: value[model : model + 1] for name, value in table.items()}
            again = filled_up(cut_down(mine, pack.memorizer, run.memorizer), run.memorizer, pack.memorizer)
            assert all(torch.equal(again[name], value) for name, value in mine.items())


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


@pytest.mark.parametrize("context_type", ["shared", "per_example"])
def test_a_model_goes_on_in_a_pack_of_another_shape(context_type: str) -> None:
    runs = [
        replace(run, precision="float64", context_type=context_type)  # type: ignore[arg-type]
        for run in of_other_shapes(RUN)
    ]
    together = MemorizerPack(runs, CPU, compiled=False)
    losses_of(together, 30)
    state = {name: copy.deepcopy(value) for name, value in together.state().items()}
    expected = losses_of(together, 30)
    for model, run in enumerate(runs):
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
def test_the_compiled_step_is_the_same_and_is_the_one_that_runs() -> None:
    """Of models of several shapes, and of the two of one shape that are left, which fill nothing up."""
    from torch._dynamo.utils import counters

    several = of_other_shapes(RUN)
    runs = [replace(run, precision="float64") for run in (*several, replace(several[0], seed=3))]
    counters.clear()
    compiled, plain = MemorizerPack(runs, CPU, compiled=True), MemorizerPack(runs, CPU, compiled=False)
    np.testing.assert_allclose(losses_of(compiled, 100), losses_of(plain, 100), rtol=0, atol=1e-10)
    assert counters["stats"]["unique_graphs"] == 1
    compiled.keep([0, 4])
    plain.keep([0, 4])
    assert compiled.memorizer == several[0].memorizer
    np.testing.assert_allclose(losses_of(compiled, 20), losses_of(plain, 20), rtol=0, atol=1e-10)
    assert counters["stats"]["unique_graphs"] == 2  # a smaller pack is a shape of its own


def test_a_model_that_leaves_changes_nothing_for_the_others() -> None:
    runs = [replace(run, precision="float64") for run in varied(RUN)]
    whole, fewer = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    expected = losses_of(whole, 100)
    losses_of(fewer, 37)  # in the middle of a block of the order
    fewer.keep([0, 2])
    np.testing.assert_allclose(losses_of(fewer, 63), expected[37:, [0, 2]], rtol=0, atol=1e-12)


def test_a_pack_goes_on_from_its_state_bit_for_bit() -> None:
    runs = varied(RUN)
    whole, halved = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    expected = losses_of(whole, 90)
    losses_of(halved, 41)
    later = MemorizerPack(runs, CPU, compiled=False)
    later.load(halved.state())
    assert np.array_equal(losses_of(later, 49), expected[41:])


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


def test_a_choice_that_is_not_made_leaves_the_digest_alone() -> None:
    assert "last_batch" not in RUN.to_dict()
    short = replace(RUN, last_batch="short")
    assert short.digest != RUN.digest
    assert short.key != RUN.key
    assert spec_from_dict(short.to_dict()) == short
    assert spec_from_dict(RUN.to_dict()) == RUN


def test_the_learning_rate_is_that_of_torch_schedulers() -> None:
    run = replace(RUN, steps=400, learning_rate=1e-3)
    optimizer = torch.optim.Adam([torch.zeros(1)], lr=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=380)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[20])
    for step in range(400):
        assert packed_rate(run, step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9, abs=1e-12)
        optimizer.step()
        schedule.step()


def test_more_examples_begin_with_those_of_fewer() -> None:
    for context_type in ("shared", "per_example"):
        fewer, more = (
            draw_examples(replace(RUN, context_type=context_type, examples=examples)) for examples in (20, 60)
        )
        assert torch.equal(more.queries[:20], fewer.queries)
        assert torch.equal(more.labels[:20], fewer.labels)
        assert torch.equal(more.contexts[: len(fewer.contexts)], fewer.contexts)
        assert more.labels.max() < SMALL.outputs


def test_packs_have_one_shape_and_no_more_models_than_asked() -> None:
    runs = [replace(run, seed=seed) for run in OPTIONS.values() for seed in range(5)]
    packs = in_packs(runs, 2)
    assert sorted(run.key for pack in packs for run in pack) == sorted(run.key for run in runs)
    assert {len(pack) for pack in packs} == {1, 2}
    assert all(len({run.group for run in pack}) == 1 for pack in packs)
    with pytest.raises(ValueError, match="one family"):
        MemorizerPack([runs[0], runs[-1]], CPU, compiled=False)


def test_a_spec_survives_json() -> None:
    for run in OPTIONS.values():
        assert spec_from_dict(json.loads(json.dumps(spec_to_dict(run)))) == run
    assert len({run.key for run in OPTIONS.values()}) == len(OPTIONS)


def test_what_is_wrong_with_a_run_is_told_at_once() -> None:
    wrong = replace(RUN, examples=0, task="regression", memorizer=replace(SMALL, heads=0, head_dim=9))
    with pytest.raises(UserError) as told:
        check_memorization_run(wrong)
    for sentence in ("heads is 0", "examples is 0", "head_dim is 9, above the width 8", "outputs is 7"):
        assert sentence in str(told.value)


def test_records(tmp_path: Path) -> None:
    """What a pack leaves: whole records, one of them stopped early because it had memorized everything."""
    easy = replace(RUN, examples=8, batch_size=8, learning_rate=3e-2, steps=4000)
    hard = replace(easy, seed=1, stop_when_memorized=False, steps=200)
    outcomes = train_packs([[easy, hard]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert outcomes == {easy.key: "FINISHED", hard.key: "FINISHED"}
    first, second = (records.read_record(tmp_path / "runs" / run.key) for run in (easy, hard))
    assert first.run == easy
    assert second.run == hard
    assert first.summary["memorized"]
    assert first.summary["final_accuracy"] == 1.0
    assert first.summary["steps_done"] < 4000
    assert second.summary["steps_done"] == 200
    assert first.history["step"].to_pylist() == list(range(50, first.summary["steps_done"] + 1, 50))
    assert first.history["accuracy"].to_pylist()[-1] == 1.0
    assert 0 <= first.summary["saturated_share"] <= 1


def test_a_run_that_diverges_leaves_the_others_in_peace(tmp_path: Path) -> None:
    steady = replace(RUN, task="regression", memorizer=replace(SMALL, outputs=1, value_dim=None))
    wild = replace(steady, seed=1, learning_rate=1e18)
    outcomes = train_packs([[steady, wild]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert outcomes[steady.key] == "FINISHED"
    assert f"The loss of {wild.key} is" in outcomes[wild.key]
    assert not (tmp_path / "runs" / wild.key / "summary.json").exists()
    assert records.read_record(tmp_path / "checkpoints" / wild.key).status == records.FAILED
    again = train_packs([[steady, wild]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert again[steady.key] == "FINISHED"
    assert "It is not tried again" in again[wild.key]


def test_the_history_of_a_model_does_not_depend_on_its_pack(tmp_path: Path) -> None:
    """Its neighbours end, and are evaluated, at other steps."""
    run = replace(RUN, precision="float64", stop_when_memorized=False)
    others = [replace(run, seed=1, steps=130), replace(run, seed=2, evaluate_every=70)]
    train_packs([[run]], tmp_path / "alone", tmp_path / "checkpoints alone", Runtime("cpu"))
    train_packs([[run, *others]], tmp_path / "packed", tmp_path / "checkpoints", Runtime("cpu"))
    alone, packed = (records.read_record(tmp_path / name / run.key).history for name in ("alone", "packed"))
    for column in alone.column_names:
        np.testing.assert_allclose(packed[column].to_numpy(), alone[column].to_numpy(), rtol=0, atol=1e-10)


def test_a_model_that_ends_at_the_first_step(tmp_path: Path) -> None:
    run = replace(RUN, steps=1)
    assert train_packs([[run]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu")) == {
        run.key: "FINISHED"
    }


class Interrupted(Exception):
    pass


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process's training as a SIGKILL would, when a pack has done that step."""
    original = MemorizerPack.step

    def stepping(pack: MemorizerPack) -> None:
        original(pack)
        if pack.step_number == step:
            raise Interrupted

    monkeypatch.setattr(MemorizerPack, "step", stepping)


@pytest.mark.parametrize("step", [60, 110, 160, 240])
def test_a_pack_whose_models_left_goes_on_exactly(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and after models ended and the pack got smaller; in float32, where its size shows."""
    m = Memorizer(heads=12, context=32, head_dim=16, width=32, value_dim=1, outputs=50)
    run = replace(RUN, memorizer=m, examples=200, batch_size=64, steps=300, stop_when_memorized=False)
    runs = [replace(run, seed=seed, steps=steps) for seed, steps in enumerate((100, 150, 200, 300))]
    runtime = Runtime("cpu", checkpoint_seconds=1e9)
    train_packs([runs], tmp_path / "whole", tmp_path / "a", runtime)
    with monkeypatch.context() as patch:
        interrupt_at(step, patch)
        with pytest.raises(Interrupted):
            train_packs([runs], tmp_path / "killed", tmp_path / "b", runtime)
    outcomes = train_packs([runs], tmp_path / "killed", tmp_path / "b", runtime)
    assert outcomes == {run.key: "FINISHED" for run in runs}
    for each in runs:
        paths = (tmp_path / name / each.key / "history.parquet" for name in ("whole", "killed"))
        assert len({path.read_bytes() for path in paths}) == 1


def test_a_model_whose_folder_was_deleted_is_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        replace(RUN, seed=seed, steps=steps, stop_when_memorized=False)
        for seed, steps in ((0, 50), (1, 100), (2, 300))
    ]
    runtime = Runtime("cpu", checkpoint_seconds=0.0)
    with monkeypatch.context() as patch:
        interrupt_at(200, patch)
        with pytest.raises(Interrupted):
            train_packs([runs], tmp_path / "runs", tmp_path / "checkpoints", runtime)
    for place in ("runs", "checkpoints"):
        shutil.rmtree(tmp_path / place / runs[0].key)
    outcomes = train_packs([runs], tmp_path / "runs", tmp_path / "checkpoints", runtime)
    assert outcomes == {run.key: "FINISHED" for run in runs}
    assert records.read_record(tmp_path / "runs" / runs[0].key).summary["steps_done"] == 50


def test_one_process_at_a_time_trains_a_run_whatever_its_pack(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    held = tmp_path / "checkpoints" / runs[1].key
    with (
        checkpoint.only_process(held, 0, print, lambda: False),
        pytest.raises(UserError, match="Another process is training"),
    ):
        train_packs([runs], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))


def newest(folder: Path) -> int:
    """The step of the newest checkpoint of a pack; 0 without one."""
    return max((int(path.stem[5:]) for path in folder.glob("checkpoints/*/pack-*/step-*.pt")), default=0)


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_histories(tmp_path: Path) -> None:
    """A pack of two shapes."""
    options = ["--heads", "2,3", "--examples", "60,90", "--context", "6", "--head-dim", "4", "--width", "16"]
    options += ["--value-dim", "1", "--steps", "4000", "--evaluate-every", "200", "--seeds", "2"]
    options += ["--checkpoint-minutes", "0.001", "--batch-size", "32", "--to-the-end", "--no-compile"]
    options += ["--pack", "8", "--padding", "1.3"]

    def command(out: Path) -> list[str]:
        return [PYTHON, str(SCRIPTS / "train_memorization.py"), *options, "--out", str(out)]

    subprocess.run(command(tmp_path / "undisturbed"), check=True, capture_output=True)
    codes = []
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
        before = newest(tmp_path / "killed")
        process = subprocess.Popen(command(tmp_path / "killed"), stderr=subprocess.PIPE)
        while newest(tmp_path / "killed") <= before:
            assert process.poll() is None, "it ended before it could be disturbed"
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
        codes.append(process.returncode)
    assert len(list((tmp_path / "killed").glob("checkpoints/*/pack-*"))) == 1
    assert codes == [-signal.SIGKILL, 128 + signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGUSR1]
    subprocess.run(command(tmp_path / "killed"), check=True, capture_output=True)
    undisturbed = sorted((tmp_path / "undisturbed").glob("runs/*/*/history.parquet"))
    assert len(undisturbed) == 8
    for path in undisturbed:
        other = tmp_path / "killed" / path.relative_to(tmp_path / "undisturbed")
        assert other.read_bytes() == path.read_bytes()
    other = subprocess.run(
        [*command(tmp_path / "killed"), "--learning-rate", "0.01"], capture_output=True, text=True
    )
    assert other.returncode == 2
    assert "is another run with that name: its learning_rate is 0.001, not 0.01" in other.stderr
    assert (tmp_path / "killed/runs.csv").read_text() == (tmp_path / "undisturbed/runs.csv").read_text()

"""One step and one summary: what micro-batches, kernels, compilers and parametrizations leave as it is."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import small_llama, small_run
from trained import CPU, Stores, history_bytes, losses_and_gradients, stop, train

from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.functions import linear_cross_entropy
from shapelaw.models.kernels import llama
from shapelaw.models.kernels.cpp import compiler
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import Block
from shapelaw.training import trainer
from shapelaw.training.hardware import Ranks
from shapelaw.training.packs import can_compile
from shapelaw.training.trainer import CompiledDecoder, CompiledPart, Trainer


def test_losses_that_are_read_later_are_the_same_and_name_their_step(stores: Stores, tmp_path: Path) -> None:
    run, ranks = small_run(steps=100, log_every=100), Ranks(0, 1, torch.device("cpu"))
    at_once, later = (Trainer(run, stores, tmp_path / name, CPU, ranks) for name in ("at once", "later"))
    for one in (at_once, later):
        for _ in range(5):
            one.step()
    later.progress.loss_sum = 0.0
    for step in range(1, 6):
        later._unread.append((step, torch.tensor(at_once.progress.loss_sum / 5)))
    later.state()  # reads what is left
    assert later.progress.loss_sum == pytest.approx(at_once.progress.loss_sum)
    later._unread = [(7, torch.tensor(1.0)), (8, torch.tensor(float("nan"))), (9, torch.tensor(1.0))]
    later.state()
    assert [one.numbers["diverged_at_step"] for one in later.ended()] == [8]


def test_another_seed_has_other_weights_from_the_start(stores: Stores, tmp_path: Path) -> None:
    ranks = Ranks(0, 1, torch.device("cpu"))
    one, other = (Trainer(small_run(seed), stores, tmp_path, CPU, ranks).model for seed in (0, 1))
    assert not torch.equal(one.tokens.weight, other.tokens.weight)


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
def test_llamas_kernel_changes_the_rounding_alone_and_a_resumed_run_not_a_byte(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small_llama(steps=12, log_every=1, evaluate_every=6)
    plain = train(run, stores, tmp_path / "plain").history
    monkeypatch.setattr(trainer, "_KERNEL_STEPS", run.training.steps)
    kernel = train(run, stores, tmp_path / "kernel").history
    assert kernel["train_loss"].to_pylist() == pytest.approx(plain["train_loss"].to_pylist(), rel=1e-5)
    for name in ("resumed", "resumed without it"):
        stop(run, stores, tmp_path / name, 5)
        with monkeypatch.context() as patch:
            if name != "resumed":
                patch.setattr(llama, "has_llama", lambda: False)
            train(run, stores, tmp_path / name)
        said = capsys.readouterr().err
        assert ("under another setting" in said) == (name != "resumed")
        assert (", Llama's kernel)" in said) == (name != "resumed")
    assert history_bytes(tmp_path / "resumed") == history_bytes(tmp_path / "kernel")


def test_micro_batches_do_not_change_the_curve(stores: Stores, tmp_path: Path) -> None:
    run = small_run(steps=20)
    whole = train(run, stores, tmp_path / "whole").history
    parts = train(run, stores, tmp_path / "parts", replace(CPU, micro_batch=3)).history
    for column in ("train_loss", "gradient_norm"):
        assert parts[column].to_pylist() == pytest.approx(whole[column].to_pylist(), rel=1e-4)


def test_a_test_loss_that_is_not_finite_ends_the_run(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapelaw.training.trainer.evaluate", lambda *_: math.nan)
    record = train(small_run(), stores, tmp_path)
    assert (record.status, record.summary["diverged_at_step"]) == ("FINISHED", 30)
    assert record.history["step"].to_pylist() == [10, 20]


needs_compiler = pytest.mark.skipif(
    not can_compile(torch.device("cpu")), reason="torch.compile needs a C++ compiler"
)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    ("block", "parametrization", "part"), [("gpt2", "standard", "model"), ("llama", "completep", "blocks")]
)
def test_compiled_parts_give_the_plain_losses_and_gradients(
    block: Block, parametrization: Parametrization, part: CompiledPart
) -> None:
    from torch._dynamo.utils import counters

    model = Decoder(make_shape(2, 16, 2, 53, 8, block=block), parametrization=parametrization)
    initialise(model, 0)
    ids = torch.randint(0, 53, (4, 9), generator=torch.Generator().manual_seed(0))
    plain = losses_and_gradients(model, model, ids)
    counters.clear()
    compiled = losses_and_gradients(CompiledDecoder(model, part), model, ids)
    assert len(compiled) == len(plain)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, atol=2e-6, rtol=2e-5)
    # the hidden states, or one block for both; and the loss
    assert counters["stats"]["unique_graphs"] == 2


@needs_compiler
@pytest.mark.usefixtures("compiling")
@pytest.mark.slow
def test_the_compiled_loss_equals_pytorchs_in_bfloat16_too() -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(96, 8, generator=generator), torch.randn(50, 8, generator=generator)
    targets = torch.randint(0, 50, (96,), generator=generator)
    for precision, tolerance in ((torch.float32, 2e-6), (torch.bfloat16, 2e-2)):
        found = []
        for chunk, compiled, columns in ((96 * 50, False, 1), (40 * 50, True, 1), (40 * 50, True, 16)):
            x_, w_ = x.clone().requires_grad_(), w.clone().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
                loss = linear_cross_entropy(x_, w_, targets, chunk, compiled, columns)
            loss.backward()
            found.append((loss, x_.grad, w_.grad))
        for plain, fast, padded in zip(*found, strict=True):
            torch.testing.assert_close(fast, plain, atol=tolerance, rtol=tolerance)
            torch.testing.assert_close(padded, plain, atol=tolerance, rtol=tolerance)

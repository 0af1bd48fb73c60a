"""The fast path of a GPU, as far as a CPU can tell: the same numbers as the plain one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small import small_run

from shapelaw.corpora.token_store import TokenStore, gather_windows
from shapelaw.models.cross_entropy import (
    equal_rows,
    linear_cross_entropy,
    loss_and_gradient,
    loss_and_gradient_unscattered,
)
from shapelaw.models.decoder import Decoder, initialise, takes_products
from shapelaw.specs.shapes import make_shape
from shapelaw.training.batches import Batches
from shapelaw.training.compiled import CompiledDecoder, CompiledPart
from shapelaw.training.distributed import Ranks
from shapelaw.training.hardware import compiling_in
from shapelaw.training.packed import can_compile
from shapelaw.training.trainer import Diverged, Runtime, Trainer

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(not can_compile(CPU), reason="torch.compile needs a C++ compiler")


@pytest.fixture
def compiling(tmp_path: Path) -> Iterator[None]:
    """A compiler's folder that is this test's own."""
    torch.compiler.reset()
    with compiling_in(tmp_path / "compiled", CPU):
        yield
    torch.compiler.reset()


def results(forward: torch.nn.Module, model: Decoder, ids: torch.Tensor) -> list[torch.Tensor]:
    """The loss and every gradient of two micro-batches."""
    model.zero_grad()
    losses = [forward(part[:, :-1], part[:, 1:]) for part in ids.split(2)]
    torch.stack(losses).sum().backward()
    return [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("part", ["model", "blocks"])
def test_compiled_parts_give_the_plain_losses_and_gradients(part: CompiledPart) -> None:
    from torch._dynamo.utils import counters

    model = Decoder(make_shape(2, 16, 2, 53, 8))
    initialise(model, 0)
    ids = torch.randint(0, 53, (4, 9), generator=torch.Generator().manual_seed(0))
    plain = results(model, model, ids)
    counters.clear()
    compiled = results(CompiledDecoder(model, part), model, ids)
    assert len(compiled) == len(plain)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, atol=2e-6, rtol=2e-5)
    # the hidden states, or one block for both; and the loss
    assert counters["stats"]["unique_graphs"] == 2


@pytest.mark.parametrize(("rows", "most"), [(512 * 128, 2670), (96, 40), (7, 3), (13, 12), (5, 9), (1, 1)])
def test_chunks_are_equal_where_that_is_cheap(rows: int, most: int) -> None:
    size = equal_rows(rows, most)
    parts, least = -(-rows // size), -(-rows // most)
    assert 1 <= size <= most
    assert parts < 2 * least
    if any(rows % n == 0 for n in range(least, 2 * least)):
        assert rows % size == 0


def test_the_loss_without_scattered_writes_is_the_same_with_columns_of_no_word_too() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 30 * torch.randn(40, 17, generator=generator)
    targets = torch.randint(0, 17, (40,), generator=generator)
    plain = loss_and_gradient(logits, targets)
    loss, gradient = loss_and_gradient_unscattered(F.pad(logits, (0, 15)), targets, 17)
    torch.testing.assert_close((loss, gradient[:, :17]), plain)
    assert not gradient[:, 17:].any()


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


def test_attention_is_by_products_where_there_is_no_flash_kernel() -> None:
    assert takes_products("cpu", 128, 64)
    assert takes_products("cuda", 128, 257)
    assert not takes_products("cuda", 128, 256)
    assert not takes_products("cuda", 1024, 500)


def test_both_ways_of_attention_give_the_same_losses() -> None:
    model = Decoder(make_shape(2, 16, 2, 53, 8)).double()
    initialise(model, 0)
    ids = torch.randint(0, 53, (4, 9), generator=torch.Generator().manual_seed(0))
    found = []
    for way in ("products", "fused"):
        for block in model.blocks:
            block.attention.way = way
        found.append(results(model, model, ids))
    for products, fused in zip(*found, strict=True):
        torch.testing.assert_close(products, fused)


def test_tokens_on_the_device_give_the_windows_of_the_memory_map(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    store = stores[0]
    mapped, resident = (Batches(store, 32, CPU, here) for here in (False, True))
    starts = np.array([0, 5, 5, mapped.windows - 1])
    expected = torch.from_numpy(gather_windows(store, starts, 32))
    for batches in (mapped, resident):
        found = batches.gather(starts)
        assert found.dtype == torch.int64
        assert torch.equal(found, expected)


def test_losses_that_are_read_later_are_the_same_and_name_their_step(
    stores: tuple[TokenStore, TokenStore], tmp_path: Path
) -> None:
    run = small_run(steps=100, log_every=100)
    runtime, ranks = Runtime("cpu", threads=1), Ranks(0, 1, CPU)
    at_once, later = (Trainer(run, *stores, tmp_path / name, runtime, ranks) for name in ("at once", "later"))
    for trainer in (at_once, later):
        for _ in range(5):
            trainer.step()
    later.progress.loss_sum = 0.0
    for step in range(1, 6):
        later._unread.append((step, torch.tensor(at_once.progress.loss_sum / 5)))
    later.save()  # reads what is left
    assert later.progress.loss_sum == pytest.approx(at_once.progress.loss_sum)
    later._unread = [(7, torch.tensor(1.0)), (8, torch.tensor(float("nan"))), (9, torch.tensor(1.0))]
    with pytest.raises(Diverged, match="is nan at step 8"):
        later.save()

"""What torch.compile makes of the decoder and its loss: the numbers of the plain ones."""

from __future__ import annotations

import pytest
import torch
from losses_and_gradients import losses_and_gradients

from shapelaw.models.cross_entropy import linear_cross_entropy
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import Block, make_shape
from shapelaw.training.compiled import CompiledDecoder, CompiledPart
from shapelaw.training.packed import can_compile

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(not can_compile(CPU), reason="torch.compile needs a C++ compiler")


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("part", ["model", "blocks"])
@pytest.mark.parametrize(
    ("block", "parametrization"), [("gpt2", "standard"), ("llama", "standard"), ("llama", "completep")]
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

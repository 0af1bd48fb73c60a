"""How a budget of FLOPs is shared out between size and tokens."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import output_of
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer.allocation import (
    FLOPS_A_PARAMETER,
    PUBLISHED,
    allocation,
    allocation_text,
    law_of_losses,
)
from shapelaw.advice.evidence.predicted import allocation_law
from shapelaw.advice.evidence.public import public_allocation, public_evidence
from shapelaw.specs.sizes import Counting

POWERS = st.floats(0.2, 0.6)


@settings(max_examples=30)
@given(POWERS, POWERS, st.floats(1e18, 1e22))
def test_a_law_of_losses_has_its_least_loss_at_the_size_that_it_names(
    alpha: float, beta: float, flops: float
) -> None:
    factors = (400.0, 900.0)
    size = law_of_losses("x", (alpha, beta), factors, (1.0, 2.0)).size(flops)

    def loss(of: float) -> float:
        return factors[0] * of**-alpha + factors[1] * (flops / (FLOPS_A_PARAMETER * of)) ** -beta

    assert loss(size) < min(loss(0.9 * size), loss(1.1 * size))


def test_published_laws_say_what_their_papers_say() -> None:
    """Besiroglu et al. 2024: about 20 tokens a parameter at Chinchilla's 5.76e23 FLOPs, 70 billion parameters.

    DeepSeek LLM (2024), section 3.2: M = 0.1715 C^0.5243 FLOPs a token, of which 6 are a parameter's.
    """
    refitted, deepseek = PUBLISHED
    assert 60e9 < refitted.size(5.76e23) < 80e9
    assert deepseek.size(1e20) == pytest.approx(0.1715 * 1e20**0.5243 / FLOPS_A_PARAMETER, rel=0.001)


def test_no_other_size_of_the_same_flops_loses_less() -> None:
    """By the mean of the draws, with the best depth of each size."""
    found = public_allocation(Counting(vocab_size=32000), 1e20, 0.005)
    assert found.interval is not None
    assert found.flat is not None
    (low, high), (least, most) = found.interval, found.flat
    assert low < least < found.size < most < high
    used = FLOPS_A_PARAMETER * found.size * found.tokens
    assert 1.0 < used / 1e20 < 1.2  # the embedding is not multiplied


def test_laws_of_other_labs_widen_the_interval() -> None:
    counting, evidence = Counting(vocab_size=32000), public_evidence()
    size = allocation(evidence, counting, 1e20, 0.005, PUBLISHED).size
    near = [replace(law, factor=law.factor * size / law.size(1e20)) for law in PUBLISHED]
    far = [replace(law, factor=2.0 * law.factor) for law in near]
    widths = []
    for laws in (near, far):
        found = allocation(evidence, counting, 1e20, 0.005, laws)
        assert found.interval is not None
        widths.append(math.log(found.interval[1] / found.interval[0]))
    assert widths[0] < 0.5 < 2.0 * math.log(2.0) < widths[1]


@pytest.mark.parametrize("flops", [1e17, 1e23])
def test_beyond_the_evidence_only_laws_tell(flops: float) -> None:
    found = public_allocation(Counting(vocab_size=32000), flops, 0.005)
    assert found.interval is None
    assert found.size == pytest.approx(math.exp(np.mean([math.log(law.size(flops)) for law in found.laws])))
    assert "the laws' mean" in " ".join(allocation_text(found).split())


def test_a_law_is_found_again_from_its_losses() -> None:
    sizes, ratios = np.meshgrid(np.geomspace(7e7, 2e9, 6), [20.0, 40.0, 160.0])
    runs = pd.DataFrame({"total_params": sizes.ravel(), "tokens": (sizes * ratios).ravel(), "told": 0.01})
    loss = 1.8 + 480.0 * runs["total_params"] ** -0.35 + 2100.0 * runs["tokens"] ** -0.37
    found = allocation_law(runs.assign(loss=loss + 0.01), "x")
    true = law_of_losses("x", (0.35, 0.37), (480.0, 2100.0), found.flops)
    assert found.exponent == pytest.approx(true.exponent, abs=0.01)
    assert found.size(1e20) == pytest.approx(true.size(1e20), rel=0.02)


def numbers(folder: Path, *arguments: object) -> dict[str, Any]:
    return dict(json.loads(output_of("shape", *arguments, "--json", cwd=folder)))


def test_a_budget_in_flops_or_hours_has_an_answer(tmp_path: Path) -> None:
    by_flops = numbers(tmp_path, "--flops", "2.7648e20", "--vocab", "32k")
    by_hours = numbers(tmp_path, "--hours", 24, "--gpus", 8, "--flops-per-gpu", "4e14", "--vocab", "32k")
    assert by_flops == by_hours
    assert by_flops["size"] == by_flops["budget"]["size"]
    assert by_flops["tokens"] == by_flops["budget"]["tokens"]
    assert by_flops["best"]["depth"] >= 20

"""What depths of one size cost, by the committed evidence: properties, and answers by another way."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer.costs import Costs, Question, as_quick, ask, evidence_of
from shapelaw.advice.answer.laws import PUBLISHED, read_law
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.clocks import Clock, Serving, log_blocks_at, log_work, read_clock
from shapelaw.advice.evidence.public import transitions_of
from shapelaw.errors import UserError
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL
from shapelaw.fits.projection import first_depths
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import published_json
from shapelaw.studies.transitions.analysis import published_projection

CONTENT = published_json("evidence")
EVIDENCE = evidence_of(CONTENT)
BLOCK = Counting(SizeAxis.BLOCK)
PUBLIC = Clock(0.7, np.log([1.0, 512.0]), np.zeros(2), "public", 0.02)


def asked(size: float, tokens: float = 3e10, counting: Counting = BLOCK, **options: object) -> Costs:
    return ask(EVIDENCE, Question(size, counting, tokens, EVIDENCE.clock, **options))


countings = st.builds(
    Counting, st.sampled_from(list(SizeAxis)), st.sampled_from([257, 32_000, 151_936]), st.booleans()
)


@given(st.floats(math.log(8e6), math.log(2e10)), st.floats(math.log(1e9), math.log(2e13)), countings)
@settings(max_examples=20, deadline=None)
def test_costs_are_above_zero_and_nothing_at_the_best_depth(
    log_size: float, log_tokens: float, counting: Counting
) -> None:
    if counting.width_at(math.exp(log_size), 1.0) < 16:
        with pytest.raises(UserError, match="no room"):
            asked(math.exp(log_size), math.exp(log_tokens), counting)
        return
    found = asked(math.exp(log_size), math.exp(log_tokens), counting)
    assert (found.curve >= 0).all()
    best = found.at(found.best.depth)
    assert best.value == 0.0
    assert best.params_worth == pytest.approx(0.0, abs=1e-9)
    assert found.best.low <= found.best.own_low <= found.best.depth <= found.best.own_high <= found.best.high
    low, high = found.flat()
    assert low <= found.best.depth <= high
    for depth in found.rows():
        cost = found.at(depth)
        assert 0.0 <= cost.low <= cost.value <= cost.high
        assert 0.0 <= cost.params_worth < 1.0
    assert found.best.depth in found.rows()


@pytest.mark.parametrize(
    ("size", "told"),
    [(7.6e6, True), (5.2e9, True), (3e6, False), (5.9e9, False), (7e9, False), (1.3e9, True)],
)
def test_costs_are_told_down_to_a_third_and_up_to_three_times(size: float, told: bool) -> None:
    assert asked(size).told is told
    assert not asked(size, 9e8).told


def test_a_small_total_is_told_unless_hardly_any_of_it_is_blocks_or_the_best_depth_lies_far_beyond() -> None:
    """Far beyond 3 to 80 layers: 500 of width 32 beside a vocabulary of two million, 460 after 1e20 tokens."""
    assert asked(2e7, 1e9, Counting()).told
    assert not asked(3e7, 1e9, Counting(rank=512)).told
    assert not asked(1.5e7, 1e9, Counting()).told
    assert not asked(125e6, 2.5e9, Counting(vocab_size=2_000_000)).told
    assert not asked(1.3e9, 1e20, Counting()).told


def test_a_machine_s_own_times_are_read(tmp_path: Path) -> None:
    file = tmp_path / "speed.csv"
    rows = [(12, 2.0e8, 1e-6), (24, 2.0e8, 1.4e-6), (48, 2.0e8, 2.2e-6)]
    lines = ["# made", "depth,width,block_params,seconds_per_token"]
    file.write_text("\n".join([*lines, *(f"{L},512,{n},{s}" for L, n, s in rows)]), encoding="utf-8")
    clock = read_clock(file, 257, 128, PUBLIC)
    work = log_work(np.log([2e8] * 3), np.log([12.0, 24.0, 48.0]), 257, 128)
    times = np.exp(clock.at(work, np.log([12.0, 24.0, 48.0])))
    assert times / times[0] == pytest.approx(np.array([1.0, 1.4, 2.2]), rel=1e-6)
    assert clock.exponent == 0.7
    # the table's own vocabulary and context, where it has them
    more = [f"{line},257,128" for line in file.read_text(encoding="utf-8").splitlines()[2:]]
    file.write_text("\n".join([lines[1] + ",vocab_size,context_length", *more]), encoding="utf-8")
    assert read_clock(file, 50257, 2048, PUBLIC).log_time == pytest.approx(clock.log_time)


def test_times_of_several_sizes_say_how_time_follows_size(tmp_path: Path) -> None:
    file = tmp_path / "speed.csv"
    rows = []
    for depth in (12, 24):
        for blocks in (1e8, 4e8):
            work = float(np.exp(log_work(np.log([blocks]), np.log([float(depth)]), 257, 128))[0])
            rows.append(f"{depth},{blocks},{work**0.9 * depth**0.2}")
    file.write_text("\n".join(["depth,block_params,seconds_per_token", *rows]), encoding="utf-8")
    clock = read_clock(file, 257, 128, PUBLIC)
    assert clock.exponent == pytest.approx(0.9)
    assert np.diff(clock.log_time)[0] == pytest.approx(0.2 * math.log(2.0))


def test_times_between_depths_have_no_corner_that_draws_the_best_depth() -> None:
    """Lines from 12 to 24 to 48 layers made every second draw's best depth 24."""
    clock = Clock(0.8, np.log([12.0, 24.0, 48.0]), np.log([1.0, 1.05, 1.27]), "made")
    depths = np.log(np.geomspace(6.0, 96.0, 400))
    slopes = np.diff(clock.at(np.zeros_like(depths), depths)) / np.diff(depths)
    assert np.abs(np.diff(slopes)).max() < 0.01
    assert slopes[0] == pytest.approx(slopes[1])  # straight beyond
    line = Clock(1.0, np.log([10.0, 20.0]), np.log([1.0, 2.0]), "made")
    beyond = np.exp(line.at(np.zeros(3), np.log([5.0, 14.142135623730951, 40.0])))
    assert beyond == pytest.approx(np.array([0.5, math.sqrt(2.0), 4.0]))
    assert np.exp(clock.at(np.zeros(3), clock.log_depth)) == pytest.approx([1.0, 1.05, 1.27])


def test_a_table_of_times_tells_their_errors_by_its_steps_or_its_scatter(tmp_path: Path) -> None:
    file, head = tmp_path / "speed.csv", "depth,block_params,seconds_per_token,low,high\n"
    file.write_text(head + "12,1e8,1.0,0.98,1.02\n24,1e8,1.2,,\n48,1e8,1.6,1.5,1.7\n", encoding="utf-8")
    errors = read_clock(file, 257, 128, PUBLIC).time_err
    assert errors == pytest.approx([0.02, 0.0, math.log(1.7 / 1.5) / 2], rel=1e-3, abs=1e-9)
    scattered = [(6, 1.0), (12, 1.3), (24, 1.0), (48, 1.3), (96, 1.0)]
    file.write_text(head + "".join(f"{L},1e8,{s},{s},{s}\n" for L, s in scattered), encoding="utf-8")
    errors = read_clock(file, 257, 128, PUBLIC).time_err
    assert errors is not None
    assert (errors > 0.1).all()


@pytest.mark.parametrize("size", [1e8, 1.3e9, 6.7e9])
@pytest.mark.parametrize("tied", [True, False])
def test_the_published_law_says_as_a_witness_what_it_says_by_itself(size: float, tied: bool) -> None:
    law = transitions_of(CONTENT["law"])
    counting = Counting(vocab_size=50257, tied=tied, block="gpt2")
    depth, low, high = law.depth(asked(size, 3e10, counting))

    def blocks(depths: Floats) -> Floats:
        return np.array([12.0 * one * counting.width_at(size, one) ** 2 for one in depths])

    firsts = first_depths(read_law(PUBLISHED).forms, blocks)
    own_low, own, own_high = np.quantile(firsts, (INTERVAL[0], 0.5, INTERVAL[1]))
    assert depth == pytest.approx(own, rel=0.03)
    assert low <= own_low * 1.02
    assert high >= own_high * 0.98


def test_the_published_law_gives_gpt_3_s_sizes_depths_near_those_of_its_table_1() -> None:
    """Of Levine et al. 2020, where the shallower of two depths that tie, six layers apart, stands for the best one.

    They take the embedding of the trained width off the size, where we take the advised.
    """
    law = transitions_of(CONTENT["law"])
    for row in published_projection().itertuples():
        found = asked(row.params, 3e11, Counting(tied=True, block="gpt2"))
        assert -1.5 < law.depth(found)[0] - row.optimal_depth < 4.0


def test_a_law_that_no_depth_satisfies_says_so() -> None:
    law = transitions_of(CONTENT["law"])
    flat = replace(law, log_blocks=tuple(np.minimum(curve, 15.0) for curve in law.log_blocks))
    assert flat.depth(asked(1.3e9))[0] == math.inf


def test_a_roofline_tells_the_published_latencies_of_three_shapes() -> None:
    """Bian et al. 2025 (Waterpine/open-lm-morph, README): 3.61, 2.57 and 1.96 seconds of the same tokens, V = 50,432.

    With half a millisecond a layer, as eager PyTorch takes for its kernels, and a memory of 1.6 TB/s.
    """
    serving = Serving(1, 256, 1.6e12, layer_seconds=5e-4)
    published = {(24, 2048): 3.61, (16, 2560): 2.57, (12, 3072): 1.96}
    told = {
        (depth, width): serving.seconds(12.0 * depth * width**2 + 50432 * width, float(depth), float(width))
        for depth, width in published
    }
    for first, second in itertools.combinations(published, 2):
        ratio = told[second] / told[first] / (published[second] / published[first])
        assert ratio == pytest.approx(1.0, abs=0.08)


def test_sizes_that_are_as_quick_take_that_time() -> None:
    serving, counting = Serving(1, 4096, 3.3e12), Counting(vocab_size=32000)
    question = Question(1.3e9, counting, 3e10, serving)
    times = question.log_times
    grid = np.log(np.arange(2.0, 40.0))
    wanted = float(times(log_blocks_at(1.3e9, counting, np.log([20.0])), np.log([20.0]))[0])
    sizes = as_quick(question, wanted, np.full_like(grid, 1.3e9), grid)
    assert times(log_blocks_at(sizes, counting, grid), grid) == pytest.approx(
        np.full_like(grid, wanted), abs=1e-4
    )
    assert sizes[18] == pytest.approx(1.3e9)
    assert np.all(np.diff(sizes) < 0)

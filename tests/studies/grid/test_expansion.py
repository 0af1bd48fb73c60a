"""From blocks to runs: every combination once, what is left out, and the widths that follow from a size."""

import math
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import EQUAL_SHARE, Shape
from shapelaw.studies.grid.expansion import (
    REACH,
    Block,
    Defaults,
    Impossible,
    Network,
    all_pairings,
    expanded,
    networks_of,
    number_of_runs,
    runs_of_networks,
)
from shapelaw.studies.grid.language import repeated_problems
from shapelaw.studies.grid.settings import OF_ATTENTION, Ratio
from shapelaw.studies.grid.study import transition_warnings

DEFAULTS = Defaults("wiki", Training(steps=100, batch_size=8))


def few(values: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Blocks of possible combinations over every kind of field."""
    values: dict[str, tuple[Any, ...]] = {}
    for name, kinds in (
        ("corpus", st.sampled_from(["wiki", "prose"])),
        ("vocab_size", st.integers(257, 600)),
        ("embedding_rank", st.sampled_from([None, 4, 8])),
        ("tied", st.just(False)),
        ("heads", st.sampled_from([1, 2, 4])),
    ):
        if draw(st.booleans()):
            values[name] = draw(few(kinds))
    widths = None
    if draw(st.booleans()):
        values["depth"] = draw(few(st.integers(1, 6)))
        values["width"] = draw(few(st.sampled_from([8, 16, 24, 32])))
        repeated = {values["depth"][0]: [values["width"][0], 1000]}
    else:
        rows = st.lists(st.sampled_from([8, 16, 24]), min_size=1, max_size=3)
        widths = draw(st.dictionaries(st.integers(1, 4), rows, min_size=1, max_size=3))
        repeated = {depth: row[:1] for depth, row in widths.items()}
    for name, numbers in (("learning_rate", st.sampled_from([1e-3, 2e-3, 4e-3])), ("dropout", st.just(0.1))):
        if draw(st.booleans()):
            values[name] = draw(few(numbers))
    seeds, repeated_seeds = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Block("grids.mine", values, widths, seeds, repeated, repeated_seeds)


@given(blocks())
def test_every_combination_is_trained_once_with_its_seeds(block: Block) -> None:
    networks = networks_of([block], DEFAULTS)
    runs = list(runs_of_networks(networks))
    assert len(runs) == len(set(runs)) == len({run.key for run in runs}) == number_of_runs(block)
    assert not any(isinstance(one, Impossible) for one in expanded(block, DEFAULTS))
    shapes = (
        {(depth, width) for depth, row in block.widths.items() for width in row}
        if block.widths is not None
        else set(product(block.values["depth"], block.values["width"]))
    )
    assert {(run.shape.depth, run.shape.width) for run in runs} == shapes
    for name, default in (("vocab_size", 2000), ("embedding_rank", None), ("heads", 2)):
        assert {getattr(run.shape, name) for run in runs} == set(block.values.get(name, [default]))
    assert {run.training.learning_rate for run in runs} == set(block.values.get("learning_rate", [1.6e-3]))
    for one in networks:
        repeated = one.shape.width in block.repeated.get(one.shape.depth, [])
        assert one.seeds == max(block.seeds, block.repeated_seeds if repeated else 1)


@given(blocks(), blocks())
def test_blocks_make_their_union(one: Block, other: Block) -> None:
    def asked(*some: Block) -> dict[Any, int]:
        return {(n.corpus, n.shape, n.training): n.seeds for n in networks_of(some, DEFAULTS)}

    left, right, both = asked(one), asked(other), asked(one, other)
    assert both == {what: max(left.get(what, 0), right.get(what, 0)) for what in {**left, **right}}
    assert list(both)[: len(left)] == list(left)
    assert asked(one, one) == left


@given(blocks(), st.data())
def test_what_is_left_out_is_what_matches(block: Block, data: st.DataObject) -> None:
    names = data.draw(few(st.sampled_from(sorted(block.values)))) if block.values else ()
    unwanted = {name: data.draw(few(st.sampled_from(block.values[name]))) for name in names}
    if not unwanted:
        unwanted = {"depth": tuple(block.depths)[:1]}
    left = Block(**{**vars(block), "leave_out": [unwanted]})
    every, kept = ([one.settings for one in expanded(some, DEFAULTS)] for some in (block, left))
    assert kept == [one for one in every if not all(one[name] in values for name, values in unwanted.items())]


@given(
    st.lists(st.integers(1, 48), min_size=2, max_size=4, unique=True),
    st.floats(1e4, 1e9),
    st.sampled_from([{}, {"heads": (4,)}, {"heads": (1,)}, {"attention_dim": (8,)}, {"block": ("llama",)}]),
)
def test_widths_of_a_size_pair_the_depths(depths: list[int], size: float, values: dict[str, Any]) -> None:
    """To 2%, or as near as any choice of widths near the size."""
    block = Block("grids.mine", {**values, "depth": tuple(depths), "block_params": (size,)})
    (pair,) = all_pairings(block)
    settings = {name: value for name, (value,) in values.items()}
    made = {one.shape.depth: one.shape for one in networks_of([block], DEFAULTS)}
    assert {depth: shape.width for depth, shape in made.items()} == pair.widths
    sizes = [shape.block_params for shape in made.values()]
    assert max(sizes) / min(sizes) - 1 == pytest.approx(pair.mismatch, abs=1e-9)
    beside = [
        abs(math.log(one / size))
        for depth, shape in made.items()
        for one in _next_sizes(size, _sizes(depth, shape.width, settings))
    ]
    assert max(abs(math.log(one / size)) for one in sizes) <= max(REACH, *beside) + 1e-9
    if pair.mismatch > EQUAL_SHARE:  # then no neighbour of any width does better
        for depth, shape in made.items():
            for other in _sizes(depth, shape.width, settings):
                if abs(math.log(other / size)) <= REACH:
                    others = [one.block_params for name, one in made.items() if name != depth]
                    assert max(*others, other) / min(*others, other) - 1 >= pair.mismatch - 1e-9


def test_of_two_choices_that_differ_alike_the_nearer_one_is_taken() -> None:
    (pair,) = all_pairings(Block("grids.mine", {"depth": (6, 9), "block_params": (1e4,)}))
    assert pair.widths == {6: 12, 9: 10}  # 10,368 and 10,800; widths 10 and 8 would make 7,200 and 6,912


def _next_sizes(size: float, sizes: list[int]) -> list[int]:
    """The sizes next to one, on each side."""
    smaller, larger = ([one for one in sizes if (one > size) == side] for side in (False, True))
    return [max(smaller, default=min(sizes)), min(larger, default=max(sizes))]


def _sizes(depth: int, width: int, settings: Any) -> list[int]:
    """Sizes of a depth's possible networks at a width and at the next ones."""
    found = []
    for near in range(max(1, width - 16), width + 17):
        block = Block("here", {**{k: (v,) for k, v in settings.items()}, "depth": (depth,), "width": (near,)})
        found += [one.shape.block_params for one in expanded(block, DEFAULTS) if isinstance(one, Network)]
    return found


def test_the_papers_columns_follow_from_their_sizes() -> None:
    sizes = tuple(12 * depth * width**2 for depth, width in ((1, 96), (1, 128), (1, 256)))
    block = Block("grids.mine", {"depth": (1, 2, 4), "block_params": sizes})
    widths = [pair.widths for pair in all_pairings(block)]
    assert widths[0] == {1: 96, 2: 68, 4: 48}
    assert all(pair.mismatch <= EQUAL_SHARE for pair in all_pairings(block))
    assert all(a[depth] < b[depth] for a, b in pairwise(widths) for depth in (1, 2, 4))


def test_heads_and_their_dimension_are_rules() -> None:
    def shapes(**values: Any) -> list[tuple[int, int, int]]:
        block = Block("here", {"depth": (1,), "width": (16, 32), **values})
        return [(n.shape.width, n.shape.heads, n.shape.attention_dim) for n in networks_of([block], DEFAULTS)]

    assert shapes() == [(16, 2, 8), (32, 2, 16)]
    assert shapes(attention_dim=(8,)) == [(16, 2, 8), (32, 4, 8)]
    assert shapes(heads=(3,), attention_dim=(8,)) == [(16, 3, 8), (32, 3, 8)]
    assert shapes(heads=(4,), attention_dim=(None, 16)) == [(16, 4, 4), (32, 4, 8), (16, 4, 16), (32, 4, 16)]
    (scaled,) = networks_of([Block("here", {"depth": (1,), "width": (16,), "base_width": (8,)})], DEFAULTS)
    assert (scaled.shape.base_width, scaled.shape.base_attention_dim) == (8, 4)


def test_budgets_rates_and_steps_follow_the_network() -> None:
    values: dict[str, Any] = {"depth": (1, 2), "width": (16,), "vocab_size": (257,)}
    tokens = networks_of([Block("here", {**values, "tokens_per_param": (20.0,)})], DEFAULTS)
    for one in tokens:
        seen = one.training.steps * one.training.batch_size * one.shape.context_length
        assert seen == pytest.approx(20 * one.shape.total_params, rel=0.02)
        assert one.budget is not None
    for one in networks_of([Block("here", {**values, "flops": (1e11,)})], DEFAULTS):
        assert one.training.steps * one.shape.step_flops(8) == pytest.approx(1e11, rel=0.01)
    by_depth = {"learning_rate": ({1: 1e-3, 2: 2e-3},), "steps": ({1: 10, 2: 20},)}
    networks = networks_of([Block("here", {**values, **by_depth})], DEFAULTS)
    said = [(one.shape.depth, one.training.learning_rate, one.training.steps) for one in networks]
    assert said == [(1, 1e-3, 10), (2, 2e-3, 20)]
    assert [one.budget for one in networks] == [None, None]


def shape_of(**values: Any) -> Shape:
    block = Block("grids.mine", {name: (value,) for name, value in values.items()})
    (found,) = networks_of([block], DEFAULTS)
    return found.shape


def test_a_head_and_the_feed_forward_network_follow_from_the_shape_by_rules() -> None:
    wide = {"depth": 1, "width": 48, "heads": 8, "attention_dim": Ratio(ratio=4.0)}
    assert shape_of(**wide) == make_shape(1, 48, 8, 2000, 128, 24)
    assert shape_of(**wide, ff_width=OF_ATTENTION) == make_shape(1, 48, 8, 2000, 128, 24, ff_width=4 * 192)
    plain = {"depth": 1, "width": 48, "heads": 4}
    of_one = shape_of(**plain, attention_dim=Ratio(ratio=1.0), ff_width=OF_ATTENTION)
    assert of_one == shape_of(**plain)  # the same network has the same key
    assert shape_of(**wide, base_width=24).base_attention_dim == 12
    assert shape_of(**{**plain, "width": 9}, attention_dim=Ratio(ratio=1.333)).attention_dim == 3


@pytest.mark.parametrize(("degree", "dim"), [(None, 32), (2, 43), (3, 32), (4, 26)])
def test_attention_of_a_degree_has_the_weights_of_softmax(degree: int | None, dim: int) -> None:
    found = shape_of(depth=1, width=64, attention_degree=degree, attention_dim="equal_params")
    assert (found.attention_degree, found.attention_dim) == (degree, dim)
    assert found.block_params == pytest.approx(shape_of(depth=1, width=64).block_params, rel=0.02)


def test_widths_of_a_size_follow_the_ratio() -> None:
    values = {"depth": (1, 2), "heads": (3,), "attention_dim": (Ratio(ratio=2.0),), "block_params": (1e5,)}
    found = networks_of([Block("grids.mine", values)], DEFAULTS)
    assert {one.shape.attention_ratio for one in found} == {2.0}
    assert all(one.shape.block_params == pytest.approx(1e5, rel=0.1) for one in found)


grids = st.dictionaries(st.integers(1, 4), st.lists(st.integers(1, 9), max_size=5), max_size=3)


@given(grids, grids)
def test_a_repeated_shape_is_named_where_the_grid_does_not_have_it(
    widths: dict[int, list[int]], repeated: dict[int, list[int]]
) -> None:
    absent = {(d, w) for d, row in repeated.items() for w in row if w not in widths.get(d, [])}
    named = list(repeated_problems(Block("here", {}, widths, repeated=repeated), []))
    assert len(named) == bool(absent)
    for one in named:
        assert one.count("depth ") == len(absent)
        assert all(f"depth {depth} width {width}" in one for depth, width in absent)


def test_sizes_that_differ_by_less_than_a_tenth_are_covered_by_both() -> None:
    """As the fits have it: the blocks of 96 / 68 and of 192 / 136 differ by less than a percent."""

    def warned(*rows: list[int]) -> list[str]:
        sizes = {depth: [12.0 * depth * width**2 for width in row] for depth, row in enumerate(rows, start=1)}
        return list(transition_warnings("study", sizes, repeats=True, line=False))

    assert warned([96, 128, 160, 192], [68, 90, 112, 136]) == []
    (few,) = warned([96, 128, 160, 224], [60, 90, 112, 136])
    assert "they have 3 and 3 networks; a transition needs 4 of each" in few

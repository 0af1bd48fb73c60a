"""Memorizers: sizes by hand, names, and models filled up to one shape."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from made_runs import a_memorization_run

from shapelaw.specs.memorizers import Memorizer, beyond_theorem, common_shape, of_one_shape

RUN = a_memorization_run(4, 550, 0)


def test_sizes_by_hand() -> None:
    small = Memorizer(heads=2, context=3, head_dim=4, width=6, value_dim=1, outputs=5)
    embedding, attention, read_out = 6 * 6 + 6, 2 * 6 * (4 + 4 + 1 + 1), 6 * 5 + 5
    assert small.total_params == embedding + attention + read_out
    assert (small.values, replace(small, value_dim=None).values) == (1, 6)
    assert replace(small, logit_scale="head_dim").scale == 1 / 2


def test_what_differs_from_the_usual_is_in_the_name() -> None:
    assert RUN.label == "shared-c100-H4-n32-h64-v64-T550-t50000-s0"
    short = replace(RUN, last_batch="short")
    other = replace(short, memorizer=replace(RUN.memorizer, logit_scale="head_dim", attend_to_query=True))
    assert short.label == RUN.label.replace("-T550", "-short-T550")
    assert other.label == RUN.label.replace("-T550", "-byheaddim-self-short-T550")
    assert "last_batch" not in RUN.to_dict()
    assert len({run.digest for run in (RUN, short, other)}) == 3


sizes = st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(1, 64))


@given(st.lists(sizes, min_size=1, max_size=5))
def test_a_pack_has_the_largest_of_each_size(some: list[tuple[int, int, int]]) -> None:
    memorizers = [
        replace(RUN.memorizer, heads=heads, context=context, head_dim=dim) for heads, context, dim in some
    ]
    shape = common_shape(memorizers)
    assert (shape.heads, shape.context, shape.head_dim) == tuple(map(max, zip(*some, strict=True)))
    runs = [replace(RUN, memorizer=memorizer, seed=seed) for seed, memorizer in enumerate(memorizers)]
    filled = of_one_shape(runs)
    assert {run.memorizer for run in filled} == {shape}
    assert [replace(run, memorizer=m) for run, m in zip(filled, memorizers, strict=True)] == runs


def test_a_context_as_long_as_the_width_is_beyond_the_theorem() -> None:
    assert beyond_theorem([(63, 64), (31, 32)]) == []
    first, second = beyond_theorem([(64, 64), (10, 64), (40, 32), (33, 32)])
    assert "n = 33, 40 at d = 32" in first
    assert "n = 64 at d = 64" in second

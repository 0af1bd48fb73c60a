"""Runs of many sizes, trained alone and in packs, for tests of what their jobs ask for."""

from hypothesis import strategies as st

from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.specs.runs import Run, Training
from shapelaw.specs.shapes import make_shape

RATE = 1e13


def a_run(depth: int, width: int, steps: int = 1000, seed: int = 0) -> Run:
    shape = make_shape(depth, width, 2, 2000, 128)
    return Run("depth_width", "wiki", shape, Training(steps, 64), seed)


runs = st.builds(
    a_run,
    st.integers(1, 48),
    st.integers(1, 800).map(lambda half: 2 * half),
    st.integers(1, 10**6),
    st.integers(0, 9),
)


def a_memorization_run(heads: int, examples: int, seed: int) -> MemorizationRun:
    return MemorizationRun(
        "memorization_heads", Memorizer(heads, 32, 64), "classification", "shared", examples, 50_000, seed
    )


memorization_runs = st.builds(
    a_memorization_run, st.sampled_from([1, 4, 60]), st.sampled_from([100, 550, 40_000]), st.integers(0, 9)
)

some_runs = st.lists(memorization_runs, max_size=20, unique_by=lambda run: run.key)

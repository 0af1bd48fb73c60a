"""Grids of shapes, some of them repeated."""

from hypothesis import given
from hypothesis import strategies as st

from shapelaw.studies.grid.expansion import repeated_problems
from shapelaw.studies.grid.study import transition_warnings

grids = st.dictionaries(st.integers(1, 4), st.lists(st.integers(1, 9), max_size=5), max_size=3)


@given(grids, grids)
def test_a_repeated_shape_is_named_where_the_grid_does_not_have_it(
    widths: dict[int, list[int]], repeated: dict[int, list[int]]
) -> None:
    absent = {(d, w) for d, row in repeated.items() for w in row if w not in widths.get(d, [])}
    named = repeated_problems(widths, repeated, "here")
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

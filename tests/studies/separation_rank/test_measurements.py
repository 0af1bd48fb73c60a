"""Separation ranks of a grid: each network measured once, kept, and read again."""

import math

import pytest
from golden_tables import kept
from measured_grids import GRIDS, asked_one

from shapelaw.errors import UserError
from shapelaw.studies.separation_rank.results import analyse
from shapelaw.studies.separation_rank.study import (
    DegreeSizes,
    RankGrids,
    asked_of,
)
from shapelaw.studies.separation_rank.tables import (
    KEPT,
    Measured,
    bounds_table,
    measure_all,
    network_of,
    ranks_table,
    read_measurements,
    write_measurements,
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder for reading: `measured.json`, and the ranks `kept` one by one."""
    folder = tmp_path_factory.mktemp("ranks")
    found = list(measure_all(asked_of(RankGrids(**GRIDS)), folder / "kept"))
    write_measurements(found, folder / "measured.json")
    return folder


def test_ranks_are_those_that_the_golden_tables_have(measured, tmp_path):
    (tmp_path / "golden.json").write_bytes(kept()["inputs/separation_rank.json"])
    found, golden = (
        [(one, result.rank, result.exact) for one, result in read_measurements(path)]
        for path in (measured / "measured.json", tmp_path / "golden.json")
    )
    assert found == golden


def test_a_network_is_measured_once(measured, monkeypatch):
    asked = asked_of(RankGrids(**GRIDS))
    before = [result for _, result in read_measurements(measured / "measured.json")]
    monkeypatch.setattr(
        "shapelaw.studies.separation_rank.tables.separation_rank", None
    )  # would fail if it were called
    assert [result for _, result in measure_all(asked, measured / "kept")] == before
    more = [*asked, asked_one(2, 2, 4)]
    with pytest.raises(TypeError, match="not callable"):
        list(measure_all(more, measured / "kept"))


def test_ranks_are_one_file_and_a_line_that_was_cut_short_is_measured_again(tmp_path):
    asked = [asked_one(1, width, 4) for width in (2, 3)]
    before = list(measure_all(asked, tmp_path))
    (path,) = tmp_path.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:20])  # the process was killed
    again = list(measure_all(asked, tmp_path))
    assert [result.rank for _, result in again] == [result.rank for _, result in before]
    assert len(path.read_bytes().splitlines()) == 2


def test_a_short_limit_gives_a_lower_bound_and_a_longer_one_the_rank(tmp_path):
    one = asked_one(2, 4, 8, 0.003)
    ((_, short),) = measure_all([one], tmp_path)
    assert (short.exact, short.status, short.most) == (False, "at least", 110)
    assert short.rank <= short.templates < 110
    found = [(one, short)]
    row = ranks_table(found).iloc[0]
    assert (row["status"], row["follows"], row["is_bound"]) == ("at least", "open", "open")
    bounds = bounds_table(found)
    assert "no" not in set(bounds["holds"])
    assert "open" not in set(bounds["holds"])  # the upper bound is below theirs
    wide = [(one, Measured(1, False, 10**40, 1, 0.5, 0.0))]
    says = bounds_table(wide).groupby("kind")["holds"].agg(set).to_dict()
    assert "open" in says["at most"]
    assert says["at least"] <= {"yes", "open"}
    ((_, longer),) = measure_all([asked_one(2, 4, 8, 60.0)], tmp_path)
    assert (longer.exact, longer.rank) == (True, 110)
    assert next(measure_all([asked_one(2, 4, 8, 0.001)], tmp_path))[1] == longer


def test_equal_parameters_of_a_budget():
    for one in asked_of(RankGrids(**GRIDS)):
        if isinstance(one.sizes, DegreeSizes):
            assert network_of(one.sizes).params <= one.budget * one.sizes.width**2


def test_unusable_measurements_are_told(tmp_path):
    with pytest.raises(UserError, match="can't be read"):
        analyse(tmp_path / "none.json")
    (tmp_path / "other.json").write_text('[{"table": "ranks"}]')
    with pytest.raises(UserError, match="holds no separation ranks"):
        analyse(tmp_path / "other.json")
    (tmp_path / KEPT).write_text("{}\n")
    with pytest.raises(UserError, match="not a kept separation rank"):
        list(measure_all([asked_one(1, 1, 2)], tmp_path))


def test_a_bound_beyond_all_floats_is_infinite():
    assert Measured(1, False, 10**299, 1, 0.5, 0.0).bound == 1e299
    assert Measured(1, False, 10**400, 1, 0.5, 0.0).bound == math.inf

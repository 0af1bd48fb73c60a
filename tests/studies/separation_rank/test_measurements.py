"""Separation ranks of a grid: asked for, measured once and kept, held against theorems, and drawn."""

import math

import pandas as pd
import pytest
from golden_tables import kept
from plain_networks import params_of

from shapelaw.errors import UserError
from shapelaw.studies.separation_rank.results import (
    UNKNOWN,
    analyse,
    best_degree_title,
    closed_form_title,
    degree_figure,
    depth_figure,
    flat_title,
    residual_figure,
)
from shapelaw.studies.separation_rank.study import (
    Asked,
    AttentionSizes,
    DegreeSizes,
    RankGrids,
    asked_of,
    count_sequences,
    digest,
    matrices,
    mixed_degrees,
    rank_problems,
)
from shapelaw.studies.separation_rank.tables import (
    KEPT,
    Measured,
    bounds_table,
    degree_table,
    fractional_table,
    measure_all,
    network_of,
    ranking_table,
    ranks_table,
    read_measurements,
    theorems_table,
    write_measurements,
)
from shapelaw.theory.separation_rank import separation_rank

GRIDS = {
    "separation_rank": [
        {"depth": [1, 2], "width": [1, 2, 4], "tokens": [2, 8]},
        {"depth": [2], "width": [2, 4], "tokens": [8], "heads": [2], "residual": [False, True]},
        {"depth": [2], "width": [3], "tokens": [8], "embedding_rank": [1, 2], "positional_rank": [0, 1]},
        {"depth": [2], "width": [2], "tokens": [8], "residual": [True]},
        {"depth": [2], "width": [3], "tokens": [6], "heads": [1, 3]},
    ],
    "degree_budget": [
        {"blocks": "product", "width": [2], "budget": [5, 6]},
        {"blocks": "attention", "width": [2], "budget": [8], "tokens": [4]},
    ],
    "fractional_degree": [
        {"blocks": "attention", "width": [2], "degrees": [2, 3], "budget": [8], "tokens": [4]}
    ],
}


def asked_one(depth, width, tokens, seconds=9.0, residual=False):
    """A network of one head."""
    sizes = AttentionSizes(depth, width, tokens, 1, None, None, 0, residual)
    return Asked("ranks", sizes, None, seconds)


def ranks_of(*networks):
    """The table of some networks of one head with the ranks that are known of them."""
    found = []
    for network in networks:
        one = asked_one(*network)
        rank = network_of(one.sizes).rank_bound()  # which is the rank wherever it was measured
        found.append((one, Measured(rank, True, rank, rank + 8, 0.0, 0.0)))
    return ranks_table(found)


def degree_rows(*ranks):
    """(degree, rank, exact, bound) at a budget of 6 matrices."""
    return [
        (
            Asked("degree_budget", DegreeSizes("product", (k,) * (6 // k), 2, 2, 1), 6, 1.0),
            Measured(rank, exact, bound, bound, 0.0, 1.0),
        )
        for k, rank, exact, bound in ranks
    ]


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
            assert params_of(network_of(one.sizes)) <= one.budget * one.sizes.width**2


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


def test_digests_name_networks():
    one = asked_one(2, 4, 8).sizes
    assert digest(one) == digest(asked_one(2, 4, 8).sizes)
    degrees = [DegreeSizes("product", degrees, 4, 2, 1) for degrees in ((2, 3), (3, 2))]
    assert len(set(map(digest, [one, asked_one(2, 4, 8, residual=True).sizes, *degrees]))) == 4


def test_a_default_that_is_written_out_is_the_same_network():
    grid = {
        "depth": [2],
        "width": [4],
        "tokens": [8],
        "embedding_rank": [None, 4],
        "attention_dim": [None, 4],
    }
    (one,) = asked_of(RankGrids(separation_rank=[grid]))
    assert one.sizes == asked_one(2, 4, 8).sizes


OF_MIXERS = {"blocks": "mixer", "width": [4], "budget": [9], "tokens": [4], "degrees": [2]}


def test_a_grid_that_cannot_be_listed_is_told_at_once() -> None:
    """Counted, not listed: the second has more networks than atoms fit on the earth."""
    many = list(range(1, 101))
    grid = {"depth": many, "width": many, "tokens": [2 * n for n in many]}
    assert rank_problems(RankGrids(separation_rank=[grid])) == [
        "separation_rank.1st has 1,000,000 networks; at most 10,000 can be measured: take shorter "
        "lists or smaller budgets"
    ]
    block = {"blocks": "product", "width": [2], "budget": [5, 10**6]}
    (said,) = rank_problems(RankGrids(fractional_degree=[block]))
    assert said.startswith("fractional_degree.1st has over 10^")


def test_a_mixer_has_the_matrices_of_attention_s_blocks_of_degree_2() -> None:
    (mixer,) = asked_of(RankGrids(degree_budget=[OF_MIXERS]))
    (attention,) = asked_of(RankGrids(degree_budget=[OF_MIXERS | {"blocks": "attention"}]))
    one, other = network_of(mixer.sizes), network_of(attention.sizes)
    assert params_of(one) == params_of(other) == 3 * 3 * 4**2
    assert separation_rank(one).rank == 660  # docs/results/theory.md


@pytest.mark.parametrize("blocks", ["product", "attention", "mixer"])
def test_sequences_are_counted_as_they_are_listed(blocks: str) -> None:
    for budget in range(14):
        grid = RankGrids(
            fractional_degree=[{"blocks": blocks, "width": [2], "budget": [budget + 1], "degrees": [2, 3, 5]}]
        )
        listed = list(mixed_degrees(grid.fractional_degree[0]))
        costs = [matrices(blocks, degree) for degree in (2, 3, 5)]
        empty = budget + 1 < min(costs)  # the empty sequence is counted and not listed
        assert count_sequences(budget + 1, costs) == len(listed) + empty


def test_a_violated_theorem_is_said():
    """A rank that no such network has."""
    found = [(asked_one(2, 4, 8), Measured(10**9, True, 10**9, 10**9, 0.0, 1.0))]
    table = bounds_table(found)
    assert set(table.loc[table["theorem"] == "depth-width, theorem 3", "holds"]) == {"no"}
    assert ranks_table(found)["follows"].tolist() == ["no"]


def test_corollaries_on_pairs_of_networks():
    """Two layers of width 10 against one: 2,155 wide, where theorem 1's numbers ask for 3.5."""
    ranks = ranks_of((2, 10, 20), (1, 9, 20), (3, 2, 12), (2, 6, 12))
    first, second = theorems_table(bounds_table([]), ranks).to_dict("records")
    assert (first["networks"], first["holds"], first["violated"]) == (1, 1, 0)
    assert first["least_distance"] == pytest.approx(math.log(2156 / 4.5, 3))
    # of three layers of width 2, two of width 6 have more; of two of width 6, no shallower one was measured
    assert (second["networks"], second["holds"], second["open"]) == (2, 1, 1)
    assert second["least_distance"] == pytest.approx(2 - math.log(2, 3))


def test_where_bounds_overlap_the_winner_is_open():
    table = degree_table(degree_rows((2, 20, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["open", "open", "no"]
    row = ranking_table(table).iloc[0]
    assert (row["largest_rank"], row["of_2_and_3"], row["agrees_with_note"]) == ("open", "open", "open")
    table = degree_table(degree_rows((2, 51, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["yes", "no", "no"]
    assert ranking_table(table).iloc[0]["of_2_and_3"] == "2"


def test_figures_of_nothing_say_so():
    assert fractional_table([]).empty
    assert degree_figure(degree_table([])) == "no budget was measured"
    ranks = ranks_table([(asked_one(1, 1, 2), Measured(2, True, 2, 10, 0.0, 0.0))])
    assert depth_figure(ranks) == "no width was measured at two depths"
    assert "no network was measured" in str(residual_figure(pd.DataFrame()))


def test_an_exact_rank_is_a_circle_and_a_lower_bound_a_triangle():
    exact = ranks_of((1, 2, 8), (2, 2, 8))
    lower = ranks_of((3, 2, 8)).assign(status="at least")
    figure = depth_figure(pd.concat([exact, lower], ignore_index=True)).figure()
    left, right = figure.axes
    assert "no width has two depths" in left.texts[0].get_text()
    drawn = {line.get_marker(): line for line in right.get_lines() if line.get_marker() in ("o", "^")}
    assert (drawn["o"].get_xdata().tolist(), drawn["^"].get_xdata().tolist()) == ([1, 2], [3])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:3] == ["exact", "at least", "closed form"]
    (legend,) = depth_figure(exact).figure().legends
    assert "at least" not in [text.get_text() for text in legend.get_texts()]


def test_closed_forms_are_counted_and_a_rank_that_grows_is_not_flat() -> None:
    assert closed_form_title([(1.0, 1.0), (2.0, 2.0)]) == "all 2 ranks equal the closed form"
    assert closed_form_title([(1.0, 1.0), (2.0, 2.5)]) == "1 of 2 ranks equal the closed form"
    rows = pd.DataFrame({"embedding_rank": [1, 1, 2], "rank": [5, 5, 18], "status": "exact"})
    assert flat_title(rows) == "Width beyond r adds nothing"
    assert flat_title(rows.assign(rank=[5, 6, 18])) == "Width beyond r still adds"
    assert flat_title(rows.assign(status="at least")) == UNKNOWN


def test_the_best_degrees_are_named_by_their_budgets() -> None:
    rows = pd.DataFrame({"degree": [2, 3], "log3_rank": [4.0, 3.0], "status": "exact"})
    tied = rows.assign(log3_rank=4.0)
    found = best_degree_title({6: rows, 8: tied, 12: rows}, 80)
    assert found == "best k: 2 at B\u00a0=\u00a06, 12; 2 and 3 at B\u00a0=\u00a08"
    unknown = best_degree_title({6: rows.assign(status="at least")}, 80)
    assert unknown == "best k: can't tell at B\u00a0=\u00a06"

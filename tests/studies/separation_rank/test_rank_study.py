"""The study of separation ranks on a small real grid: tables, theorems, degrees, what is kept, and wrong input."""

import json
import math
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from small import PYTHON, SCRIPTS

from shapelaw.errors import UserError
from shapelaw.report.write import write_results
from shapelaw.studies.separation_rank.corollaries import corollaries_table
from shapelaw.studies.separation_rank.degrees import degree_table, fractional_table, ranking_table
from shapelaw.studies.separation_rank.figures import degree_figure, depth_figure, residual_figure
from shapelaw.studies.separation_rank.grids import (
    Asked,
    AttentionSizes,
    DegreeSizes,
    asked_of,
    digest,
    rank_problems,
)
from shapelaw.studies.separation_rank.measurements import Measured, measure_all, network_of, read_measurements
from shapelaw.studies.separation_rank.results import analyse, fits, present, summary
from shapelaw.studies.separation_rank.settings import RankGrids
from shapelaw.studies.separation_rank.tables import bounds_table, ranks_table, theorems_table
from shapelaw.theory.rank_formulas import closed_form

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


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the two commands leave."""
    folder = tmp_path_factory.mktemp("ranks")
    for command in (
        [
            "measure_separation_ranks.py",
            "--grids",
            json.dumps(GRIDS),
            "--kept",
            "kept",
            "--out",
            "measured.json",
        ],
        ["analyse.py", "separation_rank", "--input", "measured.json", "--out", "out"],
    ):
        done = subprocess.run(
            [PYTHON, SCRIPTS / command[0], *command[1:]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return folder


def read(results: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(results / "out" / f"{name}.csv", keep_default_na=False)


def test_the_ranks_are_known_and_follow_their_closed_forms(results):
    ranks = read(results, "ranks")
    assert (ranks["status"] == "exact").all()
    plain = ranks[(ranks["heads"] == 1) & ~ranks["residual"] & (ranks["positional_rank"] == 0)]
    found = {(r.depth, r.width, r.tokens, r.embedding_rank): r.rank for r in plain.itertuples()}
    assert found[2, 2, 2, 2] == 15
    assert found[2, 4, 8, 4] == 110
    assert found[2, 3, 8, 2] == found[2, 2, 8, 2] == 18
    assert "no" not in set(ranks["follows"])
    assert (ranks["follows"] == "yes").sum() > 10
    assert set(ranks.loc[ranks["depth"] == 1, "threshold"]) == {"after", "before"}
    assert (ranks["rank"] <= ranks["upper_bound"]).all()


def test_every_theorem_holds(results):
    theorems = read(results, "theorems")
    assert (theorems["violated"] == 0).all()
    gap = theorems["verdict"] == "not violated in reach; its proof has a gap"
    assert set(theorems.loc[gap, "theorem"]) == {
        *(f"depth-width, {name}" for name in ("corollary 2", "theorem 2", "theorem 4", "theorem 6")),
        *(f"vocabulary, theorem {number}" for number in (1, 3)),
    }
    assert set(theorems.loc[gap, "kind"]) == {"at most", "exists"}
    assert set(theorems.loc[~gap, "verdict"]) == {"holds in reach", "none in reach"}
    corollaries = theorems["theorem"].str.contains("corollary")
    theorems, corollaries = theorems[~corollaries], theorems[corollaries].set_index("theorem")
    assert (theorems["open"] == 0).all()
    # of 3^L < d there is only one layer of d = 4, and two layers have only one layer beside them
    assert corollaries.loc["depth-width, corollary 1", "networks"] == 0
    assert corollaries.loc["depth-width, corollary 2", ["networks", "open"]].tolist() == [7, 7]
    assert {"depth-width, theorem 1", "depth-width, theorem 6", "vocabulary, theorem 3"} <= set(
        theorems["theorem"]
    )
    assert theorems["networks"].sum() == len(read(results, "bounds"))


def ranks_of(*networks):
    """The table of some networks of one head with the ranks that are known of them."""
    found = []
    for depth, width, tokens in networks:
        sizes = AttentionSizes(depth, width, tokens, 1, None, None, 0, False)
        rank = network_of(sizes).rank_bound()  # which is the rank wherever it was measured
        found.append((Asked("ranks", sizes, None, 1.0), Measured(rank, True, rank, rank + 8, 0.0, 0.0)))
    return ranks_table(found)


def test_corollaries_on_pairs_of_networks():
    """Two layers of width 10 against one: 2,155 wide, where theorem 1's numbers ask for 3.5."""
    first, second = corollaries_table(ranks_of((2, 10, 20), (1, 9, 20), (3, 2, 12), (2, 6, 12))).to_dict(
        "records"
    )
    assert (first["networks"], first["holds"], first["violated"]) == (1, 1, 0)
    assert first["least_distance"] == pytest.approx(math.log(2156 / 4.5, 3))
    # of three layers of width 2, two of width 6 have more; of two of width 6, no shallower one was measured
    assert (second["networks"], second["holds"], second["open"]) == (2, 1, 1)
    assert second["least_distance"] == pytest.approx(2 - math.log(2, 3))


def test_residual_connections_change_nothing(results):
    residual = read(results, "residual")
    assert len(residual) == 3
    assert set(residual["equal"]) == {"yes"}


def test_degrees_at_equal_budget(results):
    degrees = read(results, "degree_budget")
    at = degrees[(degrees["blocks"] == "product") & (degrees["budget"] == 6)].set_index("degree")
    assert at["rank"].to_dict() == {1: 2, 2: 9, 3: 10, 4: 5, 5: 6, 6: 7}
    assert at["largest"].to_dict() == {3: "yes", 1: "no", 2: "no", 4: "no", 5: "no", 6: "no"}
    assert at["depth"].to_dict() == {1: 6, 2: 3, 3: 2, 4: 1, 5: 1, 6: 1}
    assert at["parameters"].max() == 6 * 4
    ranking = read(results, "degree_ranking").astype(str).set_index(["blocks", "budget"])
    wanted = ["largest_rank", "of_2_and_3", "agrees_with_note"]
    assert ranking.loc[("product", "6"), wanted].tolist() == ["3", "3", "yes"]
    assert ranking.loc[("product", "5"), wanted].tolist() == ["5", "2", "no"]
    assert ranking.loc[("product", "6"), "fill_the_budget"] == "2, 3"


def test_mixed_degrees_keep_their_order(results):
    mixed = read(results, "fractional_degree").set_index("degrees")
    assert mixed["rank"].to_dict() == {"2 2": 8, "2 3": 25, "3 2": 18, "3 3": 18}
    assert mixed.loc["2 3", ["unused", "mixed", "largest"]].tolist() == [1, "yes", "yes"]


def test_fit_json_counts_what_was_found(results):
    found = json.loads((results / "out/fit.json").read_text())
    assert found["status"] == "exact"
    assert found["theorems"]["violated"] == 0
    assert found["largest_exact_rank"] == 110
    assert found["fractional_degrees"] == {"budgets": 1, "largest_is_mixed": 1, "largest_is_of_one_degree": 0}
    for name in (
        "rank_depth",
        "rank_width",
        "rank_embedding",
        "rank_heads",
        "rank_tokens",
        "rank_residual",
        "degree",
    ):
        assert (results / "out" / f"{name}.svg").stat().st_size > 1000
        assert (results / "out" / f"{name}.png").stat().st_size > 1000


def test_a_network_is_measured_once(results, monkeypatch):
    asked = asked_of(RankGrids(**GRIDS))
    before = [result for _, result in read_measurements(results / "measured.json")]
    monkeypatch.setattr(
        "shapelaw.studies.separation_rank.measurements.separation_rank", None
    )  # would fail if it were called
    assert [result for _, result in measure_all(asked, results / "kept")] == before
    more = [*asked, Asked("ranks", AttentionSizes(2, 2, 4, 1, None, None, 0, False), None, 9.0)]
    with pytest.raises(TypeError, match="not callable"):
        list(measure_all(more, results / "kept"))


def test_a_short_limit_gives_a_lower_bound_and_a_longer_one_the_rank(tmp_path):
    sizes = AttentionSizes(2, 4, 8, 1, None, None, 0, False)
    ((_, short),) = measure_all([Asked("ranks", sizes, None, 0.003)], tmp_path)
    assert (short.exact, short.status, short.most) == (False, "at least", 110)
    assert short.rank <= short.templates < 110
    found = [(Asked("ranks", sizes, None, 0.003), short)]
    row = ranks_table(found).iloc[0]
    assert (row["status"], row["follows"], row["is_bound"]) == ("at least", "open", "open")
    bounds = bounds_table(found)
    assert "no" not in set(bounds["holds"])
    assert theorems_table(bounds)["open"].sum() == 0  # the upper bound is below theirs
    wide = [(found[0][0], Measured(1, False, 10**40, 1, 0.5, 0.0))]
    says = bounds_table(wide).groupby("kind")["holds"].agg(set).to_dict()
    assert "open" in says["at most"]
    assert says["at least"] <= {"yes", "open"}
    ((_, longer),) = measure_all([Asked("ranks", sizes, None, 60.0)], tmp_path)
    assert (longer.exact, longer.rank) == (True, 110)
    assert next(measure_all([Asked("ranks", sizes, None, 0.001)], tmp_path))[1] == longer


def test_a_violated_theorem_is_said():
    """A rank that no such network has."""
    sizes = AttentionSizes(2, 4, 8, 1, None, None, 0, False)
    found = [(Asked("ranks", sizes, None, 9.0), Measured(10**9, True, 10**9, 10**9, 0.0, 1.0))]
    table = bounds_table(found)
    assert set(table.loc[table["theorem"] == "depth-width, theorem 3", "holds"]) == {"no"}
    assert ranks_table(found)["follows"].tolist() == ["no"]


def degree_rows(*ranks):
    """(degree, rank, exact, bound) at a budget of 6 matrices."""
    return [
        (
            Asked("degree_budget", DegreeSizes("product", (k,) * (6 // k), 2, 2, 1), 6, 1.0),
            Measured(rank, exact, bound, bound, 0.0, 1.0),
        )
        for k, rank, exact, bound in ranks
    ]


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
    assert "no budget" in degree_figure(degree_table([])).axes[0].texts[0].get_text()
    ranks = ranks_table(
        [
            (
                Asked("ranks", AttentionSizes(1, 1, 2, 1, None, None, 0, False), None, 1.0),
                Measured(2, True, 2, 10, 0.0, 0.0),
            )
        ]
    )
    assert "no width has two depths" in depth_figure(ranks).axes[0].texts[0].get_text()
    assert "no network was measured" in residual_figure(pd.DataFrame()).axes[0].texts[0].get_text()


def test_digests_name_networks():
    one = AttentionSizes(2, 4, 8, 1, None, None, 0, False)
    assert digest(one) == digest(AttentionSizes(2, 4, 8, 1, None, None, 0, False))
    others = [AttentionSizes(2, 4, 8, 1, None, None, 0, True), DegreeSizes("product", (2, 3), 4, 2, 1)]
    assert len({digest(one), *map(digest, others), digest(DegreeSizes("product", (3, 2), 4, 2, 1))}) == 4


def test_a_default_that_is_written_out_is_the_same_network():
    grid = {
        "depth": [2],
        "width": [4],
        "tokens": [8],
        "embedding_rank": [None, 4],
        "attention_dim": [None, 4],
    }
    (one,) = asked_of(RankGrids(separation_rank=[grid]))
    assert one.sizes == AttentionSizes(2, 4, 8, 1, None, None, 0, False)


def test_equal_parameters_of_a_budget():
    for one in asked_of(RankGrids(**GRIDS)):
        if isinstance(one.sizes, DegreeSizes):
            assert network_of(one.sizes).params <= one.budget * one.sizes.width**2


def test_closed_forms_are_silent_where_none_is_known():
    assert closed_form(network_of(AttentionSizes(2, 6, 12, 3, None, None, 0, False))) is None
    assert closed_form(network_of(AttentionSizes(2, 4, 4, 1, None, None, 0, False))) is None
    assert closed_form(network_of(AttentionSizes(2, 4, 8, 1, None, 2, 1, False))) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"separation_rank": [{"depth": [1], "width": [3], "tokens": [4], "heads": [2]}]},
            "not divisible by 2 heads",
        ),
        (
            {"separation_rank": [{"depth": [1], "width": [3], "tokens": [5]}]},
            "tokens is 5; a balanced partition",
        ),
        (
            {"separation_rank": [{"depth": [1], "width": [3], "tokens": [4], "embedding_rank": [4]}]},
            "embedding_rank is 4, above the width 3",
        ),
        (
            {"separation_rank": [{"depth": [1], "width": [3], "tokens": [2], "positional_rank": [3]}]},
            "positional_rank is 3, above 2",
        ),
        ({"degree_budget": [{"blocks": "product", "width": [3], "budget": [5]}]}, "width 3 is odd"),
        (
            {"degree_budget": [{"blocks": "product", "width": [2], "budget": [5], "tokens": [4]}]},
            "are for attention",
        ),
        ({"degree_budget": [{"blocks": "attention", "width": [2], "budget": [1]}]}, "no room for a block"),
        ({"fractional_degree": []}, "fractional_degree is empty"),
    ],
)
def test_sizes_that_cannot_be_are_told(changes, words):
    (problem,) = rank_problems(RankGrids(**{**GRIDS, **changes}))
    assert words in problem


def test_unusable_measurements_are_told(tmp_path):
    with pytest.raises(UserError, match="can't be read"):
        analyse(tmp_path / "none.json")
    (tmp_path / "other.json").write_text('[{"table": "ranks"}]')
    with pytest.raises(UserError, match="holds no separation ranks"):
        analyse(tmp_path / "other.json")
    sizes = AttentionSizes(1, 1, 2, 1, None, None, 0, False)
    (tmp_path / f"{digest(sizes)}.json").write_text("{")
    with pytest.raises(UserError, match="not a kept separation rank"):
        list(measure_all([Asked("ranks", sizes, None, 1.0)], tmp_path))


def test_unusable_grids_end_in_a_sentence():
    done = subprocess.run(
        [PYTHON, SCRIPTS / "measure_separation_ranks.py", "--grids", '{"separation_rank": [{"depth": [0]}]}',
         "--kept", "kept", "--out", "out.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "separation_rank.0.depth.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_summary_says_what_was_found(results, tmp_path):
    found = analyse(results / "measured.json")
    write_results(present(found), tmp_path, "study")
    said = summary(found)
    assert "0 of them with a lower bound only" in said
    assert "product, d = 2, N = 2: degree of largest rank by matrices: 5 at 5; 3 at 6." in said
    assert fits(found)["degree_budgets"]["budgets"] == 3

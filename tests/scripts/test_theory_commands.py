"""The commands of the theory, as a user runs them: separation ranks and capacity."""

import json

import pytest
from commands import output_of, script, sentence_of

from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.separation_rank import LIMIT, Estimate, plan

RANK, CAPACITY = "separation_rank", "memorization_capacity"
LAYER = ("--heads", 4, "--context", 32, "--head-dim", 8)


def test_a_rank_stands_beside_its_published_bounds():
    lines = output_of(RANK, "--depth", 2, "--width", 2, "--tokens", 4).splitlines()
    assert lines[0].split() == ["separation", "rank", "18", "(exact)"]
    rows = {line.split("  ")[-1]: line for line in lines}
    assert "depth-width, theorem 2" in rows
    assert " 81 " in rows["depth-width, theorem 3"]
    assert "at least 30  (not exact" in output_of(
        RANK, "--depth", 2, "--width", 3, "--tokens", 6, "--templates", 30
    )


def test_every_option_of_attention_is_in_the_json():
    found = json.loads(
        output_of(
            *(RANK, "--depth", 2, "--width", 4, "--tokens", 4, "--heads", 2, "--attention-dim", 4),
            *("--residual", "--embedding", "vocabulary", "--vocabulary", 5, "--embedding-rank", 2),
            *("--positional-rank", 1, "--partition", 1, 4, "--position", 3, "--entry", 2, "--json"),
        )
    )
    assert (found["kind"], found["network"]["partition"]) == ("linear attention", [1, 4])
    assert (found["rank"], found["exact"], found["templates"]) == (25, True, [25, 25])
    assert found["log3_rank"] == pytest.approx(2.93, abs=0.01)
    assert {b["source"] for b in found["bounds"]} == {"depth-width, theorem 6"}


@pytest.mark.parametrize(
    ("kind", "options", "rank"),
    [
        ("product", ("--degree", 3, "--depth", 2, "--width", 2), 30),
        ("mixer", ("--depth", 1, "--width", 3, "--tokens", 8, "--hidden", 2), 8),
    ],
)
def test_the_other_networks(kind, options, rank):
    found = json.loads(output_of(RANK, f"--{kind}", *options, "--json"))
    assert (found["kind"], found["rank"], found["exact"], found["bounds"]) == (kind, rank, True, [])


def test_a_longer_measurement_says_its_estimate_first():
    network = ("--depth", 2, "--width", 8, "--tokens", 16)
    fitting = sentence_of(RANK, *network, "--limit", 0.01, 4).split("(--templates ")[1].split()[0]
    plan(LinearAttention(2, 8, 16), int(fitting), Estimate(0.6, LIMIT.bytes))
    assert output_of(RANK, *network, "--limit", 0.01, 4, "--templates", fitting)


def test_grids_of_ranks_that_cannot_be_are_told():
    grids = ("--grids", '{"separation_rank": [{"depth": [0]}]}', "--kept", "kept", "--out", "out.json")
    assert "separation_rank.1st.depth.1st" in script("measure_separation_ranks", *grids).stderr


def test_json_with_a_kruskal_rank_and_a_relu_network():
    options = ("--width", 40, "--kruskal-rank", 5, "--relu-units", 10, "--outputs", 2, "--json")
    found = json.loads(output_of(CAPACITY, *LAYER, *options))
    assert [(b["examples"], b["lower"], b["source"]) for b in found["bounds"]] == [
        (17, True, "remark 1"),
        (125, False, "proposition 2"),
        (157, False, "proposition 5"),
        (33 * 10 // 2 + 11, False, "proposition 3"),
    ]
    assert found["params"] == 2 * 4 * 40 * 8 + 4 * 40 * 2 + 40 * 2
    assert (found["relu_units"], found["relu_params"]) == (10, (33 * 40 + 1) * 10 + 11 * 2)
    assert len(found["warnings"]) == 2

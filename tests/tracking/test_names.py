"""Names as MLflow's users read them, and those of older stores."""

from __future__ import annotations

import re

import pytest
from made_records import make_run, other_recipe

from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.kinds import KINDS
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.tracking.names import CURVES, plain_metrics, result_name, run_name, shape_name, stored_result


def test_names_begin_with_what_differs() -> None:
    run = make_run(seed=3, depth=4)
    assert run_name(run) == "L4 d16 s3 wiki V257 H2 lr0.003 t60"
    assert sorted(run_name(run).split()) == sorted(run.label.split("-"))


def test_runs_that_differ_by_the_seed_alone_share_the_name_of_a_shape() -> None:
    run = make_run(seed=3, depth=4)
    assert re.fullmatch("L4 d16 wiki V257 H2 lr0.003 t60 [0-9a-f]{4}", shape_name(run))
    assert shape_name(make_run(seed=0, depth=4)) == shape_name(run)
    assert shape_name(other_recipe(run)) != shape_name(run)


def test_names_of_packed_runs() -> None:
    one = MemorizationRun(Memorizer(2, 4, 8, 8, 8, 5, "by width"), "classification", "shared", 20, 60, 1)
    assert run_name(one).startswith("H2 T20 n4 h8 s1 ")
    degree = DegreeRun(ProductShape((3, 3), 8, 4, 1), "separable", 2, 60, 0, 8, 1e-05)
    assert run_name(degree).startswith("k3x2 R2 d8 s0 ")
    assert "lr1e-05" in run_name(degree).split()
    assert "s0" not in shape_name(degree).split()


def test_a_corpus_with_letters_like_a_part_of_the_shape() -> None:
    run = make_run()
    object.__setattr__(run, "corpus", "L9-s7-text")
    assert run_name(run).startswith("L2 d16 s0 L9 s7 text ")


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("test_loss", "result/test_loss"),
        ("final_test_loss", "result/test_loss"),
        ("final_accuracy", "result/accuracy"),
        ("tokens_per_second", "system/tokens_per_second"),
        ("peak_memory_bytes", "system/peak_memory_bytes"),
        ("model_flops_utilisation", "system/model_flops_utilisation"),
        ("steps_to_0.5", "result/steps_to_0.5"),
    ],
)
def test_metrics_are_in_groups(name: str, metric: str) -> None:
    assert result_name(name) == metric


def test_results_are_read_from_stores_of_both_ages() -> None:
    new = {"result/test_loss": 1.5, "loss/test": 1.6, "system/wall_seconds": 3.0}
    old = {"final_test_loss": 1.5, "test_loss": 1.6, "wall_seconds": 3.0, "tokens_trained": 12.0}
    for metrics, params in ((new, {"tokens_trained": "12"}), (old, {})):
        read = {
            column.name: stored_result(column.logged_as, params, metrics) for column in KINDS[None].metrics
        }
        assert (read["test_loss"], read["wall_seconds"]) == (1.5, 3.0)
        assert int(read["tokens_trained"] or 0) == 12
        assert read["bits_per_byte"] is None


def test_no_result_has_the_name_of_a_curve() -> None:
    results = {result_name(column.logged_as) for kind in KINDS.values() for column in kind.metrics}
    assert not results & set(CURVES.values())
    assert plain_metrics(
        {"loss/test": 1.0, "result/test_loss": 2.0, "system/wall_seconds": 3.0, "mine": 4.0}
    ) == {
        "test_loss": 2.0,
        "wall_seconds": 3.0,
        "mine": 4.0,
    }

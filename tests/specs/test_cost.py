"""The cost model: what a step and a run take by it, and what is wrong with its file."""

import json
from pathlib import Path

import pytest

from shapelaw.errors import UserError
from shapelaw.jobs.plan import cost_of
from shapelaw.jobs.resources import job_resources, level_of
from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import CostModel, duration, model_to_dict, read_cost_model, run_seconds, step_counts
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training


def test_a_step_is_counted_by_hand() -> None:
    shape = make_shape(3, 8, 2, 50, 16)
    one, layers, numbers, flops = step_counts(shape, batch_size=4)
    assert (one, layers, flops) == (1, 3, shape.step_flops(4))
    wider_vocabulary = step_counts(make_shape(3, 8, 2, 51, 16), batch_size=4)[2]
    assert wider_vocabulary - numbers == 4 * 16  # a logit more for each token
    model = CostModel(2.0, 3.0, 5.0, 7.0, extra_seconds=11.0, factor=1.0)
    assert model.step_seconds(shape, 4) == pytest.approx(2 + 3 * 3 + 5 * numbers + 7 * flops)
    run = Run("wiki", shape, Training(10, 4), 0)
    assert run_seconds(run, model) == pytest.approx(11 + 10 * model.step_seconds(shape, 4))


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    model = CostModel(1e-3, 3e-4, 4e-12, 4e-15, 7.0, 1.2)
    (tmp_path / "cost.json").write_text(json.dumps(model_to_dict(model)))
    assert read_cost_model(tmp_path / "cost.json") == model


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "can't be read"),
        ("[]", "is not a cost model of version 1"),
        ('{"schema_version": 1, "overhead": -1}', "missing or wrong: overhead, per_layer"),
        (
            json.dumps(model_to_dict(CostModel(0, 0, 0, 0, 1, 1))),
            "all of its terms are zero",
        ),
    ],
)
def test_a_file_that_is_no_model_is_told(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "cost.json").write_text(content)
    with pytest.raises(UserError, match=sentence):
        read_cost_model(tmp_path / "cost.json")


def test_hours_and_time_limits_follow_the_model() -> None:
    model = CostModel(1e-3, 1e-3, 0.0, 0.0, 30.0, 1.2)
    runs = [Run("wiki", make_shape(depth, 64, 2, 2000, 128), Training(10_000, 64), 0) for depth in (1, 99)]
    assert [run_seconds(run, model) for run in runs] == pytest.approx([50.0, 1030.0])
    assert cost_of(runs, Execution(gpus=1), model).hours == pytest.approx(1080 / 3600)
    assert [level_of(run_seconds(run, model) / 60) for run in runs] == ["small", "medium"]
    assert job_resources([[(run,)] for run in runs], Execution(gpus=1), model).minutes >= 5 + 1.5 * 1030 / 60


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.2, "1 second"),
        (40, "40 seconds"),
        (62, "1 minute"),
        (720, "12 minutes"),
        (18720, "5.2 hours"),
        (100000, "27.8 hours"),
        (267840, "3.1 days"),
    ],
)
def test_durations_are_said_in_their_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said

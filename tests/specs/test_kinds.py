"""Each kind of run: its spec is written and read back, its tables say what that says, and what it costs."""

import json
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest
from made_runs import EVERY_OPTION, LLAMA_OPTIONS, PATCHES
from small import listed

from shapelaw.errors import UserError
from shapelaw.jobs.plan import cost_of
from shapelaw.jobs.resources import job_resources, level_of
from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import CostModel, duration, model_to_dict, read_cost_model, run_seconds, step_counts
from shapelaw.specs.kinds import KINDS, AnyRun, is_packed, kind_of, spec_from_dict
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


@pytest.mark.parametrize(("content", "sentence"), listed("specs/mistakes.yaml", "cost_models"))
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


@pytest.mark.parametrize(("seconds", "said"), listed("specs/labels.yaml", "durations"))
def test_durations_are_said_in_their_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


EACH = pytest.mark.parametrize("run", EVERY_OPTION, ids=lambda run: kind_of(run).name or "language")


def test_there_is_a_run_of_each_kind_here() -> None:
    assert [kind_of(run).name for run in EVERY_OPTION] == list(KINDS)


@EACH
def test_a_spec_comes_back_from_its_json(run: AnyRun) -> None:
    spec = run.to_dict()
    assert spec_from_dict(json.loads(json.dumps(spec))) == run
    assert spec_from_dict({**spec, "training_version": 99}) == run
    assert spec.get("kind") == kind_of(run).name


@EACH
def test_a_spec_that_lacks_a_field_is_refused_or_has_its_default(run: AnyRun) -> None:
    spec = run.to_dict()
    for one in fields(run):
        lacking = {name: value for name, value in spec.items() if name != one.name}
        if one.default is MISSING:
            with pytest.raises((KeyError, TypeError)):
                spec_from_dict(lacking)
        else:
            assert spec_from_dict(lacking) == replace(run, **{one.name: one.default})


PACKED_TABLES = {  # that the tables of older runs have
    "memorization": "task context_type heads context head_dim value_dim width classes logit_scale attend_to_query "
    "last_batch examples seed steps batch_size learning_rate total_params steps_done accuracy loss saturated_share "
    "examples_with_free_head wall_seconds model_steps_per_second peak_memory_bytes diverged_at_step",
    "degree": "target target_rank degrees mixture initial_share width inputs seed layer_params total_params steps "
    "batch_size learning_rate evaluate_every loss accuracy diverged_at_step mean_degree steps_to_1 steps_to_0.5 "
    "steps_to_0.2 steps_to_0.1 wall_seconds model_steps_per_second peak_memory_bytes",
}


@EACH
def test_the_columns_of_packed_runs_stay_and_a_pack_is_filled_up_with_runs_alone(run: AnyRun) -> None:
    kind = kind_of(run)
    if is_packed(run):
        names = {one.name for one in (*kind.params, *kind.metrics)}
        assert names >= set(PACKED_TABLES[str(kind.name)].split())
        assert len(kind.filled_up([run, run])) == 2


@EACH
def test_every_parameter_column_is_a_value_of_the_spec_and_of_its_type(run: AnyRun) -> None:
    kind = kind_of(run)
    values = run.flat()
    if isinstance(run, Run):
        values = LLAMA_OPTIONS.flat() | PATCHES.flat() | values
    for column in kind.params:
        assert column.name in values, f"EVERY_OPTION of tests/made_runs.py needs a value of {column.name}"
        text = str(values[column.name])  # as MLflow keeps it
        assert column.kind(text) is not None
        assert text != "None"


@EACH
def test_no_two_columns_have_one_name(run: AnyRun) -> None:
    kind = kind_of(run)
    for columns in (kind.params + kind.metrics, kind.history):
        names = [column.name for column in columns]
        assert len(set(names)) == len(names)

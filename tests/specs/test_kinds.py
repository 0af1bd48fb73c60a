"""Each kind of run: its spec is written and read back, and its tables say what that says."""

import json
from dataclasses import MISSING, fields, replace

import pytest
from made_runs import EVERY_OPTION, LLAMA_OPTIONS, PATCHES

from shapelaw.specs.kinds import (
    KINDS,
    AnyRun,
    is_packed,
    kind_of,
    spec_from_dict,
)
from shapelaw.specs.runs import Run

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

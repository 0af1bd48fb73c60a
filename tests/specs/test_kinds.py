"""Each kind of run: its spec is written and read back."""

import json
from dataclasses import MISSING, fields, replace

import pytest
from made_runs import EVERY_OPTION

from shapelaw.specs.kinds import (
    KINDS,
    AnyRun,
    is_packed,
    kind_of,
    packed_run_from_dict,
    spec_from_dict,
    spec_to_dict,
)

EACH = pytest.mark.parametrize("run", EVERY_OPTION, ids=lambda run: kind_of(run).name or "language")


def test_there_is_a_run_of_each_kind_here() -> None:
    assert [kind_of(run).name for run in EVERY_OPTION] == list(KINDS)


@EACH
def test_a_spec_comes_back_from_its_json(run: AnyRun) -> None:
    spec = spec_to_dict(run)
    assert spec_from_dict(json.loads(json.dumps(spec))) == run
    assert spec_from_dict({**spec, "training_version": 99}) == run
    assert spec.get("kind") == kind_of(run).name


@EACH
def test_a_spec_that_lacks_a_field_is_refused_or_has_its_default(run: AnyRun) -> None:
    spec = spec_to_dict(run)
    for one in fields(run):
        lacking = {name: value for name, value in spec.items() if name != one.name}
        if one.default is MISSING:
            with pytest.raises((KeyError, TypeError)):
                spec_from_dict(lacking)
        else:
            assert spec_from_dict(lacking) == replace(run, **{one.name: one.default})


@EACH
def test_only_runs_of_packs_are_read_as_such(run: AnyRun) -> None:
    spec = {"kind": None, **spec_to_dict(run)}
    if is_packed(run):
        assert packed_run_from_dict(spec) == run
        assert len(kind_of(run).filled_up([run, run])) == 2
    else:
        with pytest.raises(TypeError, match="is not trained in a pack"):
            packed_run_from_dict(spec)

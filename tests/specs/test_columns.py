"""The tables of each kind of run say what its spec says."""

import pytest
from made_runs import EVERY_OPTION, LLAMA_OPTIONS, PATCHES

from shapelaw.specs.kinds import AnyRun, kind_of
from shapelaw.specs.runs import Run

EACH = pytest.mark.parametrize("run", EVERY_OPTION, ids=lambda run: kind_of(run).name or "language")


@EACH
def test_every_parameter_column_is_a_value_of_the_spec_and_of_its_type(run: AnyRun) -> None:
    kind = kind_of(run)
    values = kind.flat(run)
    if isinstance(run, Run):
        values = kind.flat(LLAMA_OPTIONS) | kind.flat(PATCHES) | values
    for column in kind.params:
        text = str(values[column.name])  # as MLflow keeps it
        assert column.kind(text) is not None
        assert text != "None"


@EACH
def test_no_two_columns_have_one_name(run: AnyRun) -> None:
    kind = kind_of(run)
    for columns in (kind.params + kind.metrics, kind.history):
        names = [column.name for column in columns]
        assert len(set(names)) == len(names)

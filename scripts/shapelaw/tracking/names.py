"""How MLflow's users read runs: short names, metrics in groups, constants among the parameters.

MLflow's charts have a section for each group (the part of a metric's name before the slash), and a tab of their own for
`system/`. Stores of older versions have plain names, such as `final_test_loss`; they are read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from shapelaw.specs.kinds import AnyRun, kind_of

CURVES = {  # columns of histories
    "train_loss": "loss/train",
    "test_loss": "loss/test",
    "loss": "loss/all_examples",
    "accuracy": "accuracy/all_examples",
    "learning_rate": "schedule/learning_rate",
    "gradient_norm": "schedule/gradient_norm",
}
CONSTANTS = ("tokens_trained", "test_sequences", "test_tokens", "test_bytes")  # the same for every seed
_RESULT, _SYSTEM = "result/", "system/"
_SYSTEM_ENDINGS = (
    "_seconds",
    "_bytes",
    "_per_second",
    "_utilisation",
    "_flops",
    "_watts",
    "_wait",
    "_percent",
)
_TOKEN = re.compile(r"-(?=[A-Za-z])")  # between the parts of a key; not inside 1e-05


def result_name(name: str) -> str:
    """The metric for a number of a run's summary: `result/test_loss`, `system/tokens_per_second`."""
    group = _SYSTEM if name.endswith(_SYSTEM_ENDINGS) else _RESULT
    return group + name.removeprefix("final_")


def stored_result(name: str, params: Mapping[str, str], metrics: Mapping[str, float]) -> str | float | None:
    """A number of a run's summary as MLflow has it, in a store of this version or an older one; None where it has none.

    Args:
        name: of the summary, or that of an older store: `final_test_loss`, `tokens_per_second`.
    """
    if name in CONSTANTS and name in params:
        return params[name]
    for stored in (result_name(name), name):
        if stored in metrics:
            return metrics[stored]
    return None


def plain_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """A run's metrics without groups, for a table: its results and what it cost, not the last points of its curves."""
    plain = {}
    for name, value in metrics.items():
        if name not in CURVES.values():
            plain[name.removeprefix(_RESULT).removeprefix(_SYSTEM)] = value
    return plain


def run_name(run: AnyRun) -> str:
    """A name that differs from those of its neighbours in its first characters: `L4 d48 s0 wiki V500 H2 t400`."""
    first, rest = _parts(run)
    return " ".join([*first, *rest])


def shape_name(run: AnyRun) -> str:
    """The same without the seed, and four digits of the spec: runs that differ by the seed alone share it."""
    first, rest = _parts(run)
    named = [part for part in [*first, *rest] if part != f"s{run.seed}"]
    return " ".join([*named, replace(run, seed=0).digest[:4]])


def _parts(run: AnyRun) -> tuple[list[str], list[str]]:
    """The parts of a run's label: those that come first in its name, and the others."""
    rest = _TOKEN.split(run.label)
    first = []
    for letter in kind_of(run).name_begins:
        found = [part for part in rest if re.fullmatch(rf"{letter}\d\S*", part)]
        if found:
            first.append(found[-1])
            rest.remove(found[-1])
    return first, rest

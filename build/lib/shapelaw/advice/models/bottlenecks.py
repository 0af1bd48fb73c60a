"""The bottlenecks of architectures with their redundancies, as a table to read, as rows, and in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from shapelaw.advice.models.architectures import (
    Architecture,
    Binding,
    Bottleneck,
    attention_ratio,
    bindings,
    input_rank,
)
from shapelaw.advice.models.measured import (
    RANK,
    RATIO,
    Estimate,
    Series,
    attention_setting,
    estimate,
    rank_setting,
)
from shapelaw.report.reading import MISSING
from shapelaw.report.tables import picked

NONE = "none"
_ADVICE = {
    Bottleneck.VOCABULARY: "Take a larger vocabulary, or go deeper instead of wider.",
    Bottleneck.RANK: "Raise the rank towards the width, or go deeper instead of wider.",
    Bottleneck.PATCH: "Embed more inputs at once (larger patches, another convolution), or go deeper instead of wider.",
    Bottleneck.ATTENTION: "Widen the network instead of its heads.",
}
_FREE = "Whether that costs anything is not known: the interval holds zero."


@dataclass(frozen=True)
class Finding:
    """A bottleneck that binds in an architecture, with its redundancy; `binding` is None where nothing binds."""

    architecture: Architecture
    binding: Binding | None = None
    redundancy: Estimate | None = None

    @property
    def bottleneck(self) -> str:
        """The name of what binds."""
        return NONE if self.binding is None else self.binding.bottleneck.value


def findings_of(architecture: Architecture, series: Sequence[Series]) -> tuple[Finding, ...]:
    """A finding for each bottleneck that binds, or one that says that none does.

    Args:
        series: measured redundancies, the preferred ones first.
    """
    found = []
    for one in bindings(architecture):
        if one.bottleneck is Bottleneck.ATTENTION:
            attention = architecture.attention_width or 0
            kind, setting = RATIO, attention_setting(architecture.ff_width, architecture.width, attention)
        else:
            kind, setting = RANK, rank_setting(architecture.patch is not None)
        found.append(
            Finding(architecture, one, estimate(kind, one.strength, setting, series, architecture.size))
        )
    return tuple(found) or (Finding(architecture),)


def full_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """One row a finding, with every number: shares as fractions, missing values empty."""
    whole = ("vocabulary", "embedding_rank", "attention_width", "depth", "params")
    return pd.DataFrame([_row(one) for one in findings]).astype(dict.fromkeys(whole, "Int64"))


def _row(finding: Finding) -> dict[str, object]:
    a, found = finding.architecture, finding.redundancy
    rank = input_rank(a)
    return {
        "architecture": a.name,
        "input": rank_setting(a.patch is not None),
        **picked(a, "vocabulary", "embedding_rank"),
        "rank": rank,
        **picked(a, "width", "attention_width", "depth", "params"),
        "bottleneck": finding.bottleneck,
        "rank_over_width": rank / a.width,
        "attention_ratio": math.nan if (ratio := attention_ratio(a)) is None else ratio,
        **picked(found, redundancy="value", low="low", high="high"),
        "basis": None if found is None else found.basis.value,
        "measured": None if found is None else found.source,
        "source": a.source or None,
    }


def _shown(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


_READABLE: Mapping[str, tuple[str, Callable[[Finding], str]]] = {  # column to read: its alignment, its cells
    "architecture": ("left", lambda one: one.architecture.name),
    "V": ("right", lambda one: f"{one.architecture.vocabulary:,}"),
    "r": ("right", lambda one: f"{input_rank(one.architecture):,}"),
    "d": ("right", lambda one: f"{one.architecture.width:,}"),
    "H d_a": ("right", lambda one: _shown(one.architecture.attention_width, ",")),
    "L": ("right", lambda one: _shown(one.architecture.depth, "")),
    "binds": ("left", lambda one: one.bottleneck),
    "r/d": ("right", lambda one: f"{input_rank(one.architecture) / one.architecture.width:.2g}"),
    "H d_a/d": ("right", lambda one: _shown(attention_ratio(one.architecture), ".3g")),
    "redundancy": ("left", lambda one: redundancy_text(one.redundancy)),
    "basis": ("left", lambda one: MISSING if one.redundancy is None else one.redundancy.basis.value),
}


def readable_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """The same in the columns and digits that a reader needs, all of it text."""
    rows = [[cell(one) for _, cell in _READABLE.values()] for one in findings]
    return pd.DataFrame(rows, columns=list(_READABLE))


def aligned(table: pd.DataFrame, form: str) -> str:
    """A readable table as text.

    Args:
        form: "plain" for a terminal, "pipe" for Markdown.
    """
    sides = [side for side, _ in _READABLE.values()]
    return str(table.to_markdown(index=False, tablefmt=form, disable_numparse=True, colalign=sides))


def redundancy_text(found: Estimate | None) -> str:
    """A redundancy with what is known of it: a value, its interval, or a bound."""
    if found is None:
        return MISSING
    if not math.isnan(found.value):
        interval = "" if math.isnan(found.low) else f" ({_range(found.low, found.high)})"
        return f"{found.value:.0%}{interval}"
    return _range(found.low, found.high)


def _range(low: float, high: float) -> str:
    if low <= 0:
        return "unknown" if high >= 1 else f"at most {high:.0%}"
    return f"at least {low:.0%}" if high >= 1 else f"{low:.0%} to {high:.0%}"


def sentences(finding: Finding) -> str:
    """The bottleneck that binds, its cost and what would help, in sentences."""
    a, one = finding.architecture, finding.binding
    rank = input_rank(a)
    if one is None:
        attention = a.attention_width
        heads = "its heads are not known" if attention is None else f"H d_a = {attention:,} is no wider"
        return f"{a.name}: nothing binds. The embedding's rank can reach the width {a.width:,}, and {heads}."
    if one.bottleneck is Bottleneck.ATTENTION:
        caps = f"{one.strength:.3g} times the width {a.width:,}, which caps it."
        said = f"H d_a = {a.attention_width:,} is {caps}"
    else:
        said = f"The embedding has a rank of at most {rank:,} in a width of {a.width:,}."
    cost, advice = "", _ADVICE[one.bottleneck]
    if (found := finding.redundancy) is not None:
        cost = f" Redundancy: {redundancy_text(found)}, {found.basis.value} ({found.source})."
        if a.size is None:
            cost += " Its parameters are not known, nor its depth; it is taken as a large network."
        advice = _FREE if found.low <= 0 else advice
    return f"{a.name}: the {one.bottleneck.value} binds. {said}{cost} {advice}"

"""The bottlenecks of architectures with their redundancies, as a table to read, as rows, and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from shapelaw.fits.redundancy import (
    RANK,
    RATIO,
    Estimate,
    Series,
    attention_setting,
    estimate,
    rank_setting,
)
from shapelaw.report.tables import MISSING, picked
from shapelaw.specs.architectures import Architecture
from shapelaw.theory.rank_bounds import Binding, Bottleneck, attention_ratio, bindings, input_rank

NONE = "none"
_READABLE = {  # column to read: alignment
    "architecture": "left",
    "V": "right",
    "r": "right",
    "d": "right",
    "H d_a": "right",
    "L": "right",
    "binds": "left",
    "r/d": "right",
    "H d_a/d": "right",
    "redundancy": "left",
    "basis": "left",
}
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
        "bottleneck": NONE if finding.binding is None else finding.binding.bottleneck.value,
        "rank_over_width": rank / a.width,
        "attention_ratio": math.nan if (ratio := attention_ratio(a)) is None else ratio,
        **picked(found, redundancy="value", low="low", high="high"),
        "basis": None if found is None else found.basis.value,
        "measured": None if found is None else found.source,
        "source": a.source or None,
    }


def readable_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """The same in the columns and digits that a reader needs, all of it text."""
    rows = []
    for one in findings:
        a, ratio = one.architecture, attention_ratio(one.architecture)
        cells = (
            a.name,
            f"{a.vocabulary:,}",
            f"{input_rank(a):,}",
            f"{a.width:,}",
            MISSING if a.attention_width is None else f"{a.attention_width:,}",
            MISSING if a.depth is None else str(a.depth),
            NONE if one.binding is None else one.binding.bottleneck.value,
            f"{input_rank(a) / a.width:.2g}",
            MISSING if ratio is None else f"{ratio:.3g}",
            redundancy_text(one.redundancy),
            MISSING if one.redundancy is None else one.redundancy.basis.value,
        )
        rows.append(dict(zip(_READABLE, cells, strict=True)))
    return pd.DataFrame(rows, columns=list(_READABLE))


def aligned(table: pd.DataFrame, form: str) -> str:
    """A readable table as text.

    Args:
        form: "plain" for a terminal, "pipe" for Markdown.
    """
    return str(
        table.to_markdown(
            index=False, tablefmt=form, disable_numparse=True, colalign=tuple(_READABLE.values())
        )
    )


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
        heads = (
            "its heads are not known"
            if a.attention_width is None
            else f"H d_a = {a.attention_width:,} is no wider"
        )
        return f"{a.name}: nothing binds. The embedding's rank can reach the width {a.width:,}, and {heads}."
    if one.bottleneck is Bottleneck.ATTENTION:
        said = (
            f"H d_a = {a.attention_width:,} is {one.strength:.3g} times the width {a.width:,}, which caps it."
        )
    else:
        said = f"The embedding has a rank of at most {rank:,} in a width of {a.width:,}."
    cost = ""
    if finding.redundancy is not None:
        found = finding.redundancy
        cost = f" Redundancy: {redundancy_text(found)}, {found.basis.value} ({found.source})."
        if a.size is None:
            cost += " Its parameters are not known, nor its depth; it is taken as a large network."
    advice = (
        _FREE if finding.redundancy is not None and finding.redundancy.low <= 0 else _ADVICE[one.bottleneck]
    )
    return f"{a.name}: the {one.bottleneck.value} binds. {said}{cost} {advice}"

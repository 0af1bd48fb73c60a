"""The bottlenecks of architectures with their redundancies, as a table to read, as rows, and in sentences.

Redundancies are those that were measured: ours, out of the folder of results of a study, and the published ones. The
strength of a bottleneck is d / r for the embedding's rank and H d_a / d for the attention's width: 1 without a
bottleneck. That redundancy grows with it (Wies et al. 2021, figures 2 and 4) is all that is assumed between two
published strengths; between two of ours, which have intervals, redundancy and interval are interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pandas as pd

from shapelaw.advice.models.architectures import Architecture, Binding, Bottleneck
from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, numbers_or_empty, read_table, require_columns
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.reading import MISSING
from shapelaw.report.tables import picked
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.decoders.redundancies import REDUNDANT
from shapelaw.studies.study import REFERENCE, published_of

TOKENS, PATCHES = "tokens", "patches"  # the setting of a rank: how the input is embedded
# of an attention ratio: the feed-forward width
AS_T5, AS_GPT, OTHER = "d_ff = 4 H d_a", "d_ff = 4 d", "another d_ff"
RANK, RATIO = "d / r", "H d_a / d"  # the kinds of strength
_SAME_WIDTH = 0.05  # relative difference of feed-forward widths that count as equal
_ROUNDING = 1e-9  # relative, of strengths that count as equal
SIZE_REACH = 10.0  # factor of the parameters, beyond the networks measured, within which a measurement counts
_PAPER, _SHARE = "Wies et al. 2021", "; a share of all parameters"
_PUBLISHED_SIZES = 3e7, math.inf  # figures 2 and 4 have 30 to 75 million; the paper projects them upwards


class Basis(StrEnum):
    """The measurement that an estimate rests on."""

    FIT = "our fit"
    PUBLISHED = "published"
    BETWEEN = "between published"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True)
class Point:
    """A redundancy measured at a strength, or over a short range of strengths.

    Attributes:
        weakest, strongest: the range of strengths that it holds for.
        value: the redundancy; NaN where only an interval is known.
        low, high: the interval; -inf or 1 where it is open on that side, NaN without one.
    """

    weakest: float
    strongest: float
    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def least(self) -> float:
        """The least that it can be: the interval's end, or the value where there is no interval."""
        return self.value if math.isnan(self.low) else self.low

    @property
    def most(self) -> float:
        """The most that it can be."""
        return self.value if math.isnan(self.high) else self.high


@dataclass(frozen=True)
class Series:
    """Redundancies of one bottleneck in one setting.

    Attributes:
        kind: the number that its strengths are, d / r or H d_a / d.
        setting: of the networks that were measured.
        basis: ours or published.
        source: where they stand, and of which networks.
        points: in growing strength, at least one.
        sizes: all parameters of the smallest and of the largest network that it counts for; None where it counts for
            any size.
    """

    kind: str
    setting: str
    basis: Basis
    source: str
    points: tuple[Point, ...]
    sizes: tuple[float, float] | None = None

    def reaches(self, params: float | None) -> bool:
        """True for a size within a factor of 10 of `sizes`; an unknown size counts as a large one."""
        if self.sizes is None:
            return True
        size = math.inf if params is None else params
        return self.sizes[0] / SIZE_REACH <= size <= self.sizes[1] * SIZE_REACH

    def at(self, strength: float) -> Point | None:
        """The redundancy at a strength; None outside the strengths that were measured."""
        for point in self.points:
            if point.weakest * (1 - _ROUNDING) <= strength <= point.strongest * (1 + _ROUNDING):
                return point
        weaker = [point for point in self.points if point.strongest < strength]
        stronger = [point for point in self.points if point.weakest > strength]
        return _between(weaker[-1], stronger[0], strength) if weaker and stronger else None


@dataclass(frozen=True)
class Estimate:
    """A redundancy with its interval and what it rests on; `value` is NaN where only the interval is known."""

    value: float
    low: float
    high: float
    basis: Basis
    source: str


def estimate(
    kind: str, strength: float, setting: str, series: Iterable[Series], params: float | None = None
) -> Estimate | None:
    """The redundancy of a bottleneck by the first series of its setting and size that covers its strength.

    Where none does, the estimate is extrapolated: from the first series of another setting, or else of other sizes,
    that has this strength, or else it is at least what was measured at the greatest strength.

    Args:
        kind: the number that the strength is, d / r or H d_a / d.
        series: the preferred ones first.
        params: all parameters of the architecture, where they are known; a measurement counts only near its own sizes.

    Returns:
        The estimate; None where no series is of this kind.
    """
    of_kind = sorted(
        (one for one in series if one.kind == kind),
        key=lambda one: (not one.reaches(params), one.setting != setting),
    )
    near = [one for one in of_kind if one.reaches(params) and one.setting == setting]
    for one in of_kind:
        point = one.at(strength)
        if point is not None:
            basis = one.basis if one in near else Basis.EXTRAPOLATED
            if basis is Basis.PUBLISHED and math.isnan(point.value):
                basis = Basis.BETWEEN
            return Estimate(point.value, point.low, point.high, basis, one.source)
    beyond = [one for one in of_kind if one.points[-1].strongest < strength]
    if not beyond:
        return None
    last = max([one for one in beyond if one in near] or beyond, key=lambda one: one.points[-1].strongest)
    return Estimate(math.nan, last.points[-1].least, 1.0, Basis.EXTRAPOLATED, last.source)


def rank_setting(patches: bool) -> str:
    """The setting of a rank of the embedding."""
    return PATCHES if patches else TOKENS


def attention_setting(ff_width: int | None, width: int, attention_width: int) -> str:
    """The setting of an attention ratio; an unknown feed-forward width counts as the paper's, 4 H d_a."""
    if ff_width is None or math.isclose(ff_width, 4 * attention_width, rel_tol=_SAME_WIDTH):
        return AS_T5
    return AS_GPT if math.isclose(ff_width, 4 * width, rel_tol=_SAME_WIDTH) else OTHER


def _between(weaker: Point, stronger: Point, strength: float) -> Point:
    """Between two points: interpolated in log strength where both have intervals, else bounded by both."""
    if any(math.isnan(end) for end in (weaker.low, weaker.high, stronger.low, stronger.high)):
        return Point(strength, strength, math.nan, weaker.least, stronger.most)
    left, right = math.log(weaker.strongest), math.log(stronger.weakest)
    share = (math.log(strength) - left) / (right - left)
    ends = zip(
        (weaker.value, weaker.low, weaker.high), (stronger.value, stronger.low, stronger.high), strict=True
    )
    return Point(strength, strength, *((1 - share) * a + share * b for a, b in ends))


_TABLE, _NETWORKS = "redundancy.csv", "losses.csv"
_SHARES = ("redundancy", "low", "high")
_COLUMNS = ("size_axis", *_SHARES, "status")
_OF_RATIOS, _OF_RANKS = ("ratio", "compared"), ("rank_over_width",)
_FACTORED = "of that rank too"  # the positions, as published and as in ALBERT
_FEED_FORWARD = {"4 H d_a": AS_T5, "4 d": AS_GPT}


def fitted_series(folder: Path, axis: SizeAxis, name: str = "") -> tuple[Series, ...]:
    """The redundancies in a folder of results, a series for each setting.

    Args:
        folder: of `analyse.py embedding_rank` or `analyse.py attention_ratio`.
        axis: the size in which the redundancy is meant.
        name: of the measurement, for readers; its table's path where it has none.

    Raises:
        UserError: the folder has no such results, or none with an interval.
    """
    path = folder / _TABLE
    if not path.is_file():
        raise UserError(
            f"{folder} has no {_TABLE}; --fit needs the results of the study embedding_rank or attention_ratio."
        )
    table = read_table(path)
    strength, *others = _OF_RATIOS if "feed_forward" in table else _OF_RANKS
    require_columns(table, [*_COLUMNS, strength, *others], str(path))
    table[strength] = numbers_of(table, [strength], str(path), positive=[strength])
    table[[*_SHARES]] = numbers_or_empty(table, _SHARES, str(path))
    known = table[(table["size_axis"] == axis.value) & table["low"].notna() & table["high"].notna()]
    kind, rows = (RATIO, _ratios(known)) if "feed_forward" in known else (RANK, _ranks(known))
    if rows.empty:
        raise UserError(
            f"{path} has no redundancy in {SIZE_LABELS[axis]} with an interval; the study needs seeds that repeat."
        )
    source = f"{name or path}, in {SIZE_LABELS[axis]}"
    if (span := _sizes_in(folder / _NETWORKS, axis)) is not None:
        source += ", measured at {:.2g} to {:.2g}".format(*span)
    params = _sizes_in(folder / _NETWORKS, SizeAxis.TOTAL)
    return tuple(
        Series(kind, str(setting), Basis.FIT, source, _points(mine), params)
        for setting, mine in rows.groupby("setting", sort=False)
    )


def _ranks(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of ranks up to the width, with positions of the same rank where there are such networks."""
    if "positions" in known and (known["positions"] == _FACTORED).any():
        known = known[known["positions"] == _FACTORED]
    known = known[known["rank_over_width"] < 1]  # a product at full rank shows what factoring costs
    return known.assign(strength=1 / known["rank_over_width"], setting=TOKENS)


def _ratios(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of each setting at the size at which its ratios compare."""
    rows = known[known["compared"] == "yes"]
    return rows.assign(strength=rows["ratio"], setting=rows["feed_forward"].map(_FEED_FORWARD))


def _points(rows: pd.DataFrame) -> tuple[Point, ...]:
    """The redundancies in growing strength, behind none at a strength of 1, by definition."""
    measured = (
        Point(
            float(row["strength"]),
            float(row["strength"]),
            float(row["redundancy"]) if row["status"] == RedundancyStatus.MEASURED.value else math.nan,
            float(row["low"]),
            float(row["high"]),
        )
        for row in rows.sort_values("strength").to_dict("records")
    )
    return Point(1.0, 1.0, 0.0, 0.0, 0.0), *measured


def _sizes_in(path: Path, axis: SizeAxis) -> tuple[float, float] | None:
    """The smallest and the largest size in a table of networks, where it stands beside."""
    if not path.is_file():
        return None
    column, table = SIZE_COLUMNS[axis], read_table(path)
    require_columns(table, [column], str(path))
    sizes = numbers_of(table, [column], str(path))[column]
    return float(sizes.min()), float(sizes.max())


MEASURED = REFERENCE / "measured"  # redundancy.csv and losses.csv of docs/results/laptop_STUDY.csv
_STUDIES = ("embedding_rank", "attention_ratio")


def known_redundancies(axis: SizeAxis = SizeAxis.TOTAL, fits: Iterable[Path] = ()) -> list[Series]:
    """All that are known, the preferred ones first.

    Args:
        axis: the size in which those of `fits` and ours are meant; the published ones are of all parameters.
        fits: folders of results of the user's own.

    Raises:
        UserError: a folder has no redundancies.
    """
    ours = {MEASURED / study: f"docs/results/laptop_{study}.csv" for study in _STUDIES}
    folders = [*((folder, "") for folder in fits), *ours.items()]
    found = [one for folder, name in folders for one in fitted_series(folder, axis, name)]
    return [*found, *published_redundancies()]


def published_redundancies() -> tuple[Series, ...]:
    """Those of the vocabulary paper, shares of all parameters; 0 without a bottleneck, by definition.

    The one at r/d = 16/680 holds up to ALBERT-xxlarge's 128/4096, as section 5.1 has it ("close to"). The paper itself
    projects them to larger networks (T5-11B), not to smaller ones.
    """
    ranks, ratios = (published_of(study, REDUNDANT) for study in _STUDIES)
    (rank,) = (one.number for one in ranks.values())
    none = Point(1.0, 1.0, 0.0)
    return (
        Series(
            RANK,
            TOKENS,
            Basis.PUBLISHED,
            f"{_PAPER}, figure 2 and section 5.1: r/d = 16/680, 12 layers, about 70M parameters{_SHARE}",
            (none, Point(4096 / 128, 680 / 16, rank)),
            _PUBLISHED_SIZES,
        ),
        Series(
            RATIO,
            AS_T5,
            Basis.PUBLISHED,
            f"{_PAPER}, figure 4 and section 5.3: H d_a/d of 4 and 16 with d_ff = 4 H d_a, 30M to 70M parameters"
            f"{_SHARE}",
            (none, *(Point(float(ratio), float(ratio), one.number) for ratio, one in ratios.items())),
            _PUBLISHED_SIZES,
        ),
    )


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
    for one in architecture.bindings:
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
    return {
        "architecture": a.name,
        "input": rank_setting(a.patch is not None),
        **picked(a, "vocabulary", "embedding_rank", rank="input_rank"),
        **picked(a, "width", "attention_width", "depth", "params"),
        "bottleneck": finding.bottleneck,
        "rank_over_width": a.input_rank / a.width,
        "attention_ratio": a.attention_ratio,
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
    "r": ("right", lambda one: f"{one.architecture.input_rank:,}"),
    "d": ("right", lambda one: f"{one.architecture.width:,}"),
    "H d_a": ("right", lambda one: _shown(one.architecture.attention_width, ",")),
    "L": ("right", lambda one: _shown(one.architecture.depth, "")),
    "binds": ("left", lambda one: one.bottleneck),
    "r/d": ("right", lambda one: f"{one.architecture.input_rank / one.architecture.width:.2g}"),
    "H d_a/d": ("right", lambda one: _shown(one.architecture.attention_ratio, ".3g")),
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
    if one is None:
        attention = a.attention_width
        heads = "its heads are not known" if attention is None else f"H d_a = {attention:,} is no wider"
        return f"{a.name}: nothing binds. The embedding's rank can reach the width {a.width:,}, and {heads}."
    if one.bottleneck is Bottleneck.ATTENTION:
        caps = f"{one.strength:.3g} times the width {a.width:,}, which caps it."
        said = f"H d_a = {a.attention_width:,} is {caps}"
    else:
        said = f"The embedding has a rank of at most {a.input_rank:,} in a width of {a.width:,}."
    cost, advice = "", _ADVICE[one.bottleneck]
    if (found := finding.redundancy) is not None:
        cost = f" Redundancy: {redundancy_text(found)}, {found.basis.value} ({found.source})."
        if a.size is None:
            cost += " Its parameters are not known, nor its depth; it is taken as a large network."
        advice = _FREE if found.low <= 0 else advice
    return f"{a.name}: the {one.bottleneck.value} binds. {said}{cost} {advice}"

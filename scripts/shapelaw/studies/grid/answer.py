"""What a grid says, in sentences: its cells, the effect of every axis, the best shapes; and in one line."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import pandas as pd

from shapelaw.fits.noise import chance_words, noise_sentence
from shapelaw.fits.projection import why_no_projection
from shapelaw.report.plots import short_number
from shapelaw.report.write import Answer, Table
from shapelaw.studies.grid.analysis import BITS, CellAnalysis, GridAnalysis
from shapelaw.studies.grid.cells import Cell, Cells, plain, said
from shapelaw.studies.grid.tables import DIFFERENCE, MEASURED, RATIO
from shapelaw.studies.transitions.sentences import overtaken, transition_sentences

SIGNIFICANT = 0.05
SHOWN_SIZES = 5
T = TypeVar("T", bound=Hashable)
Row = Mapping[Hashable, Any]


def answer(tables: Mapping[str, Table]) -> Answer:
    """What each axis does, in one line: its largest effect beyond the noise, or how small all are.

    Args:
        tables: `effects` and `transitions` of the grid.
    """
    effects = tables["effects"].frame
    found = effects[(effects["quantity"] == DIFFERENCE) & effects["value"].notna()]
    if found.empty:
        if effects.empty:  # one cell: no axis has an effect, and which depth wins is what can be asked
            return overtaken(tables["transitions"].frame)
        return Answer("No two cells that differ in one thing have sizes in common.", False)
    said_of = [_of_axis(axis, rows) for axis, rows in found.groupby("axis", sort=False)]
    return Answer("; ".join(said_of) + ".", bool(found["p"].notna().any()))


def _of_axis(axis: object, rows: pd.DataFrame) -> str:
    rows = rows.loc[rows["value"].abs().sort_values(ascending=False, kind="stable").index]
    measured = rows[rows["p"].notna()]
    if measured.empty:
        return f"{axis}: {effect_words(rows.iloc[0].to_dict())}"
    clear = measured[measured["p_holm"] < SIGNIFICANT]
    if clear.empty:
        return f"{axis}: no effect beyond the noise, at most {effect_words(measured.iloc[0].to_dict())}"
    return (
        f"{axis}: {len(clear)} of {len(measured)} differences are beyond the noise, most from "
        f"{effect_words(clear.iloc[0].to_dict())}"
    )


def effect_words(row: Row) -> str:
    """`H = 1 to H = 2 +0.0120 nats per token (0.0080 to 0.0160)`, or that there is no noise estimate."""
    axis = str(row["axis"])
    pair = f"{said(axis, plain(row['one']))} to {said(axis, plain(row['other']))}"
    if row["quantity"] == RATIO:
        return f"{pair} by a factor of {row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
    interval = "no noise estimate"
    if not math.isnan(row["low"]):
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
    return f"{pair} {row['value']:+.4f} {row['unit']} ({interval})"


def summary(analysis: GridAnalysis, effects: pd.DataFrame) -> str:
    """The findings in sentences, one a line."""
    lines = [
        *_cell_sentences(analysis),
        *_effect_sentences(analysis, effects),
        *_best_sentences(analysis),
    ]
    return "\n".join(lines)


def _cell_sentences(analysis: GridAnalysis) -> Iterator[str]:
    """What tells the cells apart, what follows in them, their noise, transitions and lines."""
    cells = analysis.cells
    if cells.axes:
        yield f"{len(cells.cells)} cells, which differ in {', '.join(cells.axes)}."
    for rules, kin in _alike((one.rules, one) for one in cells.cells if one.rules).items():
        yield f"Within a cell{_of(cells, kin)}: {'; '.join(rules)}."
    for noise, kin in _alike((one.losses[1], one.cell) for one in analysis.analyses).items():
        yield f"{noise_sentence(noise).removesuffix('.')}{_of(cells, kin)}."
    told = [
        (sentence.removeprefix(": "), one.cell)
        for one in analysis.analyses
        for sentence in (*transition_sentences("", one.transitions), *_other_sentences(one))
    ]
    yield from (f"{_first(cells.name_of(kin))}: {sentence}." for sentence, kin in _alike(told).items())


def _other_sentences(one: CellAnalysis) -> Iterator[str]:
    """The line of a cell, and why it has no transition where it has one depth."""
    if len(one.losses[0]) < 2:
        yield "there is one depth, so there are no transitions"
    fit = one.transitions.fit
    if why_no_projection(fit) is None:
        yield f"log d = a + b L with a = {fit.a:.3f} ± {fit.a_err:.3f} and b = {fit.b:.4f} ± {fit.b_err:.4f}"


def _alike(told: Iterable[tuple[T, Cell]]) -> dict[T, list[Cell]]:
    """The cells of which the same is told."""
    found: dict[T, list[Cell]] = {}
    for what, cell in told:
        found.setdefault(what, []).append(cell)
    return found


def _of(cells: Cells, kin: list[Cell]) -> str:
    return "" if len(kin) == len(cells.cells) else f" ({cells.name_of(kin)})"


def _first(text: str) -> str:
    """A text that begins a sentence, where it is a word of ours."""
    return text[:1].upper() + text[1:] if text.startswith("all ") else text


def _effect_sentences(analysis: GridAnalysis, effects: pd.DataFrame) -> Iterator[str]:
    """Of each axis the means over settings, or the single differences where there is one setting; moved transitions."""
    tested = int(effects["p"].notna().sum())
    if tested:
        yield f"P values have Holm's correction for the {tested} effects of this grid."
    for axis, rows in effects.groupby("axis", sort=False):
        differences = rows[(rows["quantity"] == DIFFERENCE) & rows["value"].notna()]
        means = differences[differences["settings"] > 1]
        for row in (differences if means.empty else means).to_dict("records"):
            over = (
                f" on average over {row['settings']} settings" if row["settings"] > 1 else _at(analysis, row)
            )
            chance = "" if math.isnan(row["p_holm"]) else f"; {chance_words(row['p_holm'])}"
            yield f"{axis}{over}, at equal size: {effect_words(row)}{chance}."
        moved = rows[(rows["quantity"] == RATIO) & (rows["status"] == MEASURED)]
        for row in moved.to_dict("records"):
            yield (
                f"{axis}{_at(analysis, row)}: the width at which depth {row['deeper_depth']} overtakes {row['depth']} "
                f"moves from {effect_words(row)}; {chance_words(row['p_holm'])}."
            )


def _at(analysis: GridAnalysis, row: Row) -> str:
    others = [said(name, plain(row[name])) for name in analysis.cells.axes if name != row["axis"]]
    return f" at {', '.join(others)}" if others else ""


def _best_sentences(analysis: GridAnalysis) -> Iterator[str]:
    """The best shape of some sizes that several candidates reach, from the smallest to the largest."""
    if not analysis.best and analysis.unit == BITS:
        yield "The table has no bits per byte, in which alone the losses of several vocabularies or texts compare."
    several = [at for at in analysis.best if len(at) > 1]
    step = max(1, math.ceil(len(several) / SHOWN_SIZES))
    for at in several[::-1][::step][::-1]:
        best = at[0]
        near = sum(one.near for one in at[1:])
        of = f" in {best.cell.cell.name}" if analysis.cells.axes else ""
        rest = (
            "without a noise estimate"
            if any(math.isnan(one.above_err) for one in at)
            else f"{near} of {len(at) - 1} others are within the noise of it"
        )
        yield (
            f"Size {short_number(best.size)}: depth {best.depth} with width {best.width:.0f}{of} is best; {rest}."
        )

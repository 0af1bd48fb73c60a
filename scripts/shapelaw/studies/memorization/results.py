"""Memorization: the number of examples that the heads of one attention layer learn by heart.

Mahdavi et al. 2024, "Memorization Capacity of Multi-Head Attention in Transformers", sections 5.1 and 5.2 and
appendices H and I. From runs on random examples: the share memorized against the heads H, the context length n and
the head dimension d_h, for several numbers of examples T, with the theory's `H (min(n, d_h) - 1) + 1`.

    paper                       study                   here
    figures 2a, 4a, 5a          memorization_heads      share, per_head: a line below saturation? examples per head
    figure 3's subject          memorization_heads      saturated: the share of saturated heads against H
    figures 2b, 4b, 5b          memorization_context    share: monotone in n, by a test that knows its noise
    figure 2c                   memorization_head_dim   share: the knee in d_h, and the gain beyond d_h = n
    figure 3, appendix H        memorization_saturation saturated heads; the largest T memorized perfectly
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.line import FitStatus, overall_status
from shapelaw.fits.memorized import SATURATED, check_memorization_runs
from shapelaw.report.tables import NO, OPEN, YES, plain_rows
from shapelaw.report.write import Answer, Results, Table, tables_of
from shapelaw.specs.memorizers import beyond_theorem
from shapelaw.studies.memorization import figures, saturation
from shapelaw.studies.memorization import tables as tabled
from shapelaw.studies.memorization.analysis import MemorizationAnalysis, analyse_runs
from shapelaw.studies.memorization.saturation import Saturation, analyse_saturation
from shapelaw.studies.memorization.study import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS, SATURATION
from shapelaw.studies.memorization.study import STUDIES as DECLARED
from shapelaw.studies.study_runs import StudyRuns, measured_runs

NEEDS_INPUT = False  # attention weights alone tell how many heads are saturated
_MODELS = {
    ALONG_HEADS: f"share = intercept + slope H up to a mean share of {SATURATED}, where a parabola is no better",
    ALONG_CONTEXT: "share does not fall with n (isotonic regression)",
    ALONG_HEAD_DIM: "share = plateau - slope max(knee - d_h, 0)",
}
FIGURES = {
    "share": figures.share_figure,
    "per_head": figures.per_head_figure,
    "saturated": figures.saturated_figure,
    "capacity": figures.capacity_figure,
}
QUANTITIES = {  # of the table `comparison`: the one that answers the study's question
    ALONG_HEADS: "p-value of a line in H",
    ALONG_CONTEXT: "largest fall of the share in n",
    ALONG_HEAD_DIM: "gain in share beyond d_h = n",
    SATURATION: "share of saturated heads",
}
CLAIMS = {
    ALONG_HEADS: "a line in the number of heads fits",
    ALONG_CONTEXT: "no fall of the share with the context is significant",
    ALONG_HEAD_DIM: "no gain beyond d_h = n is significant",
    SATURATION: "the majority of heads is saturated",
}
NUMBERS = {  # the one number of an answer: a row of `comparison`, and its words
    ALONG_HEADS: (
        "examples per head where 99% are memorized",
        "{ours:.0f} examples per head where 99% are memorized",
    ),
    ALONG_HEAD_DIM: ("knee in d_h", "the knee is at d_h = {ours:.1f}, published {published}"),
    SATURATION: (QUANTITIES[SATURATION], "{ours:.0%} of them"),
}
FITS = {ALONG_HEADS: "linear_part", ALONG_CONTEXT: "monotony", ALONG_HEAD_DIM: "knee"}  # tables


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option for attention weights, which show saturation."""
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="FOLDER",
        help=f"of {SATURATION}: one .npz file a run, with largest_weight, heads and examples",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs, or of attention weights.

    Raises:
        UserError: the table or the weights are missing or wrong.
    """
    path = arguments.input
    given = None if path is None else measured_runs(path, arguments.keep, ("accuracy", "loss"))
    found = present(analyse(given, arguments.study, attention=arguments.attention))
    return found if given is None else found.after(given.notes)


def analyse(
    given: StudyRuns | None, study: str, *, attention: Path | None = None
) -> MemorizationAnalysis | Saturation:
    """The analysis of a table of runs.

    Args:
        given: one row per run; see `check_memorization_runs`.
        study: its name.
        attention: only for the saturation study, which needs it or `given`: a folder of .npz files, one per run, with
            `largest_weight` (T, H) float, `heads` and `examples`. If `given` has a column `key`, only the files of its
            runs count.

    Raises:
        UserError: the input is missing or wrong.
    """
    if study == SATURATION:
        if given is None:
            return analyse_saturation(None, attention)
        keys = frozenset(given.table["key"]) if "key" in given.table else None
        return analyse_saturation(check_memorization_runs(given.table, given.source), attention, keys)
    if given is None or attention is not None:
        raise UserError(
            f"{study} takes a table of runs but no attention weights; only {SATURATION} takes those."
        )
    return analyse_runs(check_memorization_runs(given.table, given.source), study)


def present(found: MemorizationAnalysis | Saturation) -> Results:
    """The tables and figures that the study declares, and fit.json. For saturation see `saturation.present`."""
    if isinstance(found, Saturation):
        results = saturation.present(found)
        return replace(results, answer=answer(SATURATION, results.tables))
    declared = next(study for study in DECLARED if study.name == found.study)
    tables = tables_of(tabled.TABLES, declared.tables, found)
    drawn = {name: FIGURES[name](found) for name in declared.figures}
    return Results(
        tables, drawn, _fits(found, tables), "\n".join(sentences(found)), answer=answer(found.study, tables)
    )


def sentences(analysis: MemorizationAnalysis) -> Iterator[str]:
    """What no table says: runs that theorem 1 doesn't cover, and fits without seed noise."""
    yield from (f"Note: {sentence}" for sentence in warnings(analysis))
    if not any(one.curve.noise for one in analysis.curves):
        yield (
            "Seed noise: no seeds are repeated below saturation, so nothing can be called significant; the errors of "
            "fits come from their scatter."
        )


def warnings(analysis: MemorizationAnalysis) -> list[str]:
    """A sentence per width on the context lengths of the runs that theorem 1 doesn't cover (n >= d)."""
    return beyond_theorem(
        (int(context), one.curve.width)
        for one in analysis.curves
        for context in (one.curve.x if one.curve.context is None else [one.curve.context])
    )


def _fits(analysis: MemorizationAnalysis, tables: Mapping[str, Table]) -> dict[str, Any]:
    """The content of fit.json: the model, all fits, and a status that is "converged" if one of them is."""
    rows = plain_rows(tables[FITS[analysis.study]].frame)
    return {
        "study": analysis.study,
        "model": _MODELS[analysis.study],
        "status": overall_status([str(row["status"]) for row in rows]),
        "curves": rows,
        "warnings": warnings(analysis),
    }


def answer(study: str, tables: Mapping[str, Table]) -> Answer:
    """In how many settings the paper's finding holds, fails and is open, with the clearest fit.

    Args:
        study: one of the four.
        tables: `comparison` of the study, and its fits.
    """
    rows = tables["comparison"].frame
    mine = rows[rows["quantity"] == QUANTITIES[study]]
    counted = {says: int((mine["agrees"] == says).sum()) for says in (YES, NO, OPEN)}
    decided = counted[YES] + counted[NO]
    if not decided:
        return Answer(f"Not at these sizes: {_reason(mine)}.", False)
    still_open = f"; {counted[OPEN]} are open" if counted[OPEN] else ""
    claimed = (
        f"{CLAIMS[study].capitalize()} in {counted[YES]} of {decided} settings that can tell{still_open}."
    )
    yes_or_no = (
        "No" if not counted[YES] else "Yes" if not counted[NO] else f"In {counted[YES]} of {decided} settings"
    )
    number = _growth(tables["points"].frame) if study == ALONG_CONTEXT else _number(study, rows)
    return Answer(f"{yes_or_no}{number}.", True, more=claimed + _best_fit(study, tables))


def _number(study: str, rows: pd.DataFrame) -> str:
    """The number that goes with a yes or a no, of the last setting that has one: of most examples."""
    quantity, words = NUMBERS[study]
    known = rows[(rows["quantity"] == quantity) & rows["ours"].notna()]
    if known.empty:
        return ""
    row = known.iloc[-1]
    return f": {words.format(ours=row['ours'], published=row['published'])} ({_last_size(row['setting'])})"


def _last_size(setting: object) -> str:
    """`T = 600` of `classification, shared context, n = 12, T = 600`: settings list the examples last."""
    return str(setting).rpartition(", ")[2]


def _growth(points: pd.DataFrame) -> str:
    """The share at the shortest and at the longest context, of the setting with the most examples."""
    mine = points[points["examples"] == points["examples"].max()].sort_values("context", kind="stable")
    first, last = mine.to_dict("records")[0], mine.to_dict("records")[-1]
    return (
        f": from {first['share']:.0%} of T = {last['examples']:,} at n = {first['context']} "
        f"to {last['share']:.0%} at n = {last['context']}"
    )


def _reason(rows: pd.DataFrame) -> str:
    if rows.empty or "note" not in rows:
        return "the runs have nothing to compare"
    return f"{rows['setting'].iloc[0]}: {rows['note'].iloc[0]}"


def _best_fit(study: str, tables: Mapping[str, Table]) -> str:
    """The line or the knee with the most points, with its interval."""
    if study not in (ALONG_HEADS, ALONG_HEAD_DIM):
        return ""
    fits = tables[FITS[study]].frame
    fits = fits[fits["status"] == FitStatus.CONVERGED]
    if fits.empty:
        return ""
    row = fits.sort_values("n_points", ascending=False, kind="stable").iloc[0]
    if study == ALONG_HEADS:
        return (
            f" Share of T = {row['examples']:,} per head: {row['slope']:.3f} \u00b1 {row['slope_err']:.3f}."
        )
    return f" Knee at d_h = {row['knee']:.1f} ({row['low68']:.1f} to {row['high68']:.1f}), n = {row['context']:.0f}."

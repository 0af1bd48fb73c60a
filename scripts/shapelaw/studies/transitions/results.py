"""The tables, figures and fit.json of transitions between depths, from runs or from transitions that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from shapelaw.errors import UserError
from shapelaw.fits.inputs import (
    TEXT_AND_BLOCK,
    check_bootstrap,
    check_runs,
    check_transitions,
    read_table,
    refuse_mixed,
)
from shapelaw.report.write import Results, Table
from shapelaw.studies.grid.cells import cells_of
from shapelaw.studies.transitions import figures
from shapelaw.studies.transitions import tables as tabled
from shapelaw.studies.transitions.analysis import (
    Options,
    TransitionAnalysis,
    analyse_runs,
    analyse_transitions,
)
from shapelaw.studies.transitions.answer import answer
from shapelaw.studies.transitions.sentences import summary

SHAPE_FORMATS = {"depth": ".1f", "depth_err": ".1f", "width": ".0f", "width_err": ".0f"}
SHAPE_FORMATS |= {"depth_low": ".1f", "depth_high": ".1f", "width_low": ".0f", "width_high": ".0f"}
SHAPE_FORMATS |= {"unreached": ".1%"}
SHOWN_KINDS = 4  # in a sentence
WIDTH_FORMATS = dict.fromkeys(
    (
        *("width", "width_err", "width_low", "width_high", "bound", "bound_err"),
        *("reportable_low", "reportable_high", "noise_scale"),
    ),
    ".1f",
)
GAP_FORMATS = dict.fromkeys(("width", "deeper_width"), ".1f") | dict.fromkeys(
    ("loss", "deeper_loss", "deeper_by", "deeper_by_err"), ".4f"
)


def analyse(
    *, runs: Path | None = None, transitions: Path | None = None, options: Options | None = None
) -> TransitionAnalysis:
    """Read one table (.csv or .parquet) and analyse it.

    Exactly one of `runs` (`depth, width, seed, test_loss` and maybe `block_params`) and `transitions` (`depth, width,
    width_err`) is given.

    Raises:
        UserError: the table can't be used, or not exactly one is given.
    """
    options = options or Options()
    if (runs is None) == (transitions is None):
        raise UserError("Give either a table of runs or a table of transitions.")
    check_bootstrap(options.noise, options.draws)
    if runs is not None:
        table = read_table(runs)
        refuse_mixed(table, TEXT_AND_BLOCK, str(runs))
        cells = cells_of(table, source=str(runs), loss=options.loss).cells
        if len(cells) > 1:
            kinds = "; ".join(cell.name for cell in cells[:SHOWN_KINDS])
            raise UserError(
                f"{runs} has {len(cells)} kinds of networks ({kinds}), and one line is of one kind; keep its rows, or "
                "give the table to scripts/fit_transitions.py, which gives each kind its results."
            )
        checked = check_runs(table, str(runs), loss=options.loss, size=options.size)
        return analyse_runs(checked, options)
    assert transitions is not None
    given = check_transitions(read_table(transitions), str(transitions))
    return analyse_transitions(given, options.method)


def present(analysis: TransitionAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis; from transitions alone without those that need runs."""
    made = _tables(analysis)
    return Results(made, _figures(analysis), _fit(analysis), summary(analysis), answer=answer(made))


def _fit(analysis: TransitionAnalysis) -> dict[str, Any]:
    """The content of fit.json: the main fit, and those of the other methods."""
    main = {"model": "log(width) = a + b*depth", "method": analysis.method, **analysis.fit.to_dict()}
    others = {name: fit.to_dict() for name, fit in analysis.fits.items() if name != analysis.method}
    return main | {"other_methods": others}


def _tables(analysis: TransitionAnalysis) -> dict[str, Table]:
    tables = {
        "transitions": Table(
            analysis.transitions,
            "The width at which each depth is overtaken by the next greater one.",
            WIDTH_FORMATS,
        ),
        "fit": Table(tabled.fit_table(analysis), "Weighted fit of log d = a + b L."),
        "projection": Table(
            tabled.projection_table(analysis.fit, analysis.forms),
            "Best depth and width for the sizes of GPT-3 and for 1T parameters.",
            SHAPE_FORMATS | {"params": ".3g", "non_embedding_params": ".3g"},
        ),
        "forms": Table(
            tabled.forms_table(analysis.forms),
            "Forms of the transition width, weighted by how well they predict left-out points.",
            {"weight": ".3f"} | {f"N_{depth}": ".3g" for depth in tabled.FORM_DEPTHS},
        ),
        "comparison": Table(
            tabled.comparison_table(analysis), "Our numbers beside the published ones (Levine et al. 2020)."
        ),
    }
    runs = analysis.runs
    if runs is None:
        return tables
    return tables | {
        "size_axes": Table(
            runs.size_axes,
            "The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
            WIDTH_FORMATS,
        ),
        "seed_noise": Table(tabled.seed_noise_table(runs), "Spread of the loss over seeds."),
        "best_depth": Table(
            tabled.best_depth_table(tabled.rank_depths(runs.curves, runs.noise)),
            "The best depth in each range of sizes.",
            {"size_low": ".3g", "size_high": ".3g", "certain": ".0%"},
        ),
    }


def _figures(analysis: TransitionAnalysis) -> dict[str, Figure | str]:
    drawn: dict[str, Figure | str] = {
        "transition_width": figures.transition_width_figure(analysis),
        "transition_size": figures.transition_size_figure(analysis),
        "extrapolation": figures.extrapolation_figure(analysis),
    }
    runs = analysis.runs
    if runs is None:
        return drawn
    return drawn | {
        "loss_adjacent": figures.loss_figure(runs.adjacent, runs.loss_label, runs.size),
        "loss_doubled": figures.loss_figure(runs.doubled, runs.loss_label, runs.size),
        "best_depth": figures.best_depth_figure(runs),
    }

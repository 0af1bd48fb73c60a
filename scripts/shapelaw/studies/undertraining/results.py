"""The effect of the learning rate and of the number of steps on the depth that is best.

Input: rows of `steps, learning_rate, depth, width, seed, test_loss`. `block_params`, `total_params` and `step_flops`
are used where the table has them.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import chance_words
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.rates import RATE, RatesAnalysis
from shapelaw.studies.grid.results import best_rates_table, cell_tables, transition_rows
from shapelaw.studies.grid.tables import losses_table
from shapelaw.studies.transitions import ratios
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_size_options as add_options
from shapelaw.studies.transitions.sentences import transition_sentences
from shapelaw.studies.undertraining import figures, tables
from shapelaw.studies.undertraining.analysis import analyse_cells, named
from shapelaw.studies.undertraining.answer import answer
from shapelaw.studies.undertraining.study import NAME

__all__ = ["add_options", "results"]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input, Options(size=SizeAxis(arguments.size), draws=arguments.draws)))


def analyse(runs: Path, options: Options | None = None) -> RatesAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Raises:
        UserError: the table can't be used.
    """
    return analyse_cells(read_table(runs), str(runs), options or Options())


def present(analysis: RatesAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    losses = losses_table(analysis.trained, named)
    made = {
        **cell_tables(analysis.cells, named, "each number of steps and learning rate"),
        "ratios": Table(
            tables.ratios_table(analysis),
            "The width at the most steps over that at the fewest.",
            dict.fromkeys(("width_few", "width_many"), ".1f") | ratios.FORMATS,
        ),
        "best_rates": best_rates_table(analysis),
        "losses": Table(losses, "Test loss in nats per token.", {"test_loss": ".4f"}),
        "seed_noise": Table(tables.seed_noise_table(analysis), "Spread of the loss over seeds."),
    }
    drawn = {
        "losses": figures.losses_figure(analysis),
        "transition_rate": figures.transition_rate_figure(analysis),
    }
    fit = {
        "study": NAME,
        "transitions": transition_rows(analysis.cells, ("steps", RATE)),
        "ratios": plain_rows(made["ratios"].frame),
    }
    return Results(made, drawn, fit, summary(analysis), answer=answer(made))


def summary(analysis: RatesAnalysis) -> str:
    """Each cell's transition, and how it moves from the fewest steps to the most, a sentence a line."""
    lines = [
        f"{sentence}."
        for cell in analysis.cells
        for sentence in transition_sentences(cell.cell.name, cell.transitions)
    ]
    for row in tables.ratios_table(analysis).to_dict("records"):
        if not math.isnan(row["p_equal"]):
            best = row[RATE] == Best.RATES
            rate = "the best rates" if best else f"rate {row[RATE]}"
            lines.append(
                f"From {row['few_steps']:,} to {row['many_steps']:,} steps the transition from depth {row['depth']} "
                f"moves by a factor of {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f}), "
                f"at {rate}; {chance_words(row['p_equal'])} that it does not move."
            )
    edge = int(analysis.best_rates["at_edge"].sum())
    if edge:
        lines.append(
            f"{edge} of {len(analysis.best_rates)} best rates are the lowest or the highest that was tried: the best "
            "may lie beyond."
        )
    return "\n".join(lines)

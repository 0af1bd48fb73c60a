"""Whether transitions survive today's decoder: Llama's block, the best rate of each shape, and other budgets.

Input: rows of `steps, learning_rate, depth, width, seed, test_loss`, and of `block` (empty: gpt2), `base_width` (empty:
rates are not scaled), `budget` (empty: so many steps), `schedule` and `observations` where the table has them, as well
as the sizes `block_params`, `total_params` and `step_flops`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import chance_words, noise_sentence
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.grid.rates import OWN_LOSS, RATE, RatesAnalysis
from shapelaw.studies.grid.results import best_rates_table, cell_tables, transition_rows
from shapelaw.studies.grid.tables import losses_table
from shapelaw.studies.todays_decoder import figures, tables
from shapelaw.studies.todays_decoder.analysis import SERIES, analyse_cells, is_undecayed, name_of, named
from shapelaw.studies.todays_decoder.answer import answer
from shapelaw.studies.todays_decoder.study import NAME
from shapelaw.studies.transitions import ratios
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_size_options
from shapelaw.studies.transitions.results import WIDTH_FORMATS
from shapelaw.studies.transitions.sentences import transition_sentences

UNDECAYED = (
    "Losses of a constant learning rate, which never falls, are all too high, by an amount that need not be the same "
    "for every shape."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the size, the bootstrap's draws, and the steps at which runs are observed."""
    add_size_options(parser)
    parser.add_argument(
        "--observed-steps",
        type=int,
        nargs="*",
        default=[],
        metavar="STEPS",
        help="steps whose test losses count as budgets of their own, of runs whose rate is constant or re-decayed",
    )


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    options = Options(size=SizeAxis(arguments.size), draws=arguments.draws)
    table = read_table(arguments.input)
    return present(analyse_cells(table, str(arguments.input), options, arguments.observed_steps))


def present(analysis: RatesAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    crossings, losses = tables.crossings_table(analysis), losses_table(analysis.trained, named)
    made = {
        "crossings": Table(
            crossings,
            "Width at which the deeper network wins, by block, budget and rate.",
            {name: how for name, how in WIDTH_FORMATS.items() if name in crossings},
        ),
        **cell_tables(analysis.cells, named, "each block, budget and rate"),
        "ratios": Table(
            tables.ratios_table(analysis),
            "Widths of transitions over each other, of networks that differ in one thing.",
            dict.fromkeys(("width_one", "width_other"), ".1f") | ratios.FORMATS,
        ),
        "best_rates": best_rates_table(analysis),
        "losses": Table(losses, "Test loss in nats per token.", {"test_loss": ".4f"}),
        "seed_noise": Table(tables.seed_noise_table(analysis), "Spread of the loss over seeds."),
    }
    drawn = {"losses": figures.losses_figure(analysis), "crossings": figures.crossings_figure(analysis)}
    fit = {
        "study": NAME,
        "transitions": transition_rows(analysis.cells, (*SERIES, RATE)),
        "ratios": plain_rows(made["ratios"].frame),
    }
    return Results(made, drawn, fit, summary(analysis), answer=answer(made))


def summary(analysis: RatesAnalysis) -> str:
    """Each cell's transition, the ratios, and what limits them, a sentence a line."""
    lines = [
        f"{sentence}."
        for cell in analysis.cells
        for sentence in transition_sentences(name_of(cell), cell.transitions)
    ]
    return "\n".join([*lines, *_ratio_sentences(analysis), *_caveats(analysis)])


def _ratio_sentences(analysis: RatesAnalysis) -> Iterator[str]:
    for row in tables.ratios_table(analysis).to_dict("records"):
        if not math.isnan(row["p_equal"]):
            yield (
                f"From {row['one']} to {row['other']} ({row['at']}) the transition from depth {row['depth']} moves by "
                f"a factor of {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f}); "
                f"{chance_words(row['p_equal'])} that it does not move."
            )


def _caveats(analysis: RatesAnalysis) -> Iterator[str]:
    for block, noise in analysis.noise.items():
        yield f"{block}: {noise_sentence(noise)}"
    best = analysis.best_rates
    if edge := int(best["at_edge"].astype(bool).sum()):
        yield (
            f"{edge} of {len(best)} best rates are at the edge of the rates that were tried: the best may lie beyond."
        )
    if own := int((best["picked_on"] == OWN_LOSS).sum()):
        yield (
            f"{own} of {len(best)} best rates are of shapes with one seed and picked by the loss that is compared; the "
            "others are picked on other seeds."
        )
    if is_undecayed(analysis):
        yield UNDECAYED

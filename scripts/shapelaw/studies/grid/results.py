"""What a grid says: the transitions of every cell, the effect of every axis, and the best shape of every size.

Input: rows of `depth, width, seed, test_loss`, and of what a grid varies by the names of `specs/columns.py`: heads,
vocab_size, embedding_rank, block, steps and others; `block_params`, `total_params`, `step_flops` and `bits_per_byte`
where the table has them. Losses of several vocabularies or texts compare in bits per byte alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.line import overall_status
from shapelaw.report.charts import Chart
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table
from shapelaw.studies.given_runs import study_runs
from shapelaw.studies.grid import figures, tables
from shapelaw.studies.grid.analysis import BITS, CellAnalysis, GridAnalysis, analyse_grid
from shapelaw.studies.grid.answer import answer, summary
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.rates import RATE, RatesAnalysis
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_axes_option, add_size_options
from shapelaw.studies.transitions.results import GAP_FORMATS, SHAPE_FORMATS, TABLES_OF_RUNS, WIDTH_FORMATS
from shapelaw.studies.transitions.tables import gaps_table

_NUMBERS = dict.fromkeys(("value", "err", "low", "high", "loss_one", "loss_other"), ".4f")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the axes, the size and the bootstrap's draws."""
    add_axes_option(parser)
    add_size_options(parser)


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    options = Options(size=SizeAxis(arguments.size), draws=arguments.draws)
    given = study_runs(arguments.input, arguments.keep)
    return present(analyse_grid(given.table, given.source, options, arguments.axes)).after(given.notes)


def present(analysis: GridAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = _tables(analysis)
    effects = made["effects"].frame
    drawn: dict[str, Chart | str] = {
        "losses": figures.losses_figure(analysis),
        "effects": figures.effects_figure(analysis, effects),
        "best_depth": figures.best_depth_figure(analysis),
    }
    return Results(made, drawn, _fit(analysis, made), summary(analysis, effects), answer=answer(made))


def cell_tables(
    analyses: Sequence[CellAnalysis], named: tables.Named = tables.own_values, of: str = "each cell"
) -> dict[str, Table]:
    """The tables of transitions that every study of several cells has.

    Args:
        named: the columns that name a cell.
        of: what the transitions are of, for the caption.
    """
    made: dict[str, tuple[Callable[[CellAnalysis], pd.DataFrame], str, dict[str, str]]] = {
        "transitions": (
            lambda one: one.transitions.transitions,
            f"Width at which the deeper network wins, for {of}, by the bootstrap and by the paper's rule.",
            WIDTH_FORMATS,
        ),
        "size_axes": (
            lambda one: one.compared.size_axes,
            TABLES_OF_RUNS["size_axes"].caption,
            WIDTH_FORMATS,
        ),
        "gaps": (
            lambda one: gaps_table(one.compared),
            "How much better the deeper network is at equal size.",
            GAP_FORMATS,
        ),
    }
    return {
        name: Table(tables.stack(analyses, frame, named), caption, formats)
        for name, (frame, caption, formats) in made.items()
    }


@dataclass(frozen=True)
class RatesStudy:
    """How a study of several learning rates names what it compares.

    Attributes:
        name: its name.
        keys: the columns of a cell that tell one series from another.
        named: the columns that name a cell in a table; cells that share their noise share the first.
        series_of: the name of a cell's series.
        of: what its transitions are of, for a caption.
    """

    name: str
    keys: tuple[str, ...]
    named: tables.Named
    series_of: Callable[[CellAnalysis], str]
    of: str

    def results(
        self,
        analysis: RatesAnalysis,
        ratios: Table,
        figures_of_its_own: Mapping[str, Chart | str],
        sentences: Iterable[str],
        answered: Callable[[Mapping[str, Table]], Answer],
        **tables_of_its_own: Table,
    ) -> Results:
        """The tables, figures and fit.json of an analysis.

        Args:
            ratios: the study's ratios of transitions.
        """
        best = analysis.best_rates.rename(columns={"loss": "test_loss"})
        losses, four = tables.losses_table(analysis.trained, self.named), {"test_loss": ".4f"}
        made = {
            **tables_of_its_own,
            **cell_tables(analysis.cells, self.named, self.of),
            "ratios": ratios,
            "best_rates": Table(best, "The best learning rate of each shape.", four),
            "losses": Table(losses, "Test loss in nats per token.", four),
            "seed_noise": Table(self.seed_noise(analysis), "Spread of the loss over seeds."),
        }
        drawn = {"losses": figures.rates_figure(analysis.cells, self.series_of), **figures_of_its_own}
        fit = {
            "study": self.name,
            "transitions": list(self._transitions(analysis.cells)),
            "ratios": plain_rows(ratios.frame),
        }
        return Results(made, drawn, fit, "\n".join(sentences), answer=answered(made))

    def seed_noise(self, analysis: RatesAnalysis) -> pd.DataFrame:
        """The spread of every repeated shape over seeds, and below what is pooled, which the cells of a pool use."""
        repeated = tables.spread_table(analysis.trained, self.named)
        first, *others = self.named(analysis.trained[0])
        empty = dict.fromkeys((*others, "depth", "width"), "")
        pooled = [
            tables.pooled_row(repeated, noise, **empty, **{first: "pooled"})
            if pool is None
            else tables.pooled_row(
                repeated[repeated[first] == pool], noise, **empty, **{first: f"{pool}, pooled"}
            )
            for pool, noise in analysis.noise.items()
        ]
        return pd.concat([repeated.astype({first: object}), *pooled], ignore_index=True)

    def _transitions(self, cells: Sequence[CellAnalysis]) -> Iterator[dict[str, Any]]:
        """Those of all cells for fit.json, each with the values of its cell; a best of several is null."""
        for one in cells:
            values = {name: one.cell.value(name) for name in (*self.keys, RATE)}
            plain = {name: None if isinstance(value, Best) else value for name, value in values.items()}
            yield from ({**plain, **row} for row in plain_rows(one.transitions.transitions))


def _tables(analysis: GridAnalysis) -> dict[str, Table]:
    every = analysis.analyses
    losses = tables.losses_table(every)
    in_bits = {BITS: ".4f"} if BITS in losses else {}
    return {
        "losses": Table(losses, "Mean test loss of every network.", {"test_loss": ".4f"} | in_bits),
        **cell_tables(every),
        "fit": Table(tables.fit_table(every), "Weighted fit of log d = a + b L, for each cell."),
        "projection": Table(
            tables.projection_of_cells(every), "Shapes that the line of a cell projects.", SHAPE_FORMATS
        ),
        "effects": Table(
            tables.effects_table(analysis),
            "What each axis does: cells that differ in it alone, at equal size. Intervals are 95%.",
            {name: how for name, how in _NUMBERS.items() if not name.startswith("loss")}
            | dict.fromkeys(("p", "p_holm"), ".2g"),
        ),
        "effects_by_size": Table(tables.effects_by_size_table(analysis), "The same, size by size.", _NUMBERS),
        "best_shapes": Table(
            tables.best_shapes_table(analysis),
            "The best shape of each size over all cells, and those within the noise of it.",
            {"size": ".3g", "width": ".1f", "above": ".4f", "above_err": ".4f"},
        ),
        "surface_costs": Table(
            tables.surface_costs_table(analysis),
            "What the depth of each shape costs, by a surface through all shapes of its cell; empty without one.",
        ),
        "seed_noise": Table(tables.seed_noise_table(every, analysis.pool), "Spread of the loss over seeds."),
    }


def _fit(analysis: GridAnalysis, made: dict[str, Table]) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "status": overall_status([one.transitions.fit.status.value for one in analysis.analyses]),
        "axes": list(analysis.cells.axes),
        "unit": analysis.unit,
        "cells": tables.cells_table(analysis),
        **{name: plain_rows(made[name].frame) for name in ("transitions", "fit", "effects", "best_shapes")},
    }

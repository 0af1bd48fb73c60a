"""Depth against width: where a deeper network starts to win, and what follows for larger ones.

Levine et al. 2020, "Limits to Depth Efficiencies of Self-Attention", section 5 and appendix D. From the test losses
of a grid of depths and widths: the transition of each pair of adjacent depths by the paper's rule and by a bootstrap
of the smooth loss curves, the line `log d = a + b L` through them, `N_transition(L)`, and the shapes that it projects
for larger sizes, with the published numbers beside ours.

    paper                    here
    figure 1b, 2             loss_doubled: test loss against size, depths (L, 2L); loss_adjacent: adjacent depths
    figure 3a, table 4a      transition_width, transitions
    figure 3b, eq. 10        transition_size
    figure 3c                best_depth
    figure 4, table 1        extrapolation, projection
    table 3                  seed_noise
    eq. 11, section 5.2.2    fit, comparison

What else networks differ in (heads, vocabulary, rank, ...) makes cells: each has its rows, named by a further column of
every table, and its panels.
"""

from __future__ import annotations

import argparse

from shapelaw.report.write import Results
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.study_runs import study_runs
from shapelaw.studies.transitions import results as transitions


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add how transitions are found and compared, and the axes."""
    transitions.add_options(parser)
    transitions.add_axes_option(parser)


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs, for each of its cells.

    Raises:
        UserError: the table can't be used.
    """
    asked = transitions.options_of(arguments)
    given = study_runs(arguments.input, arguments.keep, asked.loss)
    found = analyse_grid(given.table, given.source, asked, arguments.axes)
    cells = [(one.values, one.transitions) for one in found.analyses]
    return transitions.present_cells(cells, found.parts).after(given.notes)

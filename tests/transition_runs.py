"""Runs that follow a known law, and what a figure of them says."""

from functools import cache

import numpy as np
from loss_surfaces import grid_of, simulate

from shapelaw.fits.inputs import check_runs
from shapelaw.studies.transitions.analysis import (
    Options,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    published_transitions,
)

DEPTHS = (4, 6, 8, 10, 12)
A, B = 4.0, 0.10
TRUE_WIDTHS = {depth: float(np.exp(A + B * depth)) for depth in DEPTHS}


def runs_of(**options):
    return check_runs(simulate(grid_of(DEPTHS, 6e4, 6e6, 12), TRUE_WIDTHS, noise=0.0008, **options), "made")


@cache
def analysed(draws=600, **options):
    """The analysis of such runs, made once."""
    return analyse_runs(runs_of(**options), Options(draws=draws))


@cache
def refitted():
    """The published line, fitted to the published transitions."""
    return analyse_transitions(check_transitions(published_transitions(), "table 4a"))


def legend_of(figure):
    legends = [one for one in (figure.axes[0].get_legend(), *figure.legends) if one is not None]
    return [text.get_text() for one in legends for text in one.get_texts()]

"""Runs that follow a known law, and what a figure of them says."""

import numpy as np
from loss_surfaces import grid_of, simulate

from shapelaw.fits.inputs import check_runs

DEPTHS = (4, 6, 8, 10, 12)
A, B = 4.0, 0.10
TRUE_WIDTHS = {depth: float(np.exp(A + B * depth)) for depth in DEPTHS}


def runs_of(**options):
    return check_runs(simulate(grid_of(DEPTHS, 6e4, 6e6, 12), TRUE_WIDTHS, noise=0.0008, **options), "made")


def words(figure):
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return [text.replace("\n", " ") for text in texts + titles]


def legend_of(figure):
    legends = [one for one in (figure.axes[0].get_legend(), *figure.legends) if one is not None]
    return [text.get_text() for one in legends for text in one.get_texts()]


def lines(figure):
    return [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 50]

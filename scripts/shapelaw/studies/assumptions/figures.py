"""Figure 1 of Mahdavi et al. 2024, for every network: pass rate against subset size, a curve for each tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shapelaw.report.plots import ACCENT, INK, MUTED, PAGE, draw_grid, key, ordered_looks, whole_axis
from shapelaw.studies.assumptions.findings import DRAWN, Row, float32_tolerance
from shapelaw.studies.assumptions.tables import in_order

EXPONENTS = tuple(round(math.log10(tolerance)) for tolerance in DRAWN)
NAMES = {
    "random_attention": "random attention",
    "random_vit": "random ViT",
    "trained_vit": "trained ViT",
    "layer 1": "layer 1",
}
_MODELS = {
    "vit": "DINOv2-small",
    "vit_base": "ViT-base",
    "bert": "BERT",
    "decoder": "our decoder",
    "gpt2": "GPT-2",
}


@dataclass(frozen=True)
class Panel:
    """The shares of independent subsets of one layer at each of `sizes`.

    `rates` has them by the exponent of the tolerance, `float32` at the published tolerance, which grows with the size.
    """

    title: str
    context: int
    width: int
    sizes: Sequence[int]
    rates: Mapping[int, Sequence[float]]
    float32: Sequence[float]


def title_of(model: str, weights: str, layer: str) -> str:
    """The name of a layer, as a panel has it."""
    if layer == "layer 1":
        return f"{_MODELS[model]}, {weights}, layer 1"
    return f"{NAMES[layer]}, {_MODELS[model]}"


def pass_rate_figure(rows: Sequence[Row]) -> Figure:
    """One panel for each layer after a first attention; dashed is n (assumption 1), dotted d (general position)."""
    shown = [_panel(row) for row in in_order(rows) if row.layer in NAMES]
    if not shown:
        raise ValueError("the rows have no layer after an attention layer")
    return draw_panels(shown)


def draw_panels(shown: Sequence[Panel]) -> Figure:
    """The panels, three in a row, with one legend."""
    outer = ("vectors in a subset", "share of subsets\nthat are independent")
    return draw_grid(
        shown, _draw_panel, _keys(), height=2.0, margin=0.5, width=PAGE, outer=outer, sharey=True
    )


def _panel(row: Row) -> Panel:
    found = row.findings
    limits = np.array([float32_tolerance(int(size), found.width) for size in found.sizes])
    return Panel(
        title_of(row.model, row.weights, row.layer),
        found.context,
        found.width,
        found.sizes.tolist(),
        {exponent: (found.curve > 10.0**exponent).mean(axis=1).tolist() for exponent in EXPONENTS},
        (found.curve > limits[:, None]).mean(axis=1).tolist(),
    )


def _draw_panel(axis: Axes, panel: Panel) -> None:
    looks = ordered_looks(EXPONENTS)
    for exponent in EXPONENTS:
        rates, kind, color = panel.rates[exponent], f"{looks[exponent].marker}-", looks[exponent].color
        axis.plot(panel.sizes, rates, kind, color=color, markersize=2.5, linewidth=1.1)
    axis.plot(panel.sizes, panel.float32, "v-", color=ACCENT, markersize=2.5, zorder=3)
    axis.axvline(panel.context, color=INK, linestyle="--", linewidth=0.9, zorder=1.5)
    axis.axvline(panel.width, color=MUTED, linestyle=":", linewidth=1.2, zorder=1.5)
    axis.set_title(f"{panel.title}\nn = {panel.context}, d = {panel.width}", fontsize=7.5)
    axis.set_ylim(-0.04, 1.04)
    axis.set_xlim(left=0)
    whole_axis(axis)


def _keys() -> list[Line2D]:
    looks = ordered_looks(EXPONENTS)
    return [
        key("tolerance of float32, as published", ACCENT, marker="v", markersize=2.5),
        *(
            key(f"$10^{{{exponent}}}$", looks[exponent].color, marker=looks[exponent].marker, markersize=2.5)
            for exponent in EXPONENTS
        ),
        key("n, assumption 1", INK, "--", linewidth=0.9),
        key("d, general position", MUTED, ":", linewidth=1.2),
    ]

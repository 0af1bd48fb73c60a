"""Figure 1 of Mahdavi et al. 2024, for every network: pass rate against subset size, a curve for each tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shapelaw.report.plots import ACCENT, INK, MUTED, PAGE, new_figure, ordered_looks, style, whole_axis
from shapelaw.studies.assumptions.findings import DRAWN, float32_tolerance
from shapelaw.studies.assumptions.stored_findings import Row
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
_COLUMNS = 3


def pass_rate_figure(rows: Sequence[Row]) -> Figure:
    """One panel for each layer after a first attention; dashed is n (assumption 1), dotted d (general position)."""
    shown = [row for row in in_order(rows) if row.layer in NAMES]
    if not shown:
        raise ValueError("the rows have no layer after an attention layer")
    columns = min(_COLUMNS, len(shown))
    height = -(-len(shown) // columns)
    with style():
        figure, axes = new_figure(height, columns, width=PAGE, height=0.5 + 2.0 * height, sharey=True)
        for place in range(height * columns):
            axis = axes[divmod(place, columns)]
            if place >= len(shown):
                axis.set_axis_off()
                continue
            _draw_panel(axis, shown[place])
            if place % columns == 0:
                axis.set_ylabel("share of subsets\nthat are independent")
            if place + columns >= len(shown):
                axis.set_xlabel("vectors in a subset")
        figure.legend(handles=_keys(), loc="outside lower center", ncols=6)
        return figure


def _draw_panel(axis: Axes, row: Row) -> None:
    found, looks = row.findings, ordered_looks(EXPONENTS)
    for exponent in EXPONENTS:
        rates = (found.curve > 10.0**exponent).mean(axis=1)
        look = looks[exponent]
        axis.plot(found.sizes, rates, f"{look.marker}-", color=look.color, markersize=2.5, linewidth=1.1)
    limits = np.array([float32_tolerance(int(size), found.width) for size in found.sizes])
    axis.plot(
        found.sizes,
        (found.curve > limits[:, None]).mean(axis=1),
        "v-",
        color=ACCENT,
        markersize=2.5,
        zorder=3,
    )
    axis.axvline(found.context, color=INK, linestyle="--", linewidth=0.9, zorder=1.5)
    axis.axvline(found.width, color=MUTED, linestyle=":", linewidth=1.2, zorder=1.5)
    name = f"{NAMES[row.layer]}, {_MODELS[row.model]}"
    if row.layer == "layer 1":
        name = f"{_MODELS[row.model]}, {row.weights}, layer 1"
    axis.set_title(f"{name}\nn = {found.context}, d = {found.width}", fontsize=7.5)
    axis.set_ylim(-0.04, 1.04)
    axis.set_xlim(left=0)
    whole_axis(axis)


def _keys() -> list[Line2D]:
    looks = ordered_looks(EXPONENTS)
    keys = [
        Line2D([], [], color=ACCENT, marker="v", markersize=2.5, label="tolerance of float32, as published")
    ]
    keys += [
        Line2D(
            [],
            [],
            color=looks[exponent].color,
            marker=looks[exponent].marker,
            markersize=2.5,
            label=f"$10^{{{exponent}}}$",
        )
        for exponent in EXPONENTS
    ]
    return [
        *keys,
        Line2D([], [], color=INK, linestyle="--", linewidth=0.9, label="n, assumption 1"),
        Line2D([], [], color=MUTED, linestyle=":", linewidth=1.2, label="d, general position"),
    ]

"""The memorization theorem's assumptions on real networks (Mahdavi et al. 2024, section 5.1): tables, figure, answer.

Input: the folder layers/ that scripts/check_assumptions.py wrote, one .npz file a layer. Tables have the published
verdicts of section 5.1 and appendix J beside ours, and their change with the tolerance; the figure is the paper's
figure 1 for every network: pass rate against subset size, a curve for each tolerance.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, INK, MOST_COLUMNS, MUTED, PAGE, ordered_looks
from shapelaw.report.tables import Columns, frame_of, picked
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.studies.assumptions.findings import (
    DRAWN,
    TOLERANCES,
    Row,
    float32_tolerance,
    read_rows,
)
from shapelaw.studies.assumptions.study import NAME
from shapelaw.studies.study import Published, published
from shapelaw.theory.memorization import TOLERANCE

ASSUMPTIONS = {
    name: name.replace("_", " ")
    for name in ("general_position", "assumption_1", "assumption_2", "assumption_3")
}
ORDER = ("vit", "vit_base", "bert", "bert_large", "decoder", "gpt2", "gpt2_large")
IMAGE_MODELS = ("vit", "vit_base")
LAYERS = ("embedding", "random_attention", "random_vit", "trained_embedding", "trained_vit")
HOLDS, FAILS = "holds", "fails"
EXPONENTS = tuple(round(math.log10(tolerance)) for tolerance in DRAWN)
NAMES = {"random_attention": "random attention", "random_vit": "random ViT", "trained_vit": "trained ViT"}
_MODELS = {
    "vit": "DINOv2-small",
    "vit_base": "ViT-base",
    "bert": "BERT",
    "bert_large": "BERT-large",
    "decoder": "our decoder",
    "gpt2": "GPT-2",
    "gpt2_large": "GPT-2-large",
}


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows, image models first, random before trained, layers from the input up."""

    def place(row: Row) -> tuple[int, int, str]:
        layer = f"{LAYERS.index(row.layer)}" if row.layer in LAYERS else row.layer
        return ORDER.index(row.model), ("random", "trained").index(row.weights), layer

    return sorted(rows, key=place)


def verdict_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each layer and assumption.

    `ours` is the verdict at `tolerance`, `ours_float32` that at the authors' tolerance. `rate` is the share of
    independent subsets, or of contexts of full rank, among `trials`. `holds_below` is the largest tolerance at which
    the verdict would be that it holds: 99% of the subsets, or all contexts, pass.
    """
    lines = []
    for row in in_order(rows):
        found = row.findings
        ours, float32 = found.verdicts(TOLERANCE), found.verdicts()
        for name, words in ASSUMPTIONS.items():
            subsets = found.tested[name]
            verdicts = {
                "assumption": words,
                "published": _published(words, row).value or None,
                "ours_float32": _word(float32[name]),
                "ours": _word(ours[name]),
            }
            rates = picked(subsets.rate, "rate", "size", "trials")
            limits = {"tolerance": TOLERANCE, "holds_below": subsets.limit}
            lines.append(_layer(row) | verdicts | rates | limits)
    return pd.DataFrame(lines)


_LAYER_COLUMNS: Columns = {
    **{name: name for name in ("model", "weights", "layer")},
    "examples": "findings.examples",
    "n": "findings.context",
    "d": "findings.width",
    "rank_of_queries": "findings.rank.rank",
    "smallest_kept": "findings.rank.kept",
    "largest_dropped": "findings.rank.dropped",
    "kruskal_rank": "findings.kruskal",
    "kruskal_rank_float32": "findings.kruskal_float32",
    "float32_tolerance": lambda row: float32_tolerance(row.findings.context, row.findings.width),
    "kruskal_rank_published": lambda row: _published("Kruskal rank", row).number,
    "full_contexts": "findings.contexts.rate.rate",
    "weights_from": "note",
    "inputs": "inputs",
}


def curve_table(rows: Sequence[Row]) -> pd.DataFrame:
    """The pass rates of figure 1: one line for each layer, subset size and tolerance."""
    lines = []
    for row in in_order(rows):
        found = row.findings
        for size, values in zip(found.sizes, found.curve, strict=True):
            for tolerance in (float32_tolerance(int(size), found.width), *TOLERANCES):
                at = {"size": int(size), "tolerance": tolerance, "rate": float((values > tolerance).mean())}
                lines.append(_layer(row) | at | {"trials": len(values)})
    return pd.DataFrame(lines)


def _layer(row: Row) -> dict[str, Any]:
    """The columns that identify a layer."""
    return picked(row, "model", "weights", "layer")


def _word(holds: bool | None) -> str | None:
    return None if holds is None else HOLDS if holds else FAILS


def _published(quantity: str, row: Row) -> Published:
    """What tables 1 and 3 of Mahdavi et al. 2024 say of a layer; both shapes of a network stand beside its row."""
    return published(NAME, quantity, f"{row.model.partition('_')[0]}, {row.weights}, {row.layer}")


TABLES = {
    "verdicts": TableOf(
        verdict_table,
        "Assumptions 1 to 3 and general position, published and ours.",
        {"rate": ".4f", "tolerance": ".0e", "holds_below": ".1e"},
    ),
    "layers": TableOf(
        lambda rows: frame_of(in_order(rows), _LAYER_COLUMNS),
        "Sizes and ranks of each layer's queries.",
        dict.fromkeys(("smallest_kept", "largest_dropped", "float32_tolerance"), ".1e"),
    ),
    "pass_rate": TableOf(
        curve_table, "Share of random subsets that are linearly independent.", {"tolerance": ".1e"}
    ),
}


@dataclass(frozen=True)
class PassRates:
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


def pass_rate_figure(rows: Sequence[Row]) -> Chart:
    """One panel for each layer after a first attention; dashed is n (assumption 1), dotted d (general position)."""
    shown = [_pass_rates(row) for row in in_order(rows) if row.layer in (*NAMES, "layer 1")]
    if not shown:
        raise ValueError("the rows have no layer after an attention layer")
    return pass_rate_chart(shown)


def pass_rate_chart(shown: Sequence[PassRates]) -> Chart:
    """The panels, three in a row, with one legend."""
    columns = min(len(shown), MOST_COLUMNS)
    height = 0.5 + 2.0 * -(-len(shown) // columns)
    return Chart([_panel(one) for one in shown], columns, PAGE, height, share_y=True)


def _pass_rates(row: Row) -> PassRates:
    found = row.findings
    limits = np.array([float32_tolerance(int(size), found.width) for size in found.sizes])
    return PassRates(
        title_of(row.model, row.weights, row.layer),
        found.context,
        found.width,
        found.sizes.tolist(),
        {exponent: (found.curve > 10.0**exponent).mean(axis=1).tolist() for exponent in EXPONENTS},
        (found.curve > limits[:, None]).mean(axis=1).tolist(),
    )


def _panel(one: PassRates) -> Panel:
    looks, small = ordered_looks(EXPONENTS), {"markersize": 2.5, "linewidth": 1.1}
    published = "tolerance of float32, as published"
    marks: list[Mark] = [
        Points(one.sizes, one.float32, published, ACCENT, "v", "-", more={"markersize": 2.5, "zorder": 3}),
        *(
            Points(
                one.sizes, one.rates[at], f"$10^{{{at}}}$", looks[at].color, looks[at].marker, "-", more=small
            )
            for at in EXPONENTS
        ),
        Across(one.context, "x", "n, assumption 1", INK, "--", more={"linewidth": 0.9, "zorder": 1.5}),
        Across(one.width, "x", "d, general position", MUTED, ":", more={"linewidth": 1.2, "zorder": 1.5}),
    ]
    x = Span("vectors in a subset", "whole", limits=(0, None))
    y = Span("share of subsets\nthat are independent", limits=(-0.04, 1.04))
    return Panel(marks, x, y, f"{one.title}\nn = {one.context}, d = {one.width}")


def results(arguments: argparse.Namespace) -> Results:
    """The results of a folder of layers.

    Raises:
        UserError: a layer can't be read, or the folder has none.
    """
    rows = read_rows(arguments.input)
    if not rows:
        raise UserError(f"{arguments.input} has no layers; measure some: snakemake assumptions")
    return present(rows)


def present(rows: Sequence[Row]) -> Results:
    """Verdicts beside the published ones, each layer's ranks, the effect of the tolerance, and figure 1."""
    tables = tables_of(TABLES, TABLES, rows)
    known, agree = agreement(tables["verdicts"].frame)
    fit = {
        "study": NAME,
        "status": "measured",
        "tolerance": TOLERANCE,
        "layers": len(rows),
        "verdicts_published": known,
        "verdicts_that_agree": agree,
    }
    return Results(tables, {"pass_rate": pass_rate_figure(rows)}, fit, answer=answer(tables))


def agreement(verdicts: pd.DataFrame) -> tuple[int, int]:
    """The number of verdicts that were published, and how many of them are ours."""
    known = verdicts[verdicts["published"].notna()]
    return len(known), int((known["published"] == known["ours"]).sum())


def answer(tables: Mapping[str, Table]) -> Answer:
    """The number of layers on which each assumption holds, and how many verdicts agree with published ones.

    Args:
        tables: `verdicts` of the study.
    """
    verdicts = tables["verdicts"].frame
    said = ", ".join(
        f"{name} on {int((rows['ours'] == HOLDS).sum())} of {len(rows)}"
        for name, rows in verdicts.groupby("assumption", sort=True)
    )
    known, agree = agreement(verdicts)
    published = f"{agree} of {known} published verdicts agree with ours." if known else ""
    return Answer(f"Layers on which it holds: {said}.", bool(len(verdicts)), published)

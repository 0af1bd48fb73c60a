"""The tables of section 5.1 and appendix J: published verdicts beside ours, and their change with the tolerance."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.report.tables import picked
from shapelaw.report.write import TableOf
from shapelaw.studies.assumptions.findings import TOLERANCES, Row, Subsets, float32_tolerance
from shapelaw.studies.reference import REFERENCE
from shapelaw.theory.memorization import TOLERANCE

ASSUMPTIONS = {
    "general_position": "general position",
    "assumption_1": "assumption 1",
    "assumption_2": "assumption 2",
    "assumption_3": "assumption 3",
}
ORDER = ("vit", "vit_base", "bert", "decoder", "gpt2")
IMAGE_MODELS = ("vit", "vit_base")
LAYERS = ("embedding", "random_attention", "random_vit", "trained_embedding", "trained_vit")
HOLDS, FAILS = "holds", "fails"
PUBLISHED_KRUSKAL = {
    ("bert", "trained", "layer 1"): 291,
    ("bert", "random", "layer 1"): 349,
}  # appendix J, n = 512


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows, image models first, random before trained, layers from the input up."""

    def place(row: Row) -> tuple[int, int, str]:
        layer = f"{LAYERS.index(row.layer)}" if row.layer in LAYERS else row.layer
        return ORDER.index(row.model), ("random", "trained").index(row.weights), layer

    return sorted(rows, key=place)


def published() -> dict[tuple[str, str, str], dict[str, bool]]:
    """Tables 1 and 3 of Mahdavi et al. 2024 by model, weights and layer; both ViT shapes have table 1's rows."""
    found: dict[tuple[str, str, str], dict[str, bool]] = {}
    for line in _lines("assumptions_vit.csv"):
        verdicts = {name: line[name] == "1" for name in ASSUMPTIONS if name in line}
        if line["model"] == "embedding":
            verdicts["assumption_3"] = True  # section 5.1, in words
        weights = "trained" if line["model"] == "trained_vit" else "random"
        for model in IMAGE_MODELS:
            found[model, weights, line["model"]] = verdicts
    for line in _lines("assumptions_language.csv"):
        verdicts = {name: line[name] == "1" for name in ASSUMPTIONS if name in line}
        found[line["model"], line["weights"], f"layer {line['layer']}"] = verdicts
    return found


def verdict_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each layer and assumption.

    `ours` is the verdict at `tolerance`, `ours_float32` that at the authors' tolerance. `rate` is the share of
    independent subsets, or of contexts of full rank, among `trials`. `holds_below` is the largest tolerance at which
    the verdict would be that it holds: 99% of the subsets, or all contexts, pass.
    """
    theirs, lines = published(), []
    for row in in_order(rows):
        found = row.findings
        ours, float32 = found.verdicts(TOLERANCE), found.verdicts()
        known = theirs.get((row.model, row.weights, row.layer), {})
        for name, words in ASSUMPTIONS.items():
            subsets = subsets_of(row, name)
            line = _layer(row) | {
                "assumption": words,
                "published": _word(known.get(name)),
                "ours_float32": _word(float32[name]),
                "ours": _word(ours[name]),
            }
            if subsets is None:  # of all contexts
                line |= {
                    "rate": found.full_contexts_at(TOLERANCE),
                    "size": found.context,
                    "trials": found.examples,
                }
            else:
                line |= picked(subsets.rate, "rate", "size", "trials")
            limit = found.context_limit if subsets is None else subsets.limit
            lines.append(line | {"tolerance": TOLERANCE, "holds_below": limit})
    return pd.DataFrame(lines)


def layer_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each layer: sizes, the rank of all queries, and the sampled Kruskal rank at both tolerances."""
    lines = []
    for row in in_order(rows):
        found = row.findings
        kruskal = PUBLISHED_KRUSKAL.get((row.model, row.weights, row.layer))
        lines.append(
            _layer(row)
            | picked(found, "examples", n="context", d="width")
            | picked(found.rank, rank_of_queries="rank", smallest_kept="kept", largest_dropped="dropped")
            | picked(found, kruskal_rank="kruskal", kruskal_rank_float32="kruskal_float32")
            | {
                "float32_tolerance": float32_tolerance(found.context, found.width),
                "kruskal_rank_published": np.nan if kruskal is None else float(kruskal),
                "full_contexts": found.full_contexts_at(TOLERANCE),
            }
            | picked(row, weights_from="note", inputs="inputs")
        )
    return pd.DataFrame(lines)


def sensitivity_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each layer and assumption, a column for each tolerance: the share that passes."""
    lines = []
    for row in in_order(rows):
        for name, words in ASSUMPTIONS.items():
            subsets = subsets_of(row, name)
            passed = row.findings.full_contexts_at if subsets is None else subsets.rate_at
            trials = row.findings.examples if subsets is None else len(subsets.values)
            rates = {f"{tolerance:.0e}": passed(tolerance) for tolerance in TOLERANCES}
            lines.append(_layer(row) | {"assumption": words, "trials": trials} | rates)
    return pd.DataFrame(lines)


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


def subsets_of(row: Row, assumption: str) -> Subsets | None:
    """The subsets that an assumption is tested on; None for assumption 2, which is about contexts."""
    found = row.findings
    return {
        "general_position": found.position, "assumption_1": found.query, "assumption_3": found.mixed
    }.get(assumption)  # fmt: skip


def _layer(row: Row) -> dict[str, Any]:
    """The columns that identify a layer."""
    return picked(row, "model", "weights", "layer")


def _word(holds: bool | None) -> str | None:
    return None if holds is None else HOLDS if holds else FAILS


def _lines(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


TABLES = {
    "verdicts": TableOf(
        verdict_table,
        "Assumptions 1 to 3 and general position, published and ours.",
        {"rate": ".4f", "tolerance": ".0e", "holds_below": ".1e"},
    ),
    "layers": TableOf(
        layer_table,
        "Sizes and ranks of each layer's queries.",
        dict.fromkeys(("smallest_kept", "largest_dropped", "float32_tolerance"), ".1e"),
    ),
    "sensitivity": TableOf(sensitivity_table, "The share that passes, at each tolerance."),
    "pass_rate": TableOf(
        curve_table, "Share of random subsets that are linearly independent.", {"tolerance": ".1e"}
    ),
}

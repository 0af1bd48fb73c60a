"""The memorization theorem's assumptions on real networks (Mahdavi et al. 2024, section 5.1): tests, tables, answer.

Input: the folder layers/ that scripts/check_assumptions.py wrote, one .npz file a layer. Tables have the published
verdicts of section 5.1 and appendix J beside ours, and their change with the tolerance; the figure is the paper's
figure 1 for every network: pass rate against subset size, a curve for each tolerance.

Contexts are too large to keep: of each batch only the queries and the contexts' means and singular values are kept.
The findings have a file for each layer, so that a later call with other networks adds to the same tables.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, INK, MOST_COLUMNS, MUTED, PAGE, ordered_looks
from shapelaw.report.tables import Columns, frame_of, picked
from shapelaw.report.write import Answer, Results, Table, TableOf, tables_of
from shapelaw.storage.files import replacing
from shapelaw.studies.assumptions.study import NAME, Assumptions
from shapelaw.studies.study import Published, published
from shapelaw.theory.memorization import (
    PASS_RATE,
    TOLERANCE,
    Floats,
    NumericalRank,
    PassRate,
    context_values,
    kruskal_pass_rate,
    kruskal_rank_estimate,
    numerical_rank,
    smallest_values,
)

# some hundred epsilons of float64: the rounding of products and singular values of these sizes
ROUNDING = 1e-13
DRAWN = (1e-6, 1e-8, 1e-10)
FORMAT = 1
_LAYER = ["model", "weights", "layer"]
_SUBSETS = ("query", "mixed", "position")
_PLAIN = (
    *("model", "weights", "layer", "note", "inputs"),
    *("examples", "context", "width", "kruskal", "kruskal_float32"),
)
_ARRAYS = ("context_values", "sizes", "curve")
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


@dataclass
class Collected:
    """The numbers that are kept of one layer's tokens."""

    queries: list[Floats] = field(default_factory=list)
    means: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    context: int = 0

    def add(self, tokens_BnD: npt.NDArray[np.float64], query: int) -> None:
        """Add a batch; the query, at its place, is also a token of its context (self-attention)."""
        self.context = tokens_BnD.shape[1]
        self.queries.append(tokens_BnD[:, query].copy())
        self.means.append(tokens_BnD.mean(axis=1))
        self.values.append(context_values(tokens_BnD))


def float32_tolerance(size: int, width: int) -> float:
    """The authors' tolerance: `torch.linalg.matrix_rank` of float32 takes max(rows, columns) times its epsilon."""
    return max(size, width) * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Subsets:
    """Random subsets of one size: the verdict at 1e-10, and the smallest singular values, which show how firm it is.

    `values` are those of the sensitivity trials, relative to the largest singular value of each subset; `needed` is the
    share that must be independent.
    """

    rate: PassRate
    values: Floats
    needed: float = PASS_RATE

    def rate_at(self, tolerance: float) -> float:
        """The share of subsets that are independent at another tolerance."""
        return float((self.values > tolerance).mean())

    def holds_at(self, tolerance: float) -> bool:
        """True where enough of the subsets are independent at this tolerance."""
        return (self.rate.rate if tolerance == TOLERANCE else self.rate_at(tolerance)) >= self.needed

    @property
    def limit(self) -> float:
        """The largest tolerance at which enough subsets are independent; 0 if that is rounding."""
        value = float(np.sort(self.values)[len(self.values) - math.ceil(self.needed * len(self.values))])
        return value if value > ROUNDING else 0.0


@dataclass(frozen=True)
class LayerFindings:
    """One layer of one network on T examples of n tokens of width d.

    Attributes:
        model, weights, layer: names of the network, of its weights and of the layer.
        note, inputs: where the weights come from, and what went through the network.
        query: subsets of n queries (assumption 1).
        mixed: subsets of n queries, each with the mean of its context added (assumption 3).
        position: subsets of d queries, the largest possible ones (general position).
        context_values: (T, min(n, d)), each context's singular values relative to its largest (assumption 2).
        rank: rank of all queries together.
        kruskal: the queries' Kruskal rank by sampling, at 1e-10 and at the authors' tolerance of float32.
        sizes, curve: subset sizes, and (sizes, trials) smallest relative singular values at each (figure 1).
    """

    examples: int
    context: int
    width: int
    query: Subsets
    mixed: Subsets
    position: Subsets
    context_values: Floats
    rank: NumericalRank
    kruskal: int
    kruskal_float32: int
    sizes: npt.NDArray[np.int64]
    curve: Floats
    model: str
    weights: str
    layer: str
    note: str
    inputs: str

    @cached_property
    def contexts(self) -> Subsets:
        """The contexts, as the subsets that assumption 2 is about: all of them must have rank n."""
        fits = self.context <= self.width
        values = self.context_values[:, -1] if fits else np.zeros(self.examples)
        rate = PassRate(self.context, float((values > TOLERANCE).mean()), self.examples)
        return Subsets(rate, values, needed=1.0)

    @property
    def tested(self) -> dict[str, Subsets]:
        """The subsets that each assumption is tested on."""
        return {
            "general position": self.position,
            "assumption 1": self.query,
            "assumption 2": self.contexts,
            "assumption 3": self.mixed,
        }

    def verdicts(self, tolerance: float | None = None) -> dict[str, bool]:
        """The verdicts at a tolerance; None is the authors', of float32."""
        return {
            name: one.holds_at(tolerance or float32_tolerance(one.rate.size, self.width))
            for name, one in self.tested.items()
        }


def findings_of(
    collected: Collected, asked: Assumptions, named: Mapping[str, str], seed: int = 0
) -> LayerFindings:
    """The findings from the collected numbers of one layer.

    Args:
        named: the layer's `model, weights, layer, note, inputs`.

    Raises:
        UserError: fewer examples than the context has tokens, so that assumption 1 can't be tested.
    """
    queries_TD, means_TD = np.concatenate(collected.queries), np.concatenate(collected.means)
    examples, width = queries_TD.shape
    n = collected.context
    if examples < n:
        raise UserError(f"{examples} examples are too few for a context of {n} tokens; give more --examples.")

    def subsets(vectors_TD: Floats, size: int) -> Subsets:
        return Subsets(
            kruskal_pass_rate(vectors_TD, size, asked.trials, seed),
            smallest_values(vectors_TD, size, asked.sensitivity_trials, seed),
        )

    largest = min(examples, width)
    sizes, curve = _curve(queries_TD, min(n, largest), largest, asked.curve_trials, seed)

    def kruskal(tolerance: float) -> int:
        return kruskal_rank_estimate(queries_TD, asked.sensitivity_trials, seed, tolerance)

    return LayerFindings(
        examples, n, width, subsets(queries_TD, n), subsets(queries_TD + means_TD, n),
        subsets(queries_TD, largest), np.concatenate(collected.values), numerical_rank(queries_TD),
        kruskal(TOLERANCE), kruskal(float32_tolerance(n, width)), sizes, curve, **named,
    )  # fmt: skip


def _curve(
    queries_TD: Floats, context: int, largest: int, trials: int, seed: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Subset sizes over the whole range, closer where the pass rate of a drawn curve falls, with the values at each."""
    found = {
        int(size): smallest_values(queries_TD, int(size), trials, seed)
        for size in {*np.linspace(1, largest, 13).round().astype(np.int64).tolist(), context}
    }
    width = queries_TD.shape[1]
    closer: set[int] = set()
    for tolerance in (None, *DRAWN):
        rates = {
            size: float((found[size] > (tolerance or float32_tolerance(size, width))).mean())
            for size in sorted(found)
        }
        above = max((size for size, rate in rates.items() if rate >= PASS_RATE), default=1)
        below = min((size for size, rate in rates.items() if size > above and rate < 0.01), default=largest)
        closer |= set(np.linspace(above, below, 7).round().astype(np.int64).tolist())
    for size in closer - set(found):
        found[size] = smallest_values(queries_TD, size, trials, seed)
    sizes = sorted(found)
    return np.array(sizes, dtype=np.int64), np.stack([found[size] for size in sizes])


def write_row(folder: Path, row: LayerFindings) -> Path:
    """Write `<model>-<weights>-<layer>.npz`; the folder is made."""
    rates = {name: asdict(getattr(row, name).rate) for name in _SUBSETS}
    header = {"format": FORMAT, **picked(row, *_PLAIN), "rates": rates, "rank": asdict(row.rank)}
    path = folder / f"{row.model}-{row.weights}-{row.layer.replace(' ', '_')}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            header=np.array(json.dumps(header)),
            **picked(row, *_ARRAYS),
            **{name: getattr(row, name).values for name in _SUBSETS},
        )
    return path


def read_rows(folder: Path) -> list[LayerFindings]:
    """All layers of a folder, in the order of their names.

    Raises:
        UserError: a file is not one of these, or has another format.
    """
    return [_read_row(path) for path in sorted(folder.glob("*.npz"))]


def _read_row(path: Path) -> LayerFindings:
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            parts: dict[str, Any] = {name: header[name] for name in _PLAIN}
            for name in _SUBSETS:
                rate = header["rates"][name]
                parts[name] = Subsets(PassRate(rate["size"], rate["rate"], rate["trials"]), file[name])
            parts |= {name: file[name] for name in _ARRAYS}
            return LayerFindings(rank=NumericalRank(**header["rank"]), **parts)
    except Exception as error:
        raise UserError(f"{path} can't be read ({error}); delete it and check its network again.") from error


IMAGE_MODELS = ("vit", "vit_base")
LAYERS = ("embedding", "random_attention", "random_vit", "trained_embedding", "trained_vit")
HOLDS, FAILS = "holds", "fails"
EXPONENTS = tuple(round(math.log10(tolerance)) for tolerance in DRAWN)
NAMES = {"random_attention": "random attention", "random_vit": "random ViT", "trained_vit": "trained ViT"}
_MODELS = {  # in the order of the tables
    "vit": "DINOv2-small",
    "vit_base": "ViT-base",
    "bert": "BERT",
    "bert_large": "BERT-large",
    "decoder": "our decoder",
    "gpt2": "GPT-2",
    "gpt2_large": "GPT-2-large",
}


def in_order(rows: Sequence[LayerFindings]) -> list[LayerFindings]:
    """The rows, image models first, random before trained, layers from the input up."""

    def place(row: LayerFindings) -> tuple[int, int, str]:
        layer = f"{LAYERS.index(row.layer)}" if row.layer in LAYERS else row.layer
        return [*_MODELS].index(row.model), ("random", "trained").index(row.weights), layer

    return sorted(rows, key=place)


def verdict_table(rows: Sequence[LayerFindings]) -> pd.DataFrame:
    """One line for each layer and assumption.

    `ours` is the verdict at `tolerance`, `ours_float32` that at the authors' tolerance. `rate` is the share of
    independent subsets, or of contexts of full rank, among `trials`. `holds_below` is the largest tolerance at which
    the verdict would be that it holds: 99% of the subsets, or all contexts, pass.
    """
    lines = []
    for row in in_order(rows):
        ours, float32 = row.verdicts(TOLERANCE), row.verdicts()
        for name, subsets in row.tested.items():
            verdicts = {
                "assumption": name,
                "published": _published(name, row).value or None,
                "ours_float32": HOLDS if float32[name] else FAILS,
                "ours": HOLDS if ours[name] else FAILS,
            }
            rates = picked(subsets.rate, "rate", "size", "trials")
            limits = {"tolerance": TOLERANCE, "holds_below": subsets.limit}
            lines.append(picked(row, *_LAYER) | verdicts | rates | limits)
    return pd.DataFrame(lines)


_LAYER_COLUMNS: Columns = {
    **{name: name for name in _LAYER},
    "examples": "examples",
    "n": "context",
    "d": "width",
    "rank_of_queries": "rank.rank",
    "smallest_kept": "rank.kept",
    "largest_dropped": "rank.dropped",
    "kruskal_rank": "kruskal",
    "kruskal_rank_float32": "kruskal_float32",
    "float32_tolerance": lambda row: float32_tolerance(row.context, row.width),
    "kruskal_rank_published": lambda row: _published("Kruskal rank", row).number,
    "full_contexts": "contexts.rate.rate",
    "weights_from": "note",
    "inputs": "inputs",
}


def curve_table(rows: Sequence[LayerFindings]) -> pd.DataFrame:
    """The pass rates of figure 1: one line for each layer, subset size and tolerance."""
    lines = []
    for row in in_order(rows):
        for size, values in zip(row.sizes, row.curve, strict=True):
            for tolerance in (float32_tolerance(int(size), row.width), *TOLERANCES):
                at = {"size": int(size), "tolerance": tolerance, "rate": float((values > tolerance).mean())}
                lines.append(picked(row, *_LAYER) | at | {"trials": len(values)})
    return pd.DataFrame(lines)


def _published(quantity: str, row: LayerFindings) -> Published:
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


def title_of(model: str, weights: str, layer: str) -> str:
    """The name of a layer, as a panel has it."""
    if layer == "layer 1":
        return f"{_MODELS[model]}, {weights}, layer 1"
    return f"{NAMES[layer]}, {_MODELS[model]}"


def pass_rate_figure(tables: Mapping[str, Table]) -> Chart:
    """One panel for each layer after a first attention; dashed is n (assumption 1), dotted d (general position).

    Args:
        tables: `pass_rate` and `layers` of the study.
    """
    curves = tables["pass_rate"].frame
    after = curves[curves["layer"].isin((*NAMES, "layer 1"))]
    if after.empty:
        raise ValueError("the rows have no layer after an attention layer")
    sizes = tables["layers"].frame[[*_LAYER, "n", "d"]].rename(columns={"n": "context", "d": "width"})
    published = ~after["tolerance"].isin(TOLERANCES)  # which grows with the size
    return pass_rate_chart(after.assign(tolerance=after["tolerance"].mask(published)).merge(sizes, on=_LAYER))


def pass_rate_chart(curves: pd.DataFrame) -> Chart:
    """The panels, three in a row, with one legend.

    Args:
        curves: rows of `model, weights, layer, context, width, size, tolerance, rate`; an empty tolerance is the
            published one.
    """
    panels = [_panel(mine) for _, mine in curves.groupby(_LAYER, sort=False)]
    columns = min(len(panels), MOST_COLUMNS)
    return Chart(panels, columns, PAGE, 0.5 + 2.0 * -(-len(panels) // columns), share_y=True)


def _panel(curves: pd.DataFrame) -> Panel:
    first = curves.iloc[0]
    looks, small = ordered_looks(EXPONENTS), {"markersize": 2.5, "linewidth": 1.1}
    published = "tolerance of float32, as published"

    def curve(at: pd.Series[bool], label: str, color: str, marker: str, more: Mapping[str, float]) -> Points:
        return Points(curves.loc[at, "size"], curves.loc[at, "rate"], label, color, marker, "-", more=more)

    marks: list[Mark] = [
        curve(curves["tolerance"].isna(), published, ACCENT, "v", {"markersize": 2.5, "zorder": 3})
    ]
    for at in EXPONENTS:
        look, rows = looks[at], curves["tolerance"] == 10.0**at
        marks.append(curve(rows, f"$10^{{{at}}}$", look.color, look.marker, small))
    context, width = {"linewidth": 0.9, "zorder": 1.5}, {"linewidth": 1.2, "zorder": 1.5}
    marks.append(Across(first["context"], "x", "n, assumption 1", INK, "--", more=context))
    marks.append(Across(first["width"], "x", "d, general position", MUTED, ":", more=width))
    x = Span("vectors in a subset", "whole", limits=(0, None))
    y = Span("share of subsets\nthat are independent", limits=(-0.04, 1.04))
    title = title_of(*(str(first[name]) for name in _LAYER))
    return Panel(marks, x, y, f"{title}\nn = {first['context']}, d = {first['width']}")


def results(arguments: argparse.Namespace) -> Results:
    """The results of a folder of layers.

    Raises:
        UserError: a layer can't be read, or the folder has none.
    """
    rows = read_rows(arguments.input)
    if not rows:
        raise UserError(f"{arguments.input} has no layers; measure some: snakemake assumptions")
    return present(rows)


def present(rows: Sequence[LayerFindings]) -> Results:
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
    return Results(tables, {"pass_rate": pass_rate_figure(tables)}, fit, answer=answer(tables))


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

"""Write the tables of docs/advice/answer.md and evidence.md anew, between their markers, and the figure.

  PYTHONPATH=scripts python docs/generators/answer_page.py

They are what `shapelaw shape` says, by the committed fits (workflow/reference/evidence.json) and checks
(docs/results/evidence_checks.csv). Exit codes: 0 done, 2 a file can't be written, or the page has no such marker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from page_parts import pipe_table, with_parts
from shapelaw.advice.answer.allocation import powers_of_ten, public_allocation
from shapelaw.advice.answer.answer import ShapeAnswer, price, public_answer
from shapelaw.advice.answer.costs import DEPTHS, HIGH, LOW, WITHIN, Question, ask
from shapelaw.advice.answer.laws import PUBLISHED, best_depth_at, read_law
from shapelaw.advice.answer.sizes import Counting, big
from shapelaw.advice.answer.text import cost_text, ends, text_of
from shapelaw.advice.commands.shape import bottlenecks
from shapelaw.advice.evidence.public import (
    Network,
    machine_clock,
    public_evidence,
    shipped_models,
)
from shapelaw.advice.surface.answers import best_depth
from shapelaw.advice.surface.average import Surface, fit_surface
from shapelaw.advice.surface.forms import shapes_of
from shapelaw.errors import command_line, end_with
from shapelaw.fits.inputs import TOKENS as TOKENS_TRAINED
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.noise import pooled_noise
from shapelaw.report.plots import ACCENT, INK, MUTED, SECOND, style, value_axis
from shapelaw.report.plots import PAGE as TEXT
from shapelaw.specs.sizes import SizeAxis
from shapelaw.storage.files import replacing

ROOT = Path(__file__).resolve().parents[2]
PAGE, EVIDENCE = Path("docs/advice/answer.md"), Path("docs/advice/evidence.md")
CHECKS = Path("docs/results/evidence_checks.csv")
ONE_LAB = Path("docs/results/answer_by_one_lab.csv")
FIGURE = Path("docs/figures/shape_costs.svg")
TOKENS, VOCAB, SIZE = 3e10, 32000, 1.3e9
OWN, OWN_EQUAL = (Path(f"docs/results/{name}.csv") for name in ("h200_llama", "laptop_equal_tokens"))
CLASSES = 50257
OWN_SIZES, LAW_SIZES, PUBLIC_SIZES = (3e4, 1e5, 5.7e5), (6e6, 6e7, 2.4e8), (6e7, 3.5e8, 1.3e9)
EQUAL = 100  # tokens per parameter
LAW_TOKENS = 1e6 * 512 * 128  # Levine et al. 2020, section 5.1: steps, windows a step, tokens per window
SIZES = (125e6, 350e6, 1.3e9, 2.7e9, 7e9)
BUDGETS = (1e18, 1e19, 1e20, 1e21, 1e22)  # FLOPs
MODELS = ("OLMo-1B", "TinyLlama-1.1B", "MobileLLM-125M", "Pythia-1b", "BLOOM-1B1", "Cerebras-GPT-111M")
SHALLOW, DEEP, CONTEXT = 12, 48, 1024  # of the times that are compared
NEAR = 0.3  # log size within which a shipped model is drawn beside the curve
ROOM = 0.085  # log depth between two of them, so that their names can be read
BEST_DEPTH, EQUAL_SIZES = "best depth, ", ("equal blocks", "equal total")
MEANINGS: Mapping[str, tuple[SizeAxis, bool, bool]] = {
    "blocks": (SizeAxis.BLOCK, False, False),
    "all, tied": (SizeAxis.TOTAL, True, False),
    "all, untied": (SizeAxis.TOTAL, False, False),
    "FLOPs": (SizeAxis.FLOPS, False, False),
    "time": (SizeAxis.TOTAL, False, True),
}


def asked(size: float, counting: Counting, equal_time: bool = False) -> Question:
    """A question at the page's number of tokens, with public times."""
    return Question(size, counting, TOKENS, public_evidence().clock, equal_time=equal_time)


def tables(page: Path = PAGE) -> dict[str, Callable[[], str]]:
    """A page's generated parts, by the names in their markers."""
    if page == EVIDENCE:
        return {"sources": _sources, "checks": _checks}
    return {
        "example": _example,
        "sizes": _sizes,
        "labs": _labs,
        "budgets": _budgets,
        "meanings": _meanings,
        "times": _times,
        "models": _models,
    }


def page_of(text: str, page: Path = PAGE) -> str:
    """A page with its generated parts made anew.

    Raises:
        UserError: a part has no markers.
    """
    return with_parts(text, tables(page), str(page))


def _depths(found: ShapeAnswer) -> str:
    low, high = ends(found.best)
    return f"{found.best.depth:.0f} ({low} to {high})" if found.by else f"can't tell ({low} to {high})"


def _example() -> str:
    found = public_answer(asked(SIZE, Counting(vocab_size=VOCAB)))
    return f"```text\n{text_of(found, bottlenecks(found, None))}\n```"


def _sizes() -> str:
    rows: list[tuple[str, ...]] = [
        ("size", "best depth (68%)", "below 0.005 nats", "a shape", "at equal time: MI250X", "H200")
    ]
    for size in SIZES:
        found = public_answer(asked(size, Counting(vocab_size=VOCAB)))
        timed = ["{} to {}".format(*ends(best)) for best in found.equal_times.values()] or ["–", "–"]
        rows.append((big(size), *_cells(found), *timed))
    return pipe_table(rows)


def _labs() -> str:
    """Best depths by one lab's runs, as they were told, and by both."""
    before = pd.read_csv(ROOT / ONE_LAB, comment="#").to_dict("records")
    rows: list[tuple[str, ...]] = [
        ("size", "tokens", "by Gemstones alone (68%)", "by both labs (68%)", "below 0.005 nats")
    ]
    for row in before:
        if not row["told"]:
            continue  # too far from the evidence at any number of tokens, as the page's first table says
        question = replace(asked(row["size"], Counting(vocab_size=VOCAB)), tokens=row["tokens"])
        found = public_answer(question)
        then = f"{row['depth']:.0f} ({row['low']:.0f} to {row['high']:.0f})"
        said = _depths(found) if found.by else "can't tell"
        rows.append((big(row["size"]), big(row["tokens"]), then, said, _cells(found)[1]))
    return pipe_table(rows)


def _budgets() -> str:
    names = ["FLOPs", "parameters (68%)", "tokens", "below 0.005 nats"]
    rows: list[tuple[str, ...]] = []
    for flops in BUDGETS:
        found = public_allocation(Counting(vocab_size=VOCAB), flops, WITHIN)
        told = ("can't tell", "–", "–")
        if found.low is not None and found.high is not None and found.flat is not None:
            size, (least, most) = f"{big(found.size)} ({big(found.low)} to {big(found.high)})", found.flat
            told = size, big(found.tokens), f"{big(least)} to {big(most)}"
        rows.append((powers_of_ten(flops), *told, *(big(law.size(flops)) for law in found.laws)))
    return pipe_table([(*names, *(law.name for law in found.laws)), *rows])


def _cells(found: ShapeAnswer) -> tuple[str, str, str]:
    """The best depth, the flat part and the advised shape of an answer."""
    if found.advised is None:
        return _depths(found), "–", "–"
    shape, flat = found.advised.shape, found.costs.flat()
    return _depths(found), "{} to {}".format(*flat), f"{shape.depth} x {shape.width:,}, {shape.heads} heads"


def _meanings() -> str:
    rows = [("size", *MEANINGS)]
    for size in SIZES[:-1]:
        cells = [
            _depths(public_answer(asked(size, Counting(axis, CLASSES, tied), equal_time)))
            for axis, tied, equal_time in MEANINGS.values()
        ]
        rows.append((big(size), *cells))
    return pipe_table(rows)


def _times() -> str:
    rows = [("times", "best depth at equal time (68%)", "below 0.005 nats", "a shape", "time at equal size")]
    counting, public = Counting(vocab_size=VOCAB), public_evidence().clock
    clocks = {public.source: public, "H200, one card": machine_clock("h200", VOCAB, CONTEXT)}
    for name, clock in clocks.items():
        question = Question(SIZE, counting, TOKENS, clock, CONTEXT)
        found, same = public_answer(replace(question, equal_time=True)), public_answer(question).costs
        slower = same.relative_time(DEEP) / same.relative_time(SHALLOW)
        said = f"{DEEP} layers take {slower:.2f} of what {SHALLOW} take"
        rows.append((name, *_cells(found), said))
    return pipe_table(rows)


def _models() -> str:
    head = ("model", "its shape", "vocabulary", "tokens")
    rows = [(*head, "excess loss, nats (68%)", "wasted", "best at its size")]
    by_name = {one.name: one for one in shipped_models(SizeAxis.TOTAL)}
    for name in MODELS:
        one = by_name[name]
        found = price(one, asked(one.size(), one.counting))
        assert found.own is not None
        assert found.cost is not None
        assert one.tokens is not None
        shape = f"{one.depth} x {one.width:,}, {big(one.size())}"
        vocabulary = f"{one.counting.vocab_size:,}{', tied' if one.counting.tied else ''}"
        cost, worth = cost_text(found.cost), f"{found.cost.params_worth:.0%}"
        rows.append((name, shape, vocabulary, big(one.tokens), cost, worth, f"{found.own.best.depth:.0f}"))
    return pipe_table(rows)


def _sources() -> str:
    """Best depths of some sizes of blocks by three sources, with tokens per parameter, and how fast they grow."""
    runs, surface = _own(OWN)
    law, ours = read_law(PUBLISHED), float(runs[TOKENS_TRAINED].iloc[0])

    def public(size: float, tokens: float = TOKENS) -> float:
        question = replace(asked(size, Counting(SizeAxis.BLOCK, CLASSES)), tokens=tokens)
        return public_answer(question).best.depth

    of: Mapping[str, tuple[float, tuple[float, ...], Callable[[float], float]]] = {
        "our 115 runs: Llama's block, bytes": (ours, OWN_SIZES, lambda size: best_depth(surface, size).depth),
        "Levine et al. 2020: GPT-2's block, V = 2,000": (LAW_TOKENS, LAW_SIZES, partial(best_depth_at, law)),
        "Gemstones and Bian et al. 2025: V = 50k": (TOKENS, PUBLIC_SIZES, public),
    }
    columns = []
    for tokens, sizes, depth_at in of.values():
        depths = {size: depth_at(size) for size in sizes}
        cells = {size: f"{depth:.2g}, {tokens / size:,.0f}" for size, depth in depths.items()}
        columns.append((cells, _power(depths)))
    rows = [
        ("parameters of the blocks", *(f"{name}, {big(tokens)} tokens" for name, (tokens, *_) in of.items()))
    ]
    for size in sorted({size for cells, _ in columns for size in cells}):
        rows.append((big(size), *(cells.get(size, "–") for cells, _ in columns)))
    rows.append(("depth grows as the size to the power of", *(power for _, power in columns)))
    equal = {size: public(size, EQUAL * size) for size in PUBLIC_SIZES}
    of_equal = _own(OWN_EQUAL)[1]
    within = OWN_SIZES[:2]  # of these runs
    own = {size: best_depth(of_equal, size).depth for size in within}
    rows.append((f"the same at {EQUAL} tokens per parameter", _power(own), "not measured", _power(equal)))
    return pipe_table(rows)


def _own(path: Path) -> tuple[pd.DataFrame, Surface]:
    """Runs of ours, and the surface of their losses at equal blocks."""
    runs = check_runs(pd.read_csv(ROOT / path), str(path))
    return runs, fit_surface(shapes_of(runs, SizeAxis.BLOCK), pooled_noise(runs))


def _power(depths: Mapping[float, float]) -> str:
    """The power of the size that leads from the first of some depths to the last."""
    (first, shallow), *_, (last, deep) = depths.items()
    return f"{np.log(deep / shallow) / np.log(last / first):.2f}"


def _checks() -> str:
    """What was predicted of runs that were left out: best depths by both meanings of size in one row, then losses."""
    checks = pd.read_csv(ROOT / CHECKS)
    depths = checks[checks["predicted"].str.startswith(BEST_DEPTH)]
    of_size = dict(list(depths.groupby("predicted")))
    head = ("error", "the fits'", "printed")
    rows: list[tuple[str, ...]] = [
        ("best depth", *(f"{size}: {one}" for size in EQUAL_SIZES for one in head))
    ]
    for left_out in depths["left_out"].unique():
        cells = []
        for size in EQUAL_SIZES:
            of = of_size[f"{BEST_DEPTH}{size}"]
            found = of[of["left_out"] == left_out].to_dict("records")
            cells += _check(found[0]) if found else ["–"] * len(head)
        rows.append((left_out, *cells))
    losses: list[tuple[str, ...]] = [("loss or excess loss", "number", *head)]
    for row in checks.drop(depths.index).to_dict("records"):
        what = "excess loss" if row["predicted"].startswith("cost") else "loss"
        losses.append((f"{what}, {row['left_out']}", f"{row['count']:,}", *_check(row)))
    return f"{pipe_table(rows)}\n\n{pipe_table(losses)}"


def _check(row: Mapping[Any, Any]) -> list[str]:
    """The error of a prediction, and the width and share of either interval."""
    intervals = (("interval", "held"), ("predictive_interval", "held_predictive"))
    held = [
        "–" if np.isnan(row[share]) else f"{row[width]:.2g}: {row[share]:.0%}" for width, share in intervals
    ]
    return [f"{row['error']:.2g}", *held]


def figure() -> Figure:
    """Cost against depth at one size, with its band; shipped models near it as points, each at its own size."""
    found = ask(public_evidence(), asked(SIZE, Counting(vocab_size=VOCAB)))
    depths = np.exp(DEPTHS)
    shown = (depths >= 7) & (depths <= 130)
    value, low, high = found.band(DEPTHS[shown], found.log_blocks[shown])
    with style():
        drawn = Figure(figsize=(TEXT, 3.6))
        axes: Any = drawn.subplots()
        axes.fill_between(
            depths[shown], low, high, color=SECOND, alpha=0.15, linewidth=0, label="68% interval"
        )
        axes.plot(depths[shown], value, color=SECOND, label="excess loss, above the best shape's")
        axes.axhline(found.question.within, color=MUTED, linewidth=0.8, linestyle=":")
        for one, value in _points():
            axes.plot(one.depth, value, "o", color=ACCENT, markersize=3.5)
            place = {"xytext": (1, 4), "textcoords": "offset points", "rotation": 60}
            axes.annotate(one.name, (one.depth, value), fontsize=7, color=INK, **place)
        axes.set_xscale("log")
        value_axis(axes, (8, 12, 16, 24, 32, 48, 64, 96, 128))
        axes.set(xlabel="layers", ylabel="excess loss (nats per token)", ylim=(-0.002, 0.07))
        axes.legend(loc="upper center", frameon=False)
    return drawn


def _points() -> list[tuple[Network, float]]:
    """Shipped models near the size, with what each costs at its own size; of neighbours in depth the nearest one."""
    points: dict[int, tuple[Network, float]] = {}
    for one in sorted(shipped_models(SizeAxis.TOTAL), key=lambda one: abs(np.log(one.size() / SIZE))):
        crowded = any(abs(np.log(one.depth / depth)) < ROOM for depth in points)
        if crowded or abs(np.log(one.size() / SIZE)) > NEAR:
            continue
        found = price(one, asked(one.size(), one.counting))
        if found.cost is not None:
            points[one.depth] = one, found.cost.value
    return list(points.values())


assert (LOW, HIGH) == (0.16, 0.84)  # the page's 68%


def write_figure() -> None:
    """Draw the page's figure again."""
    with style(), replacing(ROOT / FIGURE) as temporary:
        figure().savefig(temporary, format="svg", metadata={"Date": None})


def main() -> None:
    """Write the pages and the figure."""
    command_line(__doc__).parse_args()
    for page in (PAGE, EVIDENCE):
        text = page_of((ROOT / page).read_text(encoding="utf-8"), page)
        with replacing(ROOT / page) as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_figure()


if __name__ == "__main__":
    end_with(main)

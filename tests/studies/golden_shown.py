"""What studies make of runs whose truth is known, kept in tests/golden/shown.tar.xz: their tables, also as they are
read, fit.json, and the words, marks and data of their figures.

`PYTHONPATH=scripts:tests python tests/studies/golden_shown.py` makes all of it afresh, says what changed and rewrites
the archive on purpose. That the truth is found is held by the studies' own tests; what commands write of committed runs
by tests/test_tables.py.
"""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bottleneck_runs import analysed_ratios as of_ratios
from bottleneck_runs import positional_runs, rank_runs
from degree_runs import digits, with_mixtures
from degree_runs import table as degrees
from golden_tables import ARCHIVE as TABLES
from golden_tables import Tables, as_table, differences, kept, read_archive, write_archive
from grid_runs import AXES, grid_runs
from grid_runs import analysed as of_grid
from layers_of_tokens import made_rows
from loss_surfaces import grid_of, simulate
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from memorizing_networks import CONTEXTS, HEAD_COUNTS, HEAD_DIMS, our_runs, save_weights, study_of, weights
from memorizing_networks import simulate as memorize
from scattered_shapes import Design, budget_of
from transition_runs import analysed as of_depths
from transition_runs import analysed_series as of_vocabularies
from transition_runs import of_series, refitted, todays_runs, undertraining_runs, vocabulary_runs

from shapelaw.advice.surface import results as surface
from shapelaw.fits.inputs import check_runs
from shapelaw.report.write import Results
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.assumptions.results import present as of_layers
from shapelaw.studies.block_degree import results as block_degree
from shapelaw.studies.decoders import attention_ratio, embedding_rank, positional_rank, vocabulary
from shapelaw.studies.decoders import todays_decoder as todays
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import present as grid
from shapelaw.studies.memorization import results as memorization
from shapelaw.studies.memorization.analysis import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS
from shapelaw.studies.separation_rank import results as ranks
from shapelaw.studies.study_runs import StudyRuns
from shapelaw.studies.transitions.analysis import (
    Options,
    TransitionAnalysis,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    published_transitions,
)
from shapelaw.studies.transitions.results import present as transitions

ARCHIVE = TABLES.with_name("shown.tar.xz")
KEPT_POINTS = 6  # of longer data, beside their number and the sum of their sizes
FAST = Options(draws=150)


def of_pairs(widths: dict[int, list[int]], true: dict[int, float], **options: Any) -> TransitionAnalysis:
    """The analysis of runs at these widths of each depth whose transitions are known."""
    return analyse_runs(check_runs(simulate(widths, true, noise=0.0008), "made"), Options(**options))


def of_given(table: pd.DataFrame) -> Results:
    """Of transitions alone."""
    return transitions(analyse_transitions(check_transitions(table, "given")))


def by_size(size: SizeAxis) -> Results:
    """Depths 4 and 8, whose embeddings make equal total parameters other widths than equal blocks."""
    runs = simulate(grid_of((4, 8), 6e4, 6e6, 12), {4: 85.0}, noise=0.0008)
    blocks = 12.0 * runs["depth"] * runs["width"] ** 2
    runs = runs.assign(params=blocks, total_params=blocks + 300 * runs["width"], step_flops=6 * blocks)
    return transitions(analyse_runs(check_runs(runs, "made", size=size), Options(draws=300, size=size)))


def of_surface(count: int) -> Results:
    """A surface of so many shapes, at a size of theirs and beyond; not its rule of sizes: zeros but for rounding."""
    options = surface.Options(sizes=(3e8, 1e10), draws=300)
    found = surface.present_surface(surface.analyse_surface(budget_of(Design(count)), options))
    return replace(found, fit={name: one for name, one in found.fit.items() if name != "size_rule"})


def in_turn() -> Results:
    """Blocks of two budgets, at the larger of which depths are better in turn: no transition, no bound."""
    runs = todays_runs({("gpt2", steps, 0.001): 120.0 for steps in (1000, 4000)})
    deep = (runs["steps"] == 4000) & (runs["depth"] == 8)
    runs.loc[deep, "test_loss"] += np.where(runs.loc[deep, "width"].rank(method="dense") % 2, 0.3, -0.3)
    return of_rates(runs)


def of_rates(runs: pd.DataFrame) -> Results:
    """Cells of blocks, steps and rates."""
    return todays.present(todays.analyse_cells(runs, "runs.csv", FAST))


def once(runs: pd.DataFrame) -> pd.DataFrame:
    """One seed of each network, at one rate."""
    return runs.query("seed == 0 and learning_rate == 0.001")


def of_degrees(runs: pd.DataFrame) -> Results:
    """Product networks, whose ranks may take no time."""
    return block_degree.present(block_degree.analyse(StudyRuns(runs, "runs", ()), rank_seconds=0.0))


def at_half_way() -> pd.DataFrame:
    """Separable targets and digits of two widths, and mixtures of the first that begin at 0.9."""
    runs = pd.concat([degrees(seeds=3), degrees(seeds=3).assign(width=16), digits(16), digits(32)])
    runs["loss"] *= np.where(runs["width"] == 16, 2.0, 1.0)
    mixed = runs[runs["degrees"] == "3.3.3.3"].assign(mixture="True", initial_share=0.9)
    return pd.concat([runs, mixed])


def with_lost_runs() -> pd.DataFrame:
    """Product networks of which one diverged once, one at every rate, and one was below a threshold at once.

    Of their mixture a seed diverged too.
    """
    runs = degrees(seeds=4).assign(evaluate_every=10)
    mixed = runs[runs["degrees"] == "3.3.3.3"].assign(mixture="True", mean_degree=2.5 + 0.1 * runs["seed"])
    mixed.loc[mixed["seed"] == 0, ["loss", "mean_degree", "diverged_at_step"]] = [None, None, 30.0]
    deep, first = runs["degrees"] == "3.3.3.3", runs["seed"] == 0
    once = deep & (runs["target_rank"] == 8) & first
    runs.loc[deep & (runs["seed"] == 1), "steps_to_0.5"] = 10.0
    runs.loc[once | (runs["degrees"] == "2.2.2.2.2.2"), ["loss", "diverged_at_step"]] = [None, 30.0]
    return pd.concat([runs, mixed])


def memorized(runs: pd.DataFrame, study: str) -> Results:
    """Memorizers along what a study varies."""
    return memorization.present(study_of(runs, study))


def fallen() -> pd.DataFrame:
    """Memorizers along n, of which the larger T falls from n = 40 to 50."""
    runs = memorize(context=CONTEXTS, examples=(6000, 18000))
    runs.loc[(runs["context"] == 50) & (runs["examples"] == 18000), "accuracy"] -= 0.3
    return runs


def saturated(*examples: tuple[str, int, int], runs: pd.DataFrame | None = None) -> Results:
    """Attention weights of runs, by name, T and H, beside a table of runs or alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "attention"
        for run, count, heads in examples:
            save_weights(folder, run, weights(count, heads))
        given = None if runs is None else StudyRuns(runs, "runs.csv", ())
        return memorization.present(memorization.analyse(given, "memorization_saturation", attention=folder))


def of_sizes() -> pd.DataFrame:
    """A table of runs of `PERFECT`."""
    rows = [
        (f"{heads}-{examples}", heads, examples, seed, share)
        for (heads, examples), shares in PERFECT.items()
        for seed, share in enumerate(shares)
    ]
    table = pd.DataFrame(rows, columns=["key", "heads", "examples", "seed", "accuracy"])
    return table.assign(context=32, head_dim=64)


def of_ranks() -> Results:
    """The small grid of separation ranks as it was measured once."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "measured.json"
        path.write_bytes(kept()["inputs/separation_rank.json"])
        return ranks.present(ranks.analyse(path))


def of_cells(runs: pd.DataFrame, *axes: str) -> Results:
    """A grid's table by its axes."""
    return grid(analyse_grid(runs, "x", Options(draws=200), axes))


def without_bits(*heads: int) -> Results:
    """Cells of two vocabularies whose losses have no common unit."""
    return of_cells(grid_runs(heads=heads, ranks=(None,)).drop(columns="bits_per_byte"), *AXES)


def moving() -> pd.DataFrame:
    """Two cells whose transitions lie at widths of 100 and 150."""
    grids = {2: 100.0, 4: 150.0}
    widths = grid_of((4, 8), 2e5, 8e6, 9)
    runs = [simulate(widths, {4: at}, noise=0.0005).assign(heads=heads) for heads, at in grids.items()]
    return pd.concat(runs)


NOISY = {"seeds": 2, "noise": 0.01}
ONE_CELL = {"heads": (1,), "ranks": (8,), "vocab_sizes": (257,)}
LEVEL = {(257, None): 257.0, (500, None): 500.0, (2000, None): 700.0, (50257, None): 700.0}
# shares that two seeds memorized, by H and T: the largest T of any and of all, no larger one, and none
PERFECT = {
    (4, 450): (1.0, 1.0),
    (4, 500): (1.0, 0.99),
    (4, 550): (1.0, 1.0),
    (4, 600): (0.98, 0.9),
    (8, 1200): (1.0, 1.0),
    (8, 1300): (1.0, 1.0),
    (2, 200): (0.5, 0.4),
}

CASES: dict[str, Callable[[], Results]] = {
    "transitions": lambda: transitions(of_depths()),
    "transitions_published": lambda: transitions(refitted()),
    "transitions_two": lambda: of_given(published_transitions().head(2)),
    "transitions_flat": lambda: of_given(
        pd.DataFrame({"depth": [6, 12, 18, 24], "width": [300, 301, 299, 300], "width_err": 10})
    ),
    "transitions_one_depth": lambda: transitions(of_pairs(grid_of((6,), 3e6, 5e7, 5), {}, draws=100)),
    "transitions_one_seed": lambda: transitions(of_depths(draws=100, seeds=1)),
    "transitions_beyond": lambda: transitions(of_pairs(grid_of((4, 6), 6e4, 6e6, 12), {4: 1e4}, draws=300)),
    "transitions_apart": lambda: transitions(
        of_pairs({4: [64, 80, 96, 112], 6: [512, 640, 768, 896]}, {4: 100.0}, draws=100)
    ),
    "transitions_total": partial(by_size, SizeAxis.TOTAL),
    "grid": lambda: grid(of_grid(heads=(1, 2))),
    "grid_noisy": lambda: grid(of_grid(heads=(1, 2), **NOISY)),
    "grid_of_heads": lambda: grid(of_grid(heads=(1, 2), vocab_sizes=(257,), **NOISY)),
    "grid_one_setting": lambda: grid(of_grid(heads=(1,), ranks=(None,), **NOISY)),
    "grid_one_depth": lambda: grid(of_grid(depths=(2,), ranks=(None,))),
    "grid_one_shape": lambda: grid(of_grid(depths=(1,), widths=(16,), **ONE_CELL)),
    "grid_one_cell": lambda: grid(of_grid(**ONE_CELL)),
    "grid_without_bits": lambda: without_bits(1, 2),
    "grid_without_pairs": lambda: without_bits(1),
    "grid_moving": lambda: of_cells(moving(), "heads"),
    "undertraining": lambda: of_rates(undertraining_runs()),
    "todays_decoder": lambda: of_rates(todays_runs()),
    "todays_decoder_once": lambda: of_rates(once(todays_runs())),
    "todays_decoder_in_turn": in_turn,
    "vocabulary": lambda: vocabulary.present(of_series()),
    "vocabulary_level": lambda: vocabulary.present(of_vocabularies(vocabulary_runs(LEVEL), 300)),
    "embedding_rank": lambda: _of(embedding_rank, "rank", rank_runs()),
    "embedding_rank_one_seed": lambda: _of(embedding_rank, "rank", rank_runs(seeds=1)),
    "positional_rank": lambda: _of(positional_rank, "positional", positional_runs()),
    "positional_rank_one_seed": lambda: _of(positional_rank, "positional", positional_runs(seeds=1)),
    "attention_ratio": lambda: attention_ratio.present(of_ratios(variant=True)),
    "attention_ratio_of_one_depth": lambda: attention_ratio.present(of_ratios(depths=False)),
    "attention_ratio_one_seed": lambda: attention_ratio.present(of_ratios(seeds=1)),
    "block_degree": lambda: of_degrees(at_half_way()),
    "block_degree_mixtures": lambda: of_degrees(with_mixtures()),
    "block_degree_lost": lambda: of_degrees(with_lost_runs()),
    "heads": lambda: memorized(memorize(HEAD_COUNTS, examples=(10000, 20000, 30000)), ALONG_HEADS),
    "heads_few": lambda: memorized(memorize(HEAD_COUNTS, examples=(2000,)), ALONG_HEADS),
    "heads_regression": lambda: memorized(memorize(HEAD_COUNTS, task="regression"), ALONG_HEADS),
    "heads_ours": lambda: memorized(our_runs(), ALONG_HEADS),
    "head_dims": lambda: memorized(
        memorize((30,), head_dim=HEAD_DIMS, examples=(10000, 15000, 20000)), ALONG_HEAD_DIM
    ),
    "contexts": lambda: memorized(memorize(context=CONTEXTS), ALONG_CONTEXT),
    "contexts_fallen": lambda: memorized(fallen(), ALONG_CONTEXT),
    "contexts_one_seed": lambda: memorized(memorize(context=CONTEXTS, seeds=1), ALONG_CONTEXT),
    "contexts_beyond": lambda: memorized(
        memorize((20,), context=(16, 32, 64, 96), examples=(20000,)), ALONG_CONTEXT
    ),
    "saturation": lambda: saturated(("4-550", 40, 8), ("of_another_grid", 40, 8), runs=of_sizes()),
    "saturation_alone": lambda: saturated(("s0", 40, 4), ("s1", 40, 4), ("small", 30, 4), ("big", 50, 8)),
    "separation_rank": of_ranks,
    "assumptions": lambda: of_layers(made_rows()),
    "surface": partial(of_surface, 24),
    "surface_of_few_shapes": partial(of_surface, 5),
}


def _of(room: Any, kind: str, runs: pd.DataFrame) -> Results:
    checked = getattr(room, f"check_{kind}_runs")(runs, "runs.csv")
    return room.present(room.analyse_runs(checked))


def shown(results: Results) -> Tables:
    """All that results would write, as tables."""
    found: dict[str, str] = {}
    for name, table in results.tables.items():
        found[name] = table.frame.to_csv(index=False, lineterminator="\n")
        texts = table.reading.texts.to_dict("list")
        found[f"{name}, read"] = as_table({"note": table.reading.note, "texts": texts})
    for name, figure in results.figures.items():
        found[f"figure {name}"] = as_table(figure if isinstance(figure, str) else of_figure(figure.figure()))
    found["fit.json"] = as_table({**results.fit_file, "left out": results.left_out})
    return found


def of_figure(figure: Figure) -> dict[str, Any]:
    """The words of a figure and of its panels, and what stands in these."""
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    panels = [of_panel(axes) if axes.axison else _words(axes.texts) for axes in figure.axes]
    return {"title": figure.get_suptitle(), "legend": names, "panels": panels}


def of_panel(axes: Axes) -> dict[str, Any]:
    """The title, the axes and the legend of a panel, and its lines, areas, bars and words."""
    legend = axes.get_legend()
    axes.minorticks_off()  # they have no words, and take most of the time of those that do
    return {
        "title": axes.get_title(loc="left"),
        "axes": {
            which: {
                "label": axis.get_label_text(),
                "scale": axis.get_scale(),
                "limits": [float(end) for end in axis.get_view_interval()],
                "ticks": _words(axis.get_ticklabels()),
            }
            for which, axis in (("x", axes.xaxis), ("y", axes.yaxis))
        },
        "legend": _words(legend.get_texts()) if legend else [],
        "words": [
            (text.get_text(), text.get_ha(), *_points(getattr(text, "xy", text.get_position())))
            for text in axes.texts
        ],
        "lines": [
            {
                "look": f"{line.get_label()} {line.get_color()} {line.get_marker()} {line.get_linestyle()}",
                "x": _points(line.get_xdata()),
                "y": _points(line.get_ydata()),
            }
            for line in axes.lines
        ],
        "areas": [
            {
                "name": area.get_label(),
                "values": _points(area.get_array()),
                "ends": _points(*(path.vertices for path in area.get_paths())),
            }
            for area in axes.collections
        ],
        "bars": [_points(bar.get_extents().bounds) for bar in axes.patches],
    }


def _words(texts: Iterable[Any]) -> list[str]:
    return [text.get_text() for text in texts]


def _points(*parts: Any) -> list[float]:
    """Numbers of one or several arrays; of many some, their count and the sum of their sizes."""
    flat = [np.ravel(np.ma.filled(np.ma.asarray(part, float), np.nan)) for part in parts if part is not None]
    some = np.concatenate(flat) if flat else np.zeros(0)
    if len(some) <= KEPT_POINTS:
        return some.tolist()
    return [len(some), float(np.nansum(np.abs(some))), *some[:: -(-len(some) // KEPT_POINTS)].tolist()]


@cache
def golden() -> dict[str, dict[str, str]]:
    """What was kept of each case."""
    found: dict[str, dict[str, str]] = {}
    for name, content in (read_archive(ARCHIVE) if ARCHIVE.exists() else {}).items():
        case, table = name.removesuffix(".csv").split("/")
        found.setdefault(case, {})[table] = content.decode()
    return found


def main() -> None:
    """Make all cases, say what changed, and write the archive."""
    made = {name: shown(make()) for name, make in CASES.items()}
    lines = [f"{name} went" for name in golden().keys() - CASES.keys()]
    for name, tables in made.items():
        lines += differences(name, golden().get(name, {}), tables)
    if lines:
        files = (
            (f"{name}/{table}.csv", text) for name, tables in made.items() for table, text in tables.items()
        )
        write_archive(ARCHIVE, ((name, text.encode()) for name, text in files))
    print(f"{len(made)} cases", *(lines or ["nothing changed"]), sep="\n  ")


if __name__ == "__main__":
    main()

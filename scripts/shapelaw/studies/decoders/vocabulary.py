"""The effect of the vocabulary on the best depth (Wies et al. 2021, section 5.2, figures 1, 3 and 5).

Input: rows of `vocab_size, embedding_rank, depth, width, seed, test_loss`; an empty rank is full. `block_params`,
`total_params`, `step_flops`, `bits_per_byte` and `tokens_trained` are used where the table has them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.errors import Parts
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import Side, TransitionStatus
from shapelaw.fits.equal_sizes import two_sided
from shapelaw.fits.inputs import RECIPE, numbers_of, refuse, refuse_mixed, require_columns, whole_or_empty
from shapelaw.fits.line import FitStatus, LevelFit, LineFit, chance_of_limits, fit_level, fit_line
from shapelaw.fits.noise import SIGNIFICANT, chance_words
from shapelaw.report.charts import Chart
from shapelaw.report.plots import PAGE, ordered_looks
from shapelaw.report.tables import NO, OPEN, YES, grouped, plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, assembled
from shapelaw.specs.shapes import NUMBERS
from shapelaw.specs.sizes import SIZE_LABELS
from shapelaw.studies.grid.analysis import BITS, CellAnalysis, analyse_cells, require_two_depths, unit_of_loss
from shapelaw.studies.grid.cells import Cell, Value
from shapelaw.studies.grid.results import cell_tables, results_of
from shapelaw.studies.grid.tables import least_dof, seed_noise_table, stack
from shapelaw.studies.study import published
from shapelaw.studies.transitions.analysis import Options, limits_of, points_of, usable
from shapelaw.studies.transitions.figures import MOST_PANELS, curves_panel
from shapelaw.studies.transitions.results import add_size_options as add_options
from shapelaw.studies.transitions.tables import mean_losses

__all__ = ["add_options", "results"]
CLEAR_GAIN = 6.6  # of chi2 over a model with as many parameters: a factor of 27 in likelihood
MIXED = "; embeddings of one matrix and of two factors, which train differently, are taken together"
NAME = "vocabulary"
KEYS = ("vocab_size", "embedding_rank", "patch_embedding")
NAT = math.log(2)  # a bit in nats
TRANSITION = "transition width"
PUBLISHED_BOTTLENECK = 500  # min(V, r) of both published ones: of one matrix, and of two factors
PUBLISHED_ONE, PUBLISHED_TWO = (f"{name}: depth 24 against 48" for name in ("V = 500", "V = 2,000, r = 500"))
OURS = {"ours": "width", "low": "width_low", "high": "width_high"}
POWER, LEVEL = "power", "level"
LEAST_CHANCE = 0.01  # of points as far from a model: below it the model is wrong


@dataclass(frozen=True)
class Series(CellAnalysis):
    """The cell of one vocabulary and one rank."""

    @property
    def vocab_size(self) -> int:
        """V."""
        return int(self.cell.number("vocab_size"))

    @property
    def rank(self) -> int | None:
        """r of the factored token embedding; None is full rank."""
        return None if self.values["embedding_rank"] is None else int(self.cell.number("embedding_rank"))

    @property
    def patches(self) -> bool:
        """The embedding maps the numbers of a patch of an image, not one-hot tokens."""
        return self.values["patch_embedding"] == "True"

    @property
    def name(self) -> str:
        """`V = 500`, `V = 2,000, r = 500`, `patches of 4 numbers, r = 2`."""
        return name_of(self.vocab_size, self.rank, self.patches)

    @property
    def bottleneck(self) -> int:
        """min(V, r), which bounds the rank of the embedding beside the width; a patch's numbers stand for V."""
        entries = NUMBERS if self.patches else self.vocab_size
        return entries if self.rank is None else min(self.rank, entries)


def name_of(vocab_size: int, rank: int | None, patches: bool = False) -> str:
    """`V = 2,000, r = 500`, or `patches of 4 numbers`."""
    what = f"patches of {NUMBERS} numbers" if patches else f"V = {vocab_size:,}"
    return what + ("" if rank is None else f", r = {rank:,}")


@dataclass(frozen=True)
class Relation:
    """How the transitions of some series follow m = min(V, r), by two models.

    Attributes:
        of: "all", "one matrix" or "factored": two factors train otherwise than one matrix, whatever their rank.
        power: log width = a + b log m; b = 1 is "in proportion", b = 0 "the vocabulary does not matter".
        level: in proportion to m for small m, the same width for large m.

    Their `p_value` is the chance of points, or of a limit, as far from the model as the worst of these.
    """

    of: str
    power: LineFit
    level: LevelFit


@dataclass(frozen=True)
class VocabularyAnalysis:
    """All series by min(V, r), the relations through their transitions, that of all of them first, and what failed."""

    series: tuple[Series, ...]
    relations: tuple[Relation, ...]
    parts: Parts = field(default_factory=Parts)


def split_series(table: pd.DataFrame, source: str) -> Iterator[Cell]:
    """The cell of each vocabulary, rank and embedding (patches or tokens).

    Raises:
        UserError: a column is missing, a value is wrong, or runs of a series differ in more than shape and seed.
    """
    require_columns(table, ["vocab_size", "embedding_rank"], source)
    sizes = numbers_of(table, ["vocab_size"], source)["vocab_size"]
    ranks = whole_or_empty(table, "embedding_rank", source)
    refuse(table, (sizes < 1) | (sizes % 1 != 0), source, "vocab_size must be a whole number of 1 or more")
    patches = table["patch_embedding"].astype(str) == "True" if "patch_embedding" in table else False
    keyed = table.assign(vocab_size=sizes, embedding_rank=ranks.fillna(0.0), patch_embedding=patches)
    for _, rows in keyed.groupby(list(KEYS), sort=True):
        size, rank, patched = rows[list(KEYS)].iloc[0]
        key = int(size), int(rank) or None, bool(patched)
        refuse_mixed(rows, RECIPE, source, of=name_of(*key))
        yield Cell(dict(zip(KEYS, (*key[:2], str(key[2])), strict=True)), (), rows)


def pool_of(cell: Cell) -> tuple[Value, ...]:
    """The pool of a series, whose noise its cells share: of all ranks of one vocabulary, whatever their text."""
    return unit_of_loss(cell)[1:]


def analyse_series(table: pd.DataFrame, source: str, options: Options) -> VocabularyAnalysis:
    """A transition for every vocabulary and rank, and the relations through them.

    The noise is pooled over the series that `pool_of` puts together: few shapes of each are repeated.

    Raises:
        UserError: the table can't be used.
    """
    cells = list(split_series(table, source))
    parts = Parts()
    analyses, _ = analyse_cells(cells, source, options, pool_of, parts=parts)
    require_two_depths((one.runs for one in analyses), source, "vocabulary")
    found = [Series(one.cell, one.runs, one.transitions, one.bits) for one in analyses]
    series = tuple(sorted(found, key=lambda one: (one.bottleneck, one.vocab_size)))
    return VocabularyAnalysis(series, tuple(fit_relations(series)), parts)


def fit_relations(series: Sequence[Series]) -> Iterator[Relation]:
    """The relation of all series, and where some are factored and some not, those of each kind."""
    kinds = {
        "all": series,
        "one matrix": [one for one in series if one.rank is None],
        "factored": [one for one in series if one.rank is not None],
    }
    for of, some in kinds.items():
        if of == "all" or 0 < len(some) < len(series):
            yield _fit_relation(of, some)


def _fit_relation(of: str, series: Sequence[Series]) -> Relation:
    """Through the bootstrap's transitions of the shallowest pair of depths, as `fit_transitions` takes them.

    Those estimated at the edge of the sizes are points too; a transition above or below a width is a limit.
    """
    tables = [
        one.transitions.transitions.query("method == @BOOTSTRAP")
        .head(1)
        .assign(bottleneck=math.log(one.bottleneck))
        for one in series
    ]
    rows = pd.concat(tables, ignore_index=True)
    x, width, err = points_of(usable(rows, BOOTSTRAP), "bottleneck")
    points, limits = (x, np.log(width), err / width), limits_of(rows, BOOTSTRAP, at="bottleneck")
    power, level = fit_line(*points, limits), fit_level(*points, limits)
    by_power = [power.a + power.b * limit.x for limit in limits]
    by_level = [min(level.k + limit.x, level.level) for limit in limits]
    if power.usable:
        power = replace(power, p_value=min(power.p_value, chance_of_limits(by_power, limits)))
    if level.usable:
        level = replace(level, p_value=min(level.p_value, chance_of_limits(by_level, limits)))
    return Relation(of, power, level)


def named(one: CellAnalysis) -> dict[str, Value]:
    """The columns that name a series in a table, with the corpus where it is known: series may differ in their text."""
    patches = one.values["patch_embedding"] == "True"
    corpus = one.cell.value("corpus")
    return {
        **{name: one.values[name] for name in ("vocab_size", "embedding_rank")},
        "embedding": "patches" if patches else "tokens",
        **({} if corpus is None else {"corpus": corpus}),
    }


def relation_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Two models of the transitions of all series, of one matrix and of two factors, with m = min(V, r).

    - `power`: width ~ m^b, with the chance of a b as far from 1 (`p_proportional`) and from 0 (`p_none`), by
      Student's t with the least degrees of freedom of the noises that the transitions' errors come from;
    - `level`: width = min(ratio m, flat_width).

    `p_fit` is the chance of points, or of a limit, as far from the model as the worst of these. Below 1% the model is
    wrong (`curved`), and so are its errors.
    """
    rows, dof = [], least_dof(*(one.compared.noise for one in analysis.series))
    for one in analysis.relations:
        power, level, nan = one.power, one.level, math.nan
        b, err = (power.b, power.b_err) if power.usable and power.b_err > 0 else (nan, nan)
        chances = {"p_proportional": two_sided(b - 1, err, dof), "p_none": two_sided(b, err, dof)}
        ratio, flat = math.exp(level.k), math.exp(level.level)
        levels = {"ratio": ratio, "ratio_err": ratio * level.k_err}
        levels |= {"flat_width": flat, "flat_width_err": flat * level.level_err}
        powers = {"b": b, "b_err": err, **chances}
        rows.append({"of": one.of, "model": POWER, **powers, **_goodness(power)})
        rows.append({"of": one.of, "model": LEVEL, **levels, **_goodness(level)})
    models = ("b", "b_err", "p_proportional", "p_none", "ratio", "ratio_err", "flat_width", "flat_width_err")
    quality = ("points", "chi2", "dof", "p_fit", "status", "message")
    return pd.DataFrame(rows, columns=["of", "model", *models, *quality])


def _goodness(fit: LineFit | LevelFit) -> dict[str, object]:
    """How well a model fits: the same columns for both."""
    curved = fit.p_value < LEAST_CHANCE
    return {
        "points": fit.n_points,
        "chi2": fit.chi2,
        "dof": fit.dof,
        "p_fit": fit.p_value,
        "status": (FitStatus.CURVED if curved else fit.status).value,
        "message": f"the transitions are not on it ({chance_words(fit.p_value)})" if curved else fit.message,
    }


def losses_of(one: CellAnalysis) -> pd.DataFrame:
    """One row for each network: mean test loss, bits per byte, and bytes of text seen, where these are known.

    A token's bytes are those of the test set: loss / (ln 2 bits per byte).
    """
    runs = one.runs
    if {BITS, "tokens_trained"} <= {*runs}:
        bytes_a_token = runs["loss"] / (NAT * runs[BITS])
        runs = runs.assign(text_bytes=runs["tokens_trained"] * bytes_a_token)
    known = [name for name in (BITS, "text_bytes") if name in runs]
    means = runs.groupby(["depth", "width"], as_index=False)[known].mean()
    return mean_losses(runs).merge(means, on=["depth", "width"])


def spread_of_seeds(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Loss mean and standard deviation of every repeated shape, and the pooled one of each `pool_of`.

    The pooled one's rank is empty where it can be of several.
    """

    def of_kind(kin: Sequence[CellAnalysis]) -> dict[str, Value]:
        return {**named(kin[0]), "embedding_rank": pool_of(kin[0].cell)[-1]}

    return seed_noise_table(analysis.series, pool_of, named, of_kind)


def comparison_table(analysis: VocabularyAnalysis) -> pd.DataFrame:
    """Each series' transition beside min(V, r), where the paper says that it is, and beside its figures.

    `agrees_with_bottleneck`: the 68% interval holds min(V, r), or a bound lies on its side by more than its error;
    open where neither is known. `over_bottleneck` is of the width, or else of the bound. The published widths are of
    depths 24 and 48, and have no errors: `published` is that of the same series and depths,
    `published_over_bottleneck` that of the same kind of embedding, one matrix or two factors, at the paper's V, r and
    depths (`published_setting`). The paper has none of patches.
    """
    rows = []
    for one in analysis.series:
        for row in one.transitions.bootstrap_rows:
            crossing = row["status"] == "crossing"
            setting = f"{one.name}: depth {row['depth']} against {row['deeper_depth']}"
            rows.append(
                {
                    "setting": setting,
                    "bottleneck": one.bottleneck,
                    **{name: row[of] if crossing else math.nan for name, of in OURS.items()},
                    **{name: row[name] for name in ("bound", "bound_err", "side")},
                    "status": row["status"],
                    "at_equal": SIZE_LABELS[one.compared.size],
                    "over_bottleneck": (row["width"] if crossing else row["bound"]) / one.bottleneck,
                    "agrees_with_bottleneck": _agrees(row, one.bottleneck),
                    **_published_beside(one, setting),
                }
            )
    return pd.DataFrame(rows)


def _agrees(row: Mapping[Hashable, Any], bottleneck: int) -> str:
    """Whether a transition can lie at min(V, r): its interval holds it, or its bound does not exclude it."""
    if row["status"] == TransitionStatus.CROSSING:
        return YES if row["width_low"] <= bottleneck <= row["width_high"] else NO
    low, high = row["bound"] - row["bound_err"], row["bound"] + row["bound_err"]
    side, below, above = row["side"], bottleneck < low, bottleneck > high
    if (below and side in (Side.AT, Side.ABOVE)) or (above and side in (Side.AT, Side.BELOW)):
        return NO
    return YES if side == Side.AT else OPEN


def _published_beside(one: Series, setting: str) -> dict[str, object]:
    """The paper's width for a series, and over its bottleneck that for the same kind of embedding."""
    kind = "" if one.patches else PUBLISHED_ONE if one.rank is None else PUBLISHED_TWO
    return {
        "published": published(NAME, TRANSITION, setting).number,
        "published_over_bottleneck": published(NAME, TRANSITION, kind).number / PUBLISHED_BOTTLENECK,
        "published_setting": kind,
    }


TABLES = {
    "relation": TableOf(relation_table, "The dependence of the transition on min(V, r)."),
    "losses": TableOf(
        lambda found: stack(found.series, losses_of, named, found.parts),
        "Test loss in nats per token, bits per byte, and text seen.",
        {"test_loss": ".4f", "text_bytes": ".3g"},
    ),
    "seed_noise": TableOf(spread_of_seeds, "Spread of the loss over seeds."),
    "comparison": TableOf(
        comparison_table,
        "Transitions beside min(V, r) and the published ones (Wies et al. 2021).",
        dict.fromkeys(("ours", "bound"), ".1f")
        | dict.fromkeys(("over_bottleneck", "published_over_bottleneck"), ".2f"),
    ),
}


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return results_of(arguments, analyse_series, present)


def present(analysis: VocabularyAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    own = {name: partial(one.of, analysis) for name, one in TABLES.items()}
    return assembled(
        analysis.parts,
        {**cell_tables(analysis.series, analysis.parts, named, "each vocabulary and rank"), **own},
        {"losses": lambda _: losses_figure(analysis)},
        {"the texts": lambda _: _corpus_sentences(analysis)},
        lambda _: _fit(analysis),
        answer,
    )


def _corpus_sentences(analysis: VocabularyAnalysis) -> Iterator[str]:
    """The series of each corpus, where there are several: they differ in their text too."""
    known = ((one.cell.value("corpus"), one.name) for one in analysis.series)
    corpora = grouped((corpus, name) for corpus, name in known if corpus is not None)
    if len(corpora) > 1:
        told = [f"{name} ({'; '.join(series)})" for name, series in corpora.items()]
        yield f"Series differ in their text too: {', '.join(told)}."


def _fit(analysis: VocabularyAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "models": {
            POWER: "log width = a + b log min(V, r)",
            LEVEL: "width = min(ratio min(V, r), flat_width)",
        },
        "relations": plain_rows(relation_table(analysis)),
        "transitions": plain_rows(comparison_table(analysis)),
    }


def answer(tables: Mapping[str, Table]) -> Answer:
    """How the transition follows min(V, r), by the model that fits; else why nothing can be said.

    It is that of embeddings of one matrix where those have enough transitions, else that of all series.

    Args:
        tables: `relation` and `transitions` of the study.
    """
    rows = {(row["of"], row["model"]): row for row in tables["relation"].frame.to_dict("records")}
    alone = rows.get(("one matrix", "power"))
    of = "all" if alone is None or pd.isna(alone["b"]) else "one matrix"
    power, level = rows[of, "power"], rows[of, "level"]
    note = MIXED if of == "all" and alone is not None else ""
    if pd.isna(power["b"]):
        return Answer(f"How the transition follows min(V, r) can't be fitted: {power['message']}.", False)
    if power["status"] == FitStatus.CURVED:
        return _without_a_power(power, level, note)
    decided = power["p_none"] < SIGNIFICANT or power["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    value = f"{power['b']:.2f} \u00b1 {power['b_err']:.2f}"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {value}{said}{note}.",
        bool(decided),
    )


def _without_a_power(power: Mapping[Any, Any], level: Mapping[Any, Any], note: str) -> Answer:
    """The answer where the transitions lie on no power of min(V, r)."""
    wrong = f"The width where depth pays follows no power of min(V, r) ({chance_words(power['p_fit'])})"
    better = level["status"] == FitStatus.CONVERGED and power["chi2"] - level["chi2"] >= CLEAR_GAIN
    if not better:
        return Answer(f"{wrong}; a level beyond some width does not explain it either{note}.", False)
    return Answer(
        f"The width where depth pays is {level['ratio']:.2f} \u00b1 {level['ratio_err']:.2f} of min(V, r) up to width "
        f"{level['flat_width']:.0f} \u00b1 {level['flat_width_err']:.0f}, and the same beyond; no power of min(V, r) "
        f"fits ({chance_words(power['p_fit'])}){note}.",
        True,
    )


def losses_figure(analysis: VocabularyAnalysis) -> Chart:
    """Test loss of the depths of each vocabulary against size, with the transition (figures 1, 3 and 5).

    The ranks of a vocabulary stand side by side, on one size axis.
    """
    series = sorted(analysis.series, key=lambda one: (one.patches, one.vocab_size))
    looks = ordered_looks(sorted({int(d) for one in series for d in one.runs["depth"].unique()}))
    panels = [curves_panel(one.transitions, looks, one.name) for one in series]
    columns = min(MOST_PANELS, len(series))
    rows = -(-len(series) // columns)
    return Chart(panels, columns, PAGE, 2.3 * rows + 0.4, share_x=True, legend=6)

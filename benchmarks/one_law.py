"""Do small networks tell the best depth of large ones? One surface of the loss over size, depth, tokens and vocabulary.

    PYTHONPATH=scripts python benchmarks/one_law.py GEMSTONES.csv [--out DIR] [--figure FILE.svg]

Within a group of runs of one text, vocabulary and number of tokens (in all or per parameter) the log loss is a
parabola in the log size, of the group's own, and exp(k0 + k1 x) (z - z*)² more; z is the log depth, x the log of the
blocks' parameters, and

    z* = c0 + c1 x + c2 log(tokens per parameter) + c3 v,   v = log V, or log(V / width), or absent.

The six parameters are fitted to our runs, which have less than 4 million parameters in their blocks, and then held
against the losses of two public labs, for which the groups' parabolas alone are fitted: Gemstones (the table that
`shapelaw evidence` reads) and Bian et al. 2025; and against the law of Levine et al. 2020 (GPT-2's block). At last one
surface is fitted to ours and both labs'.

Expected, written before any public loss was read by this: with a term of the vocabulary the best depth of 440 million
parameters comes within a factor of 1.5 of Gemstones' own (24), since the lower level of large vocabularies offsets a
power of the size of 0.6 to 0.7; that power stays above the labs' own 0.3 to 0.5, so at 1.3 billion ours is too deep;
without the vocabulary it is off by more than a factor of 5. Of what depth does to the labs' losses less than half is
left over. The priors came after a first look: with wider ones the labs' own fits, not ours, end with a ridge far from
every shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize

from shapelaw.advice.answer.laws import PUBLISHED, Law, best_depth_at, read_law
from shapelaw.errors import command_line
from shapelaw.report.charts import Band, Chart, Panel, Points, Span
from shapelaw.report.plots import ACCENT, FOURTH, INK, MUTED, SECOND, THIRD, save_figure
from shapelaw.studies.transitions.analysis import analyse_runs, published_transitions

Floats = npt.NDArray[np.float64]
Fit = tuple[Floats, Floats]  # six parameters, and their covariance
RESULTS = Path(__file__).parents[1] / "docs/results"
BIAN = Path(__file__).parents[1] / "workflow/reference/bian_morph.csv"
VOCABULARIES = ("V", "V / width", "absent")
MISFIT = 0.002  # of log loss, by which a shape is off any smooth surface: the least error of a shape
# normal priors of k0, k1, c0, c1, c2, c3
PRIOR, SPREAD = np.array([-4.0, 0.0, 1.5, 0.5, 0.0, 0.0]), np.array([2.0, 0.3, 2.0, 0.4, 0.4, 1.5])
FLAT = np.array([-50.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # no penalty of any depth
DEPTHS = np.geomspace(1, 1000, 600)
EQUAL_TOKENS, EQUAL_RATIO = "bytes, 49 million", "bytes, 100 per parameter"  # groups of our runs
WORDS_EQUAL_TOKENS, WORDS_EQUAL_RATIO = "2,000, 49 million", "2000, 30 per parameter"
SERIES, BUDGETS = "hot_100b+", (10, 30, 100, 350)  # of Gemstones, in billions of tokens
OURS, ALL, LEVINE = "our runs", "ours and both labs", "Levine et al. 2020"
NAMES = ("k0", "k1", "c0", "c1", "c2", "c3")
DRAWS = 200


class Source(NamedTuple):
    """Where best depths are told: parameters of the blocks, and the tokens and the vocabulary of the source."""

    sizes: tuple[float, ...]
    tokens: float
    words: int
    span: tuple[float, float] = (0.0, 0.0)  # of the parameters of its blocks, in the figure

    def at(self, size: float) -> dict[str, float]:
        """What a best depth depends on."""
        return {"size": size, "per_param": self.tokens / size, "words": self.words}


SOURCES = {
    "Gemstones": Source((1.5e8, 4.4e8, 1.3e9), 1e11, 50304, (2.3e7, 1.8e9)),
    "Bian et al. 2025": Source((5e7, 1.5e8, 4.4e8), 1e10, 50432, (4e7, 1.6e9)),
    LEVINE: Source((6e6, 6e7, 2.4e8), 6.55e10, 2000),
}


def small_runs() -> pd.DataFrame:
    """Our runs of Llama's block, with the group that each is compared in."""
    axes = pd.read_csv(RESULTS / "h200_axes.csv")
    axes = axes[(axes["vocab_size"] == 2000) & (axes["heads"] == 2) & axes["embedding_rank"].isna()]
    more = pd.read_csv(RESULTS / "laptop_more_tokens.csv")
    found = [
        pd.read_csv(RESULTS / "h200_llama.csv").assign(group=EQUAL_TOKENS),
        axes.assign(group=WORDS_EQUAL_TOKENS),
        pd.read_csv(RESULTS / "laptop_equal_tokens.csv").assign(group=EQUAL_RATIO),
        more.assign(group=more["vocab_size"].astype(str) + ", 30 per parameter"),
    ]
    return pd.concat(found).rename(columns={"test_loss": "loss", "tokens_trained": "tokens"})


def public_runs(gemstones: Path) -> dict[str, pd.DataFrame]:
    """The losses of each lab: Gemstones has a group for each number of tokens, Bian one with a level for each."""
    first = pd.read_csv(gemstones, comment="#")
    first = first[first["series"] == SERIES]
    budget = (first["tokens"] / 1e9).round().astype(int)
    first = first.assign(group="Gemstones, " + budget.astype(str) + " billion")[budget.isin(BUDGETS)]
    second = pd.read_csv(BIAN, comment="#")
    tables = 2 * second["vocab_size"] * second["width"]
    level = "Bian, " + second["tokens"].astype(str)  # a number of tokens for each nominal size
    second = second.assign(group="Bian", level=level, block_params=second["total_params"] - tables)
    return {"Gemstones": first, "Bian et al. 2025": second}


def shapes_of(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each shape of a group: its mean log loss, and the error of that by the noise of its group's seeds."""
    runs = runs.assign(log_loss=np.log(runs["loss"]), level=runs.get("level", runs["group"]))
    same = runs.groupby(["group", "level", "vocab_size", "depth", "width", "block_params", "tokens"])[
        "log_loss"
    ]
    found = same.agg(["mean", "count", "var"]).reset_index()
    kind = [found["group"], found["depth"] == 1]  # one layer is the noisiest
    spare = found["count"] - 1
    noise = (found["var"].fillna(0.0) * spare).groupby(kind).transform("sum")
    noise /= spare.groupby(kind).transform("sum").clip(lower=1)
    return found.assign(error=np.sqrt(noise / found["count"] + MISFIT**2))


def ridge_terms(shapes: pd.DataFrame, vocabulary: str) -> Floats:
    """(4, n): what c0 to c3 are multiplied with. The middles are 100,000 parameters, 100 tokens each, bytes."""
    size, words = shapes["block_params"].to_numpy(float), shapes["vocab_size"].to_numpy(float)
    v = {"V": words / 257, "V / width": words / shapes["width"].to_numpy(float) / 6}
    tokens = shapes["tokens"].to_numpy(float) / size / 100
    return np.log([np.full_like(size, np.e), size / 1e5, tokens, v.get(vocabulary, np.ones_like(size))])


class Surface:
    """Log losses of some shapes, and what six parameters leave of them."""

    def __init__(self, shapes: pd.DataFrame, vocabulary: str) -> None:
        self.losses = shapes["mean"].to_numpy(float)
        self.weights = 1 / shapes["error"].to_numpy(float)
        self.terms = ridge_terms(shapes, vocabulary)
        self.z = np.log(shapes["depth"].to_numpy(float))
        levels = pd.get_dummies(shapes["level"]).to_numpy(float)
        groups = pd.get_dummies(shapes["group"]).to_numpy(float)
        sizes = self.terms[1, :, None] * groups
        sizes -= groups * (sizes.sum(0) / groups.sum(0))
        design = np.column_stack([levels, sizes, sizes**2]) * self.weights[:, None]
        vectors, lengths, _ = np.linalg.svd(design, full_matrices=False)
        self.levels = vectors[:, lengths > 1e-9 * lengths[0]]

    def left(self, values: Floats) -> Floats:
        """(n,) what penalties and the best parabolas leave of log losses, in errors."""
        left = self.losses - np.exp(values[:2] @ self.terms[:2]) * (self.z - values[2:] @ self.terms) ** 2
        left *= self.weights
        return np.asarray(left - self.levels @ (self.levels.T @ left))

    def nats(self, values: Floats) -> float:
        """Root mean square of what is left, in nats."""
        return float(np.sqrt(((self.left(values) / self.weights * np.exp(self.losses)) ** 2).mean()))

    def fitted(self) -> Fit:
        """The parameters that leave least, from several starts, and their covariance by what they leave."""

        def left(values: Floats) -> Floats:
            return np.append(self.left(values), (values - PRIOR) / SPREAD)

        starts = [[k0, 0, c0, c1, 0, 0] for k0 in (-5, -4) for c0 in (0.5, 1.5) for c1 in (0.3, 0.6)]
        best = min((optimize.least_squares(left, start) for start in starts), key=lambda found: found.cost)
        spare = len(self.losses) - self.levels.shape[1]
        return best.x, max(1.0, 2 * best.cost / spare) * np.linalg.inv(best.jac.T @ best.jac)


def best_depth(values: Floats, at: Mapping[str, float], vocabulary: str) -> float:
    """The depth at which z is z*, among `DEPTHS`; the width follows from 12 L d² parameters."""
    shapes = pd.DataFrame({"depth": DEPTHS, "width": (at["size"] / DEPTHS / 12) ** 0.5})
    shapes = shapes.assign(
        block_params=at["size"], tokens=at["per_param"] * at["size"], vocab_size=at["words"]
    )
    return float(DEPTHS[np.abs(np.log(DEPTHS) - values[2:] @ ridge_terms(shapes, vocabulary)).argmin()])


def drawn_depth(fit: Fit, at: Mapping[str, float], vocabulary: str) -> tuple[float, float, float]:
    """The best depth by a fit, and the bounds of 68% of its draws."""
    draws = np.random.default_rng(0).multivariate_normal(*fit, DRAWS)
    low, high = np.percentile([best_depth(one, at, vocabulary) for one in draws], [16, 84])
    return best_depth(fit[0], at, vocabulary), float(low), float(high)


def transitions_of(runs: pd.DataFrame) -> pd.DataFrame:
    """The transitions of one group's runs at equal blocks, with the width and the size at their mid-depths."""
    found = analyse_runs(runs.dropna(axis="columns", how="all")).transitions
    return at_mid_depth(found[(found["method"] == "bootstrap") & (found["status"] == "crossing")])


def at_mid_depth(found: pd.DataFrame) -> pd.DataFrame:
    """Transitions with the width, and the size, of the network of their mid-depth."""
    middle = (found["depth"] * found["deeper_depth"]) ** 0.5
    size = 12 * found["depth"] * found["width"] ** 2
    return found.assign(middle=middle, size=size, at_middle=(size / middle / 12) ** 0.5)


def lower_bounds(runs: pd.DataFrame) -> pd.DataFrame:
    """For each two depths the widest size at which the shallower one leads: their transition lies above."""
    shapes = runs.groupby(["depth", "width", "block_params"], as_index=False)["loss"].mean()
    by_depth = dict(tuple(shapes.sort_values("block_params").groupby("depth")))
    rows = []
    for depth, deeper_depth in pairwise(by_depth):
        one, other = by_depth[depth], by_depth[deeper_depth]
        one = one[
            one["block_params"].between(other["block_params"].min(), 1.05 * other["block_params"].max())
        ]
        level = np.interp(np.log(one["block_params"]), np.log(other["block_params"]), other["loss"])
        led = one.loc[one["loss"] < level, "width"]
        rows.append({"depth": depth, "deeper_depth": deeper_depth, "width": led.max()})
    return at_mid_depth(pd.DataFrame(rows))


def bounds_of(label: str, found: pd.DataFrame, color: str) -> Points:
    """Widths that transitions lie above, as arrows."""
    arrow = {"lolims": True, "markersize": 4}
    return Points(
        found["middle"], found["at_middle"], label, color, "_", err=0.3 * found["at_middle"], more=arrow
    )


def marks_of(label: str, found: pd.DataFrame, x: str, y: str, color: str, marker: str) -> Points:
    """Transitions in a panel, with the errors of their widths or sizes."""
    share = found["width_err"] / found["width"]
    bars = {"x_err": 2 * share * found["size"]} if x == "size" else {"err": share * found[y]}
    return Points(found[x], found[y], label, color, marker, **bars, more={"markersize": 4})


def ridges(fits: Mapping[str, Fit]) -> Iterator[Points | Band]:
    """What each lab's own losses and what our small runs say of the best depth over the lab's sizes."""
    for lab, color in zip(("Gemstones", "Bian et al. 2025"), (THIRD, FOURTH), strict=True):
        x = np.geomspace(*SOURCES[lab].span, 30)
        at = [SOURCES[lab].at(size) for size in x]
        own, ours = ([best_depth(fits[name][0], one, "V") for one in at] for name in (lab, OURS))
        drawn = np.array([drawn_depth(fits[OURS], one, "V")[1:] for one in at])
        yield Band(x, drawn[:, 0], drawn[:, 1], color=color, alpha=0.15)
        yield Points(x, ours, f"{lab}, told by our runs (68%)", color, line="--")
        yield Points(x, own, f"{lab}, by its own losses", color, line="-")


def figure(small: pd.DataFrame, fits: Mapping[str, Fit]) -> Chart:
    """Widths of transitions against depth, and best depth against size, of all sources."""
    groups = dict(tuple(small.groupby("group")))
    gpt2 = pd.read_parquet(RESULTS / "laptop_depth_width.parquet").rename(columns={"test_loss": "loss"})
    found = {
        "Llama's block, bytes, 49 million tokens": (transitions_of(groups[EQUAL_TOKENS]), ACCENT, "o"),
        "Llama's block, bytes, 100 tokens per parameter": (transitions_of(groups[EQUAL_RATIO]), SECOND, "s"),
        "GPT-2's block, bytes, 8 million tokens": (transitions_of(gpt2), INK, "D"),
        "Levine et al. 2020: GPT-2's block, V = 2,000": (at_mid_depth(published_transitions()), MUTED, "^"),
    }
    width, depth = Span("width at the transition", "log"), Span("depth (geometric mean of the two)", "log")
    size = Span("parameters of the blocks", "log")
    left, right = (
        [marks_of(label, rows, x, y, color, marker) for label, (rows, color, marker) in found.items()]
        for x, y in (("middle", "at_middle"), ("size", "middle"))
    )
    for group, label, color in (
        (WORDS_EQUAL_TOKENS, "Llama's block, V = 2,000, 49 million tokens: above", ACCENT),
        (WORDS_EQUAL_RATIO, "Llama's block, V = 2,000, 30 tokens per parameter: above", SECOND),
    ):
        left.append(bounds_of(label, lower_bounds(groups[group]), color))
    panels = [Panel(left, depth, width), Panel([*ridges(fits), *right], size, Span("best depth", "log"))]
    return Chart(panels, columns=2, height=3.6, legend=2)


def choices(small: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Our shapes by other choices: without a group, one layer or the narrowest, and with more error of each."""
    for group in small["group"].unique():
        yield f"ours without {group}", small[small["group"] != group]
    yield "ours without one layer", small[small["depth"] > 1]
    yield "ours from width 24 on", small[small["width"] >= 24]
    yield "ours with an error of 0.01", small.assign(error=np.hypot(small["error"], 0.01))


def fits_of(vocabulary: str, small: pd.DataFrame, labs: Mapping[str, pd.DataFrame]) -> dict[str, Fit]:
    """Fits of ours, of all, of each lab, and of ours by other choices."""
    shapes = {OURS: small, ALL: pd.concat([small, *labs.values()]), **labs, **dict(choices(small))}
    return {name: Surface(one, vocabulary).fitted() for name, one in shapes.items()}


def fit_row(vocabulary: str, name: str, fit: Fit, labs: Mapping[str, pd.DataFrame]) -> dict[str, object]:
    """A fit's parameters with their errors, and what it leaves of each lab's losses."""
    row = {"vocabulary": vocabulary, "fitted_to": name, **dict(zip(NAMES, fit[0], strict=True))}
    row |= dict(zip((f"{one}_err" for one in NAMES), np.sqrt(np.diag(fit[1])), strict=True))
    for lab, shapes in labs.items():
        row[f"nats_{lab.split()[0].lower()}"] = Surface(shapes, vocabulary).nats(fit[0])
    return row


def depth_rows(
    vocabulary: str, fits: Mapping[str, Fit], other: Sequence[str], law: Law
) -> Iterator[dict[str, object]]:
    """Best depths by ours, by all and by the source itself, at each source's sizes."""
    for lab, source in SOURCES.items():
        for size in source.sizes:
            at = source.at(size)
            row: dict[str, object] = {"lab": lab, "vocabulary": vocabulary, "millions": size / 1e6, **at}
            for name, fit in {"ours": fits[OURS], "all": fits[ALL], "own": fits.get(lab)}.items():
                if fit is not None:
                    row[name], row[f"{name}_low"], row[f"{name}_high"] = drawn_depth(fit, at, vocabulary)
                else:
                    row[name] = best_depth_at(law, size)
            moved = [best_depth(fits[name][0], at, vocabulary) for name in other]
            yield {**row, "ours_least": min(moved), "ours_most": max(moved)}


def main() -> None:
    """Fit, predict, compare and print; write the tables and the figure if asked."""
    parser = command_line(__doc__)
    parser.add_argument("gemstones", type=Path)
    parser.add_argument("--out", type=Path, help="folder of one_law.csv and one_law_fits.csv")
    parser.add_argument("--figure", type=Path, help="SVG file")
    arguments = parser.parse_args()
    runs = small_runs()
    small = shapes_of(runs)
    labs = {name: shapes_of(one) for name, one in public_runs(arguments.gemstones).items()}
    found = {vocabulary: fits_of(vocabulary, small, labs) for vocabulary in VOCABULARIES}
    other, law = [name for name, _ in choices(small)], read_law(PUBLISHED)
    fits, depths = [], []
    for vocabulary, of_form in found.items():
        named = {"nothing of depth": (FLAT, np.zeros((6, 6))), **of_form}
        fits += [fit_row(vocabulary, name, fit, labs) for name, fit in named.items()]
        depths += depth_rows(vocabulary, of_form, other, law)
    tables = {"one_law": pd.DataFrame(depths), "one_law_fits": pd.DataFrame(fits)}
    for name, table in tables.items():
        print(table.to_markdown(index=False, floatfmt=".4g"), end="\n\n")
        if arguments.out is not None:
            table.to_csv(arguments.out / f"{name}.csv", index=False, float_format="%.5g")
    if arguments.figure is not None:
        _, png = save_figure(figure(runs, found["V"]).figure(), arguments.figure.with_suffix(""))
        png.unlink()


if __name__ == "__main__":
    main()

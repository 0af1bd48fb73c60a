"""The degree of the building block: which polynomial degree of a layer learns best at equal parameters?

Navon 2021, "Attention is optimal building block": `d^(1/d)` is largest at e, so 3 is the best integer (conclusion 1.1),
and a fractional degree near e would be better still (task 3). From runs of product networks on sums of R separable
products (section 3.4) and on digits (section 3.3):

    losses        the final held-out loss of every degree, each at its own learning rate
    differences   each degree against 3, over the same seeds
    speed         steps to given losses
    mixtures      where a learned mixture of two degrees settles, against e
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.errors import UserError
from shapelaw.fits.inputs import read_table
from shapelaw.fits.paired import Mean, mean_of
from shapelaw.plots import INK, PAGE, explain, new_figure, save_figure, style
from shapelaw.studies.block_degree_analysis import Difference, Tuned, check_runs, differences, tune
from shapelaw.tables import write_table

STUDY = "block_degree"
COLORS = {1.0: "#8a8f98", 2.0: "#2f6f9f", 3.0: "#c8442d", 4.0: "#e08a1e"}
MIXED = "#3c8d5a"


def analyse(runs: Path, out: Path) -> list[Difference]:
    """Read a table of runs (.csv or .parquet), and write all tables and figures into the folder `out`.

    Args:
        runs: one row a run; columns as in `block_degree_analysis.COLUMNS`.

    Written: losses, differences, speed and mixtures as .csv, .md and .tex; fit.json; the figures losses and speed as
    .svg and .png.

    Raises:
        UserError: the input can't be used, or the folder can't be written.
    """
    tuned = tune(check_runs(read_table(runs), str(runs)))
    found = differences(tuned)
    try:
        for name, (caption, table) in _tables(tuned, found).items():
            label = f"tab:{STUDY}-{name}".replace("_", "-")
            write_table(table, out / name, caption=caption, label=label)
        (out / "fit.json").write_text(json.dumps(_fit(tuned, found), indent=1, allow_nan=False) + "\n")
        save_figure(losses_figure(tuned), out / "losses")
        save_figure(speed_figure(tuned), out / "speed")
    except OSError as error:
        raise UserError(
            f"The results can't be written to {out} ({error.strerror}: {error.filename})."
        ) from error
    return found


def summary(found: list[Difference]) -> str:
    """What was found, a sentence a line."""
    if not found:
        return "No degree can be compared: the runs have no network of degree 3, or nothing beside it."
    return "\n".join(
        f"{one.tuned.task.name}: {one.tuned.name} against 3: loss times {math.exp(one.log_ratio.value):.3g}"
        f"{_interval(one.log_ratio)}, {one.verdict}."
        for one in found
    )


def _interval(mean: Mean) -> str:
    if math.isnan(mean.low):
        return ""
    return f" ({math.exp(mean.low):.3g} to {math.exp(mean.high):.3g}, {mean.seeds} seeds)"


def _tables(tuned: list[Tuned], found: list[Difference]) -> dict[str, tuple[str, pd.DataFrame]]:
    return {
        "losses": ("Final held-out loss, geometric mean over seeds.", losses_table(tuned)),
        "differences": ("Each network against degree 3, on the same seeds.", differences_table(found)),
        "speed": ("Training steps to a held-out loss, median over seeds.", speed_table(tuned)),
        "mixtures": ("Where learned mixtures of two degrees settle.", mixtures_table(tuned)),
    }


def _of_task(one: Tuned) -> dict[str, Any]:
    task = one.task
    return {
        "target": task.target,
        "target_rank": task.target_rank,
        "width": task.width,
        "matrices": task.matrices,
        "steps": task.steps,
        "network": one.name,
    }


def losses_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row a task and network: loss with its interval, and if the learning rate was inside of what was tried."""
    rows = []
    for one in tuned:
        diverged = len(one.losses) - len(one.log_losses)
        mean = one.log_loss if one.log_losses else Mean(math.nan, math.nan, math.nan, math.nan, 0)
        rows.append(
            _of_task(one)
            | {
                "loss": math.exp(mean.value),
                "low95": math.exp(mean.low),
                "high95": math.exp(mean.high),
                "seeds": len(one.losses),
                "diverged": diverged,
                "learning_rate": pd.Series(one.learning_rates.values()).median(),
                "rates_tried": one.tried,
                "rates_at_edge": one.at_edge,
            }
        )
    return pd.DataFrame(rows)


def differences_table(found: list[Difference]) -> pd.DataFrame:
    """One row a task and network: its loss over that of degree 3."""
    columns = [*_of_task_names(), "ratio", "low95", "high95", "p_value", "seeds", "verdict"]
    rows = [
        _of_task(one.tuned)
        | {
            "ratio": math.exp(one.log_ratio.value),
            "low95": math.exp(one.log_ratio.low),
            "high95": math.exp(one.log_ratio.high),
            "p_value": one.log_ratio.p_value,
            "seeds": one.log_ratio.seeds,
            "verdict": one.verdict,
        }
        for one in found
    ]
    return pd.DataFrame(rows, columns=columns)


def _of_task_names() -> list[str]:
    return ["target", "target_rank", "width", "matrices", "steps", "network"]


def speed_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row a task, network and threshold; no median where half of the seeds don't reach it."""
    rows = []
    for one in tuned:
        for threshold, steps in one.steps_to.items():
            reached = sum(math.isfinite(value) for value in steps.values())
            if reached:
                median = float(pd.Series(steps.values()).median())
                rows.append(
                    _of_task(one)
                    | {
                        "threshold": threshold,
                        "steps_to_it": median if math.isfinite(median) else math.nan,
                        "reached": reached,
                        "seeds": len(steps),
                    }
                )
    return pd.DataFrame(rows, columns=[*_of_task_names(), "threshold", "steps_to_it", "reached", "seeds"])


def mixtures_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row a task and mixture: the mean degree at the end with its interval, and how far from e it is."""
    rows = []
    for one in tuned:
        if not one.settled:
            continue
        mean, gap = mean_of(list(one.settled.values())), mean_of([v - math.e for v in one.settled.values()])
        rows.append(
            _of_task(one)
            | {
                "mean_degree": mean.value,
                "low95": mean.low,
                "high95": mean.high,
                "seeds": mean.seeds,
                "p_value_of_e": gap.p_value,
            }
        )
    return pd.DataFrame(
        rows, columns=[*_of_task_names(), "mean_degree", "low95", "high95", "seeds", "p_value_of_e"]
    )


def _fit(tuned: list[Tuned], found: list[Difference]) -> dict[str, Any]:
    """What fit.json holds."""
    compared = any(not math.isnan(one.log_ratio.p_value) for one in found)
    return {
        "study": STUDY,
        "model": "log loss of a network minus log loss of degree 3, mean over seeds, Student's 95% interval",
        "status": "converged" if compared else "too few points",
        "networks": len(tuned),
        "differences": [
            {name: _plain(value) for name, value in row.items()}
            for row in differences_table(found).to_dict("records")
        ],
        "mixtures": [
            {name: _plain(value) for name, value in row.items()}
            for row in mixtures_table(tuned).to_dict("records")
        ],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _color(one: Tuned) -> str:
    return MIXED if one.mixture else COLORS.get(one.mean_degree, INK)


def losses_figure(tuned: list[Tuned]) -> Figure:
    """Held-out loss against the target's separation rank R, a colour per degree; right, digits."""
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.0, width_ratios=[2, 1])
        _draw_separable(axes[0, 0], [one for one in tuned if one.task.target == "separable"])
        _draw_digits(axes[0, 1], [one for one in tuned if one.task.target == "digits"])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
        return figure


def _lines(tuned: list[Tuned]) -> dict[tuple[str, int, int], list[Tuned]]:
    """Networks of one name and budget, by R."""
    lines: dict[tuple[str, int, int], list[Tuned]] = {}
    for one in sorted(tuned, key=lambda one: (one.mixture, one.mean_degree, one.task.target_rank)):
        if one.log_losses:
            lines.setdefault((one.name, one.task.width, one.task.matrices), []).append(one)
    return lines


def _draw_separable(axis: Axes, tuned: list[Tuned]) -> None:
    if not tuned:
        explain(axis, "No runs on separable targets.")
        return
    budgets = sorted({one.task.matrices for one in tuned})
    for (name, _, budget), line in _lines(tuned).items():
        means = [one.log_loss for one in line]
        value = [math.exp(mean.value) for mean in means]
        low = [v - math.exp(m.low) if m.seeds > 1 else 0 for v, m in zip(value, means, strict=True)]
        high = [math.exp(m.high) - v if m.seeds > 1 else 0 for v, m in zip(value, means, strict=True)]
        label = name if len(budgets) == 1 else f"{name}, {budget} matrices"
        axis.errorbar(
            [one.task.target_rank for one in line], value, [low, high], marker="o", color=_color(line[0]),
            linestyle=("-", "--", ":", "-.")[budgets.index(budget) % 4], label=label,
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="separation rank R of the target")
    axis.set_ylabel("held-out loss (share of the variance)")


def _draw_digits(axis: Axes, tuned: list[Tuned]) -> None:
    if not tuned:
        axis.set_axis_off()
        return
    ordered = [line[0] for line in _lines(tuned).values()]
    for place, one in enumerate(ordered):
        mean = one.log_loss
        value = math.exp(mean.value)
        err = [[value - math.exp(mean.low)], [math.exp(mean.high) - value]] if mean.seeds > 1 else None
        axis.errorbar([place], [value], err, marker="o", color=_color(one))
    axis.set_xticks(range(len(ordered)), [one.name for one in ordered], rotation=40, ha="right")
    axis.set_ylabel("held-out loss (nats)")
    axis.set_title("digits")


def speed_figure(tuned: list[Tuned]) -> Figure:
    """Steps to a held-out loss against R, a panel per threshold of the separable targets."""
    chosen = [one for one in tuned if one.task.target == "separable"]
    table = speed_table(chosen).dropna(subset="steps_to_it")
    thresholds = sorted(table["threshold"].unique(), reverse=True) if len(table) else []
    with style():
        figure, axes = new_figure(1, max(len(thresholds), 1), width=PAGE, height=2.8, sharey=True)
        if not thresholds:
            explain(axes[0, 0], "No threshold is reached by half of the seeds.")
            return figure
        colors = {one.name: _color(one) for one in chosen}
        for place, threshold in enumerate(thresholds):
            axis = axes[0, place]
            here = table[table["threshold"] == threshold]
            for (name, _), line in here.groupby(["network", "matrices"], sort=True):
                axis.plot(line["target_rank"], line["steps_to_it"], "o-", color=colors[str(name)], label=name)
            axis.set(xscale="log", yscale="log", xlabel="separation rank R of the target")
            axis.set_title(f"to a loss of {threshold:g}")
        axes[0, 0].set_ylabel("training steps")
        by_label = {
            label: handle
            for axis in axes[0]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=6)
        return figure


__all__ = ["STUDY", "analyse", "losses_figure", "speed_figure", "summary"]

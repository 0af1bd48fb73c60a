"""The tables of the degree study: losses, differences from degree 3, speed, and where mixtures settle."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from shapelaw.fits.paired import Mean, mean_of, paired_mean
from shapelaw.studies.block_degree.analysis import Difference, Tuned, references

UNKNOWN = Mean(math.nan, math.nan, math.nan, math.nan, 0)
TASK_COLUMNS = ["target", "target_rank", "inputs", "width", "matrices", "steps", "network"]


def of_task(one: Tuned) -> dict[str, Any]:
    """The columns that name a network and its task."""
    task = one.task
    return {
        "target": task.target,
        "target_rank": task.target_rank,
        "inputs": task.inputs,
        "width": task.width,
        "matrices": task.matrices,
        "steps": task.steps,
        "network": one.name,
    }


def losses_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row per task and network: loss with its interval, and whether the learning rate is inside the range tried."""
    rows = []
    for one in tuned:
        diverged = len(one.losses) - len(one.log_losses)
        mean = one.log_loss if one.log_losses else UNKNOWN
        rows.append(
            of_task(one)
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
    """One row per task and network: its loss over that of degree 3."""
    columns = [*TASK_COLUMNS, "ratio", "low95", "high95", "p_value", "seeds", "verdict"]
    rows = [
        of_task(one.tuned)
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


def speed_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row per task, network and threshold that a seed reaches.

    The steps to the threshold and their interval are given if every seed reaches it, and none before its first
    evaluation (column `at_once`). Their ratio to those of degree 3 is given if these are known too.
    """
    of_degree_3, rows = references(tuned), []
    for one in tuned:
        reference = of_degree_3.get(one.task)
        for threshold, steps in one.steps_to.items():
            reached = sum(math.isfinite(value) for value in steps.values())
            at_once = sum(value <= one.first_evaluation for value in steps.values())
            if not reached:
                continue
            logs = one.log_steps_to(threshold)
            mean = mean_of(list(logs.values())) if logs else UNKNOWN
            ratio = None
            if reference is not None and reference is not one:
                ratio = paired_mean(logs, reference.log_steps_to(threshold))
            rows.append(
                of_task(one)
                | {"threshold": threshold, "reached": reached, "at_once": at_once, "seeds": len(steps)}
                | _interval("steps_to_it", mean)
                | _interval("ratio", ratio or UNKNOWN)
            )
    names = [
        name for value in ("steps_to_it", "ratio") for name in (value, f"{value}_low95", f"{value}_high95")
    ]
    return pd.DataFrame(rows, columns=[*TASK_COLUMNS, "threshold", "reached", "at_once", "seeds", *names])


def _interval(name: str, mean: Mean) -> dict[str, float]:
    """Three columns for a mean of logarithms."""
    return {
        name: math.exp(mean.value),
        f"{name}_low95": math.exp(mean.low),
        f"{name}_high95": math.exp(mean.high),
    }


def mixtures_table(tuned: list[Tuned]) -> pd.DataFrame:
    """One row per task and mixture: mean degrees before and after training, and whether the last one could be e."""
    rows = []
    for one in tuned:
        if not one.settled:
            continue
        mean, gap = mean_of(list(one.settled.values())), mean_of([v - math.e for v in one.settled.values()])
        rows.append(
            of_task(one)
            | {
                "begins_at": one.begins_at,
                "mean_degree": mean.value,
                "low95": mean.low,
                "high95": mean.high,
                "seeds": mean.seeds,
                "p_value_of_e": gap.p_value,
            }
        )
    return pd.DataFrame(
        rows, columns=[*TASK_COLUMNS, "begins_at", "mean_degree", "low95", "high95", "seeds", "p_value_of_e"]
    )

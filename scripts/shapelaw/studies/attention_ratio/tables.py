"""The tables of the study of the attention ratio."""

from __future__ import annotations

import math

import pandas as pd

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.fits.isotonic import Monotony
from shapelaw.report.plots import short_number
from shapelaw.report.tables import NO, OPEN, YES, yes_or_no
from shapelaw.studies.attention_ratio.analysis import ATTENTION, Found, RatioAnalysis
from shapelaw.studies.reference import published_json

PUBLISHED = {4: "ratio 4 needs baseline fraction", 16: "ratio 16 needs baseline fraction"}
ROUNDING = 0.025  # of the published shares, "about 75%" and "about 55%"
SIGNIFICANT = 0.025  # two-sided 95%
_LARGER, _SMALLER, NO_NOISE = "larger", "smaller", "no noise estimate"


def losses_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each network: its ratio, sizes, and mean test loss in nats per token."""
    names = ["ratio", "feed_forward", "depth", "width"]
    sizes = ["block_params", "total_params", "step_flops"]
    table = analysis.networks[[*names, *sizes, "loss", "loss_std", "seeds"]]
    return table.rename(columns={"loss": "test_loss"})


def best_depth_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The best depth of every ratio at equal size, and the depths that are not significantly worse.

    `certain`: two depths or more reach the size, and the others are significantly worse.
    """
    rows = []
    for one in analysis.on_axis:
        at, noise = one.at, analysis.noise
        also = () if noise is None else at.also_best(noise)
        err = (
            math.nan if noise is None else at.noise(noise).threshold() * noise.std / math.sqrt(at.runs(noise))
        )
        rows.append(
            {
                "feed_forward": one.feed_forward,
                "ratio": one.ratio,
                "size": at.size,
                "depths": ", ".join(map(str, at.depths)),
                "best_depth": at.best_depth,
                "also_best": ", ".join(map(str, also)),
                "certain": YES if noise is not None and len(at.depths) > 1 and not also else NO,
                "test_loss": at.loss,
                "loss_low": at.loss - err,
                "loss_high": at.loss + err,
                "over_depths": at.spread if len(at.depths) > 1 else math.nan,
            }
        )
    return pd.DataFrame(rows)


def redundancy_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each ratio, size and size axis: the redundancy of the best depth with its 68% interval.

    `depths` are those that reach the size. `compared`: yes at the size at which the ratios compare, the largest of
    those that most depths reach.
    """
    rows = []
    compared = {
        (one.feed_forward, one.axis, one.at.size)
        for feed_forward in {one.feed_forward for one in analysis.found}
        for axis in SizeAxis
        for one in analysis.compared(feed_forward, axis)
    }
    for one in analysis.found:
        if one.redundancy is not None:
            rows.append(
                {
                    "feed_forward": one.feed_forward,
                    "ratio": one.ratio,
                    "size_axis": one.axis.value,
                    "size": one.at.size,
                    "depths": ", ".join(map(str, one.at.depths)),
                    "best_depth": one.at.best_depth,
                    "redundancy": one.redundancy.value,
                    "low": one.redundancy.low,
                    "high": one.redundancy.high,
                    "p_value": one.redundancy.p_value,
                    "status": one.redundancy.status.value,
                    "significant": yes_or_no(one.redundancy.significant),
                    "compared": yes_or_no((one.feed_forward, one.axis, one.at.size) in compared),
                }
            )
    return pd.DataFrame(rows)


def monotony_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """One row for each size: the test that the loss does not fall where the ratio grows.

    `falls_p` is the chance of falls this large if none are real, `rises_p` the same for rises. `largest_fall` stands
    with its standard error and the ratios between which it is.
    """
    rows = []
    for (feed_forward, size), test in analysis.monotony.items():
        here = [one for one in analysis.on_axis if (one.feed_forward, one.at.size) == (feed_forward, size)]
        rows.append(
            {
                "feed_forward": feed_forward,
                "size": size,
                "ratios": ", ".join(f"{one.ratio:g}" for one in here),
                "falls_p": test.falls_p,
                "rises_p": test.rises_p,
                "largest_fall": test.largest_fall,
                "largest_fall_err": test.largest_fall_err,
                "fall_from": test.fall_from,
                "fall_to": test.fall_to,
                "verdict": test.verdict.value,
            }
        )
    return pd.DataFrame(rows)


def spread_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The range of the loss over ratios beside that over depths, with 68% intervals, at each size."""
    rows = []
    for one in analysis.spreads:
        named = {"over_ratios": one.ratios, "over_depths": one.depths, "difference": one.difference}
        numbers = {
            f"{name}{end}": value
            for name, values in named.items()
            for end, value in zip(("", "_low", "_high"), values, strict=True)
        }
        rows.append(
            {"feed_forward": one.feed_forward, "size": one.size, **numbers, "p_value": one.p_value}
            | {"verdict": _larger(one.p_value)}
        )
    columns = ["feed_forward", "size", "over_ratios", "over_depths", "difference", "p_value", "verdict"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def _larger(p_value: float) -> str:
    """The verdict on the spread over ratios, against that over depths."""
    if math.isnan(p_value):
        return NO_NOISE
    return _LARGER if p_value < SIGNIFICANT else _SMALLER if p_value > 1 - SIGNIFICANT else OPEN


def comparison_table(analysis: RatioAnalysis) -> pd.DataFrame:
    """The paper's statements beside ours, for d_ff = 4 H d_a, at the size at which the ratios compare.

    `agrees`: the 68% interval overlaps the published redundancy's rounding, or a bound lies on its side; the loss rises
    significantly with the ratio; its spread over ratios is significantly larger than over depths. Open where ours
    can't tell.
    """
    return pd.DataFrame([*_redundancies(analysis), *_monotony(analysis), *_spreads(analysis)])


def _row(quantity: str, setting: str, numbers: tuple[float, float, float], *said: str) -> dict[str, object]:
    ours, low, high = numbers
    status, published, agrees = said
    return {
        "quantity": quantity,
        "setting": setting,
        "ours": ours,
        "low": low,
        "high": high,
        "status": status,
        "published": published,
        "agrees": agrees,
    }


def _redundancies(analysis: RatioAnalysis) -> list[dict[str, object]]:
    theirs, rows = published_json("vocabulary_findings")["redundancy"], []
    for ratio, finding in PUBLISHED.items():
        for axis in SizeAxis:
            for one in analysis.compared(ATTENTION, axis):
                if one.ratio != ratio:
                    continue
                found, share = one.redundancy, 1 - float(theirs[finding])
                assert found is not None  # only ratio 1 has none
                rows.append(
                    _row(
                        f"redundancy of ratio {ratio} in {SIZE_LABELS[axis]}",
                        _setting(one),
                        (found.value, found.low, found.high),
                        found.status.value,
                        f"{share:.2f}",
                        yes_or_no(found.agrees_with(share, ROUNDING)),
                    )
                )
    return rows


def _setting(one: Found) -> str:
    return f"L = {one.at.best_depth}, size {short_number(one.at.size)}"


def _monotony(analysis: RatioAnalysis) -> list[dict[str, object]]:
    sizes = [size for feed_forward, size in analysis.monotony if feed_forward == ATTENTION]
    if not sizes:
        return []
    test = analysis.monotony[ATTENTION, max(sizes)]
    agrees = {Monotony.RISING: YES, Monotony.FALLING: NO}.get(test.verdict, OPEN)
    err = test.largest_fall_err
    numbers = (test.largest_fall, test.largest_fall - err, test.largest_fall + err)
    setting = f"size {short_number(max(sizes))}"
    return [
        _row(
            "largest fall of the loss from a ratio to a larger one",
            setting,
            numbers,
            test.verdict.value,
            "none",
            agrees,
        )
    ]


def _spreads(analysis: RatioAnalysis) -> list[dict[str, object]]:
    mine = [one for one in analysis.spreads if one.feed_forward == ATTENTION]
    if not mine:
        return []
    one = max(mine, key=lambda one: one.size)
    verdict = _larger(one.p_value)
    agrees = {_LARGER: YES, _SMALLER: NO}.get(verdict, OPEN)
    quantity = "spread of the loss over ratios, less that over depths"
    return [
        _row(quantity, f"size {short_number(one.size)}", one.difference, verdict, "larger by far", agrees)
    ]

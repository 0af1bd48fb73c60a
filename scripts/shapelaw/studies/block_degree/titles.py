"""The titles of the degree figures: what each panel found, from the numbers that it draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from shapelaw.fits.equal_sizes import holm
from shapelaw.fits.significance import Mean, RankCorrelation, mean_of
from shapelaw.studies.block_degree.analysis import Tuned

SIGNIFICANT = 0.05
Compared = Sequence[tuple[Tuned, Mean]]  # log ratios to degree 3


def difference_title(shown: Compared, compared: Compared) -> str:
    """The networks that differ from degree 3 after Holm's correction.

    Args:
        shown: those of a panel.
        compared: all that the correction is for.
    """
    known = [(one, mean) for one, mean in compared if not math.isnan(mean.p_value)]
    if not any(one is other for one, _ in shown for other, _ in known):
        return "can't tell: one seed"
    corrected = holm(np.array([mean.p_value for _, mean in known]))
    clear = {id(one): mean for (one, mean), p in zip(known, corrected, strict=True) if p < SIGNIFICANT}
    worse, better = (
        _named(one for one, _ in shown if id(one) in clear and (clear[id(one)].value > 0) is sign)
        for sign in (True, False)
    )
    words = [f"worse than degree 3: {worse}" if worse else "", f"better: {better}" if better else ""]
    return "; ".join(filter(None, words)) or "no significant difference from degree 3"


def _named(networks: Iterable[Tuned]) -> str:
    """`degree 1 (R = 16, 64)`: networks with the targets of each."""
    ranks: dict[str, list[int]] = {}
    for one in networks:
        ranks.setdefault(one.name, []).append(one.task.target_rank)
    return ", ".join(
        name + (f" (R\u00a0=\u00a0{', '.join(map(str, sorted(targets)))})" if any(targets) else "")
        for name, targets in ranks.items()
    )


def speed_title(threshold: float, ratios: Compared) -> str:
    """The networks that reach a loss in fewer steps than degree 3, after Holm's correction."""
    reached = f"To a loss of {threshold:g}: "
    known = [(one, mean) for one, mean in ratios if not math.isnan(mean.p_value)]
    if not known:
        return f"{reached}can't compare with degree 3"
    corrected = holm(np.array([mean.p_value for _, mean in known]))
    faster, slower = (
        _named(
            one
            for (one, mean), p in zip(known, corrected, strict=True)
            if p < SIGNIFICANT and (mean.value < 0) is sign
        )
        for sign in (True, False)
    )
    words = [
        f"{faster or 'no network'} significantly faster than degree 3",
        f"slower: {slower}" if slower else "",
    ]
    return reached + "; ".join(filter(None, words))


def mixture_title(shown: Sequence[tuple[Tuned, Mean]]) -> str:
    """How far mixtures end from where they begin, and how many could be at e."""
    farthest = max(abs(mean.value - one.begins_at) for one, mean in shown)
    chances = [mean_of([value - math.e for value in one.settled.values()]).p_value for one, _ in shown]
    at_e = sum(p >= SIGNIFICANT for p in chances)
    said = f"{at_e or 'none'} of {len(shown)} could be at e"
    if any(map(math.isnan, chances)):
        said = "one seed can't tell whether they are at e"
    return f"Mixtures end within {farthest:.2f} of where they begin;\n{said}"


def rank_title(found: RankCorrelation | None) -> str:
    """Whether the loss falls as the rank rises."""
    if found is None or math.isnan(found.value):
        return "Can't tell whether the loss follows the rank"
    numbers = f"correlation {found.value:.2f} (95%: {found.low:.2f} to {found.high:.2f})"
    if not found.p_value < SIGNIFICANT:
        return f"Can't tell whether the loss follows the rank: {numbers}"
    return f"The loss {'falls' if found.value < 0 else 'rises'} as the rank rises: {numbers}"

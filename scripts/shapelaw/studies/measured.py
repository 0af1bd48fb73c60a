"""The redundancies that are known: measured by the user's own studies, by ours, and published."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.known_redundancy import Series, fitted_series, published_series
from shapelaw.studies.reference import REFERENCE, published_json

MEASURED = REFERENCE / "measured"  # redundancy.csv and losses.csv of docs/results/laptop_STUDY.csv
_STUDIES = ("embedding_rank", "attention_ratio")


def known_redundancies(axis: SizeAxis = SizeAxis.TOTAL, fits: Iterable[Path] = ()) -> list[Series]:
    """All that are known, the preferred ones first.

    Args:
        axis: the size in which those of `fits` and ours are meant; the published ones are of all parameters.
        fits: folders of results of the user's own.

    Raises:
        UserError: a folder has no redundancies.
    """
    theirs = [one for folder in fits for one in fitted_series(folder, axis)]
    ours = [
        one
        for study in _STUDIES
        for one in fitted_series(MEASURED / study, axis, f"docs/results/laptop_{study}.csv")
    ]
    return [*theirs, *ours, *published_series(published_json("vocabulary_findings"))]

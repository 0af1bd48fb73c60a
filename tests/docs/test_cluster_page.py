"""What the page on clusters counts."""

from __future__ import annotations

from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.runs import Run

PAGE = " ".join((REPOSITORY / "docs" / "cluster.md").read_text(encoding="utf-8").split())


def test_the_papers_grid_is_counted() -> None:
    config = load_config(shipped(scale="paper", extras=[]), SCALES)
    runs = [run for study in config.studies for run in runs_of(config, study, REPOSITORY).values()]
    decoders = [run for run in runs if isinstance(run, Run)]
    largest = max(run.total_params for run in decoders)
    assert (
        f"`--config scale=paper` has {len(decoders)} decoders of up to {largest / 1e6:.0f} million parameters, and "
        f"{len(runs) - len(decoders):,} memorizers besides"
    ) in PAGE

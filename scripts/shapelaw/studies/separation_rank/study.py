"""Exact separation ranks beside the theorems. Nothing is trained, so there are no runs and no corpus."""

from __future__ import annotations

from pathlib import Path

from shapelaw.settings.sections import Settings
from shapelaw.specs.cost import duration
from shapelaw.studies.separation_rank.grids import RankGrids, asked_of, rank_grids, rank_problems
from shapelaw.studies.study import OURS, Key, Study

NAME = "separation_rank"


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: empty sections, impossible networks."""
    return rank_problems(rank_grids(config))


def measuring_seconds(config: Settings) -> float:
    """Seconds of one core where every network takes all of its time."""
    return sum(one.seconds for one in asked_of(rank_grids(config)))


def measuring_minutes(config: Settings, attempt: int) -> int:
    """Minutes of a job that measures all networks, with its start; ranks of an earlier attempt are kept."""
    return round((300 + measuring_seconds(config)) * attempt / 60)


def costs(config: Settings) -> list[str]:
    """A line with the number of ranks and the most time that they take."""
    asked = asked_of(rank_grids(config))
    return [
        f"{NAME}: {len(asked)} separation ranks, nothing trained, at most"
        f" {duration(measuring_seconds(config))} of one core"
    ]


STUDIES = (
    Study(
        NAME,
        "Separation rank",
        "tables and figures of the separation ranks",
        Path(__file__).parent / "captions",
        ("ranks", "bounds", "theorems", "residual", "degree_budget", "degree_ranking", "fractional_degree"),
        {
            "rank_depth": "theorems 1 and 2 of the depth-width paper",
            "rank_width": "theorem 1 of the depth-width paper",
            "rank_embedding": "theorems 1 and 2 of the vocabulary paper",
            "rank_heads": OURS,
            "rank_tokens": OURS,
            "rank_residual": "theorems 5 and 6 of the depth-width paper",
            "degree": "section 1.2 of the note on building blocks",
        },
        "shapelaw.studies.separation_rank.results",
        question="Do exact separation ranks keep the papers' bounds?",
        answering=("theorems",),
        verdict="results/theory.md",
        sections={
            name: Key(field.annotation, field.description or "")
            for name, field in RankGrids.model_fields.items()
        },
        problems=problems,
        input=f"results/{NAME}/measured.json",
        costs=costs,
    ),
)

"""The cost of a low rank of the embedding: factored embeddings against narrower networks (Wies et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from shapelaw.settings.fields import Count, Seeds
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape, make_shape, shape_problems
from shapelaw.studies.shape_grids import absent_problems, rank_warnings, repeated_seeds, runs_with_seeds
from shapelaw.studies.study import OURS, Key, Study

NAME = "embedding_rank"


class EmbeddingRank(Decoders):
    """The study of what a low rank of the embedding costs (Wies et al. 2021, section 5.1)."""

    depth: Count = Field(2, description="Depth of all networks.")
    width: Count = Field(64, description="Width of the networks whose embeddings are factored.")
    ranks: list[Count] = Field(
        [], description="Ranks of their token and positional embeddings; above the width they are redundant."
    )
    full_position_ranks: list[Count] = Field(
        [], description="Ranks of token embeddings that are trained with positions of full rank too."
    )
    baseline_widths: list[Count] = Field(
        [], description="Widths of the networks with embeddings of full rank."
    )
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_ranks: list[Count] = Field([], description="Ranks that run with `repeated_seeds` seeds.")
    repeated_widths: list[Count] = Field(
        [], description="Widths of the baseline that run with `repeated_seeds` seeds."
    )
    repeated_seeds: Seeds = Field(3, description="Runs of each network that is repeated, for the noise.")


def _section(config: Settings) -> EmbeddingRank:
    return config.section(NAME, EmbeddingRank)


def _shapes(study: EmbeddingRank) -> Iterator[tuple[Shape, int]]:
    """Every network of the grid and its number of seeds: the baseline by width, then factored ones by rank.

    Raises:
        ShapeError: one of them is not a shape.
    """

    def shape(width: int, rank: int | None, positional: int | None) -> Shape:
        return make_shape(
            study.depth, width, study.heads, study.vocab_size, study.context_length,
            gelu=study.gelu, embedding_rank=rank, positional_rank=positional, redundant_rank=True,
        )  # fmt: skip

    for width in dict.fromkeys(study.baseline_widths):
        yield shape(width, None, None), repeated_seeds(study, width in study.repeated_widths)
    for ranks, factored in ((study.ranks, True), (study.full_position_ranks, False)):
        for rank in dict.fromkeys(ranks):
            seeds = repeated_seeds(study, rank in study.repeated_ranks)
            yield shape(study.width, rank, rank if factored else None), seeds


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks, each with its seeds."""
    study = _section(config)
    return runs_with_seeds(config, study, _shapes(study))


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: nothing to compare, impossible widths, repetitions of what is not in the grid."""
    study = _section(config)
    found = recipe_problems(config, NAME, study.recipe)
    if len(set(study.baseline_widths)) < 2:
        found.append(f"{NAME}.baseline_widths needs two widths or more; redundancy is measured against them")
    if not study.ranks:
        found.append(f"{NAME}.ranks is empty; give it ranks, such as [4, 8, 16, 32]")
    for name, width in [("width", study.width), *(("baseline_widths", w) for w in study.baseline_widths)]:
        sizes = study.depth, width, study.heads, study.vocab_size, study.context_length
        found += [f"{NAME}.{name}: {problem}" for problem in shape_problems(*sizes)]
    ranks = [*study.ranks, *study.full_position_ranks]
    found += absent_problems(f"{NAME}.repeated_ranks", study.repeated_ranks, ranks)
    found += absent_problems(f"{NAME}.repeated_widths", study.repeated_widths, study.baseline_widths)
    return list(dict.fromkeys(found))


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence for each rank above V; one above the width is the paper's control of what factoring costs."""
    study = _section(config)
    lists = {"ranks": study.ranks, "full_position_ranks": study.full_position_ranks}
    return [
        told
        for name, ranks in lists.items()
        for told in rank_warnings(f"{NAME}.{name}", ranks, study.vocab_size)
    ]


STUDIES = (
    Study(
        NAME,
        "Rank of the embedding",
        "what a low rank of the embedding costs",
        Path(__file__).parent,
        ("losses", "redundancy", "needed", "comparison"),
        {"losses": "figure 2 of the vocabulary paper", "redundancy": OURS},
        "shapelaw.studies.embedding_rank.results",
        question="How much of a network is wasted where the embedding's rank is low?",
        verdict="results/ranks.md#the-embeddings-rank",
        kind=LANGUAGE,
        sections={NAME: Key(EmbeddingRank, "The study of the rank of the embedding.")},
        runs=runs,
        problems=problems,
        warnings=warnings,
    ),
)

"""The cost of a low rank of the positional embedding beside one of the token embedding (Wies et al. 2021, C.4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from shapelaw.settings.fields import Count, Seeds
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape, make_shape, shape_problems
from shapelaw.studies.shape_grids import absent_problems, repeated_seeds, runs_with_seeds
from shapelaw.studies.study import OURS, Key, Study

NAME = "positional_rank"


class PositionalRank(Decoders):
    """The study of what a low rank of the positional embedding costs (Wies et al. 2021, appendix C.4)."""

    depth: Count = Field(2, description="Depth of all networks.")
    width: Count = Field(64, description="Width of all networks.")
    positional_ranks: list[Count] = Field(
        [],
        description="Ranks of factored positional embeddings, beside plain token embeddings; at most `width` and "
        "`context_length`. That largest rank tells what factoring costs without a loss of rank.",
    )
    vocabulary_ranks: list[Count] = Field(
        [],
        description="Ranks of factored token embeddings, beside plain positional embeddings; at most `width` and "
        "`vocab_size`.",
    )
    seeds: Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated_positional_ranks: list[Count] = Field(
        [], description="Ranks of `positional_ranks` that run with `repeated_seeds` seeds."
    )
    repeated_vocabulary_ranks: list[Count] = Field(
        [], description="Ranks of `vocabulary_ranks` that run with `repeated_seeds` seeds."
    )
    repeated_seeds: Seeds = Field(
        3,
        description="Runs of each network that is repeated, for the noise, and of the one with plain embeddings.",
    )


def _section(config: Settings) -> PositionalRank:
    return config.section(NAME, PositionalRank)


def _series(study: PositionalRank) -> Iterator[tuple[str, str, list[int], list[int]]]:
    """Of each series the key of the section, the rank of a shape, the ranks, and those that are repeated."""
    for name, argument in (("positional_ranks", "positional_rank"), ("vocabulary_ranks", "embedding_rank")):
        yield name, argument, getattr(study, name), getattr(study, f"repeated_{name}")


def _shapes(study: PositionalRank) -> Iterator[tuple[Shape, int]]:
    """The network without factored embeddings, then those with one, each with its number of seeds.

    An embedding that is factored at full rank is another network than the plain one: it tells what factoring costs.

    Raises:
        ShapeError: one of them is not a shape.
    """

    def shape(**ranks: Any) -> Shape:
        return make_shape(
            study.depth, study.width, study.heads, study.vocab_size, study.context_length, gelu=study.gelu, **ranks
        )  # fmt: skip

    yield shape(), repeated_seeds(study, True)
    for _, argument, ranks, repeated in _series(study):
        for rank in dict.fromkeys(ranks):
            yield shape(**{argument: rank}), repeated_seeds(study, rank in repeated)


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks, each with its seeds.

    Raises:
        ShapeError: one of them is not a shape.
    """
    study = _section(config)
    return runs_with_seeds(config, study, _shapes(study))


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: nothing to compare, impossible ranks, repetitions of what is not in the grid."""
    study = _section(config)
    found = recipe_problems(config, NAME, study.recipe)
    sizes = study.depth, study.width, study.heads, study.vocab_size, study.context_length
    found += [f"{NAME}: {problem}" for problem in shape_problems(*sizes)]
    for name, argument, ranks, repeated in _series(study):
        if not ranks:
            found.append(f"{NAME}.{name} is empty; give it ranks, such as [1, 2, 4, 8]")
        for rank in ranks:
            wrong = shape_problems(*sizes, **{argument: rank})
            found += [f"{NAME}.{name}: {problem}" for problem in wrong if f"{NAME}: {problem}" not in found]
        found += absent_problems(f"{NAME}.repeated_{name}", repeated, ranks, name)
    return list(dict.fromkeys(found))


STUDIES = (
    Study(
        NAME,
        "Rank of the positional embedding",
        "what a low rank of the positional embedding costs",
        Path(__file__).parent,
        ("losses", "needed", "equivalents", "comparison"),
        {"losses": "figure 7 of the vocabulary paper", "equivalents": OURS},
        "shapelaw.studies.positional_rank.results",
        question="Which rank does the positional embedding need?",
        verdict="results/ranks.md#the-positions-rank",
        kind=LANGUAGE,
        sections={NAME: Key(PositionalRank, "The study of the rank of the positional embedding.")},
        runs=runs,
        problems=problems,
    ),
)

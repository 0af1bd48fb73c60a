"""The effect of the vocabulary on the best depth: where a deep network overtakes a shallow one, for each V and r."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shapelaw.settings.problems import recipe_place, recipe_problems, step_problems
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.expansion import Block, networks_of, runs_of_networks
from shapelaw.studies.grid.language import decoder_values, listed_problems, make_block
from shapelaw.studies.grid.study import defaults_of, place_warnings
from shapelaw.studies.shape_grids import rank_warnings
from shapelaw.studies.study import OURS, Key, Study
from shapelaw.studies.vocabulary.noise import NoiseKind, noise_kind
from shapelaw.studies.vocabulary.settings import VocabularyGrid, VocabularyStudy

NAME = "vocabulary"
IMAGES = "fashion"  # the source whose letters are patches


def _section(config: Settings) -> VocabularyStudy:
    return config.section(NAME, VocabularyStudy)


def _blocks(study: VocabularyStudy) -> list[Block]:
    """The grids in the grid language."""
    return [
        make_block(
            f"{NAME}.grids.{ordinal(place)}",
            {
                **decoder_values(study),
                "vocab_size": [grid.vocab_size],
                "embedding_rank": [grid.embedding_rank],
                "patch_embedding": [grid.patch_embedding],
                **({} if grid.steps is None else {"steps": [grid.steps]}),
            },
            grid.widths,
            seeds=study.seeds,
            repeated=grid.repeated,
            repeated_seeds=study.repeated_seeds,
            any_rank=True,
        )
        for place, grid in enumerate(study.grids)
    ]


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids; where a grid has a rank, each network's token embedding is factored to it."""
    study = _section(config)
    yield from runs_of_networks(networks_of(_blocks(study), defaults_of(config, study.recipe)))


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one vocabulary and rank, impossible or incomparable shapes."""
    study = _section(config)
    wrong = recipe_problems(config, NAME, study.recipe)
    found = [*wrong]
    if not study.grids:
        found.append(
            f"{NAME}.grids is empty; give it a list of grids, such as "
            "[{vocab_size: 257, widths: {1: [32, 64], 2: [24, 48]}}]"
        )
    series = [(grid.vocab_size, grid.embedding_rank, grid.patch_embedding) for grid in study.grids]
    for place, grid in enumerate(study.grids):
        where = f"{NAME}.grids.{ordinal(place)}"
        if series[place] in series[:place]:
            found.append(
                f"{where} has the vocabulary, rank and embedding of a grid before it; put their widths together"
            )
        if grid.patch_embedding and config.corpus.sources != [IMAGES]:
            found.append(
                f"{where}.patch_embedding is true, and the corpus is not images; set corpus.sources to [{IMAGES}], "
                f"and a name of its own (workflow/examples/images.yaml has both)"
            )
        if grid.steps is not None and not wrong:
            training = config.training.spec({**study.recipe, "steps": grid.steps})
            found += step_problems(recipe_place(NAME, study.recipe, f"{where}.steps"), training)
    return [*found, *listed_problems(_blocks(study), defaults_of(config))]


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence for each transition that a grid can't give, and for a rank that only adds parameters."""
    study = _section(config)
    repeated = {_noise_kind(grid) for grid in study.grids if any(grid.repeated.values())}

    def repeats(place: int) -> bool:
        of_kind = _noise_kind(study.grids[place]) in repeated
        return study.seeds > 1 or (study.repeated_seeds > 1 and of_kind)

    found = place_warnings(_blocks(study), defaults_of(config), study.size_axis, repeats)
    for place, grid in enumerate(study.grids):
        where, ranks = f"{NAME}.grids.{ordinal(place)}.embedding_rank", [grid.embedding_rank or 0]
        found += rank_warnings(where, ranks, grid.vocab_size, grid.patch_embedding)
    return found


def _noise_kind(grid: VocabularyGrid) -> NoiseKind:
    return noise_kind(grid.vocab_size, grid.embedding_rank, grid.patch_embedding)


def options(config: Settings) -> list[str]:
    """The option for the size at which networks are compared."""
    return ["--size", _section(config).size_axis]


STUDIES = (
    Study(
        NAME,
        "Vocabulary",
        "what the vocabulary does to the best depth",
        Path(__file__).parent,
        ("transitions", "size_axes", "gaps", "relation", "losses", "seed_noise", "comparison"),
        {
            "losses": "figures 1, 3 and 5 of the vocabulary paper",
            "relation": OURS,
            "bits_per_byte": OURS,
        },
        "shapelaw.studies.vocabulary.results",
        question="Does a small vocabulary, or a low rank, move the width at which depth pays?",
        verdict="results/depth_width.md#vocabulary-and-rank",
        kind=LANGUAGE,
        sections={NAME: Key(VocabularyStudy, "The study of what the vocabulary does to the best depth.")},
        runs=runs,
        problems=problems,
        warnings=warnings,
        options=options,
    ),
)

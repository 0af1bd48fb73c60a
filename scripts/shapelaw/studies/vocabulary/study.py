"""The effect of the vocabulary on the best depth: where a deep network overtakes a shallow one, for each V and r."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from shapelaw.settings.problems import recipe_place, recipe_problems, step_problems
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import ordinal
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape, make_shape
from shapelaw.studies.shape_grids import (
    depth_problems,
    grid_warnings,
    rank_warnings,
    repeated_problems,
    shapes_of,
    width_problems,
)
from shapelaw.studies.study import OURS, Key, Study
from shapelaw.studies.vocabulary.noise import NoiseKind, noise_kind
from shapelaw.studies.vocabulary.settings import VocabularyGrid, VocabularyStudy

NAME = "vocabulary"
IMAGES = "fashion"  # the source whose letters are patches


def _section(config: Settings) -> VocabularyStudy:
    return config.section(NAME, VocabularyStudy)


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All networks of all grids; where a grid has a rank, each network's token embedding is factored to it."""
    study = _section(config)
    for grid in study.grids:
        changes = study.recipe if grid.steps is None else {**study.recipe, "steps": grid.steps}
        training = config.training.spec(changes)
        for depth, width, seeds in shapes_of(grid.widths, grid.repeated, study.repeated_seeds, study.seeds):
            shape = _shape(study, grid, depth, width)
            for seed in range(seeds):
                yield Run(config.corpus.name, shape, training, seed)


def _shape(study: VocabularyStudy, grid: VocabularyGrid, depth: int, width: int) -> Shape:
    """A network of a grid.

    Raises:
        ShapeError: these numbers don't make one.
    """
    return make_shape(
        depth, width, study.heads, grid.vocab_size, study.context_length, gelu=study.gelu,
        embedding_rank=grid.embedding_rank, redundant_rank=True, patch_embedding=grid.patch_embedding,
    )  # fmt: skip


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
        found += _grid_problems(study, grid, where)
    return found


def _grid_problems(study: VocabularyStudy, grid: VocabularyGrid, where: str) -> Iterator[str]:
    yield from depth_problems(grid.widths, where)
    yield from width_problems(grid.widths, partial(_shape, study, grid), where)
    yield from repeated_problems(grid.widths, grid.repeated, where)


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence for each transition that a grid can't give, and for a rank that only adds parameters."""
    study, found = _section(config), list[str]()
    repeated = {_noise_kind(grid) for grid in study.grids if any(grid.repeated.values())}
    for place, grid in enumerate(study.grids):
        shape, where = partial(_shape, study, grid), f"{NAME}.grids.{ordinal(place)}"
        repeats = study.seeds > 1 or (study.repeated_seeds > 1 and _noise_kind(grid) in repeated)
        found += grid_warnings(where, grid.widths, study.size_axis, shape, repeats)
        if grid.embedding_rank is not None:
            ranks = [grid.embedding_rank]
            found += rank_warnings(f"{where}.embedding_rank", ranks, grid.vocab_size, grid.patch_embedding)
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
        verdict="results/vocabulary.md",
        kind=LANGUAGE,
        sections={NAME: Key(VocabularyStudy, "The study of what the vocabulary does to the best depth.")},
        runs=runs,
        problems=problems,
        warnings=warnings,
        options=options,
    ),
)

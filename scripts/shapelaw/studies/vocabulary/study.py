"""The effect of the vocabulary on the best depth: where a deep network overtakes a shallow one, for each V and r."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from shapelaw.settings.fields import Count, Section, Steps, Vocabulary, Widths
from shapelaw.settings.sections import DecoderStudy, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.studies.grid.settings import BlockKeys, OwnAxes, Repeated
from shapelaw.studies.grid.study import OwnGrids, own_keys
from shapelaw.studies.shape_grids import rank_warnings
from shapelaw.studies.study import OURS, Key, Study

NAME = "vocabulary"
IMAGES = "fashion"  # the source whose letters are patches


NoiseKind = tuple[int, bool, int | None]  # vocab_size, patches, rank


def noise_kind(vocab_size: int, rank: int | None, patches: bool) -> NoiseKind:
    """Key of the series that share their noise: all ranks of one vocabulary, whose losses have the same unit.

    A patch embedding shares it with no other rank: fewer numbers of a patch are another input, which some seeds learn
    and others don't.
    """
    return vocab_size, patches, rank if patches else None


class VocabularyGrid(Section):
    """Networks of one vocabulary."""

    vocab_size: Vocabulary = Field(
        description="Size of the vocabulary; 257 is bytes, a larger one is byte-level BPE of that size."
    )
    embedding_rank: Count | None = Field(
        None, description="Rank r of factored token embeddings; null is full rank."
    )
    patch_embedding: bool = Field(
        False,
        description="The tokens are patches of images (source `fashion`), and their embedding is a linear map of a "
        "patch's 4 numbers; `embedding_rank` is then the rank of that map.",
    )
    widths: Widths = Field(
        description="Shapes as `depth: [widths]`; a shallower and a deeper depth at least."
    )
    repeated: Repeated = Field({})
    steps: Steps | None = Field(
        None,
        description="Optimizer steps, where not those of `training`: a vocabulary of fewer bytes a token sees as much "
        "text with more of them.",
    )


class VocabularyStudy(OwnAxes, DecoderStudy):
    """The study of what the vocabulary does to the depth that is best (Wies et al. 2021, section 5.2)."""

    grids: list[VocabularyGrid] = Field(
        [],
        description="Grids, each of one vocabulary size, rank and embedding; or give `axes`, with vocab_size and "
        "embedding_rank among them.",
    )


def _grids(study: VocabularyStudy) -> Iterator[tuple[int, BlockKeys]]:
    """The grids in the grid language."""
    for place, grid in enumerate(study.grids):
        yield place, own_keys(study, **{name: getattr(grid, name) for name in grid.model_fields_set})


def problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem: no grids, two of one vocabulary and rank, impossible or incomparable shapes."""
    grids = config.section(NAME, VocabularyStudy).grids
    found = GRIDS.problems(config, root)
    series = [(grid.vocab_size, grid.embedding_rank, grid.patch_embedding) for grid in grids]
    for place, grid in enumerate(grids):
        if series[place] in series[:place]:
            found.append(
                f"{GRIDS.at(place)} has the vocabulary, rank and embedding of a grid before it; put their widths "
                "together"
            )
        if grid.patch_embedding and config.corpus.sources != [IMAGES]:
            found.append(
                f"{GRIDS.at(place)}.patch_embedding is true, and the corpus is not images; set corpus.sources to "
                f"[{IMAGES}], and a name of its own (workflow/examples/images.yaml has both)"
            )
    return found


def _repeats(study: VocabularyStudy, place: int) -> bool:
    """Whether a network with a grid's noise is repeated, in whichever grid."""
    repeated = {_noise_kind(grid) for grid in study.grids if any(grid.repeated.values())}
    return study.seeds > 1 or (study.repeated_seeds > 1 and _noise_kind(study.grids[place]) in repeated)


def _noise_kind(grid: VocabularyGrid) -> NoiseKind:
    return noise_kind(grid.vocab_size, grid.embedding_rank, grid.patch_embedding)


GRIDS = OwnGrids(
    NAME,
    _grids,
    "{vocab_size: 257, widths: {1: [32, 64], 2: [24, 48]}}",
    _repeats,
    ("vocab_size", "embedding_rank", "patch_embedding"),
)


def warnings(config: Settings, root: Path) -> list[str]:
    """A sentence for each transition that a grid can't give, and for a rank that only adds parameters."""
    found = GRIDS.warnings(config, root)
    for place, grid in enumerate(config.section(NAME, VocabularyStudy).grids):
        where, ranks = f"{GRIDS.at(place)}.embedding_rank", [grid.embedding_rank or 0]
        found += rank_warnings(where, ranks, grid.vocab_size, grid.patch_embedding)
    return found


STUDIES = (
    Study(
        NAME,
        "Vocabulary",
        "what the vocabulary does to the best depth",
        Path(__file__).parent,
        ("transitions", "size_axes", "gaps", "relation", "losses", "seed_noise", "comparison"),
        {"losses": "figures 1, 3 and 5 of the vocabulary paper", "relation": OURS, "bits_per_byte": OURS},
        "shapelaw.studies.vocabulary.results",
        question="Does a small vocabulary, or a low rank, move the width at which depth pays?",
        verdict="results/depth_width.md#vocabulary-and-rank",
        kind=LANGUAGE,
        sections={NAME: Key(VocabularyStudy, "The study of what the vocabulary does to the best depth.")},
        **GRIDS.attributes | {"problems": problems, "warnings": warnings},
    ),
)

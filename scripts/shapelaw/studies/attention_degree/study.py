"""Decoders with linear attention of each degree, beside softmax, at equal parameters (block-degree note, eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from shapelaw.settings.fields import Seeds, Widths
from shapelaw.settings.problems import recipe_problems
from shapelaw.settings.sections import Decoders, Settings
from shapelaw.specs.kinds import LANGUAGE
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import make_shape, shape_problems, with_attention_degree
from shapelaw.studies.shape_grids import runs_with_seeds, seed_warnings
from shapelaw.studies.study import OURS, Key, Study

NAME = "attention_degree"


class AttentionDegree(Decoders):
    """The study of linear attention of each degree beside softmax, at equal parameters (block-degree note, eq. 2)."""

    widths: Widths = Field({}, description="Shapes of the decoders with softmax, as `depth: [widths]`.")
    degrees: Annotated[list[Annotated[int, Field(ge=2)] | None], Field(min_length=1)] = Field(
        [None, 2, 3, 4],
        description="Polynomial degrees of attention; null is softmax, and the others have as many weights as softmax.",
    )
    seeds: Seeds = Field(5, description="Runs of every shape and degree, with seeds 0, 1, ...")


def _section(config: Settings) -> AttentionDegree:
    return config.section(NAME, AttentionDegree)


def runs(config: Settings, _root: Path) -> Iterator[Run]:
    """All shapes, each with every degree; without dropout, since linear attention has no weights to drop."""
    study = _section(config)
    training = replace(config.training.spec(study.recipe), dropout=0.0)
    sizes = study.vocab_size, study.context_length
    shapes = (
        (
            with_attention_degree(make_shape(depth, width, study.heads, *sizes, gelu=study.gelu), degree),
            study.seeds,
        )
        for depth, row in study.widths.items()
        for width in dict.fromkeys(row)
        for degree in dict.fromkeys(study.degrees)
    )
    return runs_with_seeds(config, study, shapes, training)


def problems(config: Settings, _root: Path) -> list[str]:
    """A sentence for each problem: no widths, impossible shapes and degrees."""
    study = _section(config)
    found = recipe_problems(config, NAME, study.recipe)
    if not study.widths:
        return [f"{NAME} has no widths; give it depth: [widths], such as {{2: [64, 128]}}"]
    for depth, width in ((depth, width) for depth, row in study.widths.items() for width in row):
        sizes = depth, width, study.heads, study.vocab_size, study.context_length
        wrong = shape_problems(*sizes)
        for degree in () if wrong else study.degrees:
            try:
                with_attention_degree(make_shape(*sizes), degree)
            except ValueError as error:
                wrong.append(str(error))
        found += [f"{NAME}.widths.{depth}: {problem}" for problem in wrong]
    return found


def warnings(config: Settings, _root: Path) -> list[str]:
    """A sentence where no two networks differ in their seed alone."""
    return seed_warnings(NAME, [_section(config).seeds])


STUDIES = (
    Study(
        NAME,
        "Degree of the building block",
        "comparing degrees of attention",
        Path(__file__).parent,
        ("losses", "differences"),
        {"losses": OURS},
        "shapelaw.studies.attention_degree.results",
        question="Which degree of attention, or softmax, learns text best at equal parameters?",
        verdict="results/degrees.md#linear-attention-in-a-decoder",
        subtitle="Linear attention",
        kind=LANGUAGE,
        sections={NAME: Key(AttentionDegree, "The study of the degree of attention in decoders.")},
        runs=runs,
        problems=problems,
        warnings=warnings,
    ),
)

"""The whole config: the sections that every config has, and those that the studies declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from shapelaw.errors import UserError, did_you_mean
from shapelaw.settings.loading import load_settings
from shapelaw.settings.problems import common_problems, ordinal
from shapelaw.settings.sections import Recipe, Settings, section_of
from shapelaw.specs.kinds import LANGUAGE, AnyRun
from shapelaw.specs.runs import Training
from shapelaw.studies.grid.language import MOST_RUNS
from shapelaw.studies.grid.settings import NAME_PATTERN, Grids
from shapelaw.studies.grid.study import grids_of, name_problems, study_of, unknown_study
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

Runs = Mapping[str, Mapping[str, AnyRun]]  # of each study that trains, by key
_ASKED = tuple(name for name, study in STUDIES.items() if not study.extra)
_EXTRAS = tuple(name for name, study in STUDIES.items() if study.extra)
_A_STUDY = {"anyOf": [{"enum": list(_ASKED)}, {"type": "string", "pattern": NAME_PATTERN}]}
_SECTIONS: dict[str, Any] = {
    name: (key.kind, Field(key.default, validate_default=True, description=key.description))
    for study in STUDIES.values()
    for name, key in study.sections.items()
}
_DECLARED = {name: study.grid for name, study in STUDIES.items() if study.grid is not None}
_INHERITED = Settings.model_fields


def _with_declared(grids: Any) -> Any:
    """The grids with those that studies declare and a config leaves as they are."""
    return {**_DECLARED, **grids} if isinstance(grids, Mapping) else grids


Config: type[Settings] = create_model(
    "Config",
    __base__=Settings,
    __doc__="A whole config, scale and overrides together.",
    studies=(
        list[Annotated[str, WithJsonSchema(_A_STUDY)]],
        Field([_ASKED[0]], min_length=1, description=_INHERITED["studies"].description),
    ),
    grids=(
        Annotated[Grids, BeforeValidator(_with_declared)],
        Field(
            {},
            validate_default=True,
            description="Grids by name: each is a study, which `studies` can name. One named like a study of a grid is "
            "that study's.",
        ),
    ),
    extras=(
        list[Literal[_EXTRAS]],  # type: ignore[valid-type]
        Field([], description=_INHERITED["extras"].description),
    ),
    training=(
        section_of(Training, Recipe, "Training"),
        Field(description=_INHERITED["training"].description),
    ),
    **_SECTIONS,
)


def load_config(values: Mapping[str, Any], scales: Path, root: Path = Path()) -> Settings:
    """Merge the named scale with the config's own keys and check everything.

    Args:
        values: the content of config.yaml, with the values of `--config` on top.
        scales: folder of the scale files; a relative `grid_file` starts from the project that it is two levels deep in.
        root: folder that the config's other relative paths (a folder of text, a tokenizer) start from.

    Raises:
        UserError: the config has problems; the message has one line for each.
    """
    project = scales.parent.parent
    return load_settings(
        Config, values, scales, lambda config: config_problems(config, root, project), _DECLARED
    )


def config_problems(config: Settings, root: Path, project: Path) -> list[str]:
    """A sentence for each problem that no single key shows, of the config's studies and of all extras.

    Args:
        root: folder that relative paths start from, but for a `grid_file`.
        project: folder that a relative `grid_file` starts from.
    """
    studies, grids = studies_of(config), grids_of(config)
    asked = list(dict.fromkeys([*_ASKED, *grids]))
    problems = common_problems(config, root)
    problems += [
        unknown_study(name, f"studies.{ordinal(place)}", asked)
        for place, name in enumerate(config.studies)
        if name not in asked
    ]
    problems += name_problems(grids, STUDIES)
    problems += _measured_problems(config, studies)
    for study in studies.values():
        if study.extra or study.name in config.studies or study.name not in STUDIES:
            problems += study.problems(config, project if study.name in grids else root)
    return list(dict.fromkeys(problems))


def _measured_problems(config: Settings, studies: Mapping[str, Study]) -> Iterator[str]:
    """A sentence for each name in `perplexity.of` that is no study of decoders."""
    known = [name for name, study in studies.items() if study.kind is LANGUAGE]
    for place, name in enumerate(config.perplexity.of):
        if name not in known:
            yield (
                f"perplexity.of.{ordinal(place)} is {name!r}, which is no study or grid of decoders"
                f"{did_you_mean(name, known)}; there are {', '.join(known)}"
            )


def studies_of(config: Settings) -> dict[str, Study]:
    """All studies of a config by name: those of the list, then its further grids."""
    grids = {name: study_of(config, name) for name in grids_of(config) if name not in STUDIES}
    return {name: replace(study, place=config.results) for name, study in {**STUDIES, **grids}.items()}


def runs_of(config: Settings, study: str, root: Path) -> dict[str, AnyRun]:
    """The runs of a study by key.

    Args:
        config: a checked config.
        study: name of the study.
        root: folder that a relative `grid_file` starts from.

    Raises:
        UserError: a grid file can't be used, or there are more than `MOST_RUNS`.
    """
    found: dict[str, AnyRun] = {}
    for run in studies_of(config)[study].runs(config, root):
        if len(found) == MOST_RUNS:
            raise UserError(f"{study} has more than {MOST_RUNS:,} runs; take smaller grids or fewer seeds.")
        found[run.key] = run
    return found

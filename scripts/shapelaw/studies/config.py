"""The whole config: the sections that every config has, and those that the studies declare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, create_model

from shapelaw.errors import UserError
from shapelaw.settings.fields import section_of
from shapelaw.settings.loading import load_settings
from shapelaw.settings.problems import common_problems
from shapelaw.settings.sections import Recipe, Settings
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.runs import Training
from shapelaw.studies.registry import STUDIES

MOST_RUNS = 100_000  # of a study: with more, Snakemake takes hours before the first job
_ASKED = tuple(name for name, study in STUDIES.items() if not study.extra)
_EXTRAS = tuple(name for name, study in STUDIES.items() if study.extra)
_SECTIONS: dict[str, Any] = {
    name: (key.kind, Field(key.default, validate_default=True, description=key.description))
    for study in STUDIES.values()
    for name, key in study.sections.items()
}
_INHERITED = Settings.model_fields
Config: type[Settings] = create_model(
    "Config",
    __base__=Settings,
    __doc__="A whole config, scale and overrides together.",
    studies=(
        list[Literal[_ASKED]],  # type: ignore[valid-type]
        Field([_ASKED[0]], min_length=1, description=_INHERITED["studies"].description),
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
        scales: folder of the scale files.
        root: folder that the config's relative paths (a folder of text, a tokenizer) start from.

    Raises:
        UserError: the config has problems; the message has one line for each.
    """
    return load_settings(Config, values, scales, lambda config: config_problems(config, root))


def config_problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem that no single key shows, of the config's studies and of all extras."""
    problems = common_problems(config, root)
    for study in STUDIES.values():
        if study.extra or study.name in config.studies:
            problems += study.problems(config, root)
    return list(dict.fromkeys(problems))


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
    for run in STUDIES[study].runs(config, root):
        if len(found) == MOST_RUNS:
            raise UserError(f"{study} has more than {MOST_RUNS:,} runs; take smaller grids or fewer seeds.")
        found[run.key] = run
    return found

"""The config that is shipped with some of its keys changed, configs of grids alone, and the problems of both."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.campaign.submission import submission_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run

SCALES = REPOSITORY / "workflow" / "scales"
SCALE_NAMES = sorted(path.stem for path in SCALES.glob("*.yaml"))
SMALL: dict[str, Any] = {"depth": [1, 2], "width": [16, 32]}  # a grid
GPT2: dict[str, Any] = {"vocab_size": 500, "context_length": 64, "repeated_seeds": 2}


def shipped(depth_width: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The content of config.yaml with other values for these keys.

    Args:
        depth_width: the grid of that study, beside what is said here of GPT-2's blocks; None leaves the scale's.
    """
    own = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    if depth_width is not None:
        changes["grids"] = {"depth_width": {**GPT2, **depth_width}, **changes.get("grids", {})}
    return {**own, **changes}


def problems_of(**changes: Any) -> str:
    """The sentences about such a config that can't be run."""

    def start() -> None:
        config = load_config(shipped(**changes), SCALES)
        runs_of(config, "depth_width", REPOSITORY)
        submission_of(config, REPOSITORY, REPOSITORY)

    with pytest.raises(UserError) as error:
        start()
    return str(error.value)


def cases_of(path: str) -> list[tuple[dict[str, Any], list[str]]]:
    """The configs of a table below tests/, with what is told of each."""
    found = yaml.safe_load((REPOSITORY / "tests" / path).read_text(encoding="utf-8"))
    rows = found if isinstance(found, list) else [row for rows in found.values() for row in rows]
    return [(row["config"], [row["says"]] if isinstance(row["says"], str) else row["says"]) for row in rows]


def check_told(lines: Sequence[str], says: Sequence[str]) -> None:
    """Check that these lines are told, in order, each whole or, where `…` stands behind it, as it begins."""
    for line, words in zip(lines, says, strict=True):
        beginning = words.removesuffix(" …")
        assert line.startswith(beginning) if beginning != words else line == words


def config_of(grids: Any, **changes: Any) -> Settings:
    """A config of the demo's scale with these grids."""
    return load_config({"scale": "demo", "studies": ["separation_rank"], "grids": grids, **changes}, SCALES)


def refused(grids: Any, **changes: Any) -> str:
    """What such a config is refused with."""
    with pytest.raises(UserError) as error:
        config_of(grids, **changes)
    return str(error.value)


def runs_at(grids: Any, **changes: Any) -> dict[str, Run]:
    """The runs of its grid `mine`."""
    found = runs_of(config_of(grids, **changes), "mine", REPOSITORY)
    return {key: run for key, run in found.items() if isinstance(run, Run)}

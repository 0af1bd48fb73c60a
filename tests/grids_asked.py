"""Grids of the demo's scale in a config, made or refused, as the grids' tests ask for them."""

from typing import Any

import pytest
from shipped import SCALES
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run

SMALL: dict[str, Any] = {"depth": [1, 2], "width": [16, 32]}


def config_of(grids: Any, **changes: Any) -> Settings:
    return load_config({"scale": "demo", "studies": ["separation_rank"], "grids": grids, **changes}, SCALES)


def refused(grids: Any, **changes: Any) -> str:
    with pytest.raises(UserError) as error:
        config_of(grids, **changes)
    return str(error.value)


def runs_at(grids: Any, **changes: Any) -> dict[str, Run]:
    found = runs_of(config_of(grids, **changes), "mine", REPOSITORY)
    return {key: run for key, run in found.items() if isinstance(run, Run)}

"""The config that is shipped, with some of its keys changed, and the problems that it then has."""

from typing import Any

import pytest
import yaml
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError

SCALES = REPOSITORY / "workflow" / "scales"
SCALE_NAMES = ["demo", "gpu", "laptop", "paper"]


def shipped(**changes: Any) -> dict[str, Any]:
    """The content of config.yaml with other values for these keys."""
    return {**yaml.safe_load((REPOSITORY / "config.yaml").read_text()), **changes}


def problems_of(**changes: Any) -> str:
    """The sentences about such a config that can't be run."""
    with pytest.raises(UserError) as error:
        runs_of(load_config(shipped(**changes), SCALES), "depth_width", REPOSITORY)
    return str(error.value)

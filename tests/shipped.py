"""The config that is shipped, with some of its keys changed, and the problems that it then has."""

from typing import Any

import pytest
import yaml
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError

SCALES = REPOSITORY / "workflow" / "scales"
SCALE_NAMES = ["demo", "gpu", "laptop", "paper"]
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
    with pytest.raises(UserError) as error:
        runs_of(load_config(shipped(**changes), SCALES), "depth_width", REPOSITORY)
    return str(error.value)

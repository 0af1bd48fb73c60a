"""The config that is shipped, with some of its keys changed, and the problems that it then has."""

from typing import Any

import pytest
import yaml
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError

SCALES = REPOSITORY / "workflow" / "scales"
SCALE_NAMES = ["demo", "gpu", "laptop", "paper"]
# GPT-2's block may have any width; scale demo's own study has Llama's, and its recipe
GPT2: dict[str, Any] = {"block": "gpt2", "vocab_size": 500, "seeds": 1, "repeated_seeds": 2}
SHORT: dict[str, Any] = {"steps": 400, "learning_rate": 3.0e-3, "warmup_steps": 50, "beta2": 0.999}


def shipped(**changes: Any) -> dict[str, Any]:
    """The content of config.yaml with other values for these keys."""
    own = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    if "depth_width" in changes and changes.get("scale", own["scale"]) == "demo":
        changes = with_gpt2(changes)
    return {**own, **changes}


def with_gpt2(changes: dict[str, Any]) -> dict[str, Any]:
    """The same for GPT-2's block and its recipe, which scale demo has not, wherever they say nothing else."""
    depth_width = {**GPT2, **changes["depth_width"]}
    return {**changes, "depth_width": depth_width, "training": {**SHORT, **changes.get("training", {})}}


def problems_of(**changes: Any) -> str:
    """The sentences about such a config that can't be run."""
    with pytest.raises(UserError) as error:
        runs_of(load_config(shipped(**changes), SCALES), "depth_width", REPOSITORY)
    return str(error.value)

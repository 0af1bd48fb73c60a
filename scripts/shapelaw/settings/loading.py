"""A config from its files: merged, checked, frozen.

`config.yaml` names a scale; `workflow/scales/<scale>.yaml` holds that scale's values; what `config.yaml` sets
itself goes on top. All problems are collected and reported at once, each with its key's path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.settings.sentences import listed, near, sentence

AnySettings = TypeVar("AnySettings", bound=Settings)


def load_settings(
    model: type[AnySettings],
    values: Mapping[str, Any],
    scales: Path,
    problems_of: Callable[[AnySettings], list[str]],
) -> AnySettings:
    """Merge the named scale with the config's own keys and check everything.

    Args:
        model: model of the whole config.
        values: the content of config.yaml (with whatever `--config` put on top).
        scales: folder of the scale files.
        problems_of: finds the problems that no single key shows, in a config whose keys are right.

    Raises:
        UserError: the config has problems; the message has one line for each.
    """
    own = dict(values)
    names = sorted(path.stem for path in scales.glob("*.yaml"))
    scale = own.pop("scale", None)
    if scale not in names:
        raise UserError(
            listed([f"scale is {scale!r}; it must be one of {', '.join(names)}{near(scale, names)}"])
        )
    base = _values_of(scales, scale)
    merged = merge(base, own)
    try:
        config, problems = model.model_validate(merged), []
    except ValidationError as error:
        problems = [sentence(e, model) for e in error.errors()]
        wrong = {e["loc"][0] for e in error.errors()}
        # to report the other sections' problems too, the scale's own values stand in for the wrong sections
        config = model.model_validate(
            {k: v for k, v in merged.items() if k not in wrong} | {k: base[k] for k in wrong if k in base}
        )
    problems += problems_of(config)
    if problems:
        raise UserError(listed(problems))
    return config


def _values_of(scales: Path, scale: str) -> dict[str, Any]:
    """The values of a scale's file, on top of those that it shares with other scales (`include`)."""
    own = yaml.safe_load((scales / f"{scale}.yaml").read_text())
    values: dict[str, Any] = {}
    for part in own.pop("include", []):
        values = merge(values, yaml.safe_load((scales / "parts" / f"{part}.yaml").read_text()))
    return merge(values, own)


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `top` on top, key by key; lists, numbers and the width tables are replaced whole."""
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        deep = isinstance(value, Mapping) and isinstance(below, Mapping) and key not in ("widths", "repeated")
        merged[key] = merge(below, value) if deep else value  # type: ignore[arg-type]
    return merged

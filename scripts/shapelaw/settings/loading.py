"""A config from its files: merged, checked, frozen.

`config.yaml` names a scale; `workflow/scales/<scale>.yaml` holds that scale's values; what `config.yaml` sets
itself goes on top. All problems are collected and reported at once, each with its key's path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from shapelaw.errors import UserError, did_you_mean, nearest
from shapelaw.settings.problems import listed, sentence
from shapelaw.settings.sections import Settings

AnySettings = TypeVar("AnySettings", bound=Settings)
_KEY = re.compile(r"\b[a-z][a-z_]*(?:\.[a-z][a-z_]*){1,2}\b")  # of a section, or of a grid


def layered(files: Iterable[Path], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The values of config files, each on top of the one before, and of overrides on top of all.

    Args:
        files: config.yaml.
        overrides: what Snakemake made of `--configfile` and `--config`; the keys of the latter are texts, also where
            they spell a number.

    Raises:
        UserError: a file can't be read, is no YAML, or has no keys or one of them twice.
    """
    values: dict[str, Any] = {}
    for path in files:
        values = merge(values, read_values(path))
    return merge(values, _last_spelling(overrides))


def _last_spelling(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Of keys that are spelled alike, as 1 and '1', the last: Snakemake keeps both, of a file and of `--config`."""
    last = {str(key): (key, value) for key, value in values.items()}
    return {key: _last_spelling(one) if isinstance(one, Mapping) else one for key, one in last.values()}


def read_values(path: Path) -> dict[str, Any]:
    """The content of a config file.

    Raises:
        UserError: it can't be read, is no YAML, or has no keys or one of them twice; the message names the line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            values = _Loader(file).get_single_data()
    except OSError as error:
        raise UserError(f"The config {path} can't be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"The config {path} is not text in UTF-8; save it in that encoding.") from error
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"The config {path}{line} is not YAML ({error.problem}).") from error
    except yaml.YAMLError as error:
        raise UserError(f"The config {path} is not YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(values, dict):
        raise UserError(f"The config {path} has no keys; see the one that comes with shapelaw.")
    return values


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that has a key twice: YAML takes the last one and says nothing."""

    def compose_mapping_node(self, anchor: dict[Any, Any]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)  # as it stands: what it merges comes later
        lines: dict[str, int] = {}
        for key, _ in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise UserError(
                    f"The config {self.name} has the key {name} in line {lines[name]} and again in line {line}; leave "
                    "one of them out."
                )
            lines[name] = line
        return node


def load_settings(
    model: type[AnySettings],
    values: Mapping[str, Any],
    scales: Path,
    problems_of: Callable[[AnySettings], list[str]],
    declared: Mapping[str, Any],
) -> AnySettings:
    """Merge the named scale with the config's own keys and check everything.

    Args:
        model: model of the whole config.
        values: the content of config.yaml (with whatever `--config` put on top).
        scales: folder of the scale files.
        problems_of: finds the problems that no single key shows, in a config whose keys are right.
        declared: a grid for each study that is one, of those that were sections once.

    Raises:
        UserError: the config has problems; the message has one line for each.
    """
    own = dict(values)
    names = sorted(path.stem for path in scales.glob("*.yaml"))
    scale, problems = own.pop("scale", None), []
    if scale not in names:
        problems.append(
            f"scale is {scale!r}; it must be one of {', '.join(names)}{did_you_mean(scale, names)}"
        )
        scale = nearest(scale, names) or names[0]  # so that the other problems are told too
    for name in [name for name in declared if name in own]:
        del own[name]
        shown = yaml.safe_dump(
            {name: declared[name]}, default_flow_style=True, sort_keys=False, width=math.inf
        ).strip()
        problems.append(f"{name} is a grid now and no section; write it under grids, such as grids: {shown}")
    base = _values_of(scales, scale)
    merged = merge(base, own)
    found: list[str] = []
    try:
        config = model.model_validate(merged)
    except ValidationError as error:
        found = [sentence(e, model) for e in error.errors()]
        try:
            config = model.model_validate(_stand_in(merged, base, [e["loc"] for e in error.errors()]))
        except ValidationError:  # what a study declares is wrong
            raise UserError(listed(problems + found)) from error
    found += problems_of(config)
    problems += [one + _from_scale(one, own, merged, scale) for one in found]
    if problems:
        raise UserError(listed(problems))
    return config


def _stand_in(
    merged: Mapping[str, Any], base: Mapping[str, Any], wrong: Sequence[tuple[int | str, ...]]
) -> dict[str, Any]:
    """A config without wrong keys, so that the other sections' problems are told too.

    The scale's own values stand in for wrong sections. Of several grids the right ones stay, and a wrong one is asked
    for no longer.

    Args:
        wrong: places of the wrong keys.
    """
    sections = {str(place[0]) for place in wrong}
    values = {name: value for name, value in merged.items() if name not in sections}
    values |= {name: base[name] for name in sections if name in base}
    grids = merged.get("grids")
    if "grids" in sections and isinstance(grids, Mapping):
        wrong_grids = {str(place[1]) for place in wrong if place[0] == "grids" and len(place) > 1}
        values["grids"] = {name: grid for name, grid in grids.items() if name not in wrong_grids}
        asked = values.pop("studies", [])
        if kept := [name for name in asked if name not in wrong_grids]:
            values["studies"] = kept
    return values


def _from_scale(problem: str, own: Mapping[str, Any], merged: Mapping[str, Any], scale: str) -> str:
    """A clause that names the keys of a problem that the user did not set: the scale did. Else empty."""
    keys = list(dict.fromkeys(_KEY.findall(problem)))
    theirs = [key for key in keys if _has(merged, key) and not _has(own, key)]
    if not theirs:
        return ""
    return f" ({' and '.join(theirs)} {'comes' if len(theirs) == 1 else 'come'} from scale {scale})"


def _has(values: Any, key: str) -> bool:
    """True where nested values have a dotted key."""
    for part in key.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _values_of(scales: Path, scale: str) -> dict[str, Any]:
    """The values of a scale's file, on top of those that it shares with other scales (`include`)."""
    own = _read_scale(scales / f"{scale}.yaml")
    values: dict[str, Any] = {}
    for part in own.pop("include", []):
        values = merge(values, _read_scale(scales / "parts" / f"{part}.yaml"))
    return merge(values, own)


def _read_scale(path: Path) -> dict[str, Any]:
    """A scale's file, by libyaml where PyYAML has it: the Snakefile reads one at each start, in Python for 50 ms."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(loader(path.read_text(encoding="utf-8")).get_single_data())


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `top` on top, key by key; lists, numbers and each grid of `grids` are replaced whole.

    Keys that are spelled alike are one key, as 1 and '1'.
    """
    merged = dict(base)
    spelled = {str(key): key for key in merged}
    for key, value in top.items():
        same = spelled.get(str(key), key)
        below = merged.get(same) if same == key else merged.pop(same)
        if not (isinstance(value, Mapping) and isinstance(below, Mapping)):
            merged[key] = value
        else:
            merged[key] = {**below, **value} if key == "grids" else merge(below, value)
    return merged

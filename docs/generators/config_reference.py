"""Write the reference of config.yaml, docs/config.md, and its JSON schema, by which editors complete and check keys.

  PYTHONPATH=scripts python docs/generators/config_reference.py

Every key's type, default, meaning and unit comes from the models of scripts/shapelaw/settings/sections.py and of each
study's study.py or settings.py.
Exit codes: 0 done, 2 a file can't be written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from page_parts import pipe_table
from shapelaw.campaign.config import Config
from shapelaw.errors import command_line, end_with
from shapelaw.storage.files import replacing
from shapelaw.studies.grid.settings import FIELDS_OF

ROOT = Path(__file__).resolve().parents[2]
SCALES = ("demo", "laptop", "gpu", "paper")
SCALE_MEANING = (
    "Whose grids and recipe to run; the keys below go on top of what `workflow/scales/<scale>.yaml` says."
)
BEGIN = """\
# The keys of config.yaml

**A value comes from `config.yaml` or `--config`, otherwise from the file of the scale (the preset), otherwise from the
default below.** Sections are merged key by key; a list or a grid replaces the scale's whole.
The values of the scales are in their files, such as [laptop.yaml](../workflow/scales/laptop.yaml).
Wrong and unknown keys are reported before anything runs. A default that isn't printed is null.

"""
END = """\

`PYTHONPATH=scripts python docs/generators/config_reference.py` writes this page from the models in
[settings/sections.py](../scripts/shapelaw/settings/sections.py) and in the `study.py` or `settings.py` of each of the
[studies](../scripts/shapelaw/studies/registry.py); change them there.
"""
REPEATED = 5  # rows of an earlier table from which on a table names them in one sentence
FAR = 1e5  # a bound from here on is against typing errors, and is told by the sentence that refuses the value
_BOUNDS = {
    "minimum": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "exclusiveMaximum": "<",
    "multipleOf": "a multiple of",
}

Schema = Mapping[str, Any]


def json_schema() -> dict[str, Any]:
    """The JSON schema of config.yaml, without required keys, since the scale has what is left out."""
    schema = _without_titles(Config.model_json_schema())
    names = filter(None, map(_section, schema["properties"].values()))
    for section in (schema, *(schema["$defs"][name] for name in names)):
        section.pop("required", None)
    scale = {"description": SCALE_MEANING, "type": "string", "enum": list(SCALES)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "shapelaw's config.yaml",
        **schema,
        "properties": {"scale": scale, **schema["properties"]},
    }


def reference() -> str:
    """The content of docs/config.md: a table of the top level's keys, then one for each section."""
    schema = json_schema()
    models = schema["$defs"]
    # pydantic leaves a description out where it is the section's own
    keys = {name: models.get(_section(key), {}) | key for name, key in schema["properties"].items()}
    whole = Config.model_json_schema()["$defs"]
    required = {name: set(model.get("required", ())) for name, model in whole.items()}
    below = {name: kind(key) for name, key in keys.items() if kind(key) in ("section", "list of grids")}
    alone = {name: key for name, key in keys.items() if name not in below}
    listed = "; ".join(
        f"{kinds}: {', '.join(f'`{name}`' for name, of in below.items() if of == one)}"
        for one, kinds in (("section", "Sections"), ("list of grids", "lists of grids"))
    )
    listed = f"{listed}. Each is described below."
    lines = [BEGIN + _table(alone, {"scale"}), "", listed, ""]
    shown: dict[str, Mapping[str, Schema]] = {}
    for model, users in _used(keys, models).items():
        lines += [f"## {', '.join(f'`{user}`' for user in users)}", "", models[model]["description"]]
        if FIELDS_OF not in models[model]:
            properties = models[model]["properties"]
            source, same = _repeated(properties, shown)
            new = {name: key for name, key in properties.items() if name not in same}
            if same:
                lines[-1] += (
                    f" With the same meaning as in [`{source}`](#{source}): {', '.join(f'`{name}`' for name in same)}."
                )
            lines += ["", _table(new, required[model])] if new else []
            shown[users[0]] = properties
        lines.append("")
    return "\n".join(lines).rstrip() + "\n" + END


def _repeated(keys: Mapping[str, Schema], shown: Mapping[str, Mapping[str, Schema]]) -> tuple[str, list[str]]:
    """The section before that has most of these keys, each with the same meaning, and which; none if they are few."""
    found = {
        section: [
            name for name in keys if name in of and of[name]["description"] == keys[name]["description"]
        ]
        for section, of in shown.items()
    }
    source, same = max(found.items(), key=lambda one: len(one[1]), default=("", []))
    return (source, same) if len(same) >= REPEATED else ("", [])


def _without_titles(schema: Any) -> Any:
    """The schema without the titles that pydantic makes from names."""
    if isinstance(schema, Mapping):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if key != "title" or not isinstance(value, str)
        }
    return [_without_titles(value) for value in schema] if isinstance(schema, list) else schema


def _section(key: Schema) -> str:
    """The name of the model of a key that is a section; empty for other keys."""
    return str(key.get("$ref", "")).rpartition("/")[2]


def _used(keys: Mapping[str, Schema], models: Mapping[str, Schema]) -> dict[str, list[str]]:
    """For each model, the keys that are sections, or lists of sections, of that model: `section`, `section.key`."""
    used: dict[str, list[str]] = {}
    for name, key in keys.items():
        for model in _sections_in(key):
            used.setdefault(model, []).append(name)
            inside = {f"{name}.{part}": inner for part, inner in models[model]["properties"].items()}
            for other, users in _used(inside, models).items():
                used.setdefault(other, []).extend(users)
    return used


def _sections_in(key: Schema) -> list[str]:
    """The models of a key that is a section, a list or a table of sections, or one of them."""
    inside = [*key.get("oneOf", ()), key.get("items", {}), *key.get("patternProperties", {}).values()]
    found = [_section(key), *(model for one in inside if one for model in _sections_in(one))]
    return list(dict.fromkeys(filter(None, found)))


def _table(keys: Mapping[str, Schema], required: set[str]) -> str:
    rows: list[tuple[str, ...]] = [("key", "type", "default", "meaning", "unit")]
    for name, key in keys.items():
        rows.append((f"`{name}`", kind(key), _default(key, name in required), key["description"], _unit(key)))
    return pipe_table(rows)


def kind(key: Schema) -> str:
    """The type of a key in words, with its bounds."""
    if _section(key):
        return "section"
    if either := _spellings(key):
        return " or ".join(map(kind, either))
    if "enum" in key:
        return ", ".join(f"`{word}`" for word in key["enum"])
    if key["type"] == "array":
        return "list of grids" if _section(key["items"]) else f"list: {kind(key['items'])}"
    if key["type"] == "object":
        values = key.get("additionalProperties") or next(iter(key["patternProperties"].values()))
        return "table" if values is True else f"table of {kind(values)}"
    words = {"string": "text"}
    bounds = [f"{sign} {key[bound]:g}" for bound, sign in _BOUNDS.items() if key.get(bound, FAR) < FAR]
    return f"{words.get(key['type'], key['type'])} {', '.join(bounds)}".rstrip()


def _spellings(key: Schema) -> list[Schema]:
    """The types of which a key has one; empty where it has one type."""
    return list(key.get("anyOf", key.get("oneOf", ())))


def _default(key: Schema, required: bool) -> str:
    """The default as YAML; empty for a section and for null."""
    if required:
        return "none"
    return "" if _section(key) or key["default"] is None else f"`{_yaml(key['default'])}`"


def _yaml(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()


def _unit(key: Schema) -> str:
    """The unit of a key, from the key itself, its branches or the elements of its list."""
    inside = [*_spellings(key), key.get("items", {})]
    return next((str(part["unit"]) for part in (key, *inside) if "unit" in part), "")


def files() -> dict[Path, str]:
    """The content of the generated files, by their paths from the project's root."""
    schema = json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    return {Path("docs/config.md"): reference(), Path("workflow/schemas/config.schema.json"): schema}


def main() -> None:
    """Write both files and report it."""
    command_line(__doc__).parse_args()
    for path, content in files().items():
        with replacing(ROOT / path) as temporary:
            temporary.write_text(content, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    end_with(main)

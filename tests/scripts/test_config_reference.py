"""docs/config.md and the schema of config.yaml are what the settings' models say."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from small import REPOSITORY

from config_reference import SCALES, files, json_schema

SCALE_FILES = sorted((REPOSITORY / "workflow" / "scales").rglob("*.yaml"))


def read(name: str) -> dict[str, Any]:
    """A YAML file of the project as JSON has it: keys are texts."""
    return dict(json.loads(json.dumps(yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8")))))


def test_the_generated_files_are_up_to_date() -> None:
    for path, content in files().items():
        kept = (REPOSITORY / path).read_text(encoding="utf-8")
        assert kept == content, f"{path} is out of date; write it anew: python scripts/config_reference.py"


def test_every_key_has_a_sentence() -> None:
    schema = json_schema()
    for model in schema["$defs"].values():
        for name, key in model["properties"].items():
            first = key["description"][0]
            assert first == "`" or first.isupper(), name
            assert key["description"].endswith("."), name


def test_the_reference_knows_every_scale() -> None:
    assert set(SCALES) == {path.stem for path in SCALE_FILES if path.parent.name == "scales"}


@pytest.mark.parametrize(
    "name", ["config.yaml", *(str(path.relative_to(REPOSITORY)) for path in SCALE_FILES)]
)
def test_the_schema_accepts_our_own_files(name: str) -> None:
    values = read(name)
    values.pop("include", None)  # of scales alone
    jsonschema.validate(values, json_schema())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"scale": "tiny"}, "'tiny' is not one of"),
        ({"training": {"step": 3}}, "'step' was unexpected"),
        ({"training": {"steps": 0}}, "0 is less than the minimum of 1"),
        ({"memorization_heads": [{"heads": [4]}]}, "'examples' is a required property"),
    ],
)
def test_the_schema_refuses_what_the_config_refuses(values: dict[str, Any], said: str) -> None:
    with pytest.raises(jsonschema.ValidationError, match=said):
        jsonschema.validate(values, json_schema())


def test_editors_find_the_schema() -> None:
    first = (REPOSITORY / "config.yaml").read_text(encoding="utf-8").splitlines()[0]
    place = first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads((REPOSITORY / place).read_text(encoding="utf-8")) == json_schema()

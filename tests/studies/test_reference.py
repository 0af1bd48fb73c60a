"""The papers' published numbers."""

import json

import pytest

from shapelaw.studies.reference import REFERENCE, published_json


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_is_read_by_its_name(path) -> None:  # type: ignore[no-untyped-def]
    assert published_json(path.stem) == json.loads(path.read_text(encoding="utf-8")) != {}

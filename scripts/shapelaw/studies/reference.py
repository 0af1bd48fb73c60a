"""The papers' published numbers, in workflow/reference/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[3] / "workflow" / "reference"


def published_json(name: str) -> dict[str, Any]:
    """The content of a JSON file, by its name without the ending."""
    return dict(json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8")))

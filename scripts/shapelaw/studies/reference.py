"""The papers' published numbers, in workflow/reference/ of a clone, in shapelaw/reference/ where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve()
_IN_CLONE = _HERE.parents[3] / "workflow" / "reference"
REFERENCE = _IN_CLONE if _IN_CLONE.is_dir() else _HERE.parents[1] / "reference"


def published_json(name: str) -> dict[str, Any]:
    """The content of a JSON file, by its name without the ending."""
    return dict(json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8")))

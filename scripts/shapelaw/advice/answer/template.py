"""The page of answers as HTML: a template with the numbers in it. It imports next to nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("page.html")
PLACE = "/* the answers go here */ null"  # of the template


def page_of(content: dict[str, Any]) -> str:
    """The whole page, HTML."""
    template = TEMPLATE.read_text(encoding="utf-8")
    # "</" would end the script's element
    numbers = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    before, place, after = template.partition(PLACE)
    assert place, f"{TEMPLATE.name} has no place for the answers"
    return before + numbers + after

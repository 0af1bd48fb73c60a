"""The page of answers as HTML: a template with its style, its scripts and the numbers in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("advisor")
# in the order in which the page runs them
SCRIPTS = ("costs.js", "config.js", "words.js", "figure.js", "page.js")


def page_of(content: dict[str, Any]) -> str:
    """The whole page, HTML."""
    # "</" would end the script's element
    numbers = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    scripts = [f'"use strict";\nconst DATA = {numbers};\n', *map(_read, SCRIPTS), "begin();\n"]
    style, script = "<style></style>", "<script></script>"
    before, _, rest = _read("page.html").partition(style)
    middle, _, after = rest.partition(script)
    return f"{before}<style>\n{_read('page.css')}</style>{middle}<script>\n{''.join(scripts)}</script>{after}"


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")

"""What the generators of pages share: tables in Markdown, and the parts of a page that are made anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from shapelaw.errors import UserError


def pipe_table(rows: Sequence[Sequence[str]]) -> str:
    """Cells as a table in Markdown, the first row its head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def with_parts(text: str, parts: Mapping[str, Callable[[], str]], page: str) -> str:
    """A page with what stands between `<!-- NAME: ... -->` and `<!-- end -->` made anew, for each name.

    Args:
        page: its name, for people.

    Raises:
        UserError: a part has no markers.
    """
    places = {
        name: re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(?=<!-- end -->)", re.DOTALL) for name in parts
    }
    for name, place in places.items():
        if not place.search(text):
            raise UserError(f"{page} has no <!-- {name}: ... --> with an <!-- end --> after it.")
    for name, place in places.items():
        content = parts[name]().replace("\\", r"\\")  # of a template
        text = place.sub(rf"\g<1>{content}\n", text)
    return text

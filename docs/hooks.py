"""Brings into the site what lies beside docs/: the README as its first page, and every file that a page links to.

MkDocs knows only docs/. Links stay as they are in the Markdown, where a forge follows them from file to file; here they
are turned to the places that these files have on the site. A file that is no page is shown as a page of code.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = PurePosixPath("docs")
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
LANGUAGES = {".py": "python", ".smk": "python", "": "python", ".yaml": "yaml"}
CODE = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1 *$|`[^`]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")  # a path, not an address or an anchor alone
_JOINS = r"(?:to|x|against|[±=<>≥≤]|[mbt]r?illion|layers?|heads?)"
# the blanks of a table's row at which no line should end: "(24 to 55)", "1.3 billion", "yes / no"
JOINED = re.compile(
    rf"(?<=[\d%]) (?={_JOINS}(?!\w))|(?<=\d,) (?=\d)|(?<=/) | (?=/)"
    rf"|(?:(?<=\bto)|(?<=\bx)|(?<=\bagainst)|(?<=[±=<>≥≤])) (?=[-+]?\d)|(?<=\w) (?==)"
)


def place_on_site(path: str) -> str:
    """Where the site has a file of the repository (both from their roots)."""
    if path in PAGES:
        return PAGES[path]
    inside = PurePosixPath(path)
    return str(inside.relative_to(DOCS)) if inside.is_relative_to(DOCS) else f"source/{path}.md"


def linked_files(text: str, page: str) -> Iterator[str]:
    """The files of the repository that a page links to."""
    for target in LINK.findall(CODE.sub("", text)):
        yield _file_of(target, page)


def with_links_of_the_site(text: str, page: str) -> str:
    """A page's text, its links turned to where the site has their files."""
    here = os.path.dirname(place_on_site(page))

    def turned(link: re.Match[str]) -> str:
        return os.path.relpath(place_on_site(_file_of(link[1], page)), here or ".")

    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(turned, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join(parts) + LINK.sub(turned, text[end:])


def with_readable_rows(text: str) -> str:
    """A page's text: its tables part no number from its unit or the other end of its interval, and show `|` in code."""

    def readable(row: re.Match[str]) -> str:
        words = re.split(r"(`[^`]+`)", row[0])
        words[::2] = (JOINED.sub("\u00a0", part) for part in words[::2])
        words[1::2] = (code.replace("\\|", "|") for code in words[1::2])  # a forge wants it escaped there
        return "".join(words)

    return re.sub(r"^\|.*", readable, text, flags=re.MULTILINE)


def source_page(path: str, text: str) -> str:
    """A page that shows a file of the repository."""
    return f"# {path}\n\n~~~~~{LANGUAGES.get(PurePosixPath(path).suffix, 'text')}\n{text}\n~~~~~\n"


def _file_of(target: str, page: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(page), target))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside docs/, and a page for each other file that a page links to."""
    from mkdocs.structure.files import File, InclusionLevel

    root = Path(config.config_file_path).parent
    texts = {str(DOCS / file.src_uri): file.content_string for file in files.documentation_pages()}
    texts |= {name: (root / name).read_text(encoding="utf-8") for name in PAGES}
    for name, place in PAGES.items():
        files.append(File.generated(config, place, content=texts[name]))
    outside = {
        path for page, text in texts.items() for path in linked_files(text, page) if (root / path).is_file()
    }
    for path in sorted(outside - texts.keys()):
        place = place_on_site(path)
        if place.startswith("source/"):
            shown = source_page(path, (root / path).read_text(encoding="utf-8"))
            files.append(File.generated(config, place, content=shown, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the page's links, and make its tables readable."""
    place = page.file.src_uri
    if place.startswith("source/"):
        return markdown
    beside = {on_site: name for name, on_site in PAGES.items()}
    return with_readable_rows(with_links_of_the_site(markdown, beside.get(place, str(DOCS / place))))

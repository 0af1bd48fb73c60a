"""The pages read as plain Markdown and as the site of `make docs`: no link is dead, every page is in the nav."""

import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import unquote

import pytest
import yaml
from browsers import needs_browser, started
from markdown_it import MarkdownIt
from selenium.webdriver.support.wait import WebDriverWait
from small import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = sorted(
    [*DOCS.rglob("*.md"), *(REPOSITORY / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG"))]
)
SOURCES = (REPOSITORY, REPOSITORY / "scripts" / "shapelaw")
WITHOUT_FILES = ("CHANGELOG.md", "adding_a_study.md")  # that are gone, and that the reader writes
MKDOCS = shutil.which("mkdocs") or shutil.which("mkdocs", path=REPOSITORY / ".venv-docs" / "bin")
WIDTHS = (1400, 480)
ELEMENTS = {"table_open": "table", "list_item_open": "li", "image": "img", "fence": "pre", "link_open": "a"}


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without what it calls."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, tag, node: None)


def tokens(page: Path) -> list[Any]:
    """The page as CommonMark with tables, which forges show."""
    found = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    return [one for token in found for one in (token, *(token.children or ()))]


def codes(page: Path) -> Iterator[str]:
    """What stands in backticks."""
    return (token.content for token in tokens(page) if token.type == "code_inline")


def links(page: Path) -> Iterator[str]:
    for token in tokens(page):
        target = token.attrs.get("href", token.attrs.get("src"))
        if target:
            yield unquote(str(target))


@cache
def anchors(page: Path) -> set[str]:
    """The headings' anchors, as GitHub makes them."""
    found = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    named: list[str] = []
    for token, inline in pairwise(found):
        if token.type == "heading_open":
            text = "".join(one.content for one in inline.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            named.append(f"{name}-{named.count(name)}" if name in named else name)
    return set(named)


def named(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_link_and_no_file_that_it_names_is_dead(page: Path) -> None:
    for text in [] if page.name in WITHOUT_FILES else codes(page):
        for path in re.findall(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|yaml)\b", text):
            assert any((folder / path).is_file() for folder in SOURCES), f"{path} does not exist"
    for target in links(page):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{target} does not exist; a link to a folder is none on the site"
        assert file.is_relative_to(REPOSITORY)
        if anchor:
            assert anchor in anchors(file), f"{target}: {named(file)} has no such heading"


def nav_pages(nav: Any) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for inside in entry.values():
                yield from nav_pages([inside] if isinstance(inside, str) else inside)


def test_the_nav_names_every_page_once() -> None:
    config = yaml.load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    pages = list(nav_pages(config["nav"]))
    beside = ["index.md", "CONTRIBUTING.md", "CHANGELOG.md"]  # the README is the index
    assert sorted(pages) == sorted([*(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")), *beside])


HOOKS = runpy.run_path(str(DOCS / "hooks.py"))


def test_links_are_turned_to_the_places_on_the_site_and_code_stays() -> None:
    turned = HOOKS["with_links_of_the_site"]
    assert turned("[a](docs/results/speed.md#x) `](docs/a.md)`", "README.md") == (
        "[a](results/speed.md#x) `](docs/a.md)`"
    )
    assert turned("[a](../README.md), [b](#here)", "docs/gpu.md") == "[a](index.md), [b](#here)"
    assert turned("[a](../../Snakefile)", "docs/results/speed.md") == "[a](../source/Snakefile.md)"
    assert turned("[a](https://x.org/b.md)", "README.md") == "[a](https://x.org/b.md)"
    fenced = "```sh\n[a](docs/a.md)\n```"
    assert turned(fenced, "README.md") == fenced


def test_a_row_parts_no_number_from_its_unit_and_code_stays() -> None:
    readable = HOOKS["with_readable_rows"]
    assert readable("| 1.3 billion (24 to 55) | yes / no | V = 500 |") == (
        "| 1.3\u00a0billion (24\u00a0to\u00a055) | yes\u00a0/\u00a0no | V\u00a0=\u00a0500 |"
    )
    assert readable("| `[1, 4]` | `NAME\\|FILE` |") == "| `[1, 4]` | `NAME|FILE` |"
    assert readable("1.3 billion (24 to 55)") == "1.3 billion (24 to 55)"


class _Elements(HTMLParser):
    """Counts of elements of a built page's article, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = dict.fromkeys(ELEMENTS.values(), 0)
        self.links: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.inside |= tag == "article"
        if target := given.get("href") or given.get("src"):
            self.links.append(unquote(target))
        if self.inside and tag in self.counts and given.get("class") != "headerlink":
            self.counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with strict checks of links."""
    if MKDOCS is None:
        pytest.skip("MkDocs is not installed; make docs installs it into .venv-docs")
    folder = tmp_path_factory.mktemp("site")
    command = [MKDOCS, "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def built(site: Path, page: Path) -> Path:
    inside = page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.relative_to(REPOSITORY)
    return site / ("index.html" if inside == Path("README.md") else inside.with_suffix(".html"))


@pytest.mark.slow
def test_the_site_has_what_forges_show(site: Path) -> None:
    """Python-Markdown wants blank lines where CommonMark wants none: a list would be text."""
    for page in PAGES:
        read = _Elements()
        read.feed(built(site, page).read_text(encoding="utf-8"))
        shown = dict.fromkeys(ELEMENTS.values(), 0)
        for token in tokens(page):
            if token.type in ELEMENTS:
                shown[ELEMENTS[token.type]] += 1
        assert read.counts == shown, page.name


@pytest.mark.slow
def test_every_link_of_the_site_is_a_file_of_it_and_nothing_is_fetched(site: Path) -> None:
    for page in site.rglob("*.html"):
        read = _Elements()
        read.feed(page.read_text(encoding="utf-8"))
        for target in read.links:
            if page.name == "404.html" or target.startswith(("#", "data:")):
                continue
            assert not target.startswith("http"), f"{page.name}: {target}"
            assert (page.parent / target.partition("#")[0]).is_file(), f"{page.name}: {target}"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """The address of the site on a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class TestBrowser:
    pytestmark: ClassVar = [*needs_browser, pytest.mark.slow]

    def test_every_page_fits_its_width_and_has_its_pictures(
        self, served: str, site: Path, tmp_path: Path
    ) -> None:
        with started(tmp_path) as browser:
            for page in PAGES:
                browser.get(f"{served}/{built(site, page).relative_to(site)}")
                for width in WIDTHS:
                    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
                    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
                    fits = f"return innerWidth == {width} && document.documentElement.scrollWidth <= {width}"
                    # while a page starts, its search box may still stand out
                    WebDriverWait(browser, 20).until(
                        lambda one, fits=fits: one.execute_script(fits), f"{page.name} is wider than {width}"
                    )
                broken = "return [...document.images].filter(one => !one.naturalWidth).map(one => one.src)"
                assert browser.execute_script(broken) == [], page.name
            assert [one["message"] for one in browser.get_log("browser")] == []

    def test_the_search_finds_a_word_of_a_page(self, served: str, tmp_path: Path) -> None:
        with started(tmp_path) as browser:
            browser.get(f"{served}/index.html")
            browser.find_element("css selector", "input.md-search__input").send_keys("undertraining")
            found = "return [...document.querySelectorAll('a.md-search-result__link')].map(one => one.href)"
            WebDriverWait(browser, 30).until(lambda one: one.execute_script(found))
            assert any("depth_width.html" in link for link in browser.execute_script(found))

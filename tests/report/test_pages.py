"""Pages of HTML that need nothing beside themselves."""

import base64
import re

import pandas as pd

from shapelaw.report.pages import data_uri, page, table_page

TABLE = pd.DataFrame({"a <b>": ["x & y", "z"], "width": [1234.5678, None]})
SHOWN = pd.DataFrame({"a <b>": ["x & y", "z"], "width": ["1,235", "\u2013"]})


def test_a_table_shows_rounded_cells_and_keeps_every_digit() -> None:
    text = table_page("sizes", "All <sizes>.", SHOWN, TABLE, [False, True])
    assert "All &lt;sizes&gt;. 2 rows" in text
    assert "<td>x &amp; y</td>" in text
    assert '<td class="n" data-value="1234.5678">1,235</td>' in text
    assert '<td class="n" data-value="">\u2013</td>' in text
    file = re.search(r'download="sizes.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert file
    assert base64.b64decode(file[1]).decode() == TABLE.to_csv(index=False)


def test_a_page_needs_nothing_beside_itself() -> None:
    text = table_page("sizes", "", SHOWN, TABLE, [False, True])
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert text.startswith("<!doctype html>")


def test_what_is_embedded_comes_back() -> None:
    kind, content = data_uri(b"<svg/>", "image/svg+xml").removeprefix("data:").split(";base64,")
    assert (kind, base64.b64decode(content)) == ("image/svg+xml", b"<svg/>")
    assert "<title>1 &lt; 2</title>" in page("1 < 2", "")

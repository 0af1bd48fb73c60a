"""The published numbers: each has a source, stands once and is of a study; what was not published has no value."""

import csv
import math
import re

from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import (
    ANSWER,
    DEPTH_WIDTH,
    REFERENCE,
    published,
    published_log_width,
    published_of,
)

PAPER = re.compile(r"(Levine|Wies|Mahdavi) et al\. 202\d, (table|figure|section|appendix|eq\.) ")


def test_each_has_a_source_and_stands_once() -> None:
    with (REFERENCE / "published.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["study"] for row in rows} <= {*STUDIES, "perplexity"}
    assert len({(row["study"], row["quantity"], row["setting"]) for row in rows}) == len(rows)
    for row in rows:
        one = published(row["study"], row["quantity"], row["setting"])
        assert one.value
        assert PAPER.match(one.source), one
        assert math.isnan(one.number) or one.low <= one.number <= one.high, one
        assert row["quantity"] != ANSWER or one.value.endswith("."), one


def test_errors_are_half_the_interval_and_open_where_none_was_published() -> None:
    a, chi2 = (published(DEPTH_WIDTH, name) for name in ("a", "chi2_reduced"))
    assert (a.number, a.err) == (5.039, 0.03)
    assert (chi2.low, chi2.high) == (0.854, 0.854)
    assert math.isnan(chi2.err)
    assert published_log_width(12) == 5.039 + 0.0555 * 12


def test_what_was_not_published_has_no_value() -> None:
    nothing = published(DEPTH_WIDTH, "a", "depth 6")
    assert (nothing.value, nothing.source) == ("", "")
    assert math.isnan(nothing.number)
    assert math.isnan(nothing.err)
    assert published_of("relu", ANSWER) == {}

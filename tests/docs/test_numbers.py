"""Numbers in README and docs are those of the committed tables, and the list of them is true of the pages."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_numbers import (
    Sentence,
    counted,
    half_a_digit,
    is_printed,
    page_text,
    read_table,
    replaced,
    reprinted,
    sentences,
    value_of,
)

LISTED = sentences()
IDS = [f"{one.page}-{place}" for place, one in enumerate(LISTED)]


@pytest.mark.parametrize("one", LISTED, ids=IDS)
def test_a_listed_sentence_is_in_its_page(one: Sentence) -> None:
    assert one.plain in page_text(one.page), f"{one.page} no longer says: {one.plain}"
    assert len(one.printed) == len(one.numbers), f"as many numbers as braces: {one.text}"


@pytest.mark.slow
@pytest.mark.parametrize("one", LISTED, ids=IDS)
def test_a_listed_number_is_in_its_table(one: Sentence, made: Path) -> None:
    table = read_table(one.table, made)
    wrong = []
    for printed, number in zip(one.printed, one.numbers, strict=True):
        value = value_of(table, one.where, number)
        if not is_printed(value, printed):
            wrong.append(
                f"{printed} is printed, {value:.6g} is {number!r} of {one.table} where {one.where!r}"
            )
    assert not wrong, f"{one.page}: {one.plain}\n" + "\n".join(wrong)


def test_a_number_is_held_to_half_of_its_last_digit() -> None:
    assert half_a_digit("137") == pytest.approx(0.5)
    assert half_a_digit("2.11") == pytest.approx(0.005)
    assert half_a_digit("2e-4") == pytest.approx(0.5e-4)
    assert is_printed(1007.6, "1,008")
    assert not is_printed(1007.4, "1,008")
    assert is_printed(-3.7421e-5, "-3.742e-5")
    assert not is_printed(2.116, "2.11")


@given(st.floats(-1e7, 1e7), st.sampled_from(["137", "2.11", "-3.742e-5", "1,008", "0.055"]))
def test_a_value_is_reprinted_as_the_number_in_its_place(value: float, printed: str) -> None:
    new = reprinted(value, printed)
    assert is_printed(value, new)
    if "e" not in printed:
        assert half_a_digit(new) == half_a_digit(printed)


def test_new_numbers_stand_where_the_old_ones_did() -> None:
    page = "At width\n137 ± 4, or\nlater; 137."
    assert replaced(page, "width 137 ± 4,", "width 136 ± 3,") == "At width\n136 ± 3, or\nlater; 137."
    with pytest.raises(ValueError, match="Not found"):
        replaced(page, "width 138", "width 137")


def test_a_value_comes_from_one_row() -> None:
    table = pd.DataFrame({"x": [1, 2, 2], "y": [0.5, 0.25, 0.25]})
    assert value_of(table, "x == 2", "100 * y") == 25
    assert value_of(table, "", "rows @ x > 1") == 2
    assert value_of(table, "", "max x * y") == 0.5
    with pytest.raises(ValueError, match="2 values"):
        value_of(table, "", "y")
    with pytest.raises(ValueError, match="0 values"):
        value_of(table, "x == 7", "y")


def test_numbers_of_a_page_are_those_that_a_reader_sees() -> None:
    assert (
        counted("At 0.31 M, 1,008 runs (2e-4), `--depth 6`, [1 page](a_2.md), d64.\n```sh\nx 5\n```\n") == 4
    )

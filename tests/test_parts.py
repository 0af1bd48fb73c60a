"""Parts of an analysis: what fails is told once, by name, and the others are done."""

import pytest

from shapelaw.errors import PartFailed, Parts, UserError


def raising(error: Exception):
    raise error


def test_a_part_that_fails_has_its_reason_and_its_traceback_is_printed(capsys) -> None:
    parts = Parts()
    assert parts.attempt("table a", lambda: 1) == 1
    assert parts.attempt("table b", lambda: raising(ValueError("three\nlines"))) is None
    assert parts.failed == {"table b": "ValueError: three"}
    assert parts.sentences == ["Failed: table b: ValueError: three."]
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [UserError("Row 3 is wrong."), PartFailed("it needs table b")])
def test_a_mistake_has_no_traceback(error: Exception, capsys) -> None:
    parts = Parts()
    parts.attempt("part", lambda: raising(error))
    assert parts.sentences == [f"Failed: part: {str(error).removesuffix('.')}."]
    assert capsys.readouterr().err == ""


def test_a_part_of_a_part_has_both_names() -> None:
    parts = Parts()
    parts.attempt("table", lambda: parts.each("ab", lambda x: 1 / (x == "a"), lambda x: f"cell {x}"))
    assert parts.failed == {"table, cell b": "ZeroDivisionError: division by zero"}


def test_where_each_fails_the_first_failure_is_that_of_the_whole() -> None:
    parts = Parts()
    with pytest.raises(KeyError, match="a"):
        parts.each("ab", lambda x: raising(KeyError(x)), str)
    assert parts.failed == {}
    assert parts.each([], int, str) == []


def test_a_full_disk_is_no_part_s_own() -> None:
    with pytest.raises(OSError, match="full"):
        Parts().attempt("figure", lambda: raising(OSError("full")))

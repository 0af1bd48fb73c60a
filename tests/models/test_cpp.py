"""Sources in C++, compiled and loaded."""

from pathlib import Path

import pytest

from shapelaw.models.cpp import compiled, compiler, refusal

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")


def test_a_source_is_compiled_with_what_is_defined(tmp_path: Path) -> None:
    source = tmp_path / "seven.cpp"
    source.write_text('extern "C" int answer() { return SIX + 1; }')
    assert compiled(source, str(compiler()), defined={"SIX": 6}).answer() == 7


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("int answer() { return nothing; }")
    why = refusal(lambda: compiled(source, str(compiler())))
    assert why is not None
    assert "nothing" in why
    assert len(why.splitlines()) == 1

    def full() -> None:
        raise OSError("no room")

    assert refusal(full) == "no room"
    source.write_text('extern "C" int answer() { return 1; }')
    assert refusal(lambda: compiled(source, str(compiler()))) is None

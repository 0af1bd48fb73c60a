"""Sources in C++, compiled and loaded."""

import subprocess
from pathlib import Path

import pytest

from shapelaw.models.cpp import compiled, compiler, reason

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")


def test_a_source_is_compiled_with_what_is_defined(tmp_path: Path) -> None:
    source = tmp_path / "seven.cpp"
    source.write_text('extern "C" int answer() { return SIX + 1; }')
    assert compiled(source, str(compiler()), defined={"SIX": 6}).answer() == 7


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("int answer() { return nothing; }")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        compiled(source, str(compiler()))
    assert "nothing" in reason(refused.value)
    assert len(reason(refused.value).splitlines()) == 1
    assert reason(OSError("no room")) == "no room"

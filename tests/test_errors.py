"""How commands end, and parts of an analysis: with a sentence and a code, never with a traceback for a mistake."""

import io
import shlex
import subprocess
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import PYTHON, SCRIPTS

from shapelaw.advice.models.config_json import read_config
from shapelaw.corpora.sources import read_source
from shapelaw.errors import PartFailed, Parts, UserError, exit_code
from shapelaw.fits.inputs import read_table
from shapelaw.settings.sections import Folder


def raising(error: BaseException) -> None:
    raise error


def missing(package: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {package!r}", name=package)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UserError("There is no folder x; correct --results."), "There is no folder x; correct --results.\n"),
        (
            MemoryError("Unable to allocate 70 GiB"),
            "There is too little memory (Unable to allocate 70 GiB); close",
        ),
        (RecursionError("maximum recursion depth"), "What is read is nested too deeply (maximum recursion"),
        (missing("matplotlib.figure"), "pip install '.[fit]'.\n"),
        (missing("flint"), "pip install '.[studies]'.\n"),
    ],
)
def test_a_mistake_is_told_on_standard_error_alone(
    error: Exception, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As are limits of the machine, and a package that is not installed with the command that brings it."""
    assert exit_code(partial(raising, error)) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(("own", "code"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_has_its_own_code(own: int | None, code: int) -> None:
    assert exit_code(lambda: own) == code


@pytest.mark.parametrize("error", [ZeroDivisionError(), missing("shapelaw.nowhere")])  # one of our own
def test_a_bug_is_no_mistake_of_the_user(error: Exception) -> None:
    with pytest.raises(type(error)):
        exit_code(partial(raising, error))


def test_a_name_that_is_not_utf8_is_printed() -> None:
    code = (
        "import os\nfrom shapelaw.errors import exit_code\nexit_code(lambda: print(os.fsdecode(b't\\xe9xt')))"
    )
    environment = {"PYTHONPATH": str(SCRIPTS), "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run([PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("t\\udce9xt\n", "")


def test_what_is_said_last_comes_after_all_else() -> None:
    code = (
        "import sys; from shapelaw.errors import say, say_last\n"
        "say_last('The reason.', 'Another one.'); say('Chatter.'); sys.exit('More chatter.')"
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == ["Chatter.", "More chatter.", "The reason.", "Another one."]


ENDS = {  # how standard output and error are given, and the code with which a command ends that has nothing to say
    "full output": (">/dev/full", 2),
    "full error": ("2>/dev/full", 0),
    "closed output": (">&-", 0),
    "closed error": ("2>&-", 0),
    "both closed": (">&- 2>&-", 0),
    "a reader who has read enough": ("| true", 0),
    "a reader of errors who has": ("2> >(true)", 0),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("work", ["print", "help", "wrong"])
def test_whatever_becomes_of_what_is_printed_the_work_is_done(end: str, work: str, tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib\nfrom shapelaw.errors import *\n"
        "def work():\n"
        "    time.sleep(0.1)\n"
        "    print('a finding\\n' * 2000)\n"
        "    print('a warning\\n' * 2000, file=sys.stderr, flush=True)\n"
        f"    pathlib.Path({str(tmp_path / 'written')!r}).write_text('results')\n"
        f"    if {work == 'help'}: command_line('About.').parse_args(['--help'])\n"
        f"    if {work == 'wrong'}: raise UserError('Wrong.')\n"
        "sys.exit(exit_code(work))"
    )
    given, expected = ENDS[end]
    line = f"set -o pipefail; {PYTHON} -c {shlex.quote(code)} {given}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=SCRIPTS,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.replace("a warning\n", "").strip().splitlines()
    unread = ["What is printed can't be written: No space left on device."] if end == "full output" else []
    heard = "error" not in end and end != "both closed"
    assert said == ((["Wrong."] if work == "wrong" else []) + unread if heard else [])
    assert (tmp_path / "written").read_text() == "results"
    assert done.returncode == (2 if work == "wrong" else expected)


@given(
    st.sampled_from([MemoryError, RecursionError, UserError, KeyboardInterrupt]),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1),
)
def test_whatever_ends_a_command_it_is_one_line_and_a_code(kind: type[BaseException], text: str) -> None:
    said = io.StringIO()
    with redirect_stderr(said):
        code = exit_code(partial(raising, kind(text)))
    assert code == (130 if kind is KeyboardInterrupt else 2)
    assert said.getvalue().count("\n") == 1
    assert "Traceback" not in said.getvalue()


STAND_INS = [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "is a pointer of Git LFS"),
    (b"\xef\xbb\xbf\n<!DOCTYPE html><html><body>404</body></html>", "is a web page, not the file itself"),
]


@pytest.mark.parametrize(("content", "words"), STAND_INS)
@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet", "config.json", "texts.jsonl"])
def test_what_lies_in_the_place_of_a_file_is_named(
    content: bytes, words: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    read: dict[str, Callable[[Path], object]] = {
        "config.json": read_config,
        "texts.jsonl": lambda _: list(read_source(Folder(path=tmp_path), tmp_path)),
    }
    with pytest.raises(UserError, match=words):
        read.get(name, read_table)(tmp_path / name)


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

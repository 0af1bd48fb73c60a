"""How commands end: with a sentence and a code, never with a traceback for the user's mistake."""

import subprocess

import pytest
from small import PYTHON, SCRIPTS

from shapelaw.errors import UserError, exit_code


def wrong() -> None:
    raise UserError("There is no folder x; correct --results.")


def test_a_mistake_is_told_on_standard_error_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(wrong) == 2
    assert capsys.readouterr() == ("", "There is no folder x; correct --results.\n")


@pytest.mark.parametrize(("own", "code"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_has_its_own_code(own: int | None, code: int) -> None:
    assert exit_code(lambda: own) == code


def test_ctrl_c_is_one_line_and_the_usual_code(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert exit_code(interrupted) == 130
    assert capsys.readouterr().err == "Stopped.\n"


def test_a_bug_is_no_mistake_of_the_user() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code(lambda: 1 // 0)


def test_a_sentence_that_finds_no_room_changes_no_code() -> None:
    """Standard error is a log on a full disk."""
    code = (
        "import sys; from shapelaw.errors import exit_code, say\n"
        "sys.exit(exit_code(lambda: say('Some sentence.') or 5))"
    )
    with open("/dev/full", "w") as log:
        done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, stderr=log, check=False)
    assert done.returncode == 5


def test_a_name_that_is_not_utf8_is_printed() -> None:
    code = (
        "import os\nfrom shapelaw.errors import exit_code\nexit_code(lambda: print(os.fsdecode(b't\\xe9xt')))"
    )
    environment = {"PYTHONPATH": str(SCRIPTS), "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run([PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("t\\udce9xt\n", "")


def test_a_reader_who_has_read_enough_is_no_error() -> None:
    code = (
        "import sys; from shapelaw.errors import exit_code\n"
        "def work():\n    for _ in range(10**6): print('a line')\n"
        "sys.exit(exit_code(work))"
    )
    process = subprocess.Popen(
        [PYTHON, "-c", code], cwd=SCRIPTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "a line\n"
    process.stdout.close()
    assert process.wait(60) == 0  # make would call any other code an error
    assert process.stderr.read() == ""


def test_a_package_that_is_not_installed_is_named_with_the_command_that_brings_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    assert exit_code(lambda: work("matplotlib.figure")) == 2
    assert capsys.readouterr().err.endswith("pip install '.[fit]'.\n")
    assert exit_code(lambda: work("flint")) == 2
    assert capsys.readouterr().err.endswith("pip install '.[studies]'.\n")
    with pytest.raises(ModuleNotFoundError):  # one of our own
        exit_code(lambda: work("shapelaw.nowhere"))


def test_what_is_said_last_comes_after_all_else() -> None:
    code = (
        "import sys; from shapelaw.errors import say, say_last\n"
        "say_last('The reason.', 'Another one.'); say('Chatter.'); sys.exit('More chatter.')"
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == ["Chatter.", "More chatter.", "The reason.", "Another one."]

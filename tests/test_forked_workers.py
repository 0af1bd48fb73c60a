"""What forked workers say of tests is what one process would say."""

import os
import subprocess
from pathlib import Path

import pytest
from small import PYTHON, REPOSITORY

CONFTEST = """
import os
import pytest
from made_once import made_once


def make(folder):
    with open(os.environ["MADE"], "a") as made:
        made.write("made;")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    yield made_once(tmp_path_factory, "shared", make)
    assert os.environ.get("ENDS") != "badly", "the session's end"
"""
MANY = """
import os
import time
import warnings
import pytest

ended = []


@pytest.fixture(scope="module")
def own():
    yield
    ended.append("own")


def test_passes(shared, own, tmp_path):
    assert (tmp_path / "nothing").exists() is False


def test_fails():
    print("said", 6 * 7)
    assert [1, 2] == [1, 3]


@pytest.mark.skip(reason="not today")
def test_skipped():
    raise AssertionError


@pytest.mark.xfail
def test_expected_to_fail():
    raise AssertionError


def test_warns():
    class Local(UserWarning):
        pass

    warnings.warn("look out", Local)


@pytest.fixture
def broken():
    raise ValueError("broken fixture")


def test_errs(broken):
    pass
"""
DIES = """
import os
import pytest


def test_before(shared):
    pass


def test_takes_its_process_along(shared):
    os._exit(3)


@pytest.mark.parametrize("number", range(3))
def test_after(shared, number):
    pass
"""


def run_tests(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(REPOSITORY / name) for name in ("tests", "scripts"))
    environment["MADE"] = str(folder / "made")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [PYTHON, "-m", "pytest", "-p", "forked_workers", "-p", "no:cacheprovider", "-rfEs", *options]
    return subprocess.run(
        [*command, "--basetemp", str(folder / "temporary"), str(folder)],
        cwd=folder,
        env={**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of tests that go every way a test can go."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_many.py").write_text(MANY)
    (tmp_path / "test_dies.py").write_text(DIES)
    return tmp_path


def test_every_test_is_run_once_and_told_as_it_went(folder: Path) -> None:
    """The one that takes its process along is a failure, and those after it are run."""
    done = run_tests(folder, "--workers", "2")
    assert done.returncode == 1, done.stderr
    assert "2 failed, 6 passed, 1 skipped, 1 xfailed, 1 warning, 1 error" in done.stdout
    assert "The process of this test ended with exit code 3." in done.stdout
    assert "At index 1 diff: 2 != 3" in done.stdout
    assert done.stdout.count("said 42") == 1
    assert "Local: look out" in done.stdout
    assert "ValueError: broken fixture" in done.stdout
    assert "[1] test_many.py" in done.stdout
    assert (folder / "made").read_text() == "made;"


def test_a_failure_of_the_sessions_end_is_told(folder: Path) -> None:
    (folder / "test_dies.py").unlink()
    done = run_tests(folder, "--workers", "2", "-k", "passes", ENDS="badly")
    assert done.returncode == 1
    assert "the session's end" in done.stdout
    assert "1 passed, 5 deselected, 1 error" in done.stdout


def test_after_the_first_failure_it_can_stop(folder: Path) -> None:
    done = run_tests(folder, "--workers", "2", "-x")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout


def test_wrong_tests_are_told_before_any_is_run(folder: Path) -> None:
    (folder / "test_wrong.py").write_text("import nothing_of_that_name")
    done = run_tests(folder, "--workers", "2")
    assert done.returncode == 2
    assert "1 error during collection" in done.stdout
    assert not (folder / "made").exists()

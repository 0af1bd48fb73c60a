"""The stand-alone command, as a user runs it."""

import json
import os
import signal
import subprocess

import pytest
from small import PYTHON, SCRIPTS


def command(*arguments):
    return subprocess.run(
        [PYTHON, str(SCRIPTS / "memorization_capacity.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_papers_layer():
    done = command("--heads", 20, "--context", 32, "--head-dim", 64)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    rows = {" ".join(line[-2:]): line for line in lines}
    assert "621" in rows["theorem 1"]
    assert "621" in rows["proposition 2"]
    assert "1,261" in rows["proposition 5"]
    assert "2,653" in rows["proposition 3"]
    assert "Warning: A head dimension above 32 adds nothing" in done.stdout


def test_json_with_a_kruskal_rank_and_a_relu_network():
    done = command(
        *("--heads", 4, "--context", 32, "--head-dim", 8, "--width", 40, "--kruskal-rank", 5),
        *("--relu-units", 10, "--outputs", 2, "--json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [(b["examples"], b["lower"], b["source"]) for b in found["bounds"]] == [
        (17, True, "remark 1"),
        (125, False, "proposition 2"),
        (157, False, "proposition 5"),
        (33 * 10 // 2 + 11, False, "proposition 3"),
    ]
    assert found["params"] == 2 * 4 * 40 * 8 + 4 * 40 * 2 + 40 * 2
    assert (found["relu_units"], found["relu_params"]) == (10, (33 * 40 + 1) * 10 + 11 * 2)
    assert len(found["warnings"]) == 2


def test_warnings():
    done = command("--heads", 1, "--context", 64, "--head-dim", 1, "--outputs", 65)
    assert done.returncode == 0
    for words in ("(n < d), and here n = 64 at d = 64", "adds no example", "at most d = 64"):
        assert words in done.stdout
    poor = command("--heads", 1, "--context", 40, "--head-dim", 1, "--width", 50)
    assert "200 parameters do not pay for one ReLU unit" in poor.stdout
    assert "proposition 3" not in poor.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--heads", 0), "heads = 0: sizes must be whole numbers of at least 1."),
        (("--head-dim", 65), "The head dimension 65 is above the width 64"),
        (("--kruskal-rank", 65), "The Kruskal rank 65 is above the width 64"),
        (("--relu-units", 0), "relu_units = 0"),
        (("--outputs", -1), "outputs = -1"),
    ],
)
def test_sizes_that_cannot_be_are_one_sentence_and_exit_code_2(arguments, words):
    done = command("--heads", 4, "--context", 32, "--head-dim", 8, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_it_loads_nothing_heavy():
    code = (
        "import runpy, sys; sys.argv = 'x --heads 4 --context 32 --head-dim 8'.split()\n"
        "try: runpy.run_path('memorization_capacity.py', run_name='__main__')\n"
        "except SystemExit: print([m for m in ('torch', 'scipy', 'pandas', 'pydantic', 'mlflow') if m in sys.modules])"
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does
    sizes = ("--heads", "4", "--context", "32", "--head-dim", "8")
    done = subprocess.run(
        [PYTHON, str(SCRIPTS / "memorization_capacity.py"), *sizes],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")

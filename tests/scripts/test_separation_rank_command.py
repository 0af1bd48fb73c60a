"""The stand-alone command, as a user runs it."""

import json
import subprocess

import pytest
from small import PYTHON, SCRIPTS

from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.separation_rank import LIMIT_BYTES, check_limits, plan


def command(*arguments):
    return subprocess.run(
        [PYTHON, str(SCRIPTS / "separation_rank.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_prototypes_values_in_words():
    done = command("--depth", 2, "--width", 2, "--tokens", 4)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["separation", "rank", "18", "(exact)"]
    rows = {line.split("  ")[-1]: line for line in lines}
    assert "at most" in rows["depth-width, theorem 2"] or "at least" in rows["depth-width, theorem 2"]
    assert " 81 " in rows["depth-width, theorem 3"]


def test_json_of_everything():
    done = command(
        *("--depth", 2, "--width", 4, "--tokens", 4, "--heads", 2, "--attention-dim", 4, "--residual"),
        *("--embedding", "vocabulary", "--vocabulary", 5, "--embedding-rank", 2, "--positional-rank", 1),
        *("--partition", 1, 4, "--position", 3, "--entry", 2, "--json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["kind"] == "linear attention"
    assert found["network"]["partition"] == [1, 4]
    assert (found["rank"], found["exact"], found["templates"]) == (25, True, [25, 25])
    assert found["log3_rank"] == pytest.approx(2.93, abs=0.01)
    assert {b["source"] for b in found["bounds"]} == {"depth-width, theorem 6"}


def test_a_product_network():
    done = command("--product", "--degree", 3, "--depth", 2, "--width", 2, "--json")
    found = json.loads(done.stdout)
    assert (found["kind"], found["rank"], found["exact"], found["bounds"]) == ("product", 30, True, [])


def test_a_mixer():
    done = command("--mixer", "--depth", 1, "--width", 3, "--tokens", 8, "--hidden", 2, "--json")
    found = json.loads(done.stdout)
    assert (found["kind"], found["rank"], found["exact"], found["bounds"]) == ("mixer", 8, True, [])


def test_fewer_templates_than_the_rank():
    done = command("--depth", 2, "--width", 3, "--tokens", 6, "--templates", 30)
    assert done.returncode == 0
    assert "at least 30  (not exact" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--heads", 3), "The width 4 is not divisible by 3 heads"),
        (("--embedding-rank", 5), "The embedding rank 5 is above 4"),
        (("--tokens", 3), "N = 3 tokens is odd"),
        (("--depth", 0), "depth = 0"),
        (("--depth", 5), "smaller network"),
        (("--depth", 6, "--width", 64, "--tokens", 100), "minutes and over 10^100 GiB by estimate"),
        (("--depth", 10**9), "has 477,121,255 digits"),
        (("--limit", 0.00001, 4), "by estimate, above"),
        (("--limit", 0, 4), "must be above zero"),
        (("--templates", 0), "templates = 0"),
        (("--degree", 2), "--degree: only for a product network"),
        (("--product", "--degree", 0), "degree k = 0"),
        (("--product",), "needs a degree"),
        (("--hidden", 3), "--hidden: only for an MLP-Mixer: add --mixer"),
        (("--mixer", "--heads", 2), "--heads: only for linearized attention"),
        (("--mixer", "--product", "--degree", 2), "different kinds of network"),
        (("--mixer", "--hidden", 0), "hidden = 0"),
        (("--product", "--degree", 2, "--residual"), "--residual: only for linearized attention"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_exit_code_2(arguments, words):
    done = command("--depth", 2, "--width", 4, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_longer_measurement_says_its_estimate_first():
    done = command("--depth", 2, "--width", 8, "--tokens", 16, "--limit", 0.01, 4)
    assert done.returncode == 2
    assert "(--templates" in done.stderr
    fitting = done.stderr.split("(--templates ")[1].split()[0]
    network = LinearAttention(2, 8, 16)
    check_limits(network, plan(network, int(fitting)), 0.6, LIMIT_BYTES)
    # with time to spare: the limit is one of the clock too, and other processes may run
    done = command("--depth", 2, "--width", 8, "--tokens", 16, "--limit", 5, 4, "--templates", fitting)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_measurement_that_takes_longer_than_estimated_is_stopped_at_its_limit() -> None:
    """Hours of work, by an estimate that says no time at all."""
    code = (
        "import sys; import shapelaw.theory.separation_rank as s; s.estimate = lambda *_: s.Estimate(0.0, 0.0)\n"
        "import runpy; sys.argv = 'x --depth 3 --width 8 --tokens 16 --templates 100000 --limit 0.1 4'.split()\n"
        "runpy.run_path('separation_rank.py', run_name='__main__')"
    )
    done = subprocess.run(
        [PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert said.startswith(
        "The measurement was stopped after 0.1 minutes, its --limit, longer than estimated: "
    )
    assert "templates of each half give a rank of at least " in said


def test_forced_it_goes_on_and_tells_what_it_finds():
    done = command("--depth", 2, "--width", 5, "--tokens", 10, "--limit", 1e-5, 4, "--force")
    assert done.returncode == 0
    first, *rest = done.stderr.splitlines()
    assert first.startswith("Up to 224 templates of each half: ")
    assert first.endswith(" GiB by estimate.")
    assert rest[0] == "32 templates: the rank is at least 32."
    assert done.stdout.startswith("separation rank  216  (exact)")


def test_it_loads_nothing_heavy():
    code = (
        "import runpy, sys; sys.argv = 'x --depth 1 --width 2'.split()\n"
        "try: runpy.run_path('separation_rank.py', run_name='__main__')\n"
        "except SystemExit: print([m for m in ('torch', 'scipy', 'pandas', 'pydantic', 'mlflow') if m in sys.modules])"
    )
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

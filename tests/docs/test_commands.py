"""Every command that a page shows is carried out: as it stands, with smaller sizes, as a dry run, or elsewhere.

On 2026-11-27: 178 different commands. Of Python 33 as they stand, 29 with smaller sizes (`SMALLER`), 42 elsewhere
(`ELSEWHERE` with reasons, `OF_TABLES`), 2 that only name a program; of Snakemake 9 really, 45 as dry runs, 5 as plans;
16 of make as its dry runs, two of them to their end too; 2 of pytest, which are these tests.

In carried_out.yaml `smaller` and `elsewhere` hold what costs minutes, a card, a cluster or a network. A test fails
where one of their entries stands for no command of a page any longer.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pytest
import yaml
from golden_tables import COMMANDS, words_of
from job_server import run_snakemake, warm_python
from page_commands import Shown, shown_commands
from readers_folder import make_checkout, make_clone
from small import REPOSITORY

from page_tables import MADE
from shapelaw.corpora.token_store import TokenStore
from shapelaw.studies.registry import STUDIES

Words = tuple[str, ...]


_LISTED = yaml.safe_load((Path(__file__).parent / "carried_out.yaml").read_text(encoding="utf-8"))
SMALLER, ELSEWHERE, MADE_BY, SAID = (_LISTED[name] for name in ("smaller", "elsewhere", "made_by", "said"))
# analyses whose tables other tests make: tests/test_tables.py those of the first, test_page_tables.py the others
OF_TABLES = {*COMMANDS.values(), *map(words_of, MADE.values())}
# words that name a program and run nothing
ITSELF = {("shapelaw",), ("shapelaw", "transitions"), ("shapelaw", "fit")}


def starts(command: Words, start: str) -> bool:
    """Whether a command begins with these words."""
    first = tuple(shlex.split(start))
    return command[: len(first)] == first


def smaller(command: Words) -> Words:
    """The command with the options that make it small, if it needs any."""
    further = next((options for start, options in SMALLER.items() if starts(command, start)), "")
    return command if "--help" in command else (*command, *shlex.split(further))


def elsewhere(command: Words) -> bool:
    """Whether a command is not run here."""
    return _analysis(command) in OF_TABLES or any(starts(command, start) for start in ELSEWHERE)


def _analysis(command: Sequence[str]) -> Words:
    """The words of `python scripts/...` as tests of tables have them: without folder, and without --out FOLDER."""
    words = list(command[1:])
    if "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    return (Path(words[0]).name, *words[1:]) if words else ()


Done = subprocess.CompletedProcess[str]
SHOWN = shown_commands()
# each once, with what a page says behind it where one does
DISTINCT = list({one.words: one for one in sorted(SHOWN, key=lambda one: bool(one.comment))}.values())
REALLY = {"plan", "--unlock"}  # of Snakemake's, what takes no longer than a dry run
LARGE = "scale=paper"  # a plan in place of a dry run of 2,000 runs, which workflow/test_planned_jobs.py does


def of(*programs: str) -> list[Shown]:
    return [one for one in DISTINCT if one.words[0] in programs]


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


RUN_HERE = [one for one in of("python", "shapelaw") if not elsewhere(one.words)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone")
    make_clone(folder)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, stores: tuple[TokenStore, TokenStore]) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    make_checkout(folder, stores)
    return folder


@pytest.fixture(scope="module")
def carry_out(checkout: Path) -> Callable[[Shown], Done]:
    """Run a command of Python in a reader's folder, after those that make its files; each once."""
    done = dict[Words, Done]()

    def run(shown: Shown) -> Done:
        words = smaller(shown.words)
        if words not in done:
            for path, maker in MADE_BY.items():
                if path in words[2:] and not (checkout / path).exists() and not starts(words, maker):
                    run(next(one for one in DISTINCT if starts(one.words, maker)))
            done[words] = start(words, shown.environment, checkout)
        return done[words]

    return run


def start(words: Words, environment: tuple[str, ...], folder: Path) -> Done:
    """`shapelaw` is started as the command that `make env` writes does it."""
    variables = dict(one.replace("$PWD", str(folder)).split("=", 1) for one in environment)
    if words[0] == "shapelaw":
        words = ("python", "scripts/shapelaw/cli.py", *words[1:])
        variables["PYTHONPATH"] = "scripts"
    return subprocess.run(
        [str(warm_python()), *words[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def shown_output(shown: Shown) -> list[str]:
    """The lines that the page shows as what the command prints."""
    pattern = r"```sh\n([^\n]*)\n```\n\n```(?:text)?\n(.*?)```"
    for command, lines in re.findall(pattern, text_of(shown.page), re.DOTALL):
        if tuple(shlex.split(command, comments=True)) == shown.words:
            return [line for line in lines.splitlines() if line != "..."]
    return []


def numbers_of(comment: str) -> list[str]:
    """The numbers at the beginning of what a page says of a command, with the word behind them."""
    said = comment.partition(";")[0]
    return (
        re.findall(r"\d[\d,.]*(?:e\d+)?(?: \w+)?", said) if said[:1].isdigit() and "CPU" not in said else []
    )


@pytest.mark.slow
@pytest.mark.parametrize("shown", RUN_HERE, ids=str)
def test_a_command_does_what_its_page_says(shown: Shown, carry_out: Callable[[Shown], Done]) -> None:
    done = carry_out(shown)
    if shown.words in ITSELF:
        assert done.returncode == 2
        assert "usage:" in done.stdout + done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    said = [word for start, word in SAID.items() if starts(shown.words, start)]
    if smaller(shown.words) == shown.words:
        said += shown_output(shown) + numbers_of(shown.comment)
    assert [one for one in said if one not in done.stdout] == []


def started(shown: Shown) -> tuple[str, ...]:
    """Snakemake's arguments: those shown, braces taken apart as a shell does, and what makes it a dry run."""
    arguments = [one for word in shown.words[1:] for one in in_braces(word)]
    if LARGE in arguments and not REALLY & set(arguments):
        arguments.insert(0, "plan")
    return (*arguments, *(() if REALLY & set(arguments) else ("-n",)), "--quiet", "rules")


def in_braces(word: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`; a mapping in quotes, which has blanks, is itself."""
    parts = re.split(r"\{([^{}\s]*,[^{}\s]*)\}", word)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(one) for one in product(*choices)]


def asked_studies(shown: Shown) -> set[str]:
    """The studies that a command names, as rules or in its config."""
    names = re.findall(r"\w+", " ".join(one for one in shown.words if one.startswith("studies=")))
    return {name for word in (*names, *shown.words) for name in re.split(r"/", word) if name in STUDIES}


@pytest.mark.slow
@pytest.mark.parametrize("shown", of("snakemake"), ids=str)
def test_snakemake_plans_what_the_page_shows(shown: Shown, clone: Path) -> None:
    done = run_snakemake(started(shown), clone, {**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stdout + done.stderr
    planned = re.findall(r"^([a-z_]+)(?: +\d+|: [\d,]+ runs)", done.stdout, re.MULTILINE)
    if not any(f"results/{made}/" in word for made in ("runs", "corpora") for word in shown.words):
        assert asked_studies(shown) <= set(planned)
    if REALLY & set(shown.words):
        assert [one for one in numbers_of(shown.comment) if one not in done.stdout] == []


@pytest.mark.slow
@pytest.mark.parametrize("shown", of("make"), ids=str)
def test_make_knows_what_to_do(shown: Shown, clone: Path) -> None:
    done = subprocess.run(
        ["make", "-n", *shown.words[1:]], cwd=clone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
def test_make_status_and_a_wrong_port_say_what_their_pages_say(clone: Path) -> None:
    """The two targets that end by themselves and take no minutes, with the commands that make names for them."""
    begun = ("results/depth_width/keys.txt", "--quiet", "rules")
    assert run_snakemake(begun, clone, dict(os.environ)).returncode == 0
    for target, code, said in (
        (("status",), 0, "depth_width: 0 of 18 runs done"),
        (("ui", "PORT=99999"), 2, "--port is 99999; a port is a number from 1 to 65535: make ui PORT=5001"),
    ):
        named = subprocess.run(
            ["make", "--no-print-directory", "-n", *target],
            cwd=clone,
            capture_output=True,
            text=True,
            check=True,
        )
        done = start(tuple(shlex.split(named.stdout.splitlines()[-1])), (), clone)
        assert done.returncode == code
        assert said in done.stdout + done.stderr


@pytest.mark.parametrize("shown", of("pytest"), ids=str)
def test_the_tests_of_a_page_are_some_of_these(shown: Shown) -> None:
    assert all((REPOSITORY / word).exists() for word in shown.words if word.startswith("tests/"))


def test_the_pages_show_commands() -> None:
    assert len(DISTINCT) > 150
    assert {one.page for one in SHOWN} >= {"README.md", "docs/cluster.md", "docs/gpu.md"}


def test_nothing_is_excused_that_no_page_shows() -> None:
    shown = [one.words for one in DISTINCT]
    for begin in (*SMALLER, *SAID, *ELSEWHERE, *MADE_BY.values()):
        assert any(starts(words, begin) for words in shown), f"no page shows: {begin}"
    assert set(shown) >= ITSELF


def test_what_a_command_must_say_is_on_its_page() -> None:
    for begin, word in SAID.items():
        pages = [text_of(one.page) for one in SHOWN if starts(one.words, begin)]
        assert any(word in page for page in pages), f"{begin}: {word}"

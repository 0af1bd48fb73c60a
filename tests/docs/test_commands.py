"""Every command that a page shows is one that the project has, with options that it takes.

Commands are parsed, not run: they train for hours, or read files of the reader's own. Pages whose output is quoted
have tests that run them (test_answer.py, test_numbers.py).
"""

import argparse
import json
import re
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from commands import run_here
from page_commands import Shown, shown_commands
from small import REPOSITORY

from shapelaw.cli import COMMANDS, SCRIPTS, SNAKEMAKE, arguments_of
from shapelaw.settings.loading import layered
from shapelaw.studies.config import load_config
from shapelaw.studies.registry import STUDIES

SHOWN = shown_commands()
GOLDEN = REPOSITORY / "tests" / "golden"  # has the files of every study and scale
RULES = [
    name
    for path in (REPOSITORY / "workflow" / "rules").glob("*.smk")
    for name in re.findall(r"^ *rule (\w+):", path.read_text(), re.MULTILINE)
]
OF_WILDCARDS = re.compile(
    r"results/(corpora/\w+/V\d+/(train|test|\{train,test\})\.json|runs/\w+/\w+/summary\.json)"
)
VALUED = (
    "--profile",
    "--configfile",
    "--cores",
    "--jobs",
    "-j",
    "--forcerun",
    "--report",
    "--sdm",
)  # of Snakemake

PAIRED = ("--groups", "--group-components")  # of Snakemake; followed by names and values, name=value


class Parsed(Exception):
    """The arguments were accepted."""


def parse(script: Path, arguments: list[str], folder: Path) -> None:
    """Let a script read its arguments, and stop there."""
    original = argparse.ArgumentParser.parse_args

    def stop(self: argparse.ArgumentParser, *given: object, **named: object) -> None:
        original(self, *given, **named)  # type: ignore[arg-type]
        raise Parsed

    assert script.is_file(), f"{script} does not exist"
    with patch.object(argparse.ArgumentParser, "parse_args", stop):
        try:
            done = run_here(script, *arguments, cwd=folder)
        except Parsed:
            return
    assert "--help" in arguments, done.stderr or f"{script.name} has read no arguments"
    assert done.returncode == 0


def of(program: str) -> list[Shown]:
    return [shown for shown in SHOWN if shown.words[0] == program]


def test_the_pages_show_commands() -> None:
    assert len(SHOWN) > 120
    assert {shown.page for shown in SHOWN} >= {"README.md", "docs/cluster.md", "docs/gpu.md"}


@pytest.mark.slow  # imports what the commands import
@pytest.mark.parametrize("shown", of("python"), ids=str)
def test_python_s_options_are_those_of_the_script(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, *arguments = shown.words[1:]
    if script in ("-c", "-m"):
        return
    if Path(script).parts[0] == "tests":  # tools of the developers, which take names of scales
        assert (REPOSITORY / script).is_file()
        return
    monkeypatch.syspath_prepend(str(REPOSITORY / "tests"))
    if arguments:
        parse(REPOSITORY / script, arguments, tmp_path)
    else:  # named, not called
        assert (REPOSITORY / script).is_file()


@pytest.mark.parametrize("shown", of("shapelaw"), ids=str)
def test_shapelaw_s_are_among_its_commands(shown: Shown, tmp_path: Path) -> None:
    if shown.words[1:] in ((), ("--help",), ("COMMAND",)):
        return
    name, *given = shown.words[1:]
    command = COMMANDS[name]
    if command.script != SNAKEMAKE:
        parse(SCRIPTS / f"{command.script}.py", arguments_of(command, given), tmp_path)


@pytest.mark.parametrize("shown", of("make"), ids=str)
def test_make_has_the_target(shown: Shown) -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert {word for word in shown.words[1:] if "=" not in word} <= set(targets)


@pytest.mark.parametrize("shown", of("snakemake"), ids=str)
def test_snakemake_finds_the_target_and_the_config_is_right(shown: Shown, tmp_path: Path) -> None:
    words, overrides, targets = list(shown.words[1:]), {}, []
    while words:
        word = words.pop(0)
        if word in VALUED:
            words.pop(0)
        elif word in PAIRED:
            while words and "=" in words[0]:
                words.pop(0)
        elif word == "--config":
            while words and re.match(r"\w+=", words[0]):
                key, _, value = words.pop(0).partition("=")
                overrides[key] = yaml.safe_load(value)
        elif not word.startswith("-") and "<" not in word:
            targets.append(word)
    corpus = overrides.get("corpus", {})
    for source in corpus.get("sources", []):  # a folder of the reader's own
        folder = tmp_path / source.removeprefix("folder:")
        folder.mkdir()
        (folder / "page.txt").write_text("Some text of the reader's own. " * 50)
    values = layered([REPOSITORY / "config.yaml"], overrides)
    load_config(values, REPOSITORY / "workflow" / "scales", tmp_path)
    jobs = json.loads((GOLDEN / f"jobs-{values['scale']}.json").read_text())
    known = {*RULES, *STUDIES, *(name for job in jobs.values() for name in job.get("names", ()))}
    for target in targets:
        assert target in known or OF_WILDCARDS.fullmatch(target), f"no rule makes {target}"

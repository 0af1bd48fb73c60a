"""The command line of Snakemake: its mistakes as sentences, where Snakemake itself answers with a traceback.

profiles/default calls `check`, before Snakemake reads these options. Everything else in the config is checked once
Snakemake reads the Snakefile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from shapelaw.errors import UserError, say
from shapelaw.settings.loading import read_values

_CONFIG = ("--config", "-C")
FILES = ("--configfile", "--configfiles")


def command_line_problems(arguments: Sequence[str]) -> list[str]:
    """A sentence for each mistake in the arguments of `--config` and `--configfile`."""
    pairs = list(values_of(arguments, _CONFIG))
    unquoted = " ".join(pairs)
    key, equals, value = unquoted.partition("=")
    is_one_pair = len(pairs) > 1 and equals and "=" not in value
    if is_one_pair and value.startswith(("{", "[")) and not _yaml_problem(value):
        return [f"--config has spaces; put quotes around them: --config {key}='{value}'"]
    problems = [problem for pair in pairs for problem in _pair_problems(pair)]
    keys = [pair.partition("=")[0] for pair in pairs]
    problems += [f"--config has {key} twice; leave one out." for key in _repeated(keys)]
    files = list(values_of(arguments, FILES))
    targets = [name for name in files[1:] if _is_target(name)]
    if targets:
        problems.append(
            f"--configfile takes several files, and {' '.join(targets)} is none; a target goes before it: "
            f"snakemake {' '.join(targets)} --configfile {files[0]}"
        )
    for name in [one for one in files if one not in targets]:
        try:
            read_values(Path(name))
        except UserError as error:
            problems.append(str(error))
    return problems


def check(arguments: Sequence[str]) -> None:
    """Check the command line; where it has mistakes, say them and exit with code 2."""
    if problems := command_line_problems(arguments):
        say("\n".join(problems))
        sys.exit(2)


def values_of(arguments: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """What follows an option, up to the next one."""
    inside = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("-"):
            inside = name in names
            if inside and equals:
                yield value
        elif inside:
            yield argument


def _is_target(name: str) -> bool:
    """Whether a name is that of a file of results or of a rule, not of a config."""
    ending = Path(name).suffix
    return ending not in (".yaml", ".yml", ".json") or (ending == ".json" and name.startswith("results"))


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for place, name in enumerate(names) if name in names[:place]})


def _pair_problems(pair: str) -> Iterator[str]:
    """What is wrong with one KEY=VALUE of `--config`."""
    key, equals, value = pair.partition("=")
    if not equals:
        if "/" in pair or Path(pair).suffix:
            yield f"--config has {pair}, which is not KEY=VALUE; a target goes before --config: snakemake {pair} ..."
        else:
            yield (
                f"--config has {pair}, which is not KEY=VALUE; a value with spaces goes into quotes: "
                "--config training='{steps: 2000}'"
            )
    elif "." in key:
        *sections, last = key.split(".")
        inner = f"{last}: {value}"
        for section in reversed(sections[1:]):
            inner = f"{section}: {{{inner}}}"
        yield f"--config has {pair}; a key inside of a section goes into braces: --config {sections[0]}='{{{inner}}}'"
    elif len(key) < 2 or not key.isidentifier():
        yield f"--config has {pair}; a key is a name such as scale: --config scale=demo"
    elif not value.strip("'\" "):
        yield f"--config has {pair} without a value: --config {key}=VALUE"
    elif value.startswith(("{", "[")) and (reason := _yaml_problem(value)):
        yield f"--config has {pair}, which is not YAML ({reason}); put quotes around it: --config {key}='{{...}}'"


def _yaml_problem(text: str) -> str:
    """Why a text is no YAML; empty where it is."""
    try:
        yaml.safe_load(text)
    except yaml.YAMLError as error:
        return str(getattr(error, "problem", None) or "it does not end")
    return ""

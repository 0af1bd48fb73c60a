"""The problems of a config as sentences: the key's path, what is wrong, and what would be right.

Those of a single key follow from its type; others no single key shows: keys that contradict each other, missing files,
impossible runs.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ValidationError

from shapelaw.errors import UserError, did_you_mean
from shapelaw.settings.sections import (
    TEXT_SUFFIXES,
    AnySection,
    Folder,
    Settings,
    Texts,
    files_below,
    parse_source,
)
from shapelaw.specs.cost import read_cost_model
from shapelaw.specs.runs import FALL_PARTS, Training

_Model = type(BaseModel)

_PATTERNS = {  # what would be right for a key with a pattern
    "corpus.name": "use lower-case letters, digits and underscores; it names a folder in results/",
    "tracking.uri": "a tracking URI begins with its kind, such as sqlite:///, http:// or postgresql://",
    "grids": "a grid's name has lower-case letters, digits and underscores, and begins with a letter",
    "corpora": "a corpus's name has lower-case letters, digits and underscores",
}


_QUOTED = re.compile("'([^']*)'")
_TYPES = {  # what would be right for a value of another type
    "model_type": "it must be keys with values, such as {{{example}}}",
    "dict_type": "it must be keys with values in braces, such as {{1: [16, 32]}}",
    "list_type": "it must be a list, such as [a, b]",
    "invalid_key": "keys are words; a list is written in brackets, such as depth: [1, 2]",
    "too_short": "give it at least {min_length} value{s}",
    "finite_number": "it must be a number",
    "literal_error": "it must be {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "it must be a number"),
    "bool_type": "it must be true or false",
    "string_type": "it must be a text",
    "greater_than_equal": "it must be at least {ge:,}",
    "greater_than": "it must be above {gt:,}",
    "less_than_equal": "it must be at most {le:,}",
    "less_than": "it must be below {lt:,}",
    "multiple_of": "it must be a multiple of {multiple_of}",
}


def sentence(error: Any, whole: type[BaseModel]) -> str:
    """One of pydantic's errors as a sentence: the key's path, what is wrong, what would be right.

    Places in lists are counted from one: `studies.1st`.

    Args:
        error: one of `ValidationError.errors()`.
        whole: model of the whole config.
    """
    where = _path(error["loc"], whole)
    if error["type"] == "extra_forbidden":
        return f"{where} is not a key{_nearest_key(error['loc'], whole)}"
    if error["type"] == "missing":
        return f"{where} is missing"
    patterns = _PATTERNS.get(where, _PATTERNS.get(str(error["loc"][0])))
    message = patterns if error["type"] == "string_pattern_mismatch" else None
    return f"{where} is {_shown(where, error['input'])}: {message or what_is_right(error, whole)}"


def add_keys(parser: ArgumentParser, model: type[BaseModel], names: Iterable[str]) -> None:
    """Add keys of a section as options of a command line, whose values `checked` reads."""
    for name in names:
        key = model.model_fields[name]
        allowed = get_args(key.annotation) if get_origin(key.annotation) is Literal else ()
        said = key.description if key.default is None else f"{key.description} (default: %(default)s)"
        shown = f"{{{','.join(allowed)}}}" if allowed else None
        parser.add_argument(f"--{name.replace('_', '-')}", default=key.default, metavar=shown, help=said)


def checked(model: type[AnySection], values: Mapping[str, Any]) -> AnySection:
    """A section of the values of a command line.

    Raises:
        UserError: some are wrong; the message has a sentence for each.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        said = (sentence(one, model).partition(" ") for one in error.errors())
        raise UserError("\n".join(f"--{key.replace('_', '-')} {rest}." for key, _, rest in said)) from error


def what_is_right(error: Any, whole: type[BaseModel]) -> str:
    """The clause on what would be right in place of a value, such as `it must be at least 1`; arguments as above."""
    if error["type"] not in _TYPES:
        return str(error["msg"][0].lower() + error["msg"][1:])
    section = _model_at(error["loc"], whole)
    example = f"{next(iter(section.model_fields))}: ..." if isinstance(section, _Model) else ""
    bounds = {"min_length": 1, **error.get("ctx", {})}
    plural = "" if bounds["min_length"] == 1 else "s"
    near = did_you_mean(error["input"], _QUOTED.findall(bounds.get("expected", "")))
    return _TYPES[error["type"]].format(example=example, s=plural, **bounds) + near


def ordinal(place: int) -> str:
    """A place in a list as people count: 0 is 1st."""
    number = place + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _shown(path: str, value: object) -> str:
    """A wrong value as it was written; hidden where it could hold a secret."""
    text = repr(value)
    return "***" if path.startswith("tracking") and ("@" in text or "?" in text) else text


def _path(location: tuple[Any, ...], whole: type[BaseModel]) -> str:
    """Where a value is, as `grids.vocabulary.2nd.widths.1`: the second block's widths of depth 1."""
    parts, kind = [], cast(Any, whole)
    for part in location:
        if _is_tag(part):
            kind = _inside(kind, part)
            continue
        in_list = isinstance(part, int) and get_origin(kind) is list
        parts.append(ordinal(part) if in_list else str(part))
        kind = _inside(kind, part)
    return ".".join(parts)


def _model_at(location: tuple[Any, ...], whole: type[BaseModel]) -> Any:
    """The type of the value at a place; None where it is not known."""
    return reduce(_inside, location, whole)


def _is_tag(part: object) -> bool:
    """True for a part of a place that nobody wrote: pydantic's `[key]`, or the tag of one of several spellings."""
    return str(part).startswith("[")


def _inside(kind: Any, part: object) -> Any:
    """The type of what is at a key or a place of a value of some type, without null; None where it is not known.

    Of a type with several spellings the first is taken; the tag `[blocks]` stands for a list of it.
    """
    if _is_tag(part):
        return list[kind] if part == "[blocks]" else kind
    if isinstance(kind, _Model):
        field = kind.model_fields.get(str(part))
        found = field.annotation if field else None
    else:
        found = get_args(kind)[-1] if get_origin(kind) in (list, dict) else None
    while get_origin(found) in (Annotated, Union, UnionType):
        found = next((one for one in get_args(found) if one is not type(None)), None)
    return found


def _nearest_key(location: tuple[Any, ...], whole: type[BaseModel]) -> str:
    """What is known where a key is not, after the nearest one; for a key of a section, how it is written."""
    key, section = str(location[-1]), _model_at(location[:-1], whole)
    head, dot, rest = key.partition(".")
    if section is whole and dot and head in whole.model_fields:
        return f"; write it inside of the section: {head}: {{{rest.replace('.', ': {')}: ...{'}' * rest.count('.')}}}"
    known = ["scale", *whole.model_fields] if section is whole else list(section.model_fields)
    inside = _section_with(key, whole) if section is whole else ""
    near = f" (did you mean {inside}.{key}?)" if inside else did_you_mean(key, known)
    return f"{near}; known here: {', '.join(known)}"


def _section_with(key: str, whole: type[BaseModel]) -> str:
    """The first section of the config that has a key; empty where none has."""
    sections = {name: _inside(whole, name) for name in whole.model_fields}
    return next(
        (name for name, one in sections.items() if isinstance(one, _Model) and key in one.model_fields), ""
    )


def listed(problems: list[str]) -> str:
    """All problems as one text, a line each."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"The config has {count}:", *(f"  - {problem}" for problem in problems)])


Place = Callable[[str], str]  # from a key of `training` to its path in the config
_SCHEME = re.compile("[a-z+0-9]+://")  # that a tracking URI begins with
_SECRET_NAMES = ("pass", "pwd", "token", "secret")  # parts of names in a URI's query


def common_problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem of the common sections that no single key shows.

    Args:
        root: folder that relative paths are relative to.
    """
    problems = corpus_problems("corpus", config.corpus, root)
    for name, texts in config.corpora.items():
        problems += corpus_problems(f"corpora.{name}", texts, root)
        if name == config.corpus.name:
            problems.append(
                f"corpora.{name} has the name of corpus, whose sources are {', '.join(config.corpus.sources)}; give "
                "one of them another name"
            )
    if config.execution.cost_model is not None:
        try:
            read_cost_model(root / config.execution.cost_model)
        except UserError as error:
            problems.append(f"execution.cost_model: {error}")
    problems += uri_problems("tracking.uri", config.tracking.uri)
    return problems + recipe_problems(config, lambda key: f"training.{key}", config.training.spec())


def corpus_problems(where: str, texts: Texts, root: Path) -> list[str]:
    """A sentence for each source and folder of a corpus, at `where` in the config, that can't be used."""
    problems = [
        problem for source in texts.sources for problem in source_problems(f"{where}.sources", source, root)
    ]
    if texts.gpt2_files is not None and not (root / texts.gpt2_files).is_dir():
        problems.append(
            f"{where}.gpt2_files is {texts.gpt2_files}, which is not a folder; name that of GPT-2's vocab.json and "
            "merges.txt, or leave it out"
        )
    if texts.gpt2_files is not None and texts.trains_50257:
        problems.append(
            f"{where}.gpt2_files is set and {where}.tokenizer_50257 is trained; leave one of them out"
        )
    return problems


def recipe_problems(config: Settings, place: Place, training: Training) -> list[str]:
    """A sentence for each problem of a recipe, whose keys are at `place` in the config."""
    problems = []
    if training.precision == "bfloat16" and config.execution.gpus == 0:
        problems.append(
            f"{place('precision')} is bfloat16 and execution.gpus is 0: bfloat16 is several times slower than float32 "
            "on a CPU; use float32, or set execution.gpus to 1"
        )
    if training.schedule == "redecayed" and training.evaluate_every < FALL_PARTS:
        problems.append(
            f"{place('evaluate_every')} is {training.evaluate_every} and {place('schedule')} is redecayed: the rate "
            f"falls to zero in the last fifth before each test; set evaluate_every to {FALL_PARTS} or more"
        )
    if training.parametrization == "completep" and training.optimizer == "adam" and training.weight_decay:
        problems.append(
            f"{place('parametrization')} is completep and {place('optimizer')} is adam with a weight decay of "
            f"{training.weight_decay:g}, which adam adds to gradients that get smaller with the depth; set optimizer "
            "to adamw, or weight_decay to 0"
        )
    if training.warmup_steps >= training.steps:
        problems.append(
            f"{place('warmup_steps')} is {training.warmup_steps}, not below {place('steps')} ({training.steps}); "
            "a tenth of the steps is usual"
        )
    return problems


def source_problems(key: str, line: str, root: Path) -> list[str]:
    """A sentence where a source's line is wrong, its folder doesn't exist or has no text; names are not looked up."""
    try:
        source = parse_source(line)
        if not isinstance(source, Folder):
            return []
        folder = root / source.path
        if not folder.is_dir():
            problem = f"{key} has {line!r}, but there is no folder {folder}"
            if "," in line:
                problem += "; an option is text_column=COLUMN, other commas belong to the name"
            return [problem]
        if all(kind for _, kind in files_below(folder)):
            return [f"{key} has {line!r}, but {folder} has no {', '.join(TEXT_SUFFIXES)} file, at any depth"]
    except UserError as error:
        return [f"{key}: {str(error)[0].lower()}{str(error)[1:].removesuffix('.')}"]
    return []


def uri_problems(key: str, uri: str | None) -> list[str]:
    """A sentence where a tracking URI is malformed or holds a secret, which command lines and logs would show.

    Args:
        key: what it is the value of: a key of the config, whose secrets are shown, or a variable of the environment.
        uri: the URI; None or empty where there is none.
    """
    wrong = f"{key} is not a URI, such as sqlite:///results/mlflow.db or http://host:5000"
    try:
        parts = urlsplit(uri or "")
    except ValueError:  # without the URI, which may hold a password
        return [wrong]
    if uri and not _SCHEME.match(uri):
        return [wrong]
    if key != "tracking.uri":
        return []
    names = [name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    token = parts.scheme in ("http", "https") and parts.username  # some servers take one as the user's name
    if parts.password or token or any(part in name for name in names for part in _SECRET_NAMES):
        return [
            "tracking.uri holds a password or a token, which command lines and logs would show; leave it out and set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or MLFLOW_TRACKING_TOKEN) in the environment, or "
            "set tracking.uri to null and put the whole URI into the environment as MLFLOW_TRACKING_URI"
        ]
    return []

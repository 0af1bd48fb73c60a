"""The problems of a config as sentences: the key's path, what is wrong, and what would be right."""

from __future__ import annotations

import difflib
import re
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel

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
    """Where a value is, as `vocabulary.grids.2nd.widths.1`: the second grid's widths of depth 1."""
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
    kind: Any = whole
    for part in location:
        kind = _inside(kind, part)
    return kind


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
    return f"{did_you_mean(key, known)}; known here: {', '.join(known)}"


def did_you_mean(word: object, known: list[str]) -> str:
    """A hint at the known word nearest to a wrong one, as ` (did you mean X?)`; empty where none is near."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def nearest(word: object, known: list[str]) -> str:
    """The known word nearest to a wrong one; empty where none is near."""
    return next(iter(difflib.get_close_matches(str(word), known, n=1)), "")


def listed(problems: list[str]) -> str:
    """All problems as one text, a line each."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"The config has {count}:", *(f"  - {problem}" for problem in problems)])

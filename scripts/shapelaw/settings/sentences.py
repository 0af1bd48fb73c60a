"""The problems of a config as sentences: the key's path, what is wrong, and what would be right."""

from __future__ import annotations

import difflib
from typing import Any, get_args, get_origin

from pydantic import BaseModel

_PATTERNS = {  # what would be right for a key with a pattern
    "corpus.name": "use lower-case letters, digits and underscores; it names a folder in results/",
    "tracking.uri": "a tracking URI begins with its kind, such as sqlite:///, http:// or postgresql://",
}


def sentence(error: Any, whole: type[BaseModel]) -> str:
    """One of pydantic's errors as a sentence: the key's path, what is wrong, what would be right.

    Args:
        error: one of `ValidationError.errors()`.
        whole: model of the whole config.
    """
    path = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        known = _known_keys(error["loc"][:-1], whole)
        return f"{path} is not a key{did_you_mean(error['loc'][-1], known)}; known here: {', '.join(known)}"
    if error["type"] == "missing":
        return f"{path} is missing"
    message = _PATTERNS.get(path) if error["type"] == "string_pattern_mismatch" else None
    return (
        f"{path} is {_shown(path, error['input'])}: {message or error['msg'][0].lower() + error['msg'][1:]}"
    )


def _shown(path: str, value: object) -> str:
    """A wrong value as it was written; hidden where it could hold a secret."""
    text = repr(value)
    return "***" if path.startswith("tracking") and ("@" in text or "?" in text) else text


def _known_keys(path: tuple[Any, ...], whole: type[BaseModel]) -> list[str]:
    model: Any = whole
    for part in path:  # a field's name or an index
        kind = model.model_fields[part].annotation if isinstance(part, str) else model
        model = get_args(kind)[0] if get_origin(kind) is list else kind
    keys = list(model.model_fields)
    return ["scale", *keys] if model is whole else keys


def did_you_mean(word: object, known: list[str]) -> str:
    """A hint at the known word nearest to a wrong one, as ` (did you mean X?)`; empty where none is near."""
    found = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def listed(problems: list[str]) -> str:
    """All problems as one text, a line each."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"The config has {count}:", *(f"  - {problem}" for problem in problems)])

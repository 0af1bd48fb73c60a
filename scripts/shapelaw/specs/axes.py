"""Axes: what runs may differ in, each told once, beside the field of `Run`, `Shape` or `Training` that holds it.

From an axis follow the config's key with its bounds and sentence, the part of a run's key, the column of tables and its
usual names in tables of others, and how groups of comparable runs are named. Their order is that of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

Kinds = type[int] | type[float] | type[str]


@dataclass(frozen=True)
class Axis:
    """What the field of a spec means, for all who read it.

    Attributes:
        meaning: a sentence or two, for the config.
        unit: the unit of a number.
        ge, gt, lt, le: bounds of a number: at least, above, below, at most; a whole number is at least 1 unless `ge`
            is another.
        key: its part in a run's key where it is not at its default: `r{}`; empty: none.
        title: what a table's header calls it; empty: its name.
        symbol: the papers' letter, by which names have its value: `V = 500`.
        words: how else a value is read in names: `{:,} steps`; with neither it is `NAME = VALUE`.
        null: the meaning of null, in words: `full rank`.
        synonyms: its usual names in tables of others, separated by spaces.
        follows: in a grid it may follow from depth and width; else what differs in it is never compared as equal.
        splits: it tells groups of comparable runs apart even in a grid that doesn't list it.
        column: tables of runs have it.
        original: specs of the first records have it, so that it stays in a spec at its default too; all later ones are
            left out there, which keeps the digests of older runs.
        default: of the field; `...` is none.
        name, annotation: of the field; `axes_of` fills them in.
    """

    meaning: str
    unit: str = ""
    ge: float | None = None
    gt: float | None = None
    lt: float | None = None
    le: float | None = None
    key: str = ""
    title: str = ""
    symbol: str = ""
    words: str = ""
    null: str = ""
    synonyms: str = ""
    follows: bool = False
    splits: bool = True
    column: bool = True
    original: bool = False
    default: Any = ...
    name: str = ""
    annotation: Any = None

    @property
    def kind(self) -> Kinds:
        """The type of its values in a table."""
        return kind_of(self.annotation)

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that it has, by name."""
        return {name: at for name in ("ge", "gt", "lt", "le") if (at := getattr(self, name)) is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name and its synonyms."""
        return self.name, *self.synonyms.split()

    def said(self, value: Any) -> str:
        """A value as it is read: `V = 500`, `full rank`, `4,000 steps`."""
        if value is None:
            return self.null or f"no {self.name}"
        if self.words or not self.symbol:
            return (self.words or f"{self.name} = {{}}").format(value)
        return f"{self.symbol} = {value:,}"

    @property
    def phrase(self) -> str:
        """Its name in a sentence: `vocabulary`."""
        return self.title or self.name.replace("_", " ")

    @property
    def header(self) -> str:
        """Its name above a column: `vocabulary V`."""
        return f"{self.phrase} {self.symbol}".rstrip()


axis: Callable[..., Any] = Axis  # what a field of any type is set to
Spec = TypeVar("Spec")


@dataclass_transform(field_specifiers=(axis,), frozen_default=True)
def with_axes(*, kw_only: bool = False) -> Callable[[type[Spec]], type[Spec]]:
    """Make a frozen dataclass of a class whose fields are set to axes."""

    def made(spec: type[Spec]) -> type[Spec]:
        for name, value in list(vars(spec).items()):
            if isinstance(value, Axis):
                default = MISSING if value.default is ... else value.default
                setattr(spec, name, field(default=default, metadata={"axis": value}))
        return dataclass(frozen=True, kw_only=kw_only)(spec)

    return made


def kind_of(annotation: Any) -> Kinds:
    """The type of an annotated field's values in a table; true and false are texts there."""
    kind = next(part for part in (*get_args(annotation), annotation) if part is not type(None))
    return kind if kind in (int, float) else str


def axes_of(spec: type) -> dict[str, Axis]:
    """The axes of a spec by name, in the order of its fields; those of a field that is a spec itself in its place."""
    return {axis.name: axis for axis in _axes_of(spec)}


def _axes_of(spec: type) -> Iterator[Axis]:
    hints = get_type_hints(spec)
    for one in fields(spec):
        kind, found = hints[one.name], one.metadata.get("axis")
        if found is not None:
            least = 1 if found.ge is None and kind_of(kind) is int else found.ge
            yield replace(found, name=one.name, annotation=kind, ge=least)
        elif isinstance(kind, type) and is_dataclass(kind):
            yield from _axes_of(kind)

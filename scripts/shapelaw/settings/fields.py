"""The types of a config's keys, with their bounds and units, and the base class of every section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from shapelaw.specs.axes import axes_of


def _whole(unit: str, least: int = 1, most: int | None = None) -> Any:
    """A whole number of `unit`, for `Annotated`."""
    return Field(ge=least, le=most, json_schema_extra={"unit": unit})


def _positive(unit: str) -> Any:
    """A number of `unit`, for `Annotated`."""
    return Field(gt=0, json_schema_extra={"unit": unit})


MOST_STEPS, MOST_TOKENS = 10**9, 2**20  # above those of any published run: a slip of the keyboard

Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, _whole("steps", most=MOST_STEPS)]
Examples = Annotated[int, _whole("examples")]
Tokens = Annotated[int, _whole("tokens", most=MOST_TOKENS)]
Vocabulary = Annotated[int, _whole("tokens", least=257, most=2**24)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Seeds = Annotated[int, Field(ge=1, le=1000)]
Bytes = Annotated[int, _whole("bytes")]
Seconds = Annotated[float, _positive("seconds")]
Minutes = Annotated[float, _positive("minutes")]
Hours = Annotated[float, _positive("hours")]
Rate = Annotated[float, _positive("FLOP/s")]
Sizes = Annotated[list[Count], Field(min_length=1)]
Widths = dict[Count, Sizes]  # depth: widths
SizeAxisName = Annotated[
    Literal["block", "total", "flops"],
    Field(
        description="The size at which networks are compared: parameters of the blocks (`block`), all parameters "
        "(`total`) or FLOPs of a training step (`flops`)."
    ),
]
TokenCounts = Annotated[list[Tokens], Field(min_length=1)]
ExampleCounts = Annotated[list[Examples], Field(min_length=1)]
_WORDS = {"true": True, "false": False, "null": None}
AnySection = TypeVar("AnySection", bound="Section")


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # the grids' models are built once, within Config, at every start of the Snakefile
    )

    @model_validator(mode="before")
    @classmethod
    def _as_spelled(cls, values: Any) -> Any:
        """Turn texts that spell a number, true, false or null into those values, unless their field takes texts.

        YAML reads 1e-3 as a text, and Snakemake passes the inside of `--config training='{steps: 60}'` on as texts.
        """
        if not isinstance(values, Mapping):
            return values
        known = cls.model_fields
        return {
            key: _as_meant(known[key].annotation, value) if key in known else value
            for key, value in values.items()
        }


def section_of(spec: type, base: type[AnySection], name: str) -> type[AnySection]:
    """A section whose keys are the axes of a spec, each with its meaning, unit and bounds.

    Args:
        spec: a dataclass of annotated fields.
        base: base class of the section, with its methods.
        name: name of the section's model.
    """
    keys: dict[str, Any] = {}
    for axis in axes_of(spec).values():
        kind: Any = axis.annotation
        bounds: Any = axis.bounds
        if type(None) in get_args(kind):  # bounds apply to the number, not to null
            number = next(part for part in get_args(kind) if part is not type(None))
            kind, bounds = Annotated[number, Field(**bounds)] | None, {}
        extra: Any = {"unit": axis.unit} if axis.unit else None
        keys[axis.name] = (
            kind,
            Field(axis.default, description=axis.meaning, json_schema_extra=extra, **bounds),
        )
    return create_model(name, __base__=base, __doc__=spec.__doc__, **keys)


def _as_meant(kind: Any, value: Any) -> Any:
    """The value of a field of this type, from what a text may spell."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return value  # its own fields are converted by its own model
    if _takes_text(kind):
        return None if value == "null" and type(None) in get_args(kind) else value
    return plain_values(value)


def _takes_text(kind: Any) -> bool:
    """True for a type of texts, of lists of texts, or of a choice between texts."""
    return kind is str or get_origin(kind) is Literal or any(map(_takes_text, get_args(kind)))


def plain_values(value: Any) -> Any:
    """The value with texts that spell numbers, true, false or null turned into those."""
    if isinstance(value, Mapping):
        return {plain_values(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    if not isinstance(value, str):
        return value
    if value in _WORDS:
        return _WORDS[value]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value

"""The grid language in the config: blocks of axes, each a field of shape, recipe or corpus with its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from shapelaw.settings import sections
from shapelaw.specs.runs import AXES, BUDGETS, Training
from shapelaw.specs.shapes import Shape

Positive = Annotated[float, Field(gt=0)]


class Ratio(sections.Section):
    """The dimension of a head as a rule: the width of all heads together over that of the network, H d_a / d."""

    ratio: Positive = Field(description="H d_a / d; 1.333 stands for 4 / 3.")

    def __str__(self) -> str:
        return f"of ratio {self.ratio:g}"


EQUAL_PARAMS = "equal_params"
OF_TOKENS = "embedding_rank"
OF_ATTENTION = "4 * heads * attention_dim"


def _spelled(rule: str, kind: Any, ratio: str = "") -> Any:
    """A whole number, null, a rule or another kind of value; all else is one problem, and not one for each spelling."""
    what = f"a whole number{ratio} or {rule}"

    def checked(given: Any) -> Any:
        value = sections.plain_values(given)
        of = value.get("ratio") if ratio and isinstance(value, Mapping) and len(value) == 1 else None
        if isinstance(of, int | float) and 0 < of < math.inf:
            return Ratio(ratio=of)
        if value is None or value == rule or isinstance(value, Ratio) or (type(value) is int and value > 0):
            return value
        raise PydanticCustomError("rule", "it must be {what}", {"what": what})

    return Annotated[kind | Literal[rule] | None, BeforeValidator(checked)]


FIELDS_OF = "x-fields-of"  # in a model's JSON schema: where the reference explains its fields
BY_DEPTH = ("learning_rate", "steps")  # also a table by depth
_SPELLED: dict[str, Any] = {  # axes whose values a config bounds more tightly, or spells by a rule too
    "vocab_size": sections.Vocabulary,
    "context_length": sections.Tokens,
    "attention_dim": _spelled(EQUAL_PARAMS, sections.Count | Ratio, ", {ratio: 4}"),
    "ff_width": _spelled(OF_ATTENTION, sections.Count),
    "positional_rank": _spelled(OF_TOKENS, sections.Count),
}
_BUDGETS = {
    name: (Positive, f"A training's {unit}, in place of `steps`.") for name, (_, unit) in BUDGETS.items()
}
_HEAD_DIM = (
    sections.Count | None,
    "Dimension of one head. Without `heads` there are as many as share the width; null is width / heads.",
)
_BLOCK_PARAMS = (
    Positive,
    "Parameters of the blocks, in place of `width`, which follows for each depth: so that depths are paired in "
    "size to 2% where heads allow, else as near as they do.",
)


def _fields_of_spec(spec: type) -> dict[str, tuple[Any, str]]:
    """The fields of a spec, with their types and bounds, and what they mean."""
    found: dict[str, tuple[Any, str]] = {}
    for name, key in sections.section_of(spec, sections.Section, spec.__name__).model_fields.items():
        kind: Any = Annotated[(key.annotation, *key.metadata)] if key.metadata else key.annotation
        found[name] = _SPELLED.get(name, kind), key.description or ""
    return found


# fields of a grid in the order in which its runs stand, of which the last changes fastest: first what makes a network
# but for its depth and width, then these, then what changes no network's size
_OF_SHAPE, RECIPE_AXES = _fields_of_spec(Shape), _fields_of_spec(Training)
BEFORE = {"corpus": (str, AXES["corpus"].meaning)} | {
    name: field
    for name, field in _OF_SHAPE.items()
    if name not in ("depth", "width", "base_width", "base_attention_dim")
}
AFTER = {"base_width": _OF_SHAPE["base_width"]} | _BUDGETS | RECIPE_AXES
ALL_AXES = {
    **BEFORE,
    "head_dim": _HEAD_DIM,
    "depth": _OF_SHAPE["depth"],
    "block_params": _BLOCK_PARAMS,
    "width": _OF_SHAPE["width"],
    **AFTER,
}
_NULLABLE = {
    name
    for name, (kind, _) in ALL_AXES.items()
    if any(type(None) in get_args(part) for part in (kind, *get_args(kind)))
}


def _as_list(value: Any) -> Any:
    """A single value as a list of one."""
    return value if isinstance(value, list) else [value]


def _once(values: list[Any]) -> list[Any]:
    """Refuse a value that a list has twice."""
    for twice in (value for place, value in enumerate(values) if value in values[:place]):
        said = "null" if twice is None else twice
        raise PydanticCustomError("twice", "{value} stands there twice; leave one out", {"value": said})
    return values


def _one(value: Any) -> Any:
    """Refuse a list where one value belongs."""
    if isinstance(value, list):
        raise PydanticCustomError("several", "several values go into axes; here stands one")
    return value


def _table_or_value(value: Any) -> str:
    return "[table]" if isinstance(value, Mapping) else "[value]"


def _block_or_blocks(value: Any) -> str:
    return "[blocks]" if isinstance(value, list) else "[block]"


def _list_of(_: str, kind: Any) -> Any:
    as_list = BeforeValidator(_as_list, json_schema_input_type=list[kind] | kind)
    return Annotated[list[kind], as_list, AfterValidator(_once), Field(min_length=1)] | None


def _single_of(name: str, kind: Any) -> Any:
    if name not in BY_DEPTH:
        return Annotated[kind, BeforeValidator(_one)] | None
    table = Annotated[dict[sections.Count, kind], Field(min_length=1), Tag("[table]")]
    either = Annotated[kind, Tag("[value]")] | table
    return Annotated[either, Discriminator(_table_or_value), BeforeValidator(_one)] | None


def _fields_of(kind_of: Callable[[str, Any], Any]) -> dict[str, Any]:
    return {
        name: (kind_of(name, kind), Field(None, description=meaning))
        for name, (kind, meaning) in ALL_AXES.items()
    }


class Given(sections.Section):
    """Fields of a run, those that are given: null can be a value. A dump has these alone."""

    @model_serializer(mode="wrap")
    def _given(self, dump: Any) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}

    def values(self) -> dict[str, Any]:
        """What the keys that are given say, in the order of the axes; null is a value of those that can be null."""
        found = {name: getattr(self, name) for name in ALL_AXES if name in self.model_fields_set}
        return {name: value for name, value in found.items() if value is not None or name in _NULLABLE}


class Fields(Given):
    """Fields that have a table of their own in the reference, under another section."""

    model_config = ConfigDict(json_schema_extra={FIELDS_OF: "grids"})

    def values(self) -> dict[str, Any]:
        """The values of each axis that is given; null alone is a list of it."""
        return {name: [None] if value is None else value for name, value in super().values().items()}


Axes: type[Fields] = create_model(
    "Axes",
    __base__=Fields,
    __doc__="Any of the fields of `grids` from `corpus` on, each with a list of values, or one.",
    **_fields_of(_list_of),
)


class BlockKeys(Given):
    """The keys of a block that are no fields of a run."""

    axes: Axes = Field(default_factory=Axes, description="What varies: every combination is trained.")
    leave_out: list[Axes] = Field(
        [], description="Combinations that are not wanted, as far as given: `{depth: 2, heads: [4, 8]}`."
    )
    impossible: Literal["refuse", "leave_out"] = Field(
        "refuse",
        description="What becomes of combinations that make no network: all are reported, or left out.",
    )
    seeds: sections.Seeds = Field(1, description="Runs of every network, with seeds 0, 1, ...")
    repeated: sections.Widths = Field(
        {}, description="Shapes, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise."
    )
    repeated_seeds: sections.Seeds = Field(3, description="Runs of each shape of `repeated`.")
    size_axis: sections.SizeAxisName = "block"
    widths: Annotated[sections.Widths, Field(min_length=1)] | None = Field(
        None, description="Shapes as `depth: [widths]`, in place of the axes depth and width."
    )
    grid_file: str | None = Field(
        None, description="The same as a CSV file with columns depth and width; others are ignored."
    )


GridBlock: type[BlockKeys] = create_model(
    "GridBlock",
    __base__=BlockKeys,
    __doc__="A block of a grid: all combinations of its axes; what stands beside `axes` has one value for all.",
    **_fields_of(_single_of),
)
NAME_PATTERN = "^[a-z][a-z0-9_]*$"
GridName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=64)]
OneOrMore = Annotated[
    Annotated[GridBlock, Tag("[block]")] | Annotated[list[GridBlock], Field(min_length=1), Tag("[blocks]")],
    Discriminator(_block_or_blocks),
]
Grids = dict[GridName, OneOrMore]

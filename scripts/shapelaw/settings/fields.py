"""The types of a config's keys, with their bounds and units, and the base class of every section.

The budget of a grid of decoders, and learning rates that follow the width, are keys of several sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from shapelaw.errors import UserError
from shapelaw.specs.runs import Budget, Training
from shapelaw.specs.shapes import Shape


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


class HeadDim(Section):
    """The number of heads as a rule."""

    dim: Count = Field(description="Dimension of one head; it must divide every width.")


def _as_heads(value: Any) -> Any:
    """Heads as a number or a rule, so that anything else is one problem and not one of each."""
    if isinstance(value, HeadDim):
        return value
    number = plain_values(value["dim"] if isinstance(value, Mapping) and set(value) == {"dim"} else value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError("give a number of heads such as 2, or their dimension as {dim: 64}")
    return HeadDim(dim=number) if isinstance(value, Mapping) else number


Heads = Annotated[Count | HeadDim, BeforeValidator(_as_heads)]


def section_of(spec: type, base: type[AnySection], name: str) -> type[AnySection]:
    """A section whose keys are the fields of a spec, each with the meaning, unit and bounds of its `KeyDoc`.

    Args:
        spec: a dataclass of annotated fields.
        base: base class of the section, with its methods.
        name: name of the section's model.
    """
    keys: dict[str, Any] = {}
    hints = get_type_hints(spec, include_extras=True)
    for one in fields(spec):
        kind, key_doc = get_args(hints[one.name])
        bounds = {
            key: value for key in ("ge", "gt", "lt", "le") if (value := getattr(key_doc, key)) is not None
        }
        extra = {"unit": key_doc.unit} if key_doc.unit else None
        default = ... if one.default is MISSING else one.default
        if type(None) in get_args(kind):  # bounds apply to the number, not to null
            inner = next(part for part in get_args(kind) if part is not type(None))
            kind, bounds = Annotated[inner, Field(**bounds)] | None, {}
        keys[one.name] = (
            kind,
            Field(default, description=key_doc.description, json_schema_extra=extra, **bounds),
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


Positive = Annotated[float, Field(gt=0)]


class BudgetKeys(Section):
    """How long the networks of a grid are trained; exactly one key."""

    steps: Steps | None = Field(None, description="The same steps for every network, as in the papers.")
    tokens_per_param: Positive | None = Field(
        None,
        description="Tokens for every parameter of a network, embeddings too; about 20 is compute-optimal.",
    )
    tokens_per_block_param: Positive | None = Field(
        None,
        description="Tokens for every parameter of the blocks: equal tokens at equal blocks, whatever the vocabulary.",
    )
    flops: Positive | None = Field(None, description="The same training FLOPs for every network.")

    @property
    def given(self) -> dict[str, float]:
        """The keys that are set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}

    @property
    def budget(self) -> Budget:
        """The budget of keys without problems."""
        ((kind, amount),) = self.given.items()
        return Budget(kind, amount)  # type: ignore[arg-type]


def budget_problems(keys: BudgetKeys, where: str) -> list[str]:
    """A sentence where a budget, at `where` in the config, is missing or given twice."""
    given = [f"{where}.{name}" for name in keys.given]
    if not given:
        return [f"{where} is empty; give it one of steps, tokens_per_param, tokens_per_block_param and flops"]
    if len(given) == 1:
        return []
    return [f"{', '.join(given)} are set together, and one alone decides the steps; leave the others out"]


class Rates(Section):
    """The learning rate of each width, where it is not one for all."""

    by_width: dict[Count, Positive] | None = Field(
        None, description="A table, `width: peak learning rate`, with every width of the grid."
    )
    rule: Literal["width"] | None = Field(
        None,
        description="`width` scales with base_width / width, as in muP: the rates of the blocks' matrices and the "
        "logits, with the root of it their initialisation; `training.learning_rate` is that of `base_width`.",
    )
    base_width: Count | None = Field(None, description="The width whose learning rate is known, for `rule`.")

    def training(self, training: Training, width: int) -> Training:
        """The recipe of a width.

        Raises:
            UserError: the table of rates misses it.
        """
        if self.by_width is None:
            return training
        if width not in self.by_width:  # of a grid file, which is read late
            raise UserError(f"{no_rate(width, 'rates')}.")
        return replace(training, learning_rate=self.by_width[width])


def no_rate(width: int, where: str) -> str:
    """A sentence on a width that a table of rates misses."""
    return f"{where}.by_width has no rate for width {width}; give every width of the grid one"


def scaled(shape: Shape, base_width: int | None, heads: int | HeadDim) -> Shape:
    """The shape with its rates, initialisation and outputs scaled from a base width that has heads by the same rule."""
    if base_width is None:
        return shape
    base_dim = base_width // heads if isinstance(heads, int) else None
    return replace(shape, base_width=base_width, base_attention_dim=base_dim)


def rate_problems(rates: Rates, widths: Iterable[int], where: str) -> list[str]:
    """A sentence for each problem of the rates: a rule without its base, a width without its rate."""
    problems = []
    if rates.rule is not None and rates.base_width is None:
        problems.append(
            f"{where}.rule is {rates.rule} without base_width; give the width whose rate training.learning_rate is, "
            "such as base_width: 128"
        )
    if rates.rule is None and rates.base_width is not None:
        problems.append(
            f"{where}.base_width is {rates.base_width} without a rule; add rule: width, or leave it out"
        )
    if rates.by_width is not None:
        if rates.rule is not None:
            problems.append(f"{where}.by_width and {where}.rule are both set; leave one of them out")
        absent = sorted(set(widths) - set(rates.by_width))
        problems += [no_rate(width, where) for width in absent]
    return problems


def base_problems(base_width: int | None, heads: int | HeadDim, where: str) -> list[str]:
    """A sentence where the heads don't divide a base width."""
    of_heads = heads if isinstance(heads, int) else heads.dim
    if base_width is None or base_width % of_heads == 0:
        return []
    what = f"{heads} heads" if isinstance(heads, int) else f"heads of dimension {of_heads}"
    return [f"{where} {base_width} is not divisible by {what}; use a multiple of {of_heads}"]

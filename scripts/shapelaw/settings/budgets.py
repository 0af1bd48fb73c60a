"""The config's budget of a grid of decoders, and the learning rates that follow their width."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from shapelaw.errors import UserError
from shapelaw.settings.fields import Count, HeadDim, Section, Steps
from shapelaw.specs.budgets import Budget
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import Shape

Positive = Annotated[float, Field(gt=0)]


class BudgetKeys(Section):
    """How long the networks of a grid are trained; exactly one key."""

    steps: Steps | None = Field(None, description="The same steps for every network, as in the papers.")
    tokens_per_param: Positive | None = Field(
        None,
        description="Tokens for every parameter of a network, embeddings too; about 20 is compute-optimal.",
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
        return [f"{where} is empty; give it one of steps, tokens_per_param and flops"]
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

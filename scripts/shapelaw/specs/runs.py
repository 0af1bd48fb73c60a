"""A language model's training run: a frozen spec with a readable key. It holds what decides the result, nothing else.

How a run is executed (device, threads, micro-batches, compile) is not part of it. The other kinds of run stand in
`shapelaw.specs.kinds`; digests and checks of numbers are the same for all of them. A network is trained for so many
steps, tokens in proportion to its parameters or those of its blocks, or so many operations (`Budget`).
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

from shapelaw.specs.axes import axes_of, axis, with_axes
from shapelaw.specs.making import depth_scaling_sentence
from shapelaw.specs.shapes import Shape


def digest_of(spec: Mapping[str, Any]) -> str:
    """A hash of plain JSON values that doesn't depend on the order of keys."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


def without_later(spec: Any, later: Container[str]) -> dict[str, Any]:
    """The fields of a dataclass and of its parts, without `later` ones at their defaults: older digests stay."""
    found = ((field, getattr(spec, field.name)) for field in fields(spec))
    return {
        field.name: without_later(value, later) if is_dataclass(value) else value
        for field, value in found
        if field.name not in later or value != field.default
    }


class Keyed(ABC):
    """A run's key and digest, which follow from its label and its spec.

    Attributes:
        KIND: the `kind` in its spec; None for language models, whose specs have no such key.
        VERSION: raised when a change of the code changes what a spec trains to.
        PARTS: the classes of the fields that are specs themselves.
        LATER: options that came later than the first records, those of its parts among them: a spec has them only where
            they are used, so that the digests of older runs stay.
    """

    KIND: ClassVar[str | None] = None
    VERSION: ClassVar[int]
    PARTS: ClassVar[Mapping[str, Callable[..., Any]]]
    LATER: ClassVar[Container[str]]

    @property
    @abstractmethod
    def label(self) -> str:
        """What a person looks for; two runs can share it."""

    def to_dict(self) -> dict[str, Any]:
        """The run as plain JSON values."""
        kind = {} if self.KIND is None else {"kind": self.KIND}
        return {**kind, "training_version": self.VERSION, **without_later(self, self.LATER)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; other keys, such as the version, are ignored.

        Raises:
            TypeError: a field is missing, or one of a part's is unknown.
        """
        spec: Any = cls
        given = {one.name: values[one.name] for one in fields(spec) if one.name in values}
        parts = {name: part(**given[name]) for name, part in cls.PARTS.items() if name in given}
        return cls(**given | parts)

    @cached_property
    def digest(self) -> str:
        """A hash of the whole spec: two runs with the same one are the same run."""
        return digest_of(self.to_dict())

    @cached_property
    def key(self) -> str:
        """Its name everywhere, unique: the label and eight digits of the digest, `wiki-V2000-...-s0-3f2a9c01`."""
        return f"{self.label}-{self.digest[:8]}"


BudgetKind = Literal["steps", "tokens_per_param", "tokens_per_block_param", "flops"]
# of budgets but steps: the unit in a run's key, and in words
BUDGETS = {
    "tokens_per_param": ("tpp", "tokens per parameter"),
    "tokens_per_block_param": ("tpb", "tokens per block parameter"),
    "flops": ("flops", "FLOPs"),
}


@dataclass(frozen=True)
class Budget:
    """What is equal for all networks that are compared.

    Attributes:
        kind: "steps" are those of the papers; "tokens_per_param" counts all parameters (20 is compute-optimal by
            Hoffmann et al. 2022); "tokens_per_block_param" those of the blocks, so that networks with equal blocks see
            equal tokens whatever their vocabulary; "flops" the operations of all steps.
        amount: steps, tokens per parameter, or operations.
    """

    kind: BudgetKind
    amount: float

    def steps(self, shape: Shape, batch_size: int) -> int:
        """The optimizer steps of a shape, to the nearest whole one."""
        if self.kind == "steps":
            return round(self.amount)
        if self.kind == "flops":
            return max(1, round(self.amount / shape.step_flops(batch_size)))
        params = shape.total_params if self.kind == "tokens_per_param" else shape.block_params
        return max(1, round(self.amount * params / (batch_size * shape.context_length)))

    @property
    def tag(self) -> str:
        """Its part of a run's key: `20tpp`, `100tpb`, `1e15flops`; empty for steps, which every key has."""
        if self.kind == "steps":
            return ""
        amount = f"{self.amount:.6g}".replace("+", "")
        return amount + BUDGETS[self.kind][0]

    @property
    def name(self) -> str:
        """`4,000 steps`, `20 tokens per parameter`, `100 tokens per block parameter`, `1e+15 FLOPs`."""
        if self.kind == "steps":
            return f"{self.amount:,.0f} steps"
        return f"{self.amount:.6g} {BUDGETS[self.kind][1]}"


# raise it when a change of the code changes what a spec trains to: every run is then trained again
TRAINING_VERSION = 2  # 2: attention by batched products on a CPU
Parametrization = Literal["standard", "completep"]
FALL_PARTS = 5  # a redecayed rate falls in the last of so many parts of the steps between two test losses


# of the recipe, and in the first records: no new axis is
_original = partial(axis, splits=False, original=True)


@with_axes()
class Training:
    """The training recipe of every decoder."""

    steps: int = axis(
        "Optimizer steps of a run.",
        "steps",
        le=10**9,
        words="{:,} steps",
        synonyms="train_steps max_steps num_steps n_steps total_steps max_iters",
        follows=True,
    )
    batch_size: int = axis(
        "Windows of `context_length` tokens in a step, over all devices.",
        "sequences",
        le=2**20,
        synonyms="global_batch_size",
        follows=True,
    )
    optimizer: Literal["adam", "adamw", "muon"] = _original(
        "`adamw` decouples weight decay from the gradient; `adam` adds it to the gradient; `muon` (Jordan et al. "
        "2024) makes updates of the blocks' matrices orthogonal, as large as AdamW's (Liu et al. 2025) so that its "
        "rates serve, and leaves the rest to `adamw`.",
        default="adamw",
        synonyms="optim",
    )
    learning_rate: float = axis(
        "Peak learning rate, reached at the end of the warm-up; a cosine to zero follows.",
        default=1.6e-3,
        gt=0,
        key="lr{}",
        words="rate {:g}",
        synonyms="lr peak_lr max_lr",
        follows=True,
        original=True,
    )
    beta1: float = _original(
        "Adam's decay rate of the mean of gradients.", default=0.9, ge=0, lt=1, synonyms="adam_beta1"
    )
    beta2: float = _original(
        "Adam's decay rate of the mean of squared gradients.",
        default=0.999,
        ge=0,
        lt=1,
        synonyms="adam_beta2",
    )
    weight_decay: float = _original(
        "Weight decay of matrices and embeddings; biases and norms have none.",
        default=0.01,
        ge=0,
        key="wd{}",
        synonyms="wd",
    )
    warmup_steps: int = _original(
        "Steps of the linear warm-up; fewer than `steps`.",
        "steps",
        default=0,
        ge=0,
        synonyms="warmup warmup_iters warmup_ratio num_warmup_steps lr_warmup_steps",
    )
    gradient_clip: float | None = _original(
        "Largest norm of the gradient; null leaves gradients as they are.",
        default=None,
        gt=0,
        synonyms="grad_clip max_grad_norm grad_clip_norm",
    )
    dropout: float = _original(
        "Probability that an embedding, an attention weight or an output of a branch is set to zero.",
        default=0.0,
        ge=0,
        lt=1,
        key="do{}",
        synonyms="dropout_rate",
    )
    precision: Literal["float32", "bfloat16"] = _original(
        "Number format of matrix products; `bfloat16` needs a GPU, weights stay in float32.",
        default="float32",
    )
    schedule: Literal["cosine", "constant", "redecayed"] = axis(
        "Learning rate after the warm-up: `cosine` to zero at the end; `constant`; or `redecayed`, constant but "
        "for the last fifth before every test loss, in which it falls to zero.",
        default="cosine",
        key="{}",
        synonyms="lr_schedule",
    )
    parametrization: Parametrization = axis(
        "What follows the depth L: `standard`, GPT-2's initial output weights of a branch times 1 / sqrt(2 L); or "
        "`completep` (Dey et al. 2025), every branch times 1 / L and Adam's epsilon in the blocks too, so that one "
        "learning rate serves every depth, and with a base width every width.",
        default="standard",
        key="{}",
    )
    log_every: int = _original(
        "Steps between two rows of a run's history.", "steps", default=100, column=False
    )
    evaluate_every: int = _original(
        "Steps between two test losses; the end always has one.", "steps", default=1000, column=False
    )
    test_sequences: int = axis(
        "Windows of the test set over which a test loss is the mean, the same for every run.",
        "sequences",
        default=1000,
        column=False,
        original=True,
    )


@with_axes()
class Run(Keyed):
    """One training run on a corpus. It belongs to no study: studies that ask for the same run share it.

    Attributes:
        budget: what its steps follow from; None where they are given.
    """

    corpus: str = axis(
        "Name of a corpus: that of `corpus`, or one of `corpora`.", words="{}", synonyms="dataset"
    )
    shape: Shape
    training: Training
    seed: int = axis(
        "Of initial weights and batches.",
        ge=0,
        synonyms="random_seed rng_seed manual_seed replicate repeat repetition",
        splits=False,
    )
    budget: Budget | None = axis("What its steps follow from.", default=None, words="{}", null="equal steps")
    VERSION = TRAINING_VERSION
    PARTS: ClassVar = {"shape": Shape, "training": Training, "budget": Budget}

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return self.training.steps

    @property
    def total_params(self) -> int:
        """All parameters."""
        return self.shape.total_params

    @cached_property
    def step_flops(self) -> int:
        """Operations of one training step."""
        return self.shape.step_flops(self.training.batch_size)

    @property
    def history_rows(self) -> int:
        """Rows of its history, at most."""
        return self.steps // self.training.log_every + 1

    @property
    def label(self) -> str:
        """What a person looks for: `wiki-V2000-L6-d128-H2-t1000-s0` (t: steps), and options not at their defaults.

        Two runs can share it: the context length and most of the recipe aren't shown.
        """
        parts = {"corpus": self.corpus} | _key_parts(self.shape) | _key_parts(self.training)
        if self.shape.attention_width == self.shape.width:
            del parts["attention_dim"]
        if self.shape.base_attention_dim is not None:
            parts["base_width"] += f"a{self.shape.base_attention_dim}"
        if self.budget is not None:
            parts["budget"] = self.budget.tag
        return "-".join([*parts.values(), f"t{self.training.steps}", f"s{self.seed}"])

    def flat(self) -> dict[str, Any]:
        """The run without sections, with the sizes that follow from it; None is a full rank or an unused option."""
        values = self.to_dict()
        return {
            "corpus": self.corpus,
            "seed": self.seed,
            **values["shape"],
            **values["training"],
            **({} if self.budget is None else {"budget": self.budget.name}),
            "block_params": self.shape.block_params,
            "total_params": self.total_params,
            "step_flops": self.step_flops,
        }


def recipe_sentence(shape: Shape, training: Training) -> str:
    """A sentence, without its full stop, where a shape can't be trained by a recipe; else empty."""
    scaled = "base_width" if shape.base_width is not None else "parametrization"
    is_scaled = shape.base_width is not None or training.parametrization != "standard"
    if training.optimizer == "muon" and is_scaled:
        return f"optimizer is muon, and {scaled} scales the rates of Adam; leave one of them out"
    return depth_scaling_sentence(shape.block, training.parametrization)


AXES = axes_of(Run)
Run.LATER = {name for name, one in AXES.items() if not one.original}
_KEYED = {spec: {name: one for name, one in axes_of(spec).items() if one.key} for spec in (Shape, Training)}


def phrase_of(axis: str) -> str:
    """What an axis, or a rule that is one in a grid (`budget`), is called in a sentence."""
    return AXES[axis].phrase if axis in AXES else axis.replace("_", " ")


def _key_parts(part: Shape | Training) -> dict[str, str]:
    """The parts of a key by axis: of values that are not at their defaults."""
    return {
        name: axis.key.format(_decimal(value) if isinstance(value, float) else value)
        for name, axis in _KEYED[type(part)].items()
        if (value := getattr(part, name)) != axis.default
    }


def _decimal(number: float) -> str:
    """A number without an exponent, whose minus would look like the end of a part."""
    return f"{number:.12f}".rstrip("0").rstrip(".")

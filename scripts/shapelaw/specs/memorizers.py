"""A memorization run: one attention layer that learns the labels of random examples by heart.

Mahdavi et al. 2024, "Memorization Capacity of Multi-Head Attention in Transformers", eqs. 1-6 and section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from shapelaw.specs.runs import Keyed

# raise it when a change of the code changes what a spec trains to
MEMORIZER_VERSION = 1
# a head is saturated for an example if its largest softmax coefficient is above (appendix H)
SATURATED_WEIGHT = 0.99
Task = Literal["classification", "regression"]
ContextType = Literal["shared", "per_example"]
LastBatch = Literal["filled", "short"]
LogitScale = Literal["none", "head_dim", "width"]


@dataclass(frozen=True)
class Memorizer:
    """One multi-head attention layer over n context tokens and a query, with an embedding and a read-out.

    Attributes:
        heads: H.
        context: n, tokens that the query attends to.
        head_dim: d_h of keys and queries, independent of width / heads.
        width: d, also of the raw inputs.
        value_dim: d_v of each head; None means d, as in the theory. The authors' code has 1.
        outputs: d_out: the number of classes, or 1 for a regression.
        logit_scale: divisor of the logits: 1 (eq. 1), sqrt(d_h), or sqrt(d) (the authors' code).
        attend_to_query: the query is one of the keys too (self-attention); the authors' code masks it.
    """

    heads: int
    context: int
    head_dim: int
    width: int = 64
    value_dim: int | None = None
    outputs: int = 100
    logit_scale: LogitScale = "none"
    attend_to_query: bool = False

    @property
    def values(self) -> int:
        """d_v, with the default filled in."""
        return self.width if self.value_dim is None else self.value_dim

    @property
    def scale(self) -> float:
        """The factor of the logits."""
        divisor = {"none": 1, "head_dim": self.head_dim, "width": self.width}[self.logit_scale]
        return 1 / math.sqrt(divisor)

    @property
    def total_params(self) -> int:
        """All parameters: embedding, W_Q, W_K, W_V, W_O, read-out, and the two biases."""
        d, width = self.width, self.heads * (2 * self.head_dim + 2 * self.values)
        return d * (d + 1) + d * width + (d + 1) * self.outputs


@dataclass(frozen=True)
class MemorizationRun(Keyed):
    """One model, its random examples, and how it is trained: Adam, a linear warm-up, a cosine to zero.

    Attributes:
        task: labels uniform over `outputs` classes (cross-entropy), or one number uniform in [0, 1) (squared error).
        context_type: one context for all examples (section 5.2), or one each (appendix I.1).
        examples: T.
        steps: optimizer steps; an upper bound where the model stops once it has memorized everything.
        warmup: share of the steps in which the rate rises from a hundredth of its peak.
        evaluate_every: steps between two evaluations on all examples.
        stop_when_memorized: end at the first evaluation with accuracy 1.
        last_batch: the last batch of an epoch is "filled" up from the next one, or "short", as in the authors' loader.
        precision: "float32" or "float64".
        keep_attention: keep the largest attention weight of each head for each example (figure 3).
    """

    memorizer: Memorizer
    task: Task
    context_type: ContextType
    examples: int
    steps: int
    seed: int
    batch_size: int = 256
    learning_rate: float = 1e-3
    warmup: float = 0.05
    evaluate_every: int = 500
    stop_when_memorized: bool = True
    precision: str = "float32"
    keep_attention: bool = False
    last_batch: LastBatch = "filled"
    KIND = "memorization"
    VERSION = MEMORIZER_VERSION
    PARTS: ClassVar = {"memorizer": Memorizer}
    LATER = ("last_batch",)

    @property
    def label(self) -> str:
        """What a person looks for; two runs of different recipes can share it."""
        m = self.memorizer
        label = f"c{m.outputs}" if self.task == "classification" else "r"
        parts = [self.context_type.replace("_", ""), label, f"H{m.heads}", f"n{m.context}", f"h{m.head_dim}"]
        parts.append(f"v{m.values}")
        if m.logit_scale != "none":
            parts.append(f"by{m.logit_scale.replace('_', '')}")
        if m.attend_to_query:
            parts.append("self")
        if self.last_batch != "filled":
            parts.append(self.last_batch)
        return "-".join([*parts, f"T{self.examples}", f"t{self.steps}", f"s{self.seed}"])

    @property
    def batch(self) -> int:
        """Examples in a step: all of them where there are fewer than a batch."""
        return min(self.batch_size, self.examples)

    @property
    def total_params(self) -> int:
        """All trained numbers."""
        return self.memorizer.total_params

    @property
    def step_flops(self) -> int:
        """Operations of the matrix products of one training step, as packed training does them."""
        m, batch = self.memorizer, self.batch
        d, columns = m.width, m.heads * m.context
        once = 2 * columns * d * (m.head_dim + d)  # keys; from raw query to logits
        if self.context_type == "shared":
            each = 2 * d * columns
        else:
            once += 2 * m.heads * d * d * (m.head_dim + d)
            each = 2 * d * (m.heads * d + 3 * columns)
        each += 2 * m.values * (columns + m.heads * m.outputs)
        return 2 * once + 2 * batch * each

    @property
    def memory_numbers(self) -> int:
        """Numbers in memory: examples, their contexts, and a few copies of the parameters."""
        m = self.memorizer
        return self.examples * m.width * (m.context + 1) + 8 * self.total_params

    @property
    def history_rows(self) -> int:
        """Rows of its history, at most."""
        return self.steps // self.evaluate_every + 1

    @property
    def group(self) -> tuple[object, ...]:
        """A value that is equal for runs of one shape and one kind."""
        return self.memorizer, self.task, self.context_type, self.batch, self.precision, self.last_batch

    @property
    def family(self) -> tuple[object, ...]:
        """A value that is equal for runs that can share a pack, their models filled up with zeros to a common shape."""
        m = self.memorizer
        head_dim = m.head_dim if m.logit_scale == "head_dim" else 1
        return replace(m, heads=1, context=1, head_dim=head_dim), *self.group[1:]

    def flat(self) -> dict[str, Any]:
        """The run without sections, with the sizes that follow from it."""
        m = self.memorizer
        spec = self.to_dict() | {"total_params": self.total_params}
        flat = spec | {**spec.pop("memorizer"), "value_dim": m.values, "last_batch": self.last_batch}
        return flat | {"classes": flat.pop("outputs")}


def common_shape(memorizers: Iterable[Memorizer]) -> Memorizer:
    """The shape that a pack fills models of one `family` up to: the most heads, context and head dimension."""
    some = list(memorizers)
    sizes = {name: max(getattr(m, name) for m in some) for name in ("heads", "context", "head_dim")}
    return replace(some[0], **sizes)


def of_one_shape(runs: Sequence[MemorizationRun]) -> list[MemorizationRun]:
    """Runs of one family as a pack trains them: with models of their common shape."""
    shape = common_shape(run.memorizer for run in runs)
    return [replace(run, memorizer=shape) for run in runs]


def beyond_theorem(sizes: Iterable[tuple[int, int]]) -> list[str]:
    """A sentence for each width d at which theorem 1 doesn't cover some context lengths n, with those n."""
    contexts: dict[int, set[int]] = {}
    for context, width in sizes:
        if context >= width:
            contexts.setdefault(width, set()).add(context)
    return [
        "Theorem 1 needs a context shorter than the width (n < d), and here "
        f"n = {', '.join(map(str, sorted(found)))} at d = {width}: it promises nothing there."
        for width, found in sorted(contexts.items())
    ]

"""The columns of histories and of the tables of runs, by kind of run."""

from __future__ import annotations

from dataclasses import dataclass

from shapelaw.specs import degrees
from shapelaw.specs.runs import AXES

Kinds = type[int] | type[float] | type[str]


@dataclass(frozen=True)
class Column:
    """A column of a table; MLflow has its values under the same name.

    Attributes:
        name: its name in the table.
        kind: the type of its values.
        nullable: some rows may have no value.
    """

    name: str
    kind: Kinds
    nullable: bool = True


def _always(name: str, kind: Kinds) -> Column:
    return Column(name, kind, nullable=False)


DIVERGED = Column("diverged_at_step", float)  # of a finished run without a loss
LANGUAGE_HISTORY = (
    _always("step", int),  # steps done, from 1
    _always("train_loss", float),  # nats per token, mean since the row before
    _always("learning_rate", float),  # of that step
    _always("gradient_norm", float),  # of that step, before clipping
    Column("test_loss", float),  # nats per token; null where it was not evaluated
)
PACKED_HISTORY = (
    _always("step", int),
    _always("train_loss", float),  # nats, or squared error; mean since the row before
    _always("learning_rate", float),
    _always("loss", float),  # of all examples
    Column("accuracy", float),  # share of the examples; null where labels are numbers
)

LANGUAGE_PARAMS = (  # null is an axis's default, or a size that is as usual
    *(Column(axis.name, axis.kind) for axis in AXES.values() if axis.column),
    Column("block_params", int),  # 12 L d^2, the papers' network size
    Column("total_params", int),
    Column("step_flops", int),
)
LANGUAGE_TEXTS = (
    Column("observations", str),  # `steps:test loss` of a run without a cosine, null for others
)
LANGUAGE_METRICS = (
    Column("test_loss", float),  # nats per token, at the end, as are all of these
    Column("bits_per_byte", float),
    Column("train_loss", float),
    Column("tokens_trained", int),
    Column("tokens_per_second", float),
    Column("peak_memory_bytes", int),
    Column("wall_seconds", float),
    Column("model_flops_utilisation", float),
    DIVERGED,
)

MEMORIZATION_PARAMS = (
    Column("task", str),
    Column("context_type", str),
    Column("heads", int),
    Column("context", int),
    Column("head_dim", int),
    Column("value_dim", int),
    Column("width", int),
    Column("classes", int),
    Column("logit_scale", str),
    Column("attend_to_query", str),
    Column("last_batch", str),
    Column("examples", int),
    Column("seed", int),
    Column("steps", int),
    Column("batch_size", int),
    Column("learning_rate", float),
    Column("total_params", int),
)
MEMORIZATION_METRICS = (
    Column("steps_done", int),
    Column("accuracy", float),  # share of all examples, at the end; null where labels are numbers
    Column("loss", float),  # of all examples, at the end: nats or squared error
    Column("saturated_share", float),
    Column("examples_with_free_head", float),
    Column("wall_seconds", float),
    Column("model_steps_per_second", float),
    Column("peak_memory_bytes", int),
    DIVERGED,
)

_THRESHOLDS = sorted({loss for known in degrees.THRESHOLDS.values() for loss in known}, reverse=True)
DEGREE_PARAMS = (
    Column("target", str),
    Column("target_rank", int),  # 0: digits
    Column("degrees", str),  # of the layers, such as 3.3.3.3
    Column("mixture", str),
    Column("initial_share", float),  # of a mixture; null: half
    Column("activation", str),
    Column("residual", str),
    Column("normalization", str),
    Column("heads", int),
    Column("width", int),
    Column("inputs", int),
    Column("seed", int),
    Column("layer_params", int),
    Column("total_params", int),
    Column("steps", int),
    Column("batch_size", int),
    Column("learning_rate", float),
    Column("evaluate_every", int),
    Column("until_converged", str),
)
DEGREE_METRICS = (
    Column("loss", float),  # held-out, at the end: share of the variance, or nats
    Column("accuracy", float),
    Column("mean_error", float),  # absolute, held-out, at the end; of numbers alone
    Column("largest_error", float),
    Column("steps_done", int),
    Column("converged", str),  # before its last step; null: not asked for
    DIVERGED,
    Column("mean_degree", float),  # of the layers, at the end
    *(Column(f"steps_to_{loss:g}", float) for loss in _THRESHOLDS),
    Column("wall_seconds", float),
    Column("model_steps_per_second", float),
    Column("peak_memory_bytes", int),
)

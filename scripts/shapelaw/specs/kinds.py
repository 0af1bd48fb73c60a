"""The kinds of run, one row each: how a spec is written and read back, and the columns of its history and tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard, get_type_hints

from shapelaw.specs import axes, degrees, memorizers
from shapelaw.specs.axes import Kinds
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.specs.runs import AXES, Run
from shapelaw.specs.shapes import BLOCKS


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


_always = partial(Column, nullable=False)


def _columns(kind: Kinds, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names)


def _fields(names: str, specs: Sequence[type], **others: Kinds) -> tuple[Column, ...]:
    """The columns of some fields of specs, and of what follows from them, in the order of their names."""
    kinds = {name: axes.kind_of(hint) for spec in specs for name, hint in get_type_hints(spec).items()}
    return tuple(Column(name, (kinds | others)[name]) for name in names.split())


DIVERGED = Column("diverged_at_step", float)  # of a finished run without a loss
# of a history; one that is added comes last and may be null, as older records and checkpoints lack it
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
LANGUAGE_METRICS = (
    *_columns(float, "test_loss", "bits_per_byte", "train_loss"),  # at the end, as are all of these
    Column("tokens_trained", int),
    Column("tokens_per_second", float),
    Column("peak_memory_bytes", int),
    *_columns(float, "wall_seconds", "model_flops_utilisation"),
    DIVERGED,
)

_PACKED_COSTS = (*_columns(float, "wall_seconds", "model_steps_per_second"), Column("peak_memory_bytes", int))

_THRESHOLDS = sorted({loss for known in degrees.THRESHOLDS.values() for loss in known}, reverse=True)

PackedRun = MemorizationRun | DegreeRun  # runs of these kinds are trained in packs, many as one computation
AnyRun = Run | PackedRun


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        name: the `kind` in its spec; None for language models, whose specs have no such key.
        run: the class of its runs.
        history: columns of a run's history.
        params, metrics: columns of its table of runs, from MLflow's parameters and metrics.
        name_begins: the letters of the key's parts with which a run's name in MLflow begins.
        plural: what its networks are called.
        material: what a run was trained on, and `network`: as what; for headings.
        shown: its columns, of params and metrics, in MLflow's list of runs, in this order; the first metric orders it.
        filled_up: turns the runs of a pack into those trained there, with models of one shape.
    """

    name: str | None
    run: type[AnyRun]
    history: tuple[Column, ...]
    params: tuple[Column, ...]
    metrics: tuple[Column, ...]
    name_begins: str
    plural: str
    material: Callable[[Any], str]
    network: Callable[[Any], str]
    shown: tuple[str, ...]
    filled_up: Callable[[Sequence[Any]], list[Any]] = list


LANGUAGE = Kind(
    None,
    Run,
    history=LANGUAGE_HISTORY,
    params=LANGUAGE_PARAMS,
    metrics=LANGUAGE_METRICS,
    name_begins="Lds",
    plural="decoders",
    material=lambda run: run.corpus,
    network=lambda run: BLOCKS[run.shape.block],
    shown=(
        *("corpus", "vocab_size", "block", "depth", "width", "heads", "embedding_rank", "learning_rate"),
        *("steps", "seed", "test_loss", "bits_per_byte", "tokens_per_second"),
    ),
)
MEMORIZATION = Kind(
    MemorizationRun.KIND,
    MemorizationRun,
    history=PACKED_HISTORY,
    params=_fields(
        "task context_type heads context head_dim value_dim width classes logit_scale attend_to_query last_batch "
        "examples seed steps batch_size learning_rate total_params",
        (MemorizationRun, Memorizer),
        classes=int,
        total_params=int,
    ),
    metrics=(
        Column("steps_done", int),
        Column("accuracy", float),  # share of all examples, at the end; null where labels are numbers
        Column("loss", float),  # of all examples, at the end: nats or squared error
        *_columns(float, "saturated_share", "examples_with_free_head"),
        *_PACKED_COSTS,
        DIVERGED,
    ),
    name_begins="HTnhs",
    plural="memorizers",
    material=lambda _run: "random examples",
    network=lambda _run: "one layer of attention",
    shown=("heads", "context", "head_dim", "examples", "seed", "accuracy", "loss", "model_steps_per_second"),
    filled_up=memorizers.of_one_shape,
)
DEGREE = Kind(
    DegreeRun.KIND,
    DegreeRun,
    history=PACKED_HISTORY,
    params=_fields(  # `degrees` of the layers, such as 3.3.3.3; `initial_share` of a mixture, null: half
        "target target_rank degrees mixture initial_share activation residual normalization heads mixer_tokens width "
        "inputs seed layer_params total_params steps batch_size learning_rate evaluate_every until_converged",
        (DegreeRun, ProductShape),
        degrees=str,
        layer_params=int,
        total_params=int,
    ),
    metrics=(
        Column("loss", float),  # held-out, at the end: share of the variance, or nats
        Column("accuracy", float),
        Column("mean_error", float),  # absolute, held-out, at the end; of numbers alone
        Column("largest_error", float),
        Column("steps_done", int),
        Column("converged", str),  # before its last step; null: not asked for
        DIVERGED,
        Column("mean_degree", float),  # of the layers, at the end
        *_columns(float, *(f"steps_to_{loss:g}" for loss in _THRESHOLDS)),
        *_PACKED_COSTS,
    ),
    name_begins="kRds",
    plural="product networks",
    material=lambda run: "digits" if run.target == "digits" else "sums of products",
    network=lambda _run: "layers of degrees",
    shown=(
        *("degrees", "target", "target_rank", "learning_rate", "width", "seed", "loss"),
        "model_steps_per_second",
    ),
)
KINDS = {kind.name: kind for kind in (LANGUAGE, MEMORIZATION, DEGREE)}
_BY_CLASS = {kind.run: kind for kind in KINDS.values()}


def kind_of(run: AnyRun) -> Kind:
    """The row of a run's kind."""
    return _BY_CLASS[type(run)]


def is_packed(run: AnyRun) -> TypeGuard[PackedRun]:
    """True for a run of a kind that is trained in packs."""
    return not isinstance(run, Run)


def in_words(runs: Collection[AnyRun]) -> str:
    """What runs were trained on, as what, and for how long: `wiki, Llama's block, 1,000 steps`.

    Several texts or blocks stand beside each other; of several numbers of steps the least and the most.
    """
    materials = dict.fromkeys(kind_of(run).material(run) for run in runs)
    networks = dict.fromkeys(kind_of(run).network(run) for run in runs)
    steps = sorted({run.steps for run in runs})
    many = f"{steps[0]:,} to {steps[-1]:,} steps" if len(steps) > 1 else f"{steps[0]:,} steps"
    return ", ".join([" and ".join(materials), " and ".join(networks), many])


def spec_from_dict(values: Mapping[str, Any]) -> AnyRun:
    """The run of any kind whose `to_dict` gave these values.

    Raises:
        KeyError, TypeError: the kind is unknown, or a field is missing or unknown.
    """
    return KINDS[values.get("kind")].run.from_dict(values)

"""The kinds of run, one row each: how a spec is written and read back, and the columns of its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from shapelaw.specs import columns, degrees, memorizers
from shapelaw.specs.columns import Column
from shapelaw.specs.degrees import DegreeRun, degree_run_from_dict
from shapelaw.specs.memorizers import MemorizationRun, memorization_run_from_dict
from shapelaw.specs.runs import Run, flat_run, run_from_dict, run_to_dict
from shapelaw.specs.shapes import BLOCKS

PackedRun = MemorizationRun | DegreeRun  # runs of these kinds are trained in packs, many as one computation
AnyRun = Run | PackedRun


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        name: the `kind` in its spec; None for language models, whose specs have no such key.
        run: the class of its runs.
        to_dict: turns a run into plain JSON values, which are hashed into its digest.
        from_dict: the inverse; raises KeyError or TypeError where a field is missing or unknown.
        flat: turns a run into a dict without sections, with the sizes that follow from it.
        packed: many runs of one shape are trained as one computation.
        history: columns of a run's history.
        params, metrics, texts: columns of its table of runs, from MLflow's parameters, metrics and tags.
        name_begins: the letters of the key's parts with which a run's name in MLflow begins.
        plural: what its networks are called.
        material: what a run was trained on, and `network`: as what; for headings.
        shown: its columns, of params and metrics, in MLflow's list of runs, in this order; the first metric orders it.
        filled_up: turns the runs of a pack into those trained there, with models of one shape.
    """

    name: str | None
    run: type[AnyRun]
    to_dict: Callable[[Any], dict[str, Any]]
    from_dict: Callable[[Mapping[str, Any]], AnyRun]
    flat: Callable[[Any], dict[str, Any]]
    packed: bool
    history: tuple[Column, ...]
    params: tuple[Column, ...]
    metrics: tuple[Column, ...]
    name_begins: str
    plural: str
    material: Callable[[Any], str]
    network: Callable[[Any], str]
    shown: tuple[str, ...]
    filled_up: Callable[[Sequence[Any]], list[Any]] = list
    texts: tuple[Column, ...] = ()


LANGUAGE = Kind(
    None,
    Run,
    run_to_dict,
    run_from_dict,
    flat_run,
    packed=False,
    history=columns.LANGUAGE_HISTORY,
    params=columns.LANGUAGE_PARAMS,
    metrics=columns.LANGUAGE_METRICS,
    texts=columns.LANGUAGE_TEXTS,
    name_begins="Lds",
    plural="decoders",
    material=lambda run: run.corpus,
    network=lambda run: BLOCKS[run.shape.block],
    shown=(
        *(
            "corpus",
            "vocab_size",
            "block",
            "depth",
            "width",
            "heads",
            "embedding_rank",
            "learning_rate",
            "steps",
        ),
        *("seed", "test_loss", "bits_per_byte", "tokens_per_second"),
    ),
)
MEMORIZATION = Kind(
    memorizers.KIND,
    MemorizationRun,
    MemorizationRun.to_dict,
    memorization_run_from_dict,
    memorizers.flat_memorization_run,
    packed=True,
    history=columns.PACKED_HISTORY,
    params=columns.MEMORIZATION_PARAMS,
    metrics=columns.MEMORIZATION_METRICS,
    name_begins="HTnhs",
    plural="memorizers",
    material=lambda _run: "random examples",
    network=lambda _run: "one layer of attention",
    shown=("heads", "context", "head_dim", "examples", "seed", "accuracy", "loss", "model_steps_per_second"),
    filled_up=memorizers.of_one_shape,
)
DEGREE = Kind(
    degrees.KIND,
    DegreeRun,
    DegreeRun.to_dict,
    degree_run_from_dict,
    degrees.flat_degree_run,
    packed=True,
    history=columns.PACKED_HISTORY,
    params=columns.DEGREE_PARAMS,
    metrics=columns.DEGREE_METRICS,
    name_begins="kRds",
    plural="product networks",
    material=lambda run: "digits" if run.target == "digits" else "sums of products",
    network=lambda _run: "layers of degrees",
    shown=(
        "degrees",
        "target",
        "target_rank",
        "learning_rate",
        "width",
        "seed",
        "loss",
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
    return kind_of(run).packed


def in_words(runs: Collection[AnyRun]) -> str:
    """What runs were trained on, as what, and for how long: `wiki, Llama's block, 1,000 steps`.

    Several texts or blocks stand beside each other; of several numbers of steps the least and the most.
    """
    materials = dict.fromkeys(kind_of(run).material(run) for run in runs)
    networks = dict.fromkeys(kind_of(run).network(run) for run in runs)
    steps = sorted({run.steps for run in runs})
    many = f"{steps[0]:,} to {steps[-1]:,} steps" if len(steps) > 1 else f"{steps[0]:,} steps"
    return ", ".join([" and ".join(materials), " and ".join(networks), many])


def spec_to_dict(run: AnyRun) -> dict[str, Any]:
    """A run of any kind as plain JSON values."""
    return kind_of(run).to_dict(run)


def spec_from_dict(values: Mapping[str, Any]) -> AnyRun:
    """The inverse of `spec_to_dict`.

    Raises:
        KeyError, TypeError: a field is missing or unknown.
    """
    return KINDS[values.get("kind")].from_dict(values)


def packed_run_from_dict(values: Mapping[str, Any]) -> PackedRun:
    """The inverse of `spec_to_dict`, for runs that are trained in packs.

    Raises:
        KeyError, TypeError: a field is missing or unknown, or the run is a language model's.
    """
    run = KINDS[values["kind"]].from_dict(values)
    if isinstance(run, Run):
        raise TypeError(f"{run.key} is a language model's run, which is not trained in a pack")
    return run

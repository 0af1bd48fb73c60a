"""Runs made for tests: decoders and memorizers of many sizes, and one of each kind with all of its options."""

from typing import Any

from hypothesis import strategies as st

from shapelaw.jobs.ledger import State
from shapelaw.jobs.workload import Workload
from shapelaw.settings.sections import Execution
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.kinds import AnyRun, is_packed
from shapelaw.specs.making import make_shape
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.specs.runs import Budget, Run, Training

RATE = 1e13  # FLOP/s


def a_run(depth: int, width: int, steps: int = 1000, seed: int = 0) -> Run:
    """A decoder's run, the shape and the steps of which decide what its job asks for."""
    shape = make_shape(depth, width, 2, 2000, 128)
    return Run("wiki", shape, Training(steps, 64), seed)


decoder_runs = st.builds(
    a_run,
    st.integers(1, 48),
    st.integers(1, 800).map(lambda half: 2 * half),
    st.integers(1, 10**6),
    st.integers(0, 9),
)


def a_memorization_run(heads: int, examples: int, seed: int) -> MemorizationRun:
    """A memorizer's run of 32 tokens of context and heads of dimension 64."""
    return MemorizationRun(Memorizer(heads, 32, 64), "classification", "shared", examples, 50_000, seed)


memorization_runs = st.builds(
    a_memorization_run, st.sampled_from([1, 4, 60]), st.sampled_from([100, 550, 40_000]), st.integers(0, 9)
)
memorization_grids = st.lists(memorization_runs, max_size=20, unique_by=lambda run: run.key)

DECODERS = [a_run(2, 64, seed=seed) for seed in range(5)]
LARGE = a_run(48, 1600, steps=10**6)
MEMORIZERS = [a_memorization_run(4, 550, seed) for seed in range(5)]
BEGINNING = State((), (), lambda name, job: False, lambda key: False)  # nothing is done yet


def workload_of(some: list[AnyRun], state: State = BEGINNING, **execution: Any) -> Workload:
    """The runs by study and key, as a config has them: a study of decoders and one of memorizers."""
    by_study: dict[str, dict[str, AnyRun]] = {"depth_width": {}, "memorization_heads": {}}
    for run in some:
        by_study["memorization_heads" if is_packed(run) else "depth_width"][run.key] = run
    return Workload(by_study, Execution(flops_per_second=RATE, **execution), RATE, {}, state)


LLAMA_OPTIONS = Run(  # those of a decoder that exclude others of EVERY_OPTION
    "wiki",
    make_shape(2, 64, 4, 500, 32, block="llama", kv_heads=2, tied=True, base_width=32),
    Training(800, 16, schedule="constant", parametrization="completep"),
    3,
    budget=Budget("flops", 1e15),
)

PATCHES = Run(  # of images
    "fashion", make_shape(2, 64, 4, 257, 196, patch_embedding=True), Training(800, 16), 3
)

# one of each kind, in the order of KINDS, with other values than the defaults wherever there are some
EVERY_OPTION: tuple[AnyRun, ...] = (
    Run(
        "wiki",
        make_shape(
            2,
            64,
            2,
            500,
            32,
            embedding_rank=40,
            positional_rank=20,
            attention_dim=24,
            attention_degree=3,
            gelu="erf",
            ff_width=40,
            loops=2,
        ),
        Training(800, 16, gradient_clip=1.0),
        3,
    ),
    MemorizationRun(
        Memorizer(4, 32, 16, 64, 8, 100, "head_dim", True),
        "classification",
        "per_example",
        550,
        5000,
        3,
        batch_size=64,
        learning_rate=0.01,
        warmup=0.1,
        evaluate_every=100,
        stop_when_memorized=False,
        precision="float64",
        keep_attention=True,
        last_batch="short",
    ),
    DegreeRun(
        ProductShape((2, 3), 32, 64, 10, mixture=True, initial_share=0.9),
        "digits",
        0,
        1500,
        3,
        batch_size=32,
        learning_rate=0.01,
        warmup=0.1,
        evaluate_every=25,
    ),
)

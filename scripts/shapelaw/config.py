"""The config as data: every key, its default, its meaning, and what makes it wrong.

`config.yaml` names a scale; `workflow/scales/<scale>.yaml` holds that scale's values; what `config.yaml` sets
itself goes on top. All problems are collected and told at once, each with its key's path.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl, urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from shapelaw.errors import UserError
from shapelaw.runs import Training
from shapelaw.shapes import shape_problems

SOURCE_KINDS = ("wiki", "gensim", "folder", "huggingface")
_PATTERNS = {  # what would be right, for people
    "corpus.name": "use lower-case letters, digits and underscores; it names a folder in results/",
    "tracking.uri": "a tracking URI begins with its kind, such as sqlite:///, http:// or postgresql://",
}
_SECRET_NAMES = ("pass", "pwd", "token", "secret")  # parts of names in a URI's query
_WORDS = {"true": True, "false": False, "null": None}
Count = Annotated[int, Field(ge=1)]
Widths = dict[Count, list[Count]]  # depth: widths


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
        description="`wiki` (bundled Wikipedia leads), `folder:PATH` (.txt, .jsonl, .parquet) or "
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
    job_hours: float = Field(24.0, gt=0, description="most that a cluster allows one job; longer runs resume")
    flops_per_second: float = Field(4e10, gt=0, description="sustained by one job, for `snakemake plan`")


class Config(_Model):
    """A whole config, scale and overrides together."""

    studies: list[Literal["depth_width"]] = Field(["depth_width"], min_length=1)
    corpus: Corpus = Corpus()
    training: TrainingConfig
    depth_width: DepthWidth = DepthWidth()
    tracking: Tracking = Tracking()
    execution: Execution = Execution()


def load_config(values: Mapping[str, Any], scales: Path, root: Path = Path()) -> Config:
    """Merge the named scale with the config's own keys and check everything.

    Args:
        values: the content of config.yaml (with whatever `--config` put on top).
        scales: folder of the scale files.
        root: folder that relative paths of the config (a folder of text, a tokenizer) are relative to.

    Raises:
        UserError: one line a problem, all of them.
    """
    own = dict(values)
    names = sorted(path.stem for path in scales.glob("*.yaml"))
    scale = own.pop("scale", None)
    if scale not in names:
        raise UserError(
            _listed([f"scale is {scale!r}; it must be one of {', '.join(names)}{_near(scale, names)}"])
        )
    base = yaml.safe_load((scales / f"{scale}.yaml").read_text())
    merged = merge(base, own)
    try:
        config, problems = Config.model_validate(merged), []
    except ValidationError as error:
        problems = [_sentence(e) for e in error.errors()]
        wrong = {e["loc"][0] for e in error.errors()}
        # the other sections' problems are told too: the scale's own values stand in for the wrong sections
        config = Config.model_validate(
            {k: v for k, v in merged.items() if k not in wrong} | {k: base[k] for k in wrong if k in base}
        )
    problems += _cross_problems(config, root)
    if problems:
        raise UserError(_listed(problems))
    return config


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`, key by key; lists, numbers and the width tables are replaced whole."""
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        deep = isinstance(value, Mapping) and isinstance(below, Mapping) and key not in ("widths", "repeated")
        merged[key] = merge(below, value) if deep else value  # type: ignore[arg-type]
    return merged


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


def training_of(config: Config) -> Training:
    """The training section as the frozen part of a run's spec."""
    return Training(**config.training.model_dump())


def _cross_problems(config: Config, root: Path) -> list[str]:
    """What no single key shows."""
    problems = [problem for source in config.corpus.sources for problem in _source_problems(source, root)]
    gpt2_files = config.corpus.gpt2_files
    if gpt2_files is not None and not (root / gpt2_files).is_dir():
        problems.append(
            f"corpus.gpt2_files is {gpt2_files}, which is no folder; leave it out to train a tokenizer"
        )
    problems += _uri_problems(config.tracking.uri)
    training, study = config.training, config.depth_width
    if training.warmup_steps >= training.steps:
        problems.append(
            f"training.warmup_steps is {training.warmup_steps}, not below training.steps ({training.steps}); "
            "a tenth of the steps is usual"
        )
    if training.precision == "bfloat16" and config.execution.gpus == 0:
        problems.append(
            "training.precision is bfloat16 and execution.gpus is 0: bfloat16 is several times slower than float32 "
            "on a CPU; use float32, or set execution.gpus to 1"
        )
    if config.execution.gpus > 1 and config.execution.runs_per_job > 1:
        problems.append(
            f"execution.runs_per_job is {config.execution.runs_per_job} and execution.gpus is {config.execution.gpus}: "
            "runs that share a job train on one GPU; set one of them to 1"
        )
    if "depth_width" in config.studies:
        if (study.widths is None) == (study.grid_file is None):
            problems.append("depth_width needs exactly one of widths (depth: [widths]) and grid_file (a CSV)")
        for name, table in (("widths", study.widths or {}), ("repeated", study.repeated)):
            for depth, widths in table.items():
                for width in widths:
                    problems += [
                        f"depth_width.{name}.{depth}: {problem}"
                        for problem in shape_problems(
                            depth, width, study.heads, study.vocab_size, study.context_length
                        )
                    ]
    return problems


def _source_problems(source: str, root: Path) -> list[str]:
    """The kind of a source and, of a folder, whether it is there; the rest is checked where it is read."""
    kind, _, rest = source.partition(":")
    kind, name = kind.split(",")[0], rest.split(",")[0]
    if kind not in SOURCE_KINDS:
        return [
            f"corpus.sources has {source!r}; a source starts with one of {', '.join(SOURCE_KINDS)}"
            f"{_near(kind, list(SOURCE_KINDS))}"
        ]
    if kind == "folder" and not (root / name).is_dir():
        return [f"corpus.sources has {source!r}, and there is no folder {root / name}"]
    return []


def _uri_problems(uri: str | None) -> list[str]:
    """A secret in the tracking URI: the file, command lines and logs would all show it. None of them says it."""
    try:
        parts = urlsplit(uri or "")
    except ValueError:  # whose text may hold the password
        return ["tracking.uri is no URI; such are sqlite:///results/mlflow.db and http://host:5000"]
    names = [name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    token = parts.scheme in ("http", "https") and parts.username  # some servers take one as the user's name
    if parts.password or token or any(part in name for name in names for part in _SECRET_NAMES):
        return [
            "tracking.uri holds a password or a token, which command lines and logs would show; leave it out and set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or MLFLOW_TRACKING_TOKEN) in the environment, or "
            "set tracking.uri to null and put the whole URI into the environment as MLFLOW_TRACKING_URI"
        ]
    return []


def _shown(path: str, value: object) -> str:
    """A wrong value as it was written, unless it could hold a secret."""
    text = repr(value)
    return "***" if path.startswith("tracking") and ("@" in text or "?" in text) else text


def _sentence(error: Any) -> str:
    """One of pydantic's errors as: the key's path, what is wrong, what would be right."""
    path = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        known = _known_keys(error["loc"][:-1])
        return f"{path} is not a key{_near(error['loc'][-1], known)}; known here: {', '.join(known)}"
    if error["type"] == "missing":
        return f"{path} is missing"
    message = _PATTERNS.get(path) if error["type"] == "string_pattern_mismatch" else None
    return (
        f"{path} is {_shown(path, error['input'])}: {message or error['msg'][0].lower() + error['msg'][1:]}"
    )


def _known_keys(path: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] = Config
    for part in path:
        model = model.model_fields[part].annotation  # type: ignore[assignment]
    keys = list(model.model_fields)
    return ["scale", *keys] if model is Config else keys


def _near(word: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _listed(problems: list[str]) -> str:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"The config has {count}:", *(f"  - {problem}" for problem in problems)])

"""The config as data: every key, its default, its meaning, and what makes it wrong.

`config.yaml` names a scale; `workflow/scales/<scale>.yaml` holds that scale's values; what `config.yaml` sets
itself goes on top. All problems are collected and told at once, each with its key's path.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl, urlsplit

import yaml
from pydantic import ValidationError

from shapelaw.errors import UserError
from shapelaw.rank_grids import rank_problems
from shapelaw.scheduling.cost import read_cost_model
from shapelaw.sections import (
    MEMORIZATION_STUDIES,
    RANK_STUDY,
    Config,
    DegreeGrid,
    MemorizationGrid,
    MemorizationStudy,
    RankGrids,
)
from shapelaw.specs.degrees import DIGITS, DegreeRun, ProductShape, check_degree_run, layers_of_budget
from shapelaw.specs.memorizers import MemorizationRun, Memorizer, check_memorization_run
from shapelaw.specs.runs import Training
from shapelaw.specs.shapes import make_shape, shape_problems, with_attention_degree

SOURCE_KINDS = ("wiki", "gensim", "gcide", "bible", "sotu", "anarchism", "treasury", "folder", "huggingface")
_PATTERNS = {  # what would be right, for people
    "corpus.name": "use lower-case letters, digits and underscores; it names a folder in results/",
    "tracking.uri": "a tracking URI begins with its kind, such as sqlite:///, http:// or postgresql://",
}
_SECRET_NAMES = ("pass", "pwd", "token", "secret")  # parts of names in a URI's query


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
    base = _values_of(scales, scale)
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


def _values_of(scales: Path, scale: str) -> dict[str, Any]:
    """What a scale's file says, over the parts of it that it shares with other scales (`include`)."""
    own = yaml.safe_load((scales / f"{scale}.yaml").read_text())
    values: dict[str, Any] = {}
    for part in own.pop("include", []):
        values = merge(values, yaml.safe_load((scales / "parts" / f"{part}.yaml").read_text()))
    return merge(values, own)


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`, key by key; lists, numbers and the width tables are replaced whole."""
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        deep = isinstance(value, Mapping) and isinstance(below, Mapping) and key not in ("widths", "repeated")
        merged[key] = merge(below, value) if deep else value  # type: ignore[arg-type]
    return merged


def training_of(config: Config) -> Training:
    """The training section as the frozen part of a run's spec."""
    return Training(**config.training.model_dump())


def rank_grids(config: Config) -> RankGrids:
    """What the study `separation_rank` measures."""
    return RankGrids(**{name: getattr(config, name) for name in RankGrids.model_fields})


def _cross_problems(config: Config, root: Path) -> list[str]:
    """What no single key shows."""
    problems = [
        problem
        for source in config.corpus.sources
        for problem in _source_problems("corpus.sources", source, root)
    ]
    problems += _source_problems("assumptions.source", config.assumptions.source, root)
    images = config.assumptions.images
    if images is not None and not (root / images).is_dir():
        problems.append(
            f"assumptions.images is {images}, which is no folder; leave it out for photographs from wheels"
        )
    if "relu" in config.extras and "memorization_heads" not in config.studies:
        problems.append(
            "extras has relu, which is trained beside memorization_heads, and studies has no memorization_heads; add it"
        )
    gpt2_files = config.corpus.gpt2_files
    if gpt2_files is not None and not (root / gpt2_files).is_dir():
        problems.append(
            f"corpus.gpt2_files is {gpt2_files}, which is no folder; leave it out to train a tokenizer"
        )
    if config.execution.cost_model is not None:
        try:
            read_cost_model(root / config.execution.cost_model)
        except UserError as error:
            problems.append(f"execution.cost_model: {error}")
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
    if config.execution.gpus > 1 and (config.execution.runs_per_job or 1) > 1:
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
    if "attention_degree" in config.studies:
        problems += _attention_problems(config)
    for name in config.studies:
        if name in MEMORIZATION_STUDIES:
            problems += _memorization_problems(config, name)
    if "block_degree" in config.studies:
        problems += _degree_problems(config)
    if RANK_STUDY in config.studies:
        problems += rank_problems(rank_grids(config))
    return problems


def _attention_problems(config: Config) -> list[str]:
    study, problems = config.attention_degree, []
    if not study.widths:
        return ["attention_degree has no widths; give it depth: [widths], such as {2: [64, 128]}"]
    for depth, width in ((depth, width) for depth, row in study.widths.items() for width in row):
        sizes = depth, width, study.heads, study.vocab_size, study.context_length
        found = shape_problems(*sizes)
        for degree in () if found else study.degrees:
            try:
                with_attention_degree(make_shape(*sizes), degree)
            except ValueError as error:
                found.append(str(error))
        problems += [f"attention_degree.widths.{depth}: {problem}" for problem in found]
    return problems


def memorization_runs(
    config: Config, study: MemorizationStudy, grid: MemorizationGrid
) -> list[MemorizationRun]:
    """All runs of a grid."""
    common = config.memorization
    outputs = common.classes if grid.task == "classification" else 1
    runs = []
    for heads, context, head_dim, examples, seed in itertools.product(
        grid.heads, grid.context, grid.head_dim, grid.examples, range(grid.seeds)
    ):
        memorizer = Memorizer(
            heads, context, head_dim, common.width, common.value_dim, outputs, common.logit_scale
        )
        last_batch = grid.last_batch or common.last_batch
        batches = Fraction(examples, common.batch_size)  # of an epoch
        if last_batch == "short":
            batches = Fraction(math.ceil(batches))
        steps = max(grid.steps, int(grid.epochs * batches))
        run = MemorizationRun(
            study,
            memorizer,
            grid.task,
            grid.context_type,
            examples,
            steps,
            seed,
            batch_size=common.batch_size,
            learning_rate=common.learning_rate,
            warmup=common.warmup,
            evaluate_every=common.evaluate_every,
            stop_when_memorized=not grid.to_the_end,
            keep_attention=study == "memorization_saturation",
            last_batch=last_batch,
        )
        runs.append(run)
    return runs


def degree_runs(grid: DegreeGrid) -> list[DegreeRun]:
    """All runs of a grid.

    Raises:
        UserError: a degree does not divide the budget.
    """
    digits = grid.target == "digits"
    sizes = grid.width, *(DIGITS if digits else (grid.inputs, 1))
    networks = [ProductShape(layers_of_budget(degree, grid.matrices), *sizes) for degree in grid.degrees]
    networks += [ProductShape(tuple(pattern), *sizes) for pattern in grid.patterns]
    networks += [
        ProductShape(layers_of_budget(degree, grid.matrices), *sizes, True, share)
        for degree, share in itertools.product(grid.mixtures, grid.mixture_shares)
    ]
    return [
        DegreeRun(
            "block_degree",
            network,
            grid.target,
            rank,
            grid.steps,
            seed,
            grid.batch_size,
            rate,
            evaluate_every=grid.evaluate_every,
        )
        for network, rank, rate, seed in itertools.product(
            networks, [0] if digits else grid.target_ranks, grid.learning_rates, range(grid.seeds)
        )
    ]


def _degree_problems(config: Config) -> list[str]:
    if not config.block_degree:
        return [
            "block_degree is empty; give it a list of grids, such as [{degrees: [2, 3], target_ranks: [8]}]"
        ]
    problems = []
    for place, grid in enumerate(config.block_degree):
        budgets = {sum(pattern) for pattern in grid.patterns} - {grid.matrices}
        if budgets:
            problems.append(
                f"block_degree.{place}.patterns has networks of {', '.join(map(str, sorted(budgets)))} matrices, and "
                f"block_degree.{place}.matrices is {grid.matrices}: networks of one grid have one budget"
            )
        try:
            for run in degree_runs(grid):
                check_degree_run(run)
        except UserError as error:
            problems += [f"block_degree.{place}: {sentence}" for sentence in str(error).splitlines()]
    return problems


def _memorization_problems(config: Config, study: MemorizationStudy) -> list[str]:
    grids: list[MemorizationGrid] = getattr(config, study)
    if not grids:
        return [f"{study} is empty; give it a list of grids, such as [{{heads: [4, 8], examples: [300]}}]"]
    problems = []
    for place, grid in enumerate(grids):
        for run in memorization_runs(config, study, grid):
            try:
                check_memorization_run(run)
            except UserError as error:
                problems += [f"{study}.{place}: {sentence}" for sentence in str(error).splitlines()]
    return list(dict.fromkeys(problems))


def _source_problems(key: str, source: str, root: Path) -> list[str]:
    """The kind of a source and, of a folder, whether it is there; the rest is checked where it is read."""
    kind, _, rest = source.partition(":")
    kind, name = kind.split(",")[0], rest.split(",")[0]
    if kind not in SOURCE_KINDS:
        return [
            f"{key} has {source!r}; a source starts with one of {', '.join(SOURCE_KINDS)}"
            f"{_near(kind, list(SOURCE_KINDS))}"
        ]
    if kind == "folder" and not (root / name).is_dir():
        return [f"{key} has {source!r}, and there is no folder {root / name}"]
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
    model: Any = Config
    for part in path:  # a field's name, or a place in a list
        kind = model.model_fields[part].annotation if isinstance(part, str) else model
        model = get_args(kind)[0] if get_origin(kind) is list else kind
    keys = list(model.model_fields)
    return ["scale", *keys] if model is Config else keys


def _near(word: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _listed(problems: list[str]) -> str:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return "\n".join([f"The config has {count}:", *(f"  - {problem}" for problem in problems)])

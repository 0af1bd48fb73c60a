"""What no single key of a config shows: keys that contradict each other, files that are missing, runs that can't be."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from shapelaw.errors import UserError
from shapelaw.scheduling.cost import read_cost_model
from shapelaw.settings.grid_runs import degree_runs, memorization_runs
from shapelaw.settings.grids import MemorizationGrid
from shapelaw.settings.rank_grids import rank_grids, rank_problems
from shapelaw.settings.sections import MEMORIZATION_STUDIES, RANK_STUDY, Config, MemorizationStudy
from shapelaw.settings.sentences import near
from shapelaw.specs.degrees import check_degree_run
from shapelaw.specs.memorizers import check_memorization_run
from shapelaw.specs.shapes import make_shape, shape_problems, with_attention_degree

SOURCE_KINDS = ("wiki", "gensim", "gcide", "bible", "sotu", "anarchism", "treasury", "folder", "huggingface")
_SECRET_NAMES = ("pass", "pwd", "token", "secret")  # parts of names in a URI's query


def cross_problems(config: Config, root: Path) -> list[str]:
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
            f"{near(kind, list(SOURCE_KINDS))}"
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

"""Configs: the shipped ones, and every kind of mistake told at once."""

import csv
import math
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from small import PYTHON, REPOSITORY, SCRIPTS

from shapelaw.errors import UserError
from shapelaw.scheduling.plan import cost_of
from shapelaw.specs.kinds import spec_from_dict, spec_to_dict
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run, run_from_dict, run_to_dict
from shapelaw.studies.block_degree.settings import DegreeGrid
from shapelaw.studies.block_degree.study import grid_runs
from shapelaw.studies.config import Config, load_config, runs_of
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.separation_rank.grids import asked_of, rank_grids

MEMORIZATION_STUDIES = [name for name in STUDIES if name.startswith("memorization_")]
SCALES = REPOSITORY / "workflow" / "scales"
SCALE_NAMES = ["demo", "gpu", "laptop", "paper"]


def shipped(**changes: Any) -> dict[str, Any]:
    return {**yaml.safe_load((REPOSITORY / "config.yaml").read_text()), **changes}


def problems_of(**changes: Any) -> str:
    with pytest.raises(UserError) as error:
        runs_of(load_config(shipped(**changes), SCALES), "depth_width", REPOSITORY)
    return str(error.value)


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_is_valid(scale: str) -> None:
    config = load_config(shipped(scale=scale), SCALES)
    runs = runs_of(config, "depth_width", REPOSITORY)
    assert len(runs) > 10
    assert all(run.key == key for key, run in runs.items())
    assert all(run_from_dict(run_to_dict(run)) == run for run in runs.values())
    assert cost_of(runs.values(), 1e14).flops > 0


def test_there_are_no_other_scales() -> None:
    assert sorted(path.stem for path in SCALES.glob("*.yaml")) == SCALE_NAMES


def test_scale_paper_is_the_papers_grid() -> None:
    """Table 2 of the depth-width paper, each shape once; 3 seeds at table 3's shapes that are in the grid."""
    with (REPOSITORY / "workflow" / "reference" / "depth_width_grid.csv").open() as file:
        grid = {(int(row["depth"]), int(row["width"])) for row in csv.DictReader(file)}
    runs = runs_of(load_config(shipped(scale="paper"), SCALES), "depth_width", REPOSITORY).values()
    assert {(run.shape.depth, run.shape.width) for run in runs} == grid
    assert len(runs) == len(grid) + 2 * 10
    training = next(iter(runs)).training
    assert (training.steps, training.batch_size, training.warmup_steps, training.optimizer) == (
        10**6,
        512,
        12000,
        "adam",
    )


@pytest.mark.parametrize("scale", SCALE_NAMES)
@pytest.mark.parametrize("study", MEMORIZATION_STUDIES)
def test_every_scale_has_every_memorization_study(scale: str, study: str) -> None:
    runs = runs_of(load_config(shipped(scale=scale), SCALES), study, REPOSITORY)
    assert len(runs) >= 2
    assert all(run.key == key and spec_from_dict(spec_to_dict(run)) == run for key, run in runs.items())
    assert cost_of(runs.values(), 1e14).flops > 0


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_has_attention_of_each_degree_at_equal_parameters(scale: str) -> None:
    config = load_config(shipped(scale=scale, studies=["attention_degree"]), SCALES)
    assert (
        "attention_degree" not in load_config(shipped(scale=scale), SCALES).studies
    )  # minutes that demo has not
    runs = runs_of(config, "attention_degree", REPOSITORY)
    sizes: dict[tuple[int, int], dict[int | None, int]] = {}
    for key, run in runs.items():
        assert isinstance(run, Run)
        assert run.key == key
        assert run_from_dict(run_to_dict(run)) == run
        shape = run.shape
        sizes.setdefault((shape.depth, shape.width), {})[shape.attention_degree] = shape.total_params
    for params in sizes.values():
        assert set(params) == {None, 2, 3, 4}
        assert max(params.values()) <= 1.02 * min(params.values())
        assert params[3] == params[None]
    assert len(runs) == len(sizes) * 4 * config.attention_degree.seeds


@pytest.mark.parametrize("study", ["depth_width", "attention_degree"])
def test_decoders_get_the_activation_of_their_section(study: str) -> None:
    values = shipped(studies=[study], **{study: {"gelu": "erf"}})
    exact = runs_of(load_config(values, SCALES), study, REPOSITORY)
    usual = runs_of(load_config(shipped(studies=[study]), SCALES), study, REPOSITORY)
    assert {run.shape.gelu for run in exact.values() if isinstance(run, Run)} == {"erf"}
    assert {run.shape.gelu for run in usual.values() if isinstance(run, Run)} == {"tanh"}
    assert len(exact) == len(usual)
    assert not exact.keys() & usual.keys()


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_run_of_block_degree_has_its_own_key(scale: str) -> None:
    config = load_config(shipped(scale=scale), SCALES)
    specs = {run for grid in config.grids("block_degree", DegreeGrid) for run in grid_runs(grid)}
    assert len(runs_of(config, "block_degree", REPOSITORY)) == len(specs)


def test_mixtures_can_begin_anywhere_between_their_degrees() -> None:
    grid = {
        "target_ranks": [2],
        "degrees": [],
        "mixtures": [2, 3],
        "matrices": 6,
        "mixture_shares": [0.1, 0.5, 0.9],
        "learning_rates": [0.01],
    }
    runs = runs_of(load_config(shipped(block_degree=[grid]), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 3 * 4
    with pytest.raises(UserError, match=r"mixture_shares"):
        load_config(shipped(block_degree=[{**grid, "mixture_shares": [1.0]}]), SCALES)


def test_grids_that_differ_in_the_inputs_alone_are_other_runs() -> None:
    grids = [
        {"target_ranks": [2], "degrees": [3], "matrices": 6, "inputs": inputs, "seeds": 2}
        for inputs in (4, 8)
    ]
    runs = runs_of(load_config(shipped(block_degree=grids), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 4 * 2


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_has_separation_ranks(scale: str) -> None:
    config = load_config(shipped(scale=scale), SCALES)
    asked = asked_of(rank_grids(config))
    assert {one.table for one in asked} == {"ranks", "degree_budget", "fractional_degree"}
    assert len(asked) > 400
    assert "separation_rank" in config.studies


def test_scale_paper_is_the_memorization_papers_grid() -> None:
    """All 342 points read off its authors' script: six seeds of each but the two that show saturated heads."""
    with (REPOSITORY / "workflow" / "reference" / "memorization_grid.csv").open() as file:
        grid = [tuple(row.values()) for row in csv.DictReader(file)]
    config, points = load_config(shipped(scale="paper"), SCALES), Counter[tuple[str, ...]]()
    for study in MEMORIZATION_STUDIES:
        for run in runs_of(config, study, REPOSITORY).values():
            assert isinstance(run, MemorizationRun)
            m = run.memorizer
            sizes = (m.heads, m.context, m.head_dim, run.examples)
            steps = 300_000 if study.endswith(("head_dim", "saturation")) else 50_000
            epochs = 0 if study == "memorization_saturation" else 500
            assert run.steps == max(steps, epochs * math.ceil(run.examples / 256))
            name = study.removeprefix("memorization_")
            points[(name, run.task, run.context_type, *map(str, sizes), str(steps))] += 1
    assert len(grid) == 342
    assert set(points) == set(grid)
    assert all(count == (1 if point[0] == "saturation" else 6) for point, count in points.items())


def test_a_grids_last_batch_wins_over_the_sections() -> None:
    grids = [
        {"heads": [2], "head_dim": [8], "examples": [300]},
        {"heads": [4], "head_dim": [8], "examples": [300], "last_batch": "filled"},
    ]
    config = load_config(shipped(memorization={"last_batch": "short"}, memorization_heads=grids), SCALES)
    runs = runs_of(config, "memorization_heads", REPOSITORY).values()
    assert [run.last_batch for run in runs if isinstance(run, MemorizationRun)] == ["short", "filled"]


def test_one_more_size_of_a_memorization_grid_adds_its_runs_alone() -> None:
    def keys(heads: list[int]) -> set[str]:
        changes = {"memorization_heads": [{"heads": heads, "head_dim": [8], "examples": [9, 99], "seeds": 2}]}
        return set(runs_of(load_config(shipped(**changes), SCALES), "memorization_heads", REPOSITORY))

    assert keys([4, 6]) - keys([4]) == keys([6])
    assert len(keys([6])) == 4
    assert keys([4]) < keys([4, 6])


def test_two_runs_of_one_name_that_are_trained_otherwise_are_refused() -> None:
    grids = [{"batch_size": 64}, {"batch_size": 256}]
    config = load_config(shipped(block_degree=grids), SCALES)
    with pytest.raises(UserError, match=r"two different runs with the name .* batch_size"):
        runs_of(config, "block_degree", REPOSITORY)


def test_one_changed_width_changes_one_run() -> None:
    config = load_config(shipped(), SCALES)
    before = runs_of(config, "depth_width", REPOSITORY)
    widths = {depth: list(ws) for depth, ws in config.depth_width.widths.items()}
    widths[4][1] += 2
    after = runs_of(load_config(shipped(depth_width={"widths": widths}), SCALES), "depth_width", REPOSITORY)
    assert len(set(before.values()) - set(after.values())) == 1
    assert len(set(after.values()) - set(before.values())) == 1


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"scale": "dmeo"}, ["scale is 'dmeo'", "demo, gpu, laptop, paper", "did you mean demo?"]),
        ({"traning": {}}, ["traning is not a key (did you mean training?)"]),
        ({"training": {"step": 3}}, ["training.step is not a key (did you mean steps?)"]),
        ({"training": {"steps": 0}}, ["training.steps is 0", "greater than or equal to 1"]),
        ({"corpus": {"sources": ["wikki"]}}, ["corpus.sources has 'wikki'", "did you mean wiki?"]),
        ({"corpus": {"sources": ["folder:/nowhere"]}}, ["there is no folder /nowhere"]),
        ({"corpus": {"gpt2_files": "/nowhere"}}, ["corpus.gpt2_files is /nowhere, which is not a folder"]),
        ({"tracking": {"uri": "foo"}}, ["tracking.uri is 'foo'"]),
        ({"extras": ["rellu"]}, ["extras.0 is 'rellu'", "'laptop_runs', 'relu' or 'assumptions'"]),
        (
            {"extras": ["relu"], "studies": ["depth_width"]},
            ["extras has relu, which is trained beside memorization_heads, and studies has no"],
        ),
        ({"assumptions": {"models": ["bart"]}}, ["assumptions.models.0 is 'bart'", "'bert'"]),
        ({"assumptions": {"models": []}}, ["assumptions.models is []", "at least 1"]),
        ({"assumptions": {"trials": 0}}, ["assumptions.trials is 0"]),
        (
            {"assumptions": {"images": "/nowhere"}},
            ["assumptions.images is /nowhere, which is not a folder; leave it out"],
        ),
        ({"assumptions": {"source": "wikki"}}, ["assumptions.source has 'wikki'", "did you mean wiki?"]),
        ({"depth_width": {"widths": {}, "repeated": {}}}, ["depth_width.widths is {}"]),
        ({"training": {"steps": "many"}}, ["training.steps is 'many'", "valid integer"]),
        (
            {"training": {"steps": 1000, "warmup_steps": 5000}},
            ["training.warmup_steps is 5000, not below training.steps (1000)"],
        ),
        ({"training": {"precision": "bfloat16"}}, ["bfloat16 is several times slower than float32 on a CPU"]),
        ({"training": {"optimizer": "sgd"}}, ["training.optimizer is 'sgd'", "'adam' or 'adamw'"]),
        ({"corpus": {"test_fraction": 1.5}}, ["corpus.test_fraction is 1.5", "less than 1"]),
        ({"corpus": {"name": "x" * 65}}, ["corpus.name is 'xxx", "at most 64 characters"]),
        ({"studies": []}, ["studies"]),
        ({"studies": ["depth"]}, ["studies.0 is 'depth'"]),
        (
            {"depth_width": {"widths": {6: [129]}}},
            ["depth_width.widths.6: width 129 is not divisible by 2 heads"],
        ),
        ({"depth_width": {"widths": None}}, ["exactly one of widths (depth: [widths]) and grid_file"]),
        ({"depth_width": {"grid_file": "x.csv"}}, ["exactly one of widths"]),
        (
            {"depth_width": {"repeated": {1: [18]}}},
            ["repeated names shapes that are not in the grid: depth 1 width 18"],
        ),
        ({"depth_width": {"vocab_size": 100}}, ["depth_width.vocab_size is 100", "257"]),
        ({"execution": {"gpus": -1}}, ["execution.gpus is -1"]),
        ({"execution": {"models_per_pack": 0}}, ["execution.models_per_pack is 0"]),
        (
            {"separation_rank": [{"depth": [1], "width": [2], "tokens": [2], "residual": ["maybe"]}]},
            ["separation_rank.0.residual.0 is 'maybe'"],
        ),
        (
            {
                "separation_rank": [{"depth": [0], "width": [2], "tokens": [2]}],
                "degree_budget": [{"block": "product", "width": [2], "budget": [3]}],
            },
            ["separation_rank.0.depth.0 is 0", "degree_budget.0.block is not a key (did you mean blocks?)"],
        ),
        (
            {
                "separation_rank": [
                    {"depth": [1], "width": [3], "tokens": [2], "embedding_rank": [4], "heads": [2]}
                ]
            },
            [
                "separation_rank.0: width 3 is not divisible by 2 heads",
                "embedding_rank is 4, above the width 3",
            ],
        ),
        (
            {"studies": ["attention_degree"], "attention_degree": {"widths": {}}},
            ["attention_degree has no widths"],
        ),
        (
            {"studies": ["attention_degree"], "attention_degree": {"heads": 2, "widths": {1: [6, 7]}}},
            [
                "attention_degree.widths.1: no heads' dimension gives attention of degree 4 within 2%",
                "attention_degree.widths.1: width 7 is not divisible by 2 heads",
            ],
        ),
        (
            {"attention_degree": {"degrees": [1]}},
            ["attention_degree.degrees.0 is 1", "greater than or equal to 2"],
        ),
        ({"memorization_heads": []}, ["memorization_heads is empty; give it a list of grids"]),
        (
            {"memorization_heads": [{"heads": [0, 4], "examples": [-3]}]},
            ["memorization_heads.0.heads.0 is 0", "memorization_heads.0.examples.0 is -3"],
        ),
        (
            {"memorization_context": [{"heads": [4], "examples": [100], "head_dim": [65]}]},
            ["memorization_context.0: ", "65"],
        ),
        ({"memorization_head_dim": [{"heads": [4]}]}, ["memorization_head_dim.0.examples"]),
        (
            {"memorization_heads": [{"heads": [4], "example": [9]}]},
            ["memorization_heads.0.example is not a key"],
        ),
    ],
)
def test_each_mistake_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said


def test_numbers_inside_a_command_lines_mapping_are_numbers() -> None:
    """Snakemake hands on `--config training='{steps: 60}'` as texts."""
    changes = {
        "training": {"steps": "60", "warmup_steps": "5", "learning_rate": "1e-3", "gradient_clip": "null"}
    }
    widths = {"widths": {"1": ["16", "24"]}, "repeated": {}}
    config = load_config(shipped(**changes, depth_width=widths), SCALES)
    assert (config.training.spec().steps, config.training.spec().learning_rate) == (60, 1e-3)
    assert config.training.spec().gradient_clip is None
    assert config.depth_width.widths == {1: [16, 24]}


@pytest.mark.parametrize("name", ["2024", "007", "inf", "nan", "1_000", "1e3", "true", "null"])
def test_a_text_that_spells_a_number_stays_a_text_where_one_is_asked_for(name: str) -> None:
    assert load_config(shipped(corpus={"name": name}), SCALES).corpus.name == name


def test_null_inside_a_command_lines_mapping_is_null() -> None:
    changes = {"tracking": {"uri": "null"}, "corpus": {"gpt2_files": "null", "limit_bytes": "null"}}
    config = load_config(shipped(**changes), SCALES)
    assert (config.tracking.uri, config.corpus.gpt2_files, config.corpus.limit_bytes) == (None, None, None)


@pytest.mark.parametrize("rate", ["inf", "nan", float("inf")])
def test_a_number_is_a_finite_one(rate: object) -> None:
    assert "training.learning_rate is " in problems_of(training={"learning_rate": rate})


@pytest.mark.parametrize(
    "name", ["../../x", "/etc", "a/b", "..", ".", "", "wiki\n", "A", "a b", "$(touch x)", "*", "ｗiki"]
)
def test_no_name_of_a_corpus_leads_out_of_the_results(name: str) -> None:
    """It is the one value of a config that becomes a path that something is written to."""
    said = problems_of(corpus={"name": name})
    assert (
        f"corpus.name is {name!r}: use lower-case letters, digits and underscores; it names a folder" in said
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"scale": "../../x"}, "scale is '../../x'; it must be one of"),
        ({"scale": "/etc/passwd"}, "scale is '/etc/passwd'; it must be one of"),
        ({"studies": ["../x"]}, "studies.0 is '../x'"),
        ({"depth_width": {"widths": None, "repeated": {}, "grid_file": "/etc/shadow"}}, "must be a CSV with"),
        ({"depth_width": {"widths": None, "repeated": {}, "grid_file": "/nowhere/x.csv"}}, "can't be read"),
        ({"depth_width": {"widths": None, "repeated": {}, "grid_file": "."}}, "can't be read"),
    ],
)
def test_other_values_that_name_files_are_only_read(changes: dict[str, Any], sentence: str) -> None:
    said = problems_of(**changes)
    assert sentence in said
    assert "root:" not in said  # nothing of the file


def test_every_text_of_a_config_is_known_to_be_no_path_that_is_written() -> None:
    """A new key that holds a text must be looked at: can it lead out of results/? Then it belongs here."""

    def texts(model: type[BaseModel], above: str = "") -> Iterator[str]:
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from texts(kind, f"{above}{name}.")
            elif "str" in str(kind):
                yield above + name

    assert set(texts(Config)) == {
        "corpus.name",  # a folder in results/; its pattern has neither dots nor slashes
        "corpus.sources",  # read, and quoted on command lines
        "corpus.gpt2_files",  # read
        "depth_width.grid_file",  # read
        "execution.cost_model",  # read
        "assumptions.images",  # read
        "assumptions.source",  # read, and quoted on command lines
        "tracking.uri",  # where the user wants the runs: any server or database
    }


SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        f"http://ada:{SECRET}@example.org",
        f"https://{SECRET}@example.org",
        f"postgresql://ada:{SECRET}@example.org/mlflow",
        f"postgresql://ada:x@{SECRET}@example.org/mlflow",
        f"mysql+pymysql://ada:'{SECRET}@example.org/mlflow",
        f"postgresql://example.org/mlflow?user=ada&password={SECRET}",
        f"postgresql://example.org/mlflow?sslpassword={SECRET}",
        f"https://example.org/?token={SECRET}",
    ],
)
def test_a_secret_in_the_tracking_uri_is_refused_and_not_shown(uri: str) -> None:
    said = problems_of(tracking={"uri": uri})
    assert "tracking.uri holds a password or a token" in said
    assert "MLFLOW_TRACKING_PASSWORD" in said
    assert "in the environment" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    "tracking",
    [
        {"uri": f"HTTP://ada:{SECRET}@example.org"},
        {"uri": f"ada:{SECRET}@example.org"},
        {"uri": f"http://ada:{SECRET}@[::1"},
        {"uri": f"http://ada:{SECRET}℀@example.org"},  # a letter that Python refuses with the whole address
        {"uri": [f"http://ada:{SECRET}@example.org"]},
        {"uri": {"http": f"//ada:{SECRET}@example.org"}},
        f"http://ada:{SECRET}@example.org",
        f"http://example.org?token={SECRET}",
        {"password": SECRET},
    ],
)
def test_no_other_mistake_shows_a_secret(tracking: object) -> None:
    said = problems_of(tracking=tracking)
    assert said.startswith("The config has 1 problem:\n  - tracking")
    assert SECRET not in said


@pytest.mark.parametrize(
    "uri",
    [None, "sqlite:///results/mlflow.db", "http://example.org:5000", "postgresql://ada@example.org/mlflow"],
)
def test_a_tracking_uri_without_a_secret_is_taken(uri: str | None) -> None:
    assert load_config(shipped(tracking={"uri": uri}), SCALES).tracking.uri == uri


def test_all_mistakes_are_told_at_once() -> None:
    said = problems_of(
        training={"steps": 0, "batchsize": 3},
        corpus={"test_fraction": 2.0},
        depth_width={"widths": {1: [33]}},
        colour="red",
    )
    assert said.startswith("The config has 5 problems:")
    assert "width 33 is not divisible by 2 heads" in said  # what no single key shows, beside what one does
    assert len(said.splitlines()) == 6


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "can't be read"),
        ("a,b\n1,2\n", "must be a CSV with columns depth and width"),
        ("depth,width\n6,129\n6,x\n", "line 2: width 129 is not divisible"),
        ("depth,width\n6,129\n6,x\n", "line 3: depth and width must be whole numbers"),
    ],
)
def test_a_wrong_grid_file_is_a_sentence(tmp_path: Path, content: str | None, sentence: str) -> None:
    path = tmp_path / "grid.csv"
    if content is not None:
        path.write_text(content)
    assert sentence in problems_of(depth_width={"widths": None, "repeated": {}, "grid_file": str(path)})


def test_every_key_of_the_shipped_config_is_explained() -> None:
    """Each top-level key of config.yaml has a comment above it, each key of a section one beside it or above."""
    lines = (REPOSITORY / "config.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        if line and not line.startswith((" ", "#")):
            assert lines[number - 1].startswith("#"), line
    for key in yaml.safe_load("\n".join(lines)):
        assert key == "scale" or key in Config.model_fields


def test_what_the_snakefile_imports_is_light() -> None:
    heavy = ("torch", "mlflow", "pandas", "numpy")
    ours = "shapelaw.studies.config, shapelaw.scheduling.workload, shapelaw.storage.failures"
    code = f"import sys, {ours}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

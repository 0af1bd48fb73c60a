"""A scale and the config's own keys become one config; all problems are told at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from shipped import SCALES
from small import REPOSITORY

from shapelaw.campaign.config import Config, load_config, runs_of, studies_of
from shapelaw.errors import UserError
from shapelaw.settings.loading import layered, load_settings, merge, read_values
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.settings import GridBlock
from shapelaw.studies.grid.study import grids_of
from shapelaw.studies.registry import STUDIES


def test_a_key_of_the_config_goes_over_that_of_its_scale_and_a_scales_over_those_of_its_parts(
    tmp_path: Path,
) -> None:
    files = {
        "parts/recipe": {"training": {"steps": 10, "batch_size": 2, "warmup_steps": 0}},
        "parts/sizes": {
            "grids": {"depth_width": {"widths": {1: [8], 2: [8]}, "heads": 4}, "other": {"width": 8}},
            "training": {"batch_size": 3},
        },
        "tiny": {"include": ["recipe", "sizes"], "training": {"steps": 20}},
    }
    for name, values in files.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(values))
    own = {
        "scale": "tiny",
        "training": {"learning_rate": 0.01},
        "grids": {"depth_width": {"widths": {4: [8]}}},
    }
    config = load_settings(Config, own, tmp_path, lambda config: [], {})
    training = config.training.spec()
    assert (training.steps, training.batch_size, training.learning_rate) == (20, 3, 0.01)
    grids = grids_of(config)
    assert grids["depth_width"] == GridBlock(widths={4: [8]})  # a grid is replaced whole
    assert grids["other"] == GridBlock(width=8)


def test_a_grid_s_own_recipe_goes_over_training() -> None:
    """Scale laptop's training has 4,000 steps, 400 of them warm-up, and its attention_ratio 2,500 and 250."""
    own = {"scale": "laptop", "training": {"steps": 500, "batch_size": 8}}
    runs = runs_of(load_config(own, SCALES), "attention_ratio", REPOSITORY).values()
    told = {(run.training.steps, run.training.batch_size) for run in runs if isinstance(run, Run)}
    assert told == {(2500, 8)}


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.grid is not None])
def test_a_section_of_old_gets_one_sentence_with_a_spelling_that_is_right(name: str) -> None:
    """Whatever it says, beside the other problems of the config."""
    with pytest.raises(UserError) as error:
        load_config({"scale": "demo", name: {"widths": 5}, "colour": "red"}, SCALES)
    told = f"  - {name} is a grid now and no section; write it under grids, such as grids: "
    first, second, third = str(error.value).splitlines()
    assert (first, second[: len(told)]) == ("The config has 2 problems:", told)
    assert third.startswith("  - colour is not a key")
    grid = yaml.safe_load(second.removeprefix(told))
    config = load_config({"scale": "demo", "studies": [name], "grids": grid}, SCALES)
    assert runs_of(config, name, REPOSITORY)
    assert studies_of(config)[name].warnings(config, REPOSITORY) == []


NAMES = st.sampled_from(["a", "widths", "1", 1, "2", 2])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.booleans() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def leaves(values: Mapping[Any, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything that is no mapping, and empty mappings, by the spelling of the keys that lead to it."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def spelled_once(values: Any) -> bool:
    return not isinstance(values, Mapping) or (
        len({str(key) for key in values}) == len(values) and all(map(spelled_once, values.values()))
    )


CONFIGS = st.dictionaries(NAMES, TREES, max_size=3).filter(spelled_once)


@given(CONFIGS, CONFIGS)
def test_overrides_win_at_every_depth(base: dict[Any, Any], top: dict[Any, Any]) -> None:
    """Keys of `--config` are texts where those of a file are numbers; both are one key."""
    merged = merge(base, top)
    found, above, below = (dict(leaves(values)) for values in (merged, top, base))
    assert spelled_once(merged)
    for path, value in above.items():
        if value != {}:  # nothing is said about what is in it
            assert found[path] == value
    for path, value in found.items():
        assert above.get(path, below.get(path)) == value
    for path, value in below.items():
        if not any(path[: len(other)] == other[: len(path)] for other in above):
            assert found[path] == value
    assert merge(merged, top) == merged


def test_an_override_of_a_grid_replaces_that_of_the_file(tmp_path: Path) -> None:
    """As Snakemake passes on `--config grids='{depth_width: {widths: {1: [16, 34]}}}'`."""
    paths = [tmp_path / "config.yaml", tmp_path / "more.yaml"]
    paths[0].write_text("grids: {depth_width: {widths: {1: [8], 2: [8]}, heads: 2}}\nscale: demo\n")
    paths[1].write_text("scale: laptop\n")
    grid = {"widths": {"1": ["16", "34"]}}
    values = layered(paths, {"grids": {"depth_width": grid}})
    assert values == {"grids": {"depth_width": grid}, "scale": "laptop"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"scale: demo\nstudies: [a\nb: 1\n", "line 3 is not YAML (expected ',' or ']', but got ':')"),
        (
            b"scale: demo\ntraining:\n  steps: 1\n  steps: 2\n",
            "has the key steps in line 3 and again in line 4",
        ),
        ("scale: demo".encode("utf-16"), "is not text in UTF-8"),
        ("name: Schr\u00f6dinger".encode("latin-1"), "is not text in UTF-8"),
        (b"scale: \x00", "is not YAML (unacceptable character"),
        (b"", "has no keys"),
        (b"- demo", "has no keys"),
        (None, "can't be read (No such file or directory)"),
    ],
)
def test_a_config_that_cannot_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_values(path)
    assert str(error.value).startswith(f"The config {path}")
    assert said in str(error.value)


def test_a_merge_of_a_merge_has_no_key_twice(tmp_path: Path) -> None:
    """Though the last one is merged before the one that stands deeper is read."""
    path = tmp_path / "config.yaml"
    path.write_text("a: &a {k: 0}\nb: {c: &c {<<: *a, k: 1}}\nd: {<<: *c, m: 2}\n")
    assert read_values(path) == {"a": {"k": 0}, "b": {"c": {"k": 1}}, "d": {"k": 1, "m": 2}}

"""docs/config.md, its schema, docs/cli.md and docs/reproduce.md are what models, commands, registry and scales say."""

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml
from page_commands import commands_of, shown_commands
from small import REPOSITORY

import cli_page
from config_reference import SCALES, files, json_schema
from reproduce_page import PAGE, PRINTED, STATUSES, documents, page_of
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import OURS

SCALE_FILES = sorted((REPOSITORY / "workflow" / "scales").rglob("*.yaml"))


COMMAND = "PYTHONPATH=scripts python docs/generators/"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json_schema()


def test_the_reference_of_the_config_is_up_to_date() -> None:
    for path, content in files().items():
        kept = (REPOSITORY / path).read_text(encoding="utf-8")
        assert kept == content, f"{path} is out of date; write it anew: {COMMAND}config_reference.py"


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    kept = (REPOSITORY / cli_page.PAGE).read_text(encoding="utf-8")
    assert kept == cli_page.reference(), (
        f"{cli_page.PAGE} is out of date; write it anew: {COMMAND}cli_page.py"
    )


def test_every_option_of_a_command_is_in_the_reference() -> None:
    for name in cli_page.COMMANDS:
        said = set(re.findall(r"^  (?:-h, )?(--[\w-]+)", cli_page.help_of(name), re.MULTILINE)) - {"--help"}
        found = {word for option, _ in cli_page.options_of(name) for word in re.findall(r"--[\w-]+", option)}
        assert said <= found, name


def test_the_papers_figures_and_tables_are_up_to_date() -> None:
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    assert page_of(text) == text, f"{PAGE} is out of date; write it anew: {COMMAND}reproduce_page.py"


def test_each_item_of_a_document_has_one_row_with_a_status() -> None:
    rows = documents()
    assert not rows.duplicated(["document", "item"]).any()
    assert set(rows["status"]) <= set(STATUSES)
    done = ~rows["status"].isin(["open", "none"])
    assert (rows.loc[done, ["command", "size", "result"]] != "").all(axis=None)
    assert rows["item"].str.startswith(PRINTED).sum() <= 55


def test_what_a_row_names_is_there_or_made_by_a_study() -> None:
    made = {
        path
        for study in STUDIES.values()
        for path in (*study.files(study.tables, ["csv"]), *study.files(study.figures, ["svg"]))
    }
    for path in {path for result in documents()["result"] for path in result.split()}:
        assert path in made or (REPOSITORY / path.partition("#")[0]).is_file(), path


def test_every_figure_that_a_study_draws_of_a_paper_has_a_row() -> None:
    rows = documents()
    for study in STUDIES.values():
        for figure, source in study.figures.items():
            if not source.startswith(OURS) and study.name != "committed_runs":
                path = f"results/{study.name}/{figure}.svg"
                found = rows["result"].str.contains(path).any()
                assert found, f"{path} is {source}; give that a row in docs/reproduce.csv"


def test_the_command_of_a_row_is_carried_out_with_those_of_the_pages() -> None:
    shown = {one.words for one in shown_commands()}
    for command in set(documents()["command"]) - {""}:
        ((words, _, _),) = commands_of(f"`{command}`")
        program, path, *_ = words
        assert words in shown or (program == "pytest" and (REPOSITORY / path).is_file()), command


def test_every_key_has_a_sentence(schema: dict[str, Any]) -> None:
    for model in schema["$defs"].values():
        for name, key in model["properties"].items():
            first = key["description"][0]
            assert first == "`" or first.isupper(), name
            assert key["description"].endswith("."), name


def test_the_schema_accepts_our_own_files(schema: dict[str, Any]) -> None:
    assert set(SCALES) == {path.stem for path in SCALE_FILES if path.parent.name == "scales"}
    for path in (REPOSITORY / "config.yaml", *SCALE_FILES):
        values = json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8"))))  # keys are texts
        values.pop("include", None)  # of scales alone
        jsonschema.validate(values, schema)


def test_editors_find_the_schema() -> None:
    first = (REPOSITORY / "config.yaml").read_text(encoding="utf-8").splitlines()[0]
    place = first.removeprefix("# yaml-language-server: $schema=")
    assert (REPOSITORY / place).is_file()

"""The page that answers for a budget says what the command says."""

import json
import re
import shlex

import pytest
from commands import run_here
from shapelaw.studies.advice import PUBLISHED, Answer, answer, read_law
from small import REPOSITORY, SCRIPTS

from shapelaw.fits.advice import Budget
from shapelaw.specs.architectures import make_architecture
from shapelaw.studies.reference import REFERENCE

PAGE = (REPOSITORY / "docs" / "answer.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| GPT-3")]


def test_the_output_shown_is_the_command_s() -> None:
    command = re.search(r"```sh\npython scripts/advise.py (.*)\n```\n\n```text\n((?:.*\n)*?)```", PAGE)
    assert command is not None
    done = run_here(SCRIPTS / "advise.py", *shlex.split(command[1]), cwd=REPOSITORY)
    assert done.stdout == command[2]


def advised(params: float, depth: int, width: int) -> Answer:
    given = make_architecture("trained", vocab_size=50257, depth=depth, width=width)
    return answer(Budget(params, 50257, 2048, tied=True), read_law(PUBLISHED), given)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_row_is_the_advice_for_its_size(row: list[str]) -> None:
    published = (REFERENCE / "levine2020_projection.csv").read_text(encoding="utf-8").splitlines()
    name, params, depth, width = next(line for line in published if line.startswith(row[0] + ",")).split(",")[
        :4
    ]
    found = advised(float(params), int(depth), int(width))
    advice, shape = found.advice, found.shape
    side = (
        "shallower"
        if int(depth) < advice.depth_low
        else "deeper"
        if int(depth) > advice.depth_high
        else "within"
    )
    assert row == [
        name,
        f"{depth} x {int(width):,}",
        f"{advice.depth:.0f} ({advice.depth_low:.0f} to {advice.depth_high:.0f})",
        f"{advice.width:,.0f}",
        f"{shape.depth} x {shape.width:,}, {shape.heads} heads",
        side,
    ]


def test_the_further_models_have_the_advice_of_their_commands() -> None:
    rows = re.findall(r"\| `(--params [^`]*)` \| [^|]* \| (\d+ \(\d+ to \d+\)) \|", PAGE)
    assert len(rows) == 3
    for flags, said in rows:
        done = run_here(SCRIPTS / "advise.py", *shlex.split(flags), "--json", cwd=REPOSITORY)
        found = json.loads(done.stdout)
        assert f"{found['depth']:.0f} ({found['depth_low']:.0f} to {found['depth_high']:.0f})" == said


def test_the_readme_s_table_has_rows_of_the_page_s() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in readme.splitlines() if line.startswith("| GPT-3")]
    by_name = {row[0]: row for row in ROWS}
    assert len(rows) >= 4
    for name, advice, trained in rows:
        assert advice == f"{by_name[name][2]} x {by_name[name][3]}"
        assert trained == by_name[name][1]


def test_the_intervals_of_the_forms_at_175_billion_are_as_the_page_says() -> None:
    by_form = advised(175e9, 96, 12288).by_form
    said = [
        f"{form.depth_low:.0f} to {form.depth_high:.0f} layers by the {name}"
        for name, form in by_form.items()
    ]
    assert said == ["79 to 82 layers by the line", "70 to 95 layers by the quadratic"]
    assert "79 to 82 layers by the line, 70 to 95 by the quadratic" in PAGE

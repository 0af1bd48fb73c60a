"""The report's first page: question, answer or undecided, published, figure, command, links."""

from pathlib import Path

from shapelaw.report.findings import Finding, findings_page
from shapelaw.report.write import Answer

DECIDED = Finding("bread", "Bread", "Does it rise?", Answer("It rises by 2 (1 to 3) cm.", True, "3 cm."))


def test_a_study_is_a_question_with_its_answer_beside_the_published_one() -> None:
    text = findings_page([DECIDED])
    for said in (
        "Does it rise?",
        "It rises by 2 (1 to 3) cm.",
        "3 cm.",
        "1 question, 1 answered",
        "0 undecided",
    ):
        assert said in text
    assert "snakemake --forcerun bread -- results/bread/fit.json" in text
    assert 'class="undecided">' not in text


def test_an_open_question_says_undecided_and_why() -> None:
    text = findings_page([Finding("bread", "Bread", "Does it rise?", Answer("One loaf only.", False))])
    assert '<span class="undecided">undecided</span> One loaf only.' in text
    assert "nothing on this question" in text
    assert "0 answered by these runs, 1 undecided" in text


def test_runs_made_elsewhere_old_results_and_html_are_told() -> None:
    elsewhere = Finding("bread", "Bread", "a < b?", None, made_elsewhere="Baked last year.")
    text = findings_page([elsewhere])
    assert "Baked last year." in text
    assert "a &lt; b?" in text
    assert "older version" in text


def test_the_figure_is_inside_and_links_are_named(tmp_path: Path) -> None:
    (tmp_path / "crust.svg").write_text("<svg/>")
    one = Finding(
        "bread", "Bread", "Does it rise?", DECIDED.answer, ("One.", "Two."), tmp_path / "crust.svg", "our own",
        links={"runs": "http://127.0.0.1:5000/#/experiments/1/runs?a=b&c=d"},
    )  # fmt: skip
    text = findings_page([one])
    assert 'src="data:image/svg+xml;base64,' in text
    assert 'href="http://127.0.0.1:5000/#/experiments/1/runs?a=b&amp;c=d" target="_blank">runs</a>' in text
    assert "all 2 findings" in text


def test_the_report_can_take_the_whole_page() -> None:
    """It becomes text of a script, so it may not end one, and its style may touch nothing else of the report."""
    text = findings_page([DECIDED])
    assert "script" not in text
    style = text.split("<style>")[1].split("</style>")[0]
    rules = [line.split("{")[0] for line in style.splitlines() if "{" in line and not line.startswith("@")]
    assert rules
    assert all(".findings" in rule or ".prose.max-w-lg" in rule for rule in rules)

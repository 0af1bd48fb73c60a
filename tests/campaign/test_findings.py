"""The report's first page, what it is read from, and the numbers of a summary run."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from golden_tables import COMMANDS, golden
from grid_runs import HEADS_COST, analysed
from mlflow.tracking import MlflowClient

from shapelaw.campaign.findings import MOST, Finding, findings_page, headline, read_finding
from shapelaw.errors import UserError
from shapelaw.report.write import Answer, Results, Table, write_results
from shapelaw.studies.grid.results import present
from shapelaw.studies.study import Study

STUDY = Study(
    "bread", "Bread", Path("/rooms/bread"), ("loaves",), {"crust": "a book", "crumb": "our own"},
    "bread.results", "Does it rise?", subtitle="rye", made_elsewhere="Baked last year.",
)  # fmt: skip
OWN = replace(STUDY, made_elsewhere="")
DECIDED = Finding(OWN, "Bread", Answer("It rises by 2 (1 to 3) cm.", True, "3 cm."))


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
    one = replace(DECIDED, submitted=Path("results/submitted/1.json"))
    again = "snakemake --config submitted=results/submitted/1.json --forcerun bread -- results/bread/fit.json"
    assert again in findings_page([one])


def test_an_open_question_and_runs_made_elsewhere_are_told() -> None:
    text = findings_page([replace(DECIDED, answer=Answer("One loaf only.", False))])
    assert '<span class="undecided">undecided</span> One loaf only.' in text
    assert "nothing on this question" in text
    assert "0 answered by these runs, 1 undecided" in text
    text = findings_page([replace(DECIDED, study=replace(STUDY, question="a < b?"))])
    for said in ("Baked last year.", "a &lt; b?", "0 questions, 0 answered by these runs"):
        assert said in text


def test_an_answer_to_a_part_of_the_question_leaves_the_rest_to_decide(tmp_path: Path) -> None:
    (tmp_path / "bread").mkdir()
    fit = {"answer": {"sentence": "Yes, the crust is undecided.", "decided": True, "partly": True}}
    (tmp_path / "bread" / "fit.json").write_text(json.dumps(fit))
    text = findings_page([read_finding(replace(OWN, figures={}), tmp_path, lacking=["bake more"])])
    assert "1 answered by these runs (1 in part), 0 undecided" in text
    assert "<strong>Yes, the crust is undecided.</strong>" in text
    assert "<dt>To decide</dt><dd>bake more.</dd>" in text


def test_own_runs_come_first_and_those_made_elsewhere_stand_below_under_their_heading() -> None:
    elsewhere = replace(DECIDED, study=replace(STUDY, name="cake", question="Is it sweet?"))
    text = findings_page([elsewhere, replace(DECIDED, answer=Answer("One loaf only.", False))])
    assert "1 question, 0 answered by these runs, 1 undecided" in text
    places = [text.index(said) for said in ("Does it rise?", "trained elsewhere</h1>", "Is it sweet?")]
    assert places == sorted(places)
    assert "elsewhere</h1>" not in findings_page([DECIDED])


def test_the_page_says_what_would_decide_a_question_and_why_a_published_number_may_differ() -> None:
    asked = replace(DECIDED, answer=Answer("One loaf only.", False), lacking=["bake a second & third"])
    assert "<dt>To decide</dt><dd>bake a second &amp; third.</dd>" in findings_page([asked])
    assert "To decide" not in findings_page([DECIDED])
    assert "3 cm. Ours may differ: they are of rye, 30 minutes." in findings_page(
        [replace(DECIDED, trained="rye, 30 minutes")]
    )


def test_the_figure_is_inside_and_links_are_named(tmp_path: Path) -> None:
    (tmp_path / "crust.svg").write_text('<svg height="90pt" width="100.2pt"/>')
    one = Finding(
        OWN, "Bread", DECIDED.answer, ("One.", "Two."), tmp_path / "crust.svg",
        links={"runs": "http://127.0.0.1:5000/#/experiments/1/runs?a=b&c=d"},
    )  # fmt: skip
    text = findings_page([one])
    assert 'style="--drawn: 150pt" src="data:image/svg+xml;base64,' in text
    assert 'href="http://127.0.0.1:5000/#/experiments/1/runs?a=b&amp;c=d" target="_blank">runs</a>' in text
    assert "all 2 findings" in text
    assert '<details class="figure" open><summary>figure: crust, a book</summary>' in text
    assert '<details class="figure" open>' in findings_page([replace(one, answer=Answer("No.", False))])
    assert '<details class="figure"><summary>' in findings_page([replace(one, study=STUDY)])
    assert "checkbox" not in text


def test_the_report_can_take_the_whole_page() -> None:
    """It becomes text of a script, so it may not end one, and its style may touch nothing else of the report."""
    text = findings_page([DECIDED])
    assert "script" not in text
    style = text.split("<style>")[1].split("</style>")[0]
    rules = [line.split("{")[0] for line in style.splitlines() if "{" in line and not line.startswith("@")]
    assert rules
    assert all(".findings" in rule for rule in rules)


def test_question_and_figures_come_from_the_room_answer_and_links_from_files(tmp_path: Path) -> None:
    folder = tmp_path / "bread"
    folder.mkdir()
    fit = {"answer": {"sentence": "Yes.", "decided": True, "published": "No."}, "findings": ["It rose."]}
    (folder / "fit.json").write_text(json.dumps(fit))
    (folder / "logged").write_text(json.dumps({"pages": {"runs": "http://h/#/experiments/1"}}))
    (folder / "crust.svg").write_text("<svg><!-- No figure: no oven --></svg>")
    (folder / "crumb.svg").write_text("<svg/>")
    loaves = pd.DataFrame({"loaf": range(20), "height": 2.5})
    write_results(Results({"loaves": Table(loaves, "All <loaves>.")}, {}, fit, ""), folder, "bread")
    (folder / "fit.json").write_text(json.dumps(fit))
    found = read_finding(STUDY, tmp_path, lacking=["bake more"])
    assert found.tables == ["bread/loaves.html"]
    assert found.shown.startswith("<p>All &lt;loaves&gt;. The first 10 of 20 rows.</p>")
    assert found.shown.count("<tr>") == 11
    assert found.lacking == ()
    assert (found.study, found.heading) == (STUDY, "Bread: rye")
    assert (found.answer, found.findings) == (Answer("Yes.", True, "No."), ("It rose.",))
    assert found.figure == folder / "crumb.svg"
    assert found.links == {"runs": "http://h/#/experiments/1"}
    assert found.command.endswith(f" {folder}/fit.json")
    (folder / "logged").write_text("")
    found = read_finding(replace(STUDY, figures={}, tables=()), tmp_path)
    assert (found.figure, found.links) == (None, {})
    for broken in ("", "[]", "{}"):
        (folder / "fit.json").write_text(broken)
        with pytest.raises(UserError, match=r"bread/fit.json is missing or broken; make it with: snakemake"):
            read_finding(STUDY, tmp_path)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Those of a grid, with transitions."""
    folder = tmp_path_factory.mktemp("tables")
    for name, table in present(analysed(heads=(1, 2))).tables.items():
        table.frame.to_csv(folder / f"{name}.csv", index=False)
    transitions = pd.read_csv(folder / "transitions.csv")
    transitions.loc[transitions["method"] == "bootstrap", "width"] = 37.5
    transitions.to_csv(folder / "transitions.csv", index=False)
    return {path.stem: path for path in folder.iterdir()}


def test_effects_best_depths_and_transitions_have_names_that_one_would_guess(tables: dict[str, Path]) -> None:
    numbers = headline(tables)
    assert numbers["effect.heads_1_to_2"] == pytest.approx(HEADS_COST)
    assert list(numbers)[:2] == ["effect.vocab_size_257_to_500", "effect.embedding_rank_8_to_full"]
    assert numbers["best_depth.at_24_6K"] == 1
    assert numbers["transition_width.depth1_2.V500_r8_H2"] == 37.5
    assert len(numbers) <= MOST


def test_a_study_of_one_cell_names_its_sizes_and_no_cell(tmp_path: Path) -> None:
    rows = [{"depth": 1, "deeper_depth": 2, "width": 137.0, "method": "bootstrap", "vocab_size": 2000}]
    pd.DataFrame(rows)[["vocab_size", "depth", "deeper_depth", "width", "method"]].to_csv(
        tmp_path / "transitions.csv", index=False
    )
    pd.DataFrame([{"size_low": 52e3, "size_high": 1.5e6, "best_depth": 3}]).to_csv(
        tmp_path / "best_depth.csv", index=False
    )
    assert headline({path.stem: path for path in sorted(tmp_path.iterdir())}) == {
        "best_depth.at_52K_to_1_5M": 3.0,
        "transition_width.depth1_2": 137.0,
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_of_every_study_have_a_headline(command: str, tmp_path: Path) -> None:
    for name, text in golden(command).items():
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = headline({path.stem: path for path in tmp_path.rglob("*.csv")})
    assert len(found) <= MOST
    assert all(re.fullmatch(r"[a-z_]+(\.\w+)+", name) for name in found), found


def test_of_many_numbers_the_first_forty_stay(tmp_path: Path) -> None:
    names = ("axis", "one", "other", "settings", "quantity", "value")
    rows = [("learning_rate", 1e-5, 0.001 * k, 1, "loss at equal size", 0.5) for k in range(1, 60)]
    pd.DataFrame(rows, columns=names).to_csv(tmp_path / "effects.csv", index=False)
    numbers = headline({"effects": tmp_path / "effects.csv"})
    assert len(numbers) == MOST
    assert next(iter(numbers)) == "effect.learning_rate_1e_05_to_0_001"


def test_a_filter_finds_each_as_it_stands(tables: dict[str, Path], empty_store: Path, tmp_path: Path) -> None:
    """Without backticks."""
    store = tmp_path / "mlflow.db"
    store.write_bytes(empty_store.read_bytes())
    client = MlflowClient(f"sqlite:///{store}")
    experiment = client.create_experiment("mine")
    run = client.create_run(experiment).info.run_id
    names = {**headline(tables), "effect.learning_rate_1e_05_to_0_001": 1.0, "best_depth.at_52K_to_1_5M": 3.0}
    for name, value in names.items():
        client.log_metric(run, name, value)
    for name in names:
        for rest in ("", " and metrics.best_depth.at_24_6K = 1"):
            found = client.search_runs([experiment], f"metrics.{name} < 1000{rest}")
            assert [each.info.run_id for each in found] == [run], name

"""A study's pages in MLflow's UI: shared views and links."""

from __future__ import annotations

import base64
import json
import zlib

from made_records import make_run, write_finished
from places import Place

from shapelaw.specs.kinds import KINDS, LANGUAGE
from shapelaw.tracking.store import find_experiment
from shapelaw.tracking.summary import log_summary
from shapelaw.tracking.views import LOCAL, RUNS, SEEDS, SUMMARY, address, pages, view, write_note


def test_the_columns_are_those_that_answer() -> None:
    state = view(LANGUAGE, averaged=False)
    assert state["selectedColumns"] == [
        *("params.`depth`", "params.`width`", "params.`seed`"),
        *(
            "metrics.`result/test_loss`",
            "metrics.`result/bits_per_byte`",
            "metrics.`system/tokens_per_second`",
        ),
    ]
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`result/test_loss`", True)
    assert view(LANGUAGE, averaged=True)["groupBy"]["groupByKeys"] == [
        {"mode": "tag", "groupByData": "shape"}
    ]
    for kind in KINDS.values():
        known = {column.name for column in (*kind.params, *kind.metrics)}
        assert set(kind.shown) <= known


def test_an_imported_study_opens_as_model_training_with_its_views(any_place: Place) -> None:
    write_finished(any_place.results, make_run())
    any_place.import_all()
    store = any_place.store()
    write_note(store, any_place.study, "**Deep or wide?**")
    experiment = find_experiment(store, any_place.study)
    assert experiment
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    assert experiment.tags["mlflow.note.content"] == "**Deep or wide?**"
    kept = experiment.tags["mlflow.sharedViewState.runs"].removeprefix("deflate;")
    assert json.loads(zlib.decompress(base64.b64decode(kept))) == view(LANGUAGE, averaged=False)
    links = pages(store, any_place.study, LOCAL)
    start = f"{LOCAL}/#/experiments/{experiment.experiment_id}/runs"
    assert links[RUNS] == f"{start}?workflowType=machine_learning&viewStateShareKey=runs"
    assert links[SEEDS] == f"{start}?workflowType=machine_learning&viewStateShareKey=seeds"
    assert SUMMARY not in links
    run_id = log_summary(store, any_place.study, [], None)
    assert (
        pages(store, any_place.study, LOCAL)[SUMMARY]
        == f"{start}/{run_id}/artifacts?workflowType=machine_learning"
    )
    write_note(store, "nothing", "no such study")
    assert pages(store, "nothing", LOCAL) == {}


def test_the_address_is_the_servers_without_its_password() -> None:
    assert address("sqlite:////tmp/mlflow.db") == address("postgresql://me:hush@host/db") == LOCAL
    assert address("https://me:hush@host:8080/mlflow/?a=b") == "https://host:8080/mlflow"

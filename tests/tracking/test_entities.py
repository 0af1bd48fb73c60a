"""Numbers, texts and names as MLflow takes them."""

from __future__ import annotations

import math
import sys

from made_records import make_run, milliseconds, write_finished, write_live
from places import Place
from stored import active_runs, curves


def test_losses_that_are_not_finite_survive(any_place: Place) -> None:
    run = make_run()
    bad = [(10, math.nan, 1e-3, math.inf, math.nan), (20, math.inf, 1e-3, math.nan, math.nan)]
    write_live(any_place.results, run, rows=bad)
    any_place.import_all()
    more = [*bad, (30, math.nan, 1e-3, 1.0, math.nan)]
    write_live(any_place.results, run, "FAILED", last=30, rows=more)
    any_place.import_all()
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    points = curves(store, found)["train_loss"]
    assert [step for step, _ in points] == [10, 20, 30]
    assert math.isnan(points[0][1])
    assert points[1][1] == sys.float_info.max
    assert math.isnan(points[2][1])


def test_texts_and_names_that_mlflow_refuses_are_made_to_fit(place: Place) -> None:
    run = make_run()
    write_finished(
        place.results, run, tags={"größe?": "x" * 9000, "key": "not mine", "fingerprint": "nor this"}
    )
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert (found.data.tags["gr__e_"], found.data.tags["key"]) == ("x" * 5000, run.key)
    assert place.import_all().unchanged == 1


def test_the_device_and_the_versions_are_tags(place: Place) -> None:
    run = make_run()
    machine = {
        "device_type": "cuda",
        "device": "NVIDIA A100",
        "cuda_version": "12.8",
        "python_version": "3.11.7",
    }
    write_finished(place.results, run, **machine)
    place.import_all()
    tags = active_runs(place.store(), place.study)[run.key].data.tags
    assert {name: tags[name] for name in [*machine, "torch_version"]} == {**machine, "torch_version": "2.9.0"}


def test_curves_are_spread_over_the_run_and_single_numbers_are_no_curves(place: Place) -> None:
    run = make_run()
    write_finished(place.results, run)
    place.import_all()
    store = place.store()
    found = active_runs(store, place.study)[run.key]
    (point,) = store.client.get_metric_history(found.info.run_id, "result/test_loss")
    assert (point.step, point.timestamp) == (0, milliseconds(90))
    times = [m.timestamp for m in store.client.get_metric_history(found.info.run_id, "loss/train")]
    assert sorted(times) == [milliseconds(15 * k) for k in range(1, 7)]

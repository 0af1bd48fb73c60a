"""Networks loaded, looked at layer by layer, and found whole or not."""

import dataclasses

import numpy as np
import pytest
import torch
from small import small_run

from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run
from shapelaw.storage.records import write_live, write_spec
from shapelaw.studies.assumptions.check import Request, check
from shapelaw.studies.assumptions.study import Assumptions
from shapelaw.training.checkpoint import keep_newest, save_checkpoint

QUICK = Assumptions(models=["decoder"], examples=100, trials=100, sensitivity_trials=30, curve_trials=5)


def test_a_trained_decoder_is_beside_the_random_one(stores, tmp_path):
    train, _ = stores
    run = Run("prose", make_shape(1, 32, 2, 257, 12), small_run().training, 0)
    model = Decoder(run.shape)
    initialise(model, 5)
    folder = tmp_path / "checkpoints" / "depth_width" / run.key
    write_spec(folder, run)
    write_live(folder, {"status": "KILLED"})
    state = {"identity": "x", "step": 12, "model": model.state_dict()}
    save_checkpoint(folder, 12, state)
    request = Request(QUICK, tmp_path / "out", tmp_path, folder, train.path)
    said: list[str] = []
    rows = {(row.weights, row.layer): row for row in check(request, said.append)}
    assert len(rows) == len(said) == 4
    trained, random = rows["trained", "layer 1"], rows["random", "layer 1"]
    assert trained.note == f"{run.key} after 12 steps"
    assert trained.findings.context == 12
    assert not np.array_equal(trained.findings.query.values, random.findings.query.values)
    save_checkpoint(folder, 13, state | {"model": {"norm.weight": torch.ones(32)}})
    with pytest.raises(UserError, match=r"The weights lack tokens\.weight"):
        check(request, said.append)
    keep_newest(folder, 0)
    with pytest.raises(UserError, match="has no checkpoint of a decoder; a finished run keeps"):
        check(request, said.append)
    with pytest.raises(UserError, match="--decoder and --tokens go together"):
        check(dataclasses.replace(request, tokens=None), said.append)

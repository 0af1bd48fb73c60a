"""Verdicts on layers whose answer is known, and networks loaded, looked at layer by layer, and found whole or not."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layers_of_tokens import ASKED, findings, gaussian, made_rows, with_queries
from small import small_run

from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.report.write import tables_of
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run
from shapelaw.storage.records import write_live, write_spec
from shapelaw.studies.assumptions.check import Request, check
from shapelaw.studies.assumptions.results import (
    TABLES,
    float32_tolerance,
    pass_rate_figure,
    read_rows,
    write_row,
)
from shapelaw.studies.assumptions.study import Assumptions
from shapelaw.theory.memorization import kruskal_pass_rate, kruskal_rank_estimate, smallest_values
from shapelaw.training.checkpoint import keep_newest, save_checkpoint


def test_random_tokens_keep_everything():
    found = findings(gaussian(40, 6, 12))
    assert set(found.verdicts(1e-10).values()) == {True}
    assert (found.kruskal, found.rank.rank, found.examples, found.context, found.width) == (12, 12, 40, 6, 12)
    assert 1e-6 < found.position.limit < found.query.limit < 1
    assert found.contexts.limit > 1e-4


def test_one_cls_for_all_is_the_embedding_layer():
    found = findings(with_queries(gaussian(40, 6, 12), gaussian(12)))
    assert found.verdicts(1e-10) == {
        "general position": False, "assumption 1": False, "assumption 2": True, "assumption 3": True
    }  # fmt: skip
    assert (found.kruskal, found.rank.rank, found.query.limit) == (1, 1, 0.0)


def test_the_query_may_be_the_last_token():
    tokens = with_queries(gaussian(40, 6, 12), gaussian(12), query=-1)
    assert not findings(tokens, query=-1).verdicts(1e-10)["assumption 1"]
    assert findings(tokens, query=0).verdicts(1e-10)["assumption 1"]


def test_a_fresh_layer_norm_costs_one_dimension():
    """Entries that sum to zero: no d vectors are independent, though n are."""
    tokens = gaussian(40, 6, 12)
    found = findings(tokens - tokens.mean(-1, keepdims=True))
    assert (found.kruskal, found.position.limit) == (11, 0.0)
    assert not found.verdicts(1e-10)["general position"]
    assert found.verdicts(1e-10)["assumption 1"]


def test_contexts_with_two_equal_tokens_or_more_tokens_than_width():
    tokens = gaussian(40, 6, 12)
    tokens[9, 3] = tokens[9, 4]
    found = findings(tokens)
    assert not found.verdicts(1e-10)["assumption 2"]
    assert found.contexts.rate_at(1e-10) == 39 / 40
    assert found.contexts.limit == 0.0
    wide = findings(gaussian(40, 14, 12))
    assert (wide.contexts.rate_at(1e-10), wide.contexts.limit) == (0.0, 0.0)
    assert not wide.verdicts(1e-10)["assumption 1"]


@given(st.floats(-9, -2), st.integers(0, 10**6))
@settings(max_examples=15)
def test_a_verdict_holds_below_its_limit_and_not_above(exponent, seed):
    """Queries with one short direction: the limit is where the sampled test of theory/memorization.py turns."""
    scales = np.r_[np.ones(5), 10.0**exponent, np.zeros(6)]
    tokens = with_queries(gaussian(40, 6, 12, seed=seed), gaussian(40, 12, seed=seed + 1) * scales)
    found = findings(tokens)
    queries = tokens[:, 0]
    for factor, holds in ((0.99, True), (1.01, False)):
        limit = found.query.limit * factor
        assert found.query.holds_at(limit) == holds
        rate = kruskal_pass_rate(queries, 6, ASKED.sensitivity_trials, 0, limit).rate
        assert rate == found.query.rate_at(limit)
        assert (rate >= 0.99) == holds


def test_the_authors_verdict_is_that_of_torchs_float32_rank():
    scales = np.geomspace(1.0, 1e-6, 40)
    tokens = with_queries(gaussian(80, 20, 40), gaussian(80, 40, seed=1) * scales)
    found = findings(tokens)
    queries = torch.from_numpy(tokens[:, 0]).float()
    ranks = []
    for size in range(1, 41):
        rng = np.random.default_rng(0)
        subsets = [rng.choice(80, size, replace=False, shuffle=False) for _ in range(100)]
        ranks.append(np.mean([int(torch.linalg.matrix_rank(queries[s])) == size for s in subsets]))
        ours = (smallest_values(tokens[:, 0], size, 100) > float32_tolerance(size, 40)).mean()
        assert ours == pytest.approx(ranks[-1], abs=0.02)
    assert found.verdicts()["assumption 1"] == (ranks[19] >= 0.99)
    assert not found.verdicts()["general position"]
    assert found.verdicts(1e-10)["general position"]
    assert found.kruskal == 40
    assert found.kruskal_float32 == pytest.approx(sum(rate >= 0.99 for rate in ranks), abs=1)


def test_curves_are_closer_where_they_fall():
    tokens = with_queries(gaussian(120, 20, 60), gaussian(120, 60, seed=1) * np.geomspace(1.0, 1e-9, 60))
    found = findings(tokens)
    assert {1, 20, 60} <= set(found.sizes.tolist())
    assert found.curve.shape == (len(found.sizes), 30)
    rank = kruskal_rank_estimate(tokens[:, 0], 100, 0, 1e-6)
    near = found.sizes[np.abs(found.sizes - rank) <= 5]
    assert len(near) >= 3


def test_too_few_examples():
    with pytest.raises(UserError, match="5 examples are too few for a context of 6 tokens"):
        findings(gaussian(5, 6, 12))


def test_embeddings_alone_have_no_figure():
    with pytest.raises(ValueError, match="no layer after an attention layer"):
        pass_rate_figure(
            tables_of(TABLES, TABLES, [row for row in made_rows() if row.layer in ("embedding", "layer 0")])
        )


def test_a_row_comes_back_as_it_was(tmp_path):
    rows = made_rows()
    for row in rows:
        write_row(tmp_path, row)
    before, back = (
        {(row.model, row.layer): dataclasses.asdict(row) for row in some}
        for some in (rows, read_rows(tmp_path))
    )
    np.testing.assert_equal(back, before)
    (tmp_path / "vit-broken.npz").write_bytes(b"PK nothing")
    with pytest.raises(UserError, match=r"vit-broken\.npz can't be read"):
        read_rows(tmp_path)


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
    assert trained.context == 12
    assert not np.array_equal(trained.query.values, random.query.values)
    save_checkpoint(folder, 13, state | {"model": {"norm.weight": torch.ones(32)}})
    with pytest.raises(UserError, match=r"The weights lack tokens\.weight"):
        check(request, said.append)
    keep_newest(folder, 0)
    with pytest.raises(UserError, match="has no checkpoint of a decoder; a finished run keeps"):
        check(request, said.append)
    with pytest.raises(UserError, match="--decoder and --tokens go together"):
        check(dataclasses.replace(request, tokens=None), said.append)

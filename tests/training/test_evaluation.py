"""The test loss: the mean over fixed windows, however they are batched and shared out."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.shapes import make_shape
from shapelaw.training.evaluation import EvaluationSet, bits_per_byte, evaluate, load_test_set

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def windows(stores: tuple[TokenStore, TokenStore]) -> EvaluationSet:
    return load_test_set(stores[1], context_length=16, sequences=11)


@pytest.fixture
def decoder() -> Decoder:
    model = Decoder(make_shape(1, 8, 2, 257, 16), dropout=0.5)
    initialise(model, 0)
    return model


def test_windows_are_spread_over_the_store(
    stores: tuple[TokenStore, TokenStore], windows: EvaluationSet
) -> None:
    store = stores[1]
    assert windows.windows.shape == (11, 17)
    assert windows.tokens == 11 * 16
    last = 10 * len(store.tokens) // 11
    assert windows.windows[0].tolist() == store.tokens[:17].tolist()
    assert windows.windows[10].tolist() == store.tokens[last : last + 17].tolist()
    assert windows.bytes == (windows.windows[:, 1:] != 256).sum()  # every token but end-of-text is one byte
    with pytest.raises(UserError, match="test_sequences is 1,000,000"):
        load_test_set(store, 16, 1_000_000)


def test_it_is_the_mean_cross_entropy_of_every_target_without_dropout(
    windows: EvaluationSet, decoder: Decoder
) -> None:
    ids = torch.from_numpy(windows.windows)
    with torch.no_grad():
        logits = decoder.eval().logits(ids[:, :-1])
    expected = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    decoder.train()
    for batch in (1, 4, 11, 50):  # the last of four has three
        assert evaluate(decoder, windows, batch, CPU, rank=0, world=1) == pytest.approx(expected, rel=1e-6)
    assert decoder.training


def test_ranks_take_every_other_batch(
    windows: EvaluationSet, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums, which `all_reduce` adds up, make the whole."""
    monkeypatch.setattr("torch.distributed.all_reduce", lambda total: None)
    shares = [evaluate(decoder, windows, 2, CPU, rank, world=3) for rank in range(3)]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(evaluate(decoder, windows, 2, CPU, rank=0, world=1), rel=1e-9)


def test_bits_per_byte_by_hand() -> None:
    """Two tokens of 3 bits each stand for 4 bytes."""
    windows = EvaluationSet(np.zeros((1, 3), np.int64), tokens=2, bytes=4)
    assert bits_per_byte(3 * math.log(2), windows) == pytest.approx(1.5)

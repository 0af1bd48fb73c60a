"""Perplexities and bits per byte of documents, by hand and against their noise."""

import math

import numpy as np
import pytest

from shapelaw.fits.document_loss import DocumentLoss, Rate, summarise


def test_two_documents_by_hand() -> None:
    found = summarise([DocumentLoss(10.0, 4, 2, 20), DocumentLoss(2.0, 2, 1, 4)])
    assert (found.documents, found.tokens, found.gpt2_tokens, found.bytes) == (2, 6, 3, 24)
    assert found.perplexity.value == pytest.approx(math.exp(12 / 6))
    assert found.gpt2_perplexity is not None
    assert found.gpt2_perplexity.value == pytest.approx(math.exp(12 / 3))
    assert found.bits_per_byte.value == pytest.approx(12 / math.log(2) / 24)


def test_without_gpt2_s_counts_there_is_no_perplexity_per_gpt2_token() -> None:
    found = summarise([DocumentLoss(10.0, 4, 2, 20), DocumentLoss(2.0, 2, None, 4)])
    assert found.gpt2_perplexity is None
    assert found.gpt2_tokens is None


def test_one_document_has_no_interval() -> None:
    found = summarise([DocumentLoss(10.0, 4, 2, 20)])
    assert found.perplexity == Rate(pytest.approx(math.exp(2.5)), None, None)
    assert found.bits_per_byte.high is None


def test_the_interval_is_the_standard_error_of_documents_of_equal_length() -> None:
    nats = np.random.default_rng(0).normal(100, 10, 400)
    found = summarise([DocumentLoss(one, 50, 40, 200) for one in nats])
    assert found.bits_per_byte.low is not None
    assert found.bits_per_byte.high is not None
    half = (found.bits_per_byte.high - found.bits_per_byte.low) / 2
    assert half == pytest.approx(nats.std() / math.sqrt(400) / 200 / math.log(2), rel=0.06)
    assert found.bits_per_byte.low < found.bits_per_byte.value < found.bits_per_byte.high
    assert found.perplexity.low == pytest.approx(math.exp(found.bits_per_byte.low * math.log(2) * 200 / 50))

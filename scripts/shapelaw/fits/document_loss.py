"""Perplexity and bits per byte of a set of documents, with intervals over documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapelaw.fits.line import Floats

INTERVAL = (0.16, 0.84)  # 68%
DRAWS = 2000


@dataclass(frozen=True)
class DocumentLoss:
    """The loss of one document in nats, and its length in the three units that a loss is told in."""

    nats: float
    tokens: int
    gpt2_tokens: int | None
    bytes: int


@dataclass(frozen=True)
class Rate:
    """A loss per unit of text, with the 68% interval over draws of documents; None from one document."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Losses:
    """A model's losses over all documents together.

    Attributes:
        perplexity: exp of nats per token of the model's own vocabulary.
        gpt2_perplexity: exp of nats per GPT-2 token, which models of any vocabulary share; None without its counts.
        bits_per_byte: nats / ln 2 per UTF-8 byte.
    """

    documents: int
    tokens: int
    gpt2_tokens: int | None
    bytes: int
    perplexity: Rate
    gpt2_perplexity: Rate | None
    bits_per_byte: Rate


def summarise(found: Sequence[DocumentLoss], seed: int = 0) -> Losses:
    """The losses of all documents together; every unit of text counts alike.

    Args:
        found: at least one document.
        seed: seed of the draws of documents.
    """
    nats = np.array([one.nats for one in found])
    tokens, size = (
        np.array([getattr(one, name) for one in found], dtype=np.float64) for name in ("tokens", "bytes")
    )
    gpt2 = [one.gpt2_tokens for one in found if one.gpt2_tokens is not None]
    known = len(gpt2) == len(found)
    return Losses(
        len(found),
        int(tokens.sum()),
        sum(gpt2) if known else None,
        int(size.sum()),
        _exp(_rate(nats, tokens, seed)),
        _exp(_rate(nats, np.array(gpt2, dtype=np.float64), seed)) if known else None,
        _rate(nats / math.log(2), size, seed),
    )


def _rate(nats: Floats, units: Floats, seed: int) -> Rate:
    value = float(nats.sum() / units.sum())
    if len(nats) < 2:
        return Rate(value)
    drawn = np.random.default_rng(seed).integers(len(nats), size=(DRAWS, len(nats)))
    low, high = np.quantile(nats[drawn].sum(1) / units[drawn].sum(1), INTERVAL)
    return Rate(value, float(low), float(high))


def _exp(rate: Rate) -> Rate:
    low, high = (None if end is None else math.exp(end) for end in (rate.low, rate.high))
    return Rate(math.exp(rate.value), low, high)

"""How well a decoder predicts held-out text: on windows while it trains, and on whole documents, token by token.

The test loss is over a fixed set of windows, the same for every run on a corpus. On documents, every token's loss is
from as much of the text before it as a model takes (stride 1): "for each token predic[t]ion, the model use full context
of the previous N tokens" (Wies et al. 2021, table 1). Perplexity and bits per byte come with intervals over documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from shapelaw.corpora.token_store import TokenStore, evaluation_starts, gather_windows, window_bytes
from shapelaw.models.decoder import Decoder
from shapelaw.training.hardware import Ranks

# ids [B, T] and a number n -> scores of the last n next tokens, [B, n, V]
Scores = Callable[[Tensor, int], Tensor]

_MOST_SCORES = 2**28  # numbers at once: a gigabyte of float32, of which the loss takes some copies
_PROBED = 8  # tokens, of which each has a large part in what the others of an encoder see
_ROUNDING = 1e-4  # of the spread of a token's scores; another token changes it by about as much as the spread
INTERVAL = (0.16, 0.84)  # 68%
DRAWS = 2000


@dataclass(frozen=True)
class EvaluationSet:
    """Windows to test on.

    Attributes:
        windows: token ids, [sequences, context_length + 1].
        tokens: targets in all of them.
        bytes: bytes of the targets' text.
    """

    windows: NDArray[np.int64]
    tokens: int
    bytes: int


def load_test_set(store: TokenStore, context_length: int, sequences: int) -> EvaluationSet:
    """The `sequences` windows of a test store, evenly spread over it.

    Raises:
        UserError: the store has fewer windows.
    """
    windows = gather_windows(store, evaluation_starts(store, context_length, sequences), context_length)
    targets = windows[:, 1:]
    return EvaluationSet(windows, targets.size, window_bytes(store, targets))


def bits_per_byte(test_loss: float, test_set: EvaluationSet) -> float:
    """Nats per token as bits per byte of text, the unit that different vocabularies share."""
    return test_loss * test_set.tokens / (math.log(2) * test_set.bytes)


@torch.no_grad()
def evaluate(model: Decoder, test_set: EvaluationSet, batch: int, ranks: Ranks) -> float:
    """Mean cross-entropy over the test set in nats per token, dropout off; each rank takes every world-th batch."""
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=ranks.device)
    for start in range(ranks.rank * batch, len(test_set.windows), ranks.world * batch):
        ids = torch.from_numpy(test_set.windows[start : start + batch]).to(ranks.device)
        total += model(ids[:, :-1], ids[:, 1:]).double() * ids[:, 1:].numel()
    model.train()
    return ranks.sum(float(total)) / test_set.tokens


@torch.no_grad()
def document_nats(scores: Scores, ids_T: Tensor, context: int, batch: int) -> Tensor:
    """Cross-entropy of each token of a document in nats, [T - 1], in float64.

    The first `context` tokens take one pass, or several where their scores are more than `_MOST_SCORES` numbers; each
    later one needs a window of its own, `batch` windows at once.

    Args:
        scores: a causal model in evaluation mode.
        ids_T: the document with a start before it (end-of-text, as between documents in training); T >= 2.
        context: N, the most tokens before the predicted one that are given to the model; the start counts.
        batch: windows at once.
    """
    vocabulary = scores(ids_T[None, :1], 1).shape[-1]
    most = max(1, _MOST_SCORES // vocabulary)
    windows = _windows(ids_T, context, min(batch, most), most)
    return torch.cat([_nats(scores, *window) for window in windows])


@torch.no_grad()
def sees_later_tokens(scores: Scores, ids_T: Tensor) -> bool:
    """True where the scores of earlier tokens change with the last one of the first few: an encoder's, whose loss of a
    token that it sees says nothing.

    Args:
        scores: a model in evaluation mode.
        ids_T: a document with a start before it, at most as long as the model takes; one token tells nothing.
    """
    if len(ids_T) < 2:
        return False
    ids_BT = ids_T[None, :_PROBED]
    other_BT = ids_BT.clone()
    earlier, length = ids_BT.shape[1] - 1, ids_BT.shape[1]
    before_TV = scores(ids_BT, length)[0, :earlier].float()
    other_BT[0, -1] = (ids_BT[0, -1] + 1) % before_TV.shape[-1]
    after_TV = scores(other_BT, length)[0, :earlier].float()
    spread = float(before_TV.std(dim=-1).max())
    return float((after_TV - before_TV).abs().max()) > _ROUNDING * spread


def _windows(ids_T: Tensor, context: int, batch: int, most: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs [B, N] and the targets [B, n] of their last n positions, which cover the document once, in order.

    Of the first window, with its many targets, at most `most` are asked for at once.
    """
    first = min(context, len(ids_T) - 1)
    for start in range(0, first, most):
        end = min(start + most, first)
        yield ids_T[None, :end], ids_T[None, start + 1 : end + 1]
    if len(ids_T) > context + 1:
        inputs_WN, targets_W = ids_T[1:-1].unfold(0, context, 1), ids_T[context + 1 :]
        for start in range(0, len(targets_W), batch):
            yield inputs_WN[start : start + batch], targets_W[start : start + batch, None]


def _nats(scores: Scores, inputs_BN: Tensor, targets_Bn: Tensor) -> Tensor:
    found_BnV = scores(inputs_BN, targets_Bn.shape[1])
    return F.cross_entropy(found_BnV.flatten(0, 1).float(), targets_Bn.flatten(), reduction="none").double()


class DocumentLoss(NamedTuple):
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


def summarise(found: Sequence[DocumentLoss]) -> Losses:
    """The losses of all documents, at least one, together; every unit of text counts alike."""
    nats, tokens, gpt2_tokens, size = np.array(found, dtype=np.float64).T
    known = not np.isnan(gpt2_tokens).any()  # a document without a count has None
    return Losses(
        len(found),
        int(tokens.sum()),
        int(gpt2_tokens.sum()) if known else None,
        int(size.sum()),
        _exp(_rate(nats, tokens)),
        _exp(_rate(nats, gpt2_tokens)) if known else None,
        _rate(nats / math.log(2), size),
    )


def _rate(nats: NDArray[np.float64], units: NDArray[np.float64]) -> Rate:
    value = float(nats.sum() / units.sum())
    if len(nats) < 2:
        return Rate(value)
    drawn = np.random.default_rng(0).integers(len(nats), size=(DRAWS, len(nats)))
    low, high = np.quantile(nats[drawn].sum(1) / units[drawn].sum(1), INTERVAL)
    return Rate(value, float(low), float(high))


def _exp(rate: Rate) -> Rate:
    low, high = (None if end is None else math.exp(end) for end in (rate.low, rate.high))
    return Rate(math.exp(rate.value), low, high)

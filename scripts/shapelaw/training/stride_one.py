"""The loss of every token of a document, each from as much of the text before it as a model takes (stride 1).

Wies et al. 2021, table 1: "for each token predic[t]ion, the model use full context of the previous N tokens".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from shapelaw.models.decoder import Decoder

Scores = Callable[
    [Tensor, int], Tensor
]  # ids [B, T] and a number n -> scores of the last n next tokens, [B, n, V]

_MOST_SCORES = 2**28  # numbers at once: a gigabyte of float32, of which the loss takes some copies
_PROBED = 8  # tokens, of which each has a large part in what the others of an encoder see
_ROUNDING = 1e-4  # of the spread of a token's scores; another token changes it by about as much as the spread


def scores_of(model: Decoder) -> Scores:
    """The scores of one of our decoders."""

    def scores(ids_BT: Tensor, last: int) -> Tensor:
        out: Tensor = model.classifier(model.features(ids_BT)[:, -last:])
        return out

    return scores


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

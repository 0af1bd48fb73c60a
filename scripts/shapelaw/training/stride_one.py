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


def scores_of(model: Decoder) -> Scores:
    """The scores of one of our decoders."""

    def scores(ids_BT: Tensor, last: int) -> Tensor:
        out: Tensor = model.classifier(model.features(ids_BT)[:, -last:])
        return out

    return scores


@torch.no_grad()
def document_nats(scores: Scores, ids_T: Tensor, context: int, batch: int) -> Tensor:
    """Cross-entropy of each token of a document in nats, [T - 1], in float64.

    The first `context` tokens take one pass; each later one needs a window of its own, `batch` windows at once.

    Args:
        scores: a causal model in evaluation mode.
        ids_T: the document with a start before it (end-of-text, as between documents in training); T >= 2.
        context: N, the most tokens before the predicted one that are given to the model; the start counts.
        batch: windows at once.
    """
    return torch.cat([_nats(scores, *windows) for windows in _windows(ids_T, context, batch)])


def _windows(ids_T: Tensor, context: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs [B, N] and the targets [B, n] of their last n positions, which cover the document once, in order."""
    first = min(context, len(ids_T) - 1)
    yield ids_T[None, :first], ids_T[None, 1 : first + 1]
    if len(ids_T) > context + 1:
        inputs_WN, targets_W = ids_T[1:-1].unfold(0, context, 1), ids_T[context + 1 :]
        for start in range(0, len(targets_W), batch):
            yield inputs_WN[start : start + batch], targets_W[start : start + batch, None]


def _nats(scores: Scores, inputs_BN: Tensor, targets_Bn: Tensor) -> Tensor:
    found_BnV = scores(inputs_BN, targets_Bn.shape[1])
    return F.cross_entropy(found_BnV.flatten(0, 1).float(), targets_Bn.flatten(), reduction="none").double()

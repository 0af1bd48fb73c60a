"""The windows of a batch, from the memory map or from tokens on the device."""

import numpy as np
import torch

from shapelaw.corpora.token_store import TokenStore, gather_windows
from shapelaw.training.batches import Batches

CPU = torch.device("cpu")


def test_a_window_may_begin_anywhere_up_to_the_last_that_fits(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    batches = Batches(stores[0], 32, CPU)
    assert batches.windows == len(stores[0].tokens) - 32
    (last,) = batches.gather(np.array([batches.windows - 1])).tolist()
    assert last == stores[0].tokens[-33:].tolist()


def test_tokens_on_the_device_give_the_windows_of_the_memory_map(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    store = stores[0]
    mapped, resident = (Batches(store, 32, CPU, here) for here in (False, True))
    starts = np.array([0, 5, 5, mapped.windows - 1])
    expected = torch.from_numpy(gather_windows(store, starts, 32))
    for batches in (mapped, resident):
        found = batches.gather(starts)
        assert found.dtype == torch.int64
        assert torch.equal(found, expected)

"""Operations that mix devices are refused: a GPU refuses them too, and PyTorch's meta device only some."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
COPIES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class MixedDevices(Exception):
    """An operation has tensors of two devices; the message names it and them."""


class OneDevice(TorchDispatchMode):
    """While it is on, an operation whose tensors lie on two devices raises `MixedDevices`; copies may.

    It is stricter than a GPU in numbers of no dimension and in indices, which may lie on the host: each makes the
    host and the device wait for one another.

    Attributes:
        operations: how many operations had a tensor on the meta device, to show that there were some.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = [part for part in tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor)]
        devices = {part.device.type for part in given}
        if len(devices) > 1 and func not in COPIES:
            found = ", ".join(f"{part.device.type} {list(part.shape)}" for part in given)
            raise MixedDevices(f"{func} of {found}")
        self.operations += META.type in devices
        return func(*args, **(kwargs or {}))

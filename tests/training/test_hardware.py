"""What one run of a process leaves to the next."""

import gc
import os
import platform
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from shapelaw.errors import UserError
from shapelaw.specs.making import make_shape
from shapelaw.training import hardware
from shapelaw.training.hardware import choose_device, compiling_in, machine, micro_batch_size, start_afresh


class Held:
    """Something that holds itself, as an optimizer and its hooks do."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """The collector as it was."""
    yield
    gc.unfreeze()


def test_the_compiler_gets_an_empty_folder_which_goes_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was killed while it compiled has left half a library there, at which the next would stop."""
    monkeypatch.setattr(hardware, "_COMPILED_CHOSEN", False)
    half = tmp_path / "compiled" / "half.so"
    half.parent.mkdir()
    half.touch()
    with compiling_in(half.parent, torch.device("cpu")):
        assert not half.exists()
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(half.parent)
    assert not half.parent.exists()
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_what_a_run_has_left_goes_when_the_next_one_starts() -> None:
    gc.disable()  # nobody else collects it
    try:
        start_afresh(torch.device("cpu"))
        left = weakref.ref(Held())
        assert left() is not None
        start_afresh(torch.device("cpu"))
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("batch_size", "size"), [(16, 16), (32, 16), (24, 12), (512, 16), (1, 1)])
def test_on_a_cpu_at_most_2048_tokens_go_through_the_network_at_once(batch_size: int, size: int) -> None:
    shape = make_shape(2, 64, 2, 257, 128)
    assert micro_batch_size(shape, batch_size, torch.device("cpu"), "float32") == size


def test_large_activations_go_in_smaller_parts() -> None:
    shape = make_shape(48, 4096, 2, 50257, 256)
    size = micro_batch_size(shape, 64, torch.device("cpu"), "float32")
    assert shape.activation_bytes(size, 4) <= 4 * 2**30 < shape.activation_bytes(2 * size, 4)


def test_a_gpu_that_is_asked_for_is_not_replaced_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(
        UserError, match=r"is a build for CPUs; install the one for GPUs \(make env TORCH=cuda\)"
    ):
        choose_device("cuda", "float32")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=r"of a GPU PyTorch .* finds none on "):
        choose_device("cuda", "float32")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UserError, match=f"of 4 GPUs PyTorch .* finds 2 on {platform.node()}; ask for 4 GPUs"):
        choose_device("cuda", "float32", processes=4)
    assert choose_device("cuda", "float32", processes=2).type == "cuda"


def test_a_record_has_the_device_and_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    found = machine(torch.device("cpu"))
    versions = {"torch_version": str(torch.__version__), "python_version": platform.python_version()}
    assert found.pop("peak_memory_bytes") > 0
    threads = torch.get_num_threads()
    assert found == {"threads": threads, "device_type": "cpu", "device": "cpu", **versions}
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA A100")
    found = machine(torch.device("cuda"))
    assert (found["device_type"], found["device"], found["cuda_version"]) == ("cuda", "NVIDIA A100", "12.8")

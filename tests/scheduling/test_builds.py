"""PyTorch's build, read without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from shapelaw.scheduling import builds
from shapelaw.scheduling.builds import cpu_build, refused_build
from shapelaw.scheduling.jobs import JobResources
from shapelaw.scheduling.plan import Ask

VERSION = """from typing import Optional
__version__ = '2.9.1{local}'
cuda: Optional[str] = {cuda}
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = {hip}
"""


@pytest.mark.parametrize(
    ("cuda", "hip", "expected"),
    [("None", "None", "2.9.1+x"), ("'12.8'", "None", None), ("None", "'6.4'", None)],
)
def test_a_build_is_for_cpus_when_it_has_neither_cuda_nor_hip(
    tmp_path: Path, cuda: str, hip: str, expected: str | None
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text(VERSION.format(local="+x", cuda=cuda, hip=hip))
    assert cpu_build(tmp_path) == expected


def test_it_agrees_with_this_pytorch(tmp_path: Path) -> None:
    for_gpus = torch.version.cuda or torch.version.hip
    assert cpu_build() == (None if for_gpus else str(torch.__version__))
    assert cpu_build(tmp_path) is None  # no PyTorch at all: a container or an environment of the job has it


def test_gpus_are_refused_where_pytorch_can_use_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu, without = (Ask("train_large", 1, 1, 1, gpus, JobResources(1, 1)) for gpus in (1, 0))
    monkeypatch.setattr(builds, "cpu_build", lambda: "2.9.1+cpu")
    (sentence,) = refused_build([without, with_gpu], {})
    assert sentence.startswith("execution.gpus asks for GPUs, but PyTorch 2.9.1+cpu in ")
    assert "make env TORCH=cuda" in sentence
    assert refused_build([without], {}) == []
    assert refused_build([with_gpu], {"SHAPELAW_DEVICE": "cpu"}) == []
    monkeypatch.setattr(builds, "cpu_build", lambda: None)
    assert refused_build([with_gpu], {}) == []


def test_an_installation_for_gpus_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `make env TORCH=cuda` ends with."""
    monkeypatch.setattr(builds, "cpu_build", lambda: None)
    assert builds.main() == 0
    monkeypatch.setattr(builds, "cpu_build", lambda: "2.9.1+cpu")
    assert builds.main() == 1
    assert "make env TORCH=cuda TORCH_INDEX=" in capsys.readouterr().err

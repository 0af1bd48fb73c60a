"""What the benchmark says where the paper's public code can't be measured."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from public_memorizer import public_memorizer

from shapelaw.errors import UserError
from shapelaw.models.memorizer import initial_parameters
from shapelaw.specs.memorizers import Memorizer

SHAPE = Memorizer(heads=2, context=3, head_dim=4, width=8, value_dim=1, outputs=5, logit_scale="width")


@pytest.mark.parametrize("content", [None, "class Other: ..."])
def test_a_folder_without_the_public_code(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "src").mkdir()
        (tmp_path / "src/attn_models.py").write_text(content)
    with pytest.raises(UserError, match="is no checkout of attention-memorization"):
        public_memorizer(tmp_path, SHAPE, initial_parameters(SHAPE, 0, torch.float32))


def test_a_shape_that_it_does_not_have(tmp_path: Path) -> None:
    for other in (replace(SHAPE, value_dim=2), replace(SHAPE, logit_scale="none")):
        with pytest.raises(UserError, match="value_dim 1, logit_scale width"):
            public_memorizer(tmp_path, other, initial_parameters(other, 0, torch.float32))

"""Crops of photographs, and images of a folder."""

import numpy as np
import pytest
from PIL import Image

from shapelaw.errors import UserError
from shapelaw.studies.assumptions.photographs import images_of_folder, random_crops


def gradient(width: int, height: int) -> Image.Image:
    """Red grows to the right, green downwards."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)[None, :]
    pixels[..., 1] = np.linspace(0, 255, height)[:, None]
    return Image.fromarray(pixels)


def test_crops_are_different_parts_some_of_them_mirrored():
    photographs = [gradient(90, 60), gradient(50, 80)]
    crops = [np.asarray(crop, dtype=float) for crop in random_crops(photographs, 40, 16, seed=0)]
    again = [np.asarray(crop, dtype=float) for crop in random_crops(photographs, 40, 16, seed=0)]
    assert all(np.array_equal(a, b) for a, b in zip(crops, again, strict=True))
    assert {crop.shape for crop in crops} == {(16, 16, 3)}
    assert len({crop.tobytes() for crop in crops}) == 40
    rightwards = [crop[:, -1, 0].mean() > crop[:, 0, 0].mean() for crop in crops]
    assert 8 < sum(rightwards) < 32
    assert all(crop[-1, :, 1].mean() > crop[0, :, 1].mean() for crop in crops)
    spans = [np.ptp(crop[..., 0]) * np.ptp(crop[..., 1]) / 255**2 for crop in crops]
    assert 0.03 < min(spans) < 0.3 < 0.7 < max(spans)


def test_images_of_a_folder(tmp_path):
    (tmp_path / "deep").mkdir()
    gradient(30, 20).save(tmp_path / "deep" / "b.PNG")
    gradient(20, 30).save(tmp_path / "a.jpg", quality=95)
    gradient(20, 20).convert("L").save(tmp_path / "0grey.png")
    (tmp_path / "notes.txt").write_text("no image")
    images = images_of_folder(tmp_path, 2, 8)
    (batch,) = images.batches
    assert batch.shape == (2, 3, 8, 8)
    assert batch.dtype == np.float64
    assert -1 <= batch.min() < -0.8
    assert 0.8 < batch.max() <= 1
    assert (np.diff(batch[1, 0], axis=1) > 0).all()
    with pytest.raises(UserError, match="has 2 colour images, but 3 are asked for"):
        list(images_of_folder(tmp_path, 3, 8).batches)
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n cut short")
    with pytest.raises(UserError, match=r"c\.png can't be read"):
        list(images_of_folder(tmp_path, 3, 8).batches)
    with pytest.raises(UserError, match="There is no folder"):
        images_of_folder(tmp_path / "nothing", 1, 8)

"""Files of attention weights whose saturated heads are known."""

import numpy as np


def weights(examples=6, heads=4):
    """Example t has its first t % (heads + 1) heads saturated."""
    largest = np.full((examples, heads), 0.5, dtype=np.float32)
    for example in range(examples):
        largest[example, : example % (heads + 1)] = 0.995
    return largest


def save(folder, name, largest, **changes):
    """Write one run's file; `changes` replaces arrays, and None leaves one out."""
    folder.mkdir(exist_ok=True)
    arrays = {"largest_weight": largest, "heads": largest.shape[1], "examples": largest.shape[0]} | changes
    np.savez(folder / f"{name}.npz", **{key: value for key, value in arrays.items() if value is not None})

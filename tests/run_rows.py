"""Rows of tables of runs, made from shapes."""

from typing import Any

from shapelaw.specs.shapes import Shape


def run_row(shape: Shape, seed: int, test_loss: float, *columns: str) -> dict[str, Any]:
    """A run's depth, width, seed, loss and sizes, and further columns by the names of the shape's fields."""
    return {
        **{name: getattr(shape, name) for name in ("depth", "width", *columns)},
        "seed": seed,
        "test_loss": test_loss,
        "block_params": shape.block_params,
        "total_params": shape.total_params,
        "step_flops": shape.step_flops(8),
    }

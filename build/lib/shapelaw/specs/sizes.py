"""Sizes of networks: what a size counts, and numbers as people write them (60M, 1.3B, 175e9)."""

from __future__ import annotations

import re
from enum import StrEnum

# sizes closer than this in log(P), 10%, count as the same size: the paper's rows of equal size differ by up to 6%
SAME_SIZE = 0.1
GPT2_VOCAB_SIZE = 50_257
LEAST_SIZES = 4  # of each of two depths, among the sizes that both cover, for a transition
UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


class SizeAxis(StrEnum):
    """The size in which networks must agree to be compared."""

    BLOCK = "block"
    TOTAL = "total"
    FLOPS = "flops"


SIZE_COLUMNS = {
    SizeAxis.BLOCK: "block_params",
    SizeAxis.TOTAL: "total_params",
    SizeAxis.FLOPS: "step_flops",
}
SIZE_LABELS = {
    SizeAxis.BLOCK: "parameters of the blocks",
    SizeAxis.TOTAL: "all parameters",
    SizeAxis.FLOPS: "FLOPs of a training step",
}


def number_of(text: str) -> float:
    """The number of a text such as `1.3B`, `300M`, `6e7` or `124,439,808`.

    Raises:
        ValueError: the text is no number with an optional k, M, B or T, or its commas don't part groups of three.
    """
    number = text.strip().lower().replace("_", "")
    unit = UNITS.get(number[-1:], 1.0)
    digits = number[:-1] if unit > 1 else number
    if "," in digits and not _GROUPED.fullmatch(digits):
        raise ValueError(f"{text} has a comma that doesn't part groups of three digits")
    return float(digits.replace(",", "")) * unit

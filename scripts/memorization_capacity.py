"""Print how many examples a layer of attention heads can memorize, by the bounds of Mahdavi et al. 2024.

  shapelaw capacity --heads 20 --context 32 --head-dim 64
  shapelaw capacity --heads 20 --context 32 --head-dim 64 --kruskal-rank 24 --json

Beside them stands the most that a two-layer ReLU network memorizes, with as many hidden units as the attention's
parameters pay for, or with --relu-units. Parameters are counted as in theorem 1, 2 H d d_h + H d d_v + d d_out with
d_v = d_out. Exit codes: 0 printed, 2 impossible sizes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from shapelaw.errors import command_line, end_with
from shapelaw.theory import memorization as theory

SIZES = ("heads", "context", "head_dim", "width", "kruskal_rank", "outputs")


def main() -> None:
    """Parse the command line, compute, and print."""
    parser = command_line(__doc__, "--heads H --context N --head-dim D [OPTIONS]")
    parser.add_argument("--heads", type=int, required=True, help="H")
    parser.add_argument("--context", type=int, required=True, help="n, tokens of context of an example")
    parser.add_argument("--head-dim", type=int, required=True, help="d_h, of keys and queries")
    parser.add_argument("--width", type=int, default=64, help="d, of every token (default: 64, the paper's)")
    parser.add_argument("--kruskal-rank", type=int, metavar="Q", help="of the queries, where it is below n")
    parser.add_argument("--relu-units", type=int, metavar="M", help="default: of equal parameters")
    parser.add_argument("--outputs", type=int, default=1, help="d_out, numbers in a label (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    found = capacity_of(arguments)
    print(json.dumps(found, default=asdict, indent=2) if arguments.json else text_of(found))


def capacity_of(sizes: argparse.Namespace) -> dict[str, Any]:
    """The sizes, the bounds at them, the parameters of both networks, and warnings.

    `relu_units` is None where the attention's parameters do not pay for one unit.
    """
    n, d, d_out = sizes.context, sizes.width, sizes.outputs
    bounds = theory.capacity_bounds(sizes.heads, n, sizes.head_dim, d, sizes.kruskal_rank)
    warnings = theory.theorem_warnings(n, d, sizes.head_dim, sizes.kruskal_rank, d_out)
    params = theory.attention_params(sizes.heads, d, sizes.head_dim, d_out)
    units = sizes.relu_units
    if units is None:
        units = theory.equal_relu_units(params, n, d, d_out) or None
    if units is None:
        warnings.append(
            f"The attention's {params:,} parameters do not pay for one ReLU unit at this context."
        )
    else:
        name = f"examples of a two-layer ReLU network, m = {units:,}"
        most = theory.relu_examples(n, units, d_out)
        bounds = (*bounds, theory.Bound(name, most, False, "(n + 1) m / d_out + m + 1", "proposition 3"))
    return {
        **{name: getattr(sizes, name) for name in SIZES},
        "params": params,
        "relu_units": units,
        "relu_params": None if units is None else theory.relu_params(n, d, units, d_out),
        "bounds": bounds,
        "warnings": warnings,
    }


def text_of(found: Mapping[str, Any]) -> str:
    """A table of the bounds with their sources, then the warnings."""
    bounds: Sequence[theory.Bound] = found["bounds"]
    name, formula = max(len(b.name) for b in bounds), max(len(b.formula) for b in bounds)
    lines = [
        f"{b.name:<{name}}  {'at least' if b.lower else 'at most':<8} {b.examples:>11,}  "
        f"{b.formula:<{formula}}  {b.source}"
        for b in bounds
    ]
    networks = f"Parameters: attention {found['params']:,}"
    if found["relu_params"] is not None:
        networks += f", ReLU network {found['relu_params']:,}"
    lines += [f"{networks}.", "Propositions, theorem and remark are those of Mahdavi et al. 2024."]
    return "\n".join(lines + [f"Warning: {warning}" for warning in found["warnings"]])


if __name__ == "__main__":
    end_with(main)

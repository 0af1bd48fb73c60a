"""What benchmarks of calibration share: their options, and tables that they write and print."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd
from machine import machine

from shapelaw.errors import command_line


def parser_of_draws(about: str | None, draws: int, names: Iterable[str]) -> argparse.ArgumentParser:
    """The parser of a benchmark that makes tables of simulated draws."""
    parser, known = command_line(about), list(names)
    parser.add_argument(
        "--draws", type=int, default=draws, help=f"of each surface and design (default: {draws})"
    )
    parser.add_argument("--first-seed", type=int, default=0, help="of the draws (default: 0)")
    parser.add_argument(
        "--only", nargs="+", default=known, choices=known, help="tables to make (default: all)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    return parser


def write_tables(
    made: Mapping[str, Callable[[range], pd.DataFrame | list[dict[str, object]]]],
    arguments: argparse.Namespace,
) -> None:
    """Make the tables that `parser_of_draws` was asked for of its draws, write each as CSV and print it."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    numbers = range(arguments.first_seed, arguments.first_seed + arguments.draws)
    print(machine())
    for name in arguments.only:
        table = pd.DataFrame(made[name](numbers))
        table.to_csv(arguments.out / f"{name}.csv", index=False)
        print(table.to_markdown(index=False, floatfmt=".3f"), flush=True)

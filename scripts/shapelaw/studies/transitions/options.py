"""The options of how transitions are found and compared, on a command line."""

from __future__ import annotations

import argparse

from shapelaw.fits.crossing import BOOTSTRAP, PAPER_RULE
from shapelaw.fits.curves import SizeAxis
from shapelaw.studies.transitions.analysis import Options

METHODS = {"bootstrap": BOOTSTRAP, "paper": PAPER_RULE}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of how transitions are found and compared."""
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="bootstrap",
        help="method whose transitions the main fit, the projection and the figures use (default: bootstrap; the "
        "paper's rule gives half the distance of two sizes, which is not a standard error); both are fitted",
    )
    parser.add_argument(
        "--loss",
        metavar="COLUMN",
        help="the column to compare: test_loss (nats per token, default), bits_per_byte, or one of your own",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="STD",
        help="standard deviation of one run's loss over seeds, in place of the one pooled over repeated seeds; "
        "needed where no shape has two seeds",
    )
    add_size_options(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")


def add_axes_option(parser: argparse.ArgumentParser) -> None:
    """Add what a grid lists."""
    parser.add_argument(
        "--axes",
        nargs="*",
        metavar="NAME",
        help="columns that the grid lists, each of which splits its runs into cells (default: those that take several "
        "values at one depth and width)",
    )


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the studies that find transitions in several settings: the size and the bootstrap's draws."""
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="size in which compared networks are equal: parameters of the blocks (block_params or 12 L d^2, default), "
        "all parameters (total_params) or FLOPs of a step (step_flops); transitions at the others stand beside",
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=Options.draws,
        help=f"bootstrap draws (default: {Options.draws:,}); fewer leave more statuses undecided",
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of a command line."""
    return Options(
        arguments.loss or Options.loss,
        arguments.noise,
        METHODS[arguments.method],
        arguments.draws,
        arguments.seed,
        SizeAxis(arguments.size),
    )

"""Measure the separation rank of a polynomial network exactly, over two finite fields.

  shapelaw rank --depth 2 --width 3 --tokens 4
  shapelaw rank --depth 2 --width 6 --tokens 4 --embedding-rank 2 --json
  shapelaw rank --product --degree 3 --depth 2 --width 2 --tokens 2

Linearized attention (Levine et al. 2020, Wies et al. 2021), with --product a network of element-wise products of k
linear maps, or with --mixer an MLP-Mixer with squares for activations. The rank is that of almost all weights. Beside
it stand a bound that no weights exceed, from the dimensions of the spaces of functions, and the papers' bounds. Before
a measurement of more than a few seconds its estimated time and memory are printed; one above --limit is refused. Exit
codes: 0 printed, 2 impossible sizes, or sizes out of reach.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields

from shapelaw.errors import UserError, command_line, end_with, say
from shapelaw.theory import separation_rank as exact
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import MixerNetwork, ProductNetwork
from shapelaw.theory.rank_bounds import RankBound, log3, published_bounds

SILENT_SECONDS = 5.0  # shorter measurements start silently
MOST_PRINTED = 10**60
Network = LinearAttention | ProductNetwork | MixerNetwork
# of networks: the name, and what to say where another kind has an option that only they have
_KINDS: dict[type[Network], tuple[str, str]] = {
    LinearAttention: ("linear attention", "linearized attention, not for a product network or a Mixer"),
    ProductNetwork: ("product", "a product network: add --product"),
    MixerNetwork: ("mixer", "an MLP-Mixer: add --mixer"),
}


def main() -> None:
    """Parse the command line, measure, and print."""
    arguments = parser().parse_args()
    network = network_of(arguments)
    result = measure(network, arguments)
    bounds = published_bounds(network) if isinstance(network, LinearAttention) else ()
    if arguments.json:
        print(json.dumps(as_json(network, result, bounds), indent=2))
    else:
        print(text_of(result, bounds))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    found = command_line(__doc__, "--depth L --width D [OPTIONS]")
    add = found.add_argument
    add("--depth", type=int, required=True, help="L, layers")
    add("--width", type=int, required=True, help="d")
    add("--tokens", type=int, default=2, help="N, even (default: 2)")
    add(
        "--partition",
        type=int,
        nargs="+",
        metavar="J",
        help="positions of the half A, from 1 (default: 1 to N/2)",
    )
    attention = found.add_argument_group("linearized attention")
    add = attention.add_argument
    add("--position", type=int, default=1, help="position of the output, from 1")
    add("--entry", type=int, default=1, help="element of the output's vector, from 1")
    add("--heads", type=int, default=1, help="H")
    add("--attention-dim", type=int, help="d_a of one head (default: d / H)")
    add("--embedding-rank", type=int, help="r (default: the most that is possible)")
    add(
        "--positional-rank", type=int, default=0, help="r_e of the added positional embedding (default: none)"
    )
    add("--residual", action="store_true", help="every layer adds its input")
    add(
        "--embedding",
        choices=("vectors", "vocabulary", "convolution"),
        default="vectors",
        help="kind of token: any vector (default), a word of a vocabulary, or a patch of a convolution",
    )
    add("--vocabulary", type=int, help="V, words")
    add("--patch", type=int, default=1, help="M / N, inputs that the convolution makes one token of")
    add("--input-dim", type=int, help="d_input, numbers of an input of the convolution")
    product = found.add_argument_group("product network")
    add = product.add_argument
    add("--product", action="store_true", help="layers are element-wise products of linear maps")
    add(
        "--degree", type=int, nargs="+", metavar="K", help="k, linear maps per layer; or one k for each layer"
    )
    add("--token-dim", type=int, help="numbers of a token (default: d)")
    mixer = found.add_argument_group("MLP-Mixer")
    add = mixer.add_argument
    add("--mixer", action="store_true", help="tokens are mixed by an MLP whose activation is the square")
    add("--hidden", type=int, help="S, units of the token-mixing MLP (default: N)")
    measuring = found.add_argument_group("measuring")
    add = measuring.add_argument
    add("--templates", type=int, metavar="M", help="at most so many of each half; the rank may be larger")
    add(
        "--limit",
        type=float,
        nargs=2,
        metavar=("MINUTES", "GIB"),
        default=(exact.LIMIT.seconds / 60, exact.LIMIT.bytes / 2**30),
        help="refuse what is estimated to take more (default: 10 4)",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")
    return found


def measure(network: Network, given: argparse.Namespace) -> exact.SeparationRank:
    """Measure a network within the limits, and say what it takes where that is long.

    Raises:
        UserError: it would take more than the limits.
    """
    minutes, gib = given.limit
    if not (minutes > 0 and gib > 0):
        raise UserError(f"The limits {minutes:g} minutes and {gib:g} GiB must be above zero.")
    limit = exact.Estimate(60 * minutes, gib * 2**30)
    planned = exact.plan(network, given.templates, limit)
    needed = planned.needed
    if needed.seconds > SILENT_SECONDS:
        say(
            f"Up to {exact.size_text(planned.templates)} templates of each half: {exact.size_text(needed.seconds)} s "
            f"and {exact.size_text(needed.bytes / 2**30)} GiB by estimate."
        )
    return exact.measure_planned(network, planned)


def network_of(given: argparse.Namespace) -> Network:
    """The network of the command line.

    Raises:
        UserError: an option of another kind of network, or impossible sizes.
    """
    if given.product and given.mixer:
        raise UserError("--product and --mixer are different kinds of network: give one of them.")
    kind: type[Network] = (
        ProductNetwork if given.product else MixerNetwork if given.mixer else LinearAttention
    )
    values, options = {name: getattr(given, name) for name in _options_of(kind)}, parser()
    for other, (_, whose) in _KINDS.items():
        names = [name for name in _options_of(other) if name not in values]
        if wrong := [name for name in names if getattr(given, name) != options.get_default(name)]:
            said = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
            raise UserError(f"{said}: only for {whose}.")
    values["partition"] = tuple(given.partition) if given.partition else None
    if kind is ProductNetwork:
        if (degrees := values.pop("degree")) is None:
            raise UserError("A product network needs a degree: give --degree k.")
        values["degree_of_layer"] = degrees[0] if len(degrees) == 1 else tuple(degrees)
    return kind(**values)


def _options_of(kind: type[Network]) -> list[str]:
    """The options that make a network of a kind."""
    return [one.name.removesuffix("_of_layer") for one in fields(kind)]


def as_json(network: Network, result: exact.SeparationRank, bounds: Sequence[RankBound]) -> dict[str, object]:
    """Everything as plain JSON values."""
    return {
        "kind": _KINDS[type(network)][0],
        "network": asdict(network),
        **asdict(result),
        "upper_bound": result.upper_bound if result.upper_bound < MOST_PRINTED else None,
        "log3_rank": log3(result.rank) if result.rank else None,
        "bounds": [asdict(bound) for bound in bounds],
    }


def text_of(result: exact.SeparationRank, bounds: Sequence[RankBound]) -> str:
    """The rank, its certainty, and a table of the bounds, as text."""
    upper = result.upper_bound
    # all digits, as far as a line holds them
    upper_text = f"{upper:,}" if upper < MOST_PRINTED else exact.size_text(upper)
    amount = f"{result.rank:,}" if result.exact else f"at least {result.rank:,}"
    how = "exact" if result.exact else "not exact: more templates could give more"
    rows, columns = result.templates
    lines = [
        f"separation rank  {amount}  ({how})",
        f"log3             {log3(result.rank):.3f}" if result.rank else "log3             -",
        f"upper bound      {upper_text}  (dimensions of the spaces of functions, any weights)",
        f"templates        {rows:,} x {columns:,}, primes {', '.join(map(str, result.primes))}, "
        f"seeds {', '.join(map(str, result.seeds))}",
        f"failure          probability at most {result.failure_probability:.1e}"
        if result.failure_probability
        else "failure          impossible: the rank is the upper bound",
        f"time             {result.seconds:.2f} s",
    ]
    if bounds:
        width = max(len(bound.formula) for bound in bounds)
        lines.append("published bounds on the rank, and on its log3:")
        lines += [
            f"  {'at least' if bound.lower else 'at most':<8}  {power_text(bound.log3):>10}  {bound.log3:>9.3f}  "
            f"{bound.formula:<{width}}  {bound.source}"
            for bound in bounds
        ]
    return "\n".join(lines)


def power_text(exponent: float) -> str:
    """3 to a power, as text; the number may be too large for a float."""
    return exact.size_text(3.0**exponent) if exponent < 600 else f"10^{exponent * math.log10(3):.0f}"


if __name__ == "__main__":
    end_with(main)

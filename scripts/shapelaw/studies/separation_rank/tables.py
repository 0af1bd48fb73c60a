"""Separation ranks of the networks that a config asks for, measured once each and kept, and their tables.

Each stands beside its closed form and every theorem's bound; degrees of blocks at equal budget beside each other.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from shapelaw.errors import UserError, say
from shapelaw.report.tables import NO, OPEN, YES, Columns, frame_of, picked, says
from shapelaw.storage.files import disk_errors, write_text
from shapelaw.studies.separation_rank.study import (
    Asked,
    AttentionSizes,
    DegreeSizes,
    NetworkSizes,
    digest,
    matrices,
)
from shapelaw.theory import rank_bounds
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import DegreeAttention, MixerNetwork, ProductNetwork
from shapelaw.theory.separation_rank import LIMIT, SPARE, Estimate, separation_rank, templates_within

KEPT = "ranks.jsonl"  # one file: those of clusters are counted
EXACT, AT_LEAST = "exact", "at least"
Network = LinearAttention | ProductNetwork | DegreeAttention | MixerNetwork


@dataclass(frozen=True)
class Measured:
    """A network's separation rank, or a lower bound of it.

    Attributes:
        rank: the exact rank, or that of the largest grid within the time limit.
        exact: True for the exact rank.
        upper_bound: a bound that no weights exceed.
        templates: rows and columns of the last grid, at most.
        failure_probability: see `shapelaw.theory.separation_rank.SeparationRank`.
        seconds: wall time of the measurement.
    """

    rank: int
    exact: bool
    upper_bound: int
    templates: int
    failure_probability: float
    seconds: float

    @property
    def status(self) -> str:
        return EXACT if self.exact else AT_LEAST

    @property
    def bound(self) -> float:
        """The upper bound as a float."""
        return float(self.upper_bound) if math.log10(self.upper_bound) < 300 else math.inf

    @property
    def most(self) -> int:
        """The largest value that the rank can have."""
        return self.rank if self.exact else self.upper_bound


def network_of(sizes: NetworkSizes) -> Network:
    """The network with these sizes."""
    if isinstance(sizes, AttentionSizes):
        return attention_network(sizes)
    if sizes.blocks == "product":
        half = sizes.width // 2
        return ProductNetwork(sizes.degrees, len(sizes.degrees), sizes.width, 2, token_dim=half)
    if sizes.blocks == "mixer":
        return MixerNetwork(len(sizes.degrees), sizes.width, sizes.tokens, sizes.width**2 // sizes.tokens)
    return DegreeAttention(sizes.degrees, sizes.width, sizes.tokens, sizes.heads)


def attention_network(sizes: AttentionSizes) -> LinearAttention:
    """The network of linearized attention with these sizes."""
    values = asdict(sizes)
    words = values.pop("vocab_size")
    return LinearAttention(**values, embedding="vectors" if words is None else "vocabulary", vocabulary=words)


def read_kept(path: Path) -> dict[str, Measured]:
    """The ranks that a file keeps by their networks' digests: a line for each, of which a network's last one counts.

    Raises:
        UserError: the file can't be read.
    """
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:  # a process was killed while it wrote
        os.truncate(path, len(whole))
    return dict(_kept(line, path) for line in whole.decode().splitlines())


def keep(path: Path, name: str, measured: Measured) -> None:
    """Keep a rank, also where the process is killed next.

    Raises:
        WriteFailed: the disk is full, read-only or broken.
    """
    row = json.dumps({"network": name, **asdict(measured)})
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(row.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def measure_all(asked: Sequence[Asked], kept: Path) -> Iterator[tuple[Asked, Measured]]:
    """Measure the networks that are not kept yet, in the order given, and keep each rank at once.

    A lower bound is measured again where the time limit now allows more templates.

    Args:
        asked: networks, with their tables and limits.
        kept: folder of the ranks.

    Raises:
        UserError: a kept rank can't be read.
    """
    ranks = read_kept(kept / KEPT)
    for place, one in enumerate(asked, start=1):
        network, name = network_of(one.sizes), digest(one.sizes)
        known = ranks.get(name)
        if known is None or not known.exact:
            templates = templates_within(network, Estimate(one.seconds, LIMIT.bytes))
            if known is None or templates > known.templates:
                say(f"{place} of {len(asked)}: {one.sizes}")
                known = ranks[name] = _measure(network, templates)
                keep(kept / KEPT, name, known)
        yield one, known


def _measure(network: Network, templates: int) -> Measured:
    bound = network.rank_bound()
    limit = None if templates >= bound + SPARE else templates
    found = separation_rank(network, limit, Estimate(math.inf, math.inf))
    return Measured(
        found.rank, found.exact, bound, templates, found.failure_probability, round(found.seconds, 3)
    )


def _kept(text: str, path: Path) -> tuple[str, Measured]:
    """The digest of a network, and its kept rank.

    Raises:
        UserError: the text is none.
    """
    try:
        row = dict(json.loads(text))
        return str(row.pop("network")), Measured(**row)
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} is not a kept separation rank ({error}); measure it again: rm {path} && snakemake"
        ) from error


def write_measurements(found: Sequence[tuple[Asked, Measured]], out: Path) -> None:
    """All measurements as one JSON file."""
    rows = [
        {"table": one.table, "budget": one.budget, "sizes": asdict(one.sizes), **asdict(result)}
        for one, result in found
    ]
    write_text(out, json.dumps(rows, indent=0) + "\n")


def read_measurements(path: Path) -> list[tuple[Asked, Measured]]:
    """The measurements that `write_measurements` wrote.

    Raises:
        UserError: the file is missing, or isn't one of `write_measurements`.
    """
    try:
        return [_row(dict(row)) for row in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}).") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} holds no separation ranks of scripts/measure_separation_ranks.py ({error})."
        ) from error


def _row(row: dict[str, Any]) -> tuple[Asked, Measured]:
    table, budget, sizes = row.pop("table"), row.pop("budget"), row.pop("sizes")
    if "degrees" in sizes:
        network: NetworkSizes = DegreeSizes(**{**sizes, "degrees": tuple(sizes["degrees"])})
    else:
        network = AttentionSizes(**sizes)
    return Asked(table, network, budget, 0.0), Measured(**row)


PROVED, GAP = "proved", "gap"
BEFORE, AT, AFTER = "before", "at", "after"
SIZES = tuple(AttentionSizes.__dataclass_fields__)
Measurements = Sequence[tuple[Asked, Measured]]
_FIRST = ("depth-width, corollary 1", "at least", "(d' + 1)^C(L') >= the rank of L, d")
_SECOND = ("depth-width, corollary 2", "exists", "L' < L, d' = 3^L' of higher rank")
_THEOREM = ["theorem", "kind", "formula"]
COUNTED = {"holds": YES, "violated": NO, "open": OPEN}
GROUP = ["blocks", "width", "tokens", "heads", "budget"]
NOTE_BEST = 3  # the note's best degree
_SLACK = 1e-9  # tolerance of a comparison of logarithms


def attention_of(found: Measurements) -> list[tuple[LinearAttention, Measured]]:
    """The networks of linearized attention with all sizes filled in, and their measurements."""
    return [
        (attention_network(one.sizes), result)
        for one, result in found
        if isinstance(one.sizes, AttentionSizes)
    ]


def ranks_table(found: Measurements) -> pd.DataFrame:
    """One row for each network: its rank, whether that is exact, the closed form, and the graded upper bound."""
    rows = []
    for network, result in attention_of(found):
        form, formula = rank_bounds.closed_form(network)
        rows.append(
            sizes_of(network)
            | {"threshold": threshold_side(network)}
            | picked(result, "rank", "status")
            | {
                "log3_rank": rank_bounds.log3(result.rank),
                "closed_form": form,
                "formula": formula,
                "follows": _follows(result, form),
                "upper_bound": result.bound,
                "is_bound": YES if result.rank == result.upper_bound else says(result.exact, False),
            }
            | picked(result, "failure_probability", "seconds")
        )
    return pd.DataFrame(rows).astype({"closed_form": "Int64", "vocab_size": "Int64"})


def sizes_of(network: LinearAttention) -> dict[str, object]:
    """The columns that identify a network, with defaults as numbers."""
    names = {"attention_dim": "head_dim", "embedding_rank": "rank", "vocab_size": "vocabulary"}
    return {size: getattr(network, names.get(size, size)) for size in SIZES}


def threshold_side(network: LinearAttention) -> str:
    """The side of the depth threshold log3(d) on which L lies: before, at or after."""
    power = 3**network.depth
    return BEFORE if power < network.width else AFTER if power > network.width else AT


def bounds_table(found: Measurements) -> pd.DataFrame:
    """One row for each network and theorem that applies to it: log3 of the bound, and whether it holds."""
    rows = []
    for network, result in attention_of(found):
        low, high = rank_bounds.log3(result.rank), rank_bounds.log3(result.most)
        for bound in rank_bounds.published_bounds(network):
            # how far the rank's least and greatest value are on the side that the bound allows
            sides = [one - bound.log3 if bound.lower else bound.log3 - one for one in (low, high)]
            holds = YES if min(sides) >= -_SLACK else NO if max(sides) < -_SLACK else OPEN
            theorem = bound.source, "at least" if bound.lower else "at most", bound.formula
            compared = low, bound.log3, sides[0], holds, PROVED if bound.is_proved else GAP
            rows.append((*theorem, *sizes_of(network).values(), result.rank, result.status, *compared))
    compared_as = ["log3_rank", "log3_bound", "distance", "holds", "proof"]
    return pd.DataFrame(rows, columns=[*_THEOREM, *SIZES, "rank", "status", *compared_as])


def theorems_table(bounds: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """One row a theorem: how many networks it was held against, and how near and far it was, in powers of 3.

    That no network in reach violates a bound whose proof has a gap doesn't confirm it. Corollaries 1 and 2 of the
    depth-width paper follow, from exact ranks of networks of one head:

    Corollary 1, for each network before its threshold and each smaller depth: no network narrower than it says can have
    the rank, by the dimensions of the spaces of functions. Its distance is log3 of the width that is needed over the
    width that the corollary asks for.

    Corollary 2, for each network past its threshold: a shallower one of at most the width 3^L' that was measured to
    have the higher rank. It is open where none has: the corollary says that one exists. Its distance is the `b` of the
    shallowest one that was found.
    """
    rows = [
        _theorem_row(theorem, str(proof), mine["holds"], mine.loc[mine["status"] == "exact", "distance"])
        for (*theorem, proof), mine in bounds.groupby([*_THEOREM, "proof"], sort=True)
    ]
    for theorem, proof, found in (
        (_FIRST, PROVED, _of_first(ranks)),
        (_SECOND, GAP, _of_second(ranks)),  # its proof takes theorem 2's upper bound
    ):
        pairs = pd.DataFrame(list(found), columns=["holds", "distance"])
        rows.append(_theorem_row(theorem, proof, pairs["holds"], pairs["distance"]))
    return pd.DataFrame(rows)


def _theorem_row(
    theorem: Sequence[Any], proof: str, holds: pd.Series, distances: pd.Series
) -> dict[str, object]:
    counts = {name: int((holds == says).sum()) for name, says in COUNTED.items()}
    if holds.empty:
        verdict = "none in reach"
    elif counts["violated"]:
        verdict = "violated"
    else:
        verdict = "not violated in reach; its proof has a gap" if proof == GAP else "holds in reach"
    return {
        **dict(zip(_THEOREM, theorem, strict=True)),
        "networks": len(holds),
        **counts,
        "least_distance": distances.min(),
        "largest_distance": distances.max(),
        "verdict": verdict,
    }


def residual_table(ranks: pd.DataFrame) -> pd.DataFrame:
    """One row for each network that was measured with and without residual connections."""
    others = [name for name in SIZES if name != "residual"]
    plain, with_residual = ranks[~ranks["residual"]], ranks[ranks["residual"]]
    both = plain.merge(with_residual, on=others, suffixes=("", "_residual"))
    same = both["rank"] == both["rank_residual"]  # also of lower bounds, which status marks
    both["equal"] = same.map({True: YES, False: NO})
    return both[[*others, "rank", "status", "rank_residual", "status_residual", "equal"]]


def _follows(result: Measured, form: int | None) -> str:
    if form is None:
        return ""
    return says(result.exact or result.rank > form, result.rank == form)


def _of_first(ranks: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for deep in _plain(ranks[ranks["threshold"] == BEFORE]).to_dict("records"):
        for depth in range(1, int(deep["depth"])):
            asked = rank_bounds.published_realizing_width(deep["depth"], deep["width"], depth)
            needed = rank_bounds.log3(rank_bounds.least_width(deep["rank"], depth, deep["tokens"]) + 1)
            yield (YES if needed >= asked else NO), needed - asked


def _of_second(ranks: pd.DataFrame) -> Iterator[tuple[str, float]]:
    plain = _plain(ranks)
    for deep in plain[(plain["threshold"] == AFTER) & (plain["depth"] > 1)].to_dict("records"):
        others = plain[(plain["depth"] < deep["depth"]) & (plain["tokens"] == deep["tokens"])]
        others = others[(others["rank"] > deep["rank"]) & (others["width"] <= 3 ** others["depth"])]
        if others.empty:
            yield OPEN, math.nan
        else:
            yield YES, float(others["depth"].min()) - rank_bounds.log3(deep["width"])


def _plain(ranks: pd.DataFrame) -> pd.DataFrame:
    """The exact ranks of `whole_networks` with one head."""
    whole = whole_networks(ranks)
    return whole[(whole["heads"] == 1) & (whole["status"] == EXACT)]


def whole_networks(ranks: pd.DataFrame) -> pd.DataFrame:
    """Networks of any vectors at full rank, without positions and residual connections, heads of d / H."""
    plain = ~ranks["residual"] & (ranks["positional_rank"] == 0) & ranks["vocab_size"].isna()
    inner = ranks["attention_dim"] * ranks["heads"]
    full = (ranks["embedding_rank"] == ranks["width"]) & (inner == ranks["width"])
    return ranks[plain & full]


def degree_table(found: Measurements) -> pd.DataFrame:
    """One row for each budget and degree: as many equal blocks as the budget has room for, and their rank."""
    columns: Columns = {"degree": lambda one: one.asked.sizes.degrees[0]}
    last: Columns = {"note_log3": lambda one: _note_log3(one.asked.sizes, one.asked.budget)}
    return _blocks_table(found, "degree_budget", columns, last)


def _note_log3(sizes: DegreeSizes, budget: int) -> float:
    """L d log3(k), with the layers that the budget would have room for if they could be broken."""
    degree = sizes.degrees[0]
    return sizes.width * budget / matrices(sizes.blocks, degree) * rank_bounds.log3(degree)


def ranking_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each budget: the degree of largest rank, of largest total degree, and the better of 2 and 3."""
    rows = []
    for group, mine in table.groupby(GROUP, sort=True):
        best, known = mine.loc[mine["largest"] == YES, "degree"], bool((mine["largest"] == YES).any())
        proxy = mine.loc[mine["total_degree"] == mine["total_degree"].max(), "degree"]
        filling = [k for k in (2, 3) if ((mine["degree"] == k) & (mine["unused"] == 0)).any()]
        agrees = says(known, NOTE_BEST in set(best)), says(known, set(best) <= set(proxy))
        largest = _listed(best) if known else OPEN, _listed(proxy), NOTE_BEST
        rows.append((*group, *largest, *agrees, _of_two_and_three(mine), _listed(filling)))
    columns = ["largest_rank", "largest_total_degree", "note", "agrees_with_note", "agrees_with_proxy"]
    return pd.DataFrame(rows, columns=[*GROUP, *columns, "of_2_and_3", "fill_the_budget"])


def fractional_table(found: Measurements) -> pd.DataFrame:
    """One row for each budget and full sequence of degrees (no further block has room)."""
    columns: Columns = {
        "degrees": lambda one: " ".join(map(str, one.asked.sizes.degrees)),
        "mean_degree": lambda one: sum(one.asked.sizes.degrees) / len(one.asked.sizes.degrees),
        "mixed": lambda one: len(set(one.asked.sizes.degrees)) > 1,
    }
    return _blocks_table(found, "fractional_degree", columns)


class Ranked(NamedTuple):
    """A network that was asked for, and its rank."""

    asked: Asked
    measured: Measured


def _blocks_table(
    found: Measurements, name: str, columns: Columns, last: Columns | None = None
) -> pd.DataFrame:
    """The networks of blocks of a table, with columns before those of the rank and after them."""
    every: Columns = {
        **{name: f"asked.sizes.{name}" for name in GROUP[:-1]},
        "budget": "asked.budget",
        **columns,
        "depth": lambda one: len(one.asked.sizes.degrees),
        "unused": lambda one: one.asked.budget - one.asked.sizes.used,
        "parameters": lambda one: one.asked.sizes.used * one.asked.sizes.width**2,
        "total_degree": lambda one: math.prod(one.asked.sizes.degrees),
        "rank": "measured.rank",
        "status": "measured.status",
        "upper_bound": "measured.bound",
        "log3_rank": lambda one: rank_bounds.log3(one.measured.rank),
        **(last or {}),
        "seconds": "measured.seconds",
    }
    table = frame_of((Ranked(*one) for one in found if one[0].table == name), every)
    return table.assign(largest=_largest(table))


def _largest(table: pd.DataFrame) -> pd.Series:
    """For each row, yes where its rank is the largest of its budget, no where not, open where bounds overlap."""
    found = pd.Series(OPEN, index=table.index, dtype=object)
    for _, mine in table.groupby(GROUP):
        bounds = _bounds(mine)
        for place, low, high in bounds.itertuples():
            others = bounds.drop(place)
            if (high < others["low"]).any():
                found[place] = NO
            elif (low >= others["high"]).all():
                found[place] = YES
    return found


def _of_two_and_three(mine: pd.DataFrame) -> str:
    two, three = (mine[mine["degree"] == degree] for degree in (2, 3))
    if two.empty or three.empty:
        return "2 alone" if three.empty and not two.empty else "3 alone" if not three.empty else ""
    bounds = [_bounds(one).iloc[0] for one in (two, three)]
    if bounds[1]["low"] > bounds[0]["high"]:
        return "3"
    if bounds[0]["low"] > bounds[1]["high"]:
        return "2"
    return "equal" if len({*bounds[0], *bounds[1]}) == 1 else OPEN


def _bounds(table: pd.DataFrame) -> pd.DataFrame:
    """The least and the largest value that each rank can have."""
    low = table["rank"].astype(float)
    return pd.DataFrame({"low": low, "high": low.where(table["status"] == "exact", table["upper_bound"])})


def _listed(values: Iterable[int] | Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)

"""The answer for one size in plain words, and as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shapelaw.advice.answer.answer import ENOUGH_TOKENS, Priced, Row, ShapeAnswer, Witness, times, whole
from shapelaw.advice.answer.costs import LEAST_TOKENS, MANY_TOKENS, OUTSIDE, Best, Cost, outside
from shapelaw.advice.answer.sizes import big
from shapelaw.advice.evidence.clocks import LATENCY, SEVERAL_SIZES, training_memory
from shapelaw.advice.evidence.losses import FEW_TOKENS
from shapelaw.specs.shapes import BLOCKS
from shapelaw.specs.sizes import SizeAxis

SIZES = {
    SizeAxis.TOTAL: "parameters in all",
    SizeAxis.BLOCK: "parameters in blocks",
    SizeAxis.FLOPS: "parameters that are multiplied for every token (blocks and classifier)",
}
COLUMNS = 110  # of a line of text
SAME = 0.02  # share by which sizes differ without a word


def text_of(found: ShapeAnswer, notes: Sequence[str] = ()) -> str:
    """The answer in plain words: the best depths first, the table of costs, a paragraph to act on and a verdict last.

    Args:
        found: the answer.
        notes: of bottlenecks and of the given shape, in sentences.
    """
    parts = [_asked(found), _headline(found)]
    if found.rows:
        parts += [_costs(found), _flat(found)]
    parts.append(_best(found))
    parts.append(_witnesses(found.witnesses))
    if found.given is not None:
        parts.append(_given(found.given, found))
    if found.shipped:
        parts.append(_shipped(found))
    parts.append("\n".join([*notes, *_vocabulary(found)]))
    parts.append(" ".join(paragraph(found)))
    parts.append(verdict(found))
    return "\n\n".join(wrapped(part) for part in parts if part)


def wrapped(part: str) -> str:
    """A part whose sentences are broken into lines; lines of tables, which have gaps, are left as they are."""
    lines = part.splitlines()
    return "\n".join(line if "  " in line else textwrap.fill(line, COLUMNS) for line in lines)


def _asked(found: ShapeAnswer) -> str:
    question = found.question
    counting = question.counting
    rank = "" if counting.rank is None else f", embedding rank {counting.rank:,}"
    positions = f", {counting.positions:,} learned positions" if counting.positions else ""
    same = SIZES[counting.axis]
    if question.equal_time:
        same += f" at the best depth, others as slow{' to decode' if question.at_latency else ''}"
    keys = "" if counting.kv_heads is None else f", {counting.kv_heads} heads of keys"
    return (
        f"{big(question.size)} {same}; vocabulary {counting.vocab_size:,}{rank}, "
        f"{'tied' if counting.tied else 'untied'}{positions}; {BLOCKS[counting.block]}{keys}; "
        f"{big(question.tokens)} tokens."
    )


def _headline(found: ShapeAnswer) -> str:
    """The best depths at equal size, at equal time by machine and at equal latency, in one sentence."""
    if not found.by or not found.equal_times:
        return ""
    depth = whole(found.best.depth)
    said = [f"{_depths(depth, depth)} {_interval(found.best)} at equal size"]
    times_on = {name: best for name, best in found.equal_times.items() if name != LATENCY}
    if times_on:
        depths = (f"{whole(best.depth)} {_interval(best)} on {name}" for name, best in times_on.items())
        said.append(f"at equal training time {' and '.join(depths)}")
    if (best := found.equal_times.get(LATENCY)) is not None:
        said.append(f"at equal latency of decoding {whole(best.depth)} {_interval(best)}")
    return f"Best: {'; '.join(said)}."


def _interval(best: Best) -> str:
    low, high = ends(best)
    return f"({low} to {high})"


def _costs(found: ShapeAnswer) -> str:
    question = found.question
    timed, serving = question.equal_time, question.serving
    columns: dict[str, Callable[[Row], str]] = {
        "layers": lambda row: str(row.sized.shape.depth),
        "width": lambda row: f"{row.sized.shape.width:,}",
        "heads": lambda row: f"{row.sized.shape.heads} x {row.sized.shape.attention_dim}",
        "feed-forward": lambda row: f"{row.sized.shape.hidden_width:,}",
        "excess loss, nats (68%)": lambda row: cost_text(row.cost),
        "wasted": lambda row: f"{row.cost.params_worth:.0%}",
        "size" if timed else "time": lambda row: big(row.sized.size) if timed else f"{row.time:.2f}",
    }
    if serving is not None:
        columns["KV per token"] = lambda row: f"{serving.of(row.sized.shape)[1] / 1024:.4g} KiB"
        columns["per token"] = lambda row: f"{1e3 * serving.of(row.sized.shape)[2]:.3g} ms"
    lines = [_table(columns, found.rows)]
    lines += [
        f"{row.sized.shape.depth} layers have no width that makes {big(row.sized.asked)}: this shape has "
        f"{big(row.sized.size)}."
        for row in found.rows
        if not row.sized.fits
    ]
    same = (
        "Size: all parameters in the same time"
        if timed
        else "Time: per token in training, over that of the best"
    )
    if question.at_latency:
        same = "Size: all parameters that decode as quickly"
    lines.append(
        ("Excess losses are by your own fit, " + found.by + ". " if by_own_surface(found) else "")
        + "Excess loss: above the best shape's. Wasted: 15% means that the best shape reaches this loss with 15% fewer "
        f"parameters. {same}; by {question.clock.source}."
    )
    if serving:
        lines.append(
            f"Decoding {serving.batch:,} at once with {serving.context:,} tokens each, by {serving.source}: a step "
            f"reads {serving.number_bytes:g} bytes of each weight, key and value. KV: bytes of keys and values for "
            "each token of context."
            + (
                " Equal latency takes heads of keys of 64 to 128 by the width; the last column is of the shape itself."
                if question.at_latency and question.counting.kv_heads
                else ""
            )
        )
    if (beyond := question.clock.beyond(math.log(found.costs.blocks))) > SEVERAL_SIZES:
        lines.append(
            f"These times were measured at sizes {times(math.exp(beyond))} away; here their error is wider for that."
        )
    return "\n".join(lines)


def cost_text(cost: Cost) -> str:
    """`0.006 (0.002 to 0.013)`, in nats."""
    return f"{cost.value:.3f} ({cost.low:.3f} to {cost.high:.3f})"


def aligned(rows: Sequence[Sequence[str]], put: Callable[[str, int], str] = str.rjust) -> str:
    """Rows of cells as lines, with columns two spaces apart; `put` fills a cell up to the width of its column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(put, row, widths)).rstrip() for row in rows)


def _table(columns: Mapping[str, Callable[[Any], str]], items: Iterable[Any]) -> str:
    """A row for each item, below the names of the columns."""
    return aligned([[*columns], *([cell(one) for cell in columns.values()] for one in items)])


def _flat(found: ShapeAnswer) -> str:
    return f"Less than {found.question.within:g} nats: {_depths(*found.costs.flat())}."


def _depths(low: int, high: int) -> str:
    """`24 to 54 layers`, `2 layers`, `1 layer`."""
    return f"{low} to {high} layers" if high > low else f"{low} layer{'s' if low > 1 else ''}"


def ends(best: Best) -> tuple[int, int]:
    """The whole depths between which a best depth lies; never one depth alone."""
    low, high = math.floor(best.low + 0.5), math.ceil(best.high - 0.5)
    depth = whole(best.depth)
    low, high = max(1, min(low, depth)), max(high, depth)
    return (low, high) if high > low else (max(1, low - 1), high + 1)


def _best(found: ShapeAnswer) -> str:
    low, high = ends(found.best)
    if not found.by:
        said = f"can't tell. What the evidence leaves open lies between {low} and {high} layers (68%)."
        if (one := found.bound) is not None:
            said = f"{one.said} layers, by your own runs, {one.name}. Public runs don't reach this question."
        return f"Best depth: {said} {_why(found)}{_nearest(found)}"
    depth = whole(found.best.depth)
    return f"Best depth: {depth} layers (68%: {low} to {high}), by {found.by}. {_spread(found)}"


def _why(found: ShapeAnswer) -> str:
    evidence, costs = found.costs.evidence, found.costs
    if found.question.tokens < LEAST_TOKENS:
        first, least = big(evidence.tokens[0]), big(LEAST_TOKENS)
        return f"Its losses begin at {first} tokens, and below {least} nothing follows from them."
    if found.question.tokens > evidence.most_tokens:
        return f"Its losses end at {big(evidence.tokens[1])} tokens: these are more than {MANY_TOKENS:g} times as many."
    if outside(costs.best.depth, evidence.depths) > math.log(OUTSIDE):
        shallow, deep = evidence.depths
        return (
            f"Its networks have {shallow:.0f} to {deep:.0f} layers, and the best depth by it would be about "
            f"{costs.best.depth:,.0f}: more than {OUTSIDE:g} times outside."
        )
    low, high = evidence.blocks
    return (
        f"Its networks have {big(low)} to {big(high)} parameters in blocks, and these have about {big(costs.blocks)}: "
        f"more than {OUTSIDE:g} times outside."
    )


def _nearest(found: ShapeAnswer) -> str:
    if (near := found.nearest) is None:
        return ""
    asked, depth = near.question, whole(near.best.depth)
    at = [f"{big(asked.size)} {SIZES[asked.counting.axis]}"] if asked.size != found.question.size else []
    at += [f"{big(asked.tokens)} tokens"] if asked.tokens != found.question.tokens else []
    return f" The nearest that it can tell is {' and '.join(at)}: {_depths(depth, depth)} {_interval(near.best)}."


def _spread(found: ShapeAnswer) -> str:
    if not found.costs.told:
        return "The evidence doesn't reach this size; the interval is your fit's, widened by what sources differ by."
    if by_own_surface(found):
        other = outside(found.question.tokens, found.costs.evidence.tokens) > SAME
        more = " Its runs saw another number of tokens, by which the interval is wider." if other else ""
        return (
            "The public evidence doesn't reach this question, so costs, best depth and interval are those of your own "
            f"fit: for networks like its runs, trained as they were.{more}"
        )
    low, high = ends(Best(found.best.depth, found.best.own_low, found.best.own_high, 0.0, 0.0))
    return (
        f"The interval is for your network: it is wider than that of the fits alone ({low} to {high} layers), because "
        f"best depths by different sources also differ by about {math.expm1(found.costs.evidence.spread.sources):.0%}."
        f"{_few_tokens(found)}"
    )


def _few_tokens(found: ShapeAnswer) -> str:
    """Who decides where tokens are few, and why sources beside the two labs may lie outside of the interval."""
    if (enough := found.enough) is None:
        return ""
    depth, best = whole(enough.best.depth), found.best
    said = [
        f" Below {big(FEW_TOKENS)} tokens the runs of Bian et al. 2025 decide alone; at {big(ENOUGH_TOKENS)} the best "
        f"depth would be {_depths(depth, depth)} {_interval(enough.best)}."
    ]
    said += [
        f" The {whole(one.depth)} layers of {one.name} lie outside of the interval, which takes your network to be "
        "nearer to the two labs'."
        for one in found.witnesses
        if one.inside and math.isfinite(one.depth) and not best.low <= one.depth <= best.high
    ]
    return "".join(said)


def by_own_surface(found: ShapeAnswer) -> bool:
    """Whether the table of costs is a surface's of the user's own, where the public evidence doesn't reach."""
    return bool(found.rows) and found.costs.evidence.few_shapes


def _witnesses(witnesses: Iterable[Witness]) -> str:
    rows = [("best depth by", "layers (fit's error)", "block", "measured at blocks of", "this size")]
    remarks = []
    for one in witnesses:
        here = "inside" if one.inside else f"{times(one.beyond)} outside"
        rows.append((one.name, _by_witness(one), one.block, " to ".join(map(_short, one.sizes)), here))
        remarks += [f"{one.name}: {remark}" for remark in one.remarks]
    return "\n".join([aligned(rows, str.ljust), *remarks])


def _short(number: float) -> str:
    """`1.8B`, `23M`: a number in two digits and its unit."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.2g}{letter}" if number < 100 * unit else f"{number / unit:.0f}{letter}"
    return f"{number:.0f}"


def _by_witness(one: Witness) -> str:
    if one.said:
        return one.said
    if not math.isfinite(one.depth):
        return "no depth pays at this size"
    if not math.isfinite(one.high):
        return f"{one.depth:,.0f} ({one.low:,.0f} to no limit)"
    digits = 0 if round(one.high) > round(one.low) else 1
    return f"{one.depth:,.{digits}f} ({one.low:,.{digits}f} to {one.high:,.{digits}f})"


def _given(priced: Priced, found: ShapeAnswer) -> str:
    one = priced.network
    size, asked = one.size(), found.question.size
    text = f"Your shape, {_depths(one.depth, one.depth)} of width {one.width:,}"
    if abs(size / asked - 1.0) > SAME:
        text += f", has {big(size)} where {big(asked)} was asked ({size / asked - 1.0:+.0%})"
    if priced.cost is None or priced.own is None:
        return text + ": the evidence doesn't reach its size, so its cost can't be told."
    return (
        f"{text}. It costs {cost_text(priced.cost)} nats against the best of its own size "
        f"({whole(priced.own.best.depth)} layers): {priced.cost.params_worth:.0%} of its parameters."
    )


def _shipped(found: ShapeAnswer) -> str:
    shipped, most = found.shipped, found.costs.evidence.tokens[1]
    cost = f"excess loss{' at its own size' if found.question.equal_time else ''}, nats (68%)"
    columns: dict[str, Callable[[Priced], str]] = {
        "shipped at this size": lambda one: f"{one.network.name} ({one.network.year})",
        "layers": lambda one: str(one.network.depth),
        "width": lambda one: f"{one.network.width:,}",
        "V": lambda one: f"{one.network.counting.vocab_size:,}{' tied' if one.network.counting.tied else ''}",
        "size": lambda one: big(one.network.size()),
        "tokens": lambda one: "unknown" if one.network.tokens is None else big(one.network.tokens),
        cost: lambda one: one.network.origin or ("can't tell" if one.cost is None else cost_text(one.cost)),
    }
    far = any(one.cost is not None and (one.network.tokens or 0.0) > most for one in shipped)
    said = [
        "Each is compared with the best of its own size and vocabulary, at its own tokens where they are known"
        + (f"; beyond {big(most)} its excess loss is extrapolated." if far else ".")
    ]
    if any(one.network.origin for one in shipped):
        said.append(
            "A pruned, distilled or upscaled model isn't priced: its loss owes much to the model it came from."
        )
    return "\n".join([_table(columns, shipped), *said])


def verdict(found: ShapeAnswer) -> str:
    """Whether to keep the user's shape: its cost at equal size, net of time and latency."""
    if found.verdict is None or found.given is None:
        return ""
    said, mine, best = found.verdict, found.given.network, found.verdict.best.shape
    latency = found.question.at_latency
    pace = [] if latency else [_slower(said.slower, f"to train on {found.question.clock.name}")]
    if said.decoding is not None:
        pace.append(_slower(said.decoding, "to decode"))
    net = f"the best shape of its size, {best.depth} x {best.width:,}, is {_better(said.cost)} and {', '.join(pace)}"
    if said.at_equal_time is not None:
        net += f"; the best that {'decodes' if latency else 'trains'} as quickly is {_better(said.at_equal_time)}"
    kept = said.keeps(found.question.within)
    return f"{'Keep' if kept else 'Change'} {mine.depth} x {mine.width:,}: {net}."


def _better(cost: Cost) -> str:
    return f"{cost.value:.3f} nats better ({cost.low:.3f} to {cost.high:.3f})"


def _slower(share: float, what: str) -> str:
    return f"{abs(share):.0%} {'slower' if share > 0 else 'faster'} {what}"


def _vocabulary(found: ShapeAnswer) -> list[str]:
    if found.vocabulary is None:
        return []
    low, high = (f"{float(f'{size:.2g}'):,.0f}" for size in found.vocabulary)
    return [
        f"Vocabulary: a published law (Tao et al. 2024, compute-optimal tokens, 33 million to 3 billion parameters) "
        f"would take {low} to {high} beside these blocks; it has no interval."
    ]


def paragraph(found: ShapeAnswer) -> list[str]:
    """What to take and why, when to go deeper and when shallower, in sentences."""
    if found.bound is not None:
        return [
            "Your runs leave the best depth at the end of their depths or beyond it: take that end, or train shapes "
            "beyond it, where there are any, and ask `shapelaw fit` again."
        ]
    if found.advised is None:
        depths = [one.network.depth for one in found.shipped]
        near = f" What is shipped near it has {_depths(min(depths), max(depths))}." if depths else ""
        return [
            f"Nothing here tells which depth is best at this size.{near} Train eight shapes at a size that you can "
            "afford, half and twice as deep, and ask `shapelaw fit` what depth costs there."
        ]
    shape = found.advised.shape
    layers = _depths(shape.depth, shape.depth)
    keys = "" if shape.kv_heads is None else f" and {shape.kv_heads} of keys"
    said = [
        f"Take {layers} of width {shape.width:,}, with {shape.heads} heads of {shape.attention_dim}{keys}."
    ]
    if not found.rows:
        return [*said, "What other depths cost is not known at this size."]
    low, high = found.costs.flat()
    within = found.question.within
    flat = f"Any depth from {low} to {high} costs" if high > low else "Only this depth costs"
    said.append(
        f"{flat} less than {within:g} nats, which a network smaller by {found.costs.worth(within):.0%} would lose too."
    )
    if not found.question.equal_time:
        quick = found.costs.relative_time(low)
        if quick < 1.0 - SAME:
            said.append(
                f"So choose among them by speed: {low} layers take {1.0 - quick:.0%} less time per token."
            )
        if any(whole(best.depth) != shape.depth for best in found.equal_times.values()):
            said.append(
                "That holds at equal size. Where time or latency counts, a faster shape may be larger: take a depth of "
                "the first line (--size time or latency has its shapes)."
            )
    state, per_token = training_memory(shape)
    context = found.question.context
    said.append(
        f"In mixed precision training takes {state / 1e9:.3g} GB for weights, gradients and AdamW's moments, and about "
        f"{per_token * context / 1e9:.2g} GB for the activations of each sequence of {context:,} tokens (fused "
        "attention, nothing recomputed; logits come on top)."
    )
    said.append(
        "Go deeper where parameters are what you count: a large untied vocabulary makes width expensive, more so with "
        "more tokens. Go shallower for latency or small batches, where layers wait for each other."
    )
    return said

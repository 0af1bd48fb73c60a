"""What a storm did, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from chaos_victims import FOLLOWER, SNAKEMAKE, TRAINING, Kill
from chaos_workflow import Spent
from same_results import TRACKING, Difference

HEAD = (
    "victim",
    "kills",
    "of these SIGTERM",
    "survived",
    "when",
    "seconds lost: mean, most",
    "steps lost: mean, most",
)
AREAS = {"corpus": "corpora", "fit": "depth_width"}  # what is whose work; the others' is in MLflow


@dataclass(frozen=True)
class Outcome:
    """A storm and what it ended with.

    Attributes:
        kills: in order.
        found: how the results differ from undisturbed ones.
        setting: a clause about the work that was disturbed.
        spent: with the kills.
        undisturbed: by the same work without.
    """

    kills: Sequence[Kill]
    found: Sequence[Difference]
    setting: str
    spent: Spent
    undisturbed: Spent


def survived(kill: Kill, found: Sequence[Difference]) -> bool:
    """Whether nothing that the victim had to do with differs at the end."""
    if kill.kind == SNAKEMAKE:
        return not found
    if kill.kind == TRAINING:
        return not any(kill.job in difference.name for difference in found)
    return not any(difference.area == AREAS.get(kill.kind, TRACKING) for difference in found)


def report(outcome: Outcome) -> str:
    """The figures, a table by victim, and what differs."""
    kills, found = outcome.kills, outcome.found
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for kind, _ in Counter(kill.kind for kill in kills).most_common():
        lines.append(_row(kind, [kill for kill in kills if kill.kind == kind], found))
    one, other = outcome.spent, outcome.undisturbed
    wall, cpu = ((a - b) / max(1, len(kills)) for a, b in ((one.wall, other.wall), (one.cpu, other.cpu)))
    lines += [
        "",
        f"{sum(survived(kill, found) for kill in kills)} of {len(kills)} kills survived: {outcome.setting}.",
        f"With the kills {one.wall:.0f} s ({one.cpu:.0f} CPU seconds), undisturbed {other.wall:.0f} s "
        f"({other.cpu:.0f}): {wall:.1f} s ({cpu:.1f} CPU seconds) lost a kill.",
    ]
    if found:
        lines += ["", f"{len(found)} differences from the undisturbed run:"]
        lines += [f"- {difference}" for difference in found]
    else:
        lines += ["Every file of the results and every run in MLflow equals the undisturbed run's."]
    return "\n".join(lines)


def _row(kind: str, kills: Sequence[Kill], found: Sequence[Difference]) -> str:
    phases = Counter(kill.phase for kill in kills).most_common()
    seconds = [kill.seconds_lost for kill in kills if kill.seconds_lost is not None]
    steps = [kill.steps_lost for kill in kills if kill.steps_lost is not None]
    cells = [
        kind,
        len(kills),
        sum(kill.signal == "SIGTERM" for kill in kills),
        sum(survived(kill, found) for kill in kills),
        ", ".join(f"{count} {phase}" for phase, count in phases),
        "nothing" if kind == FOLLOWER else f"{mean(seconds):.1f}, {max(seconds):.1f}" if seconds else "–",
        f"{mean(steps):.0f}, {max(steps):.0f}" if steps else "–",
    ]
    return f"| {' | '.join(map(str, cells))} |"

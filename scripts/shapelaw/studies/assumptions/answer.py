"""The theorem's assumptions: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

from shapelaw.report.write import Answer, Table

HOLDS = "holds"


def answer(tables: Mapping[str, Table]) -> Answer:
    """The number of layers on which each assumption holds, and how many verdicts agree with published ones.

    Args:
        tables: `verdicts` of the study.
    """
    verdicts = tables["verdicts"].frame
    said = ", ".join(
        f"{name} on {int((rows['ours'] == HOLDS).sum())} of {len(rows)}"
        for name, rows in verdicts.groupby("assumption", sort=True)
    )
    known = verdicts[verdicts["published"].notna()]
    agree = int((known["published"] == known["ours"]).sum())
    published = f"{agree} of {len(known)} published verdicts agree with ours." if len(known) else ""
    return Answer(f"Layers on which it holds: {said}.", bool(len(verdicts)), published)

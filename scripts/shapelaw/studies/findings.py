"""What the studies found, read from their fit.json: questions come from the rooms, answers from their analyses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.report.findings import Finding
from shapelaw.report.write import ANSWER, FINDINGS, Answer
from shapelaw.studies.study import Study

NOTHING_DRAWN = "<!-- No figure: "  # written by report/write.py


def read_finding(study: Study, results: Path) -> Finding:
    """A study's finding, from `results/<study>/`.

    Raises:
        UserError: fit.json is missing or is no JSON object.
    """
    folder = results / study.name
    fit = _read(folder / "fit.json")
    if fit is None:
        raise UserError(
            f"{folder / 'fit.json'} is missing or broken; make it with: snakemake {folder / 'fit.json'}"
        )
    figure = next((name for name in study.figures if _is_drawn(folder / f"{name}.svg")), None)
    return Finding(
        study.name,
        study.heading,
        study.question,
        Answer(**fit[ANSWER]) if ANSWER in fit else None,
        tuple(fit.get(FINDINGS, ())),
        None if figure is None else folder / f"{figure}.svg",
        "" if figure is None else study.figures[figure],
        study.made_elsewhere,
        (_read(folder / "logged") or {}).get("pages", {}),
    )


def described(study: Study, fit: Path) -> str:
    """A study's question, answer and findings as Markdown, for its experiment in MLflow.

    Args:
        fit: its fit.json.
    """
    said = _read(fit) or {}
    lines = [study.question]
    if ANSWER in said:
        answer = Answer(**said[ANSWER])
        lines.append(("" if answer.decided else "Undecided: ") + answer.sentence)
        lines += [f"Published: {answer.published}"] if answer.published else []
    findings = "\n".join(f"- {line}" for line in said.get(FINDINGS, ()))
    return "\n\n".join([*lines, *([findings] if findings else [])])


def _is_drawn(figure: Path) -> bool:
    """True for a file with a figure, not with the sentence that there was nothing to draw."""
    return figure.is_file() and NOTHING_DRAWN not in figure.read_text(encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file has none, as `logged` of an older version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None

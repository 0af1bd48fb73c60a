"""The memorization theorem's assumptions on real networks and data (Mahdavi et al. 2024, section 5.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from shapelaw.settings.problems import source_problems
from shapelaw.settings.sections import Count, Examples, Section, Settings
from shapelaw.studies.study import Key, Study

AssumptionModel = Literal["vit", "bert", "decoder", "gpt2", "vit_base", "bert_large", "gpt2_large"]
Positions = Literal["learned", "sinusoidal"]
NAME = "assumptions"


class Assumptions(Section):
    """The memorization theorem's assumptions on real networks and data (Mahdavi et al. 2024, section 5.1)."""

    models: list[AssumptionModel] = Field(
        ["bert", "decoder"],
        min_length=1,
        description="Networks to check; weights come from wheels, those of gpt2 need a hub and are random without one. "
        "The last three have the paper's sizes, with random weights.",
    )
    examples: Examples = Field(2000, description="Images or texts for each network.")
    images: str | None = Field(
        None, description="Folder of your own images; null takes photographs from wheels."
    )
    source: str = Field("wiki", description="Source of the text, one as in corpus.sources.")
    positions: Positions = Field(
        "learned", description="Positions of BERT with random weights; the paper says sinusoidal."
    )
    trials: Count = Field(5000, description="Random subsets that decide a verdict.")
    sensitivity_trials: Count = Field(
        500, description="Random subsets for a verdict at each other tolerance."
    )
    curve_trials: Count = Field(100, description="Random subsets for a point of the figure.")


def section(config: Settings) -> Assumptions:
    """The study's section of a config."""
    return config.section(NAME, Assumptions)


def problems(config: Settings, root: Path) -> list[str]:
    """A sentence for each problem: an unknown source of text, a missing folder of images."""
    asked = section(config)
    found = source_problems(f"{NAME}.source", asked.source, root)
    if asked.images is not None and not (root / asked.images).is_dir():
        found.append(
            f"{NAME}.images is {asked.images}, which is not a folder; leave it out for photographs from wheels"
        )
    return found


def measuring_options(config: Settings) -> list[str]:
    """The section as options of scripts/check_assumptions.py."""
    asked = section(config)
    options = ["--models", ",".join(asked.models), "--source", asked.source]
    for name in ("examples", "trials", "sensitivity_trials", "curve_trials"):
        options += [f"--{name.replace('_', '-')}", str(getattr(asked, name))]
    for name in ("images", "positions"):  # where they are not the command's own
        if (value := getattr(asked, name)) != Assumptions.model_fields[name].default:
            options += [f"--{name}", value]
    return options


STUDIES = (
    Study(
        NAME,
        "Assumptions",
        Path(__file__).parent / "captions",
        ("verdicts", "layers", "pass_rate"),
        {"pass_rate": "figure 1 of the memorization paper"},
        "shapelaw.studies.assumptions.results",
        question="Do the memorization theorem's assumptions hold on real networks?",
        verdict="results/assumptions.md",
        sections={NAME: Key(Assumptions, "The check of the memorization theorem's assumptions.")},
        problems=problems,
        input=f"results/{NAME}/layers",
        extra=True,
    ),
)

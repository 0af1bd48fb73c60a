"""The papers' studies of decoders: each is a grid of `grids:` and a question, with an analysis of its own.

The module of a study's name in this room has its results, captions/ in it a folder of texts for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shapelaw.settings.sections import Settings
from shapelaw.studies.grid.study import Baseline, Grid, declared_study
from shapelaw.studies.study import OURS, Study, seed_warnings

CAPTIONS = Path(__file__).parent / "captions"
COMMITTED = Path(__file__).parents[4] / "docs" / "results" / "h200_llama.csv"
DEPTH_WIDTH = Grid("depth_width", asks="line")
DEGREES = Grid("attention_degree", ("attention_degree", "attention_dim"), "nothing")
FULL = Baseline("with embeddings of full rank", 2, lambda shape: shape.embedding_rank is None)
NARROW = Baseline("of ratio 1", 2, lambda shape: shape.attention_ratio == 1)
PLAIN = Baseline(
    "with plain embeddings", 1, lambda shape: not (shape.embedding_rank or shape.positional_rank)
)
TABLES = ("transitions", "fit", "projection", "forms", "comparison", "size_axes", "seed_noise", "best_depth")
FIGURES = {
    "loss_adjacent": "figures 1b and 2 of the depth-width paper, adjacent depths",
    "loss_doubled": "figure 2 of the depth-width paper, one depth against its double",
    "transition_width": "figure 3a of the depth-width paper",
    "transition_size": "figure 3b of the depth-width paper",
    "best_depth": "figure 3c of the depth-width paper",
    "extrapolation": "figure 4 of the depth-width paper",
}


def axes_options(config: Settings) -> list[str]:
    """The options of the analysis: the size, and the axes where there are some."""
    axes = DEPTH_WIDTH.axes(config)
    return [*DEPTH_WIDTH.sized(config), *(["--axes", *axes] if axes else [])]


def degree_warnings(config: Settings, root: Path) -> list[str]:
    """Those of the grid, and a sentence where no two networks differ in their seed alone."""
    seeds = [one.seeds for one in DEGREES.networks(config, root)]
    return DEGREES.warnings(config, root) + seed_warnings(DEGREES.place, seeds)


def _study(grid: Grid, blocks: Any, **own: Any) -> Study:
    """A study whose results are the module of its name."""
    results = f"shapelaw.studies.decoders.{grid.name}"
    return declared_study(grid, CAPTIONS / grid.name, blocks, **{"results": results, **own})


BOTH: dict[str, Any] = {  # what the runs of a config and the committed ones share
    "title": "Depth and width",
    "tables": TABLES,
    "answering": ("transitions", "best_depth"),
    "figures": FIGURES,
    "results": "shapelaw.studies.decoders.depth_width",
    "question": "Should the next parameter go into depth or into width: from which width on does a deeper network win?",
    "verdict": "results/depth_width.md",
}
RATES: dict[str, Any] = {  # what the studies of several learning rates share
    "tables": ("transitions", "size_axes", "gaps", "ratios", "best_rates", "losses", "seed_noise"),
    "figures": {"losses": OURS},
    "results": "shapelaw.studies.decoders.todays_decoder",
    "answering": ("ratios", "transitions"),
    "verdict": "results/depth_width.md#more-steps-other-rates-another-block",
}

STUDIES = (
    # Study 1: the transitions between depths, the line through them, and what it projects (Levine et al. 2020).
    _study(
        DEPTH_WIDTH,
        {
            "widths": {
                1: [64, 96, 128, 192],
                2: [46, 68, 90, 136],
                4: [32, 48, 64, 96],
                8: [22, 34, 46, 68],
            },
            "repeated": {1: [64, 192], 8: [22, 68]},
            "repeated_seeds": 2,
        },
        options=axes_options,
        **BOTH,
    ),
    Study(
        "committed_runs",
        captions=CAPTIONS / "depth_width",
        options=DEPTH_WIDTH.sized,
        input=str(COMMITTED),
        made_elsewhere="115 decoders of Llama's block, trained in 18 minutes of one H200 and committed; all with 3,000 "
        "steps of 128 windows at one learning rate: other steps or another block move the crossings "
        "(docs/results/depth_width.md#more-steps-other-rates-another-block).",
        subtitle="runs trained before (seven packaged texts, Llama's block, 3,000 steps, 115 runs)",
        extra=True,
        tables_caption="committed_runs",
        **BOTH,
    ),
    # Is a transition an artefact of one learning rate and too few steps? The same shapes at several of both.
    _study(
        Grid("undertraining", ("steps", "learning_rate"), "transitions"),
        {
            "axes": {"steps": [1000, 4000], "learning_rate": [1e-3, 2e-3]},
            "widths": {1: [32, 64, 96, 128], 2: [22, 46, 68, 90]},
            "repeated": {1: [64], 2: [46]},
            "repeated_seeds": 2,
        },
        title="Learning rate and steps",
        question="Do transitions survive other numbers of steps and learning rates?",
        **RATES,
    ),
    # Does a transition survive today's decoder? GPT-2's block and Llama's, one learning rate and the best, any budget.
    _study(
        Grid(
            "todays_decoder",
            ("block", "gelu", "kv_heads", "base_width", "steps", "budget", "learning_rate"),
            "transitions",
        ),
        {
            "axes": {"block": ["gpt2", "llama"], "learning_rate": [1e-3, 2e-3], "steps": 1000},
            "widths": {1: [28, 64, 96, 128], 2: [20, 44, 68, 92]},
            "repeated": {1: [64], 2: [44]},
            "repeated_seeds": 2,
        },
        title="Today's decoder",
        question="Do transitions survive today's block, the best learning rates and other token budgets?",
        **RATES,
    ),
    # The effect of the vocabulary on the best depth: where a deep network overtakes a shallow one, for each V and r.
    _study(
        Grid("vocabulary", ("vocab_size", "embedding_rank", "patch_embedding", "steps"), "transitions"),
        {
            "axes": {"vocab_size": [257, 500]},
            "widths": {1: [32, 64, 96, 128], 2: [22, 46, 68, 90]},
            "repeated": {1: [64], 2: [46]},
            "repeated_seeds": 2,
        },
        title="Vocabulary",
        answering=("relation", "comparison"),
        tables=("transitions", "size_axes", "gaps", "relation", "losses", "seed_noise", "comparison"),
        figures={"losses": "figures 1, 3 and 5 of the vocabulary paper"},
        question="Does a small vocabulary, or a low rank, move the width at which depth pays?",
        verdict="results/vocabulary.md#vocabulary-and-rank",
    ),
    # The cost of a low rank of the embedding: factored embeddings against narrower networks (Wies et al. 2021).
    _study(
        Grid("embedding_rank", ("embedding_rank", "positional_rank"), "nothing", FULL),
        [
            {"widths": {2: [24, 32, 48, 64]}},
            *({"widths": {2: [64]}, "embedding_rank": rank, "positional_rank": rank} for rank in (4, 16)),
        ],
        title="Rank of the embedding",
        tables=("losses", "redundancy", "needed", "seed_noise", "comparison"),
        answering=("needed", "redundancy"),
        figures={"losses": "figure 2 of the vocabulary paper"},
        question="How much of a network is wasted where the embedding's rank is low?",
        verdict="results/ranks.md#the-embeddings-rank",
        options=lambda _config: (),
    ),
    # The cost of attention that is wider than the network, H d_a > d, as in T5 (Wies et al. 2021, section 5.3).
    _study(
        Grid("attention_ratio", ("heads", "attention_dim", "ff_width"), "nothing", NARROW),
        [
            {"widths": {1: [48, 64, 96], 2: [48, 68]}},
            {
                "widths": {1: [34, 48], 2: [24, 34]},
                "attention_dim": {"ratio": 4},
                "ff_width": "4 * heads * attention_dim",
            },
        ],
        title="Attention wider than the network",
        tables=("losses", "best_depth", "redundancy", "monotony", "spread", "comparison"),
        answering=("best_depth", "redundancy"),
        figures={
            "losses": "figure 4 of the vocabulary paper",
            "depths": "figure 6 of the vocabulary paper",
            "redundancy": OURS,
        },
        question="What does attention wider than the network cost?",
        verdict="results/ranks.md#attention-wider-than-the-network",
    ),
    # The cost of a low rank of the positional embedding beside one of the token embedding (Wies et al. 2021, C.4).
    _study(
        Grid("positional_rank", ("embedding_rank", "positional_rank"), "nothing", PLAIN),
        [
            {"widths": {2: [64]}, "seeds": 3},
            {"widths": {2: [64]}, "axes": {"positional_rank": [1, 4, 16, 64]}},
            {"widths": {2: [64]}, "axes": {"embedding_rank": [2, 4, 16, 64]}},
        ],
        title="Rank of the positional embedding",
        tables=("losses", "needed", "equivalents", "comparison"),
        answering=("needed", "equivalents"),
        figures={"losses": "figure 7 of the vocabulary paper"},
        question="Which rank does the positional embedding need?",
        verdict="results/ranks.md#the-positions-rank",
        options=lambda _config: (),
    ),
    # Decoders with linear attention of each degree, beside softmax, at equal parameters (block-degree note, eq. 2).
    # Without dropout, since linear attention has no weights to drop.
    _study(
        DEGREES,
        {
            "axes": {"attention_degree": [None, 2, 3, 4], "attention_dim": "equal_params"},
            "widths": {1: [64, 96]},
            "dropout": 0.0,
            "seeds": 4,
        },
        title="Degree of the building block",
        subtitle="Linear attention",
        tables=("losses", "differences"),
        answering=("differences",),
        figures={"losses": OURS},
        question="Which degree of attention, or softmax, learns text best at equal parameters?",
        verdict="results/degrees.md#linear-attention-in-a-decoder",
        options=lambda _config: (),
        warnings=degree_warnings,
    ),
)

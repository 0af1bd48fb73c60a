"""Layers of made tokens whose findings are known."""

from dataclasses import replace
from functools import cache

import numpy as np

from shapelaw.studies.assumptions.results import Collected, findings_of
from shapelaw.studies.assumptions.study import Assumptions

NAMES = ("model", "weights", "layer", "note", "inputs")
ASKED = Assumptions(trials=200, sensitivity_trials=100, curve_trials=30)


def findings(tokens, query=0):
    collected = Collected()
    for start in range(0, len(tokens), 7):
        collected.add(tokens[start : start + 7], query)
    return findings_of(collected, ASKED, dict.fromkeys(NAMES, ""))


def gaussian(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def with_queries(tokens, queries, query=0):
    tokens = tokens.copy()
    tokens[:, query] = queries
    return tokens


@cache
def made_rows():
    """Layers of three models, one of them random and trained, before and after attention."""
    before = findings(with_queries(gaussian(40, 6, 12), gaussian(12)))
    after = findings(gaussian(40, 6, 12))
    return [
        replace(found, **dict(zip(NAMES, names, strict=True)))
        for found, *names in (
            (after, "bert", "random", "layer 1", "a note", "40 texts"),
            (after, "vit", "trained", "trained_vit", "", "40 images"),
            (before, "vit", "random", "embedding", "", "40 images"),
            (before, "decoder", "random", "layer 0", "", "40 texts"),
        )
    ]

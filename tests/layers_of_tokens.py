"""Layers of made tokens whose findings are known."""

import numpy as np

from shapelaw.studies.assumptions.findings import Collected, Effort, findings_of

EFFORT = Effort(trials=200, sensitivity_trials=100, curve_trials=30)


def findings(tokens, query=0):
    collected = Collected()
    for start in range(0, len(tokens), 7):
        collected.add(tokens[start : start + 7], query)
    return findings_of(collected, EFFORT)


def gaussian(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def with_queries(tokens, queries, query=0):
    tokens = tokens.copy()
    tokens[:, query] = queries
    return tokens

"""Findings that several tests read."""

import pytest
from layers_of_tokens import findings, gaussian, with_queries

from shapelaw.studies.assumptions.findings import Row


@pytest.fixture(scope="session")
def rows():
    """Layers of three models, one of them random and trained, before and after attention."""
    before = findings(with_queries(gaussian(40, 6, 12), gaussian(12)))
    after = findings(gaussian(40, 6, 12))
    return [
        Row("bert", "random", "layer 1", "a note", "40 texts", after),
        Row("vit", "trained", "trained_vit", "", "40 images", after),
        Row("vit", "random", "embedding", "", "40 images", before),
        Row("decoder", "random", "layer 0", "", "40 texts", before),
    ]

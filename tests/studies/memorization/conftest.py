"""Analyses that several tests read: of runs along H and along d_h whose truth is known."""

import pandas as pd
import pytest
from memorization_analyses import HEAD_COUNTS, HEAD_DIMS, our_runs, study_of
from memorizing_networks import simulate

from shapelaw.studies.memorization.analysis import ALONG_HEAD_DIM, ALONG_HEADS


@pytest.fixture(scope="session")
def heads():
    """Classifications of three T and a regression."""
    classification = simulate(HEAD_COUNTS, examples=(10000, 20000, 30000))
    regression = simulate(HEAD_COUNTS, examples=(20000,), per_head=12, task="regression")
    return study_of(pd.concat([classification, regression], ignore_index=True), ALONG_HEADS)


@pytest.fixture(scope="session")
def head_dims():
    """Three T; the knee is at n = 32."""
    return study_of(simulate((30,), head_dim=HEAD_DIMS, examples=(10000, 15000, 20000)), ALONG_HEAD_DIM)


@pytest.fixture(scope="session")
def ours():
    """The committed runs of figure 2a."""
    return study_of(our_runs(), ALONG_HEADS)

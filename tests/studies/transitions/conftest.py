"""Analyses that several tests read: of runs that follow a known law, and of the published transitions."""

import pytest
from transition_runs import runs_of

from shapelaw.studies.transitions.analysis import (
    Options,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    published_transitions,
)


@pytest.fixture(scope="session")
def analysis():
    """Of runs that follow exp(A + B depth), with both methods."""
    return analyse_runs(runs_of(), Options(draws=600))


@pytest.fixture(scope="session")
def refitted():
    """The published line, fitted to the published transitions."""
    return analyse_transitions(check_transitions(published_transitions(), "table 4a"))

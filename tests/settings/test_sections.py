"""The sections that every config has."""

import pytest
from shipped import problems_of


@pytest.mark.parametrize(
    "name", ["../../x", "/etc", "a/b", "..", ".", "", "wiki\n", "A", "a b", "$(touch x)", "*", "ｗiki"]
)
def test_no_name_of_a_corpus_leads_out_of_the_results(name: str) -> None:
    """It is the one value of a config that becomes a path that something is written to."""
    said = problems_of(corpus={"name": name})
    assert (
        f"corpus.name is {name!r}: use lower-case letters, digits and underscores; it names a folder" in said
    )

"""The texts of the true packages, where these are."""

import pytest
from made_packages import DOWNLOADS, read

from shapelaw.corpora.packages import PACKAGED

COUNTS = {  # documents, bytes of text
    "gcide": (107_187, 19_581_852),
    "bible": (1_189, 4_136_262),
    "sotu": (233, 10_760_948),
    "anarchism": (633, 10_329_468),
    "treasury": (151, 11_816_234),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_true_packages(name: str) -> None:
    if not (DOWNLOADS / PACKAGED[name].package.filename).is_file():
        pytest.skip(f"{PACKAGED[name].package.filename} is not downloaded")
    documents = read(name, DOWNLOADS)
    texts = [text for _, _, text in documents]
    assert (len(texts), sum(len(text.encode()) for text in texts)) == COUNTS[name]
    assert len(set(texts)) == len(texts)
    assert all(source.startswith(f"{name}:") for source, _, _ in documents)
    for junk in ("<p", "</", "&amp;", "&quot;", "osisID", "1913 Webster", "\x00", "\ufeff"):
        assert not any(junk in text for text in texts), junk

"""What the corpus job is started with, and when it is started again."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from shapelaw.errors import UserError
from shapelaw.scheduling.texts import (
    GPT2_VOCAB_SIZE,
    gpt2_options,
    measured_paths,
    perplexity_options,
    source_options,
    texts_digest,
    tokenizer_path,
)
from shapelaw.settings.sections import Corpus, Perplexity


def test_the_corpus_section_as_options() -> None:
    corpus = Corpus(sources=["wiki", "folder:books,text_column=body"], test_fraction=0.1, limit_bytes=5000)
    assert source_options(corpus, {2000}) == [
        *("--source", "wiki", "--source", "folder:books,text_column=body"),
        *("--test-fraction", "0.1", "--limit-bytes", "5000"),
    ]


@pytest.mark.parametrize(
    ("sources", "vocab_sizes", "collected"),
    [
        (["wiki"], {2000}, ["wiki"]),
        (["wiki"], {2000, GPT2_VOCAB_SIZE}, ["wiki", "gensim"]),
        (["bible"], {GPT2_VOCAB_SIZE}, ["bible"]),
    ],
)
def test_the_leads_of_wikipedia_are_joined_by_articles_where_they_cannot_fill_the_vocabulary(
    sources: list[str], vocab_sizes: set[int], collected: list[str]
) -> None:
    options = source_options(Corpus(sources=sources, tokenizer_50257="trained"), vocab_sizes)
    assert [after for before, after in pairwise(options) if before == "--source"] == (collected)


def test_where_the_vocabulary_is_gpt2s_it_is_not_trained() -> None:
    corpus, named = Corpus(), Corpus(gpt2_files="my files")
    assert "gensim" not in source_options(corpus, {GPT2_VOCAB_SIZE})
    assert gpt2_options(corpus, GPT2_VOCAB_SIZE) == ["--gpt2"]
    assert gpt2_options(corpus, 2000) == []
    assert gpt2_options(named, GPT2_VOCAB_SIZE) == ["--gpt2-files", "my files"]
    assert gpt2_options(Corpus(tokenizer_50257="trained"), GPT2_VOCAB_SIZE) == []
    assert tokenizer_path("wiki", 2000) == "results/corpora/wiki/V2000/tokenizer.json"


def test_another_file_another_size_or_another_time_is_another_corpus(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.txt"
    file.parent.mkdir()
    file.write_text("one")
    corpus = Corpus(sources=["wiki", f"folder:{tmp_path},text_column=body"])
    seen = [texts_digest(corpus)]
    assert texts_digest(corpus) == seen[0]
    file.write_text("longer")
    seen.append(texts_digest(corpus))
    os.utime(file, (0, 0))
    seen.append(texts_digest(corpus))
    (tmp_path / "b.txt").write_text("one")
    seen.append(texts_digest(corpus))
    assert len(set(seen)) == 4
    assert texts_digest(Corpus(sources=["wiki"])) == texts_digest(Corpus(sources=["bible"]))  # no folder


def test_a_folder_that_went_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"gone, a text of the corpus, went away; put it back, or correct corpus\.s"
    ):
        texts_digest(Corpus(sources=[f"folder:{tmp_path}/gone"]))


def test_perplexity_is_measured_where_studies_names_what_is_to_be_measured() -> None:
    asked = Perplexity(of=["mine", "other"], documents=7, source="json")
    assert perplexity_options(asked, Corpus()) == ["--most", "7", "--of-source", "json"]
    assert perplexity_options(Perplexity(), Corpus(gpt2_files="f")) == ["--most", "100", "--gpt2-files", "f"]
    assert measured_paths(asked, ["a", "b"]) == ["results/perplexity/a.json", "results/perplexity/b.json"]
    with pytest.raises(UserError, match=r"has mine, other, and studies has none .* studies='\[mine\]'"):
        measured_paths(asked, [])
    with pytest.raises(UserError, match="No perplexity is asked for; name a study or grid of decoders"):
        measured_paths(Perplexity(), [])

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel

from shapelaw.corpora.pre_tokens import END, PreTokenizer, mark_ends

# Every white space, what looks like it, and what contractions and numbers are made of.
DELICATE = st.text(
    st.sampled_from(
        "\t\n\v\f\r  \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\x1c\x1f\u180e\u200b\ufeff"
        "abé中1²'’.!_strevldmSTLL🦊𝐀\u0301"
    )
)


def library_pre_tokens(text: str) -> list[bytes]:
    cuts = ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [text[start:stop].encode() for _, (start, stop) in cuts]


def our_pre_tokens(texts: list[str]) -> list[bytes]:
    content = mark_ends(texts)
    starts = [*PreTokenizer()(content).tolist(), len(content)]
    return [content[start:stop] for start, stop in pairwise(starts)]


@given(texts=st.lists(st.text() | DELICATE, max_size=5))
def test_any_texts_are_cut_as_the_library_cuts_them(texts: list[str]) -> None:
    assert our_pre_tokens(texts) == [END, *(p for text in texts for p in [*library_pre_tokens(text), END])]


@pytest.mark.parametrize(
    ("text", "pre_tokens"),
    [
        ("I'll say it's 2's.", ["I", "'ll", " say", " it", "'s", " 2", "'s", "."]),
        ("he's't're've'm'll'd'x", ["he", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "x"]),
        (" 's ''s\n's'll'sand 'S", [" '", "s", " ''", "s", "\n", "'s", "'ll", "'s", "and", " '", "S"]),
        ("a  b \n\n c\u3000\u3000d e ", ["a", " ", " b", " \n\n", " c", "\u3000", "\u3000", "d", " e", " "]),
        ("x²3½ é中", ["x", "²3½", " é中"]),
    ],
)
def test_pre_tokens_of_small_texts(text: str, pre_tokens: list[str]) -> None:
    expected = [pre_token.encode() for pre_token in pre_tokens]
    assert our_pre_tokens([text]) == [END, *expected, END]
    assert library_pre_tokens(text) == expected


def test_every_character_is_of_the_kind_that_the_library_takes_it_for() -> None:
    unassigned = range(0x40000, 0xE0000)  # whole planes, and surrogates are no characters
    everything = [chr(c) for c in range(0xF0000) if c not in unassigned and not 0xD800 <= c < 0xE000]
    for text in ("".join(everything), ".".join(everything)):
        assert our_pre_tokens([text]) == [END, *library_pre_tokens(text), END]


def test_what_one_call_learns_of_characters_serves_the_next() -> None:
    pre_tokenizer = PreTokenizer()
    for text in ("жук 1", "жук, ж٣ 中", "中 жук"):
        starts = pre_tokenizer(mark_ends([text]))
        assert np.array_equal(starts, PreTokenizer()(mark_ends([text])))


def test_no_text_is_one_end() -> None:
    assert our_pre_tokens([]) == [END]
    assert our_pre_tokens(["", ""]) == [END, END, END]

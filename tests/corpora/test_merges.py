from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from shapelaw.corpora.merges import Merges
from shapelaw.corpora.token_store import token_dtype
from shapelaw.corpora.tokenizer import END_OF_TEXT


def bpe(merges: Sequence[tuple[str, str]], unused: int = 0) -> Tokenizer:
    """Byte-level BPE with these merges; `unused` ids lie below those of the merged tokens."""
    tokens = dict.fromkeys([*sorted(ByteLevel.alphabet()), END_OF_TEXT, *map(str, range(10, 10 + unused))])
    tokens.update(dict.fromkeys(left + right for left, right in merges))
    return Tokenizer(BPE({token: i for i, token in enumerate(tokens)}, list(merges)))


def check(tokenizer: Tokenizer, pre_tokens: list[str]) -> None:
    """Our ids of these pre-tokens are the library's; anything may be a pre-token."""
    dtype = token_dtype(tokenizer.get_vocab_size())
    ours = Merges(tokenizer)([pre_token.encode() for pre_token in pre_tokens])
    letters = ByteLevel(add_prefix_space=False, use_regex=False)
    for pre_token, ids in zip(pre_tokens, ours, strict=True):
        theirs = tokenizer.model.tokenize(letters.pre_tokenize_str(pre_token)[0][0])
        assert np.frombuffer(ids, dtype).tolist() == [token.id for token in theirs], pre_token


@st.composite
def merge_lists(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Merges over two letters, of any rank: those of a token may come before those of its parts."""
    tokens = ["a", "b"]
    merges: dict[tuple[str, str], None] = {}
    for _ in range(draw(st.integers(0, 12))):
        pair = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        merges[pair] = None
        tokens.append("".join(pair))
    return draw(st.permutations(list(merges)))


@given(merges=merge_lists(), pre_tokens=st.lists(st.text("ab", min_size=1, max_size=40), max_size=6))
@settings(deadline=None)
def test_any_merges_in_any_order_are_applied_as_the_library_applies_them(
    merges: list[tuple[str, str]], pre_tokens: list[str]
) -> None:
    check(bpe(merges), pre_tokens)


@given(pre_tokens=st.lists(st.text(min_size=1) | st.text("aeinrst ", min_size=1), max_size=8))
def test_trained_merges_are_applied_as_the_library_applies_them(
    tokenizer: Tokenizer, pre_tokens: list[str]
) -> None:
    check(tokenizer, pre_tokens)


@pytest.mark.parametrize("length", range(1, 12))
def test_of_equal_pairs_the_leftmost_merges_first(length: int) -> None:
    check(bpe([("a", "a"), ("aa", "a")]), ["a" * length, "ba" * length, "b" + "a" * length])


def test_ids_above_65535_are_wide() -> None:
    tokenizer = bpe([("a", "b"), ("ab", "ab")], unused=70_000)
    assert np.frombuffer(Merges(tokenizer)([b"ababab"])[0], "<u4").tolist() == [70_258, 70_257]
    check(tokenizer, ["ababab", "ba", "é"])

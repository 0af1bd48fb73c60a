"""The test loss over fixed windows, and the loss of documents with stride 1."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.functional import cross_entropy

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.making import make_shape
from shapelaw.training import evaluation
from shapelaw.training.hardware import Ranks

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def windows(stores: tuple[TokenStore, TokenStore]) -> evaluation.EvaluationSet:
    return evaluation.load_test_set(stores[1], context_length=16, sequences=11)


@pytest.fixture
def decoder() -> Decoder:
    model = Decoder(make_shape(1, 8, 2, 257, 16), dropout=0.5)
    initialise(model, 0)
    return model


def test_windows_are_spread_over_the_store(
    stores: tuple[TokenStore, TokenStore], windows: evaluation.EvaluationSet
) -> None:
    store = stores[1]
    assert windows.windows.shape == (11, 17)
    assert windows.tokens == 11 * 16
    last = 10 * len(store.tokens) // 11
    assert windows.windows[0].tolist() == store.tokens[:17].tolist()
    assert windows.windows[10].tolist() == store.tokens[last : last + 17].tolist()
    assert windows.bytes == (windows.windows[:, 1:] != 256).sum()  # every token but end-of-text is one byte
    with pytest.raises(UserError, match="test_sequences is 1,000,000"):
        evaluation.load_test_set(store, 16, 1_000_000)


def test_it_is_the_mean_cross_entropy_of_every_target_without_dropout(
    windows: evaluation.EvaluationSet, decoder: Decoder
) -> None:
    ids = torch.from_numpy(windows.windows)
    with torch.no_grad():
        logits = decoder.eval().logits(ids[:, :-1])
    expected = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    decoder.train()
    for batch in (1, 4, 11, 50):  # the last of four has three
        assert evaluation.evaluate(decoder, windows, batch, Ranks(0, 1, CPU)) == pytest.approx(
            expected, rel=1e-6
        )
    assert decoder.training


def test_ranks_take_every_other_batch(
    windows: evaluation.EvaluationSet, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums, which `all_reduce` adds up, make the whole."""
    monkeypatch.setattr("torch.distributed.all_reduce", lambda total: None)
    shares = [evaluation.evaluate(decoder, windows, 2, Ranks(rank, 3, CPU)) for rank in range(3)]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(evaluation.evaluate(decoder, windows, 2, Ranks(0, 1, CPU)), rel=1e-9)


def test_bits_per_byte_by_hand() -> None:
    """Two tokens of 3 bits each stand for 4 bytes."""
    windows = evaluation.EvaluationSet(np.zeros((1, 3), np.int64), tokens=2, bytes=4)
    assert evaluation.bits_per_byte(3 * math.log(2), windows) == pytest.approx(1.5)


CONTEXT, VOCABULARY = 12, 40


def ours() -> evaluation.Scores:
    model = Decoder(make_shape(2, 16, 2, VOCABULARY, CONTEXT)).eval()
    initialise(model, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # so that tokens and positions matter
    return model.logits


def slow_loop(scores: evaluation.Scores, ids: Tensor, context: int) -> list[float]:
    """The definition: token t from the tokens max(0, t - N) to t - 1, a pass for each."""
    found = []
    with torch.no_grad():
        for t in range(1, len(ids)):
            before = ids[max(0, t - context) : t]
            found.append(float(F.cross_entropy(scores(before[None], len(before))[0, -1:], ids[t : t + 1])))
    return found


def test_it_is_the_slow_loop_s() -> None:
    """As it is for a model of transformers (tests/scripts/test_perplexity.py)."""
    scores = ours()
    for length in (2, 3, CONTEXT, CONTEXT + 1, CONTEXT + 2, 30):
        ids = torch.randint(VOCABULARY, (length,), generator=torch.Generator().manual_seed(length))
        expected = slow_loop(scores, ids, CONTEXT)
        for batch in (1, 7, 100):
            found = evaluation.document_nats(scores, ids, CONTEXT, batch)
            assert found.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_a_shorter_context_sees_no_further_back() -> None:
    scores = ours()
    ids = torch.randint(VOCABULARY, (30,), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[5] = (ids[5] + 1) % VOCABULARY
    one, other = (evaluation.document_nats(scores, given, 4, 8) for given in (ids, changed))
    differs = (one - other).abs() > 1e-6
    assert differs.nonzero().flatten().tolist() == [4, 5, 6, 7, 8]  # the changed token and the four after it


def test_long_documents_times_a_large_vocabulary_are_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loss, and never more scores at once than allowed, in the first window as in the later ones."""
    ids = torch.randint(VOCABULARY, (30,), generator=torch.Generator().manual_seed(2))
    scores, asked = ours(), []

    def counted(ids_BT: Tensor, last: int) -> Tensor:
        asked.append(len(ids_BT) * last)
        return scores(ids_BT, last)

    whole = evaluation.document_nats(counted, ids, CONTEXT, 100)
    assert max(asked) == 30 - CONTEXT - 1
    asked.clear()
    monkeypatch.setattr(evaluation, "_MOST_SCORES", 5 * VOCABULARY)
    sliced = evaluation.document_nats(counted, ids, CONTEXT, 100)
    assert max(asked) == 5
    assert sliced.tolist() == pytest.approx(whole.tolist(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", ["Bert", "RoFormer"])
@pytest.mark.parametrize("decoder", [False, True])
def test_an_encoder_sees_later_tokens_and_its_decoder_does_not(name: str, decoder: bool) -> None:
    """Also with small random weights, where a neighbour changes little, and from two tokens on."""
    transformers = pytest.importorskip("transformers")
    kind = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = getattr(transformers, f"{name}Config")(vocab_size=VOCABULARY, is_decoder=decoder, **kind)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for length in (2, 3, 30):
        ids = torch.randint(5, VOCABULARY - 1, (length,), generator=torch.Generator().manual_seed(length))
        assert (
            evaluation.sees_later_tokens(lambda ids, last: model(ids).logits[:, -last:], ids) is not decoder
        )


def test_documents_by_hand() -> None:
    found = evaluation.summarise(
        [evaluation.DocumentLoss(10.0, 4, 2, 20), evaluation.DocumentLoss(2.0, 2, 1, 4)]
    )
    assert (found.documents, found.tokens, found.gpt2_tokens, found.bytes) == (2, 6, 3, 24)
    assert found.perplexity.value == pytest.approx(math.exp(12 / 6))
    assert found.gpt2_perplexity is not None
    assert found.gpt2_perplexity.value == pytest.approx(math.exp(12 / 3))
    assert found.bits_per_byte.value == pytest.approx(12 / math.log(2) / 24)
    uncounted = evaluation.summarise(
        [evaluation.DocumentLoss(10.0, 4, 2, 20), evaluation.DocumentLoss(2.0, 2, None, 4)]
    )
    assert (uncounted.gpt2_perplexity, uncounted.gpt2_tokens) == (None, None)
    alone = evaluation.summarise([evaluation.DocumentLoss(10.0, 4, 2, 20)])  # without an interval
    assert alone.perplexity == evaluation.Rate(pytest.approx(math.exp(2.5)), None, None)


def test_the_interval_is_the_standard_error_of_documents_of_equal_length() -> None:
    nats = np.random.default_rng(0).normal(100, 10, 400)
    found = evaluation.summarise([evaluation.DocumentLoss(one, 50, 40, 200) for one in nats])
    assert found.bits_per_byte.low is not None
    assert found.bits_per_byte.high is not None
    half = (found.bits_per_byte.high - found.bits_per_byte.low) / 2
    assert half == pytest.approx(nats.std() / math.sqrt(400) / 200 / math.log(2), rel=0.06)
    assert found.bits_per_byte.low < found.bits_per_byte.value < found.bits_per_byte.high
    assert found.perplexity.low == pytest.approx(math.exp(found.bits_per_byte.low * math.log(2) * 200 / 50))

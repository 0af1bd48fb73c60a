"""The batched loss of a document against a plain loop, one token at a time."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.shapes import make_shape
from shapelaw.training import stride_one
from shapelaw.training.stride_one import Scores, document_nats, scores_of, sees_later_tokens

CONTEXT, VOCABULARY = 12, 40


def ours() -> Scores:
    model = Decoder(make_shape(2, 16, 2, VOCABULARY, CONTEXT)).eval()
    initialise(model, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # so that tokens and positions matter
    return scores_of(model)


def transformers_gpt2() -> Scores:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=16, n_layer=2, n_head=2, initializer_range=0.4
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    return lambda ids, last: model(ids, logits_to_keep=last).logits


def slow_loop(scores: Scores, ids: Tensor, context: int) -> list[float]:
    """The definition: token t from the tokens max(0, t - N) to t - 1, a pass for each."""
    found = []
    with torch.no_grad():
        for t in range(1, len(ids)):
            before = ids[max(0, t - context) : t]
            found.append(float(F.cross_entropy(scores(before[None], len(before))[0, -1:], ids[t : t + 1])))
    return found


@pytest.mark.parametrize("model", [ours, transformers_gpt2])
@pytest.mark.parametrize("length", [2, 3, CONTEXT, CONTEXT + 1, CONTEXT + 2, 50])
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_it_is_the_slow_loop_s(model, length: int, batch: int) -> None:  # type: ignore[no-untyped-def]
    scores = model()
    ids = torch.randint(VOCABULARY, (length,), generator=torch.Generator().manual_seed(length))
    found = document_nats(scores, ids, CONTEXT, batch)
    assert found.shape == (length - 1,)
    assert found.tolist() == pytest.approx(slow_loop(scores, ids, CONTEXT), rel=1e-4, abs=1e-5)


def test_a_shorter_context_sees_no_further_back() -> None:
    scores = ours()
    ids = torch.randint(VOCABULARY, (30,), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[5] = (ids[5] + 1) % VOCABULARY
    one, other = (document_nats(scores, given, 4, 8) for given in (ids, changed))
    differs = (one - other).abs() > 1e-6
    assert differs.nonzero().flatten().tolist() == [4, 5, 6, 7, 8]  # the changed token and the four after it


def test_scores_that_are_uniform_cost_the_vocabulary_s_logarithm() -> None:
    found = document_nats(lambda ids, last: torch.zeros(len(ids), last, VOCABULARY), torch.arange(30), 4, 8)
    assert found.tolist() == pytest.approx([math.log(VOCABULARY)] * 29)


def test_long_documents_times_a_large_vocabulary_are_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loss, and never more scores at once than allowed, in the first window as in the later ones."""
    ids = torch.randint(VOCABULARY, (30,), generator=torch.Generator().manual_seed(2))
    scores, asked = ours(), []

    def counted(ids_BT: Tensor, last: int) -> Tensor:
        asked.append(len(ids_BT) * last)
        return scores(ids_BT, last)

    whole = document_nats(counted, ids, CONTEXT, 100)
    assert max(asked) == 30 - CONTEXT - 1
    asked.clear()
    monkeypatch.setattr(stride_one, "_MOST_SCORES", 5 * VOCABULARY)
    sliced = document_nats(counted, ids, CONTEXT, 100)
    assert max(asked) == 5
    assert sliced.tolist() == pytest.approx(whole.tolist(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", ["Bert", "Roberta", "Electra", "RoFormer", "MegatronBert"])
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
        assert sees_later_tokens(lambda ids, last: model(ids).logits[:, -last:], ids) is not decoder


@pytest.mark.parametrize("model", [ours, transformers_gpt2])
def test_a_decoder_sees_no_later_tokens(model) -> None:  # type: ignore[no-untyped-def]
    for length in (2, CONTEXT):
        assert not sees_later_tokens(model(), torch.arange(length))

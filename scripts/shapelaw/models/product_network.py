"""Many independent product networks of one shape as one computation (Navon 2021, section 3.1 and comment 3.1).

Suffixes: P models, B examples, i inputs, d width, k factors of a layer, o outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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
        shapes[f"layer{place}"] = (degree, d, d)
        shapes[f"layer{place}_bias"] = (degree, d)
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
            parameters[name] = torch.full(shape, float(shape[0] > 1))
        elif name == "shares":
            parameters[name] = torch.full(shape, math.log(n.initial_share / (1 - n.initial_share)))
        elif name.endswith("bias"):
            parameters[name] = torch.zeros(shape)
        else:
            parameters[name] = torch.randn(shape, generator=generator) / math.sqrt(shape[-2])
    return parameters


def forward(p: Mapping[str, Tensor], n: ProductShape, x_PBi: Tensor) -> Tensor:
    """Outputs [P, B, o] for inputs [P, B, i]."""
    h_PBd = torch.baddbmm(p["embedding_bias"][:, None], x_PBi, p["embedding"])
    for place, degree in enumerate(n.degrees):
        u_PBd = _norm(h_PBd)
        w_Pkdd, b_Pkd = p[f"layer{place}"], p[f"layer{place}_bias"]
        factors = [torch.baddbmm(b_Pkd[:, k, None], u_PBd, w_Pkdd[:, k]) for k in range(degree)]
        if n.mixture:
            share_P11 = torch.sigmoid(p["shares"][:, place])[:, None, None]
            factors[-1] = 1 - share_P11 + share_P11 * factors[-1]
        product_PBd = factors[0]
        for factor_PBd in factors[1:]:
            product_PBd = product_PBd * factor_PBd
        h_PBd = h_PBd + _norm(product_PBd) / math.sqrt(n.depth)
    return torch.baddbmm(p["bias"][:, None], _norm(h_PBd), p["read_out"])


def _norm(x_PBd: Tensor) -> Tensor:
    """Each example's vector, scaled to mean square 1."""
    return x_PBd * torch.rsqrt(x_PBd.square().mean(-1, keepdim=True) + _EPSILON)


def mean_degrees(p: Mapping[str, Tensor], n: ProductShape) -> Tensor:
    """The mean degree of each layer, [P, depth]: learned by a mixture, fixed otherwise."""
    degrees = torch.tensor(n.degrees, dtype=torch.float32)
    if not n.mixture:
        return degrees.expand(len(p["bias"]), -1)
    return degrees - 1 + torch.sigmoid(p["shares"].detach().cpu())

"""Many independent product networks of one shape as one computation (Navon 2021, section 3.1 and comment 3.1).

Suffixes: P models, B examples, i inputs, d width, k factors of a layer, o outputs, N tokens and S units of a Mixer.
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
    d, N = n.width, n.mixer_tokens
    shapes: dict[str, tuple[int, ...]] = {"embedding": (n.inputs // max(N, 1), d), "embedding_bias": (d,)}
    for place, degree in enumerate(n.degrees):
        if N:
            shapes[f"layer{place}_up"], shapes[f"layer{place}_down"] = (N, n.mixer_units), (n.mixer_units, N)
            shapes[f"layer{place}_bias"], shapes[f"layer{place}"] = (n.mixer_units,), (d, d)
            continue
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
    if n.mixer_tokens:
        x_PBNi = x_PBi.view(*x_PBi.shape[:2], n.mixer_tokens, -1)
        h = x_PBNi @ p["embedding"][:, None] + p["embedding_bias"][:, None, None]
    else:
        h = torch.baddbmm(p["embedding_bias"][:, None], x_PBi, p["embedding"])
    layer = _mixed if n.mixer_tokens else _multiplied
    for place in range(n.depth):
        found = activation(norm(layer(p, n, place, norm(h))))
        h = h + found / math.sqrt(n.depth) if n.residual else found
    h_PBd = norm(h).mean(2) if n.mixer_tokens else norm(h)
    return torch.baddbmm(p["bias"][:, None], h_PBd, p["read_out"])


def _multiplied(p: Mapping[str, Tensor], n: ProductShape, place: int, u_PBd: Tensor) -> Tensor:
    """The sum over the heads of a layer's products."""
    w_Pkdd, b_Pkd, degree = p[f"layer{place}"], p[f"layer{place}_bias"], n.degrees[place]
    products = []
    for head in range(0, n.heads * degree, degree):
        factors = [torch.baddbmm(b_Pkd[:, k, None], u_PBd, w_Pkdd[:, k]) for k in range(head, head + degree)]
        if n.mixture:
            share_P11 = torch.sigmoid(p["shares"][:, place])[:, None, None]
            factors[-1] = 1 - share_P11 + share_P11 * factors[-1]
        products.append(math.prod(factors[1:], start=factors[0]))
    return sum(products[1:], start=products[0])


def _mixed(p: Mapping[str, Tensor], _: ProductShape, place: int, u_PBNd: Tensor) -> Tensor:
    """A Mixer's layer: its MLP over tokens, with squares for activations, and its map of channels."""
    up_PNS, down_PSN, w_Pdd = (p[f"layer{place}{part}"] for part in ("_up", "_down", ""))
    bias_PS = p[f"layer{place}_bias"]
    hidden_PBdS = (u_PBNd.mT @ up_PNS[:, None] + bias_PS[:, None, None]).square()
    return (hidden_PBdS @ down_PSN[:, None]).mT @ w_Pdd[:, None]


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

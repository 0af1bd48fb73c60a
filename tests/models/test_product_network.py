"""Packed product networks against the same network written plainly."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm as normal

from shapelaw.models.product_network import forward, initial_parameters, mean_degrees
from shapelaw.specs.degrees import ProductShape

networks = st.builds(
    ProductShape,
    degrees=st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple),
    width=st.integers(1, 6),
    inputs=st.integers(1, 6),
    outputs=st.integers(1, 3),
    mixture=st.booleans(),
    activation=st.sampled_from(["none", "relu", "gelu"]),
    residual=st.booleans(),
    heads=st.integers(1, 2),
)

mixers = st.builds(
    ProductShape,
    degrees=st.integers(1, 3).map(lambda depth: (2,) * depth),
    width=st.sampled_from([2, 4, 6]),
    inputs=st.sampled_from([4, 8]),
    outputs=st.integers(1, 3),
    mixer_tokens=st.sampled_from([1, 2, 4]),
)


def norm(x: np.ndarray) -> np.ndarray:
    """A vector with mean square 1."""
    return x / np.sqrt((x**2).mean() + 1e-6)


def plain(p: dict[str, torch.Tensor], n: ProductShape, x: np.ndarray) -> np.ndarray:
    """One network at one input, as its docstring says."""
    w = {name: value.numpy() for name, value in p.items()}
    h = x @ w["embedding"] + w["embedding_bias"]
    activation = {"none": lambda x: x, "relu": lambda x: x.clip(min=0), "gelu": lambda x: x * normal.cdf(x)}
    for place, degree in enumerate(n.degrees):
        total = np.zeros(n.width)
        for head in range(n.heads):
            product = np.ones(n.width)
            for k in range(degree):
                row = head * degree + k
                factor = norm(h) @ w[f"layer{place}"][row] + w[f"layer{place}_bias"][row]
                if n.mixture and k == degree - 1:
                    share = 1 / (1 + np.exp(-w["shares"][place]))
                    factor = 1 - share + share * factor
                product = product * factor
            total = total + product
        layer = activation[n.activation](norm(total))
        h = h + layer / np.sqrt(n.depth) if n.residual else layer
    return norm(h) @ w["read_out"] + w["bias"]


def plain_mixer(p: dict[str, torch.Tensor], n: ProductShape, x: np.ndarray) -> np.ndarray:
    """One Mixer at one input, as its docstring says."""
    w = {name: value.numpy() for name, value in p.items()}
    h = np.array([part @ w["embedding"] + w["embedding_bias"] for part in np.split(x, n.mixer_tokens)])
    for place in range(n.depth):
        u = np.array([norm(token) for token in h])
        hidden = (w[f"layer{place}_up"].T @ u + w[f"layer{place}_bias"][:, None]) ** 2
        mixed = w[f"layer{place}_down"].T @ hidden @ w[f"layer{place}"]
        h = h + np.array([norm(token) for token in mixed]) / np.sqrt(n.depth)
    return np.mean([norm(token) for token in h], axis=0) @ w["read_out"] + w["bias"]


@given(networks | mixers, st.integers(0, 100))
def test_a_pack_computes_each_network_as_written_with_the_counted_parameters(
    n: ProductShape, seed: int
) -> None:
    every = [
        {name: value.double() + 0.1 for name, value in initial_parameters(n, seed + model).items()}
        for model in range(2)
    ]
    packed = {name: torch.stack([p[name] for p in every]) for name in every[0]}
    sizes = {name: value[0].numel() for name, value in packed.items()}
    layers = (size for name, size in sizes.items() if name.startswith(("layer", "shares")))
    assert (sum(sizes.values()), sum(layers)) == (n.total_params, n.layer_params)
    x = np.random.default_rng(seed).standard_normal((2, 3, n.inputs))
    found = forward(packed, n, torch.from_numpy(x)).numpy()
    of_one = plain_mixer if n.mixer_tokens else plain
    for model, p in enumerate(every):
        for example in range(3):
            np.testing.assert_allclose(
                found[model, example], of_one(p, n, x[model, example]), rtol=1e-9, atol=1e-9
            )


def test_batch_normalization_is_over_the_examples_of_each_model() -> None:
    """Scaling an entry's weights, or moving its bias, changes nothing; other examples do."""
    n = ProductShape((2, 2), 4, 3, 1, activation="relu", residual=False, normalization="batch")
    p = {name: torch.stack([value, value + 0.1]).double() for name, value in initial_parameters(n, 0).items()}
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 20, 3)))
    found = forward(p, n, x)
    scaled = {**p, "embedding": 3 * p["embedding"], "embedding_bias": p["embedding_bias"] + 1}
    torch.testing.assert_close(forward(scaled, n, x), found, rtol=1e-4, atol=1e-4)
    alone = {name: value[1:] for name, value in p.items()}
    torch.testing.assert_close(forward(alone, n, x[1:]), found[1:])
    assert not torch.allclose(forward(p, n, x[:, :10]), found[:, :10], atol=1e-2)


def test_a_mixture_begins_half_way_and_is_between_its_degrees() -> None:
    n = ProductShape((3, 3), 4, 4, 1, mixture=True)
    p = {name: value[None] for name, value in initial_parameters(n, 0).items()}
    assert mean_degrees(p, n).tolist() == [[2.5, 2.5]]
    high = ProductShape((3, 3), 4, 4, 1, mixture=True, initial_share=0.9)
    torch.testing.assert_close(
        mean_degrees({name: value[None] for name, value in initial_parameters(high, 0).items()}, high),
        torch.full((1, 2), 2.9),
    )
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 5, 4))).float()
    two = ProductShape((2, 2), 4, 4, 1)
    without = {name: value for name, value in p.items() if name != "shares"}
    for place in range(2):
        without[f"layer{place}"] = without[f"layer{place}"][:, :2]
        without[f"layer{place}_bias"] = without[f"layer{place}_bias"][:, :2]
    p["shares"] = torch.full((1, 2), -50.0)
    torch.testing.assert_close(forward(p, n, x), forward(without, two, x))
    p["shares"] = torch.full((1, 2), 50.0)
    whole = {name: value for name, value in p.items() if name != "shares"}
    torch.testing.assert_close(forward(p, n, x), forward(whole, ProductShape((3, 3), 4, 4, 1), x))


def test_every_matrix_has_a_gradient_and_equal_budgets_have_equal_layers() -> None:
    networks = [ProductShape((degree,) * (12 // degree), 16, 8, 1) for degree in (1, 2, 3, 4)]
    assert len({n.total_params for n in networks}) == 1
    for n in networks:
        p = {name: value[None].requires_grad_() for name, value in initial_parameters(n, 0).items()}
        x = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 64, 8))).float()
        forward(p, n, x).square().mean().backward()
        for name, value in p.items():
            assert value.grad is not None
            if name.startswith("layer") and value.ndim == 4:
                assert (value.grad.flatten(2).norm(dim=-1) > 1e-4).all(), name

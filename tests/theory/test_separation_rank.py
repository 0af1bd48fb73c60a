"""Exact separation ranks: the arithmetic against plain integers, known values, closed forms, and what is refused."""

import csv
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_networks import plain_attention, plain_product

from shapelaw.errors import UserError
from shapelaw.theory import attention_layers, degree_attention
from shapelaw.theory.attention_layers import Layer, Output, outputs, random_maps
from shapelaw.theory.degree_attention import DegreeAttention
from shapelaw.theory.finite_field import PRIMES, add, matmul, random_residues, rank, reduce
from shapelaw.theory.graded_dimensions import multiset
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.product_network import ProductNetwork
from shapelaw.theory.separation_rank import estimate, plan, separation_rank, template_counts, templates_within

LARGE, SMALL = PRIMES


def measured(network, **options):
    found = separation_rank(network, **options)
    assert found.exact
    assert found.rank <= found.upper_bound
    assert found.failure_probability < 1e-12
    return found.rank


@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from(PRIMES))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_arithmetic_is_exact_at_the_largest_numbers(inner, seed, prime):
    rng = np.random.default_rng(seed)
    left, right = (random_residues(rng, shape, prime) for shape in ((2, inner, 3), (inner, 2, 3)))
    left[0], right[:, 0] = prime - 1, prime - 1
    found = matmul(left, right, prime)
    for i, j, t in np.ndindex(2, 2, 3):
        plain = sum(int(left[i, s, t]) * int(right[s, j, t]) for s in range(inner))
        assert int(found[i, j, t]) == plain % prime
    assert (add(left, left, prime) == reduce(left * np.uint64(2), prime)).all()
    assert left.max() == prime - 1  # add leaves its arguments alone


def test_primes_are_prime():
    for prime in PRIMES:
        assert pow(2, prime - 1, prime) == 1
        assert all(prime % small for small in range(2, math.isqrt(prime) + 1))


@pytest.mark.parametrize(("rows", "columns", "inner"), [(7, 9, 4), (5, 5, 5), (3, 8, 0)])
def test_the_rank_of_a_product_is_its_inner_size(rows, columns, inner):
    rng = np.random.default_rng(0)
    matrix = np.zeros((rows, columns), dtype=np.uint64)
    for _ in range(inner):
        column, row = (random_residues(rng, shape, SMALL) for shape in ((rows, 1), (1, columns)))
        matrix = add(matrix, reduce(column * row, SMALL), SMALL)
    assert rank(matrix, SMALL) == inner
    assert rank(np.zeros((0, 3), dtype=np.uint64), SMALL) == 0


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("depth", "heads", "inner"), [(1, 2, 3), (2, 1, 3), (2, 2, 1), (3, 1, 2), (4, 1, 3)])
@pytest.mark.parametrize("split", [(), (1, 2)])
def test_grids_of_attention_are_the_papers_equation(residual, depth, heads, inner, split):
    d, N = 3, 4
    rng = np.random.default_rng([depth, heads])
    layers = [Layer(*(random_maps(rng, heads, d, inner, LARGE) for _ in range(2))) for _ in range(depth)]
    first, second = (random_residues(rng, (N, d, count), LARGE) for count in (2, 3))
    for token in range(N):
        if token not in split:
            (second if token < 2 else first)[token] = 0
    for position in (0, 1):
        output = Output(position, 2, residual)
        found = outputs(first, second, split, layers, output, LARGE)
        for row, column in np.ndindex(2, 3):
            tokens = (first[..., row] + second[..., column]).astype(object) % LARGE
            plain = plain_attention([[int(x) for x in token] for token in tokens], layers, residual, LARGE)
            assert int(found[row, column]) == plain[position][2]


@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize(("degree", "depth"), [(1, 2), (2, 1), (3, 2), (2, 3), (5, 1)])
def test_grids_of_product_networks_are_their_definition(mixing, degree, depth):
    w, N = 3, 4
    rng = np.random.default_rng([degree, depth])
    network = ProductNetwork(degree, depth, w, N, mixing, position=2, entry=3)
    inputs = [w if mixing else w * N, *[w] * (depth - 1)]
    weights = [
        tuple(random_residues(rng, (degree, w, size), SMALL) for _ in range(1 + mixing)) for size in inputs
    ]
    first, second = (random_residues(rng, (N, w, count), SMALL) for count in (2, 3))
    first[2:], second[:2] = 0, 0
    found = network.outputs(first, second, weights, SMALL)
    for row, column in np.ndindex(2, 3):
        tokens = [[int(x) for x in token] for token in first[..., row] + second[..., column]]
        whole = tokens if mixing else [[x for token in tokens for x in token]]
        assert int(found[row, column]) == plain_product(whole, weights, SMALL)[1 if mixing else 0][2]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("residual", [False, True])
def test_one_layer_has_rank_d_plus_1(width, residual):
    for heads in {1, width}:
        for tokens in (2, 6):
            assert measured(LinearAttention(1, width, tokens, heads, residual=residual)) == width + 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"depth": 2, "width": 2, "tokens": 2}, 15),
        ({"depth": 2, "width": 2, "tokens": 4}, 18),
        ({"depth": 2, "width": 2, "tokens": 8}, 18),
        ({"depth": 2, "width": 2, "tokens": 4, "position": 4, "entry": 2}, 18),
        ({"depth": 2, "width": 2, "tokens": 4, "residual": True}, 18),
        ({"depth": 2, "width": 2, "tokens": 4, "heads": 2}, 17),
        ({"depth": 3, "width": 2, "tokens": 4}, 232),
        ({"depth": 3, "width": 2, "tokens": 2}, 105),
        ({"depth": 3, "width": 2, "tokens": 4, "heads": 2, "residual": True}, 215),
        ({"depth": 2, "width": 4, "tokens": 8, "attention_dim": 1}, 8),
        ({"depth": 2, "width": 4, "tokens": 8, "heads": 4, "attention_dim": 4}, 110),
    ],
)
def test_known_ranks(options, expected):
    assert measured(LinearAttention(**options)) == expected


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_two_layers_have_a_closed_form(width):
    """Of degree 0 to 4 in B: with one head all functions there are, with d heads of dimension 1 fewer."""
    d, n = width, width * (width + 1) // 2
    assert measured(LinearAttention(2, d, 2 * d)) == 1 + n + n * (n + 1) // 2 + d * n + d if d > 1 else 5
    narrow = 1 + n + min(multiset(n, 2), d * n - math.comb(d, 2)) + min(d * n, multiset(d, 3) + d**2) + d
    assert measured(LinearAttention(2, d, 2 * d, heads=d)) == narrow


@pytest.mark.parametrize(("depth", "width"), [(1, 6), (2, 2), (2, 3), (2, 4), (2, 6), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("residual", [False, True])
def test_two_tokens_have_a_closed_form(depth, width, residual):
    mixings = (3**depth - 1) // 2
    found = measured(LinearAttention(depth, width, 2, residual=residual))
    assert found == math.comb(width + mixings, width)


@pytest.mark.parametrize("half", [1, 2, 3])
def test_two_heads_cost_a_triangular_number(half):
    one = measured(LinearAttention(2, 2 * half, 4 * half))
    assert measured(LinearAttention(2, 2 * half, 4 * half, heads=2)) == one - half * (half + 1) // 2


@pytest.mark.parametrize("rank_of_embedding", [1, 2])
def test_an_embedding_of_rank_r_gives_what_width_r_gives(rank_of_embedding):
    narrow = measured(LinearAttention(2, rank_of_embedding, 4))
    for width in (3, 6):
        assert measured(LinearAttention(2, width, 4, embedding_rank=rank_of_embedding)) == narrow


def test_positions_add_their_rank_to_a_narrow_embedding_and_nothing_to_a_full_one():
    assert measured(LinearAttention(2, 2, 4, positional_rank=2)) == 18
    ranks = [
        measured(LinearAttention(2, 4, 4, embedding_rank=2, positional_rank=places)) for places in (0, 1, 2)
    ]
    assert ranks == [18, 39, 54]


@given(st.permutations(range(1, 7)), st.integers(1, 6), st.booleans(), st.integers(1, 2))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_proposition_1_any_balanced_partition(places, position, residual, depth):
    network = LinearAttention(depth, 2, 6, partition=tuple(places[:3]), position=position, residual=residual)
    assert measured(network) == (18 if depth == 2 else 3)


def test_a_convolution_is_a_vocabulary_of_its_inputs():
    whole = {"depth": 2, "tokens": 4, "embedding": "convolution"}
    assert measured(LinearAttention(width=4, patch=2, input_dim=1, **whole)) == 18
    assert measured(LinearAttention(width=2, patch=3, input_dim=2, **whole)) == 18
    swapped = LinearAttention(width=4, patch=2, input_dim=1, partition=(3, 4, 7, 8), **whole)
    assert measured(swapped) == 18


@pytest.mark.parametrize("tokens", [2, 6, 10])
def test_a_partition_that_splits_patches_has_a_rank_that_grows_with_n(tokens):
    odd = tuple(range(1, 2 * tokens, 2))
    network = LinearAttention(1, 1, tokens, embedding="convolution", patch=2, input_dim=1, partition=odd)
    assert measured(network) == 2 * tokens + 2


@pytest.mark.parametrize(
    ("words", "tokens", "places", "expected"),
    [(2, 8, 0, 5), (3, 6, 0, 10), (3, 8, 0, 12), (4, 6, 0, 18), (4, 4, 1, 16), (8, 8, 0, 18)],
)
def test_a_finite_vocabulary(words, tokens, places, expected):
    network = LinearAttention(2, 2, tokens, embedding="vocabulary", vocabulary=words, positional_rank=places)
    assert measured(network) == expected


@pytest.mark.parametrize(
    ("degree", "depth", "width", "expected"),
    [(1, 2, 2, 2), (2, 1, 4, 4), (3, 1, 4, 8), (3, 1, 2, 6), (2, 2, 2, 9), (3, 2, 2, 30), (2, 3, 2, 25)],
)
def test_product_networks(degree, depth, width, expected):
    assert measured(ProductNetwork(degree, depth, width)) == expected


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_one_layer_of_products_doubles_with_each_factor(degree):
    assert measured(ProductNetwork(degree, 1, degree)) == 2**degree
    assert measured(ProductNetwork(degree, 1, 2, 4, True)) <= 2**degree


def test_too_few_templates_give_a_lower_bound_and_say_so():
    network = LinearAttention(2, 3, 6)
    found = separation_rank(network, templates=20)
    assert (found.rank, found.exact, found.templates) == (20, False, (20, 20))
    assert separation_rank(network, templates=49).exact  # the upper bound itself
    words = LinearAttention(2, 2, 8, embedding="vocabulary", vocabulary=3)
    assert not separation_rank(words, templates=29).exact  # of 30 different halves


def test_templates_double_up_to_the_most():
    assert list(template_counts(20)) == [20]
    assert list(template_counts(1000)) == [32, 64, 128, 1000]


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (LinearAttention(4, 4, 8), "up to 10^"),
        (LinearAttention(30, 9, 4), "by estimate, above 10 minutes and 4 GiB"),
        (ProductNetwork(6, 9, 3), "smaller network"),
    ],
)
def test_what_cannot_be_reached_is_refused_before_it_starts(network, words, monkeypatch):
    monkeypatch.setattr(type(network), "grid", None)  # would fail if it were called
    with pytest.raises(UserError, match=words.replace("^", r"\^")):
        separation_rank(network)


def test_estimates_grow_and_limits_are_kept():
    network = LinearAttention(2, 3, 6)
    small, large = estimate(network, 100), estimate(network, 200)
    assert 4 * small.bytes == large.bytes
    assert small.seconds < large.seconds / 3.9
    with pytest.raises(UserError, match=r"above 10 minutes and 9\.31e-10 GiB"):
        separation_rank(network, limit_bytes=1)


def test_the_bound_of_a_large_network_is_there_at_once_and_the_refusal_says_what_would_fit():
    """It took minutes: partitions of numbers up to 729 into 50 parts were taken for few, and gone through."""
    network = LinearAttention(6, 64, 100)
    planned = plan(network)
    assert planned.bound > 10**200
    fitting = templates_within(network, 600)
    assert estimate(network, fitting).seconds < 600 < estimate(network, fitting + 1).seconds
    with pytest.raises(UserError, match=rf"--templates {fitting} is within the limits.*--force"):
        separation_rank(network)


def test_bounds_beyond_all_counting_take_no_time():
    network = LinearAttention(200, 768, 1024)
    assert network.rank_bound().bit_length() > 10**7
    assert math.isinf(plan(network).needed.seconds)
    with pytest.raises(UserError, match="degree of the output has 477 digits"):
        LinearAttention(1000, 4, 4)
    with pytest.raises(UserError, match="degree of the output has 301,030 digits"):
        ProductNetwork(2, 10**6, 4)


def measured_costs():
    with (Path(__file__).parent / "measured_costs.csv").open() as lines:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


@pytest.mark.parametrize("cost", measured_costs(), ids=lambda one: f"L{one['depth']:g}-d{one['width']:g}")
def test_estimates_are_near_what_was_measured(cost):
    """Within 1.6 of CPU seconds and 1.3 of memory, of benchmarks/separation_rank.py on two cores of an AMD EPYC."""
    network = LinearAttention(int(cost["depth"]), int(cost["width"]), int(cost["tokens"]))
    needed = estimate(network, int(cost["templates"]))
    assert cost["cpu_seconds"] / 1.6 < needed.seconds < 1.6 * cost["cpu_seconds"]
    assert cost["grid_mib"] / 1.3 < needed.bytes / 2**20 < 1.3 * cost["grid_mib"]


@pytest.mark.parametrize(
    "network",
    [
        LinearAttention(2, 6, 12),
        LinearAttention(3, 4, 8, heads=2),
        LinearAttention(
            3, 3, 6, embedding="convolution", patch=2, input_dim=1, partition=(1, 3, 5, 7, 9, 11)
        ),
        DegreeAttention((2, 3), 4, 6),
        DegreeAttention((4, 3), 3, 4),
    ],
    ids=lambda one: f"{type(one).__name__}-{one.width}",
)
def test_the_products_of_an_estimate_are_those_that_are_made(network, monkeypatch):
    """Counted where they are made: within a fifth of what the estimate takes for one entry of a grid."""
    made = 0

    def counting(left, right, prime):
        nonlocal made
        product = matmul(left, right, prime)
        made += product.size * left.shape[1]
        return product

    for module in (attention_layers, degree_attention):
        monkeypatch.setattr(module, "matmul", counting)
    network.grid(120, LARGE, 0)
    assert made / 120**2 == pytest.approx(network.multiplications(), rel=0.2)


def test_the_memory_of_an_estimate_is_that_which_is_taken():
    """Of 68 bytes an entry Python's part, the grid and a list of whole numbers, is 48; FLINT's own is not seen here."""
    matrix = random_residues(np.random.default_rng(0), (300, 300), LARGE)
    tracemalloc.start()
    rank(matrix.copy(), LARGE)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 40 < taken / 300**2 < estimate(LinearAttention(1, 2, 2), 300).bytes / 300**2 < 2 * taken / 300**2


def test_each_lower_bound_is_told():
    told = []
    separation_rank(
        LinearAttention(2, 3, 6), progress=lambda templates, found: told.append((templates, found))
    )
    assert told == [(57, 49)]
    told.clear()
    separation_rank(
        LinearAttention(2, 5, 10), progress=lambda templates, found: told.append((templates, found))
    )
    assert told == [(32, 32), (224, 216)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "depth = 0"),
        ({"heads": 0}, "heads = 0"),
        ({"tokens": 5}, "N = 5 tokens is odd"),
        ({"heads": 3}, "width 4 is not divisible by 3 heads"),
        ({"embedding_rank": 5}, "embedding rank 5 is above 4"),
        ({"positional_rank": 5}, "positional rank 5 must be from 0 to"),
        ({"partition": (1, 2, 3)}, "names 3 of 4 places"),
        ({"partition": (1, 1)}, "each once"),
        ({"position": 5}, "position 5 must be from 1 to N = 4"),
        ({"entry": 0}, "entry 0 must be"),
        ({"vocabulary": 7}, "vocabulary embedding needs a vocabulary size"),
        ({"input_dim": 7}, "convolutional embedding needs an input dimension"),
        ({"patch": 2}, "Only the convolutional embedding takes a patch"),
        ({"embedding": "vocabulary", "vocabulary": 2, "embedding_rank": 3}, "rank 3 is above 2"),
    ],
)
def test_sizes_of_attention_that_cannot_be(options, words):
    with pytest.raises(UserError, match=words):
        LinearAttention(**{"depth": 2, "width": 4, "tokens": 4, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"degree_of_layer": 0}, "degree k = 0"),
        ({"depth": -1}, "depth = -1"),
        ({"tokens": 3}, "N = 3 tokens is odd"),
        ({"mixing": True, "token_dim": 2}, "the token dimension is the width"),
        ({"entry": 5}, "entry 5"),
        ({"position": 9}, "position 9"),
    ],
)
def test_sizes_of_product_networks_that_cannot_be(options, words):
    with pytest.raises(UserError, match=words):
        ProductNetwork(**{"degree_of_layer": 2, "depth": 2, "width": 4, **options})

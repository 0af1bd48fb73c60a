"""Exact separation ranks: known values, what is refused before it starts, and estimates beside what is taken."""

import csv
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from shapelaw.errors import UserError
from shapelaw.theory import linear_attention, networks, polynomials
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import DegreeAttention, ProductNetwork
from shapelaw.theory.polynomials import PRIMES, matmul, random_residues, rank
from shapelaw.theory.separation_rank import (
    LIMIT,
    Estimate,
    estimate,
    measure_planned,
    plan,
    separation_rank,
    templates_within,
)

LARGE = PRIMES[0]


def test_too_few_templates_give_a_lower_bound_and_say_so():
    network = LinearAttention(2, 3, 6)
    found = separation_rank(network, templates=20)
    assert (found.rank, found.exact, found.templates) == (20, False, (20, 20))
    assert separation_rank(network, templates=49).exact  # the upper bound itself
    words = LinearAttention(2, 2, 8, embedding="vocabulary", vocabulary=3)
    assert not separation_rank(words, templates=29).exact  # of 30 different halves


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


def test_the_bound_of_a_large_network_is_there_at_once_and_the_refusal_says_what_would_fit():
    """It took minutes: partitions of numbers up to 729 into 50 parts were taken for few, and gone through."""
    network = LinearAttention(6, 64, 100)
    assert network.rank_bound() > 10**200
    fitting = templates_within(network, LIMIT)
    assert estimate(network, fitting).seconds < 600 < estimate(network, fitting + 1).seconds
    with pytest.raises(UserError, match=rf"--templates {fitting} is within the limits.*--limit"):
        separation_rank(network)
    with pytest.raises(UserError, match=r"above 10 minutes and 9\.31e-10 GiB"):
        separation_rank(LinearAttention(2, 3, 6), limit=Estimate(600, 1))


def test_bounds_beyond_all_counting_take_no_time():
    network = LinearAttention(200, 768, 1024)
    assert network.rank_bound().bit_length() > 10**7
    with pytest.raises(UserError, match=r"would take over 10\^100 minutes"):
        plan(network)


def measured_costs():
    with (Path(__file__).parent / "measured_costs.csv").open() as lines:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


@pytest.mark.parametrize("cost", measured_costs(), ids=lambda one: f"L{one['depth']:g}-d{one['width']:g}")
def test_estimates_are_near_what_was_measured(cost):
    """Within 1.6 of CPU seconds and 1.3 of memory, as measured on two cores of an AMD EPYC."""
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

    for module in (linear_attention, networks, polynomials):
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


def test_a_plan_is_carried_out_without_being_made_again(monkeypatch):
    network = LinearAttention(2, 3, 6)
    planned = plan(network, templates=30)
    monkeypatch.setattr(LinearAttention, "rank_bound", None)  # would fail if it were called
    found = measure_planned(network, planned)
    assert (found.rank, found.exact, found.templates) == (30, False, (30, 30))

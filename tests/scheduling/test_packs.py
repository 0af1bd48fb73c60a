"""Which runs are trained as one computation: filled up within a budget, families apart."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from made_runs import a_memorization_run, memorization_grids
from memorizer_options import OPTIONS

from shapelaw.scheduling.packs import filled_up, in_packs, pack_flops
from shapelaw.specs.memorizers import MemorizationRun


@given(memorization_grids, st.integers(1, 20), st.floats(1, 12))
def test_what_is_filled_up_stays_within_its_budget_and_saves_packs(
    some: list[MemorizationRun], size: int, padding: float
) -> None:
    packs, apart = in_packs(some, size, padding), in_packs(some, size)
    alone = sum(run.steps * run.step_flops for run in some)
    assert sum(map(pack_flops, apart)) == alone
    assert alone <= sum(map(pack_flops, packs)) <= padding * alone
    assert len(packs) <= len(apart)
    assert all(run.memorizer == pack[0].memorizer for pack in map(filled_up, packs) for run in pack)


def test_with_a_large_budget_a_family_is_one_pack_and_families_stay_apart() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 20, 60)]
    others = [replace(run, context_type="per_example") for run in runs]
    assert sorted(map(len, in_packs([*runs, *others], 64, 100.0))) == [4, 4]
    assert sorted(map(len, in_packs([*runs, *others], 3, 100.0))) == [1, 1, 3, 3]
    by_head_dim = [
        replace(run, memorizer=replace(run.memorizer, logit_scale="head_dim", head_dim=head_dim))
        for run, head_dim in zip(runs, (8, 8, 64, 64), strict=True)
    ]
    assert sorted(map(len, in_packs(by_head_dim, 64, 100.0))) == [2, 2]  # their logits have other scales


def test_packs_are_joined_where_that_adds_least() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 50, 60)]
    joined = in_packs(runs, 64, 1.2)
    assert [{run.memorizer.heads for run in pack} for pack in joined] == [{1, 5}, {50, 60}]


def test_packs_have_one_shape_and_no_more_models_than_asked() -> None:
    runs = [replace(run, seed=seed) for run in OPTIONS.values() for seed in range(5)]
    packs = in_packs(runs, 2)
    assert sorted(run.key for pack in packs for run in pack) == sorted(run.key for run in runs)
    assert {len(pack) for pack in packs} == {1, 2}
    assert all(len({run.group for run in pack}) == 1 for pack in packs)

"""Specs of product networks: keys, digests that outlive new options, and sentences about what can't be trained."""

from dataclasses import replace

from shapelaw.specs.degrees import DegreeRun, ProductShape

MIXTURE = ProductShape((3, 3, 3, 3), 32, 64, 10, mixture=True)
RUN = DegreeRun(MIXTURE, "digits", 0, 1500, 0, learning_rate=1e-3, evaluate_every=25)


def test_a_mixture_that_begins_elsewhere_is_another_run_and_the_usual_one_keeps_its_digest() -> None:
    assert RUN.label == "digits-k3x4-mix-d32-lr0.001-t1500-s0"
    assert RUN.digest == "6c539c637e2e0567"
    other = replace(RUN, network=replace(MIXTURE, initial_share=0.9))
    assert other.label == "digits-k3x4-mix0.9-d32-lr0.001-t1500-s0"
    assert other.digest != RUN.digest
    assert other.group != RUN.group
    for run in (RUN, other):
        assert DegreeRun.from_dict(run.to_dict()) == run

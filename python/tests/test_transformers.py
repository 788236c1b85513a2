# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with Fovea's attention, against their eager one: logits,
gradients of all parameters, and generated tokens."""

import copy

import pytest

torch = pytest.importorskip("torch", "2.11")
transformers = pytest.importorskip("transformers")

import fovea
import fovea.transformers
from fovea import _operator

SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48,
             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
             eos_token_id=None)

CONFIGS = {
    "llama": ("Llama", dict(SMALL)),
    "gemma2": ("Gemma2", dict(SMALL, head_dim=8, sliding_window=5,
                              attn_logit_softcapping=50.0)),
    "gemma3": ("Gemma3", dict(SMALL, head_dim=8, sliding_window=5)),
    "gpt_oss": ("GptOss", dict(SMALL, head_dim=8, sliding_window=5,
                               num_local_experts=2, num_experts_per_tok=1)),
    "llama4": ("Llama4", dict(
        SMALL, head_dim=8, intermediate_size_mlp=48, num_local_experts=2,
        attention_chunk_size=5, num_hidden_layers=4, no_rope_layer_interval=2,
        pad_token_id=0)),
    "mistral": ("Mistral", dict(SMALL, sliding_window=6)),
    "gpt2": ("GPT2", dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4,
                          n_positions=64, attn_pdrop=0.0, resid_pdrop=0.0,
                          embd_pdrop=0.0, bos_token_id=1, eos_token_id=None)),
    "modernbert": ("ModernBert", dict(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, local_attention=6, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, cls_token_id=1, sep_token_id=2, attention_dropout=0.0)),
    "bert": ("Bert", dict(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0, pad_token_id=0)),
    "bart": ("Bart", dict(
        vocab_size=97, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
        decoder_ffn_dim=48, max_position_embeddings=64, dropout=0.0,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=2)),
    "deepseek_v3": ("DeepseekV3", dict(
        SMALL, num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=8,
        qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=2,
        num_experts_per_tok=1, n_group=1, topk_group=1, first_k_dense_replace=2,
        moe_intermediate_size=16)),
    "t5": ("T5", dict(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2,
                      num_heads=4, dropout_rate=0.0, pad_token_id=0,
                      decoder_start_token_id=0, eos_token_id=None)),
}


def make_config(name):
    """The class of a model and its configuration."""
    kind, options = CONFIGS[name]
    config = "TextConfig" if kind in ("Gemma3", "Llama4") else "Config"
    head = {"T5": "ForConditionalGeneration",
            "Bart": "ForConditionalGeneration", "GPT2": "LMHeadModel",
            "Bert": "ForMaskedLM", "ModernBert": "ForMaskedLM"}.get(
                kind, "ForCausalLM")
    return (getattr(transformers, kind + head),
            getattr(transformers, kind + config)(**options))


def make_models(name):
    """The same weights twice: eager attention, and Fovea's."""
    cls, config = make_config(name)
    models = []
    for implementation in ("eager", "fovea"):
        torch.manual_seed(0)
        own = copy.deepcopy(config)
        own._attn_implementation = implementation
        models.append(cls(own))
        if models[1:]:
            models[1].load_state_dict(models[0].state_dict())
    for parameter in models[0].parameters():
        # Nothing is only zeros, as some biases and sinks are.
        with torch.no_grad():
            parameter += 0.05 * torch.randn_like(parameter)
    models[1].load_state_dict(models[0].state_dict())
    return models


def make_inputs(name, padded):
    ids = torch.randint(3, 97, (2, 12), generator=torch.Generator().manual_seed(1))
    inputs = {"input_ids": ids}
    if padded:
        mask = torch.ones_like(ids)
        mask[1, :4] = 0
        inputs["attention_mask"] = mask
    if name in ("t5", "bart"):
        inputs["decoder_input_ids"] = ids[:, :7]
    return inputs


@pytest.mark.parametrize("name", CONFIGS)
def test_model(name):
    """With padding, and a gradient of each parameter."""
    inputs = make_inputs(name, True)
    keep = inputs["attention_mask"].bool()
    if name in ("t5", "bart"):
        keep = keep[:, :7] | True
    results = []
    for model in make_models(name):
        model.train()
        logits = model(**inputs).logits
        logits[keep].square().mean().backward()
        results.append((logits.detach()[keep], {
            key: x.grad for key, x in model.named_parameters()
            if x.grad is not None}))
    (expected, gradients), (actual, found) = results
    assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-4)
    assert found.keys() == gradients.keys()
    for key, gradient in gradients.items():
        largest = max(gradient.abs().max(), 1e-3)
        assert (found[key] - gradient).abs().max() <= 2e-4 * largest, key


@pytest.mark.parametrize("name", ["llama"])
def test_packed(name):
    """Sequences in one row, told apart by their positions."""
    ids = make_inputs(name, False)["input_ids"]
    positions = torch.cat([torch.arange(5), torch.arange(7)]).expand(2, 12)
    eager, ours = (model.eval() for model in make_models(name))
    with torch.no_grad():
        expected = eager(input_ids=ids, position_ids=positions).logits
        actual = ours(input_ids=ids, position_ids=positions).logits
        whole = ours(input_ids=ids).logits
    assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(actual, whole, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name, cache", [
    ("llama", None), ("llama", "static"), ("gemma2", None), ("gemma3", None),
    ("gemma3", "static"), ("gpt_oss", None), ("gpt_oss", "static"), ("mistral", None),
    ("llama4", None)])
def test_generate(name, cache):
    """The same tokens, with left padding; no kernel after the first steps."""
    inputs = make_inputs(name, True)
    options = dict(do_sample=False, cache_implementation=cache,
                   pad_token_id=0) if cache else dict(do_sample=False,
                                                      pad_token_id=0)
    eager, ours = (model.eval() for model in make_models(name))
    expected = eager.generate(**inputs, max_new_tokens=8, **options)
    assert torch.equal(ours.generate(**inputs, max_new_tokens=8, **options),
                       expected)
    before = len(_operator._forwards)
    ours.generate(**inputs, max_new_tokens=12, **options)
    assert len(_operator._forwards) == before


def test_no_mask_is_built():
    """What a model hands to attention is a function."""
    model = make_models("llama")[1].eval()
    with torch.no_grad():
        found = fovea.explain(model, **make_inputs("llama", False))
    kernel = found.kernels[0]
    assert len(found.kernels) == 1
    # Query, key, value, and the two offsets.
    assert [str(x) for x in kernel.operands[3:]] == ["i64 number", "i64 number"]
    mask = fovea.transformers.make_mask(2, 3, 5)
    assert mask.shape == (2, 1, 3, 5) and mask.contiguous() is mask
    assert repr(mask) == "<fovea.transformers.Mask of shape (2, 1, 3, 5)>"


def test_dropout():
    """In training, as the configuration says."""
    model = make_models("llama")[1]
    model.config.attention_dropout = 0.5
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    inputs = make_inputs("llama", False)
    model.train()
    first, second = (model(**inputs).logits for _ in range(2))
    assert not torch.allclose(first, second)
    model.eval()
    assert torch.equal(model(**inputs).logits, model(**inputs).logits)


def test_a_name_of_ones_own():
    fovea.transformers.register("fovea_other")
    config = transformers.LlamaConfig(**SMALL)
    config._attn_implementation = "fovea_other"
    model = transformers.LlamaForCausalLM(config)
    found = fovea.explain(model, **make_inputs("llama", False))
    assert found.kernels

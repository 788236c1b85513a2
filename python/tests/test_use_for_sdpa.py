# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea behind PyTorch's scaled_dot_product_attention, against f64."""

import contextlib

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
import fovea.torch
from mods import DEVICE, randn
from test_flex import compare
from test_sdpa import expect
from torch.nn.attention import (SDPBackend, current_flash_attention_impl,
                                restore_flash_attention_impl, sdpa_kernel)
from torch.nn.functional import scaled_dot_product_attention as sdpa

LENGTH = 13
I = torch.arange(LENGTH, device=DEVICE)[:, None]
J = torch.arange(LENGTH, device=DEVICE)[None]

BOUNDS = {torch.float64: 1e-6, torch.float32: 5e-6, torch.float16: 4e-3,
          torch.bfloat16: 3e-2}
if DEVICE != "cpu":
    # What flash attention of CUDA takes.
    BOUNDS = {dtype: bound for dtype, bound in BOUNDS.items() if bound > 1e-3}


@contextlib.contextmanager
def active():
    fovea.torch.use_for_sdpa()
    try:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            yield
    finally:
        restore_flash_attention_impl()


def make(dtype, heads=(4, 4, 4), swapped=True):
    """Operands whose memory is [B, S, H, D], as a model's are, or [B, H, S, D]."""
    result = []
    for at, count in enumerate(heads):
        x = randn(2, LENGTH, count, 16, seed=at, dtype=dtype)
        x = x.transpose(1, 2)
        result.append((x if swapped else x.contiguous()).requires_grad_())
    return result


CASES = {
    "plain": ({}, None, None),
    "causal": ({"is_causal": True}, I >= J, None),
    "scale": ({"scale": 0.4}, None, None),
}
if DEVICE == "cpu":
    KEEP = (I + 2 * J) % 5 > 0
    MASK = randn(2, 1, LENGTH, LENGTH, seed=9)
    CASES.update({
        "booleans": ({"attn_mask": KEEP}, KEEP, None),
        "floats": ({"attn_mask": MASK}, None, MASK),
        "floats of heads": ({"attn_mask": randn(1, 4, LENGTH, LENGTH, seed=8)},
                            None, randn(1, 4, LENGTH, LENGTH, seed=8)),
    })


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_numbers(name, dtype):
    options, keep, bias = CASES[name]
    operands = make(dtype)
    mask = options.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        options = {"attn_mask": mask.to(dtype)}
        bias = bias.to(dtype)
    weight = randn(2, 4, LENGTH, 16, seed=7).double()

    def run():
        output = sdpa(*operands, **options)
        return output, torch.autograd.grad((output * weight).sum(), operands)

    with active():
        found = fovea.explain(run)
    assert [kernel.kind for kernel in found.kernels] == ["forward", "backward"]
    output, gradients = found.result
    expected, _ = expect(*operands, keep, bias, scale=options.get("scale"))
    compare(output, expected, BOUNDS[dtype])
    for one, other in zip(gradients, torch.autograd.grad(
            (expected * weight).sum(), operands)):
        compare(one, other.double(), 2 * BOUNDS[dtype])


@pytest.mark.parametrize("swapped", (True, False))
def test_results_have_the_strides_of_pytorchs(swapped):
    operands = make(torch.float32 if DEVICE == "cpu" else torch.bfloat16,
                    swapped=swapped)

    def run():
        output = sdpa(*operands)
        return output, *torch.autograd.grad(output.sum(), operands)

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        expected = run()
    with active():
        found = run()
    assert [x.stride() for x in found] == [x.stride() for x in expected]
    if DEVICE == "cpu":
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        with active(), torch.no_grad():
            found = operator(*operands)
            wanted = operator(*(x.to("meta") for x in operands))
        assert [(x.stride(), x.dtype) for x in found] == [
            (x.stride(), x.dtype) for x in wanted]


def test_compiled_graphs_call_it():
    operands = make(torch.float32 if DEVICE == "cpu" else torch.bfloat16)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def run(q, k, v):
        return sdpa(q.sin(), k, v, is_causal=True) * 2

    with active():
        found = fovea.explain(lambda: run(*operands).sum().backward())
    assert [kernel.kind for kernel in found.kernels] == ["forward", "backward"]


def test_heads_of_keys_and_values_may_be_fewer():
    operands = make(torch.bfloat16, (4, 2, 2))
    with active():
        found = fovea.explain(sdpa, *operands, enable_gqa=True)
    assert len(found.kernels) == 1
    expected, _ = expect(*operands)
    compare(found.result, expected, BOUNDS[torch.bfloat16])


def test_restoring_undoes_it():
    operands = make(torch.bfloat16)
    assert "fovea" in torch.nn.attention.list_flash_attention_impls()
    with active():
        assert current_flash_attention_impl() == "fovea"
        assert fovea.explain(sdpa, *operands).kernels
    assert current_flash_attention_impl() is None
    assert not fovea.explain(sdpa, *operands).kernels
    with active():
        assert fovea.explain(sdpa, *operands).kernels


def test_dropout_stays_pytorchs():
    operands = make(torch.bfloat16)

    def run():
        torch.manual_seed(3)
        output = sdpa(*operands, dropout_p=0.4)
        return output, *torch.autograd.grad(output.sum(), operands)

    expected = run()
    fovea.torch.use_for_sdpa()
    try:
        found = fovea.explain(run)
    finally:
        restore_flash_attention_impl()
    assert not found.kernels
    for one, other in zip(found.result, expected):
        assert torch.equal(one, other)


@pytest.mark.skipif(DEVICE != "cpu", reason="needs the CPU")
def test_a_call_of_the_operator_with_dropout_is_pytorchs():
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    operands = make(torch.float32)
    with active(), torch.no_grad():
        with pytest.raises(RuntimeError, match="not support dropout"):
            operator(*operands, 0.5)
        with pytest.raises(RuntimeError, match="not support dropout"):
            operator(*operands, dropout_p=0.5)

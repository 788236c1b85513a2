# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scales that are operands: any number gives what PyTorch's mathematics gives in f64,
and another number needs neither another kernel nor another trace."""

import math

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
import fovea.torch
from fovea import _operator
from mods import DEVICE, causal_mask, compile_eagerly, make_qkv, randn, reference
from test_flex import check_gradients, compare
from test_memo import traced
from torch.nn.functional import scaled_dot_product_attention

#: Usual ones, others, and those of which f32 makes 0 or numbers that are not normal.
SCALES = (0.3, 7.0, 1e-20, 1.0, -0.4, 0.0, 1e-30, -1e-42, 1e-320, 1e30, -1e30)

BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5,
          torch.float64: 1e-13}


def count_kernels():
    return len(_operator._forwards), len(_operator._pairs)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("scale", SCALES)
def test_numbers(scale, dtype):
    q, k, v = make_qkv(20, 33, dtype=dtype)
    bound = BOUNDS[dtype]
    expected, expected_lse, top = reference(q, k, v, scale=scale)
    actual, aux = fovea.flex_attention(
        q, k, v, scale=scale, return_aux=fovea.AuxRequest(lse=True, max_scores=True))
    compare(actual, expected, bound)
    # The scores themselves are numbers of f32.
    size = max(top.abs().max().item(), 1.0)
    assert (aux.lse - expected_lse).abs().max().item() <= bound * size
    assert (aux.max_scores - top).abs().max().item() <= bound * size
    compare(fovea.scaled_dot_product_attention(q, k, v, scale=scale), expected, bound)
    compare(fovea.attention(q, k, v, scale=scale, causal=True),
            reference(q, k, v, None, causal_mask, scale)[0], bound)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.3, 1.0, -0.4, 0.0, 1e-30])
def test_gradients(scale, dtype):
    q, k, v = make_qkv(20, 33, dtype=dtype, grad=True)
    slopes = randn(4, dtype=dtype).requires_grad_()
    mod = lambda s, b, h, i, j: torch.tanh(s) * slopes[h]
    for mods in ((None, None), (mod, None), (mod, causal_mask)):
        actual = fovea.flex_attention(q, k, v, *mods, scale=scale, return_lse=True)
        expected = reference(q, k, v, *mods, scale=scale)[:2]
        check_gradients([q, k, v, slopes] if mods[0] else [q, k, v], actual, expected)


def test_thousand_scales_compile_once(traced):
    q, k, v = make_qkv(9, 12)
    before = None
    for at in range(1000):
        scale = 0.3 + at / 2000
        actual = fovea.attention(q, k, v, scale=scale)
        before = before or count_kernels()
        if at % 100 == 0:
            compare(actual, reference(q, k, v, scale=scale)[0])
    assert count_kernels() == before and traced == [1]


@pytest.mark.parametrize("call, dim", [
    (fovea.attention, 24), (fovea.flex_attention, 40),
    (fovea.scaled_dot_product_attention, 56)])
def test_kinds(call, dim, traced):
    """A kernel for the default and one for 1, as they are computed, one for usual
    numbers and one for others; so with gradients."""
    q, k, v = make_qkv(9, 12, dim=dim, grad=True)
    before = count_kernels()
    for scale in (None, dim**-0.5, 1 / math.sqrt(dim), 1, 1.0, 0.3, 0.4, 2, 1e-20, -0.1,
                  0, 1e-30, -3.5):
        with torch.no_grad():
            expected = reference(q, k, v, scale=scale)[0]
            compare(call(q, k, v, scale=scale), expected)
        compare(call(q, k, v, scale=scale), expected)
    constants = {dim**-0.5, 1 / math.sqrt(dim), 1.0}
    kinds = len(constants) + 2
    assert count_kernels() == tuple(count + kinds for count in before)
    # None is the default, too.
    assert traced[0] == 2 * (kinds + 1)


def test_other_numbers(traced):
    """Offsets and integers of mods are operands beside the scale."""
    for scale, offset in ((0.3, 3), (0.4, 5), (0.5, 4), (1.5, 1)):
        q, k, v = make_qkv(7, 9)
        compare(fovea.attention(q, k, v, scale=scale, causal=True, q_offset=offset),
                reference(q, k, v, None, lambda b, h, i, j: i + offset >= j, scale)[0])
        near = lambda b, h, i, j: (i - j).abs() <= offset
        compare(fovea.attention(q, k, v, scale=scale, causal=True, q_offset=offset,
                                mask_mod=near,
                                sinks=torch.full((4,), -1e9, device=DEVICE)),
                reference(q, k, v, None, lambda *place: near(*place) & (
                    place[2] + offset >= place[3]), scale)[0])


def test_names():
    """Of tensors that mods capture."""
    scale_bits, scale_usual, scale = (randn(4, seed=at) for at in range(3))
    mod = lambda s, b, h, i, j: s * scale[h] + scale_bits[h] * scale_usual[h] * j
    q, k, v = make_qkv(9, 12)
    compare(fovea.flex_attention(q, k, v, mod, scale=0.3),
            reference(q, k, v, mod, scale=0.3)[0])


def test_text():
    """A text to be read has the number."""
    q, k, v = make_qkv(9, 12)
    assert "scale(0.3)\n" in fovea.trace(query=q, key=k, value=v, scale=0.3)


def test_dropout():
    q, k, v = make_qkv(9, 12)
    for scale in (0.3, 0.4):
        found = [fovea.flex_attention(q, k, v * 0 + 1, scale=scale, dropout_p=0.5,
                                      generator=torch.Generator("cpu").manual_seed(3))
                 for _ in range(2)]
        assert torch.equal(*found) and not torch.allclose(found[0], found[0] * 0 + 1)
    compare(fovea.flex_attention(q, k, v, scale=0.3, dropout_p=1e-9),
            reference(q, k, v, scale=0.3)[0])


def test_use_for_sdpa():
    fovea.torch.use_for_sdpa()
    try:
        before = None
        for scale in (0.3, 0.4, 0.5):
            q, k, v = make_qkv(9, 9, grad=True)
            actual = scaled_dot_product_attention(q, k, v, scale=scale, is_causal=True)
            expected = reference(q, k, v, None, causal_mask, scale)[0]
            check_gradients([q, k, v], [actual], [expected])
            before = before or count_kernels()
        assert count_kernels() == before
    finally:
        torch.nn.attention.restore_flash_attention_impl()


@pytest.mark.parametrize("call", [
    fovea.attention, fovea.flex_attention, fovea.scaled_dot_product_attention])
def test_symbols(call, monkeypatch):
    """One graph, and one kernel for each pass, for all numbers."""
    monkeypatch.setattr("fovea.torch.compile_fx", compile_eagerly)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda q, k, v, scale: call(q, k, v, scale=scale),
                             backend="fovea", dynamic=True, fullgraph=True)
    q, k, v = make_qkv(9, 12, grad=True)
    before = count_kernels()
    for scale in (0.3, 0.4, -0.5, 0.0, 2.0, 24**-0.5, 1e-30):
        actual = compiled(q, k, v, scale)
        check_gradients([q, k, v], [actual], [reference(q, k, v, scale=scale)[0]])
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert count_kernels()[1] - before[1] <= 1
    infinite = torch.compile(lambda q, k, v, scale: call(q, k, v, scale=scale * 1e308),
                             backend="fovea", dynamic=True, fullgraph=True)
    for scale in (30.0, 40.0):
        assert infinite(q, k, v, scale).isnan().all()

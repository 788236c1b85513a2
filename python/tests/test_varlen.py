# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea behind PyTorch's varlen_attn, against f64."""

import inspect

import pytest

torch = pytest.importorskip("torch", "2.11")
varlen = pytest.importorskip("torch.nn.attention.varlen")

import fovea
import fovea.torch
import mods
from flash import attend, find_keep, pack
from mods import DEVICE, randn
from test_use_for_sdpa import BOUNDS
from torch.nn.attention import restore_flash_attention_impl
from torch.nn.attention.varlen import varlen_attn

on_device = mods.on_device

LENGTHS, KV_LENGTHS = [5, 0, 40, 3], [9, 4, 40, 6]

PARAMETERS = inspect.signature(varlen_attn).parameters

AUX = varlen.AuxRequest(lse=True)


@pytest.fixture(autouse=True)
def active(on_device):
    fovea.torch.use_for_sdpa()
    yield
    restore_flash_attention_impl()


def make(dtype, kv_heads=4):
    q = randn(sum(LENGTHS), 4, 16, dtype=dtype)
    k, v = (randn(sum(KV_LENGTHS), kv_heads, 16, dtype=dtype, seed=seed)
            for seed in (1, 2))
    return [x.requires_grad_() for x in (q, k, v)]


def lengths():
    return (pack(LENGTHS).to(DEVICE), pack(KV_LENGTHS).to(DEVICE), max(LENGTHS),
            max(KV_LENGTHS))


def expect(q, k, v, causal=False, window=(-1, -1), used=None):
    """The output and the log-sum-exp in f64, sequence by sequence."""
    found, starts, kv_starts = [], pack(LENGTHS), pack(KV_LENGTHS)
    for at, (one, kv) in enumerate(zip(LENGTHS, used or KV_LENGTHS)):
        rows = slice(int(starts[at]), int(starts[at]) + one)
        keys = slice(int(kv_starts[at]), int(kv_starts[at]) + kv)
        found.append(attend(q[rows].double(), k[keys].double(), v[keys].double(),
                            find_keep(one, kv, causal, window).to(DEVICE)))
    outputs, sums = zip(*found)
    return torch.cat(outputs), torch.cat(sums, -1)


def near(found, exact, dtype, scale=1.0):
    error = (found.detach().double() - exact.detach().double()).abs().max()
    assert error <= scale * BOUNDS[dtype] * max(1.0, float(exact.detach().abs().max()))


OPTIONS = {
    "plain": ({}, {}),
    "causal": ({"window_size": (-1, 0)}, {"causal": True}),
    "window": ({"window_size": (7, 0)}, {"causal": True, "window": (7, 0)}),
    "both sides": ({"window_size": (3, 2)}, {"window": (3, 2)}),
}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_forward_and_backward(dtype, kv_heads, name):
    options, wanted = OPTIONS[name]
    inputs = make(dtype, kv_heads)
    if kv_heads != 4:
        if "enable_gqa" not in PARAMETERS:
            pytest.skip("a later PyTorch has it")
        options = {**options, "enable_gqa": True}
    found = fovea.explain(lambda: varlen_attn(*inputs, *lengths(), return_aux=AUX,
                                              **options))
    assert len(found.kernels) >= 1
    output, lse = found.result
    exact, exact_lse = expect(*inputs, **wanted)
    assert output.dtype == dtype and output.stride() == inputs[0].stride()
    assert lse.dtype == torch.float32 and lse.shape == (4, sum(LENGTHS))
    near(output, exact, dtype)
    seen = ~exact_lse.isneginf()
    assert torch.equal(seen, ~lse.isneginf())
    near(lse[seen], exact_lse[seen], dtype)
    weights = randn(*output.shape, seed=7)
    actual = torch.autograd.grad((output * weights).sum(), inputs)
    theirs = torch.autograd.grad((exact * weights).sum(), inputs)
    for x, one, other in zip(inputs, actual, theirs):
        assert one.dtype == dtype and one.stride() == x.stride()
        near(one, other, dtype, 3.0)


def test_scale():
    inputs = make(torch.float16)
    output = varlen_attn(*inputs, *lengths(), scale=0.5)
    exact, _ = expect(inputs[0] * 2, *inputs[1:])
    near(output, exact, torch.float16)


@pytest.mark.skipif("seqused_k" not in PARAMETERS, reason="a later PyTorch has it")
def test_keys_that_count():
    used = [7, 0, 33, 6]
    with torch.no_grad():
        inputs = make(torch.float16)
        output = varlen_attn(*inputs, *lengths(), window_size=(-1, 0),
                             seqused_k=torch.tensor(used, dtype=torch.int32))
        near(output, expect(*inputs, causal=True, used=used)[0], torch.float16)


@pytest.mark.skipif("block_table" not in PARAMETERS, reason="a later PyTorch has it")
@pytest.mark.parametrize("paged", [False, True])
def test_cache(paged):
    """Keys in pages, or in rows of one length."""
    page, count = (16, 3) if paged else (48, 1)
    with torch.no_grad():
        q, k, v = make(torch.float16)
        table = torch.arange(4 * count, dtype=torch.int32).flip(0).reshape(4, count)
        if not paged:
            table = torch.arange(4, dtype=torch.int32)[:, None]
        pools = []
        for x in (k, v):
            pool = torch.full((4 * count, page, 4, 16), float("nan"), dtype=x.dtype)
            for at, rows in enumerate(x.split(KV_LENGTHS)):
                for place in range(rows.shape[0]):
                    pool[table[at, place // page], place % page] = rows[place]
            pools.append(pool)
        starts, _, most, kv_most = lengths()
        output, lse = varlen_attn(
            q, *pools, starts, None, most, kv_most, window_size=(-1, 0),
            seqused_k=torch.tensor(KV_LENGTHS, dtype=torch.int32),
            block_table=table, return_aux=AUX)
        exact, exact_lse = expect(q, k, v, causal=True)
        near(output, exact, torch.float16)
        assert lse.shape == exact_lse.shape


@pytest.mark.skipif(not hasattr(varlen, "varlen_attn_out"),
                    reason="a later PyTorch has it")
def test_into_a_tensor():
    with torch.no_grad():
        inputs = make(torch.float16)
        out = torch.empty_like(inputs[0])
        found, lse = varlen.varlen_attn_out(out, *inputs, *lengths(), return_aux=AUX)
        exact, _ = expect(*inputs)
        assert found is out and lse.shape == (4, sum(LENGTHS))
        near(out, exact, torch.float16)


def test_in_a_graph():
    inputs = make(torch.float16)
    torch._dynamo.reset()

    def model(q, k, v, starts, kv_starts):
        return varlen_attn(q * 2, k, v, starts, kv_starts, 40, 40,
                           window_size=(-1, 0)) + 1

    starts, kv_starts, _, _ = lengths()
    output = torch.compile(model, backend="aot_eager", fullgraph=True)(
        *inputs, starts, kv_starts)
    exact, _ = expect(inputs[0] * 2, *inputs[1:], causal=True)
    near(output - 1, exact, torch.float16)
    gradients = torch.autograd.grad(output.float().square().sum(), inputs)
    for one, other in zip(gradients, torch.autograd.grad(
            (exact + 1).square().sum(), inputs)):
        near(one, other, torch.float16, 8.0)


def test_restored():
    """What PyTorch does without."""
    restore_flash_attention_impl()
    try:
        inputs = make(torch.float16)
        if DEVICE == "cpu":
            with pytest.raises(NotImplementedError):
                varlen_attn(*inputs, *lengths())
        else:
            found = fovea.explain(varlen_attn, *inputs, *lengths())
            assert not found.kernels
    finally:
        fovea.torch.use_for_sdpa()


@pytest.mark.skipif(DEVICE != "cpu", reason="PyTorch computes these elsewhere")
def test_dropout():
    inputs = make(torch.float16)
    with torch.no_grad(), pytest.raises(NotImplementedError, match="dropout_p: exp"):
        torch.ops.aten._flash_attention_forward(*inputs, *lengths(), 0.1, False, False)


def test_kernels_are_kept():
    """Other sequences of packed rows need no other kernel."""
    from fovea import _operator
    inputs = make(torch.float16)
    varlen_attn(*inputs, *lengths()).sum().backward()
    before = len(_operator._forwards), len(_operator._pairs)
    starts = torch.tensor([0, 20, 41, 48, 48], dtype=torch.int32)
    varlen_attn(*inputs, starts, starts.clone(), 21, 21).sum().backward()
    assert (len(_operator._forwards), len(_operator._pairs)) == before

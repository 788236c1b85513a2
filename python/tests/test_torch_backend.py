# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="fovea"): what becomes Fovea's, in one graph, with
gradients and dynamic sizes."""

import pytest

torch = pytest.importorskip("torch")

import fovea
import fovea.torch
from mods import causal_mask, make_qkv, on_device, randn
from test_flex import compare
from torch._dynamo.backends.debugging import aot_eager
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention


@pytest.fixture
def without_inductor(monkeypatch):
    """The rest of a graph runs as it is: inductor takes its time."""
    monkeypatch.setattr("fovea.torch.compile_fx", aot_eager)
    torch._dynamo.reset()


def check(model, *inputs, kernels=1, others=(), **options):
    """A compiled function has the results and the gradients that it has without;
    Fovea computes so many attentions in it."""
    compiled = torch.compile(model, backend="fovea", **options)
    found = fovea.explain(compiled, *inputs)
    assert len(found.kernels) == kernels
    expected = model(*inputs)
    compare(found.result, expected.double(), 2e-6)
    wanted = [x for x in (*inputs, *others) if x.requires_grad]
    if wanted:
        for one, other in zip(
                torch.autograd.grad(found.result.square().sum(), wanted),
                torch.autograd.grad(expected.square().sum(), wanted)):
            compare(one, other.double(), 2e-5)
    return compiled


def test_inductor():
    """With the real thing: the operator, and a kernel of inductor's."""
    def model(q, k, v):
        return scaled_dot_product_attention(q.sin(), k, v, is_causal=True).cos()

    torch._dynamo.reset()
    check(model, *make_qkv(grad=True), fullgraph=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_sdpa(without_inductor, dynamic):
    def model(q, k, v):
        mask = torch.where(torch.ones(q.shape[2], k.shape[2]).tril() > 0, 0.0,
                           -1e9)
        one = scaled_dot_product_attention(q, k, v, mask)
        return scaled_dot_product_attention(one, k, v, is_causal=True) + one

    compiled = check(model, *make_qkv(grad=True), kernels=2, fullgraph=True,
                     dynamic=dynamic)
    if dynamic:
        from fovea import _operator
        before = len(_operator._forwards), len(_operator._pairs)
        for length in (9, 17, 40):
            inputs = make_qkv(length, length, grad=True)
            compare(compiled(*inputs), model(*inputs).double())
        assert before == (len(_operator._forwards), len(_operator._pairs))


def test_dropout_stays_with_pytorch(without_inductor):
    q, k, v = make_qkv()
    compiled = torch.compile(lambda q, k, v: scaled_dot_product_attention(
        q, k, v, dropout_p=0.5), backend="fovea")
    assert not fovea.explain(compiled, q, k, v).kernels


def test_operator_of_flex_attention(without_inductor):
    """PyTorch's flex_attention, and a BlockMask made within the graph."""
    bias = randn(4, seed=9)

    def model(q, k, v):
        blocks = create_block_mask(causal_mask, None, None, 36, 36,
                                   device=q.device)
        output, lse = flex_attention(
            q, k, v, lambda s, b, h, i, j: s * bias[h], blocks, return_lse=True)
        return output + lse[..., None]

    check(model, *make_qkv(), fullgraph=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_flex_attention(without_inductor, dynamic):
    """Fovea's own, in one graph, with a captured tensor that is learned."""
    bias = randn(4, seed=9).requires_grad_()

    def model(q, k, v):
        output, lse = fovea.flex_attention(
            q.sin(), k, v, lambda s, b, h, i, j: s * bias[h],
            mask_mod=causal_mask, return_lse=True)
        return output.cos() + lse[..., None]

    check(model, *make_qkv(grad=True), others=[bias], fullgraph=True,
          dynamic=dynamic)


def test_vectors(without_inductor):
    """Unrolled while tensors are fake."""
    points = randn(36, 3).requires_grad_()
    chosen = torch.arange(36).reshape(9, 4)

    def model(q, k, v):
        return fovea.flex_attention(
            q * 2, k, v, lambda s, b, h, i, j: s + (points[i] * points[j]).sum(),
            mask_mod=lambda b, h, i, j: (chosen[i // 4] == j).any() | (j == 0))

    check(model, *make_qkv(grad=True), others=[points], fullgraph=True)


def test_attention(without_inductor):
    sinks = randn(4, seed=2).requires_grad_()

    def model(q, k, v):
        return fovea.attention(q, k, v, causal=True, window=4, softcap=3.0,
                               q_offset=2, sinks=sinks)

    check(model, *make_qkv(grad=True), others=[sinks], fullgraph=True)


def test_other_backends():
    """There the call is made between two graphs."""
    torch._dynamo.reset()
    q, k, v = make_qkv()

    def model(q):
        return fovea.flex_attention(q * 2, k, v, mask_mod=causal_mask)

    compiled = torch.compile(model, backend="aot_eager")
    found = fovea.explain(compiled, q)
    assert len(found.kernels) == 1
    compare(found.result, model(q).double())


def test_name():
    assert "fovea" in torch._dynamo.list_backends()


def test_rewrite():
    graph = torch.fx.symbolic_trace(
        lambda q, k: scaled_dot_product_attention(q, k, k, scale=0.5))
    assert fovea.torch.rewrite(graph) == 1
    q, k, _ = make_qkv()
    assert fovea.explain(graph, q, k).kernels
    assert fovea.torch.rewrite(graph) == 0

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole functions of PyTorch and JAX, against themselves in float64."""

import sys

import numpy as np
import pytest

import fovea


def make(*shapes):
    random = np.random.default_rng(3)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def check(function, operands, expected, kernels=1):
    results = function(*operands)
    for one, other in zip(results if isinstance(results, tuple) else (results,),
                          expected):
        one = np.asarray(one, np.float64)
        assert one.shape == other.shape
        assert np.abs(one - np.asarray(other)).max() < 5e-6
    assert function.mlir("fused").count("attn.attention") == kernels
    return function.remarks


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", "2.11")
    pytest.importorskip("torch_mlir")
    return torch


def softmax(torch, q, k, v):
    return torch.softmax(q @ k.mT / 4, -1) @ v


def test_from_torch(torch):
    functions = {
        "written out": lambda q, k, v: softmax(torch, q, k, v),
        "causal": lambda q, k, v: (
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True)),
        "with more around it": lambda q, k, v: torch.relu(
            softmax(torch, q.sin(), k, v)) + 1,
    }
    operands = make(*[(2, 4, 30, 16)] * 3)
    tensors = [torch.from_numpy(x) for x in operands]
    for function in functions.values():
        compiled = fovea.from_torch(function, *tensors)
        expected = function(*(x.double() for x in tensors))
        assert check(compiled, tensors, [expected]) == []


def test_a_module_of_torch(torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project = torch.nn.Linear(16, 16)

        def forward(self, x):
            y = self.project(x)
            return softmax(torch, y, x, x)

    block = Block().requires_grad_(False)
    x = torch.from_numpy(make((2, 4, 30, 16))[0])
    compiled = fovea.from_torch(block, x)
    assert check(compiled, [x], [block.double()(x.double())]) == []


def test_what_is_not_fused_is_a_remark(torch):
    def attend(q, k, v):
        weights = torch.softmax(q @ k.mT / 4, -1)
        return weights @ v, weights

    tensors = [torch.from_numpy(x) for x in make(*[(2, 4, 30, 16)] * 3)]
    compiled = fovea.from_torch(attend, *tensors)
    remark, = check(compiled, tensors, attend(*(x.double() for x in tensors)), 0)
    assert "softmax is not fused into attention" in remark


def test_torch_mlir_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_mlir", None)
    with pytest.raises(fovea.Error, match="from_torch needs torch-mlir: pip"):
        fovea.from_torch(lambda x: x, None)


@pytest.fixture
def jax():
    return pytest.importorskip("jax", "0.10")


def test_from_jax(jax):
    jnp = jax.numpy

    def written_out(q, k, v):
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4, -1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def in_a_tree(operands):
        return {"out": written_out(*operands["qkv"]), "twice": operands["a"] * 2}

    def causal(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    q, k, v = make(*[(2, 30, 4, 16)] * 3)
    few = [k[:, :, :2], v[:, :, :2]]
    for function, operands in (
            (written_out, (q, k, v)), (causal, (q, k, v)), (causal, (q, *few)),
            (in_a_tree, ({"qkv": (q, k, v), "a": q, "unused": k},))):
        compiled = fovea.from_jax(function, *operands)
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda x: x.astype(np.float64), operands)
            expected = jax.tree.leaves(function(*wide))
        assert check(compiled, jax.tree.leaves(operands), expected) == []


def test_what_cannot_be_converted_is_an_error(jax):
    with pytest.raises(fovea.Error,
                       match="from_jax: no linalg was made of stablehlo.sort"):
        fovea.from_jax(jax.numpy.sort, make((4, 4))[0])

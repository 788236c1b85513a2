#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's backward pass of attention on a GPU beside PyTorch's, by cuDNN and by
its FlashAttention, and FlashAttention-4's where it is installed, in one process.

    benchmarks/gpu/backward.py [--target sm_90a] [--dim 64 128]
                               [--length 1024 4096 16384] [--dtype bf16]
                               [--rounds 5]

All of the backward pass is timed: from the output's gradient to those of
queries, keys and values. Sizes and the two protocols are those of forward.py.
TFLOP/s count 10 * B * H * S * S * D, five products, halved for causal. Errors
are the largest of one head against float64, relative to the largest magnitude:
of the gradients of queries, keys and values. "fixed order" is deterministic.
"""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from forward import (DTYPES, HIDDEN, TOKENS, find_peers, graph, measure_rates,
                     parse_options)
import fovea

PEERS = {"cuDNN": SDPBackend.CUDNN_ATTENTION,
         "Flash": SDPBackend.FLASH_ATTENTION}


def ours(function, operands, gradient):
    """The backward pass alone, of what the forward pass has saved."""
    results = function.forward(*operands)
    results = results if isinstance(results, tuple) else (results,)
    count = len(function.results)
    values = dict(zip("qkvc", operands), cotangent0=gradient)
    values |= {f"result{i}": result for i, result in enumerate(results[:count])}
    values |= {f"saved{i}": result for i, result in enumerate(results[count:])}
    arguments = [values[operand.name] for operand in function.backward.operands]
    return lambda: function.backward(*arguments)


def peer(backend, operands, gradient, causal):
    leaves = [operand.detach().requires_grad_() for operand in operands]
    with sdpa_kernel(backend):
        output = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    return lambda: torch.autograd.grad(output, leaves, gradient,
                                       retain_graph=True)


def flash_attention_4(function, operands, gradient, causal):
    """Its layout is [B, S, H, D]; gradients are in ours."""
    leaves = [x.transpose(1, 2).contiguous().requires_grad_() for x in operands]
    gradient = gradient.transpose(1, 2).contiguous()
    output = function(*leaves, causal=causal)
    output = output[0] if isinstance(output, tuple) else output

    def call():
        gradients = torch.autograd.grad(output, leaves, gradient,
                                        retain_graph=True)
        return [x.transpose(1, 2) for x in gradients]
    return call


def reference(q, k, v, gradient, causal):
    """Gradients of one head, in float64."""
    q, k, v, gradient = (x.double() for x in (q, k, v, gradient))
    scale = 1 / math.sqrt(q.shape[1])
    p = q @ k.T * scale
    if causal:
        p.masked_fill_(torch.ones(p.shape, dtype=torch.bool,
                                  device=p.device).triu_(1), -math.inf)
    p = p.softmax(-1)
    products = gradient @ v.T
    products -= (p * products).sum(-1, keepdim=True)
    products *= p
    return products @ k * scale, products.T @ q * scale, p.T @ gradient


def errors(gradients, expected):
    return [((gradient[-1, -1].double() - exact).abs().max()
             / exact.abs().max()).item()
            for gradient, exact in zip(gradients, expected)]


def main():
    options = parse_options(__doc__, [64, 128])

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, {options.dtype}, target "
          f"{options.target}; TFLOP/s burst/sustained, largest errors of dq, "
          "dk, dv")
    torch.manual_seed(1)
    flash, _ = find_peers().get("FlashAttention-4", (None, None))
    for dim in options.dim:
        functions = {}
        for causal in (False, True):
            functions[causal] = [
                fovea.differentiable(graph(options.dtype, dim, causal),
                                     options.target, deterministic=fixed)
                for fixed in (False, True)]
            print(f"d={dim} {'causal' if causal else 'full'}: "
                  f"{functions[causal][0].backward.resources}")
        for length in options.length:
            shape = (TOKENS // length, HIDDEN // dim, length, dim)
            *operands, gradient = (
                torch.randn(shape, device="cuda", dtype=DTYPES[options.dtype])
                for _ in range(4))
            for causal in (False, True):
                flops = 10 * TOKENS * length * HIDDEN / (2 if causal else 1)
                calls = {name: ours(function, operands, gradient)
                         for name, function in zip(("fovea", "fixed order"),
                                                   functions[causal])}
                for name, backend in PEERS.items():
                    calls[name] = peer(backend, operands, gradient, causal)
                if flash:
                    calls["FlashAttention-4"] = flash_attention_4(
                        flash, operands, gradient, causal)
                expected = reference(*(x[-1, -1] for x in operands),
                                     gradient[-1, -1], causal)
                worst = {name: errors(call(), expected)
                         for name, call in calls.items()}
                del expected
                rates = measure_rates(options, calls, flops)
                print(f"s={length} d={dim} {'causal' if causal else 'full'}")
                for name, rate in rates.items():
                    text = "/".join(f"{x:.0f}" for x in rate)
                    ratio = "/".join(f"{a / b:.2f}" for a, b in
                                     zip(rates["fovea"], rate))
                    error = " ".join(f"{x:.1e}" for x in worst[name])
                    print(f"  {name:17}{text:>12}{ratio:>14}   {error}",
                          flush=True)


if __name__ == "__main__":
    main()

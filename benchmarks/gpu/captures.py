#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of captured tensors on a GPU, beside PyTorch's compiled
flex_attention, in one process.

    benchmarks/gpu/captures.py [--target sm_90a] [--dim 64 128]
                               [--length 4096] [--dtype bf16] [--rounds 3]
                               [--kind bias own table slopes]

All of the backward pass is timed, in milliseconds of the burst protocol of
forward.py, whose sizes these are, too; "none" captures nothing. "bias" is
[H, S, S] in f32, which batches share, "own" [B, H, S, S] of the operands' type,
"table" [H, 2S - 1] in f32, of distances, "slopes" [H] in f32. "fixed order" is
deterministic. Errors are those of the capture's gradient for the last head
against float64, relative to the largest magnitude.
"""

import statistics

import torch
import torch._functorch.config
from torch.nn.attention.flex_attention import flex_attention

from forward import DTYPES, HIDDEN, TOKENS, burst, parse_options
from backward import ours
import fovea

# Calls of a backward pass are repeated: its buffers are not to be given away.
torch._functorch.config.donated_buffer = False

# By kind: the sizes for a batch, heads and a length, the index, what PyTorch
# adds to a score.
KINDS = {
    "none": None,
    "bias": (lambda b, h, n: (h, n, n), "%h, %i, %j",
             lambda t, b, h, i, j, n: t[h, i, j]),
    "own": (lambda b, h, n: (b, h, n, n), "%b, %h, %i, %j",
            lambda t, b, h, i, j, n: t[b, h, i, j]),
    "table": (lambda b, h, n: (h, 2 * n - 1), "%h, %at",
              lambda t, b, h, i, j, n: t[h, j - i + n - 1]),
    "slopes": (lambda b, h, n: (h,), "%h",
               lambda t, b, h, i, j, n: t[h] * (j - i)),
}


def graph(kind, dtype, sizes, dim):
    batch, heads, length = sizes
    x = f"tensor<{batch}x{heads}x{length}x{dim}x{dtype}>"
    s = f"tensor<{batch}x{heads}x{length}x{length}xf32>"
    capture, score = "", "%t"
    if kind != "none":
        shape, index, _ = KINDS[kind]
        element = dtype if kind == "own" else "f32"
        c = "tensor<" + "".join(f"{n}x" for n in shape(*sizes)) + f"{element}>"
        capture, score = f", %c: {c}", "%a"
        number = {"own": f"%y = arith.extf %x : {dtype} to f32",
                  "slopes": "%y = arith.mulf %x, %distance : f32"}.get(
                      kind, "%y = arith.addf %x, %zero : f32")
        capture_op = f"""
  %a = attn.modify %t {{
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant -0.0 : f32
    %last = arith.constant {length - 1} : index
    %d = arith.subi %j, %i : index
    %at = arith.addi %d, %last : index
    %wide = arith.index_cast %d : index to i32
    %distance = arith.sitofp %wide : i32 to f32
    %x = tensor.extract %c[{index}] : {c}
    {number}
    %r = arith.addf %score, %y : f32
    attn.yield %r : f32
  }} : {s}"""
    return f"""
func.func @attend(%q: {x}, %k: {x}, %v: {x}{capture}) -> {x} {{
  %s = attn.scores %q, %k : {x}, {x} -> {s}
  %t = attn.scale %s by {dim**-0.5} : {s}
  {capture_op if capture else ""}
  %p = attn.softmax {score} : {s} -> {s}
  %o = attn.values %p, %v : {s}, {x} -> {x}
  return %o : {x}
}}"""


def peer(kind, operands, gradient):
    leaves = [operand.detach().requires_grad_() for operand in operands]
    length = operands[0].shape[2]

    def modify(score, b, h, i, j):
        return score + KINDS[kind][2](leaves[3], b, h, i, j, length)

    attend = torch.compile(flex_attention)
    output = attend(*leaves[:3], score_mod=None if kind == "none" else modify)
    return lambda: torch.autograd.grad(output, leaves, gradient,
                                       retain_graph=True)


def expected_gradient(kind, operands, gradient):
    """Of the last head's part of the captured tensor, in float64."""
    batch, _, length, dim = operands[0].shape
    i = torch.arange(length, device="cuda")[:, None]
    j = torch.arange(length, device="cuda")[None]
    total = None
    for b in range(batch - 1 if kind == "own" else 0, batch):
        q, k, v = (x[b, -1].double() for x in operands[:3])
        do = gradient[b, -1].double()
        bias = KINDS[kind][2](operands[3].double(), b, -1, i, j, length)
        p = (q @ k.T * dim**-0.5 + bias).softmax(-1)
        dp = do @ v.T
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        if kind == "slopes":
            part = (ds * (j - i)).sum()
        elif kind == "table":
            part = torch.zeros(2 * length - 1, device="cuda",
                               dtype=torch.float64)
            part.index_add_(0, (j - i + length - 1).flatten(), ds.flatten())
        else:
            part = ds
        total = part if total is None else total + part
    return total


def main():
    options = parse_options(__doc__, [64, 128], lengths=[4096], rounds=3,
                            kinds=list(KINDS))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{options.dtype}, target {options.target}; ms, and errors of the "
          "captured tensor's gradient")
    torch.manual_seed(1)
    for dim in options.dim:
        for length in options.length:
            sizes = (TOKENS // length, HIDDEN // dim, length)
            for kind in options.kind:
                *operands, gradient = (
                    torch.randn(*sizes, dim, device="cuda",
                                dtype=DTYPES[options.dtype])
                    for _ in range(4))
                if kind != "none":
                    element = (DTYPES[options.dtype] if kind == "own"
                               else torch.float32)
                    operands.append(torch.randn(
                        KINDS[kind][0](*sizes), device="cuda", dtype=element))
                    if kind == "slopes":
                        operands[3] /= length
                text = graph(kind, options.dtype, sizes, dim)
                calls = {}
                for label, fixed in (("fovea", False), ("fixed order", True)):
                    function = fovea.differentiable(text, options.target,
                                                    deterministic=fixed)
                    calls[label] = ours(function, operands, gradient)
                line = f"s={length} d={dim} {kind:8}"
                if not options.no_peer:
                    try:
                        call = peer(kind, operands, gradient)
                        call()
                        calls["flex"] = call
                    except RuntimeError as error:  # Its kernel does not fit.
                        line += f"  flex refuses ({type(error).__name__})"
                for name, call in calls.items():
                    times = [burst(call) for _ in range(options.rounds)]
                    line += f"  {name} {statistics.median(times) * 1e3:7.3f}"
                    if kind != "none":
                        exact = expected_gradient(kind, operands, gradient)
                        found = call()[3]
                        found = found[-1, -1] if kind == "own" else found[-1]
                        error = (found.double() - exact).abs().max()
                        line += f" ({(error / exact.abs().max()).item():.1e})"
                        del exact, found
                print(line, flush=True)
                del operands, gradient, calls
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's gradients of attention on this machine beside PyTorch's.

    benchmarks/host/backward.py [--dtype f32] [--dim 64] [--length 1024]
                                [--size BATCH HEADS] [--threads N]

Both sides are asked for the gradients of queries, keys and values by
torch.autograd.grad, of a forward pass that ran before: what is measured is the
whole backward pass, and no forward pass. Rounds and ratios are those of
attention.py.
"""

import argparse
import math

import torch
import torch.nn.functional as F
from attention import (CAUSAL, DTYPES, add_arguments, compare, fovea,
                       geometric_mean, graph, max_error, operands,
                       parse_arguments)

#: (batch, heads) for a length, as in attention.py but for the last two.
SIZES = {37: (2, 16), 1000: (2, 16), 1024: (2, 16), 2048: (1, 8), 4096: (1, 4)}


def gradients(attend, inputs, gradient):
    """A function that runs the backward pass of `attend` alone."""
    variables = [x.clone().requires_grad_() for x in inputs]
    output = attend(*variables)
    return lambda: torch.autograd.grad(output, variables, gradient,
                                       retain_graph=True)


def measure(arguments):
    print("| dtype | d | s | mask | ratio | ms | GFLOP/s | error | theirs |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = {False: [], True: []}
    for dtype in arguments.dtype or ("f32",):
        for dim in arguments.dim or (64, 128):
            for length in arguments.length or SIZES:
                batch, heads = arguments.size or SIZES.get(length, (1, 8))
                inputs = operands(dtype, batch, heads, length, dim)
                gradient = torch.randn(batch, heads, length,
                                       dim).to(DTYPES[dtype])
                for causal in (False, True):
                    attend = fovea.differentiable(
                        graph(dtype, batch, heads, dim,
                              mask=CAUSAL if causal else None))
                    peer = lambda q, k, v: F.scaled_dot_product_attention(
                        q, k, v, is_causal=causal)
                    ours = gradients(attend, inputs, gradient)
                    theirs = gradients(peer, inputs, gradient)
                    ratio, seconds = compare(ours, theirs, arguments.seconds)
                    ratios[causal].append(ratio)
                    flops = 10 * batch * heads * length * length * dim
                    flops *= (length + 1) / (2 * length) if causal else 1
                    # One head of the reference is enough, and fits.
                    reference = gradients(
                        peer, [x[:1, :1].double() for x in inputs],
                        gradient[:1, :1].double())()
                    errors = [max(max_error(x[:1, :1], y)
                                  for x, y in zip(f(), reference))
                              for f in (ours, theirs)]
                    print(f"| {dtype} | {dim} | {length} | "
                          f"{'causal' if causal else 'full'} | {ratio:.2f} | "
                          f"{seconds * 1e3:.2f} | {flops / seconds / 1e9:.0f} | "
                          f"{errors[0]:.1e} | {errors[1]:.1e} |", flush=True)
    for causal, name in ((False, "full"), (True, "causal")):
        print(f"{name}: geometric mean {geometric_mean(ratios[causal]):.2f}, "
              f"least {min(ratios[causal]):.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs=2, type=int, metavar=("BATCH", "HEADS"),
                        help="of all lengths (default: enough work items, not "
                             "more than a second)")
    add_arguments(parser)
    arguments = parse_arguments(parser)
    measure(arguments)


if __name__ == "__main__":
    main()

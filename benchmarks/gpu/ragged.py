#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Causal attention of ragged batches on a GPU, `flash_attn_varlen_func`, beside that
of FlashAttention-3 and -4, where they are installed, in one process.

    benchmarks/gpu/ragged.py [--dim 64 128] [--dtype bf16] [--heads 16]
                             [--kv-heads 16] [--rounds 5] [--no-sustained]

Batches have 16k tokens: sequences of 1k, of 4k, and of lengths that differ, from 64 to
4k. TFLOP/s, by the protocols of forward.py, count 4 * D for each query and key that it
sees; calls are replayed in CUDA graphs, without the host's time. "fixed length" is
`flash_attn_func` on sequences of one length, as many tokens.
Ratios are to the best of the others, and to "fixed length". Errors are the largest ones
against float64 of the last head of the last sequence, relative to the largest
magnitude.
"""

import argparse
import functools
import itertools
import math
import statistics

import torch

from decode import capture
from forward import (DTYPES, TOKENS, check_calls, find_peers, measure_rates,
                     print_rates)
import fovea

LENGTHS = {
    "sequences of 1k": [1024] * 16,
    "sequences of 4k": [4096] * 4,
    "lengths that differ": [4096, 64, 2900, 1500, 700, 333, 2048, 127, 1024,
                            901, 80, 1611, 250, 550, 200],
}
assert all(sum(lengths) == TOKENS for lengths in LENGTHS.values())


def reference_error(output, q, k, v, first):
    """Against float64, of the last head of the last sequence, from row `first` on."""
    q, k, v, output = (x[first:, -1].double() for x in (q, k, v, output))
    s = q @ k.T / math.sqrt(q.shape[1])
    s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
    expected = s.softmax(-1) @ v
    return ((output - expected).abs().max() / expected.abs().max()).item()


def measure(options, dim, lengths, peers):
    """The rates and the error of each function by name."""
    q, k, v = (torch.randn((TOKENS, heads, dim), device="cuda",
                           dtype=DTYPES[options.dtype])
               for heads in (options.heads, options.kv_heads, options.kv_heads))
    starts = torch.tensor([0, *itertools.accumulate(lengths)], device="cuda",
                          dtype=torch.int32)

    def bind(function):
        return functools.partial(
            function, q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts,
            max_seqlen_q=max(lengths), max_seqlen_k=max(lengths), causal=True)

    calls = {"fovea": bind(fovea.flash_attn_varlen_func)}
    if len(set(lengths)) == 1:
        whole = [x.view(len(lengths), lengths[0], *x.shape[1:])
                 for x in (q, k, v)]
        calls["fixed length"] = functools.partial(fovea.flash_attn_func, *whole,
                                                  causal=True)

    def get_error(output):
        output = output[0] if isinstance(output, tuple) else output
        return reference_error(output.view(q.shape), q, k, v, TOKENS - lengths[-1])

    theirs = {name: bind(function) for name, function in peers.items()}
    calls, errors = check_calls(calls, theirs, get_error)
    graphs = {name: capture([call]).replay for name, call in calls.items()}
    pairs = sum(length * (length + 1) // 2 for length in lengths)
    return measure_rates(options, graphs, 4 * options.heads * dim * pairs), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dim", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, default=16)
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-sustained", action="store_true")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{options.dtype}, {options.heads} heads on {options.kv_heads}; "
          "TFLOP/s burst/sustained, ratio to the best of the others, to fixed "
          "length, error")
    peers = {name: ragged for name, (_, ragged) in find_peers().items()}
    torch.manual_seed(1)
    ours = ("fovea", "fixed length")
    for dim, (label, lengths) in itertools.product(options.dim, LENGTHS.items()):
        with torch.no_grad():
            rates, errors = measure(options, dim, lengths, peers)
        others = [rate for name, rate in rates.items() if name not in ours]
        print(f"d = {dim}, {label}")
        for name, rate in rates.items():
            best = [max(at) for at in zip(*others)] or rate
            whole = rates.get("fixed length", rate)
            print_rates(name, rate, [best, whole], errors[name])


if __name__ == "__main__":
    main()

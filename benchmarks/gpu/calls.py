#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warm call from Python costs, beside PyTorch's own attention.

    benchmarks/gpu/calls.py [--device cpu|cuda] [--calls 2000] [--limit]

Operands are so small that a kernel takes next to nothing on one thread; on a GPU
the host is timed while kernels run behind it. A time is the least of the means of
10 calls. With `--limit`, exits with status 1 if a call of a Function takes more than
8 us, or one of the operator more than 15.
"""

import argparse
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

_HERE = pathlib.Path(__file__).resolve()
for folder in (_HERE.parents[2] / "python", _HERE.parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

LIMITS = {"Function": 8.0, "operator": 15.0}


def microseconds(call, options):
    """The least of the means of rounds, each short enough to run undisturbed on a
    machine that others use."""
    for _ in range(50):
        call()
    best, done = float("inf"), 0
    count = 10
    while done < options.calls:
        if options.device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
        done += count
    return best * 1e6


def make_flash_calls(device, dtype, size):
    """Calls of FlashAttention's functions by their names."""
    def rows(*shape):
        return torch.randn(*shape, 4, size, device=device, dtype=dtype)

    def integers(values):
        return torch.tensor(values, dtype=torch.int32, device=device)

    x, packed, ends = rows(1, 8), rows(8), integers([0, 3, 8])
    query, key, value, cache = rows(2, 1), rows(2, 1), rows(2, 1), rows(2, 64)
    pages, values = rows(16, 16), rows(16, 16)
    lengths, table = integers([17, 40]), integers([[3, 0, 5, 2], [1, 4, 7, 6]])
    cos, sin = (torch.ones(64, size // 2, device=device, dtype=dtype) * x for x in (1, 0))
    return {
        "flash_attn_func": lambda: fovea.flash_attn_func(x, x, x, causal=True),
        "flash_attn_varlen_func": lambda: fovea.flash_attn_varlen_func(
            packed, packed, packed, ends, ends, causal=True),
        "flash_attn_with_kvcache": lambda: fovea.flash_attn_with_kvcache(
            query, cache, cache, cache_seqlens=lengths, causal=True),
        "flash_attn_with_kvcache, pages": lambda: fovea.flash_attn_with_kvcache(
            query, pages, values, cache_seqlens=lengths, page_table=table, causal=True),
        "flash_attn_with_kvcache, append": lambda: fovea.flash_attn_with_kvcache(
            query, pages, values, key, value, rotary_cos=cos,
            rotary_sin=sin, cache_seqlens=lengths, page_table=table, causal=True),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"),
                        default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    fovea.set_num_threads(1)

    dtype = torch.float16 if options.device == "cuda" else torch.float32
    size = 64 if options.device == "cuda" else 16
    q, k, v = (torch.randn(1, 4, 8, size, device=options.device, dtype=dtype)
               for _ in range(3))
    bias = torch.randn(4, 8, 8, device=options.device)
    attn_mask = torch.randn(8, 8, device=options.device).to(dtype)

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    ids = torch.arange(8, device=options.device) // 3

    def documents(b, h, q_idx, kv_idx):
        return ids[q_idx] == ids[kv_idx]

    def biased(score, b, h, q_idx, kv_idx):
        return score + bias[h, q_idx, kv_idx]

    text = fovea.trace(None, causal, query=q, key=k, value=v)
    function = fovea.compile(
        text, "host" if options.device == "cpu" else "gpu")
    fovea.flex_attention(q, k, v)
    operator = torch.ops.fovea.attention
    calls = {
        "Function": lambda: function(q, k, v),
        "operator": lambda: operator(q, k, v, [], [], text, False),
        "flex_attention": lambda: fovea.flex_attention(q, k, v),
        "flex_attention, causal": lambda: fovea.flex_attention(
            q, k, v, mask_mod=causal),
        "flex_attention, documents": lambda: fovea.flex_attention(
            q, k, v, mask_mod=fovea.and_masks(causal, documents)),
        "flex_attention, bias": lambda: fovea.flex_attention(q, k, v, biased),
        "attention, causal": lambda: fovea.attention(q, k, v, causal=True),
        "scaled_dot_product_attention": lambda: (
            fovea.scaled_dot_product_attention(q, k, v, is_causal=True)),
        "scaled_dot_product_attention, mask": lambda: (
            fovea.scaled_dot_product_attention(q, k, v, attn_mask)),
        "PyTorch's scaled_dot_product_attention": lambda: (
            F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    }
    calls |= make_flash_calls(options.device, dtype, size)
    print(f"PyTorch {torch.__version__}, {options.device}, "
          f"{'the library' if fovea._native.call else 'Python'} calls")
    missed = False
    for name, call in calls.items():
        time_ = microseconds(call, options)
        limit = LIMITS.get(name)
        missed |= limit is not None and time_ > limit
        print(f"{name:42} {time_:7.1f} us"
              f"{f'  (limit {limit:.0f})' if limit else ''}")
    if options.limit and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()

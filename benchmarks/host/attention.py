#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's attention on this machine beside PyTorch's, in one process.

    benchmarks/host/attention.py [--part sdpa|decode|cache|flex|tensors|memory|
                                         compile]
                                 [--dtype f32] [--dim 64] [--length 1024]
                                 [--variant 'soft cap'] [--threads N]
                                 [--tile 96x64]

Needs PyTorch; `flex` also needs a C++ compiler, for torch.compile. In each round
both sides run once, in turn; a cell shows the median of the rounds' ratios of
times, for a machine's speed shifts between runs but hardly within a round.
`--tile` compares tiles of queries times keys that the compiler would not choose;
`sdpa` has a row for each.
Errors are the largest absolute ones against float64.
"""

import argparse
import gc
import math
import os
import pathlib
import platform
import re
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F

# Compiling is measured, not finding what an earlier run compiled.
os.environ.setdefault("FOVEA_CACHE_DIR", "")
for folder in (pathlib.Path(__file__).resolve().parents[2] / "python",
               pathlib.Path(__file__).resolve().parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
#: (batch, heads) for a length: enough work items, not more than a second.
SIZES = {37: (2, 16), 1000: (2, 16), 1024: (2, 16), 4096: (1, 4)}

CAUSAL = """
  %causal = arith.cmpi sge, %i, %j : index
  attn.yield %causal : i1"""
WINDOW = """
  %causal = arith.cmpi sge, %i, %j : index
  %size = arith.constant 256 : index
  %distance = arith.subi %i, %j : index
  %near = arith.cmpi slt, %distance, %size : index
  %keep = arith.andi %causal, %near : i1
  attn.yield %keep : i1"""
SOFT_CAP = """
  %cap = arith.constant 20.0 : f32
  %ratio = arith.divf %score, %cap : f32
  %tanh = math.tanh %ratio : f32
  %capped = arith.mulf %tanh, %cap : f32
  attn.yield %capped : f32"""
ALIBI = """
  %slope = tensor.extract %slopes[%h] : tensor<HEADSxf32>
  %distance = arith.subi %j, %i : index
  %integer = arith.index_cast %distance : index to i32
  %float = arith.sitofp %integer : i32 to f32
  %bias = arith.mulf %slope, %float : f32
  %biased = arith.addf %score, %bias : f32
  attn.yield %biased : f32"""
BIAS = """
  %bias = tensor.extract %biases[%h, %i, %j] : tensor<HEADSx?x?xf32>
  %biased = arith.addf %score, %bias : f32
  attn.yield %biased : f32"""
STRIDED = """
  %stride = arith.constant 4 : index
  %row = arith.remsi %i, %stride : index
  %column = arith.remsi %j, %stride : index
  %keep = arith.cmpi eq, %row, %column : index
  attn.yield %keep : i1"""
DENSE = """
  %keep = tensor.extract %kept[%i, %j] : tensor<?x?xi1>
  attn.yield %keep : i1"""
#: Operands that a region reads besides the score and its place.
CAPTURES = {ALIBI: "%slopes: tensor<HEADSxf32>",
            BIAS: "%biases: tensor<HEADSx?x?xf32>",
            DENSE: "%kept: tensor<?x?xi1>"}


def graph(dtype, batch, heads, dim, score=None, mask=None, queries="?",
          kv_heads=None):
    """The graph of one attention, any lengths, as MLIR."""
    query = f"tensor<{batch}x{heads}x{queries}x{dim}x{dtype}>"
    operand = f"tensor<{batch}x{kv_heads or heads}x?x{dim}x{dtype}>"
    scores = f"tensor<{batch}x{heads}x{queries}x?xf32>"
    captures = "".join(", " + CAPTURES[region].replace("HEADS", str(heads))
                       for region in (score, mask) if region in CAPTURES)
    lines = [f"func.func @attend(%q: {query}, %k: {operand}, %v: {operand}"
             f"{captures}) -> {query} {{",
             f"%s = attn.scores %q, %k : {query}, {operand} -> {scores}",
             f"%t = attn.scale %s by {1 / math.sqrt(dim)} : {scores}"]
    last = "%t"
    if score:
        body = score.replace("HEADS", str(heads))
        lines.append(f"%a = attn.modify {last} {{\n^bb0(%score: f32, "
                     "%b: index, %h: index, %i: index, %j: index):"
                     f"{body}\n}} : {scores}")
        last = "%a"
    if mask:
        lines.append(f"%m = attn.mask {last} {{\n^bb0(%b: index, %h: index, "
                     f"%i: index, %j: index):{mask}\n}} : {scores}")
        last = "%m"
    lines += [f"%p = attn.softmax {last} : {scores} -> {scores}",
              f"%o = attn.values %p, %v : {scores}, {operand} -> {query}",
              f"return %o : {query}", "}"]
    return "\n".join(lines)


def with_tile(text, tile):
    """The graph after fusion, with a tile of the schedule if one is given."""
    if not tile:
        return text
    return re.sub(r"tile = \d+x\d+", f"tile = {tile}",
                  fovea.compile(text).mlir("fused"))


def compare(ours, theirs, seconds):
    """Median of theirs/ours over interleaved rounds, and our median time."""
    ours(), theirs()
    start = time.perf_counter()
    ratios, times = [], []
    while len(ratios) < 5 or time.perf_counter() - start < seconds:
        a = time.perf_counter()
        theirs()
        b = time.perf_counter()
        ours()
        c = time.perf_counter()
        ratios.append((b - a) / (c - b))
        times.append(c - b)
    return statistics.median(ratios), statistics.median(times)


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def operands(dtype, batch, heads, length, dim):
    torch.manual_seed(0)
    return [torch.randn(batch, heads, length, dim).to(DTYPES[dtype])
            for _ in range(3)]


def max_error(result, reference):
    return (result.double() - reference).abs().max().item()


def measure_sdpa(arguments):
    """Full and causal attention beside scaled_dot_product_attention."""
    print("| dtype | d | s | mask | tile | ratio | ms | GFLOP/s | error | "
          "theirs |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    ratios = {False: [], True: []}
    for dtype in arguments.dtype or DTYPES:
        for dim in arguments.dim or (64, 128):
            for length in arguments.length or SIZES:
                for causal in (False, True):
                    for tile in arguments.tile or [None]:
                        ratios[causal].append(measure_cell(
                            arguments, dtype, dim, length, causal, tile))
    for causal, name in ((False, "full"), (True, "causal")):
        print(f"{name}: geometric mean {geometric_mean(ratios[causal]):.2f}, "
              f"least {min(ratios[causal]):.2f}")


def measure_cell(arguments, dtype, dim, length, causal, tile):
    """One row of the table; returns the ratio of times."""
    batch, heads = SIZES.get(length, (1, 4))
    q, k, v = operands(dtype, batch, heads, length, dim)
    attend = fovea.compile(with_tile(
        graph(dtype, batch, heads, dim, mask=CAUSAL if causal else None), tile))
    theirs = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    ratio, seconds = compare(lambda: attend(q, k, v), theirs, arguments.seconds)
    flops = 4 * batch * heads * length * length * dim
    flops *= (length + 1) / (2 * length) if causal else 1
    # One head of the reference is enough, and fits.
    reference = F.scaled_dot_product_attention(
        *[x[:1, :1].double() for x in (q, k, v)], is_causal=causal)
    errors = [max_error(f()[:1, :1], reference)
              for f in (lambda: attend(q, k, v), theirs)]
    print(f"| {dtype} | {dim} | {length} | {'causal' if causal else 'full'} | "
          f"{tile or 'chosen'} | {ratio:.2f} | {seconds * 1e3:.2f} | "
          f"{flops / seconds / 1e9:.0f} | {errors[0]:.1e} | {errors[1]:.1e} |",
          flush=True)
    return ratio


def measure_decode(arguments):
    """One query of 32 heads on 8 or 32 heads of keys, beside
    scaled_dot_product_attention."""
    print("| dtype | d | s | heads of keys | ratio | ms | GB/s | error | "
          "theirs |")
    print("|---|---|---|---|---|---|---|---|---|")
    heads = 32
    for dtype in arguments.dtype or DTYPES:
        for dim in arguments.dim or (64, 128):
            for length in arguments.length or (1024, 4096):
                for kv_heads in (8, 32):
                    k, v = operands(dtype, 1, kv_heads, length, dim)[:2]
                    q = operands(dtype, 1, heads, 1, dim)[2]
                    attend = fovea.compile(graph(dtype, 1, heads, dim,
                                                 queries=1, kv_heads=kv_heads))
                    theirs = lambda: F.scaled_dot_product_attention(
                        q, k, v, enable_gqa=heads != kv_heads)
                    ratio, seconds = compare(lambda: attend(q, k, v), theirs,
                                             arguments.seconds)
                    reference = F.scaled_dot_product_attention(
                        q.double(), k.double(), v.double(),
                        enable_gqa=heads != kv_heads)
                    errors = [max_error(f(), reference)
                              for f in (lambda: attend(q, k, v), theirs)]
                    size = k.nbytes + v.nbytes
                    print(f"| {dtype} | {dim} | {length} | {kv_heads} | "
                          f"{ratio:.2f} | {seconds * 1e3:.3f} | "
                          f"{size / seconds / 1e9:.1f} | {errors[0]:.1e} | "
                          f"{errors[1]:.1e} |", flush=True)


def measure_cache(arguments):
    """One query of 32 heads over keys and values beyond the caches: the share of
    the rate at which PyTorch adds the same memory up, where rows of a head lie in
    order, [B, H, S, D], apart, [B, S, H, D] with a length for each sequence, and in
    pages of 16 in random order."""
    print("| dtype | d | s | heads of keys | in order | rows apart | pages of 16 "
          "| GB/s of reads |")
    print("|---|---|---|---|---|---|---|---|")
    heads, page = 32, 16
    for dtype in arguments.dtype or DTYPES:
        for dim in arguments.dim or (128,):
            for kv_heads in (8, 32):
                length = (arguments.length or [262144 // kv_heads])[0]
                k, v = operands(dtype, 1, kv_heads, length, dim)[:2]
                q = operands(dtype, 1, heads, 1, dim)[2]
                row, keys, values = (x.transpose(1, 2).contiguous()
                                     for x in (q, k, v))
                lengths = torch.tensor([length], dtype=torch.int32)
                pools = [x.view(-1, page, kv_heads, dim) for x in (keys, values)]
                table = torch.randperm(length // page, dtype=torch.int32)[None]
                words = [x.view(torch.float32) for x in (k, v)]
                read = lambda: [x.sum() for x in words]
                calls = [
                    lambda: fovea.scaled_dot_product_attention(
                        q, k, v, enable_gqa=heads != kv_heads),
                    lambda: fovea.flash_attn_with_kvcache(
                        row, keys, values, cache_seqlens=lengths),
                    lambda: fovea.flash_attn_with_kvcache(
                        row, *pools, cache_seqlens=lengths, page_table=table)]
                shares, rates = [], []
                for call in calls:
                    share, seconds = compare(call, read, arguments.seconds)
                    shares.append(share)
                    rates.append((k.nbytes + v.nbytes) / seconds / share / 1e9)
                cells = " | ".join(f"{share:.2f}" for share in shares)
                print(f"| {dtype} | {dim} | {length} | {kv_heads} | {cells} | "
                      f"{statistics.median(rates):.0f} |", flush=True)


def measure_flex(arguments):
    """Soft cap, ALiBi and a window beside compiled FlexAttention."""
    from torch.nn.attention.flex_attention import (create_block_mask,
                                                   flex_attention)
    batch, heads = 1, 8
    slopes = torch.tensor([2.0 ** -(h + 1) for h in range(heads)])
    is_causal = lambda b, h, i, j: i >= j
    is_near = lambda b, h, i, j: (i >= j) & (i - j < 256)
    cases = {
        "soft cap": (SOFT_CAP, None,
                     lambda s, b, h, i, j: 20.0 * torch.tanh(s / 20.0), None),
        "soft cap, causal": (
            SOFT_CAP, CAUSAL,
            lambda s, b, h, i, j: 20.0 * torch.tanh(s / 20.0), is_causal),
        "ALiBi, causal": (
            ALIBI, CAUSAL,
            lambda s, b, h, i, j: s + slopes[h] * (j - i), is_causal),
        "window 256": (None, WINDOW, None, is_near),
    }
    print("| variant | dtype | d | s | ratio | ms | error | theirs |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name, (score, mask, score_mod, mask_mod) in cases.items():
        if arguments.variant and name not in arguments.variant:
            continue
        for dtype in arguments.dtype or ("f32", "bf16"):
            for dim in arguments.dim or (64, 128):
                length = (arguments.length or [2048])[0]
                q, k, v = operands(dtype, batch, heads, length, dim)
                block_mask = mask_mod and create_block_mask(
                    mask_mod, 1, 1, length, length, device="cpu")
                torch.compiler.reset()
                flex = torch.compile(flex_attention, dynamic=False)
                theirs = lambda: flex(q, k, v, score_mod=score_mod,
                                      block_mask=block_mask)
                attend = fovea.compile(graph(dtype, batch, heads, dim, score,
                                             mask))
                extra = [slopes] if score is ALIBI else []
                ours = lambda: attend(q, k, v, *extra)
                with torch.no_grad():
                    ratio, seconds = compare(ours, theirs, arguments.seconds)
                    i = torch.arange(length)[:, None]
                    j = torch.arange(length)
                    s = (q[:, :1].double() @ k[:, :1].double().mT
                         / math.sqrt(dim))
                    if score_mod:
                        s = score_mod(s, 0, 0, i, j)
                    if mask_mod:
                        s = s.masked_fill(~mask_mod(0, 0, i, j), -math.inf)
                    reference = s.softmax(-1) @ v[:, :1].double()
                    errors = [max_error(f()[:, :1], reference)
                              for f in (ours, theirs)]
                ratios.append(ratio)
                print(f"| {name} | {dtype} | {dim} | {length} | {ratio:.2f} | "
                      f"{seconds * 1e3:.2f} | {errors[0]:.1e} | "
                      f"{errors[1]:.1e} |", flush=True)
    print(f"flex: geometric mean {geometric_mean(ratios):.2f}, "
          f"least {min(ratios):.2f}")


def measure_tensors(arguments):
    """Dense biases and masks, and a strided one, beside
    scaled_dot_product_attention with that mask as a tensor."""
    batch, heads, length = 1, 8, (arguments.length or [1024])[0]
    i, j = torch.arange(length)[:, None], torch.arange(length)
    bias = torch.randn(heads, length, length)
    kept = torch.rand(length, length) < 0.5
    cases = {"bias[h, i, j]": (BIAS, None, bias, bias[None]),
             "mask[i, j]": (None, DENSE, kept, kept),
             "strided": (None, STRIDED, None, (i % 4) == (j % 4))}
    print("| variant | dtype | d | s | ratio | ms | error | theirs |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (score, mask, captured, tensor) in cases.items():
        for dtype in arguments.dtype or ("f32", "bf16"):
            for dim in arguments.dim or (64,):
                q, k, v = operands(dtype, batch, heads, length, dim)
                # Their mask has their operands' type.
                theirs_mask = (tensor if tensor.dtype == torch.bool
                               else tensor.to(DTYPES[dtype]))
                theirs = lambda: F.scaled_dot_product_attention(
                    q, k, v, attn_mask=theirs_mask)
                attend = fovea.compile(graph(dtype, batch, heads, dim, score,
                                             mask))
                extra = [] if captured is None else [captured]
                ours = lambda: attend(q, k, v, *extra)
                ratio, seconds = compare(ours, theirs, arguments.seconds)
                reference = F.scaled_dot_product_attention(
                    q[:, :1].double(), k[:, :1].double(), v[:, :1].double(),
                    attn_mask=(tensor if tensor.dtype == torch.bool
                               else tensor[:, :1].double()))
                errors = [max_error(f()[:, :1], reference)
                          for f in (ours, theirs)]
                print(f"| {name} | {dtype} | {dim} | {length} | {ratio:.2f} | "
                      f"{seconds * 1e3:.2f} | {errors[0]:.1e} | "
                      f"{errors[1]:.1e} |", flush=True)


def measure_memory(arguments):
    """Memory of one head of 16384 x 16384 in f32, above its operands."""
    q, k, v = operands("f32", 1, 1, 16384, 64)
    for name, mask in (("full", None), ("causal", CAUSAL)):
        attend = fovea.compile(graph("f32", 1, 1, 64, mask=mask))
        attend(q[:, :, :64], k[:, :, :64], v[:, :, :64])
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        attend(q, k, v)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"memory: 16384 x 16384, one head, f32, {name}: "
              f"{(after - before) / 1024:.1f} MB above the operands "
              "(bound 100)")


def measure_compile(arguments):
    """From a graph's text to a function that can be called."""
    warm = graph("f32", 1, 1, 32)
    fovea.compile(warm)
    for dtype in arguments.dtype or DTYPES:
        for dim in arguments.dim or (64, 128):
            for name, score, mask in (("full", None, None),
                                      ("causal", None, CAUSAL),
                                      ("soft cap, window", SOFT_CAP, WINDOW)):
                times = []
                for heads in range(2, 7):  # Different texts: nothing is cached.
                    text = graph(dtype, 1, heads, dim, score, mask)
                    start = time.perf_counter()
                    fovea.compile(text)
                    times.append(time.perf_counter() - start)
                print(f"compile: {dtype}, d = {dim}, {name}: "
                      f"{statistics.median(times) * 1e3:.0f} ms (bound 400)",
                      flush=True)


def describe_machine():
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            name = next(line.split(":", 1)[1].strip() for line in info
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return (f"{name}, {torch.get_num_threads()} threads; "
            f"PyTorch {torch.__version__} "
            f"({torch.backends.cpu.get_cpu_capability()})")


def add_arguments(parser):
    """The arguments of every benchmark of this folder."""
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--dim", action="append", type=int)
    parser.add_argument("--length", action="append", type=int)
    parser.add_argument("--threads", type=int, default=0,
                        help="threads of both sides (default: all cores)")
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="time of a cell's rounds, at least 5 of them")


def parse_arguments(parser):
    """Sets the threads of both sides, and says what this machine is."""
    arguments = parser.parse_args()
    fovea.set_num_threads(arguments.threads)
    torch.set_num_threads(fovea.get_num_threads())
    print(describe_machine())
    return arguments


def main():
    parts = {"sdpa": measure_sdpa, "decode": measure_decode,
             "cache": measure_cache, "flex": measure_flex,
             "tensors": measure_tensors, "memory": measure_memory,
             "compile": measure_compile}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=parts,
                        help="what to measure (default: everything)")
    parser.add_argument("--variant", action="append",
                        help="of flex, as `soft cap` (default: all)")
    parser.add_argument("--tile", action="append",
                        help="of sdpa, as 96x64 (default: the compiler's)")
    add_arguments(parser)
    arguments = parse_arguments(parser)
    for name in arguments.part or parts:
        parts[name](arguments)


if __name__ == "__main__":
    main()

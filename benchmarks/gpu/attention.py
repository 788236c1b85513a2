#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's attention on a GPU beside PyTorch's cuDNN, in one process; also beside
FlashAttention-3 and -4 where they are installed (`fa3_fwd_interface`,
`flash_attn.cute`).

    benchmarks/gpu/attention.py [--target sm_90a] [--dim 64 128 256]
                                [--length 1024 4096 16384] [--dtype bf16]
                                [--rounds 5] [--schedule 128x128/8/2/stale ...]

16k tokens, hidden size 2048: heads = 2048 / dim, batch = 16384 / length. Two
protocols, for a card under load lowers its clock: *burst* sleeps 50 ms, warms up
three times and takes the median of launches timed by events for some 25 ms, in
rounds interleaved over all kernels; *sustained* runs 1.2 s back to back and
takes the mean of the second half. TFLOP/s count 4 * B * H * S * S * D, halved
for causal. Errors are the largest ones against float64 on a part of the rows,
relative to the largest magnitude. With `--schedule`, schedules are compared with
the one that the compiler chooses: tile/warps/stages, then the maximum, blocks
and products where they are not the default (`#attn.schedule`).
"""

import argparse
import functools
import math
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

_HERE = pathlib.Path(__file__).resolve()
for folder in (_HERE.parents[2] / "python", _HERE.parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

TOKENS, HIDDEN = 16384, 2048
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
# The parts of a schedule by what they can be.
PARTS = {"exact": "maximum", "stale": "maximum", "tiles": "blocks",
         "persistent": "blocks", "overlapped": "products",
         "alternating": "products"}

CAUSAL = """
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : SCORES"""


def scheduled(dtype, dim, causal, schedule):
    """One attention of any batch and length with a schedule, as MLIR."""
    t = f"tensor<?x{HIDDEN // dim}x?x{dim}x{dtype}>"
    tile, warps, stages, *choices = schedule.split("/")
    text = (f"tile = {tile}, order = {'longest_first' if causal else 'linear'}, "
            f"warps = {warps}, stages = {stages}")
    for choice in choices:
        text += f", {PARTS[choice]} = {choice}"
    mask = CAUSAL[CAUSAL.index("{"):CAUSAL.rindex(":")] if causal else ""
    return f"""
func.func @attend(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %o = attn.attention %q, %k, %v scale({1 / math.sqrt(dim)})
    {"mask" if causal else ""} {mask} {{schedule = #attn.schedule<{text}>}}
    : {t}, {t}, {t} -> {t}
  return %o : {t}
}}"""


def graph(dtype, dim, causal, schedule=None):
    """The graph of one attention of any batch and length, as MLIR."""
    if schedule:
        return scheduled(dtype, dim, causal, schedule)
    heads = HIDDEN // dim
    t = f"tensor<?x{heads}x?x{dim}x{dtype}>"
    s = f"tensor<?x{heads}x?x?xf32>"
    mask = CAUSAL.replace("SCORES", s) if causal else ""
    return f"""
func.func @attend(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %s = attn.scores %q, %k : {t}, {t} -> {s}
  %t = attn.scale %s by {1 / math.sqrt(dim)} : {s}
  {mask}
  %p = attn.softmax {"%m" if causal else "%t"} : {s} -> {s}
  %o = attn.values %p, %v : {s}, {t} -> {t}
  return %o : {t}
}}"""


def reference_error(output, q, k, v, causal):
    """Against float64 on the last 64 rows of the first and last heads."""
    rows = slice(max(q.shape[2] - 64, 0), None)
    worst = 0.0
    for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        s = (q[b, h, rows].double() @ k[b, h].double().T) / math.sqrt(
            q.shape[3])
        if causal:
            i = torch.arange(q.shape[2], device=q.device)[rows, None]
            j = torch.arange(k.shape[2], device=q.device)[None]
            s = s.masked_fill(j > i, -math.inf)
        expected = s.softmax(-1) @ v[b, h].double()
        error = (output[b, h, rows].double() - expected).abs().max()
        worst = max(worst, (error / expected.abs().max()).item())
    return worst


def burst(call):
    """Seconds of one launch, of some that are queued together, so that the
    time of the host, which is the same for all lengths, is not in it."""
    torch.cuda.synchronize()
    time.sleep(0.05)
    for _ in range(3):
        each = timed([call])[0]
    return statistics.median(timed([call] * max(int(0.025 / each), 4)))


def timed(calls):
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)]
              for _ in calls]
    for call, (start, end) in zip(calls, events):
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in events]


def sustained(call, seconds=1.2):
    each = burst(call)
    launches = max(int(seconds / each), 4)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for index in range(launches):
        if index == launches // 2:
            events[0].record()
        call()
    events[1].record()
    events[1].synchronize()
    return events[0].elapsed_time(events[1]) / 1e3 / (launches -
                                                      launches // 2)


def cudnn(q, k, v, causal):
    def call():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return call


def find_peers():
    """Calls of other libraries, by name: of [B, S, H, D], and if causal."""
    peers = {}
    try:
        import fa3_fwd_interface as flash3
        peers["FlashAttention-3"] = flash3.flash_attn_func
    except ImportError:
        pass
    try:
        import flash_attn.cute as flash4
        peers["FlashAttention-4"] = flash4.flash_attn_func
    except ImportError:
        pass
    return peers


def peer(function, q, k, v, causal):
    """A call on tensors in the layout that these libraries take, whose result
    is in ours."""
    operands = [x.transpose(1, 2).contiguous() for x in (q, k, v)]

    def call():
        output = function(*operands, causal=causal)
        if isinstance(output, tuple):
            output = output[0]
        return output.transpose(1, 2)
    return call


def parse_options(description, dims, lengths=(1024, 4096, 16384), rounds=5,
                  kinds=(), schedules=False):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--target", default="gpu")
    parser.add_argument("--dim", type=int, nargs="+", default=dims)
    parser.add_argument("--length", type=int, nargs="+", default=lengths)
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=rounds)
    if kinds:
        parser.add_argument("--kind", nargs="+", default=kinds, choices=kinds)
        parser.add_argument("--no-peer", action="store_true")
    else:
        parser.add_argument("--no-sustained", action="store_true")
    if schedules:
        parser.add_argument("--schedule", nargs="+", default=[])
    return parser.parse_args()


def main():
    options = parse_options(__doc__, [64, 128, 256], schedules=True)

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, {options.dtype}, target "
          f"{options.target}; TFLOP/s burst/sustained")
    schedules = [None, *options.schedule]
    peers = find_peers()
    names = [*(schedule or "fovea" for schedule in schedules), *peers, "cuDNN"]
    torch.manual_seed(1)
    for dim in options.dim:
        functions = {}
        for causal in (False, True):
            for schedule in schedules:
                begin = time.perf_counter()
                function = fovea.compile(
                    graph(options.dtype, dim, causal, schedule),
                    target=options.target)
                elapsed = time.perf_counter() - begin
                functions.setdefault(causal, []).append(function)
                print(f"d={dim} {'causal' if causal else 'full'} "
                      f"{schedule or ''}: compiled in {elapsed * 1e3:.0f} ms; "
                      f"{function.resources}")
        for length in options.length:
            shape = (TOKENS // length, HIDDEN // dim, length, dim)
            q, k, v = (torch.randn(shape, device="cuda",
                                   dtype=DTYPES[options.dtype])
                       for _ in range(3))
            for causal in (False, True):
                flops = 4 * TOKENS * length * HIDDEN / (2 if causal else 1)
                calls = [functools.partial(function, q, k, v)
                         for function in functions[causal]]
                calls += [peer(function, q, k, v, causal)
                          for function in peers.values()]
                calls.append(cudnn(q, k, v, causal))
                errors = [reference_error(call(), q, k, v, causal)
                          for call in calls]
                rounds = [[burst(call) for call in calls]
                          for _ in range(options.rounds)]
                rates = [[flops / statistics.median(times) / 1e12]
                         for times in zip(*rounds)]
                if not options.no_sustained:
                    for rate, call in zip(rates, calls):
                        rate.append(flops / sustained(call) / 1e12)
                print(f"s={length} d={dim} {'causal' if causal else 'full'}")
                best = [max(each) for each in zip(*rates[len(schedules):])]
                for name, rate, error in zip(names, rates, errors):
                    text = "/".join(f"{x:.0f}" for x in rate)
                    ratio = "/".join(f"{a / b:.2f}"
                                     for a, b in zip(rate, best))
                    print(f"  {name:24}{text:>14}{ratio:>14}{error:10.1e}",
                          flush=True)


if __name__ == "__main__":
    main()

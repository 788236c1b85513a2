#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's attention on a GPU beside cuDNN, and beside FlashAttention-3 and -4
(`fa3_fwd_interface`, `flash_attn.cute`) where they are installed, in one
process.

    benchmarks/gpu/forward.py [--target sm_90a] [--dim 64 128 256]
                              [--length 1024 4096 16384] [--dtype bf16]
                              [--rounds 5] [--flex] [--output FILE]
                              [--schedule 128x128/8/2/stale ...]

16k tokens, hidden size 2048: heads = 2048 / dim, batch = 16384 / length. Two
protocols, for a card under load lowers its clock: *burst* sleeps 50 ms, warms up
three times and takes the median of launches timed by events for some 25 ms, in
rounds interleaved over all kernels; *sustained* runs 1.2 s back to back and
takes the mean of the second half, in two rounds, the second one backwards, behind
one that does not count. TFLOP/s count 4 * B * H * S * S * D, halved for causal.
Errors are the largest ones against float64 on a part of the rows, relative to the
largest magnitude.

"fovea" is compiled for the lengths of a cell, as cuDNN's graphs are; "fovea, any
length" is one kernel for all of them. Ratios are to the best of the others. With
`--flex` PyTorch's FlexAttention, which compiles for seconds, is among these.
With `--schedule`, schedules are compared with those that the compiler chooses:
tile/warps/stages, then the maximum, keys, blocks, products and `cluster=2` where they
are not the default (`#attn.schedule`). `--output` writes FILE.json, and the plots FILE.svg
and FILE.png if matplotlib is there.
"""

import argparse
import functools
import importlib
import json
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
         "persistent": "blocks", "shared": "blocks", "dealt": "blocks",
         "overlapped": "products", "alternating": "products",
         "free": "groups", "in_turn": "groups",
         "ascending": "keys", "descending": "keys"}

CAUSAL = """
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : SCORES"""


def schedule_text(schedule, is_masked):
    """What `#attn.schedule` has for a schedule as `--schedule` names it."""
    tile, warps, stages, *choices = schedule.split("/")
    text = (f"tile = {tile}, order = {'longest_first' if is_masked else 'linear'}, "
            f"warps = {warps}, stages = {stages}")
    for choice in choices:
        text += f", {PARTS[choice]} = {choice}" if choice in PARTS else f", {choice}"
    return text


def scheduled(dtype, dim, causal, schedule):
    """One attention of any batch and length with a schedule, as MLIR."""
    t = f"tensor<?x{HIDDEN // dim}x?x{dim}x{dtype}>"
    mask = CAUSAL[CAUSAL.index("{"):CAUSAL.rindex(":")] if causal else ""
    return f"""
func.func @attend(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %o = attn.attention %q, %k, %v scale({1 / math.sqrt(dim)})
    {"mask" if causal else ""} {mask} {{schedule = #attn.schedule<{schedule_text(schedule, causal)}>}}
    : {t}, {t}, {t} -> {t}
  return %o : {t}
}}"""


def graph(dtype, dim, causal, schedule=None, length=None):
    """The graph of one attention of a length or, without one, of any batch and
    length, as MLIR."""
    if schedule:
        return scheduled(dtype, dim, causal, schedule)
    heads = HIDDEN // dim
    batch, size = (TOKENS // length, length) if length else "??"
    t = f"tensor<{batch}x{heads}x{size}x{dim}x{dtype}>"
    s = f"tensor<{batch}x{heads}x{size}x{size}xf32>"
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


def measure_rates(options, calls, flops):
    """TFLOP/s of each call by name: burst, and sustained where it is wanted."""
    rounds = [[burst(call) for call in calls.values()]
              for _ in range(options.rounds)]
    rates = {name: [flops / statistics.median(times) / 1e12]
             for name, times in zip(calls, zip(*rounds))}
    if not options.no_sustained:
        names = list(calls)
        times = {name: [] for name in names}
        # What is first after a rest has up to 3% less than behind others.
        sustained(calls[names[0]])
        for name in names + names[::-1]:
            times[name].append(sustained(calls[name]))
        for name, both in times.items():
            rates[name].append(flops / statistics.mean(both) / 1e12)
    return rates


def print_rates(name, rate, ratios, error):
    """Prints a kernel's rates, burst and sustained, and their ratios to others."""
    columns = ["/".join(f"{x:.0f}" for x in rate)]
    columns += ["/".join(f"{a / b:.2f}" for a, b in zip(rate, other))
                for other in ratios]
    print(f"  {name:24}" + "".join(f"{column:>14}" for column in columns) +
          f"{error:10.1e}", flush=True)


def find_peers():
    """Calls of other libraries, by name: of [B, S, H, D], and if causal; and
    of ragged batches, [T, H, D]."""
    peers = {}
    for name, module in (("FlashAttention-3", "fa3_fwd_interface"),
                         ("FlashAttention-4", "flash_attn.cute")):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        peers[name] = library.flash_attn_func, library.flash_attn_varlen_func
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


def flex():
    """A call of FlexAttention that makes its calls, as of other peers."""
    from torch.nn.attention.flex_attention import (create_block_mask,
                                                   flex_attention)
    function = torch.compile(flex_attention, dynamic=False)
    masks = {}

    def call(q, k, v, causal):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        mask = None
        if causal:
            length = q.shape[2]
            if length not in masks:
                masks[length] = create_block_mask(
                    lambda b, h, i, j: i >= j, None, None, length, length)
            mask = masks[length]
        return function(q, k, v, block_mask=mask).transpose(1, 2)
    return call


def write(path, cells, names):
    """Writes all cells as JSON, and as plots of burst rates over lengths."""
    path.with_suffix(".json").write_text(json.dumps(cells, indent=1))
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plots: matplotlib is not installed")
        return
    groups = sorted({(cell["dim"], cell["causal"]) for cell in cells})
    figure, axes = pyplot.subplots(
        1, len(groups), figsize=(3 * len(groups), 3.2), sharey=True,
        squeeze=False)
    for axis, (dim, causal) in zip(axes[0], groups):
        group = [cell for cell in cells
                 if (cell["dim"], cell["causal"]) == (dim, causal)]
        for name in names:
            axis.plot([cell["length"] for cell in group],
                      [cell["rates"][name][0] for cell in group],
                      marker="o", label=name)
        axis.set(xscale="log", xlabel="length", ylim=(0, None),
                 title=f"d = {dim}, {'causal' if causal else 'full'}")
    axes[0][0].set_ylabel("TFLOP/s")
    axes[0][0].legend(fontsize="x-small")
    figure.tight_layout()
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=150)


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
        parser.add_argument("--flex", action="store_true")
        parser.add_argument("--output", type=pathlib.Path)
    return parser.parse_args()


def compile_all(options, dim, causal, names):
    """Fovea's functions by name and length: None for any length."""
    functions = {}
    for name, length in names:
        begin = time.perf_counter()
        schedule = None if name.startswith("fovea") else name
        function = fovea.compile(
            graph(options.dtype, dim, causal, schedule, length),
            target=options.target)
        elapsed = time.perf_counter() - begin
        spilled = sum(kernel["spill_store_bytes"] or 0
                      for kernel in function.resources)
        print(f"d={dim} {'causal' if causal else 'full'} {name} "
              f"{length or ''}: compiled in {elapsed * 1e3:.0f} ms, "
              f"{spilled} bytes spilled", flush=True)
        functions[name, length] = function
    return functions


def check_calls(calls, theirs, get_error):
    """The calls of both that do not refuse, and the error, by `get_error`, of what each
    returns. Prints which of `theirs`, those of other libraries, refuse."""
    errors = {name: get_error(call()) for name, call in calls.items()}
    calls = dict(calls)
    for name, call in theirs.items():
        try:
            errors[name] = get_error(call())
            calls[name] = call
        except Exception as refusal:  # Each library has errors of its own.
            print(f"  {name}: {str(refusal).splitlines()[:1]}")
    return calls, errors


def measure(options, length, dim, causal, functions, peers):
    """The rates and the error of each kernel in a cell, by name."""
    shape = (TOKENS // length, HIDDEN // dim, length, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=DTYPES[options.dtype])
               for _ in range(3))
    flops = 4 * TOKENS * length * HIDDEN / (2 if causal else 1)
    calls = {name: functools.partial(function, q, k, v)
             for (name, at), function in functions.items()
             if at in (None, length)}
    theirs = {name: peer(function, q, k, v, causal)
              for name, function in peers.items()}
    theirs["cuDNN"] = cudnn(q, k, v, causal)
    calls, errors = check_calls(calls, theirs, lambda output: reference_error(
        output, q, k, v, causal))
    return measure_rates(options, calls, flops), errors


def main():
    options = parse_options(__doc__, [64, 128, 256], schedules=True)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}, {options.dtype}, target "
          f"{options.target}; TFLOP/s burst/sustained")
    peers = {name: function for name, (function, _) in find_peers().items()}
    if options.flex:
        peers["FlexAttention"] = flex()
    ours = ["fovea", "fovea, any length", *options.schedule]
    torch.manual_seed(1)
    cells, ratios = [], {name: [] for name in ours}
    for dim in options.dim:
        names = [("fovea", length) for length in options.length]
        names += [(name, None) for name in ours[1:]]
        functions = {causal: compile_all(options, dim, causal, names)
                     for causal in (False, True)}
        for length in options.length:
            for causal in (False, True):
                rates, errors = measure(options, length, dim, causal,
                                        functions[causal], peers)
                best = [max(rates[name][at] for name in rates
                            if name not in ours)
                        for at in range(len(rates["fovea"]))]
                print(f"s={length} d={dim} {'causal' if causal else 'full'}")
                for name, rate in rates.items():
                    if name in ours:
                        ratios[name].append(
                            [a / b for a, b in zip(rate, best)])
                    print_rates(name, rate, [best], errors[name])
                cells.append({"length": length, "dim": dim, "causal": causal,
                              "rates": rates, "errors": errors})
    for name, each in ratios.items():
        text = "/".join(f"{statistics.geometric_mean(at):.3f}"
                        for at in zip(*each))
        least = "/".join(f"{min(at):.2f}" for at in zip(*each))
        print(f"{name}: ratio to the best of the others, geometric mean {text}, "
              f"least {least}")
    if options.output:
        write(options.output, cells, cells[0]["rates"])


if __name__ == "__main__":
    main()

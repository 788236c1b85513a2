#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One query over long keys on a GPU, beside FlashAttention-3, where it is
installed, and PyTorch's scaled_dot_product_attention, in one process.

    benchmarks/gpu/decode.py [--target sm_90a] [--cell 1x8192 16x8192 ...]
                             [--heads 32] [--kv-heads 8] [--queries 1]
                             [--dim 128] [--dtype bf16] [--rounds 5]
                             [--schedule 64x128/4/2/exact/16 ...]
                             [--pages 16 64 ... [--skew] [--append] [--small]
                              [--sinks] [--split-size 2048]]

A cell is batch x keys. Every kernel is captured into a CUDA graph of several
calls, each of other keys and values, 160 MB at least in all, so that none are in
the L2 cache; the time of a call is the median of replays, in rounds interleaved
over all kernels. Bandwidths count one read of keys and values. Errors are the
largest ones against float64, relative to the largest magnitude. FlashAttention-3
chooses its splits itself, and has keys and values in its own order, [B, S, H, D].
With `--schedule`, schedules are compared with the one that the compiler chooses:
tile/warps/stages/maximum/split (`#attn.schedule`), of the queries of a group in one
head.

With `--pages`, keys and values are a cache, as `flash_attn_with_kvcache` takes it,
with a length for each sequence: contiguous, in the first rows, and in pages of these
sizes, which are in no order. FlashAttention-3 has the same caches and tables. The
column of ratios is the time of Fovea's contiguous cache to that of the row, and that
of bandwidths counts the bytes of the row's own cache. With `--skew`, lengths fall as in Zipf's law, and their mean is a quarter of
the cell's; bandwidths count keys and values of these lengths. With `--append`, calls
write the keys and values of the queries to the cache, and rotate them, by no angle.
With `--small`, there are also caches of float8_e4m3fn of Fovea, without appending, and
with `--sinks` calls of Fovea with a sink of each head; with `--split-size`, such whose
sums are divided at multiples of it, whatever the batch.
`--pages 0` has contiguous caches alone.
"""

import argparse
import functools
import gc
import math
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

_HERE = pathlib.Path(__file__).resolve()
for folder in (_HERE.parents[2] / "python", _HERE.parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

try:
    from fa3_fwd_interface import flash_attn_with_kvcache
except ImportError:
    flash_attn_with_kvcache = None

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
CELLS = ("1x1024", "1x8192", "1x65536", "1x131072", "16x8192", "64x8192",
         "128x4096")
COLD_BYTES = 160e6


def attention(query, keys, dtype, schedule=""):
    """One attention of static sizes, as MLIR."""
    q, k = ("tensor<" + "".join(f"{size}x" for size in shape) + f"{dtype}>"
            for shape in (query, keys))
    attribute = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
    return f"""
func.func @attend(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
  %o = attn.attention %q, %k, %v scale({1 / math.sqrt(query[3])}) {attribute}
    : {q}, {k}, {k} -> {q}
  return %o : {q}
}}"""


def ours(options, batch, keys, schedule=None):
    """A function of queries, keys and values, and what it is made of."""
    query = (batch, options.heads, options.queries, options.dim)
    shape = (batch, options.kv_heads, keys, options.dim)
    text = ""
    if schedule:
        tile, warps, stages, maximum, split = schedule.split("/")
        text = (f"tile = {tile}, order = linear, warps = {warps}, "
                f"stages = {stages}, maximum = {maximum}, split = {split}")
        query = (batch, options.kv_heads,
                 options.heads // options.kv_heads * options.queries,
                 options.dim)
    function = fovea.compile(attention(query, shape, options.dtype, text),
                             target=options.target)
    return (lambda q, k, v: function(q.view(query), k, v).view(q.shape),
            function.resources)


def flash3(q, k, v):
    """FlashAttention-3, whose keys and values are [B, S, H, D]."""
    output = flash_attn_with_kvcache(q.transpose(1, 2), k, v)
    return (output[0] if isinstance(output, tuple) else output).transpose(1, 2)


class Cache:
    """Keys and values of sequences, in pages of no order if `page` is not 0."""

    def __init__(self, rows, page, lengths, added=0):
        self.lengths = lengths - added
        self.new = {}
        self.bytes = sum(x.element_size() for x in rows) * (
            int(lengths.sum()) * rows[0].shape[1] * rows[0].shape[3])
        if added:
            batch, _, keys, dim = rows[0].shape
            places = self.lengths[:, None] + torch.arange(added, device="cuda")
            sequences = torch.arange(batch, device="cuda")[:, None]
            angles = rows[0].new_zeros((keys, dim // 2))
            self.new = {"k": rows[0][sequences, :, places.long()],
                        "v": rows[1][sequences, :, places.long()],
                        "rotary_cos": angles + 1, "rotary_sin": angles}
        self.table = None
        if not page:
            self.parts = [x.transpose(1, 2).contiguous() for x in rows]
            return
        batch, _, keys, _ = rows[0].shape
        count = -(-keys // page)
        order = torch.randperm(batch * count, device="cuda")
        self.table = order.view(batch, count).int()
        self.parts = []
        for x in rows:
            x = F.pad(x, (0, 0, 0, count * page - keys)).transpose(1, 2)
            x = x.reshape(batch * count, page, *x.shape[2:])
            part = torch.empty_like(x)
            part[order] = x
            self.parts.append(part)

    def round(self):
        """Makes keys and values floats of 8 bits."""
        self.parts = [x.to(torch.float8_e4m3fn) for x in self.parts]
        self.bytes //= 2
        return self

    def attend(self, call, q):
        """Calls `call`, which has FlashAttention-3's arguments."""
        output = call(q.transpose(1, 2), *self.parts, page_table=self.table,
                      cache_seqlens=self.lengths, causal=True, **self.new)
        output = output[0] if isinstance(output, tuple) else output
        return output.transpose(1, 2)


def get_lengths(options, batch, keys):
    """The lengths of the sequences of a cell."""
    if not options.skew:
        return torch.full((batch,), keys, dtype=torch.int32, device="cuda")
    shares = 1 / torch.arange(1, batch + 1, dtype=torch.float64)
    shares = shares * batch / shares.sum() * keys / 4
    shares = shares.clamp(options.queries, keys)
    return shares[torch.randperm(batch)].int().cuda()


def compare_pages(options, cell):
    """Prints the times of a cell's caches, contiguous and in pages."""
    batch, keys = map(int, cell.split("x"))
    lengths = get_lengths(options, batch, keys)
    row = 2 * options.kv_heads * options.dim * 2
    size = int(lengths.sum()) * row

    def random(heads, length):
        return torch.randn((batch, heads, length, options.dim), device="cuda",
                           dtype=DTYPES[options.dtype])

    q = random(options.heads, options.queries)
    calls = [("fovea", fovea.flash_attn_with_kvcache, False)]
    if options.small:
        calls.append(("8 bits", fovea.flash_attn_with_kvcache, True))
    if options.sinks:
        calls.append(("sinks", functools.partial(
            fovea.flash_attn_with_kvcache,
            s_aux=torch.randn(options.heads, device="cuda")), False))
    for keys_of_part in options.split_size:
        calls.append((f"parts of {keys_of_part}", functools.partial(
            fovea.flash_attn_with_kvcache, split_size=keys_of_part), False))
    if flash_attn_with_kvcache:
        calls.append(("FlashAttention-3", flash_attn_with_kvcache, False))
    graphs = []
    for page in dict.fromkeys((0, *options.pages)):
        for name, call, is_small in calls:
            label = f"{name}, " + (f"pages of {page}" if page else "contiguous")
            count = max(2, math.ceil(COLD_BYTES / size) * (1 + is_small))
            caches = []
            for _ in range(count):
                rows = random(options.kv_heads, keys), random(options.kv_heads, keys)
                cache = Cache(rows, page, lengths,
                              options.queries if options.append else 0)
                if is_small:
                    cache.round()
                    rows = [x.to(torch.float8_e4m3fn).to(x.dtype) for x in rows]
                if not caches:
                    first = rows
                caches.append(cache)
            del rows
            try:
                sinks = getattr(call, "keywords", {}).get("s_aux")
                error = reference_error(caches[0].attend(call, q), q, *first,
                                        lengths, sinks)
                graphs.append((label, error, capture(
                    [functools.partial(cache.attend, call, q)
                     for cache in caches]), caches))
            except RuntimeError as refusal:
                print(f"  {label}: {str(refusal).splitlines()[0]}")
            del first, caches
    rounds = [[seconds(graph, len(caches)) for _, _, graph, caches in graphs]
              for _ in range(options.rounds)]
    times = [statistics.median(column) for column in zip(*rounds)]
    print(f"batch {batch}, {'at most ' if options.skew else ''}{keys} keys: "
          f"{size / 1e6:.0f} MB")
    for (label, error, _, caches), time in zip(graphs, times):
        print(f"  {label:34}{time * 1e6:9.1f} us"
              f"{caches[0].bytes / time / 1e12:7.2f} TB/s"
              f"{times[0] / time:7.2f}{error:10.1e}", flush=True)


def pytorch(backend):
    def call(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return call


def reference_error(output, q, k, v, lengths=None, sinks=None):
    """Against float64, on the first and last sequences. With lengths, the last
    query is at the last key. Sinks, of each head, are scores of one more key."""
    worst = 0.0
    for b in {0, q.shape[0] - 1}:
        groups = q[b].double().unflatten(0, (k.shape[1], -1))
        length = k.shape[2] if lengths is None else int(lengths[b])
        s = torch.einsum("hgid,hjd->hgij", groups, k[b, :, :length].double())
        if lengths is not None:
            hidden = torch.ones(s.shape[2:], dtype=torch.bool, device=s.device)
            hidden = hidden.triu(length - s.shape[2] + 1)
            s.masked_fill_(hidden, -math.inf)
        s /= math.sqrt(q.shape[3])
        if sinks is not None:
            sink = sinks.double().view(s.shape[0], s.shape[1], 1, 1)
            s = torch.cat([s, sink.expand(*s.shape[:3], 1)], -1)
        p = s.softmax(-1).nan_to_num(0)[..., :length]
        expected = torch.einsum("hgij,hjd->hgid", p, v[b, :, :length].double())
        error = (output[b].double() - expected.flatten(0, 1)).abs().max()
        worst = max(worst, (error / expected.abs().max()).item())
    return worst


def capture(calls):
    """A CUDA graph of all of `calls`."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # A graph that is collected during a capture ends it.
    gc.collect()
    gc.disable()
    try:
        with torch.cuda.graph(graph):
            for call in calls:
                call()
    finally:
        gc.enable()
    return graph


def seconds(graph, calls):
    """Seconds of one of the calls of a graph."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    times = []
    while sum(times) < 20 or len(times) < 5:
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times) / 1e3 / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="gpu")
    parser.add_argument("--cell", nargs="+", default=CELLS)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--schedule", nargs="+", default=[])
    parser.add_argument("--pages", nargs="+", type=int, default=[])
    parser.add_argument("--skew", action="store_true")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--sinks", action="store_true")
    parser.add_argument("--split-size", type=int, nargs="+", default=[])
    options = parser.parse_args()
    if options.small and options.append:
        parser.error("--small: expected no --append")

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN "
          f"{torch.backends.cudnn.version()}, FlashAttention-3 "
          f"{'installed' if flash_attn_with_kvcache else 'missing'}, "
          f"{options.dtype}, "
          f"{options.queries} queries, {options.heads} heads on "
          f"{options.kv_heads}, d = {options.dim}, target {options.target}")
    torch.manual_seed(1)
    if options.pages:
        for cell in options.cell:
            with torch.no_grad():
                compare_pages(options, cell)
        return
    for cell in options.cell:
        batch, keys = map(int, cell.split("x"))
        names, calls, peers = [], [], []
        for schedule in [None, *options.schedule]:
            call, resources = ours(options, batch, keys, schedule)
            names.append(schedule or "fovea")
            calls.append(call)
            print(f"{cell} {names[-1]}: {resources}")
        if flash_attn_with_kvcache:
            peers.append("FlashAttention-3")
            calls.append(flash3)
        for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION),
                              ("PyTorch's FlashAttention",
                               SDPBackend.FLASH_ATTENTION)):
            peers.append(name)
            calls.append(pytorch(backend))
        names += peers

        def random(heads, length):
            return torch.randn((batch, heads, length, options.dim),
                               device="cuda", dtype=DTYPES[options.dtype])

        size = 2 * batch * options.kv_heads * keys * options.dim * 2
        q = random(options.heads, options.queries)
        buffers = [(random(options.kv_heads, keys),
                    random(options.kv_heads, keys))
                   for _ in range(max(2, math.ceil(COLD_BYTES / size)))]
        own = [[x.transpose(1, 2).contiguous() for x in pair]
               for pair in (buffers if flash_attn_with_kvcache else ())]
        graphs = []
        for name, call in zip(names, calls):
            operands = own if call is flash3 else buffers
            try:
                error = reference_error(call(q, *operands[0]), q, *buffers[0])
                graphs.append((name, error, capture(
                    [functools.partial(call, q, *pair) for pair in operands])))
            except RuntimeError as refusal:
                print(f"  {name}: {str(refusal).splitlines()[0]}")
        rounds = [[seconds(graph, len(buffers)) for _, _, graph in graphs]
                  for _ in range(options.rounds)]
        times = [statistics.median(column) for column in zip(*rounds)]
        best = min((time for (name, _, _), time in zip(graphs, times)
                    if name in peers), default=None)
        print(f"batch {batch}, {keys} keys: {size / 1e6:.0f} MB")
        for (name, error, _), time in zip(graphs, times):
            ratio = f"{best / time:.2f}" if best else "-"
            print(f"  {name:28}{time * 1e6:9.1f} us{size / time / 1e12:7.2f} "
                  f"TB/s{ratio:>7}{error:10.1e}", flush=True)


if __name__ == "__main__":
    main()

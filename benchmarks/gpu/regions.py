#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Score and mask regions of the forward pass on a GPU, beside FlashAttention-3
and -4, where they are installed, cuDNN and compiled FlexAttention, as far as
each has the region, in one process.

    benchmarks/gpu/regions.py [--target sm_90a] [--kind window documents ...]
                              [--shape 2x16x8192x128] [--dtype bf16]
                              [--rounds 5] [--no-sustained] [--no-flex]
                              [--schedule 128x128/8/2/stale ...]

Shapes are batch, heads, length and head dim. TFLOP/s, by the protocols of forward.py,
count 4 * D for each query and key that sees it. Documents are of 1024 rows, and known by
a tensor of ids; FlashAttention, which has no such mask, takes them as sequences of a ragged
batch. A window is of 1024 keys in front of a query's own. The bias is [H, S, S] in the
operands' type. Ratios are to the best of the others, and to our own kernel without the
region: "plain", or "causal" where the mask is. Errors are the largest ones against float64
of the last 64 rows of the last head, relative to the largest magnitude. With `--schedule`,
schedules (forward.py) are compared with those that the compiler chooses.
"""

import argparse
import functools
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from forward import (DTYPES, check_calls, find_peers, measure_rates, print_rates,
                     schedule_text)
import fovea

SPAN = 1024
CAP = 30.0


def is_causal(i, j):
    return i >= j


def is_near(i, j):
    return (i >= j) & (i - j <= SPAN)


# By kind: what a query sees of a position's keys, if documents bound it as well, and what
# is done to scores.
KINDS = {
    "plain": (None, False, None),
    "causal": (is_causal, False, None),
    "cap": (None, False, "cap"),
    "causal_cap": (is_causal, False, "cap"),
    "alibi": (is_causal, False, "alibi"),
    "window": (is_near, False, None),
    "documents": (None, True, None),
    "causal_documents": (is_causal, True, None),
    "bias": (None, False, "bias"),
}

# The regions as MLIR, of positions in %i and %j.
MASKS = {
    is_causal: "%seen = arith.cmpi sge, %i, %j : index",
    is_near: f"""%after = arith.cmpi sge, %i, %j : index
    %distance = arith.subi %i, %j : index
    %span = arith.constant {SPAN} : index
    %near = arith.cmpi sle, %distance, %span : index
    %seen = arith.andi %after, %near : i1""",
}
SCORES = {
    "cap": f"""%cap = arith.constant {CAP} : f32
    %x = arith.divf %score, %cap : f32
    %y = math.tanh %x : f32
    %z = arith.mulf %y, %cap : f32""",
    "alibi": """%one = arith.constant 1 : index
    %rank = arith.addi %h, %one : index
    %rank_i32 = arith.index_cast %rank : index to i32
    %rank_f32 = arith.sitofp %rank_i32 : i32 to f32
    %unit = arith.constant STEP : f32
    %power = arith.mulf %rank_f32, %unit : f32
    %slope = math.exp2 %power : f32
    %distance = arith.subi %j, %i : index
    %distance_i32 = arith.index_cast %distance : index to i32
    %distance_f32 = arith.sitofp %distance_i32 : i32 to f32
    %term = arith.mulf %slope, %distance_f32 : f32
    %z = arith.addf %score, %term : f32""",
    "bias": """%x = tensor.extract %c[%h, %i, %j] : CAPTURE
    %y = arith.extf %x : ELEMENT to f32
    %z = arith.addf %score, %y : f32""",
}


def graph(kind, shape, dtype, schedule=None):
    """Attention with the regions of `kind`, as MLIR."""
    mask, has_documents, score = KINDS[kind]
    _, heads, length, dim = shape
    x = "tensor<" + "".join(f"{size}x" for size in shape) + f"{dtype}>"
    ids = f"tensor<{length}xi32>"
    bias = f"tensor<{heads}x{length}x{length}x{dtype}>"
    captures = ""
    if has_documents:
        captures = f", %ids: {ids}"
    elif score == "bias":
        captures = f", %c: {bias}"
    regions = ""
    if score:
        body = SCORES[score].replace("STEP", f"{-8 / heads}")
        body = body.replace("CAPTURE", bias).replace("ELEMENT", dtype)
        regions += f"""
  score {{
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    {body}
    attn.yield %z : f32
  }}"""
    if mask or has_documents:
        body, kept = MASKS.get(mask, ""), "%seen"
        if has_documents:
            body += f"""
    %row = tensor.extract %ids[%i] : {ids}
    %column = tensor.extract %ids[%j] : {ids}
    %same = arith.cmpi eq, %row, %column : i32"""
            kept = "%same"
        if mask and has_documents:
            body += "\n    %kept = arith.andi %seen, %same : i1"
            kept = "%kept"
        regions += f"""
  mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    {body}
    attn.yield {kept} : i1
  }}"""
    attributes = f"{{schedule = {schedule}}}" if schedule else ""
    return f"""
func.func @attend(%q: {x}, %k: {x}, %v: {x}{captures}) -> {x} {{
  %o = attn.attention %q, %k, %v scale({dim**-0.5}) {regions} {attributes}
    : {x}, {x}, {x} -> {x}
  return %o : {x}
}}"""


def see(kind, ids, i, j):
    """Whether queries `i` see keys `j`, by tensors."""
    mask, has_documents, _ = KINDS[kind]
    seen = mask(i, j) if mask else torch.ones_like(i >= j)
    return seen & (ids[i] == ids[j]) if has_documents else seen


def modify(kind, heads, bias):
    """The region of scores as FlexAttention takes it, or none."""
    return {
        "cap": lambda s, b, h, i, j: CAP * torch.tanh(s / CAP),
        "alibi": lambda s, b, h, i, j: (
            s + (j - i) * torch.exp2((h + 1) * (-8 / heads))),
        "bias": lambda s, b, h, i, j: s + bias[h, i, j],
    }.get(KINDS[kind][2])


def reference_error(kind, output, q, k, v, ids, bias):
    """Against float64, of the last 64 rows of the last head."""
    _, heads, length, dim = q.shape
    i = torch.arange(length - 64, length, device="cuda")[:, None]
    j = torch.arange(length, device="cuda")[None]
    s = q[-1, -1, -64:].double() @ k[-1, -1].double().T * dim**-0.5
    if change := modify(kind, heads, bias):
        h = torch.tensor(heads - 1, device="cuda")
        s = change(s, None, h, i, j)
    s = s.masked_fill(~see(kind, ids, i, j), -math.inf)
    expected = s.softmax(-1) @ v[-1, -1].double()
    error = (output[-1, -1, -64:].double() - expected).abs().max()
    return (error / expected.abs().max()).item()


def visible(kind, length):
    """Pairs of a query and a key that it sees."""
    mask, has_documents, _ = KINDS[kind]
    span = SPAN if has_documents else length
    pairs = span * span
    if mask is is_causal:
        pairs = span * (span + 1) // 2
    elif mask is is_near:
        pairs = sum(min(i, SPAN) + 1 for i in range(length))
    return pairs * (length // span)


def flash(functions, kind, q, k, v):
    """A call of FlashAttention with the region, or none where it has none."""
    mask, has_documents, score = KINDS[kind]
    if score not in (None, "cap"):
        return None
    batch, heads, length, dim = q.shape
    operands = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    options = {"causal": mask is is_causal}
    if score:
        options["softcap"] = CAP
    if mask is is_near:
        options["window_size"] = (SPAN, 0)
    attend, attend_ragged = functions
    if has_documents:
        starts = torch.arange(0, batch * length + 1, SPAN, device="cuda",
                              dtype=torch.int32)
        operands = [x.view(batch * length, heads, dim) for x in operands]
        options |= {"cu_seqlens_q": starts, "cu_seqlens_k": starts,
                    "max_seqlen_q": SPAN, "max_seqlen_k": SPAN}
        attend = attend_ragged

    def call():
        output = attend(*operands, **options)
        if isinstance(output, tuple):
            output = output[0]
        return output.view(batch, length, heads, dim).transpose(1, 2)
    return call


def cudnn(kind, q, k, v, bias):
    """A call of cuDNN with the region, or none where it has none."""
    mask, has_documents, score = KINDS[kind]
    if mask is is_near or has_documents or score not in (None, "bias"):
        return None

    def call():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(
                q, k, v, attn_mask=bias[None] if score else None,
                is_causal=mask is is_causal)
    return call


def flex(kind, q, k, v, ids, bias):
    """A call of compiled FlexAttention."""
    torch._dynamo.reset()  # It compiles a function eight times only.
    mask, has_documents, _ = KINDS[kind]
    blocks = None
    if mask or has_documents:
        blocks = create_block_mask(
            lambda b, h, i, j: see(kind, ids, i, j), None, None, q.shape[2],
            q.shape[2])
    return functools.partial(torch.compile(flex_attention, dynamic=False), q, k, v,
                             score_mod=modify(kind, q.shape[1], bias),
                             block_mask=blocks)


def measure(options, kind, peers):
    """The rates and the error of each kernel with a region, by name."""
    dtype = DTYPES[options.dtype]
    batch, heads, length, dim = options.shape
    q, k, v = (torch.randn(options.shape, device="cuda", dtype=dtype)
               for _ in range(3))
    ids = torch.arange(length, device="cuda", dtype=torch.int32) // SPAN
    bias = None
    if KINDS[kind][2] == "bias":
        bias = torch.randn((heads, length, length), device="cuda", dtype=dtype)
    captured = [ids] if KINDS[kind][1] else [] if bias is None else [bias]
    calls = {}
    for name in ["fovea", *options.schedule]:
        schedule = None
        if name != "fovea":
            is_masked = bool(KINDS[kind][0])
            schedule = f"#attn.schedule<{schedule_text(name, is_masked)}>"
        function = fovea.compile(graph(kind, options.shape, options.dtype, schedule),
                                 target=options.target)
        calls[name] = functools.partial(function, q, k, v, *captured)
    theirs = {name: flash(functions, kind, q, k, v)
              for name, functions in peers.items()}
    theirs["cuDNN"] = cudnn(kind, q, k, v, bias)
    if not options.no_flex:
        theirs["FlexAttention"] = flex(kind, q, k, v, ids, bias)
    theirs = {name: call for name, call in theirs.items() if call}
    calls, errors = check_calls(calls, theirs, lambda output: reference_error(
        kind, output, q, k, v, ids, bias))
    flops = 4 * batch * heads * dim * visible(kind, length)
    return measure_rates(options, calls, flops), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="gpu")
    parser.add_argument("--kind", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--shape", default="2x16x8192x128")
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-sustained", action="store_true")
    parser.add_argument("--no-flex", action="store_true")
    parser.add_argument("--schedule", nargs="+", default=[])
    options = parser.parse_args()
    options.shape = tuple(map(int, options.shape.split("x")))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN "
          f"{torch.backends.cudnn.version()}, {options.dtype}, {options.shape}, "
          f"target {options.target}; TFLOP/s burst/sustained, ratio to the best "
          "of the others, to our own without the region, error")
    peers = find_peers()
    torch.manual_seed(1)
    own = {}
    for kind in options.kind:
        rates, errors = measure(options, kind, peers)
        own[kind] = rates["fovea"]
        without = own.get("causal" if KINDS[kind][0] else "plain", own[kind])
        ours = ["fovea", *options.schedule]
        others = [rate for name, rate in rates.items() if name not in ours]
        print(kind)
        for name, rate in rates.items():
            best = [max(at) for at in zip(*others)] or rate
            print_rates(name, rate, [best, without], errors[name])
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

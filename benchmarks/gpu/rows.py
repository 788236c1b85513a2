#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea's kernels around attention on a GPU beside PyTorch's, in one process.

    benchmarks/gpu/rows.py [--target sm_90a] [--rows 8192] [--width 8192]
                           [--dtype bf16] [--rounds 7] [--only NAME ...]

Each graph is compiled by Fovea and by `torch.compile`, and run eagerly. Times
are of launches back to back between two events, medians of rounds interleaved
over all kernels and PyTorch's copy of a matrix. All are bound by memory: shares
are of the copy's bandwidth, with one read of each operand and one write of each
result. Errors are the largest ones against float64, relative to the largest
magnitude; where there is dropout, each element is taken for kept or dropped,
whichever is nearer.
"""

import argparse
import dataclasses
import functools
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F

_HERE = pathlib.Path(__file__).resolve()
for folder in (_HERE.parents[2] / "python", _HERE.parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
HEAD = 128


def layer_norm_dropout_add(x, weight, bias, residual, probability=0.1):
    y = F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)
    return F.dropout(y, probability) + residual


def layer_norm_dropout_add_cases(x, weight, bias, residual):
    """What an element may be: kept or dropped."""
    y = layer_norm_dropout_add(x, weight, bias, 0, probability=0)
    return y / 0.9 + residual, residual


def rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-6)


def add_rms_norm(x, residual, weight):
    total = x + residual
    return total, F.rms_norm(total, x.shape[-1:], weight, 1e-6)


def rope(x, cos, sin):
    first, second = x.to(torch.promote_types(x.dtype, cos.dtype)).chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin),
                     -1).to(x.dtype)


@dataclasses.dataclass(frozen=True)
class Graph:
    text: str
    #: The same in PyTorch.
    call: callable
    #: The types of the operands that are tensors, and the number of results.
    operands: tuple
    results: int = 1
    #: Scalars that Fovea's function takes behind the tensors.
    scalars: tuple = ()
    #: The values that an element of the result may have, if not one.
    cases: callable = None


GRAPHS = {
    "layer_norm_dropout_add": Graph(
        """
func.func @f(%x: !matrix, %w: !row, %b: !row, %r: !matrix, %seed: i64,
             %offset: i64) -> !matrix {
  %n = attn.layer_norm %x weight(%w : !row) bias(%b : !row) epsilon(1.0e-5)
       : !matrix
  %d = attn.dropout %n, 0.1 seed(%seed, %offset) : !matrix
  %y = attn.residual_add %d, %r : !matrix, !matrix
  return %y : !matrix
}""", layer_norm_dropout_add, ("matrix", "row", "row", "matrix"),
        scalars=(7, 11), cases=layer_norm_dropout_add_cases),
    "rms_norm": Graph(
        """
func.func @f(%x: !matrix, %w: !row) -> !matrix {
  %y = attn.rms_norm %x weight(%w : !row) epsilon(1.0e-6) : !matrix
  return %y : !matrix
}""", rms_norm, ("matrix", "row")),
    "add_rms_norm": Graph(
        """
func.func @f(%x: !matrix, %r: !matrix, %w: !row) -> (!matrix, !matrix) {
  %s = attn.residual_add %x, %r : !matrix, !matrix
  %y = attn.rms_norm %s weight(%w : !row) epsilon(1.0e-6) : !matrix
  return %s, %y : !matrix, !matrix
}""", add_rms_norm, ("matrix", "matrix", "row"), results=2),
    "rope": Graph(
        """
func.func @f(%x: !heads, %cos: !angles, %sin: !angles) -> !heads {
  %y = attn.rope %x, %cos, %sin : !heads, !angles, !angles
  return %y : !heads
}""", rope, ("heads", "cos", "sin")),
}


def compile_graph(graph, options):
    aliases = f"""
!matrix = tensor<?x{options.width}x{options.dtype}>
!row = tensor<{options.width}x{options.dtype}>
!heads = tensor<1x{options.width // HEAD}x?x{HEAD}x{options.dtype}>
!angles = tensor<?x{HEAD // 2}xf32>"""
    return fovea.compile(aliases + graph.text, target=options.target)


def make_operands(graph, options):
    rows, width = options.rows, options.width
    frequencies = 1e4**-torch.linspace(0, 1, HEAD // 2, device="cuda")
    angles = torch.arange(rows, device="cuda")[:, None] * frequencies
    shapes = {"matrix": (rows, width), "row": (width,),
              "heads": (1, width // HEAD, rows, HEAD)}
    tables = {"cos": angles.cos(), "sin": angles.sin()}
    return [tables[kind] if kind in tables else
            torch.randn(shapes[kind], device="cuda",
                        dtype=DTYPES[options.dtype])
            for kind in graph.operands]


def reference_error(graph, outputs, operands):
    operands = [operand.double() for operand in operands]
    if graph.cases:
        expected = [graph.cases(*operands)]
    else:
        results = as_tuple(graph.call(*operands))
        expected = [(result,) for result in results]
    worst = 0.0
    for output, cases in zip(as_tuple(outputs), expected):
        errors = [(output.double() - case).abs() for case in cases]
        error = functools.reduce(torch.minimum, errors).max()
        worst = max(worst, (error / cases[0].abs().max()).item())
    return worst


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def seconds(call, launches):
    """Of one launch, while the next ones are queued."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        call()
    start.record()
    for _ in range(launches):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / launches


def measure(graph, options):
    """Fovea's function, and seconds and errors of each kernel by its name."""
    function = compile_graph(graph, options)
    operands = make_operands(graph, options)
    source = torch.randn(options.rows, options.width, device="cuda",
                         dtype=DTYPES[options.dtype])
    target = torch.empty_like(source)
    compiled = torch.compile(graph.call)
    calls = {"fovea": lambda: function(*operands, *graph.scalars),
             "compile": lambda: compiled(*operands),
             "eager": lambda: graph.call(*operands)}
    errors = {name: reference_error(graph, call(), operands)
              for name, call in calls.items()}
    calls["copy"] = lambda: target.copy_(source)
    launches = {name: max(10, round(5e-3 / seconds(call, 10)))
                for name, call in calls.items()}
    rounds = [{name: seconds(call, launches[name])
               for name, call in calls.items()}
              for _ in range(options.rounds)]
    times = {name: statistics.median(each[name] for each in rounds)
             for name in calls}
    matrices = sum(kind in ("matrix", "heads") for kind in graph.operands)
    traffic = (matrices + graph.results) * source.nbytes
    bandwidth = 2 * source.nbytes / times.pop("copy")
    shares = {name: traffic / elapsed / bandwidth
              for name, elapsed in times.items()}
    return function, bandwidth, times, shares, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="gpu")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=list(GRAPHS),
                        choices=GRAPHS)
    options = parser.parse_args()

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{options.rows} x {options.width} {options.dtype}, target "
          f"{options.target}; microseconds, share of the copy, error")
    print(f"{'':24}{'copy':>10}" + "".join(
        f"{name:>24}" for name in ("fovea", "compile", "eager")))
    torch.manual_seed(1)
    for name in options.only:
        function, bandwidth, times, shares, errors = measure(GRAPHS[name],
                                                             options)
        print(f"{name:24}{bandwidth / 1e12:5.2f} TB/s" + "".join(
            f"{times[peer] * 1e6:9.1f}{shares[peer]:6.2f}{errors[peer]:9.1e}"
            for peer in times), flush=True)
        print(f"  {function.resources}")


if __name__ == "__main__":
    main()

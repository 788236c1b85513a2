# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is special to a GPU: PyTorch's tensors and streams, graphs, layouts in
memory. The numerics of test_numerics.py run there by FOVEA_TEST_TARGET."""

import dataclasses
import functools
import gc
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import attention
import fovea
from attention import Case, keep_mask

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

TARGET = os.environ.get("FOVEA_TEST_TARGET", "gpu")
needs_hopper = pytest.mark.skipif(
    TARGET == "sm_80" or torch.cuda.get_device_capability()[0] != 9,
    reason="needs kernels for Hopper")
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
         "f64": torch.float64}
# Relative to the largest magnitude: a rounding of the type or two.
BOUNDS = {"f16": 1e-3, "bf16": 8e-3, "f32": 5e-6, "f64": 1e-12}


@pytest.fixture(autouse=True)
def seeded():
    """Data do not depend on the tests before."""
    torch.manual_seed(0)


@functools.lru_cache(maxsize=None)
def compiled(case):
    return fovea.compile(case.text, target=TARGET)


def reference(q, k, v, mask=None):
    q, k, v = (x.double() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1]**-0.5
    if mask == "causal":
        i, j = (torch.arange(n, device=q.device)
                for n in (q.shape[2], k.shape[2]))
        scores = scores.masked_fill(j[None] > i[:, None], -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v


def check(output, expected, dtype, like=None):
    """The error is relative to the largest magnitude of `like`, the expected
    result if nothing else is rounded to the type."""
    assert output.shape == expected.shape
    if output.numel() == 0:
        return
    largest = (expected if like is None else like).abs().max()
    error = (output.double() - expected).abs().max() / largest
    assert error <= BOUNDS[dtype], error


def make(case, batch, queries, keys, seed=0):
    torch.manual_seed(seed)
    shapes = [(batch, case.heads, queries, case.dim),
              (batch, case.kv_heads, keys, case.dim),
              (batch, case.kv_heads, keys, case.value_dim)]
    return [torch.randn(shape, device="cuda", dtype=TORCH[case.dtype])
            for shape in shapes]


def to_device(operand):
    """An array of NumPy in the GPU's memory."""
    if not isinstance(operand, np.ndarray) or not operand.ndim:
        return operand
    return attention.to_torch(operand).cuda()


def to_host(tensor):
    if tensor.dtype != torch.bfloat16:
        return tensor.cpu().numpy()
    return tensor.view(torch.int16).cpu().numpy().view(np.uint16)


def clear(like):
    """Writes the memory that PyTorch has for the next tensor of this size: what
    TMA writes to a result, initcheck does not see."""
    torch.zeros_like(like)


BF16 = Case(dtype="bf16", dim=128, value_dim=128, heads=4, kv_heads=2)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_sample(dtype, dim, mask):
    """Also what the sanitizers run."""
    case = Case(dtype=dtype, dim=dim, value_dim=dim, mask=mask)
    operands = make(case, 1, 200, 200)
    function = compiled(case)
    # The first call allocates the result itself, others let PyTorch.
    function(*operands)
    clear(operands[0])
    check(function(*operands), reference(*operands, mask), dtype)


@pytest.mark.parametrize("dtype, dim", [("bf16", 64), ("f16", 128),
                                        ("bf16", 256)])
def test_sample_shared(dtype, dim):
    """More tiles than multiprocessors, in a last round that is not full: blocks
    share them, and add the same parts in every run. With scores of 8 times the
    usual size parts differ in weight. With 256 features the blocks of a cluster
    copy for each other, one of which has no query where the tiles are 15."""
    case = Case(dtype=dtype, dim=dim, value_dim=dim, heads=17, kv_heads=17)
    function = compiled(case)
    for queries, keys in ((2000, 2100), (1850, 2048 + 63), (130, 2100)):
        q, k, v = make(case, 1, queries, keys)
        q *= 8
        output = function(q, k, v).clone()
        check(output, reference(q, k, v, "none"), dtype)
        assert torch.equal(function(q, k, v), output)


@pytest.mark.parametrize("strategy", ["fused", "unfused"])
@pytest.mark.parametrize("case", [
    Case(dtype="bf16", dim=64, value_dim=64, mask="causal_documents"),
    Case(dtype="bf16", dim=64, value_dim=64, mask="causal", dropout=0.2),
    Case(dtype="f16", modification="alibi", mask="window"),
    Case(modification="bias", mask="padding")], ids=str)
def test_sample_regions(case, strategy):
    operands = case.make_operands(1, 130, 130)
    function = fovea.compile(case.text, target=TARGET, strategy=strategy)
    (expected,), top = case.reference(operands)
    operands = [to_device(x) for x in operands]
    function(*operands)
    clear(operands[0])
    attention.check(to_host(function(*operands)), expected, case.dtype, top)


READERS = """
!t = tensor<?x4x?x{dim}x{dtype}>
#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#rows = affine_map<(b, h, i, d) -> (b, h, i)>
#features = affine_map<(b, h, i, d) -> (d)>
func.func @gate(%q: !t, %k: !t, %v: !t, %g: !t, %f: tensor<{dim}xf32>) -> !t {{
  %o = attn.attention %q, %k, %v scale({scale}) mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  }} : !t, !t, !t -> !t
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c0 : !t
  %m = tensor.dim %q, %c2 : !t
  %e = tensor.empty(%n, %m) : !t
  %y = linalg.generic {{indexing_maps = [#id, #id, #features, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%o, %g, %f : !t, !t, tensor<{dim}xf32>) outs(%e : !t) {{
  ^bb0(%a: {dtype}, %gate: {dtype}, %feature: f32, %out: {dtype}):
    %one = arith.constant 1.0 : f32
    %0 = {wide} %a : {dtype} to f32
    %1 = {wide} %gate : {dtype} to f32
    %2 = arith.negf %1 : f32
    %3 = math.exp %2 : f32
    %4 = arith.addf %3, %one : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %feature : f32
    %8 = {narrow} %7 : f32 to {dtype}
    linalg.yield %8 : {dtype}
  }} -> !t
  return %y : !t
}}
func.func @sink(%q: !t, %k: !t, %v: !t, %r: !t) -> (!t, tensor<?x4x?xf32>) {{
  %o, %lse = attn.attention %q, %k, %v scale({scale}) mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  }} : !t, !t, !t -> !t, tensor<?x4x?xf32>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c0 : !t
  %m = tensor.dim %q, %c2 : !t
  %e = tensor.empty(%n, %m) : !t
  %y = linalg.generic {{indexing_maps = [#id, #rows, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%o, %lse : !t, tensor<?x4x?xf32>) outs(%e : !t) {{
  ^bb0(%a: {dtype}, %sum: f32, %out: {dtype}):
    %one = arith.constant 1.0 : f32
    %0 = {wide} %a : {dtype} to f32
    %1 = arith.negf %sum : f32
    %2 = math.exp %1 : f32
    %3 = arith.addf %2, %one : f32
    %4 = arith.divf %0, %3 : f32
    %5 = {narrow} %4 : f32 to {dtype}
    linalg.yield %5 : {dtype}
  }} -> !t
  %z = attn.residual_add %y, %r : !t, !t
  return %z, %lse : !t, tensor<?x4x?xf32>
}}"""


@functools.lru_cache(maxsize=None)
def compiled_readers(dtype, dim, entry):
    wide, narrow = (("arith.bitcast",) * 2 if dtype == "f32"
                    else ("arith.extf", "arith.truncf"))
    return fovea.compile(READERS.format(dtype=dtype, dim=dim, scale=dim**-0.5,
                                        wide=wide, narrow=narrow),
                         target=TARGET, entry=entry)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("dim, length", [(64, 200), (72, 77), (128, 1000),
                                         (256, 333)])
def test_sample_readers(dtype, dim, length):
    """A gate, and a factor by the log-sum-exp with a residual, of 16 bits in
    attention's kernel; of operands that are aligned and of some that are not."""
    case = Case(dtype=dtype, dim=dim, value_dim=dim, heads=4, kv_heads=4)
    q, k, v = make(case, 2, length, length)
    scores = q.double() @ k.double().mT * dim**-0.5
    above = torch.ones(length, length, device="cuda").triu(1).bool()
    sums = scores.masked_fill(above, -torch.inf).logsumexp(-1)
    output = reference(q, k, v, "causal")
    for step in (1, 2):
        x = torch.randn((2, 4, length, dim + step - 1), device="cuda",
                        dtype=TORCH[dtype])[..., step - 1:]
        f = torch.randn(dim, device="cuda")
        check(compiled_readers(dtype, dim, "gate")(q, k, v, x, f),
              output * x.double().sigmoid() * f.double(), dtype)
        result, lse = compiled_readers(dtype, dim, "sink")(q, k, v, x)
        check(lse, sums, "f32")
        check(result, output * sums.sigmoid()[..., None] + x.double(), dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_gate_extremes(dtype):
    """The machine's functions have the limits of exact ones."""
    case = Case(dtype=dtype, dim=64, value_dim=64, heads=4, kv_heads=4)
    q, k, v = make(case, 1, 128, 128)
    ones, f = torch.ones_like(q), torch.ones(64, device="cuda")
    attend = compiled_readers(dtype, 64, "gate")
    # Of values of 1 the output is 1, and the gate is the result.
    for value, expected in [(-100, 0), (100, 1), (-88, 0), (88, 1), (0, 0.5),
                            (-torch.inf, 0), (torch.inf, 1),
                            (torch.nan, torch.nan)]:
        result = attend(q, k, ones, torch.full_like(q, value), f).double()
        torch.testing.assert_close(result, torch.full_like(result, expected),
                                   rtol=2**-7, atol=1e-30, equal_nan=True)


@pytest.mark.parametrize("dim", [8, 16, 24, 40, 72, 80, 96, 112, 160, 192, 256])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_head_dims(dim, mask):
    case = Case(dtype="bf16", dim=dim, value_dim=dim, mask=mask)
    operands = make(case, 2, 300, 300)
    check(compiled(case)(*operands), reference(*operands, mask), "bf16")


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 127, 128, 129, 1000, 4097])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_lengths(length, mask):
    case = Case(dtype="f16", dim=64, value_dim=64, mask=mask)
    operands = make(case, 1, length, length)
    check(compiled(case)(*operands), reference(*operands, mask), "f16")


ROWS = """
!matrix = tensor<?x{width}x{dtype}>
!row = tensor<{width}x{dtype}>
func.func @layer_norm(%x: !matrix, %w: !row, %b: !row, %r: !matrix, %seed: i64,
                      %offset: i64) -> !matrix {{
  %n = attn.layer_norm %x weight(%w : !row) bias(%b : !row) epsilon(1.0e-5)
       : !matrix
  %d = attn.dropout %n, 0.25 seed(%seed, %offset) : !matrix
  %y = attn.residual_add %d, %r : !matrix, !matrix
  return %y : !matrix
}}
func.func @rms_norm(%x: !matrix, %w: !row) -> !matrix {{
  %y = attn.rms_norm %x weight(%w : !row) epsilon(1.0e-6) : !matrix
  return %y : !matrix
}}
func.func @softmax(%x: !matrix) -> !matrix {{
  %y = attn.softmax %x : !matrix -> !matrix
  return %y : !matrix
}}
func.func @gelu(%x: !matrix) -> !matrix {{
  %y = attn.elementwise %x {{
  ^bb0(%a: {dtype}):
    %half = arith.constant 0.5 : {dtype}
    %root = arith.constant 0.70703125 : {dtype}
    %scaled = arith.mulf %a, %root : {dtype}
    %erf = math.erf %scaled : {dtype}
    %share = arith.mulf %a, %half : {dtype}
    %rest = arith.mulf %share, %erf : {dtype}
    %z = arith.addf %share, %rest : {dtype}
    attn.yield %z : {dtype}
  }} : (!matrix) -> !matrix
  return %y : !matrix
}}
"""


@functools.lru_cache(maxsize=None)
def compiled_rows(name, width, dtype):
    text = ROWS.format(width=width or "?", dtype=dtype)
    return fovea.compile(text, target=TARGET, entry=name)


def make_rows(rows, width, dtype, pad=0):
    """A matrix whose rows have `pad` other elements between them."""
    memory = torch.randn(rows, width + pad, device="cuda", dtype=TORCH[dtype])
    return memory[:, pad // 2:pad // 2 + width]


def check_rows(name, function, x, dtype):
    """Runs a function of ROWS on `x` and compares it with float64."""
    rows, width = x.shape
    weight, bias = (torch.randn(width, device="cuda", dtype=TORCH[dtype])
                    for _ in range(2))
    wide = x.double()
    if name == "layer_norm":
        residual = torch.randn_like(x)
        output = function(x, weight, bias, residual, 7, 11)
        keep = torch.from_numpy(keep_mask(x.shape, 0.25, 7, 11)).cuda()
        expected = torch.nn.functional.layer_norm(
            wide, (width,), weight.double(), bias.double(), 1e-5)
        expected = keep * expected / 0.75 + residual.double()
    elif name == "rms_norm":
        output = function(x, weight)
        scale = (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        expected = wide * scale * weight.double()
    elif name == "softmax":
        output = function(x)
        expected = wide.softmax(-1)
    else:
        output = function(x)
        expected = wide * 0.5 * (1 + torch.special.erf(wide * 0.70703125))
    # Its region rounds multiples of x, of which little may be left.
    check(output, expected, dtype, like=wide if name == "gelu" else None)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax", "gelu"])
@pytest.mark.parametrize("width", [None, 96, 1024, 8192])
def test_sample_rows(name, width):
    """In registers, of a warp and of a block, and not: rows are misaligned."""
    for pad in (0, 3):
        check_rows(name, compiled_rows(name, width, "bf16"),
                   make_rows(3, width or 1000, "bf16", pad), "bf16")


def test_sample_contraction():
    function = fovea.compile("""
        func.func @f(%x: tensor<?x72xf32>, %y: tensor<72x?xf32>,
                     %z: tensor<?x?xf32>) -> tensor<?x?xf32> {
          %r = linalg.matmul ins(%x, %y : tensor<?x72xf32>, tensor<72x?xf32>)
               outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
          return %r : tensor<?x?xf32>
        }""", target=TARGET)
    x, y, z = (torch.randn(shape, device="cuda")
               for shape in ((50, 72), (72, 33), (50, 33)))
    check(function(x, y, z), x.double() @ y.double() + z.double(), "f32")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax", "gelu"])
@pytest.mark.parametrize("width", [1, 7, 8, 64, 77, 96, 128, 1000, 1024, 8192,
                                   20000])
def test_rows(width, name, dtype):
    function = compiled_rows(name, width, dtype)
    for rows, pad in ((5, 0), (1, 3), (300, 8)):
        check_rows(name, function, make_rows(rows, width, dtype, pad), dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax", "gelu"])
def test_dynamic_rows(name, dtype):
    function = compiled_rows(name, None, dtype)
    for width in (1, 2, 31, 33, 128, 250, 256, 4096, 5001, 8192, 16384, 16392,
                  40000):
        for rows, pad in ((3, 0), (2, 5), (40, 16)):
            check_rows(name, function, make_rows(rows, width, dtype, pad),
                       dtype)


@pytest.mark.parametrize("width", [None, 256])
def test_no_rows(width):
    for name in ("rms_norm", "softmax"):
        function = compiled_rows(name, width, "bf16")
        weight = [torch.randn(256, device="cuda", dtype=torch.bfloat16)]
        operands = [make_rows(0, 256, "bf16")]
        operands += weight if name == "rms_norm" else []
        assert function(*operands).shape == (0, 256)


def test_no_columns():
    x = make_rows(4, 0, "f32")
    assert compiled_rows("softmax", None, "f32")(x).shape == (4, 0)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("scale", [1, 8])
def test_errors_are_those_of_cudnn(dtype, dim, mask, scale):
    """On the same data, where scores are as usual and where they are large."""
    sdpa = torch.nn.attention
    case = Case(dtype=dtype, dim=dim, value_dim=dim, mask=mask, heads=4,
                kv_heads=4)
    q, k, v = make(case, 1, 777, 777)
    q *= scale
    expected = reference(q, k, v, mask)
    with sdpa.sdpa_kernel(sdpa.SDPBackend.CUDNN_ATTENTION):
        theirs = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=mask == "causal")
    ours = compiled(case)(q, k, v)
    error, bound = ((x.double() - expected).square().mean().sqrt()
                    for x in (ours, theirs))
    assert error <= 1.05 * bound
    error, bound = ((x.double() - expected).abs().max() for x in (ours, theirs))
    assert error <= 1.5 * bound


FUNCTIONS = {
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "asinh": torch.asinh, "exp": torch.exp, "exp2": torch.exp2,
    "expm1": torch.expm1, "tanh": torch.tanh, "erf": torch.erf,
    "erfc": torch.erfc, "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    "asin": lambda x: (x / 8).asin(), "acos": lambda x: (x / 8).acos(),
    "atanh": lambda x: (x / 8).atanh(), "acosh": lambda x: (x + 9).acosh(),
    "log": lambda x: (x + 9).log(), "log2": lambda x: (x + 9).log2(),
    "log10": lambda x: (x + 9).log10(), "log1p": lambda x: (x + 9).log1p()}
OPERANDS = {"asin": "mulf %a, %eighth", "acos": "mulf %a, %eighth",
            "atanh": "mulf %a, %eighth", "acosh": "addf %a, %nine",
            "log": "addf %a, %nine", "log2": "addf %a, %nine",
            "log10": "addf %a, %nine", "log1p": "addf %a, %nine"}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    """All of math on floats, without a library."""
    function = fovea.compile(f"""
        func.func @f(%x: tensor<?x?x{dtype}>) -> tensor<?x?x{dtype}> {{
          %y = attn.elementwise %x {{
          ^bb0(%a: {dtype}):
            %eighth = arith.constant 0.125 : {dtype}
            %nine = arith.constant 9.0 : {dtype}
            %b = arith.{OPERANDS.get(name, "maximumf %a, %a")} : {dtype}
            %r = math.{name} %b : {dtype}
            attn.yield %r : {dtype}
          }} : (tensor<?x?x{dtype}>) -> tensor<?x?x{dtype}>
          return %y : tensor<?x?x{dtype}>
        }}""", target=TARGET)
    x = torch.linspace(-7.9, 7.9, 3000, device="cuda",
                       dtype=TORCH[dtype]).view(6, 500)
    check(function(x), FUNCTIONS[name](x.double()), dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers(dtype):
    function = fovea.compile(f"""
        func.func @f(%x: tensor<?x{dtype}>, %y: tensor<?x{dtype}>)
            -> (tensor<?x{dtype}>, tensor<?x{dtype}>) {{
          %p = math.powf %x, %y : tensor<?x{dtype}>
          %a = math.atan2 %x, %y : tensor<?x{dtype}>
          return %p, %a : tensor<?x{dtype}>, tensor<?x{dtype}>
        }}""", target=TARGET)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0,
                            -2.5], device="cuda", dtype=TORCH[dtype])
    x, y = (z.flatten() for z in torch.meshgrid(special, special,
                                                indexing="ij"))
    power, angle = function(x, y)
    bound = 1e-5 if dtype == "f32" else 1e-13
    for actual, expected in ((power, x.double()**y.double()),
                             (angle, torch.atan2(x.double(), y.double()))):
        assert torch.allclose(actual.double(), expected, rtol=bound, atol=0,
                              equal_nan=True)


@pytest.mark.parametrize("divisor", [3, 5, 6, 7, 10])
def test_differences_of_quotients(divisor):
    """ptxas loses the borrow of some where 0 is subtracted."""
    shape = "tensor<1x3x4x257xf32>"
    function = fovea.compile(f"""
        func.func @f(%x: {shape}) -> {shape} {{
          %y = attn.mask %x {{
          ^bb0(%b: index, %h: index, %i: index, %j: index):
            %c = arith.constant {divisor} : index
            %q = arith.divsi %j, %c : index
            %d = arith.subi %q, %i : index
            %k = arith.cmpi sge, %d, %h : index
            attn.yield %k : i1
          }} : {shape}
          return %y : {shape}
        }}""", target=TARGET)
    x = torch.randn(1, 3, 4, 257, device="cuda")
    h, i, j = torch.meshgrid(*(torch.arange(n, device="cuda")
                               for n in x.shape[1:]), indexing="ij")
    expected = x.masked_fill(j // divisor - i < h, -torch.inf)
    assert torch.equal(function(x), expected)


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_tables_of_few_rows(seen):
    """ptxas loses the first row of a loop that finds whether a mask keeps all keys of
    the rows of a group, or any, where it joins their comparisons with conditions."""
    shape = "tensor<1x3x2x8xf32>"
    keys = "tensor<1x1x2x8xf32>"
    function = fovea.compile(f"""
        func.func @f(%q: {shape}, %k: {keys}, %hides: tensor<3xi1>) -> {shape} {{
          %o = attn.attention %q, %k, %k scale(1.0) mask {{
          ^bb0(%b: index, %h: index, %i: index, %j: index):
            %four = arith.constant 4 : index
            %hidden = tensor.extract %hides[%h] : tensor<3xi1>
            %x = arith.select %hidden, %four, %i : index
            %y = arith.addi %x, %i : index
            %keep = arith.cmpi sle, %y, %i : index
            attn.yield %keep : i1
          }} : {shape}, {keys}, {keys} -> {shape}
          return %o : {shape}
        }}""", target=TARGET)
    q, k = torch.randn(1, 3, 2, 8).cuda(), torch.randn(1, 1, 2, 8).cuda()
    hides = torch.arange(3, device="cuda") != seen
    expected = torch.zeros(1, 3, 2, 8, dtype=torch.float64, device="cuda")
    scores = q[0, seen, 0].double() @ k[0, 0].double().T
    expected[0, seen, 0] = scores.softmax(-1) @ k[0, 0].double()
    assert (function(q, k, hides).double() - expected).abs().max() < 1e-5


def make_lines(read, queries, keys, dim, dtype, dynamic):
    """Attention whose scores add an element of a row that positions index, and the
    same for each head: a number of each distance, in either direction, of each
    key, or of each query."""
    rows, columns = ("?", "?") if dynamic else (queries, keys)
    q = f"tensor<2x3x{rows}x{dim}xbf16>"
    k = f"tensor<2x3x{columns}x{dim}xbf16>"
    numbers = "?" if dynamic else queries + keys - 1
    table = f"tensor<3x{numbers}x{dtype}>"
    index, origin = {"distance": ("arith.subi %i, %j", "%keys"),
                     "back": ("arith.subi %j, %i", "%queries"),
                     "key": ("arith.addi %j, %zero", "%zero"),
                     "query": ("arith.addi %i, %zero", "%zero")}[read]
    convert = ("arith.addf %x, %none : f32" if dtype == "f32" else
               f"arith.extf %x : {dtype} to f32")
    return f"""
func.func @f(%q: {q}, %k: {k}, %v: {k}, %table: {table}) -> {q} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %none = arith.constant 0.0 : f32
  %rows = tensor.dim %q, %two : {q}
  %columns = tensor.dim %k, %two : {k}
  %queries = arith.subi %rows, %one : index
  %keys = arith.subi %columns, %one : index
  %o = attn.attention %q, %k, %v scale(0.125) score {{
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = {index} : index
    %n = arith.addi %d, {origin} : index
    %x = tensor.extract %table[%h, %n] : {table}
    %y = {convert}
    %z = arith.addf %s, %y : f32
    attn.yield %z : f32
  }} : {q}, {k}, {k} -> {q}
  return %o : {q}
}}"""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("read", ["distance", "back", "key", "query"])
def test_parts_of_rows(read, dtype, dynamic):
    """Also of lengths for which the row, or the part that a tile of queries reads,
    begins or ends within a copy."""
    for queries, keys, dim in [(1, 1, 64), (200, 200, 64), (333, 1000, 128),
                               (1000, 130, 128), (515, 515, 256),
                               (2048, 2048, 64)]:
        text = make_lines(read, queries, keys, dim, dtype, dynamic)
        function = fovea.compile(text, target=TARGET)
        q, k, v = (torch.randn(2, 3, n, dim, device="cuda", dtype=torch.bfloat16)
                   for n in (queries, keys, keys))
        row = torch.randn(3, queries + keys - 1, device="cuda",
                          dtype=TORCH[dtype])
        i, j = (torch.arange(n, device="cuda") for n in (queries, keys))
        i, j = i[:, None], j[None]
        number = {"distance": i - j + keys - 1, "back": j - i + queries - 1,
                  "key": j + 0 * i, "query": i + 0 * j}[read]
        scores = 0.125 * q.double() @ k.double().transpose(-1, -2)
        weights = (scores + row.double()[:, number]).softmax(-1)
        check(function(q, k, v, row), weights @ v.double(), "bf16", like=v)


@pytest.mark.parametrize("number", ["clamped", "flat", "bucket", "function"])
@pytest.mark.parametrize("queries, keys", [(200, 200), (70, 333), (333, 100),
                                           (1024, 1024)])
def test_numbers_of_distances(number, queries, keys):
    """What a distance determines, computed once for each, and its gradient."""
    flat = torch.randn(queries + keys - 1, device="cuda", requires_grad=True)
    table = torch.randn(4, 33, device="cuda", requires_grad=True)

    def bucket(d):
        far = (torch.log(d.abs().clamp(min=1).to(torch.float32)) * 3).to(torch.int32)
        return torch.where(d < 4, d.clamp(min=0), (far + 4).clamp(max=32))

    def score(s, b, h, i, j):
        if number == "clamped":
            return s + table[h, (i - j).clamp(-16, 16) + 16]
        if number == "flat":
            return s + flat[i - j + keys - 1]
        if number == "bucket":
            return s * (1 + 0.1 * b) + table[h, bucket(i - j)]
        return s - torch.log(1.0 + (i - j).abs() * (h + 1))

    q, k, v = (torch.randn(2, 4, n, 64, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for n in (queries, keys, keys))
    output = fovea.flex_attention(q, k, v, score_mod=score)
    gradient = torch.randn_like(output)
    leaves = [q, k, v]
    if number != "function":
        leaves.append(flat if number == "flat" else table)
    got = torch.autograd.grad(output, leaves, gradient)

    b, h, i, j = (torch.arange(n, device="cuda").view(
        [-1 if d == dim else 1 for d in range(4)])
        for dim, n in enumerate((2, 4, queries, keys)))
    scores = 0.125 * q.double() @ k.double().transpose(-1, -2)
    expected = score(scores, b, h, i, j).softmax(-1) @ v.double()
    check(output, expected, "bf16", like=v)
    for own, other in zip(got, torch.autograd.grad(expected, leaves,
                                                   gradient.double())):
        other = other.double()
        error = (own.double() - other).abs().max() / other.abs().max()
        assert error < 0.02, error


CAP = """
func.func @f(%q: tensor<1x2x?x64xTYPE>, %k: tensor<1x2x?x64xTYPE>, %v: tensor<1x2x?x64xTYPE>) -> tensor<1x2x?x64xTYPE> {
  %o = attn.attention %q, %k, %v scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 30.0 : f32
    %0 = arith.divf %s, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } : tensor<1x2x?x64xTYPE>, tensor<1x2x?x64xTYPE>, tensor<1x2x?x64xTYPE> -> tensor<1x2x?x64xTYPE>
  return %o : tensor<1x2x?x64xTYPE>
}
"""


@pytest.mark.parametrize("scale", [1, 8])
@pytest.mark.parametrize("dtype, exact", [("bf16", False), ("bf16", True),
                                          ("f16", False)])
def test_soft_cap(dtype, exact, scale):
    """bf16 takes the machine's tanh if it may; scores of 8 times the size are
    near the cap, where that is most off."""
    attend = fovea.compile(CAP.replace("TYPE", dtype), target=TARGET,
                           exact_functions=exact)
    assert ("tanh.approx" in attend.ptx) == (dtype == "bf16" and not exact)
    q, k, v = (torch.randn(1, 2, 600, 64, device="cuda", dtype=TORCH[dtype])
               for _ in range(3))
    q *= scale
    scores = 30 * torch.tanh(q.double() @ k.double().mT / 8 / 30)
    expected = scores.softmax(-1) @ v.double()
    error = ((attend(q, k, v).double() - expected).abs().max()
             / expected.abs().max()).item()
    assert error <= BOUNDS[dtype]


def test_results_are_on_the_device():
    operands = make(BF16, 1, 64, 64)
    for _ in range(2):
        output = compiled(BF16)(*operands)
        assert output.is_cuda and output.dtype == torch.bfloat16


def test_current_stream():
    """A call comes after what is on the current stream, and before the rest."""
    q, k, v = make(BF16, 2, 512, 512)
    expected = reference(q, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    late = torch.empty_like(q)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late.copy_(q)
        output = compiled(BF16)(late, k, v)
        late.zero_()
    torch.cuda.synchronize()
    check(output, expected, "bf16")


TABLE = """
func.func @f(%q: tensor<1x2x16x8xf32>, %k: tensor<1x2x16x8xf32>,
             %v: tensor<1x2x16x8xf32>, %t: tensor<2x31xf16>)
    -> tensor<1x2x16x8xf32> {
  %s = attn.scores %q, %k : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>
      -> tensor<1x2x16x16xf32>
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c15 = arith.constant 15 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %c15 : index
    %e = tensor.extract %t[%h, %at] : tensor<2x31xf16>
    %f = arith.extf %e : f16 to f32
    %y = arith.addf %x, %f : f32
    attn.yield %y : f32
  } : tensor<1x2x16x16xf32>
  %p = attn.softmax %m : tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
  %o = attn.values %p, %v : tensor<1x2x16x16xf32>, tensor<1x2x16x8xf32>
      -> tensor<1x2x16x8xf32>
  return %o : tensor<1x2x16x8xf32>
}"""


#: Another process that uses the GPU.
BUSY = """
import time, torch
x = torch.randn(2048, 2048, device="cuda")
end = time.monotonic() + 300
while time.monotonic() < end:
    for _ in range(20):
        x @ x
    torch.cuda.synchronize()
"""


@pytest.fixture(params=[0, 3], ids=["alone", "shared"])
def other_processes(request):
    """Between which and this one the GPU switches at any time."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY])
                 for _ in range(request.param)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("strategy", ["fused", "unfused"])
def test_rows_of_small_kernels(strategy, other_processes):
    """All kernels of some calls wait until the GPU is free, and then run as
    closely as they can: each sees what the one right in front has written. What
    was there before is of other operands."""
    text = fovea.differentiate(TABLE, recompute="never", target=TARGET)
    function = fovea.compile(text, target=TARGET, strategy=strategy,
                             deterministic=True)
    kinds = [[torch.randn(shape, device="cuda", dtype=dtype)
              for shape, dtype in [((1, 2, 16, 8), torch.float32)] * 3
              + [((2, 31), torch.float16), ((1, 2, 16, 8), torch.float32)]]
             for _ in range(2)]
    expected = []
    for operands in kinds:
        function(*operands)
        torch.cuda.synchronize()
        expected.append([x.clone() for x in function(*operands)])
    for _ in range(100):
        torch.cuda._sleep(2_000_000)
        calls = [function(*operands) for operands in kinds * 4]
        torch.cuda.synchronize()
        for results, wanted in zip(calls, expected * 4):
            for result, value in zip(results, wanted):
                assert torch.equal(result, value)


# A gather of the keys or of the values, by the name k or v.
PAGES = """
  %{name} = linalg.generic {{indexing_maps = [#all], iterator_types =
        ["parallel", "parallel", "parallel", "parallel"]}} outs(%room : !keys) {{
  ^bb0(%unused: {dtype}):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %n = arith.divui %j, %page : index
    %slot = arith.remui %j, %page : index
    %number = tensor.extract %table[%b, %n] : tensor<?x?xi32>
    %row = arith.index_cast %number : i32 to index
    %x = tensor.extract %{name}c[%row, %slot, %h, %d] : !cache
    linalg.yield %x : {dtype}
  }} -> !keys"""


@functools.lru_cache(maxsize=None)
def compile_pages(page, dim, dtype, queries):
    """Attention of `queries` queries, the last of which is at the last key, or
    of any number ("?"), on keys in pages: 8 heads on 2."""
    gathers = "".join(PAGES.format(name=name, dtype=dtype) for name in "kv")
    return fovea.compile(f"""
        #all = affine_map<(b, h, j, d) -> (b, h, j, d)>
        !queries = tensor<?x8x{queries}x{dim}x{dtype}>
        !cache = tensor<?x{page}x2x{dim}x{dtype}>
        !keys = tensor<?x2x?x{dim}x{dtype}>
        func.func @f(%q: !queries, %kc: !cache, %vc: !cache,
                     %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> !queries {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %page = arith.constant {page} : index
          %count = tensor.dim %q, %c2 : !queries
          %batch = tensor.dim %table, %c0 : tensor<?x?xi32>
          %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
          %size = arith.muli %pages, %page : index
          %room = tensor.empty(%batch, %size) : !keys{gathers}
          %o = attn.attention %q, %k, %v scale({dim**-0.5}) mask {{
          ^bb0(%b: index, %h: index, %i: index, %j: index):
            %number = tensor.extract %lengths[%b] : tensor<?xi32>
            %length = arith.index_cast %number : i32 to index
            %isKey = arith.cmpi slt, %j, %length : index
            %before = arith.subi %length, %count : index
            %last = arith.addi %i, %before : index
            %isSeen = arith.cmpi sle, %j, %last : index
            %keep = arith.andi %isKey, %isSeen : i1
            attn.yield %keep : i1
          }} : !queries, !keys, !keys -> !queries
          return %o : !queries
        }}""", target=TARGET)


class Pages:
    """A cache in pages of no order. Slots behind a sequence's length, and pages
    of no sequence, are NaN; numbers behind a sequence's pages are out of range."""

    def __init__(self, page, dim, dtype, lengths, room):
        counts = [-(-length // page) for length in lengths]
        free = torch.randperm(sum(counts) + 2).tolist()
        shape = (len(free), page, 2, dim)
        self.caches = [torch.full(shape, torch.nan, device="cuda",
                                  dtype=TORCH[dtype]) for _ in "kv"]
        table = torch.full((len(lengths), -(-room // page)), 10**6,
                           dtype=torch.int32)
        self.rows = []
        for b, (length, count) in enumerate(zip(lengths, counts)):
            own, free = free[:count], free[count:]
            table[b, :count] = torch.tensor(own, dtype=torch.int32)
            places = torch.tensor(own, dtype=torch.int64, device="cuda")
            rows = []
            for cache in self.caches:
                new = torch.randn((length, 2, dim), device="cuda",
                                  dtype=TORCH[dtype])
                j = torch.arange(length, device="cuda")
                cache[places[j // page], j % page] = new
                rows.append(new.transpose(0, 1))
            self.rows.append(rows)
        self.table = table.cuda()
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device="cuda")

    def operands(self, q):
        return q, *self.caches, self.table, self.lengths

    def check(self, output, q, dtype):
        for b, (k, v) in enumerate(self.rows):
            i = torch.arange(q.shape[2], device="cuda")
            j = torch.arange(k.shape[1], device="cuda")
            hidden = j > (i + k.shape[1] - q.shape[2])[:, None]
            x, y, z = (t.double().repeat_interleave(8 // len(t), 0)
                       for t in (q[b], k, v))
            scores = x @ y.transpose(-1, -2) * q.shape[-1]**-0.5
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            # No element is larger than the largest value.
            largest = z if len(k[0]) else torch.ones(1)
            check(output[b], weights.nan_to_num(0) @ z, dtype, like=largest)


@pytest.mark.parametrize("page", [1, 5, 8, 16, 64, 128])
def test_sample_pages(page):
    """Also what the sanitizers run: of numbers out of range, too."""
    pages = Pages(page, 64, "f16", [0, 70, 200], 256)
    q = torch.randn((3, 8, 1, 64), device="cuda", dtype=torch.float16)
    output = compile_pages(page, 64, "f16", 1)(*pages.operands(q))
    pages.check(output, q, "f16")


@pytest.mark.parametrize("page", [1, 5, 8, 16, 64, 128])
@pytest.mark.parametrize("queries", [1, 3, 150])
@pytest.mark.parametrize("dtype, dim", [("f16", 64), ("bf16", 128), ("f32", 64),
                                        ("f16", 40)])
def test_pages(page, queries, dtype, dim):
    """Lengths around those of tiles and pages."""
    lengths = [0, 1, 63, 64, 65, 111, 112, 127, 128, 129, 1500]
    pages = Pages(page, dim, dtype, lengths, 1500)
    q = torch.randn((len(lengths), 8, queries, dim), device="cuda",
                    dtype=TORCH[dtype])
    static = "?" if queries > 3 else queries
    function = compile_pages(page, dim, dtype, static)
    pages.check(function(*pages.operands(q)), q, dtype)


@pytest.mark.parametrize("page", [5, 16])
@pytest.mark.parametrize("offset", [3, 4])
def test_misaligned_pages(page, offset):
    """Rows at addresses that neither copy engines nor vectors take."""
    pages = Pages(page, 64, "f16", [1, 70, 200], 256)
    for n, cache in enumerate(pages.caches):
        room = torch.full((*cache.shape[:3], 64 + 2 * offset), torch.nan,
                          device="cuda", dtype=torch.float16)
        pages.caches[n] = room[..., offset:64 + offset]
        pages.caches[n].copy_(cache)
    q = torch.randn((3, 8, 1, 64), device="cuda", dtype=torch.float16)
    output = compile_pages(page, 64, "f16", 1)(*pages.operands(q))
    pages.check(output, q, "f16")


@pytest.mark.parametrize("page", [1, 16])
def test_graph_capture_of_pages(page):
    """One graph, replayed with other lengths and other places of pages."""
    function = compile_pages(page, 128, "bf16", 1)
    q = torch.randn((4, 8, 1, 128), device="cuda", dtype=torch.bfloat16)
    kinds = [Pages(page, 128, "bf16", torch.randperm(900)[:4].tolist(), 900)
             for _ in range(5)]
    most = max(kinds, key=lambda kind: len(kind.caches[0]))
    operands = [x.clone() for x in most.operands(q)]
    function(*operands)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(*operands)
    for kind in kinds:
        for old, new in zip(operands, kind.operands(q)):
            old[:len(new)].copy_(new)
        graph.replay()
        kind.check(output, q, "bf16")


@pytest.mark.parametrize("page", [0, 16])
def test_many_calls_in_a_graph(page):
    """Lengths that cut the last tile of each sequence, call behind call, on
    caches of their own: kernels start while those in front of them end, and beside
    other processes (pytest -n) warps of a block come late."""
    lengths = torch.tensor([246, 123, 82, 61], device="cuda", dtype=torch.int32)
    make_half = lambda *shape: torch.randn(shape, device="cuda",
                                           dtype=torch.bfloat16)
    q, table = make_half(4, 1, 32, 128), None
    if page:
        table = torch.randperm(4 * 512 // page, device="cuda").view(4, -1).int()
    caches = [[make_half(*((4 * 512 // page, page) if page else (4, 512)), 8, 128)
               for _ in "kv"] for _ in range(40)]

    def attend():
        return [fovea.flash_attn_with_kvcache(q, k, v, page_table=table,
                                              cache_seqlens=lengths, causal=True)
                for k, v in caches]

    with torch.no_grad():
        expected = attend()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = attend()
    for _ in range(1000):
        graph.replay()
    end = torch.cuda.Event()
    end.record()
    limit = time.monotonic() + 30
    while not end.query():
        assert time.monotonic() < limit, "a kernel does not end"
    for one, other in zip(outputs, expected, strict=True):
        assert torch.equal(one, other)


WIDE = Case(dtype="bf16", dim=128, value_dim=128, heads=16, kv_heads=16)


@needs_hopper
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_versions_by_length(mask):
    """Code for usual lengths and for short ones is right for all lengths, and each
    serves those for which it was made."""
    case = dataclasses.replace(WIDE, mask=mask)
    both, usual, short = (
        fovea.compile(case.text, target=TARGET, typical_length=length)
        for length in (None, 4096, 1024))
    for length, fits_short in [(0, None), (1, None), (37, None), (500, True),
                               (512, True), (576, False), (640, None), (768, False),
                               (1000, True), (1024, True), (1025, False),
                               (1536, False), (2049, False)]:
        operands = make(case, 1, length, length)
        results = [function(*operands) for function in (both, usual, short)]
        for result in results:
            check(result, reference(*operands, mask), "bf16")
        if fits_short is not None:
            expected, other = results[:0:-1] if fits_short else results[1:]
            assert torch.equal(results[0], expected), length
            assert not torch.equal(results[0], other), length


@needs_hopper
def test_short_version_is_compiled_in_a_capture():
    function = fovea.compile(WIDE.text + "// in a capture", target=TARGET)
    function(*make(WIDE, 1, 2048, 2048))
    q, k, v = make(WIDE, 1, 1024, 1024)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(q, k, v)
    graph.replay()
    check(output, reference(q, k, v), "bf16")


def test_graph_capture():
    q, k, v = make(BF16, 2, 300, 300)
    function = compiled(BF16)
    function(q, k, v)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(q, k, v)
    for seed in range(3):
        for old, new in zip((q, k, v), make(BF16, 2, 300, 300, seed)):
            old.copy_(new)
        graph.replay()
        check(output, reference(q, k, v), "bf16")


@pytest.mark.parametrize("grad", [False, True])
def test_graph_capture_of_the_operator(grad):
    """With a captured tensor, forward and backward in one graph."""
    q, k, v = (x.requires_grad_(grad) for x in make(BF16, 2, 300, 300))
    bias = torch.randn(300, device="cuda")

    def attend():
        output = fovea.flex_attention(
            q, k, v, lambda score, b, h, i, j: score + bias[j], enable_gqa=True,
            mask_mod=lambda b, h, i, j: i >= j)
        if not grad:
            return [output]
        return [output, *torch.autograd.grad(output.float().square().sum(), (q, k, v))]

    other = torch.cuda.Stream()
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        for _ in range(2):
            attend()
    torch.cuda.current_stream().wait_stream(other)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = attend()
    for seed in range(3):
        with torch.no_grad():
            for old, new in zip((q, k, v), make(BF16, 2, 300, 300, seed)):
                old.copy_(new)
            bias.copy_(torch.randn(300, device="cuda"))
        graph.replay()
        for one, expected in zip(captured, attend(), strict=True):
            check(one, expected.detach().double(), "bf16")


CUBE = """
        func.func @f(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
          %z = arith.constant 0.0 : f32
          %i = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
          %m = linalg.matmul ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>)
               outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
          %n = linalg.matmul ins(%m, %x : tensor<64x64xf32>, tensor<64x64xf32>)
               outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
          return %n : tensor<64x64xf32>
        }"""


def test_graph_capture_of_intermediates():
    """Memory between kernels, of several calls in one graph."""
    function = fovea.compile(CUBE, target=TARGET)
    x, y = (torch.randn(64, 64, device="cuda") for _ in range(2))
    function(x, y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first = function(x, x)
        second = function(y, y)
    for _ in range(2):
        for operand in (x, y):
            operand.copy_(torch.randn(64, 64, device="cuda"))
        graph.replay()
        for result, operand in ((first, x), (second, y)):
            check(result, operand.double().matrix_power(3), "f32")


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("in_capture", [False, True])
def test_graph_keeps_what_it_launches(is_warm, in_capture):
    """Kernels, and memory between them, of a function that is gone."""
    x, y = (torch.randn(64, 64, device="cuda") for _ in range(2))
    other = fovea.compile(CUBE, target=TARGET)
    other(y, y)
    for _ in range(3):
        function = fovea.compile(CUBE, target=TARGET)
        if is_warm:
            function(x, x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = function(x, x)
            if in_capture:
                del function
        if not in_capture:
            del function
        gc.collect()
        # Others get what was freed.
        fovea.compile(CUBE, target=TARGET)(y, y)
        memory = torch.full((64, 1 << 20), torch.nan, device="cuda")
        for _ in range(2):
            x.copy_(torch.randn(64, 64, device="cuda"))
            graph.replay()
            check(output, x.double().matrix_power(3), "f32")
        del graph, output, memory
        gc.collect()
        torch.cuda.synchronize()
        check(other(y, y), y.double().matrix_power(3), "f32")


def test_layouts():
    """[B, S, H, D] in memory, rows apart, and a packed QKV."""
    qkv = torch.randn(2, 200, 3, 4, 128, device="cuda", dtype=torch.bfloat16)
    q, k, v = (qkv[:, :, n].transpose(1, 2) for n in range(3))
    case = Case(dtype="bf16", dim=128, value_dim=128, heads=4, kv_heads=4)
    check(compiled(case)(q, k, v), reference(q, k, v), "bf16")


@pytest.mark.parametrize("offset", [1, 3, 4])
def test_misaligned(offset):
    """Addresses and strides that copy engines do not take."""
    case = Case(dtype="f16", dim=64, value_dim=64)
    views = []
    for heads, length in ((4, 100), (2, 130), (2, 130)):
        flat = torch.randn(heads * length * 67 + offset, device="cuda",
                           dtype=torch.float16)
        views.append(flat[offset:].view(1, heads, length, 67)[..., :64])
    check(compiled(case)(*views), reference(*views), "f16")


@pytest.mark.parametrize("strategy", ["fused", "unfused"])
def test_constants(strategy):
    """Operands of attention that are constants of the text."""
    k, v = (torch.randn(1, 1, 24, 64, device="cuda").half() for _ in "kv")
    q = torch.randn(1, 1, 40, 64, device="cuda").half()
    kept = "tensor<1x1x24x64xf16>"
    run = fovea.compile(f"""
      func.func @f(%q: tensor<1x1x40x64xf16>) -> tensor<1x1x40x64xf16> {{
        %k = arith.constant dense<{k.tolist()}> : {kept}
        %v = arith.constant dense<{v.tolist()}> : {kept}
        %o = attn.attention %q, %k, %v scale(0.125)
          : tensor<1x1x40x64xf16>, {kept}, {kept} -> tensor<1x1x40x64xf16>
        return %o : tensor<1x1x40x64xf16>
      }}""", target=TARGET, strategy=strategy)
    for _ in range(2):
        check(run(q), reference(q, k, v), "f16")


def test_many_heads():
    """More blocks than a grid's second dimension takes."""
    case = Case(dtype="f16", dim=16, value_dim=16, heads=8, kv_heads=8)
    operands = make(case, 9000, 5, 5)
    check(compiled(case)(*operands), reference(*operands), "f16")


@pytest.mark.parametrize("case", [
    BF16, Case(dtype="bf16", mask="causal", dim=64, value_dim=64),
    Case(dtype="f32"), Case(dtype="f16", dropout=0.2)], ids=str)
def test_runs_are_equal(case):
    operands = make(case, 2, 333, 333)
    if case.dropout:
        operands += [7, 11]
    first = compiled(case)(*operands)
    for _ in range(5):
        assert torch.equal(compiled(case)(*operands), first)


def test_host_operands():
    """NumPy arrays go to the GPU and come back."""
    case = Case(dtype="f32")
    operands = [x.cpu().numpy() for x in make(case, 1, 50, 70)]
    output = compiled(case)(*operands)
    assert isinstance(output, np.ndarray)
    expected = reference(*(torch.from_numpy(x) for x in operands))
    check(torch.from_numpy(output), expected, "f32")


def test_wrong_device():
    q, k, v = make(BF16, 1, 64, 64)
    with pytest.raises(fovea.Error, match="operand 1 .*expected a dense tensor "
                                          "on cuda:0, got .* on cpu"):
        compiled(BF16)(q, k.cpu(), v)


def test_resources():
    for kernel in compiled(BF16).resources:
        assert kernel["spill_store_bytes"] == kernel["spill_load_bytes"] == 0

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of the ops around attention, of linalg and of scalar ops, against
finite differences by torch.autograd.gradcheck in f64, on the host, or on the
target that the environment variable FOVEA_TEST_TARGET names."""

import os

import pytest

import fovea

torch = pytest.importorskip("torch")

TARGET = os.environ.get("FOVEA_TEST_TARGET", "host")
DEVICE = "cpu" if TARGET == "host" else "cuda"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


# Gradients of f32 weights over many rows: rounded once, where rows are f64 and
# where they are f32.
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("strategy", ["fused", "unfused"])
@pytest.mark.parametrize("op", ["norm", "gate"])
def test_sums_of_rows(op, strategy, dtype):
    x = f"tensor<16000x7x{dtype}>"
    widened = ("%n = arith.extf %b : f32 to f64" if dtype == "f64"
               else "%zero = arith.constant 0.0 : f32\n"
                    "%n = arith.addf %b, %zero : f32")
    body = {"norm": f"""
  %y = attn.rms_norm %x weight(%w : tensor<7xf32>) epsilon(1.0e-6) : {x}""",
            "gate": f"""
  %e = tensor.empty() : {x}
  %y = linalg.generic {{
      indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>,
                       affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %w : {x}, tensor<7xf32>) outs(%e : {x}) {{
  ^bb0(%a: {dtype}, %b: f32, %o: {dtype}):
    {widened}
    %m = arith.mulf %a, %n : {dtype}
    linalg.yield %m : {dtype}
  }} -> {x}"""}[op]
    function = fovea.differentiable(
        f"func.func @f(%x: {x}, %w: tensor<7xf32>) -> {x} {{{body}\n"
        f"  return %y : {x}\n}}", TARGET, strategy=strategy)
    # Terms that are equal, and whose sums in f32 drift to one side.
    rows = torch.full((16000, 7), 1.1, dtype=torch.float64)
    cotangent = torch.full_like(rows, 1.3)
    if dtype == "f32":
        rows, cotangent = rows.float(), cotangent.float()
    normed = rows.double()
    if op == "norm":
        normed = normed * torch.rsqrt(
            (normed * normed).mean(-1, keepdim=True) + 1e-6)
    exact = (normed * cotangent.double()).sum(0)
    weight = torch.ones(7, device=DEVICE, requires_grad=True)
    found, = torch.autograd.grad(function(rows.to(DEVICE), weight), weight,
                                 cotangent.to(DEVICE))
    error = (found.cpu().double() / exact - 1).abs().max().item()
    # One rounding of the sum; in f32, several of each term as well, which are
    # all the same.
    assert error <= (6e-8 if dtype == "f64" else 3e-7), error


# Graph ops alone: the text's results, and the shapes of its operands.
GRAPHS = {
    "layer_norm": ("""
func.func @f(%x: tensor<2x3x7xf64>, %w: tensor<7xf64>, %c: tensor<7xf64>)
    -> tensor<2x3x7xf64> {
  %y = attn.layer_norm %x weight(%w : tensor<7xf64>) bias(%c : tensor<7xf64>)
       epsilon(1.0e-5) : tensor<2x3x7xf64>
  return %y : tensor<2x3x7xf64>
}""", [(2, 3, 7), (7,), (7,)]),
    "layer_norm_plain": ("""
func.func @f(%x: tensor<5x?xf64>) -> tensor<5x?xf64> {
  %y = attn.layer_norm %x epsilon(1.0e-5) : tensor<5x?xf64>
  return %y : tensor<5x?xf64>
}""", [(5, 6)]),
    "rms_norm": ("""
func.func @f(%x: tensor<2x?x7xf64>, %w: tensor<7xf64>) -> tensor<2x?x7xf64> {
  %y = attn.rms_norm %x weight(%w : tensor<7xf64>) epsilon(1.0e-5)
       : tensor<2x?x7xf64>
  return %y : tensor<2x?x7xf64>
}""", [(2, 3, 7), (7,)]),
    "rope": ("""
func.func @f(%x: tensor<2x3x?x8xf64>, %c: tensor<?x4xf64>, %s: tensor<?x4xf64>)
    -> tensor<2x3x?x8xf64> {
  %y = attn.rope %x, %c, %s
       : tensor<2x3x?x8xf64>, tensor<?x4xf64>, tensor<?x4xf64>
  return %y : tensor<2x3x?x8xf64>
}""", [(2, 3, 4, 8), (4, 4), (4, 4)]),
    "rope_known_features": ("""
func.func @f(%x: tensor<2x3x4x?xf64>, %c: tensor<4x4xf64>, %s: tensor<4x4xf64>)
    -> tensor<2x3x4x?xf64> {
  %y = attn.rope %x, %c, %s
       : tensor<2x3x4x?xf64>, tensor<4x4xf64>, tensor<4x4xf64>
  return %y : tensor<2x3x4x?xf64>
}""", [(2, 3, 4, 8), (4, 4), (4, 4)]),
    "rope_interleaved": ("""
func.func @f(%x: tensor<2x3x4x6xf64>, %c: tensor<4x3xf64>, %s: tensor<4x3xf64>)
    -> tensor<2x3x4x6xf64> {
  %y = attn.rope %x, %c, %s interleaved
       : tensor<2x3x4x6xf64>, tensor<4x3xf64>, tensor<4x3xf64>
  return %y : tensor<2x3x4x6xf64>
}""", [(2, 3, 4, 6), (4, 3), (4, 3)]),
    "gate": ("""
func.func @f(%x: tensor<3x4xf64>, %g: tensor<3x4xf64>, %r: tensor<3x4xf64>)
    -> tensor<3x4xf64> {
  %y = attn.elementwise %x, %g {
  ^bb0(%a: f64, %b: f64):
    %one = arith.constant 1.0 : f64
    %n = arith.negf %b : f64
    %e = math.exp %n : f64
    %d = arith.addf %one, %e : f64
    %s = arith.divf %a, %d : f64
    attn.yield %s : f64
  } : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %z = attn.residual_add %y, %r : tensor<3x4xf64>, tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}""", [(3, 4), (3, 4), (3, 4)]),
    "unknown_heads": ("""
func.func @f(%q: tensor<2x?x?x4xf64>, %k: tensor<2x?x?x4xf64>,
             %v: tensor<2x?x?x3xf64>) -> tensor<2x?x?x3xf64> {
  %s = attn.scores %q, %k
       : tensor<2x?x?x4xf64>, tensor<2x?x?x4xf64> -> tensor<2x?x?x?xf64>
  %p = attn.softmax %s : tensor<2x?x?x?xf64> -> tensor<2x?x?x?xf64>
  %o = attn.values %p, %v
       : tensor<2x?x?x?xf64>, tensor<2x?x?x3xf64> -> tensor<2x?x?x3xf64>
  return %o : tensor<2x?x?x3xf64>
}""", [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)]),
    "scale_and_modify": ("""
func.func @f(%x: tensor<1x2x3x4xf64>, %t: tensor<2x4xf64>)
    -> tensor<1x2x3x4xf64> {
  %y = attn.scale %x by 0.3 : tensor<1x2x3x4xf64>
  %z = attn.modify %y {
  ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
    %u = tensor.extract %t[%h, %j] : tensor<2x4xf64>
    %m = arith.mulf %s, %u : f64
    attn.yield %m : f64
  } : tensor<1x2x3x4xf64>
  return %z : tensor<1x2x3x4xf64>
}""", [(1, 2, 3, 4), (2, 4)]),
    "mask_and_softmax": ("""
func.func @f(%x: tensor<1x2x4x4xf64>) -> tensor<1x2x4x4xf64> {
  %m = attn.mask %x {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x2x4x4xf64>
  %p = attn.softmax %m : tensor<1x2x4x4xf64> -> tensor<1x2x4x4xf64>
  return %p : tensor<1x2x4x4xf64>
}""", [(1, 2, 4, 4)]),
    "dropout": ("""
func.func @f(%x: tensor<3x8xf64>) -> tensor<3x8xf64> {
  %seed = arith.constant 7 : i64
  %y = attn.dropout %x, 0.4 seed(%seed, %seed) : tensor<3x8xf64>
  return %y : tensor<3x8xf64>
}""", [(3, 8)]),
    "log_sum_exp": ("""
func.func @f(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %y = attn.log_sum_exp %x : tensor<3x5xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}""", [(3, 5)]),
    "scores": ("""
func.func @f(%q: tensor<1x4x3x5xf64>, %k: tensor<1x2x4x5xf64>)
    -> tensor<1x4x3x4xf64> {
  %s = attn.scores %q, %k
       : tensor<1x4x3x5xf64>, tensor<1x2x4x5xf64> -> tensor<1x4x3x4xf64>
  return %s : tensor<1x4x3x4xf64>
}""", [(1, 4, 3, 5), (1, 2, 4, 5)]),
    "values": ("""
func.func @f(%p: tensor<1x4x3x4xf64>, %v: tensor<1x2x4x5xf64>)
    -> tensor<1x4x3x5xf64> {
  %o = attn.values %p, %v
       : tensor<1x4x3x4xf64>, tensor<1x2x4x5xf64> -> tensor<1x4x3x5xf64>
  return %o : tensor<1x4x3x5xf64>
}""", [(1, 4, 3, 4), (1, 2, 4, 5)]),
    "softmax_backward": ("""
func.func @f(%p: tensor<3x5xf64>, %g: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = attn.softmax_backward %p, %g
       : tensor<3x5xf64>, tensor<3x5xf64> -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}""", [(3, 5), (3, 5)]),
    "sum_queries": ("""
func.func @f(%w: tensor<1x4x3x4xf64>, %x: tensor<1x4x3x5xf64>)
    -> tensor<1x2x4x5xf64> {
  %y = attn.sum_queries %w, %x
       : tensor<1x4x3x4xf64>, tensor<1x4x3x5xf64> -> tensor<1x2x4x5xf64>
  return %y : tensor<1x2x4x5xf64>
}""", [(1, 4, 3, 4), (1, 4, 3, 5)]),
    "importer": ("""
func.func @f(%x: tensor<2x3x4xf64>, %w: tensor<4x5xf64>) -> tensor<2x3x5xf64> {
  %zero = arith.constant 0.0 : f64
  %lowest = arith.constant -1.0e300 : f64
  %flat = tensor.collapse_shape %x [[0, 1], [2]]
      : tensor<2x3x4xf64> into tensor<6x4xf64>
  %e = tensor.empty() : tensor<6x5xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<6x5xf64>)
      -> tensor<6x5xf64>
  %m = linalg.matmul ins(%flat, %w : tensor<6x4xf64>, tensor<4x5xf64>)
      outs(%f : tensor<6x5xf64>) -> tensor<6x5xf64>
  %r = tensor.empty() : tensor<6xf64>
  %l = linalg.fill ins(%lowest : f64) outs(%r : tensor<6xf64>) -> tensor<6xf64>
  %top = linalg.reduce { arith.maximumf } ins(%m : tensor<6x5xf64>)
      outs(%l : tensor<6xf64>) dimensions = [1]
  %wide = linalg.broadcast ins(%top : tensor<6xf64>) outs(%e : tensor<6x5xf64>)
      dimensions = [1]
  %d = arith.subf %m, %wide : tensor<6x5xf64>
  %p = math.exp %d : tensor<6x5xf64>
  %z = linalg.fill ins(%zero : f64) outs(%r : tensor<6xf64>) -> tensor<6xf64>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<6x5xf64>)
      outs(%z : tensor<6xf64>) dimensions = [1]
  %sums = linalg.broadcast ins(%sum : tensor<6xf64>)
      outs(%e : tensor<6x5xf64>) dimensions = [1]
  %q = arith.divf %p, %sums : tensor<6x5xf64>
  %y = tensor.expand_shape %q [[0, 1], [2]] output_shape [2, 3, 5]
      : tensor<6x5xf64> into tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}""", [(2, 3, 4), (4, 5)]),
    "slices": ("""
func.func @f(%x: tensor<4x6xf64>, %y: tensor<2x3xf64>) -> tensor<7x6xf64> {
  %zero = arith.constant 0.0 : f64
  %a = tensor.insert_slice %y into %x[1, 0] [2, 3] [1, 2]
      : tensor<2x3xf64> into tensor<4x6xf64>
  %b = tensor.extract_slice %x[0, 1] [2, 4] [1, 1]
      : tensor<4x6xf64> to tensor<2x4xf64>
  %c = tensor.pad %b low[0, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f64
  } : tensor<2x4xf64> to tensor<3x6xf64>
  %d = tensor.concat dim(0) %a, %c
      : (tensor<4x6xf64>, tensor<3x6xf64>) -> tensor<7x6xf64>
  return %d : tensor<7x6xf64>
}""", [(4, 6), (2, 3)]),
    "unit_dims": ("""
func.func @f(%x: tensor<3x4xf64>, %c: tensor<1x4x1xf64>, %t: tensor<4x4xf64>,
             %n: tensor<f64>) -> tensor<3x4xf64> {
  %e = tensor.empty() : tensor<3x4xf64>
  %s = tensor.extract %n[] : tensor<f64>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (0, j, 0)>,
                       affine_map<(i, j) -> (j, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %c, %t : tensor<3x4xf64>, tensor<1x4x1xf64>, tensor<4x4xf64>)
      outs(%e : tensor<3x4xf64>) {
  ^bb0(%a: f64, %b: f64, %d: f64, %out: f64):
    %p = arith.mulf %a, %b : f64
    %q = arith.mulf %p, %d : f64
    %r = arith.addf %q, %s : f64
    linalg.yield %r : f64
  } -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}""", [(3, 4), (1, 4, 1), (4, 4), ()]),
}


def check_gradients(text, shapes, make=torch.randn):
    torch.manual_seed(3)
    operands = [make(shape, dtype=torch.float64).to(DEVICE).requires_grad_()
                for shape in shapes]
    function = fovea.differentiable(text, TARGET)
    assert torch.autograd.gradcheck(function, operands, fast_mode=False)


@pytest.mark.parametrize("graph", GRAPHS)
def test_graph_ops(graph):
    check_gradients(*GRAPHS[graph])


# Scalar ops, as expressions of %x and %y, which are between 0.1 and 0.9.
SCALARS = {
    "addf": "%r = arith.addf %x, %y : f64",
    "subf": "%r = arith.subf %x, %y : f64",
    "mulf": "%r = arith.mulf %x, %y : f64",
    "divf": "%r = arith.divf %x, %y : f64",
    "remf": "%r = arith.remf %x, %y : f64",
    "maximumf": "%r = arith.maximumf %x, %y : f64",
    "minimumf": "%r = arith.minimumf %x, %y : f64",
    "maxnumf": "%r = arith.maxnumf %x, %y : f64",
    "minnumf": "%r = arith.minnumf %x, %y : f64",
    "powf": "%r = math.powf %x, %y : f64",
    "atan2": "%r = math.atan2 %x, %y : f64",
    "copysign": "%n = arith.negf %y : f64\n%r = math.copysign %x, %n : f64",
    "fma": "%r = math.fma %x, %y, %x : f64",
    "select": "%c = arith.cmpf olt, %x, %y : f64\n%p = arith.mulf %x, %x : f64\n"
              "%r = arith.select %c, %p, %y : f64",
    "fpowi": "%n = arith.constant -3 : i32\n%p = math.fpowi %x, %n : f64, i32\n"
             "%r = arith.mulf %p, %y : f64",
    "clampf": "%l = arith.constant 0.2 : f64\n"
              "%r = math.clampf %x to [%l, %y] : f64",
    "floor": "%f = math.floor %x : f64\n%r = arith.addf %f, %y : f64",
    "acosh": "%o = arith.constant 1.5 : f64\n%z = arith.addf %x, %o : f64\n"
             "%r = math.acosh %z : f64",
}
for op in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
           "rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
           "cosh", "tanh", "asinh", "atanh", "erf", "erfc", "absf"):
    SCALARS[op] = f"%z = math.{op} %x : f64\n%r = arith.mulf %z, %y : f64"


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalar_ops(scalar):
    text = f"""
func.func @f(%a: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<5xf64> {{
  %c = attn.elementwise %a, %b {{
  ^bb0(%x: f64, %y: f64):
    {SCALARS[scalar]}
    attn.yield %r : f64
  }} : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %c : tensor<5xf64>
}}"""
    check_gradients(text, [(5,), (5,)],
                    lambda *args, **kwargs: 0.1 + 0.8 * torch.rand(
                        *args, **kwargs))


@pytest.mark.parametrize("dtype, least", [("f16", -9.0), ("f32", -40.0),
                                          ("f64", -200.0)])
def test_small_slopes(dtype, least):
    """Of expm1, whose result is -1 where the slope is far below its rounding."""
    text = f"""
func.func @f(%x: tensor<9x{dtype}>) -> tensor<9x{dtype}> {{
  %y = attn.elementwise %x {{
  ^bb0(%a: {dtype}):
    %b = math.expm1 %a : {dtype}
    attn.yield %b : {dtype}
  }} : (tensor<9x{dtype}>) -> tensor<9x{dtype}>
  return %y : tensor<9x{dtype}>
}}"""
    torch_dtype = {"f16": torch.float16, "f32": torch.float32,
                   "f64": torch.float64}[dtype]
    x = torch.linspace(least, 1.0, 9, dtype=torch_dtype).to(DEVICE)
    expected = x.double().exp()
    y = fovea.differentiable(text, TARGET)(x.requires_grad_())
    gradient, = torch.autograd.grad(y, x, torch.ones_like(y))
    assert ((gradient.double() / expected - 1).abs()
            <= 8 * torch.finfo(torch_dtype).eps).all()

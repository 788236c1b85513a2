# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of attention against PyTorch's autograd in float64, on the host, or
on the target that the environment variable FOVEA_TEST_TARGET names. The cases
are those of the numerics tests.
"""

import functools
import os

import numpy as np
import pytest
from attention import (MASKS, MODIFICATIONS, ROUNDINGS, Case, keep_mask, narrow,
                       to_torch, widen)
from test_numerics import name

import fovea

torch = pytest.importorskip("torch")

TARGET = os.environ.get("FOVEA_TEST_TARGET", "host")
DEVICE = "cpu" if TARGET == "host" else "cuda"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

# (batch, queries, keys)
SHAPES = [(1, 1, 1), (2, 37, 37), (1, 64, 64), (1, 70, 33), (2, 5, 130),
          (1, 0, 8), (1, 8, 0)]
SQUARE_SHAPES = [(1, 1, 1), (2, 37, 37), (1, 64, 64)]

BOUNDS = {"f64": 1e-11, "f32": 3e-5, "f16": 6e-3, "bf16": 4e-2}


def modify(case, scores, captures):
    """The score modification of a case, by PyTorch."""
    queries, keys = scores.shape[2:]
    distance = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    if case.modification == "none":
        return scores
    if case.modification == "soft_cap":
        return 2.5 * torch.tanh(scores / 2.5)
    capture = captures.pop(0)
    if case.modification == "alibi":
        return scores + capture[None, :, None, None] * distance
    if case.modification == "bias":
        return scores + capture[None]
    assert case.modification == "relative"
    return scores + capture[distance + queries - 1]


def reference(case, operands, variables):
    """The results of a case by PyTorch in float64, where `variables` stand for
    the operands that are floating-point tensors."""
    captures = [variables.get(3 + index, operand)
                for index, operand in enumerate(operands[3:])]
    group = case.heads // case.kv_heads
    q = variables[0]
    k, v = (variables[index].repeat_interleave(group, 1) for index in (1, 2))
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * case.dim**-0.5
    scores = modify(case, scores, captures)
    keep = torch.ones(scores.shape, dtype=torch.bool)
    mask = MASKS[case.mask]
    if mask:
        grid = np.ogrid[tuple(slice(size) for size in scores.shape)]
        kept = mask.keep(*grid, captures.pop(0) if mask.capture else None,
                         tuple(scores.shape))
        keep = torch.from_numpy(np.broadcast_to(kept, scores.shape).copy())
    # Rows without a key give zeros, and gradients of zero.
    row = keep.any(-1, keepdim=True)
    zero = torch.zeros((), dtype=torch.float64)
    scores = torch.where(keep, scores, zero - torch.inf)
    scores = torch.where(row, scores, zero)
    p = torch.where(row & keep, torch.softmax(scores, -1), zero)
    if case.dropout:
        kept = torch.from_numpy(
            keep_mask(tuple(p.shape), case.dropout, *operands[-2:]))
        p = torch.where(kept, p / (1 - case.dropout), zero)
    output = torch.einsum("bhij,bhjd->bhid", p, v)
    if not case.lse:
        return (output,), row
    return (output, torch.logsumexp(scores, -1)), row


@functools.lru_cache(maxsize=None)
def compiled(case, **options):
    return fovea.differentiable(case.text, TARGET, **options)


def differentiate(case, operands, given=None, **options):
    """For each operand that has one its index, its gradient, and autograd's.
    `given` is what the compiled function gets instead of `operands`."""
    given = operands if given is None else given
    dtypes = [case.dtype] * 3 + ["f32"] * (len(operands) - 3)
    function = compiled(case, **options)
    tensors = []
    variables = {}
    for index, (operand, dtype) in enumerate(zip(operands, dtypes)):
        is_float = index < 3 or getattr(operand, "dtype", None) == np.float32
        tensor = (to_torch(given[index]) if isinstance(operand, np.ndarray)
                  else operand)
        if is_float:
            variables[index] = torch.tensor(
                widen(operand, dtype), dtype=torch.float64, requires_grad=True)
            tensor = tensor.to(DEVICE, copy=True).requires_grad_()
        elif isinstance(tensor, torch.Tensor) and tensor.ndim:
            tensor = tensor.to(DEVICE)
        tensors.append(tensor)
    expected, row = reference(case, operands, variables)
    results = function(*tensors)
    if not isinstance(results, tuple):
        results = (results,)
    rng = np.random.default_rng(7)
    cotangents = []
    for index, result in enumerate(expected):
        values = rng.standard_normal(tuple(result.shape))
        if index == 1:
            # The log-sum-exp of a row without a key is minus infinity.
            values = np.where(row[..., 0].numpy(), values, 0)
        cotangents.append(
            narrow(values, case.dtype if index == 0 else case.accumulator))
    types = [case.dtype, case.accumulator]
    gradients = torch.autograd.grad(
        results, [tensors[index] for index in variables],
        [to_torch(c).to(DEVICE) for c in cotangents])
    wanted = torch.autograd.grad(
        expected, list(variables.values()),
        [torch.tensor(widen(c, t), dtype=torch.float64)
         for c, t in zip(cotangents, types)], allow_unused=True)
    for index, gradient, exact in zip(variables, gradients, wanted):
        assert gradient.dtype == tensors[index].dtype
        assert gradient.shape == tensors[index].shape
        exact = torch.zeros(gradient.shape) if exact is None else exact
        yield index, gradient.cpu().double(), exact


def run(case, shape, poison=None, **options):
    """Compares all gradients of a case with autograd's; with `poison`, of one
    whose absent keys and values are that."""
    operands = case.make_operands(*shape)
    if poison is not None:
        options["given"] = case.poison(operands, poison)
    check_all(case, operands, **options)


def check_all(case, operands, first=0, rounding=0, **options):
    """Compares all gradients of a case with autograd's, those of operands' last
    dimensions from `first` on. Scores are rounded by `rounding`."""
    for index, gradient, exact in differentiate(case, operands, **options):
        if index < 3:
            gradient, exact = gradient[..., first:], exact[..., first:]
        if not gradient.numel():
            continue
        error = (gradient - exact).abs().max().item()
        # Gradients of scores are differences of numbers of magnitude 1.
        scale = max(exact.abs().max().item(), 1.0)
        # Captured tensors are f32, and their gradients sums over everything.
        bound = max(BOUNDS[case.dtype], 0 if index < 3 else BOUNDS["f32"])
        bound += rounding
        assert error <= bound * scale, (
            f"operand {index}: error {error:.3g}, relative {error / scale:.3g}, "
            f"bound {bound:.3g}")


def expand(cases, shapes=SHAPES):
    return [(case, shape) for case in cases for shape in
            (SQUARE_SHAPES if MASKS[case.mask] and MASKS[case.mask].square
             else shapes)]


POLICIES = [{"recompute": "always"}, {"recompute": "never"},
            {"textbook": True, "strategy": "unfused"}]


@pytest.mark.parametrize("options", POLICIES, ids=str)
@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype="f64", mask=mask) for mask in MASKS]
    + [Case(dtype="f64", modification=m) for m in MODIFICATIONS if m != "none"]
    + [Case(dtype="f64", modification="alibi", mask="causal"),
       Case(dtype="f64", modification="soft_cap", mask="window", lse=True),
       Case(dtype="f64", modification="bias", mask="padding"),
       Case(dtype="f64", modification="relative", mask="causal_documents"),
       Case(dtype="f64", dropout=0.3, mask="causal"),
       Case(dtype="f64", lse=True, mask="padding", dropout=0.2),
       Case(dtype="f64", heads=6, kv_heads=1, dim=24, value_dim=17),
       Case(dtype="f64", heads=3, kv_heads=3, dim=1, value_dim=5)],
    [(1, 1, 1), (2, 19, 19), (1, 18, 33), (1, 0, 8), (1, 8, 0)]), ids=name)
def test_exact(case, shape, options):
    """In f64, where only a mistake is an error."""
    run(case, shape, **options)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype=dtype, mask=mask, modification=m, dropout=p)
     for dtype in ("f32", "f16", "bf16")
     for mask, m, p in (("none", "none", 0), ("causal", "none", 0),
                        ("window", "alibi", 0), ("documents", "soft_cap", 0),
                        ("padding", "bias", 0.1))]), ids=name)
def test_dtypes(case, shape):
    run(case, shape, recompute="always")


@pytest.mark.parametrize("options", POLICIES[:2], ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("case, shape", expand(
    [Case(mask="padding"), Case(dtype="f64", mask="left_padding"),
     Case(mask="causal_left_padding", modification="soft_cap"),
     Case(dtype="f16", mask="positions", lse=True),
     Case(dtype="bf16", mask="padding_window", dropout=0.2)],
    [(3, 1, 130), (2, 37, 37), (2, 70, 257)]), ids=name)
def test_absent_keys(case, shape, value, options):
    """What lies behind a length, or before a start, may be no number."""
    run(case, shape, poison=value, **options)


# More queries and keys than a tile of the host has, by enough heads for all
# threads and by one.
@pytest.mark.parametrize("shape", [(1, 230, 205), (2, 210, 210)], ids=str)
@pytest.mark.parametrize("case", [
    Case(dtype="f64", mask=mask, modification=m, dropout=p, heads=heads,
         kv_heads=kv_heads, **more)
    for mask, m, p, heads, kv_heads, more in (
        ("none", "none", 0, 1, 1, {}),
        ("causal", "alibi", 0, 1, 1, {}),
        ("causal", "soft_cap", 0.2, 4, 2, {"lse": True}),
        ("window", "relative", 0, 2, 1, {"dim": 24, "value_dim": 17}),
        ("padding", "bias", 0.1, 4, 2, {}),
        ("documents", "bias", 0, 2, 2, {}))], ids=name)
def test_tiles(case, shape):
    if MASKS[case.mask].square if MASKS[case.mask] else False:
        shape = (shape[0], shape[2], shape[2])
    run(case, shape, recompute="always")


# Captured tensors by how the region reads them: the index, the sizes.
CAPTURES = {
    "score": ("%b, %h, %i, %j", (2, 4, 210, 130)),
    "one_batch": ("%zero, %h, %i, %j", (1, 4, 210, 130)),
    "one_head": ("%b, %zero, %i, %j", (2, 1, 210, 130)),
    "row_and_key": ("%i, %j", (210, 130)),
    "batch_row_and_key": ("%b, %i, %j", (2, 210, 130)),
    "head_row_and_key": ("%h, %i, %j", (4, 210, 130)),
    "head_and_key": ("%h, %j", (4, 130)),
    "batch_and_row": ("%b, %i", (2, 210)),
    "key": ("%j", (130,)),
    "constant": ("%zero, %h", (3, 4)),
    "transposed": ("%j, %i, %h", (130, 210, 4)),
    "diagonal": ("%b, %b", (2, 2)),
    "computed": ("%sum, %h", (340, 4)),
    "distance": ("%h, %distance", (4, 339)),
    "strided": ("%twice, %b", (500, 2)),
    "number": ("", ()),
}


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("name", CAPTURES)
def test_captures(name, dtype):
    """Tiles share what they read and add to of a captured tensor."""
    index, sizes = CAPTURES[name]
    t = "f64" if dtype == "f64" else "f32"
    capture = "tensor<" + "".join(f"{size}x" for size in sizes) + f"{t}>"
    text = f"""
func.func @f(%q: tensor<2x4x210x8x{dtype}>, %k: tensor<2x2x130x8x{dtype}>,
             %v: tensor<2x2x130x8x{dtype}>, %t: {capture})
    -> tensor<2x4x210x8x{dtype}> {{
  %s = attn.scores %q, %k : tensor<2x4x210x8x{dtype}>, tensor<2x2x130x8x{dtype}>
                            -> tensor<2x4x210x130x{t}>
  %a = attn.modify %s {{
  ^bb0(%score: {t}, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %last = arith.constant 209 : index
    %sum = arith.addi %i, %j : index
    %difference = arith.subi %j, %i : index
    %distance = arith.addi %difference, %last : index
    %half = arith.shrui %i, %two : index
    %double = arith.muli %j, %two : index
    %twice = arith.addi %double, %half : index
    %x = tensor.extract %t[{index}] : {capture}
    %r = arith.mulf %score, %x : {t}
    attn.yield %r : {t}
  }} : tensor<2x4x210x130x{t}>
  %p = attn.softmax %a : tensor<2x4x210x130x{t}> -> tensor<2x4x210x130x{t}>
  %o = attn.values %p, %v : tensor<2x4x210x130x{t}>, tensor<2x2x130x8x{dtype}>
                            -> tensor<2x4x210x8x{dtype}>
  return %o : tensor<2x4x210x8x{dtype}>
}}"""
    torch.manual_seed(5)
    narrow_type = getattr(torch, {"f64": "float64", "f32": "float32",
                                  "bf16": "bfloat16"}[dtype])
    capture_type = torch.float64 if dtype == "f64" else torch.float32
    variables = [torch.randn(shape, dtype=torch.float64).to(kind)
                 for shape, kind in (((2, 4, 210, 8), narrow_type),
                                     ((2, 2, 130, 8), narrow_type),
                                     ((2, 2, 130, 8), narrow_type),
                                     (sizes, capture_type))]
    q, k, v, x = [value.double().requires_grad_() for value in variables]
    b, h, i, j = torch.meshgrid(
        *(torch.arange(size) for size in (2, 4, 210, 130)), indexing="ij")
    places = {"%b": b, "%h": h, "%i": i, "%j": j, "%zero": 0 * b,
              "%sum": i + j, "%distance": j - i + 209,
              "%twice": 2 * j + i // 4}
    read = x[tuple(places[at] for at in index.split(", ") if at)]
    wide_k, wide_v = (value.repeat_interleave(2, 1) for value in (k, v))
    expected = torch.softmax(q @ wide_k.mT * read, -1) @ wide_v
    gradient = torch.randn_like(expected).to(narrow_type)
    wanted = torch.autograd.grad(expected, (q, k, v, x), gradient.double())
    attend = fovea.differentiable(text, TARGET, recompute="always")
    operands = [value.to(DEVICE).requires_grad_() for value in variables]
    found = torch.autograd.grad(attend(*operands), operands,
                                gradient.to(DEVICE))
    for value, exact in zip(found, wanted):
        error = (value.cpu().double() - exact).abs().max().item()
        scale = max(exact.abs().max().item(), 1.0)
        assert error <= BOUNDS[dtype] * scale, (error, scale)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype=dtype, mask=mask, dim=dim, value_dim=value_dim, heads=heads)
     for dtype, mask, dim, value_dim, heads in (
         ("bf16", "none", 64, 64, 2), ("bf16", "causal", 128, 128, 4),
         ("f16", "window", 64, 128, 4), ("f16", "documents", 96, 32, 2),
         ("bf16", "padding", 32, 32, 4), ("f32", "causal", 64, 64, 4),
         ("bf16", "causal", 256, 256, 2), ("f16", "none", 192, 128, 4),
         ("f32", "none", 256, 136, 2), ("bf16", "window", 80, 80, 2),
         ("f16", "causal_documents", 64, 64, 2))]
    + [Case(dtype="bf16", modification="soft_cap", mask="causal", dim=64,
            value_dim=64),
       Case(dtype="f16", dropout=0.2, mask="causal", dim=64, value_dim=64),
       Case(dtype="f32", modification="alibi", mask="causal"),
       Case(dtype="bf16", modification="bias", mask="padding", dim=64,
            value_dim=64, heads=4),
       Case(dtype="f16", modification="bias", dropout=0.1, dim=128,
            value_dim=128),
       Case(dtype="bf16", modification="relative", mask="causal", dim=128,
            value_dim=128, heads=4),
       Case(dtype="f32", modification="relative", mask="window"),
       Case(dtype="bf16", modification="soft_cap", dropout=0.1, lse=True,
            dim=128, value_dim=128)],
    [(1, 1, 1), (2, 37, 37), (1, 200, 200), (1, 129, 257), (1, 300, 64),
     (1, 8, 0), (1, 0, 8)]), ids=name)
def test_kernels(case, shape):
    """Several tiles of queries and keys, head dims of GPUs' kernels."""
    run(case, shape)


def exact_operands(case, shape, size):
    """Operands whose scores are exact, and have 2^size in common."""
    operands = case.make_operands(*shape)
    rng = np.random.default_rng(1)
    for index in (0, 1):
        values = rng.integers(-2, 3, operands[index].shape) / 2
        if case.modification == "none":
            values[..., 0] = 2.0**size if index == 0 else 1
        operands[index] = narrow(values, case.dtype)
    if case.modification == "bias":
        operands[3] = np.full_like(operands[3], -(2.0**size))
    return operands


@pytest.mark.parametrize("recompute", ["always", "never"])
@pytest.mark.parametrize("size, case", [
    (18, Case(dim=16)), (18, Case(dim=16, dtype="f64")),
    # Of 16-bit operands to which nothing is added: see rationale-gradients.md.
    (11, Case(dim=16, dtype="bf16")),
    (18, Case(dim=16, modification="bias")),
    (18, Case(dim=16, modification="bias", dtype="bf16")),
    (18, Case(dim=16, modification="bias", dtype="f16", mask="causal"))], ids=name)
def test_common_part_of_scores(size, case, recompute):
    """What all scores have in common has no effect on gradients: the log-sum-exp
    has room for it."""
    operands = exact_operands(case, (1, 70, 90), size)
    # Gradients of the common part itself are small sums of large numbers.
    # A host rounds queries times the scale and log2(e), and then their products.
    isrounded = (TARGET == "host" and recompute == "always"
                 and case.modification == "none")
    top = 2.0**size / 4
    check_all(case, operands, first=1, recompute=recompute,
              rounding=4 * ROUNDINGS[case.dtype] * top if isrounded else 0)


@pytest.mark.parametrize("recompute", ["always", "never"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("modification", ["none", "soft_cap"])
def test_nan_rows(modification, dtype, recompute):
    """A row of NaN has gradients of NaN, and so have all of its keys and values;
    those of other rows are as without it."""
    case = Case(dtype=dtype, modification=modification)
    operands = case.make_operands(1, 40, 50)
    operands[0][:, 1, 7, 2] = (0x7fc0 if dtype == "bf16" else np.nan)
    for index, gradient, exact in differentiate(case, operands,
                                                recompute=recompute):
        isnan = torch.isnan(gradient)
        if index == 0:
            assert isnan[:, 1, 7].all() and isnan.sum() == case.dim
        else:
            # Query heads 0 and 1 have the first head of keys.
            assert isnan[:, 0].all() and not isnan[:, 1].any()
        error = (gradient - exact)[~isnan].abs().max().item()
        assert error <= BOUNDS[dtype] * exact[~isnan].abs().max().item()


SAMPLES = [
    Case(dtype="bf16", mask="causal", dim=64, value_dim=64),
    Case(dtype="bf16", mask="causal", dim=128, value_dim=128, heads=4),
    Case(dtype="f16", modification="soft_cap", dropout=0.2, dim=64,
         value_dim=64),
    Case(dtype="f32", modification="alibi", mask="documents"),
    Case(dtype="bf16", modification="bias", mask="causal", dim=64,
         value_dim=64),
    Case(dtype="f16", modification="relative", dim=64, value_dim=64)]


@pytest.mark.parametrize("case, deterministic", [
    (case, deterministic) for deterministic in (False, True)
    for case in SAMPLES], ids=name)
def test_sample(case, deterministic):
    """Also what the sanitizers run."""
    run(case, (1, 200, 200), deterministic=deterministic)


# Sizes that the types tell, around those of the host's and GPUs' tiles: then
# tiles of one size are whole tensors, and zeros that two gradients start from
# are one.
@pytest.mark.parametrize("mask", ["causal", "window", "none"])
@pytest.mark.parametrize("queries, keys", [(4, 5), (5, 4), (8, 8), (16, 48),
                                           (17, 33), (64, 77), (1, 9)])
def test_static_sizes(queries, keys, mask):
    """Key and value have one shape, as have their gradients."""
    q, k = (f"tensor<1x2x{length}x8xf64>" for length in (queries, keys))
    keep = {"causal": "%m = arith.cmpi sge, %i, %j : index",
            "window": "%d = arith.subi %j, %i : index\n"
                      "%c = arith.constant 2 : index\n"
                      "%m = arith.cmpi slt, %d, %c : index",
            "none": "%m = arith.constant true"}[mask]
    function = fovea.differentiable(f"""
func.func @f(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
  %o = attn.attention %q, %k, %v scale(0.5) mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    {keep}
    attn.yield %m : i1
  }} : {q}, {k}, {k} -> {q}
  return %o : {q}
}}""", TARGET, recompute="always")
    torch.manual_seed(2)
    operands = [torch.randn(1, 2, length, 8, dtype=torch.float64)
                for length in (queries, keys, keys)]
    cotangent = torch.randn(1, 2, queries, 8, dtype=torch.float64)
    exact = [x.clone().requires_grad_() for x in operands]
    distance = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    kept = {"causal": distance <= 0, "window": distance < 2,
            "none": distance < keys}[mask]
    scores = 0.5 * exact[0] @ exact[1].mT
    output = torch.softmax(scores.masked_fill(~kept, -torch.inf), -1) @ exact[2]
    ours = [x.to(DEVICE).requires_grad_() for x in operands]
    found = torch.autograd.grad(function(*ours), ours, cotangent.to(DEVICE))
    for mine, wanted in zip(found, torch.autograd.grad(output, exact, cotangent)):
        torch.testing.assert_close(mine.cpu(), wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("options", [{"recompute": "always"},
                                     {"recompute": "never"}], ids=str)
def test_unread_score(options):
    """A score region that reads a table, and not its score."""
    function = fovea.differentiable("""
func.func @f(%q: tensor<1x1x4x8xf64>, %k: tensor<1x1x6x8xf64>,
             %v: tensor<1x1x6x8xf64>, %bias: tensor<4x6xf64>)
    -> tensor<1x1x4x8xf64> {
  %o = attn.attention %q, %k, %v scale(1.0) score {
  ^bb0(%s: f64, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<4x6xf64>
    attn.yield %x : f64
  } : tensor<1x1x4x8xf64>, tensor<1x1x6x8xf64>, tensor<1x1x6x8xf64>
      -> tensor<1x1x4x8xf64>
  return %o : tensor<1x1x4x8xf64>
}""", TARGET, **options)
    torch.manual_seed(2)
    operands = [torch.randn(shape, dtype=torch.float64, requires_grad=True)
                for shape in ((1, 1, 4, 8), (1, 1, 6, 8), (1, 1, 6, 8), (4, 6))]
    cotangent = torch.randn(1, 1, 4, 8, dtype=torch.float64)
    output = torch.softmax(operands[3], -1) @ operands[2]
    wanted = torch.autograd.grad(output, operands[2:], cotangent)
    ours = [x.detach().to(DEVICE).requires_grad_() for x in operands]
    found = [x.cpu() for x in torch.autograd.grad(
        function(*ours), ours, cotangent.to(DEVICE))]
    assert not found[0].any() and not found[1].any()
    for mine, exact in zip(found[2:], wanted):
        torch.testing.assert_close(mine, exact, rtol=0, atol=1e-12)


def test_autograd_goes_through():
    """Around the function is PyTorch's own; one operand needs no gradient, one
    is used twice, one result is not used."""
    text = Case(lse=True, mask="causal", static=(1, 8, 8), dtype="f64").text
    function = fovea.differentiable(text, TARGET)
    torch.manual_seed(1)
    x = torch.randn(1, 4, 8, 32, dtype=torch.float64, device=DEVICE,
                    requires_grad=True)
    v = torch.randn(1, 2, 8, 32, dtype=torch.float64, device=DEVICE)
    output, _ = function(x * 2, x[:, :2], v)
    output.square().sum().backward()

    y = x.detach().requires_grad_()
    expected = torch.nn.functional.scaled_dot_product_attention(
        y * 2, y[:, :2].repeat_interleave(2, 1), v.repeat_interleave(2, 1),
        is_causal=True)
    expected.square().sum().backward()
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype=dtype, mask=mask, dim=64, value_dim=64, heads=heads,
          kv_heads=kv_heads)
     for heads, kv_heads in ((8, 1), (12, 2), (7, 1))
     for mask in ("causal", "none") for dtype in ("bf16", "f32")],
    [(1, 1, 1), (2, 70, 130), (1, 300, 300), (1, 0, 8)]), ids=name)
def test_few_heads_of_keys(case, shape):
    """Groups that a GPU divides into shares, and blocks of several heads."""
    run(case, shape)


@pytest.mark.parametrize("width", [100, 2048, 20000])
def test_norm_weights(width):
    """Sums over rows, which a GPU divides into parts, few of which have rows."""
    text = f"""
    func.func @norm(%x: tensor<?x{width}xf32>, %w: tensor<{width}xf32>)
        -> tensor<?x{width}xf32> {{
      %y = attn.rms_norm %x weight(%w : tensor<{width}xf32>) epsilon(1.0e-5)
           : tensor<?x{width}xf32>
      return %y : tensor<?x{width}xf32>
    }}"""
    norm = fovea.differentiable(text, TARGET)
    for rows in (0, 1, 33, 1000):
        operands = [torch.randn(shape, device=DEVICE, requires_grad=True)
                    for shape in ((rows, width), (width,))]
        x, w = wide = [x.detach().double().requires_grad_() for x in operands]
        expected = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w
        cotangent = torch.randn_like(expected).float()
        found = torch.autograd.grad(norm(*operands), operands, cotangent)
        for a, b in zip(found, torch.autograd.grad(expected, wide,
                                                   cotangent.double())):
            torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("case, batch", [
    (Case(mask="causal", modification="relative", dropout=0.1), 2),
    (Case(mask="causal", modification="relative", dropout=0.1, heads=1,
          kv_heads=1), 1),
    (Case(dtype="bf16", modification="relative", heads=4, kv_heads=2, dim=64,
          value_dim=64), 3),
    (Case(dtype="f16", modification="alibi", heads=4, kv_heads=2, dim=64,
          value_dim=64), 2),
    # A bias in launches in turn, and, small, in integers.
    (Case(dtype="bf16", mask="causal", modification="bias", heads=4,
          kv_heads=2, dim=64, value_dim=64), 3),
    (Case(dtype="f16", modification="bias", static=(80, 49, 49), dim=64,
          value_dim=64), 80),
    (Case(mask="causal", modification="soft_cap", dropout=0.1, heads=4,
          kv_heads=2, dim=64, value_dim=64), 2)], ids=name)
def test_deterministic(case, batch):
    queries, keys = case.static[1:] if case.static else (300, 300)
    operands = case.make_operands(batch, queries, keys)
    text = fovea.differentiate(case.text, recompute="always", target=TARGET)
    function = fovea.compile(text, TARGET, deterministic=True)
    cotangent = narrow(
        np.random.default_rng(1).standard_normal(
            (batch, case.heads, queries, case.value_dim)), case.dtype)
    first, *others = (function(*operands, cotangent) for _ in range(4))
    for other in others:
        for a, b in zip(first, other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype="bf16", mask="causal", dim=64, value_dim=64),
     Case(dtype="f16", mask="window", dim=128, value_dim=64, dropout=0.2),
     Case(dtype="f32", mask="documents", modification="soft_cap", dim=32,
          value_dim=32),
     Case(dtype="bf16", mask="causal", modification="relative", dim=128,
          value_dim=128, heads=4),
     Case(dtype="f32", modification="relative", dim=32, value_dim=32),
     Case(dtype="f64", modification="relative", dim=32, value_dim=32),
     Case(dtype="f16", mask="padding", modification="bias", dropout=0.1, dim=64,
          value_dim=64)],
    [(1, 1, 1), (2, 129, 257), (1, 300, 64), (1, 8, 0), (1, 0, 8)])
    + [(Case(dtype="bf16", modification="bias", static=(80, 49, 49), dim=64,
             value_dim=64), (80, 49, 49))], ids=name)
def test_deterministic_kernels(case, shape):
    run(case, shape, deterministic=True)


@pytest.mark.parametrize("types", [
    ("bf16", "f32", "bf16", "bf16"), ("bf16", "bf16", "bf16", "f32"),
    ("f16", "f16", "bf16", "f32"), ("f16", "f16", "f16", "f32")], ids="-".join)
def test_mixed_types(types):
    """Of queries, keys, values and the output."""
    dtypes = {"f16": torch.float16, "bf16": torch.bfloat16,
              "f32": torch.float32}
    q, k, v, o = (f"tensor<2x2x?x64x{element}>" for element in types)
    s = "tensor<2x2x?x?xf32>"
    text = f"""
func.func @f(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
  %s = attn.scores %q, %k : {q}, {k} -> {s}
  %t = attn.scale %s by 0.125 : {s}
  %p = attn.softmax %t : {s} -> {s}
  %o = attn.values %p, %v : {s}, {v} -> {o}
  return %o : {o}
}}"""
    function = fovea.differentiable(text, TARGET)
    torch.manual_seed(1)
    operands = [torch.randn(2, 2, length, 64).to(dtypes[element])
                for length, element in zip((70, 90, 90), types)]
    cotangent = torch.randn(2, 2, 70, 64).to(dtypes[types[3]])
    ours = [x.to(DEVICE, copy=True).requires_grad_() for x in operands]
    output = function(*ours)
    assert output.dtype == dtypes[types[3]]
    output.backward(cotangent.to(DEVICE))
    exact = [x.double().requires_grad_() for x in operands]
    torch.nn.functional.scaled_dot_product_attention(*exact).backward(
        cotangent.double())
    bound = max(BOUNDS[element] for element in types)
    for mine, wanted in zip(ours, exact):
        assert mine.grad.dtype == mine.dtype
        error = (mine.grad.cpu().double() - wanted.grad).abs().max()
        assert error <= bound * max(wanted.grad.abs().max(), 1.0)


def test_texts():
    text = Case(static=(1, 8, 8)).text
    joint = fovea.differentiate(text)
    assert "func.func @attend_gradient(%q: " in joint
    assert "%cotangent0" in joint
    split = fovea.differentiate(text, partition=True, recompute="always")
    assert "@attend_forward(%q: " in split
    assert "@attend_backward(%q: " in split and "%result0" in split
    assert "attn.attention_backward" in split
    assert "x8x8x" not in split
    assert "attn.softmax_backward" in fovea.differentiate(text, textbook=True)


def test_errors():
    text = Case(static=(1, 8, 8)).text
    with pytest.raises(fovea.Error, match="unknown policy of recomputation "
                       "'sometimes'; expected auto, always or never"):
        fovea.differentiate(text, recompute="sometimes")
    with pytest.raises(fovea.Error, match="no public function @other"):
        fovea.differentiate(text, entry="other")
    function = fovea.differentiable(text)
    with pytest.raises(fovea.Error, match="@attend: expected 3 operands, got 1"):
        function(torch.zeros(1))
    with pytest.raises(fovea.Error, match="operand 0 .%saved0. of @attend: the "
                       "name is one of those that the backward pass uses"):
        fovea.differentiable(text.replace("%q", "%saved0"))

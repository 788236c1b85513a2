# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention against float64, within the bounds of attention.py: on the host, or
on the target that the environment variable FOVEA_TEST_TARGET names."""

import functools
import os

import numpy as np
import pytest

import fovea
from attention import (MASKS, MODIFICATIONS, NUMPY, Case, check, narrow,
                       widen)

TARGET = os.environ.get("FOVEA_TEST_TARGET", "host")

# (batch, queries, keys): nothing, one, tiles and not, more queries than keys.
SHAPES = [(1, 1, 1), (2, 37, 37), (1, 64, 64), (1, 100, 33), (2, 5, 130),
          (1, 129, 257), (1, 0, 8), (1, 8, 0), (0, 4, 4)]
SQUARE_SHAPES = [(1, 1, 1), (2, 37, 37), (1, 64, 64), (2, 130, 130),
                 (1, 0, 0)]


def square(case):
    mask = MASKS[case.mask]
    return bool(mask and mask.square)


@functools.lru_cache(maxsize=None)
def compiled(case, strategy):
    return fovea.compile(case.text, target=TARGET, strategy=strategy)


def run(case, shape, strategy="fused"):
    operands = case.make_operands(*shape)
    results = compiled(case, strategy)(*operands)
    if not isinstance(results, tuple):
        results = (results,)
    expected, top = case.reference(operands)
    assert len(results) == len(expected)
    for index, (result, reference) in enumerate(zip(results, expected)):
        check(result, reference, case.dtype if index == 0 else case.accumulator,
              top)


def name(value):
    if isinstance(value, Case):
        default = Case()
        return "-".join(
            f"{key}={getattr(value, key)}" for key in vars(default)
            if getattr(value, key) != getattr(default, key)) or "plain"
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def expand(cases, shapes=SHAPES, square_shapes=SQUARE_SHAPES):
    return [(case, shape) for case in cases
            for shape in (square_shapes if square(case) else shapes)]


@pytest.mark.parametrize("case, shape", expand(
    [Case(mask=mask) for mask in MASKS]
    + [Case(modification=m) for m in MODIFICATIONS if m != "none"]
    + [Case(modification="alibi", mask="causal"),
       Case(modification="soft_cap", mask="window"),
       Case(modification="bias", mask="padding"),
       Case(modification="relative", mask="causal_documents")]), ids=name)
def test_regions(case, shape):
    """Every score modification and mask."""
    run(case, shape)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dtype=dtype, mask=mask, modification=m)
     for dtype in ("f64", "f16", "bf16")
     for mask, m in (("none", "none"), ("causal", "none"),
                     ("window", "alibi"), ("documents", "soft_cap"))],
    [(1, 1, 1), (2, 37, 37), (1, 100, 33), (1, 129, 257), (1, 8, 0)]), ids=name)
def test_dtypes(case, shape):
    run(case, shape)


@pytest.mark.parametrize("strategy", fovea.STRATEGIES[1:])
@pytest.mark.parametrize("case, shape", expand(
    [Case(), Case(mask="causal"), Case(mask="padding", modification="alibi"),
     Case(mask="nothing"), Case(dtype="f16", mask="causal"),
     Case(dtype="bf16", modification="soft_cap"),
     Case(dtype="f64", mask="window"),
     Case(mask="causal", lse=True), Case(mask="window", dropout=0.25)],
    [(2, 37, 37), (1, 100, 33), (1, 5, 130), (1, 8, 0)]), ids=name)
def test_strategies(case, shape, strategy):
    run(case, shape, strategy)


@pytest.mark.parametrize("strategy", fovea.STRATEGIES)
@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("case, shape", expand(
    [Case(mask="padding"), Case(mask="left_padding", dtype="f64"),
     Case(mask="causal_left_padding", modification="soft_cap"),
     Case(mask="positions", dtype="f16", lse=True, heads=8),
     Case(mask="kept_from"),
     Case(mask="padding_window", dtype="bf16", modification="alibi",
          dropout=0.2),
     Case(mask="left_padding", dtype="f16", dim=64, value_dim=128)],
    [(3, 1, 130), (2, 37, 37), (4, 70, 257)]), ids=name)
def test_absent_keys(case, shape, value, strategy):
    """What lies behind a length, or before a start, may be no number."""
    operands = case.make_operands(*shape)
    expected, top = case.reference(operands)
    results = compiled(case, strategy)(*case.poison(operands, value))
    if not case.lse:
        results = (results,)
    for index, (result, exact) in enumerate(zip(results, expected)):
        check(result, exact, case.dtype if index == 0 else case.accumulator,
              top)


@pytest.mark.parametrize("case, shape", expand(
    [Case(heads=1, kv_heads=1, dim=64, value_dim=64, mask="causal"),
     Case(heads=6, kv_heads=1), Case(heads=6, kv_heads=2),
     Case(heads=3, kv_heads=3),
     Case(dim=1, value_dim=1), Case(dim=8, value_dim=8),
     Case(dim=40, value_dim=24), Case(dim=64, value_dim=128, mask="causal"),
     Case(dim=80, value_dim=80), Case(dim=128, value_dim=128),
     Case(dim=96, value_dim=17, dtype="f16"),
     Case(dim=256, value_dim=256, dtype="bf16", mask="causal"),
     Case(dim=33, value_dim=47, dtype="f64")],
    [(1, 3, 7), (2, 50, 65), (1, 97, 128)]), ids=name)
def test_sizes(case, shape):
    """Grouped heads, odd and unequal head dimensions."""
    run(case, shape)


@pytest.mark.parametrize("case, shape", expand(
    [Case(lse=True), Case(lse=True, mask="causal"),
     Case(lse=True, mask="nothing"), Case(lse=True, dtype="f16"),
     Case(lse=True, dtype="f64", mask="padding"),
     Case(lse=True, modification="soft_cap"),
     Case(lse=True, dropout=0.5, mask="causal")],
    [(1, 1, 1), (2, 37, 37), (1, 100, 33), (1, 8, 0)]), ids=name)
def test_log_sum_exp(case, shape):
    run(case, shape)


@pytest.mark.parametrize("case, shape", expand(
    [Case(dropout=0.1), Case(dropout=0.5, mask="causal"),
     Case(dropout=0.3, dtype="bf16"),
     Case(dropout=0.9, modification="alibi", mask="window")],
    [(1, 1, 1), (2, 37, 37), (1, 100, 33), (2, 5, 130)]), ids=name)
def test_dropout(case, shape):
    run(case, shape)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 37, 37), (1, 96, 128),
                                   (1, 100, 33), (1, 0, 8), (1, 8, 0)], ids=name)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_static_sizes(shape, dtype):
    run(Case(static=shape, dtype=dtype, mask="causal"), shape)


@pytest.mark.parametrize("case, shape", [
    (Case(static=shape, heads=heads, kv_heads=kv_heads, dim=64, value_dim=64,
          dtype=dtype, mask=mask, lse=lse, modification=modification), shape)
    for shape, heads, kv_heads, dtype, mask, modification, lse in [
        ((1, 1, 3000), 8, 2, "bf16", "none", "none", False),
        ((2, 1, 3000), 8, 2, "f16", "padding", "none", True),
        ((3, 2, 1025), 7, 1, "bf16", "padding", "alibi", True),
        ((1, 3, 2047), 6, 6, "f16", "window", "none", True),
        ((1, 4, 1500), 6, 3, "f32", "nothing", "soft_cap", True),
        ((2, 5, 1200), 10, 2, "bf16", "left_padding", "none", False)]],
    ids=name)
def test_decode(case, shape):
    """A few queries over long keys, which a GPU splits."""
    run(case, shape)


@functools.lru_cache(maxsize=None)
def compiled_by_lengths():
    blocks = "" if TARGET == "host" else "warps = 4, stages = 2, "
    tile = "16x16" if TARGET == "host" else "64x16"
    queries, keys = "tensor<?x2x1x16xf32>", "tensor<?x2x?x16xf32>"
    return fovea.compile(f"""
func.func @attend(%q: {queries}, %k: {keys}, %v: {keys}, %lengths: tensor<?xi32>) -> {queries} {{
  %o = attn.attention %q, %k, %v scale(0.25)
    mask {{
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %n = tensor.extract %lengths[%b] : tensor<?xi32>
      %end = arith.index_cast %n : i32 to index
      %keep = arith.cmpi slt, %j, %end : index
      attn.yield %keep : i1
    }} {{schedule = #attn.schedule<tile = {tile}, order = linear, {blocks}split = 5>}}
    : {queries}, {keys}, {keys} -> {queries}
  return %o : {queries}
}}""", target=TARGET)


@pytest.mark.parametrize("kind", ["any", "one", "equal", "zipf", "short", "none"])
def test_parts_of_sequences(kind):
    """Keys that are split by lengths: each key counts once, however many
    sequences there are and however long they are, and none behind a length."""
    rng = np.random.default_rng(1)
    for batch in (1, 2, 3, 4, 5, 6, 9, 16, 31, 64):
        lengths = {"any": rng.integers(0, 300, batch),
                   "one": np.where(np.arange(batch) == batch // 2, 299, 1),
                   "equal": np.full(batch, rng.integers(1, 300)),
                   "zipf": rng.permutation(299 // np.arange(1, batch + 1)),
                   "short": rng.integers(0, 3, batch),
                   "none": np.zeros(batch)}[kind].astype(np.int32)
        q = rng.standard_normal((batch, 2, 1, 16), dtype=np.float32)
        k, v = rng.standard_normal((2, batch, 2, 300, 16), dtype=np.float32)
        absent = np.arange(300) >= lengths[:, None, None]
        scores = np.einsum("bhid,bhjd->bhij", q, k, dtype=np.float64) / 4
        weights = np.exp(scores) * ~absent[:, :, None]
        sums = weights.sum(-1, keepdims=True)
        expected = np.einsum("bhij,bhjd->bhid", weights / np.where(sums, sums, 1), v)
        for x in (k, v):
            x[np.broadcast_to(absent, x.shape[:3])] = np.nan
        result = compiled_by_lengths()(q, k, v, lengths)
        assert np.abs(result - expected).max() < 1e-5


@pytest.mark.parametrize("dtype, lse, result, parts", [
    ("f32", "f32", "f32", 5), ("f32", "f64", "bf16", 3), ("f16", "f32", "f16", 1),
    ("bf16", "f32", "f32", 16), ("f64", "f64", "f64", 2), ("f32", "f32", "f32", 0)])
def test_merge(dtype, lse, result, parts):
    """Parts of the keys: some without a key, whose output may be no number, rows
    without any, and parts that outweigh the others."""
    shape = (parts, 2, 3, 7)
    text = f"""
func.func @merge(%p: tensor<?x2x3x?x40x{dtype}>, %l: tensor<?x2x3x?x{lse}>)
    -> (tensor<2x3x?x40x{result}>, tensor<2x3x?x{lse}>) {{
  %o, %lse = attn.merge %p, %l
      : tensor<?x2x3x?x40x{dtype}>, tensor<?x2x3x?x{lse}>
        -> tensor<2x3x?x40x{result}>, tensor<2x3x?x{lse}>
  return %o, %lse : tensor<2x3x?x40x{result}>, tensor<2x3x?x{lse}>
}}"""
    random = np.random.default_rng(7)
    outputs = narrow(random.standard_normal((*shape, 40)), dtype)
    sums = random.standard_normal(shape).astype(NUMPY[lse]) * 3
    if parts:
        sums[0, 0] += 100
        sums[random.integers(0, parts, 20), 1] = -np.inf
        sums[:, :, 1, 2] = -np.inf
        outputs[np.isneginf(sums)] = narrow(np.float64(np.nan), dtype)

    exact, wide = widen(outputs, dtype), sums.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.max(wide, axis=0, initial=-np.inf)
        weights = np.where(np.isneginf(wide), 0, np.exp(wide - top))
        total = weights.sum(axis=0)
        merged = np.where(weights[..., None] == 0, 0,
                          weights[..., None] * exact).sum(axis=0)
        merged = np.where(total[..., None] == 0, 0, merged / total[..., None])
        logarithm = np.where(total == 0, -np.inf, top + np.log(total))

    actual, actual_lse = fovea.compile(text, target=TARGET)(outputs, sums)
    check(actual, merged, result, 100)
    check(actual_lse, logarithm, lse if dtype == "f64" else "f32", 100)


@pytest.mark.parametrize("strategy", ["fused", "unfused"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_strided_operands(dtype, strategy):
    """Operands that are views: heads and positions exchanged, every second
    position, the last dimension not contiguous, reversed, not writable."""
    case = Case(dtype=dtype, mask="causal")
    q, k, v = case.make_operands(2, 40, 48)
    views = {
        "transposed": [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
                       for x in (q, k, v)],
        "stepped": [np.repeat(x, 2, axis=2)[:, :, ::2] for x in (q, k, v)],
        "inner": [np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
                  for x in (q, k, v)],
        "reversed": [np.ascontiguousarray(x[:, ::-1, ::-1])[:, ::-1, ::-1]
                     for x in (q, k, v)],
        "packed": [np.concatenate([x, x], -1)[..., :x.shape[-1]]
                   for x in (q, k, v)],
        "broadcast": [np.broadcast_to(x[:1], x.shape) for x in (q, k, v)],
    }
    function = compiled(case, strategy)
    for kind, operands in views.items():
        for operand in operands:
            operand.flags.writeable = False
        (expected,), top = case.reference(operands)
        check(function(*operands), expected, dtype, top)


def test_large_scores():
    """Scores of several hundred: the maximum keeps the exponential finite."""
    case = Case(mask="causal")
    operands = case.make_operands(1, 64, 64)
    operands[0] = operands[0] * 100
    output = compiled(case, "fused")(*operands)
    (expected,), top = case.reference(operands)
    assert top > 300
    check(output, expected, "f32", top)


@pytest.mark.parametrize("shape", [(1, 100, 33), (1, 129, 257), (1, 600, 600),
                                   (1, 300, 2000)], ids=name)
def test_biased_scores(shape):
    """Large biases cost no precision: they are subtracted from one another before
    anything rounds. Queries, keys and slopes are such that scores are exact."""
    case = Case(modification="alibi", dim=16)
    operands = case.make_operands(*shape)
    rng = np.random.default_rng(1)
    for index in (0, 1):
        operands[index] = (rng.integers(-4, 5, operands[index].shape)
                           / 4).astype(np.float32)
    q, k = (x.astype(np.float64) for x in operands[:2])
    scores = MODIFICATIONS["alibi"].compute(
        np.einsum("bhid,bhjd->bhij", q, np.repeat(k, 2, 1)) / 4, operands[3])
    assert np.array_equal(scores, scores.astype(np.float32))

    output = compiled(case, "fused")(*operands)
    (expected,), _ = case.reference(operands)
    assert np.abs(output - expected).max() <= 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize("strategy", fovea.STRATEGIES)
@pytest.mark.parametrize("case", [
    Case(mask="causal", lse=True), Case(mask="causal", dtype="bf16"),
    Case(mask="causal", dtype="f16", modification="soft_cap"),
    Case(dtype="f64", lse=True), Case(lse=True, modification="bias"),
    Case(mask="padding_window", dtype="bf16", lse=True)], ids=name)
def test_nan_rows(case, strategy):
    """A row whose scores are NaN is NaN, whatever bits say so; one without a key
    is zero, whatever its query."""
    operands = case.make_operands(2, 70, 90)
    rows = (5, 20, 69)
    for row, bits in zip(rows, (0x7fc00000, 0xffc00000, 0xffffffff)):
        nan = np.array(bits, np.uint32).view(np.float32)
        if case.dtype == "bf16":
            operands[0][:, :, row, 3] = bits >> 16
        else:
            operands[0][:, :, row, 3] = nan
    results = compiled(case, strategy)(*operands)
    if not isinstance(results, tuple):
        results = (results,)
    with np.errstate(invalid="ignore"):
        expected, top = case.reference(operands)
    for index, (result, reference) in enumerate(zip(results, expected)):
        # NumPy's maximum of a row with NaN is NaN, and so is such a row.
        check(result, reference, case.dtype if index == 0 else case.accumulator,
              top)
    if case.mask == "causal" or case.mask == "none":
        assert np.isnan(widen(results[0], case.dtype)[:, :, rows]).all()


@pytest.mark.parametrize("strategy", fovea.STRATEGIES)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("lowest", [
    -1e4, -1e9, -1e30, np.finfo(np.float32).min, -np.inf], ids=str)
def test_additive_masks(lowest, dtype, strategy):
    """A captured mask that is added. Rows that it masks as a whole average their
    values, if it is finite, and are zeros, if it is not."""
    case = Case(modification="bias", dtype=dtype)
    operands = case.make_operands(1, 70, 70)
    i, j = np.ogrid[:70, :70]
    mask = np.where((i >= j) & (j >= 10), 0, lowest).astype(np.float32)
    operands[3] = np.broadcast_to(mask, (case.heads, 70, 70)).copy()
    output = compiled(case, strategy)(*operands)
    # Scores as they are in f32.
    q, k, v = (widen(x, dtype) for x in operands[:3])
    k, v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    scores = np.einsum("bhid,bhjd->bhij", q, k) * case.dim**-0.5
    scores = scores.astype(np.float32) + operands[3][None]
    assert scores.dtype == np.float32
    top = scores.max(-1, keepdims=True).astype(np.float64)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    expected = np.einsum("bhij,bhjd->bhid",
                         weights / np.where(total > 0, total, 1), v)
    # Of scores near -1e4 one in a million is rounded.
    check(output, expected, dtype, 1e4 if lowest == -1e4 else 10)


@pytest.mark.parametrize("strategy", fovea.STRATEGIES)
@pytest.mark.parametrize("case", [
    Case(dim=16), Case(dim=16, dtype="bf16"), Case(dim=16, dtype="f16"),
    Case(dim=16, dtype="f64"), Case(dim=16, dtype="bf16", mask="causal"),
    Case(dim=16, dtype="bf16", modification="alibi"),
    Case(dim=16, modification="soft_cap")], ids=name)
@pytest.mark.parametrize("size", [6, 11, 18], ids=str)
def test_common_part_of_scores(size, case, strategy):
    """What all scores of a row have in common has no effect, however large it
    is: here 2^size, beside products that are exact."""
    operands = case.make_operands(1, 70, 90)
    rng = np.random.default_rng(1)
    for index in (0, 1):
        values = rng.integers(-2, 3, operands[index].shape) / 2
        # f16 ends at 2^16.
        values[..., 0] = (2.0**min(size, 15 if case.dtype == "f16" else size)
                          if index == 0 else 1)
        operands[index] = narrow(values, case.dtype)
    output = compiled(case, strategy)(*operands)
    (expected,), top = case.reference(operands)
    # A host rounds queries times the scale and log2(e), and then their products.
    is_rounded = TARGET == "host" and case.modification == "none"
    check(output, expected, case.dtype, 2 * top if is_rounded else 0)


@pytest.mark.parametrize("case", [
    Case(dim=16), Case(dim=16, dtype="bf16"),
    Case(dim=16, dtype="bf16", mask="causal", lse=True),
    Case(dim=16, modification="bias")], ids=name)
@pytest.mark.parametrize("size", [20, 30, 40, 60, 100], ids=str)
def test_huge_scores(size, case):
    """Scores of up to 2^101 and more: a row is the mean of the values of its
    largest ones."""
    operands = case.make_operands(1, 70, 90)
    rng = np.random.default_rng(1)
    for index in (0, 1):
        values = rng.integers(-2, 3, operands[index].shape) / 2
        operands[index] = narrow(values * (2.0**size if index == 0 else 1),
                                 case.dtype)
    if case.modification == "bias":
        operands[3] = np.zeros_like(operands[3])
    results = compiled(case, "fused")(*operands)
    results = results if isinstance(results, tuple) else (results,)
    expected, _ = case.reference(operands)
    if TARGET == "host" and case.modification == "none":
        # There rounding decides among equal ones, see above.
        q, k = (widen(x, case.dtype) for x in operands[:2])
        scores = np.einsum("bhid,bhjd->bhij", q, np.repeat(k, 2, 1))
        if case.mask == "causal":
            scores = np.where(np.tri(70, 90, dtype=bool), scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        isone = (scores == top).sum(-1) == 1
        results = [np.asarray(x)[isone] for x in results]
        expected = [x[isone] for x in expected]
    check(results[0], expected[0], case.dtype, 0)
    if case.lse:
        check(results[1], expected[1], case.accumulator, 0)


def test_strategies_agree_with_many_queries_and_keys():
    """More tiles than threads, in every strategy."""
    case = Case(mask="causal", heads=2, kv_heads=1, dim=64, value_dim=64)
    for strategy in ("fused", "two-pass", "three-pass"):
        run(case, (1, 700, 900), strategy)


@pytest.mark.parametrize("strategy", fovea.STRATEGIES)
def test_what_a_score_region_rounds_is_rounded(strategy):
    """In no level of the IR is the pair of casts taken for nothing."""
    attend = fovea.compile("""
!t = tensor<1x2x64x64xf32>
func.func @attend(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %t = arith.truncf %s : f32 to bf16
    %x = arith.extf %t : bf16 to f32
    attn.yield %x : f32
  } : !t, !t, !t -> !t
  return %o : !t
}""", target=TARGET, strategy=strategy)
    # Whole numbers, so that no other rounding decides what the casts make.
    random = np.random.default_rng(0)
    q, k = random.integers(-9, 10, (2, 1, 2, 64, 64)).astype(np.float32)
    scores = np.einsum("bhid,bhjd->bhij", q, k) / 8
    rounded = widen(narrow(scores, "bf16"), "bf16").astype(np.float64)
    assert (rounded != scores).mean() > 0.1
    weights = np.exp(rounded - rounded.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ k
    found = np.asarray(attend(q, k))
    assert np.abs(found - expected).max() < 1e-4

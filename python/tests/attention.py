# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as MLIR's text, and the same in NumPy's float64.

A `Case` is put together from a score modification, a mask, sizes and a type.
`Case.text` states it as a graph (or as the fused op); `Case.reference` computes
it from first principles: no code is shared with the compiler.
"""

import dataclasses

import numpy as np

# How far a result may be from float64, relative to its largest magnitude: a
# rounding to the type or two for the small types, sums of some hundred terms for
# the wide ones.
BOUNDS = {"f64": 1e-13, "f32": 5e-6, "f16": 1e-3, "bf16": 8e-3}

# Scores are rounded to the accumulation type, as products and when a
# modification adds to them. Of a score s that is s * 2^-24 in f32, absolute, and
# so relative in its exponential: what decides a row is its largest score. Nothing
# is rounded after that; test_biased_scores isolates this. `fovea-run --check`,
# which does not know the scores, allows what f32 may have with scores up to 126.
ROUNDINGS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-24,
             "bf16": 2.0**-24}


def bound_of(dtype, top):
    """The bound where the largest magnitude of a row's maximum is `top`."""
    return BOUNDS[dtype] + 2 * ROUNDINGS[dtype] * top

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16,
         "bf16": np.uint16}


def to_bf16(values):
    """float64 to the bits of bf16, to nearest, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def widen(array, dtype):
    """An array of a test's type as float64."""
    return (from_bf16(array) if dtype == "bf16" else array).astype(np.float64)


def narrow(values, dtype):
    return to_bf16(values) if dtype == "bf16" else values.astype(NUMPY[dtype])


def to_torch(array):
    """An array, whose bf16 are their bits, as a tensor of PyTorch."""
    import torch  # Not every test needs it.

    array = np.asarray(array)
    if array.dtype != np.uint16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def philox(counter, key):
    """Philox-4x32-10 on arrays of 32-bit words, kept in uint64."""
    low = np.uint64(0xffffffff)
    words = [word.astype(np.uint64) & low for word in counter]
    keys = [np.uint64(word) for word in key]
    for _ in range(10):
        first = words[0] * np.uint64(0xD2511F53)
        second = words[2] * np.uint64(0xCD9E8D57)
        words = [(second >> np.uint64(32)) ^ words[1] ^ keys[0], second & low,
                 (first >> np.uint64(32)) ^ words[3] ^ keys[1], first & low]
        keys = [(keys[0] + np.uint64(0x9E3779B9)) & low,
                (keys[1] + np.uint64(0xBB67AE85)) & low]
    return words


def keep_mask(shape, probability, seed, offset):
    """Which elements of a tensor a dropout keeps."""
    columns = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    row, column = np.meshgrid(np.arange(rows, dtype=np.uint64),
                              np.arange(columns, dtype=np.uint64),
                              indexing="ij")
    full = np.full_like(row, 1)
    words = philox(
        [column // np.uint64(4), row, full * np.uint64(offset & 0xffffffff),
         full * np.uint64(offset >> 32)], [seed & 0xffffffff, seed >> 32])
    word = np.choose(column.astype(np.int64) % 4, words)
    return (word >= np.uint64(int(probability * 2**32))).reshape(shape)


# Score modifications: the region's text, given the accumulation type; what it
# computes; and its captured operand: MLIR type and values.

def _soft_cap(t):
    return f"""
      %cap = arith.constant 2.5 : {t}
      %x = arith.divf %s, %cap : {t}
      %y = math.tanh %x : {t}
      %r = arith.mulf %y, %cap : {t}"""


def _alibi(t):
    extend = "%slope = arith.extf %slope_ : f32 to f64" if t == "f64" else ""
    name = "%slope_" if t == "f64" else "%slope"
    return f"""
      {name} = tensor.extract %slopes[%h] : tensor<?xf32>
      {extend}
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %f = arith.sitofp %n : i32 to {t}
      %bias = arith.mulf %slope, %f : {t}
      %r = arith.addf %s, %bias : {t}"""


def _add(t, what, kind):
    extend = "%e = arith.extf %e_ : f32 to f64" if t == "f64" else ""
    name = "%e_" if t == "f64" else "%e"
    return f"""
      {name} = tensor.extract {what} : {kind}
      {extend}
      %r = arith.addf %s, %e : {t}"""


def _relative(t):
    return """
      %one = arith.constant 1 : index
      %queries = tensor.dim %q, %c2 : QTYPE
      %d = arith.subi %j, %i : index
      %last = arith.subi %queries, %one : index
      %at = arith.addi %d, %last : index""" + _add(t, "%table[%at]",
                                                   "tensor<?xf32>")


@dataclasses.dataclass(frozen=True)
class Modification:
    text: callable
    compute: callable
    #: Name, MLIR type and values of the captured operand, if there is one.
    capture: tuple = None


def _grid(shape):
    return np.ogrid[tuple(slice(size) for size in shape)]


MODIFICATIONS = {
    "none": None,
    "soft_cap": Modification(
        _soft_cap, lambda s, capture: 2.5 * np.tanh(s / 2.5)),
    "alibi": Modification(
        _alibi,
        lambda s, slopes: s + slopes[None, :, None, None] *
        (_grid(s.shape)[3] - _grid(s.shape)[2]),
        ("slopes", "tensor<?xf32>",
         lambda rng, shape: 2.0**-np.arange(1, shape[1] + 1))),
    "bias": Modification(
        lambda t: _add(t, "%bias[%h, %i, %j]", "tensor<?x?x?xf32>"),
        lambda s, bias: s + bias[None],
        ("bias", "tensor<?x?x?xf32>",
         lambda rng, shape: rng.standard_normal(shape[1:]))),
    "relative": Modification(
        _relative,
        lambda s, table: s + table[
            _grid(s.shape)[3] - _grid(s.shape)[2] + s.shape[2] - 1],
        ("table", "tensor<?xf32>",
         lambda rng, shape: rng.standard_normal(shape[2] + shape[3]))),
}


@dataclasses.dataclass(frozen=True)
class Mask:
    text: str
    #: Of b, h, i, j as an open grid, the captured operand and the sizes.
    keep: callable
    capture: tuple = None
    #: True if it needs as many queries as keys.
    square: bool = False
    #: Keys whose contents do not matter: of the batch, the key, the captured
    #: operand and the sizes.
    absent: callable = None


_CAUSAL = "%m0 = arith.cmpi sge, %i, %j : index\n"
_DOCUMENTS = """
      %di = tensor.extract %ids[%b, %i] : tensor<?x?xi32>
      %dj = tensor.extract %ids[%b, %j] : tensor<?x?xi32>
      %m1 = arith.cmpi eq, %di, %dj : i32
"""
_PADDING = """
      %length_ = tensor.extract %lengths[%b] : tensor<?xi32>
      %length = arith.index_cast %length_ : i32 to index
      %m1 = arith.cmpi slt, %j, %length : index
"""
_START = """
      %start_ = tensor.extract %starts[%b] : tensor<?xi32>
      %start = arith.index_cast %start_ : i32 to index
      %m1 = arith.cmpi sge, %j, %start : index
"""
_POSITION = """
      %position_ = tensor.extract %positions[%b] : tensor<?xi32>
      %position = arith.index_cast %position_ : i32 to index
      %place = arith.addi %i, %position : index
      %m1 = arith.cmpi sle, %j, %place : index
"""
_WINDOW = """
      %w = arith.constant 20 : index
      %distance = arith.subi %i, %j : index
      %m2 = arith.cmpi slt, %distance, %w : index
"""
_IDS = ("ids", "tensor<?x?xi32>",
        lambda rng, shape: np.sort(rng.integers(0, 4, (shape[0], shape[2]))))
_LENGTHS = ("lengths", "tensor<?xi32>",
            lambda rng, shape: rng.integers(0, shape[3] + 1, shape[0]))
_STARTS = ("starts", *_LENGTHS[1:])
_POSITIONS = ("positions", *_LENGTHS[1:])
_KEPT = ("kept", "tensor<?x?xi1>",
         lambda rng, shape: rng.random((shape[0], shape[3])) < 0.7)


def _behind(b, j, c, n):
    """Of a cache, what is behind the length."""
    return j >= c[b]


MASKS = {
    "none": None,
    "causal": Mask(_CAUSAL + "%m = arith.andi %m0, %m0 : i1",
                   lambda b, h, i, j, c, n: i >= j),
    "causal_end": Mask(
        """
      %queries = tensor.dim %q, %c2 : QTYPE
      %keys = tensor.dim %k, %c2 : KTYPE
      %extra = arith.subi %keys, %queries : index
      %last = arith.addi %i, %extra : index
      %m = arith.cmpi sge, %last, %j : index""",
        lambda b, h, i, j, c, n: i + n[3] - n[2] >= j),
    "window": Mask(
        _CAUSAL + _WINDOW + "%m = arith.andi %m0, %m2 : i1",
        lambda b, h, i, j, c, n: (i >= j) & (i - j < 20)),
    "padding": Mask(
        _PADDING + "%m = arith.ori %m1, %m1 : i1",
        lambda b, h, i, j, c, n: j < c[b], _LENGTHS, absent=_behind),
    "left_padding": Mask(
        _START + "%m = arith.ori %m1, %m1 : i1",
        lambda b, h, i, j, c, n: j >= c[b], _STARTS,
        absent=lambda b, j, c, n: j < c[b]),
    "causal_left_padding": Mask(
        _CAUSAL + _START + "%m = arith.andi %m0, %m1 : i1",
        lambda b, h, i, j, c, n: (i >= j) & (j >= c[b]), _STARTS,
        absent=lambda b, j, c, n: j < c[b]),
    "kept_from": Mask(
        """
      %c11 = arith.constant 11 : index
      %m0 = arith.cmpi sge, %j, %c11 : index
      %m1 = tensor.extract %kept[%b, %j] : tensor<?x?xi1>
      %m = arith.andi %m0, %m1 : i1""",
        lambda b, h, i, j, c, n: (j >= 11) & c[b, j], _KEPT,
        absent=lambda b, j, c, n: j < 11),
    "positions": Mask(
        _POSITION + "%m = arith.ori %m1, %m1 : i1",
        lambda b, h, i, j, c, n: j <= i + c[b], _POSITIONS,
        absent=lambda b, j, c, n: j > n[2] - 1 + c[b]),
    "prefix": Mask(
        _CAUSAL + _PADDING + "%m = arith.ori %m0, %m1 : i1",
        lambda b, h, i, j, c, n: (i >= j) | (j < c[b]), _LENGTHS),
    "documents": Mask(
        _DOCUMENTS + "%m = arith.andi %m1, %m1 : i1",
        lambda b, h, i, j, c, n: c[b, i] == c[b, j], _IDS, square=True),
    "causal_documents": Mask(
        _CAUSAL + _DOCUMENTS + "%m = arith.andi %m0, %m1 : i1",
        lambda b, h, i, j, c, n: (i >= j) & (c[b, i] == c[b, j]), _IDS,
        square=True),
    "padding_window": Mask(
        _PADDING + _WINDOW + "%m = arith.andi %m1, %m2 : i1",
        lambda b, h, i, j, c, n: (j < c[b]) & (i - j < 20), _LENGTHS,
        absent=_behind),
    "tensor": Mask(
        "%m = tensor.extract %dense[%b, %i, %j] : tensor<?x?x?xi1>",
        lambda b, h, i, j, c, n: c[b, i, j],
        ("dense", "tensor<?x?x?xi1>",
         lambda rng, shape: rng.integers(0, 2, (shape[0], *shape[2:])) > 0)),
    "strided": Mask(
        """
      %three = arith.constant 3 : index
      %ri = arith.remui %i, %three : index
      %rj = arith.remui %j, %three : index
      %m = arith.cmpi eq, %ri, %rj : index""",
        lambda b, h, i, j, c, n: i % 3 == j % 3),
    "heads": Mask(
        _CAUSAL + """
      %one = arith.constant 1 : index
      %odd_ = arith.andi %h, %one : index
      %odd = arith.cmpi eq, %odd_, %one : index
      %m = arith.ori %m0, %odd : i1""",
        lambda b, h, i, j, c, n: (i >= j) | (h % 2 == 1)),
    "nothing": Mask(
        "%m = arith.constant false",
        lambda b, h, i, j, c, n: np.zeros(np.broadcast_shapes(
            b.shape, h.shape, i.shape, j.shape), bool)),
}

_CAPTURE_TYPES = {"i32": np.int32, "f32": np.float32, "i1": np.bool_}


@dataclasses.dataclass(frozen=True)
class Case:
    """One attention. Batch and lengths are dynamic unless `static` gives
    (batch, queries, keys)."""

    modification: str = "none"
    mask: str = "none"
    dtype: str = "f32"
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 32
    dropout: float = 0.0
    #: The fused op, with the log-sum-exp as a second result.
    lse: bool = False
    static: tuple = None

    @property
    def accumulator(self):
        return "f64" if self.dtype == "f64" else "f32"

    @property
    def captures(self):
        parts = (MODIFICATIONS[self.modification], MASKS[self.mask])
        return [part.capture for part in parts if part and part.capture]

    def _types(self):
        b, sq, sk = ("?", "?", "?") if self.static is None else self.static
        return {
            "Q": f"tensor<{b}x{self.heads}x{sq}x{self.dim}x{self.dtype}>",
            "K": f"tensor<{b}x{self.kv_heads}x{sk}x{self.dim}x{self.dtype}>",
            "V": f"tensor<{b}x{self.kv_heads}x{sk}x{self.value_dim}x"
                 f"{self.dtype}>",
            "O": f"tensor<{b}x{self.heads}x{sq}x{self.value_dim}x"
                 f"{self.dtype}>",
            "S": f"tensor<{b}x{self.heads}x{sq}x{sk}x{self.accumulator}>",
            "L": f"tensor<{b}x{self.heads}x{sq}x{self.accumulator}>",
        }

    @property
    def text(self):
        types = self._types()
        t = self.accumulator
        scale = self.dim**-0.5
        modification = MODIFICATIONS[self.modification]
        mask = MASKS[self.mask]
        indices = "%b: index, %h: index, %i: index, %j: index"
        score_region = modification and f"""{{
    ^bb0(%s: {t}, {indices}):{modification.text(t)}
      attn.yield %r : {t}
    }}"""
        mask_region = mask and f"""{{
    ^bb0({indices}):
      {mask.text}
      attn.yield %m : i1
    }}"""
        operands = [f"%q: {types['Q']}", f"%k: {types['K']}",
                    f"%v: {types['V']}"]
        operands += [f"%{name}: {kind}" for name, kind, _ in self.captures]
        if self.dropout:
            operands += ["%seed: i64", "%offset: i64"]
        body = ["%c2 = arith.constant 2 : index"]
        results = types["O"]
        if self.lse:
            results += ", " + types["L"]
            dropout = (f"dropout({self.dropout}, %seed, %offset)"
                       if self.dropout else "")
            body.append(
                f"%o, %l = attn.attention %q, %k, %v scale({scale}) {dropout} "
                f"{'score ' + score_region if score_region else ''} "
                f"{'mask ' + mask_region if mask_region else ''} : "
                f"{types['Q']}, {types['K']}, {types['V']} -> {results}")
            body.append(f"return %o, %l : {results}")
        else:
            s = types["S"]
            body.append(f"%s0 = attn.scores %q, %k : {types['Q']}, "
                        f"{types['K']} -> {s}")
            body.append(f"%s1 = attn.scale %s0 by {scale} : {s}")
            last = "%s1"
            if score_region:
                body.append(f"%s2 = attn.modify {last} {score_region} : {s}")
                last = "%s2"
            if mask_region:
                body.append(f"%s3 = attn.mask {last} {mask_region} : {s}")
                last = "%s3"
            body.append(f"%p = attn.softmax {last} : {s} -> {s}")
            last = "%p"
            if self.dropout:
                body.append(f"%p1 = attn.dropout %p, {self.dropout} "
                            f"seed(%seed, %offset) : {s}")
                last = "%p1"
            body.append(f"%o = attn.values {last}, %v : {s}, {types['V']} -> "
                        f"{types['O']}")
            body.append(f"return %o : {types['O']}")
        text = (f"func.func @attend({', '.join(operands)}) -> ({results}) {{\n"
                + "\n".join("  " + line for line in body) + "\n}\n")
        return text.replace("QTYPE", types["Q"]).replace("KTYPE", types["K"])

    def make_operands(self, batch, queries, keys, seed=0):
        rng = np.random.default_rng(seed)
        shapes = ((batch, self.heads, queries, self.dim),
                  (batch, self.kv_heads, keys, self.dim),
                  (batch, self.kv_heads, keys, self.value_dim))
        operands = [narrow(rng.standard_normal(shape), self.dtype)
                    for shape in shapes]
        full = (batch, self.heads, queries, keys)
        for _, kind, values in self.captures:
            dtype = _CAPTURE_TYPES[kind[:-1].split("x")[-1]]
            operands.append(np.asarray(values(rng, full)).astype(dtype))
        if self.dropout:
            operands += [0x123456789abcdef, 42]
        return operands

    def poison(self, operands, value):
        """The operands with `value` in all keys, and in their values, that the
        mask removes by bounds: what they hold must not matter."""
        q, k, v = operands[:3]
        capture = operands[3 + len(self.captures) - 1]
        grid = np.ogrid[:k.shape[0], :k.shape[2]]
        shape = (*q.shape[:3], k.shape[2])
        absent = np.broadcast_to(
            MASKS[self.mask].absent(*grid, capture, shape),
            (k.shape[0], k.shape[2]))[:, None, :, None]
        poisoned = [np.where(absent, narrow(np.full((), value), self.dtype), x)
                    for x in (k, v)]
        return [q, *poisoned, *operands[3:]]

    def reference(self, operands):
        """The output, and the log-sum-exp if it is a result, in float64; and
        the largest magnitude of a row's maximal score."""
        q, k, v = (widen(x, self.dtype) for x in operands[:3])
        group = self.heads // self.kv_heads
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        captures = list(operands[3:])
        scores = np.einsum("bhid,bhjd->bhij", q, k) * self.dim**-0.5
        modification = MODIFICATIONS[self.modification]
        if modification:
            capture = (captures.pop(0).astype(np.float64)
                       if modification.capture else None)
            scores = modification.compute(scores, capture)
        mask = MASKS[self.mask]
        if mask:
            capture = captures.pop(0) if mask.capture else None
            grid = np.ogrid[tuple(slice(size) for size in scores.shape)]
            keep = mask.keep(*grid, capture, scores.shape)
            scores = np.where(keep, scores, -np.inf)
        top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        weights = np.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[..., 0]
        # Unordered: a row of NaN stays one.
        weights = np.divide(weights, total, where=~(total == 0),
                            out=np.zeros_like(weights))
        if self.dropout:
            kept = keep_mask(weights.shape, self.dropout, *operands[-2:])
            weights = np.where(kept, weights / (1 - self.dropout), 0)
        output = np.einsum("bhij,bhjd->bhid", weights, v)
        results = (output, lse) if self.lse else (output,)
        return results, np.abs(top).max(initial=0)


def check(result, expected, dtype, top):
    """Asserts that a result is as exact as its type promises, where the largest
    magnitude of a row's maximal score is `top`."""
    actual = widen(np.asarray(result), dtype)
    assert actual.shape == expected.shape
    if not expected.size:
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    if finite.any():
        error = np.abs(actual[finite] - expected[finite]).max()
        scale = np.abs(expected[finite]).max()
        bound = bound_of(dtype, top)
        assert error <= bound * max(scale, 1e-30) or error == 0, (
            f"error {error:.3g}, relative {error / scale:.3g}, bound {bound:.3g}")

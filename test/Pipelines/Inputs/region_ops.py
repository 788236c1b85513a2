"""Every operation that docs/regions.md lists, on every target.

The list is read from the document. Each operation has an expression here, in
MLIR and in NumPy; some twenty share a region, and are tried one by one only
where the result is wrong, to name the one that is.
"""

import argparse
import math
import pathlib
import re
import subprocess
import sys

import numpy as np

SIZE = 16
# Of what an operation gives in the score.
WEIGHT = 0.05
CASES = {}


class Inputs:
    """What an expression may read: in MLIR by these names."""

    def __init__(self, x):
        self.x = x  # the score
        self.i, self.j = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")
        self.s = self.x * 0.25  # a small number
        self.p = self.s * self.s + 0.5  # a positive number
        self.g = self.s * self.s + 1.0625  # above 1
        # Near a number in the middle between two integers.
        self.z = self.i * 0.375 - self.j * 0.625 + 0.15 + self.s * 0.001
        self.a = self.i * 7 - self.j * 5 + 3  # i32, of both signs
        self.c = (self.i + 2 * self.j) % 5 + 1  # i32, positive
        self.k1 = 1.0625


PRELUDE = """
  %k025 = arith.constant 0.25 : f32
  %k05 = arith.constant 0.5 : f32
  %k1 = arith.constant 1.0625 : f32
  %kthousandth = arith.constant 0.001 : f32
  %k375 = arith.constant 0.375 : f32
  %k625 = arith.constant 0.625 : f32
  %k15 = arith.constant 0.15 : f32
  %n1 = arith.constant 1 : i32
  %n2 = arith.constant 2 : i32
  %n3 = arith.constant 3 : i32
  %n5 = arith.constant 5 : i32
  %n7 = arith.constant 7 : i32
  %x0 = arith.constant 0 : index
  %x1 = arith.constant 1 : index
  %s = arith.mulf %x, %k025 : f32
  %ss = arith.mulf %s, %s : f32
  %p = arith.addf %ss, %k05 : f32
  %g = arith.addf %ss, %k1 : f32
  %i32 = arith.index_cast %i : index to i32
  %j32 = arith.index_cast %j : index to i32
  %if = arith.sitofp %i32 : i32 to f32
  %jf = arith.sitofp %j32 : i32 to f32
  %z0 = arith.mulf %if, %k375 : f32
  %z1 = arith.mulf %jf, %k625 : f32
  %z2 = arith.subf %z0, %z1 : f32
  %z3 = arith.addf %z2, %k15 : f32
  %z4 = arith.mulf %s, %kthousandth : f32
  %z = arith.addf %z3, %z4 : f32
  %a0 = arith.muli %i32, %n7 : i32
  %a1 = arith.muli %j32, %n5 : i32
  %a2 = arith.subi %a0, %a1 : i32
  %a = arith.addi %a2, %n3 : i32
  %c0 = arith.muli %j32, %n2 : i32
  %c1 = arith.addi %i32, %c0 : i32
  %c2 = arith.remui %c1, %n5 : i32
  %c = arith.addi %c2, %n1 : i32
  %ax = arith.index_cast %a : i32 to index
  %cx = arith.index_cast %c : i32 to index
"""


def case(name, text, compute, result="f32", scale=0.25):
    """`text` defines %r of type `result`; in NumPy it is `compute(inputs)`."""
    CASES.setdefault(name, []).append((text, compute, result, scale))


def floats():
    def unary(domain, functions):
        for name, function in functions.items():
            case(f"math.{name}", f"%r = math.{name} %{domain} : f32",
                 lambda v, f=function: f(getattr(v, domain)))

    erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
    unary("s", {
        "absf": np.abs, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
        "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
        "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
        "tanh": np.tanh, "asinh": np.arcsinh, "atanh": np.arctanh, "erf": erf,
        "erfc": erfc})
    unary("p", {
        "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
        "sqrt": np.sqrt, "rsqrt": lambda v: v ** -0.5, "cbrt": np.cbrt})
    unary("g", {"acosh": np.arccosh})
    unary("z", {
        "floor": np.floor, "ceil": np.ceil, "round": np.round,
        "roundeven": np.round, "trunc": np.trunc})
    for domain in ("p", "s"):
        case("math.exp", f"""
          %w = arith.extf %{domain} : f32 to f64
          %y = math.exp %w : f64
          %r = arith.truncf %y : f64 to f32""",
             lambda v, d=domain: np.exp(getattr(v, d)))

    def binary(name, left, right, function):
        case(name, f"%r = {name} %{left}, %{right} : f32",
             lambda v: function(getattr(v, left), getattr(v, right)))

    binary("arith.addf", "s", "z", np.add)
    binary("arith.subf", "s", "z", np.subtract)
    binary("arith.mulf", "s", "z", np.multiply)
    binary("arith.divf", "s", "p", np.divide)
    # Of numbers whose quotient is near no integer.
    binary("arith.remf", "z", "k1", np.fmod)
    case("arith.remf", """
      %big = arith.constant 1073741824.0 : f32
      %y = arith.mulf %jf, %big : f32
      %r = arith.remf %y, %k625 : f32""",
         lambda v: np.fmod(v.j * 2.0**30, 0.625))
    case("arith.negf", "%r = arith.negf %s : f32", lambda v: -v.s)
    for name, function in {"maximumf": np.maximum, "maxnumf": np.fmax,
                           "minimumf": np.minimum, "minnumf": np.fmin}.items():
        binary("arith." + name, "s", "z", function)
    case("arith.maxnumf", """
      %nan = arith.constant 0x7FC00000 : f32
      %y = arith.maxnumf %s, %nan : f32
      %r = arith.minnumf %nan, %y : f32""", lambda v: v.s)
    case("arith.select", """
      %b1 = arith.cmpi slt, %i, %j : index
      %r = arith.select %b1, %s, %z : f32""",
         lambda v: np.where(v.i < v.j, v.s, v.z))
    case("arith.extf", """
      %y = arith.extf %s : f32 to f64
      %y2 = arith.mulf %y, %y : f64
      %r = arith.truncf %y2 : f64 to f32""", lambda v: v.s ** 2)
    case("arith.truncf", """
      %y = arith.truncf %if : f32 to bf16
      %y2 = arith.extf %y : bf16 to f32
      %y3 = arith.truncf %y2 : f32 to f16
      %y4 = arith.extf %y3 : f16 to f32
      %r = arith.addf %y4, %s : f32""", lambda v: v.i + v.s, scale=0.05)
    predicates = {
        "oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal,
        "olt": np.less, "ole": np.less_equal, "one": np.not_equal,
        "ueq": np.equal, "ugt": np.greater, "uge": np.greater_equal,
        "ult": np.less, "ule": np.less_equal, "une": np.not_equal,
        "ord": lambda a, b: np.ones_like(a, bool),
        "uno": lambda a, b: np.zeros_like(a, bool)}
    for predicate, function in predicates.items():
        case("arith.cmpf", f"%r = arith.cmpf {predicate}, %z, %k15 : f32",
             lambda v, f=function: f(v.z, 0.15), "i1")
    case("arith.fptosi", "%r = arith.fptosi %z : f32 to i32",
         lambda v: np.trunc(v.z), "i32")
    case("arith.fptoui", """
      %y = math.absf %z : f32
      %r = arith.fptoui %y : f32 to i32""", lambda v: np.trunc(np.abs(v.z)), "i32")
    # What does not fit has no value, and is discarded.
    case("arith.fptosi", """
      %big = arith.constant 1.0e20 : f32
      %y = arith.mulf %jf, %big : f32
      %y2 = arith.fptosi %y : f32 to i32
      %b0 = arith.cmpi eq, %j, %x0 : index
      %r = arith.select %b0, %y2, %a : i32""",
         lambda v: np.where(v.j == 0, 0, v.a), "i32")
    case("arith.sitofp", "%r = arith.sitofp %a : i32 to f32", lambda v: v.a, scale=0.01)
    case("arith.uitofp", "%r = arith.uitofp %c : i32 to f32", lambda v: v.c, scale=0.1)
    case("arith.constant", "%r = arith.mulf %jf, %k375 : f32",
         lambda v: v.j * 0.375, scale=0.1)
    case("arith.bitcast", """
      %sign = arith.constant -2147483648 : i32
      %y = arith.bitcast %s : f32 to i32
      %y2 = arith.xori %y, %sign : i32
      %r = arith.bitcast %y2 : i32 to f32""", lambda v: -v.s)
    case("math.copysign", "%r = math.copysign %s, %z : f32",
         lambda v: np.copysign(v.s, v.z))
    case("math.clampf", """
      %low = arith.constant -0.2 : f32
      %high = arith.constant 0.3 : f32
      %r = math.clampf %s to [%low, %high] : f32""",
         lambda v: np.clip(v.s, -0.2, 0.3))
    case("math.fma", "%r = math.fma %s, %p, %z : f32", lambda v: v.s * v.p + v.z)
    case("math.powf", "%r = math.powf %p, %s : f32", lambda v: v.p ** v.s)
    case("math.fpowi", "%r = math.fpowi %p, %n3 : f32, i32", lambda v: v.p ** 3.0)
    case("math.fpowi", """
      %minus = arith.constant -3 : i32
      %y = arith.addi %c, %minus : i32
      %r = math.fpowi %p, %y : f32, i32""", lambda v: v.p ** (v.c - 3.0))
    case("math.atan2", "%r = math.atan2 %s, %z : f32",
         lambda v: np.arctan2(v.s, v.z), scale=0.05)
    case("math.sincos", """
      %sin, %cos = math.sincos %s : f32
      %r = arith.subf %sin, %cos : f32""", lambda v: np.sin(v.s) - np.cos(v.s))


def classes():
    # Divided by 0, by j: NaN at j = 0, an infinity in most places elsewhere.
    special = """
      %zero = arith.constant 0.0 : f32
      %three = arith.constant 3.0 : f32
      %tiny = arith.constant 1.0e-42 : f32
      %y0 = arith.divf %if, %zero : f32
      %y1 = arith.cmpf ogt, %jf, %three : f32
      %y2 = arith.select %y1, %y0, %s : f32
      %y3 = arith.cmpf ogt, %if, %three : f32
      %y4 = arith.select %y3, %y2, %tiny : f32
      %y = arith.select %y1, %y2, %y4 : f32"""

    def value(v):
        with np.errstate(all="ignore"):
            y0 = v.i / np.float64(0)
        y2 = np.where(v.j > 3, y0, v.s)
        return np.where(v.j > 3, y2, np.where(v.i > 3, y2, 1e-42))

    least = np.finfo(np.float32).tiny
    for name, function in {
            "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
            "isnormal": lambda y: np.isfinite(y) & (np.abs(y) >= least)}.items():
        case("math." + name, special + f"\n%r = math.{name} %y : f32",
             lambda v, f=function: f(value(v)), "i1")


def integers():
    def wrap(value, bits=32):
        return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    def unsigned(value, bits=32):
        return value % (1 << bits)

    def binary(names, left, right, function, scale=0.01):
        for name in names:
            wide = name.startswith("index.")
            suffix = "x" if wide else ""
            kind = "index" if wide else "i32"
            text = f"%r = {name} %{left}{suffix}, %{right}{suffix}"
            case(name, text + ("" if wide else " : i32"),
                 lambda v: function(getattr(v, left), getattr(v, right)), kind, scale)

    def both(name, index=None):
        return ["arith." + name, "index." + (index or name.removesuffix("i"))]

    def truncated(a, b):
        return np.sign(a) * (np.abs(a) // b)

    binary(both("addi"), "a", "c", np.add)
    binary(both("subi"), "a", "c", np.subtract)
    binary(both("muli"), "a", "c", np.multiply)
    binary(both("divsi", "divs"), "a", "c", truncated)
    binary(both("floordivsi", "floordivs"), "a", "c", np.floor_divide)
    binary(both("ceildivsi", "ceildivs"), "a", "c", lambda a, b: -(-a // b))
    binary(both("remsi", "rems"), "a", "c", np.fmod)
    binary(both("divui", "divu"), "c", "c", np.floor_divide)
    binary(both("ceildivui", "ceildivu"), "c", "c", np.floor_divide)
    binary(both("remui", "remu"), "c", "c", np.remainder)
    binary(["arith.divui"], "a", "c", lambda a, b: wrap(unsigned(a) // b), 1e-9)
    binary(both("andi"), "a", "c", np.bitwise_and)
    binary(both("ori"), "a", "c", np.bitwise_or)
    binary(both("xori"), "a", "c", np.bitwise_xor)
    binary(both("shli"), "a", "c", np.left_shift, 0.001)
    binary(both("shrsi", "shrs"), "a", "c", np.right_shift)
    binary(["arith.shrui"], "a", "c",
           lambda a, b: wrap(np.right_shift(unsigned(a), b)), 1e-9)
    binary(["index.shru"], "c", "c", np.right_shift)
    binary(both("maxsi", "maxs"), "a", "c", np.maximum)
    binary(both("minsi", "mins"), "a", "c", np.minimum)
    binary(["arith.maxui"], "a", "c",
           lambda a, b: wrap(np.maximum(unsigned(a), b)))
    binary(["index.maxu"], "a", "c", lambda a, b: np.where(a < 0, a, np.maximum(a, b)))
    binary(["arith.minui"], "a", "c", lambda a, b: np.minimum(unsigned(a), b))
    binary(["index.minu"], "a", "c", lambda a, b: np.where(a < 0, b, np.minimum(a, b)))
    predicates = {
        "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal,
        "sgt": np.greater, "sge": np.greater_equal,
        "ult": lambda a, b: unsigned(a) < b, "ule": lambda a, b: unsigned(a) <= b,
        "ugt": lambda a, b: unsigned(a) > b, "uge": lambda a, b: unsigned(a) >= b}
    for predicate, function in predicates.items():
        compute = lambda v, f=function: f(v.a, v.c)
        case("arith.cmpi", f"%r = arith.cmpi {predicate}, %a, %c : i32", compute, "i1", 0.1)
        case("index.cmp", f"%r = index.cmp {predicate}(%ax, %cx)", compute, "i1", 0.1)
    case("math.absi", "%r = math.absi %a : i32", lambda v: np.abs(v.a), "i32", 0.01)
    case("math.ipowi", "%r = math.ipowi %a, %n3 : i32",
         lambda v: wrap(v.a ** 3), "i32", 1e-6)
    case("math.ipowi", "%r = math.ipowi %a, %c : i32",
         lambda v: wrap(v.a ** v.c), "i32", 1e-9)
    case("math.ipowi", """
      %two = arith.constant 2 : i64
      %w = arith.extsi %a : i32 to i64
      %y = arith.remsi %w, %two : i64
      %y2 = math.ipowi %y, %w : i64
      %r = arith.trunci %y2 : i64 to i32""",
         lambda v: raise_unit(np.fmod(v.a, 2), v.a), "i32", 0.1)
    case("math.ctpop", "%r = math.ctpop %a : i32",
         lambda v: count(v.a, lambda b: b.count("1")), "i32", 0.05)
    case("math.ctlz", "%r = math.ctlz %c : i32",
         lambda v: count(v.c, lambda b: 32 - len(b.lstrip("0"))), "i32", 0.05)
    case("math.cttz", "%r = math.cttz %c : i32",
         lambda v: count(v.c, lambda b: len(b) - len(b.rstrip("0"))), "i32", 0.05)
    for width in (8, 16):
        case("arith.trunci", f"""
          %k = arith.constant 37 : i32
          %y = arith.muli %a, %k : i32
          %y2 = arith.trunci %y : i32 to i{width}
          %r = arith.extsi %y2 : i{width} to i32""",
             lambda v, w=width: wrap(v.a * 37, w), "i32", 0.001)
        case("arith.extui", f"""
          %y = arith.trunci %a : i32 to i{width}
          %r = arith.extui %y : i{width} to i32""",
             lambda v, w=width: unsigned(v.a, w), "i32", 1e-4)
        # What MLIR's canonicalizer takes for the identity.
        case("arith.index_cast", f"""
          %k = arith.constant 3737 : index
          %y = arith.muli %ax, %k : index
          %y2 = arith.index_cast %y : index to i{width}
          %r = arith.index_cast %y2 : i{width} to index""",
             lambda v, w=width: wrap(v.a * 3737, w), "index", 1e-3)
        case("arith.index_castui", f"""
          %y = arith.index_castui %ax : index to i{width}
          %r = arith.index_castui %y : i{width} to index""",
             lambda v, w=width: unsigned(v.a, w), "index", 1e-4)
        case("index.casts", f"""
          %y = index.casts %ax : index to i{width}
          %r = index.casts %y : i{width} to index""",
             lambda v, w=width: wrap(v.a, w), "index", 1e-3)
        case("index.castu", f"""
          %y = index.castu %ax : index to i{width}
          %r = index.castu %y : i{width} to index""",
             lambda v, w=width: unsigned(v.a, w), "index", 1e-4)
    case("arith.extsi", """
      %y = arith.extsi %a : i32 to i64
      %r = arith.trunci %y : i64 to i32""", lambda v: v.a, "i32", 0.01)
    for name, compute in {
            "mulsi": lambda v: (v.a << 20) * 4096 >> 32,
            "mului": lambda v: (unsigned(v.a << 20) * 4096) >> 32}.items():
        case(f"arith.{name}_extended", f"""
          %twenty = arith.constant 20 : i32
          %y = arith.shli %a, %twenty : i32
          %k = arith.constant 4096 : i32
          %low, %r = arith.{name}_extended %y, %k : i32""", compute, "i32", 0.001)
        case(f"arith.{name}_extended", f"""
          %big = arith.constant {FACTOR} : i64
          %bits = arith.constant 1023 : i64
          %w = arith.extsi %a : i32 to i64
          %w2 = arith.muli %w, %big : i64
          %low, %y = arith.{name}_extended %w2, %big : i64
          %r = arith.andi %y, %bits : i64""",
             lambda v, signed=name == "mulsi": multiply_high(v.a, signed),
             "i64", 0.001)
    case("arith.addui_extended",
         "%sum, %r = arith.addui_extended %a, %c : i32, i1",
         lambda v: unsigned(v.a) + v.c >= 1 << 32, "i1", 0.25)
    case("index.constant", """
      %y = index.constant 11
      %r = index.add %ax, %y""", lambda v: v.a + 11, "index", 0.01)
    case("index.bool.constant", """
      %y = index.bool.constant true
      %b0 = arith.cmpi slt, %i, %j : index
      %r = arith.xori %y, %b0 : i1""", lambda v: v.i >= v.j, "i1")
    case("index.sizeof", """
      %y = index.sizeof
      %r = index.divs %y, %cx""", lambda v: 64 // v.c, "index", 0.01)


FACTOR = 1234567890123456789


def multiply_high(values, signed):
    def compute(value):
        left = int(value) * FACTOR % (1 << 64)
        if signed and left >> 63:
            left -= 1 << 64
        return (left * FACTOR >> 64) % 1024
    return np.vectorize(compute)(values)


def raise_unit(base, exponent):
    """A power of -1, 0 or 1; 0 to a negative power is 0."""
    zero = np.where(exponent == 0, 1, 0)
    sign = np.where(exponent % 2 == 0, 1, -1)
    return np.where(base == 1, 1, np.where(base == -1, sign, zero))


def count(values, digits):
    return np.vectorize(lambda n: digits(format(int(n) % (1 << 32), "032b")))(values)


def structures():
    case("affine.apply", """
      %r = affine.apply affine_map<(d0, d1) -> (d0 * 3 - d1 floordiv 2 + d1 mod 5)>(%i, %j)""",
         lambda v: v.i * 3 - v.j // 2 + v.j % 5, "index", 0.01)
    for name, function in {"min": np.minimum, "max": np.maximum}.items():
        case("affine." + name, f"""
          %r = affine.{name} affine_map<(d0, d1) -> (d0 * 2, d1 + 3)>(%i, %j)""",
             lambda v, f=function: f(v.i * 2, v.j + 3), "index", 0.05)
    case("tensor.extract", """
      %y = tensor.extract %table[%i, %j] : tensor<?x16xf32>
      %r = arith.mulf %y, %s : f32""", lambda v: table() * v.s)
    case("tensor.dim", """
      %y = tensor.dim %table, %x0 : tensor<?x16xf32>
      %r = arith.subi %y, %j : index""", lambda v: SIZE - v.j, "index", 0.05)
    case("scf.if", """
      %b0 = arith.cmpi slt, %i, %j : index
      %r = scf.if %b0 -> f32 {
        %y = arith.mulf %s, %z : f32
        scf.yield %y : f32
      } else {
        scf.yield %s : f32
      }""", lambda v: np.where(v.i < v.j, v.s * v.z, v.s))
    case("scf.for", """
      %r = scf.for %n = %x0 to %cx step %x1 iter_args(%y = %s) -> f32 {
        %y2 = arith.mulf %y, %p : f32
        scf.yield %y2 : f32
      }""", lambda v: v.s * v.p ** v.c)
    case("scf.while", """
      %r = scf.while (%n = %ax) : (index) -> index {
        %k = arith.constant 10 : index
        %go = arith.cmpi sgt, %n, %k : index
        scf.condition(%go) %n : index
      } do {
      ^bb0(%n: index):
        %y = arith.subi %n, %cx : index
        scf.yield %y : index
      }""", lambda v: np.where(v.a <= 10, v.a, v.a - -((10 - v.a) // v.c) * v.c),
         "index", 0.01)


def table():
    rows, columns = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")
    return ((rows * 3 + columns * 7) % 11 / 8).astype(np.float32)


floats()
classes()
integers()
structures()


class Region:
    """The text of a region that adds up cases, and what it gives."""

    def __init__(self, cases):
        self.cases = cases

    def text(self):
        lines, total = [PRELUDE], "%total"
        lines.append("%total = arith.constant 0.0 : f32")
        lines.append(f"%weight = arith.constant {WEIGHT:e} : f32")
        for number, (name, (text, _, result, scale)) in enumerate(self.cases):
            known = set(re.findall(r"(%\w+) =", PRELUDE)) | {
                "%x", "%b", "%h", "%i", "%j", "%table"}
            own = set(re.findall(r"%\w+", text)) - known
            for value in own:
                text = re.sub(value + r"\b", f"{value}_{number}", text)
            lines.append(text)
            value = f"%r_{number}"
            if result == "index":
                lines.append(f"%c_{number} = arith.index_cast {value} : index to i64")
                value, result = f"%c_{number}", "i64"
            if result != "f32":
                cast = "uitofp" if result == "i1" else "sitofp"
                lines.append(f"%f_{number} = arith.{cast} {value} : {result} to f32")
                value = f"%f_{number}"
            lines.append(f"%scale_{number} = arith.constant {scale:e} : f32")
            lines.append(f"%m_{number} = arith.mulf {value}, %scale_{number} : f32")
            lines.append(f"%t_{number} = arith.addf {total}, %m_{number} : f32")
            total = f"%t_{number}"
        lines.append(f"%weighted = arith.mulf {total}, %weight : f32")
        lines.append("%score = arith.addf %x, %weighted : f32")
        lines.append("attn.yield %score : f32")
        return "\n".join(lines)

    def scores(self, x):
        inputs = Inputs(x)
        total = np.zeros_like(x)
        for _, (_, compute, _, scale) in self.cases:
            total += np.asarray(compute(inputs), np.float64) * scale
        return x + total * WEIGHT


FORMS = {
    "modify": """
func.func @f(%q: tensor<1x1x16x16xf32>, %k: tensor<1x1x16x16xf32>, %v: tensor<1x1x16x16xf32>, %table: tensor<?x16xf32>) -> tensor<1x1x16x16xf32> {{
  %product = attn.scores %q, %k : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32> -> tensor<1x1x16x16xf32>
  %modified = attn.modify %product {{
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
{region}
  }} : tensor<1x1x16x16xf32>
  return %modified : tensor<1x1x16x16xf32>
}}
""",
    "graph": """
func.func @f(%q: tensor<1x1x16x16xf32>, %k: tensor<1x1x16x16xf32>, %v: tensor<1x1x16x16xf32>, %table: tensor<?x16xf32>) -> tensor<1x1x16x16xf32> {{
  %product = attn.scores %q, %k : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32> -> tensor<1x1x16x16xf32>
  %modified = attn.modify %product {{
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
{region}
  }} : tensor<1x1x16x16xf32>
  %probabilities = attn.softmax %modified : tensor<1x1x16x16xf32> -> tensor<1x1x16x16xf32>
  %output = attn.values %probabilities, %v : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32> -> tensor<1x1x16x16xf32>
  return %output : tensor<1x1x16x16xf32>
}}
""",
    "attention": """
func.func @f(%q: tensor<1x1x16x16xf32>, %k: tensor<1x1x16x16xf32>, %v: tensor<1x1x16x16xf32>, %table: tensor<?x16xf32>) -> tensor<1x1x16x16xf32> {{
  %output = attn.attention %q, %k, %v scale(1.0) score {{
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
{region}
  }} : tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32> -> tensor<1x1x16x16xf32>
  return %output : tensor<1x1x16x16xf32>
}}
""",
}


class Runner:
    def __init__(self, folder):
        self.folder = folder
        random = np.random.default_rng(0)
        self.q, self.k = (
            (random.standard_normal((1, 1, SIZE, SIZE)) * 0.4).astype(np.float32)
            for _ in range(2))
        self.x = self.q[0, 0].astype(float) @ self.k[0, 0].astype(float).T
        # As values, the identity: results are probabilities.
        operands = {"q": self.q, "k": self.k,
                    "v": np.eye(SIZE, dtype=np.float32)[None, None], "t": table()}
        self.inputs = []
        for name, array in operands.items():
            np.save(folder / f"{name}.npy", array)
            self.inputs.append(f"--input={folder / name}.npy")

    def write(self, form, cases):
        path = self.folder / "f.mlir"
        path.write_text(FORMS[form].format(region=Region(cases).text()))
        return str(path)

    def call(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def compare(self, form, cases, *options):
        """Why a run does not give what NumPy does; nothing if it does."""
        path, output = self.write(form, cases), str(self.folder / "o.npy")
        code, text = self.call(["fovea-run", path, f"--output={output}",
                                *self.inputs, *options])
        if code:
            return text
        if "remark" in text and "scf." not in text:
            return text
        expected = Region(cases).scores(self.x)
        if form != "modify":
            expected = np.exp(expected - expected.max(1, keepdims=True))
            expected /= expected.sum(1, keepdims=True)
        error = np.abs(np.load(output)[0, 0] - expected).max()
        bound = 2e-5 if form != "modify" else 2e-5 * max(1, np.abs(expected).max())
        return "" if error <= bound else f"differs from NumPy by {error:g}"

    def gradient(self, form, cases):
        code, text = self.call(["fovea-run", self.write(form, cases),
                                *self.inputs, "--random=1", "--grad", "--check"])
        return text if code else ""

    def assemble(self, form, cases, target):
        code, text = self.call(
            ["fovea-compile", self.write(form, cases), f"--target={target}",
             "--emit=cubin", "-o", str(self.folder / "f.cubin")])
        return text if code else ""


def read_list(path):
    """The operations of the document's table, and what it says of derivatives."""
    listed = {}
    for line in pathlib.Path(path).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 2:
            for name in re.findall(r"`([\w.]+)`", cells[0]):
                listed[name] = cells[1]
    return listed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--run", choices=["host", "simulate", "assemble", "gradient"],
                        required=True)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    listed = read_list(arguments.list)
    if set(listed) != set(CASES):
        sys.exit(f"listed and not tested: {sorted(set(listed) - set(CASES))}; "
                 f"tested and not listed: {sorted(set(CASES) - set(listed))}")
    runner = Runner(folder)
    failures = []

    def attempt(what, cases, run):
        """Runs all cases at once, and one by one to name what fails."""
        if not run(cases):
            return
        for one in cases:
            if why := run([one]):
                failures.append(f"{what}: {one[0]}: {why.strip()}\n{one[1][0].strip()}")
        if not any(failure.startswith(what) for failure in failures):
            failures.append(f"{what}: all at once: {run(cases)}")

    cases = [(name, one) for name, some in CASES.items() for one in some]
    straight = [one for one in cases if not one[0].startswith("scf.")]
    if arguments.run == "host":
        half = len(straight) // 2
        for some in (straight[:half], straight[half:]):
            for form in ("graph", "attention"):
                attempt(form, some, lambda c, f=form: runner.compare(f, c))
        # Written out, and in attention, control flow runs for each score.
        attempt("modify", cases, lambda c: runner.compare("modify", c))
        attempt("attention", cases, lambda c: runner.compare("attention", c))
    elif arguments.run == "simulate":
        for form in ("modify", "attention"):
            attempt(form, cases, lambda c, f=form: runner.compare(
                f, c, "--target=sm_90a", "--simulate"))
    elif arguments.run == "assemble":
        for form in ("modify", "attention"):
            for target in ("sm_90a", "sm_80"):
                attempt(f"{form} {target}", cases,
                        lambda c, f=form, t=target: runner.assemble(f, c, t))
    else:
        has = [one for one in straight if listed[one[0]] != "no"]
        for form in ("graph", "attention"):
            attempt(form, has, lambda c, f=form: runner.gradient(f, c))
        for one in cases:
            if listed[one[0]] != "no":
                continue
            why = runner.gradient("attention", [one])
            of_float = "%s" in one[1][0]
            if of_float and "has no derivative" not in why:
                failures.append(f"{one[0]} is said to have no derivative: {why}")
    sys.exit("\n".join(failures) or 0)


main()

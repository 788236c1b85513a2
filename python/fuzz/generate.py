# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs, with the options they are compiled with. Case `index` of a seed
is always the same."""

import dataclasses

import numpy as np
import torch

from .attend import Attention
from .approx import wider
from .check import make_operands, plain
from .expressions import Node
from .graph import (FLOATS, Elementwise, Loop, Norm, Operand, Program, Residual, Rope,
                    Scale)
from .schedules import draw, draw_backward

HEAD_DIMS = [1, 2, 3, 4, 5, 7, 8, 8, 16, 16, 17, 24, 32, 32, 40, 48, 64, 64, 64,
             72, 80, 96, 100, 128, 128, 160, 192, 256]
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 23, 31, 32, 33, 37, 48, 53,
           63, 64, 65, 71, 77, 97, 100, 127, 128, 129, 160, 191, 200, 257]
#: Most multiply-adds of one attention.
WORK = {"host": 4e6, "simulate": 4e5, "gpu": 2e7}
#: The relative frequency of each strategy.
STRATEGIES = {"fused": 6, "unfused": 2, "two-pass": 1, "three-pass": 1}


@dataclasses.dataclass
class Case:
    seed: int
    index: int
    program: Program
    #: "host", "sm_80" or "sm_90a".
    target: str = "host"
    simulate: bool = False
    #: Compile for the target, and run nothing.
    compile_only: bool = False
    gradients: bool = False
    strategy: str = "fused"
    recompute: str = "auto"
    textbook: bool = False
    #: Forward and backward pass as two functions.
    partition: bool = False
    deterministic: bool = False
    arch: str = "native"
    #: "plain", "huge" (scores of up to 1e9) or "nan".
    mode: str = "plain"
    #: The schedule of all backward passes, as MLIR; none: the compiler's.
    backward_schedule: str = None


# Building expressions.

def const(kind, value):
    return Node(kind, "const", (), value)


def leaf(name):
    return Node("f" if name[0] in "sx" else "i", "leaf", (), name)


def op(kind, name, *args, data=None):
    return Node(kind, name, args, data)


class Regions:
    """Random expressions of one attention, and what they capture."""

    def __init__(self, rng, program, attention, dtype):
        self.rng, self.program, self.dtype = rng, program, dtype
        self.attention = attention
        self.b, self.h, self.g, self.sq, self.sk, _, _ = attention.dims(program)
        self.leaves = {n: leaf(n) for n in ("s", "b", "h", "i", "j")}

    def pick(self, choices, weights=None):
        if weights is not None:
            weights = np.array(weights) / np.sum(weights)
        return choices[self.rng.choice(len(choices), p=weights)]

    def capture(self, stem, dims, dtype, values, scalar=False):
        number = sum(t.name.startswith(f"{stem}_") for t in self.program.operands)
        operand = Operand(f"{stem}_{number}", tuple(dims), dtype, values,
                          scalar=scalar)
        if not scalar and self.rng.random() < 0.15 and len(dims) > 1:
            operand.layout = self.pick(["offset", "step", "inner"])
        self.program.operands.append(operand)
        self.program.tensors[operand.name] = operand
        return operand

    def places(self):
        """Sizes of a captured tensor, and the coordinates that index it."""
        l = self.leaves
        b, h, i, j = l["b"], l["h"], l["i"], l["j"]
        B, H, Q, K = self.b, self.h, self.sq, self.sk
        zero = const("i", 0)
        q, k = (max(self.program.size(n), 1) for n in (Q, K))
        distance = op("i", "addi", op("i", "subi", i, j), const("i", k - 1))
        back = op("i", "addi", op("i", "subi", j, i), const("i", q - 1))
        return self.pick([
            ((H,), [h]), ((B,), [b]), ((K,), [j]), ((Q,), [i]), ((H, K), [h, j]),
            ((Q, K), [i, j]), ((B, K), [b, j]), ((B, H), [b, h]),
            ((B, Q), [b, i]), ((H, Q, K), [h, i, j]), ((B, Q, K), [b, i, j]),
            ((B, H, Q, K), [b, h, i, j]), ((B, 1, Q, K), [b, zero, i, j]),
            ((1, H, Q, K), [zero, h, i, j]), ((K, Q, H), [j, i, h]),
            ((K, B), [j, b]), ((H, q + k - 1), [h, distance]),
            ((B, H, q + k - 1), [b, h, back]), None, None, None, None],
            [4, 1, 3, 2, 2, 3, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1, 2, 1, 2, 2, 2, 2])

    def read(self, kind, stem, dtype, values):
        found = self.places()
        if found is not None:
            dims, indices = found
            operand = self.capture(stem, dims, dtype, values)
            return op(kind, "read", *indices, data=operand.name)
        way = self.pick(["clamp", "distance", "both", "point"])
        if way == "point":
            operand = self.capture(stem, (), dtype, values)
            return op(kind, "read", data=operand.name)
        n = int(self.rng.integers(1, 40))
        dims = (self.h, n) if way == "both" else (n,)
        operand = self.capture(stem, dims, dtype, values)
        size = op("i", "size", data=(operand.name, len(dims) - 1))
        if way == "distance":
            at = op("i", "addi", op("i", "subi", self.leaves["j"],
                                    self.leaves["i"]), const("i", n // 2))
        else:
            at = self.index(2)
        at = op("i", "clamp", at, size)
        indices = [self.leaves["h"], at] if way == "both" else [at]
        return op(kind, "read", *indices, data=operand.name)

    # Integers.

    def index(self, depth):
        l = self.leaves
        if depth == 0 or self.rng.random() < 0.2:
            kind = self.pick(["i", "j", "h", "b", "const", "size", "read"],
                             [6, 6, 2, 2, 3, 1, 1.5])
            if kind == "const":
                return const("i", int(self.rng.integers(0, 40)))
            if kind == "size":
                a = self.attention
                return op("i", "size", data=self.pick(
                    [(a.q, 2 if a.heads_first else 1),
                     (a.k, 2 if a.heads_first else 1)]
                    if a.q in self.operands() and a.k in self.operands()
                    else [(self.program.operands[0].name, 0)]))
            if kind == "read":
                return self.read("i", "n", self.pick(["i32", "i64", "i16", "i8"]),
                                 ("range", 0, 20))
            return l[kind]
        name = self.pick(["addi", "subi", "muli", "divsi", "remsi",
                          "floordivsi", "andi", "xori", "maxsi", "minsi",
                          "absi", "select"], [6, 8, 1, 2, 2, 1, 1, 0.5, 1, 1, 2, 1])
        a = self.index(depth - 1)
        if name == "absi":
            return op("i", "absi", a)
        if name in ("muli", "divsi", "remsi", "floordivsi", "andi"):
            return op("i", name, a, const("i", int(self.rng.integers(1, 9))))
        b = self.index(depth - 1)
        if name == "select":
            return op("i", name, self.truth(depth - 1), a, b)
        return op("i", name, a, b)

    def operands(self):
        return {t.name for t in self.program.operands}

    # Truth values.

    def truth(self, depth):
        if depth > 0 and self.rng.random() < 0.4:
            name = self.pick(["and", "or", "not", "xor"], [5, 3, 1, 0.5])
            if name == "not":
                return op("b", "not", self.truth(depth - 1))
            return op("b", name, self.truth(depth - 1), self.truth(depth - 1))
        l = self.leaves
        i, j, b = l["i"], l["j"], l["b"]
        number = lambda n: const("i", int(self.rng.integers(0, n)))
        way = self.pick(["causal", "offset", "window", "lengths", "documents",
                         "holes", "random", "stride", "block", "constant",
                         "float", "prefix"],
                        [5, 3, 3, 4, 3, 2, 5, 1, 1, 0.4, 0.7, 2])
        compare = lambda p, x, y: op("b", "cmp", x, y, data=p)
        if way == "causal":
            return compare("sge", i, j)
        if way == "offset":
            return compare("sge", op("i", self.pick(["addi", "subi"]), i,
                                     number(40)), j)
        if way == "window":
            distance = op("i", "subi", i, j)
            if self.rng.random() < 0.5:
                distance = op("i", "absi", distance)
            return compare(self.pick(["slt", "sle"]), distance, number(50))
        if way in ("lengths", "prefix"):
            size = self.program.size(self.sk)
            operand = self.capture("lengths", (self.b,),
                                   self.pick(["i32", "i64"]),
                                   ("range", 0, size + 2))
            length = op("i", "read", b, data=operand.name)
            return compare("slt", j, length)
        if way == "documents":
            ids = ("ids", int(self.rng.integers(1, 6)))
            dtype = self.pick(["i32", "i64"])
            batched = self.rng.random() < 0.6
            one = self.program.size(self.sq) == self.program.size(self.sk)
            where = lambda x: (b, x) if batched else (x,)
            lead = (self.b,) if batched else ()
            if one:
                same = self.capture("ids", (*lead, self.sq), dtype, ids)
                names = [same.name, same.name]
                # One size for both, if the text shows it.
            else:
                names = [self.capture("ids", (*lead, dim), dtype, ids).name
                         for dim in (self.sq, self.sk)]
            return compare("eq", op("i", "read", *where(i), data=names[0]),
                           op("i", "read", *where(j), data=names[1]))
        if way == "holes":
            return self.read("b", "keep", "i1", ("bits", 0.7))
        if way == "stride":
            n = const("i", int(self.rng.integers(1, 5)))
            return compare("eq", op("i", "remsi", i, n), op("i", "remsi", j, n))
        if way == "block":
            n = const("i", int(self.rng.integers(1, 40)))
            return compare("sge", op("i", "divsi", i, n), op("i", "divsi", j, n))
        if way == "constant":
            return const("b", bool(self.rng.random() < 0.7))
        if way == "float":
            x = self.read("f", "t", self.float_type(), ("normal", 1.0))
            return compare(self.pick(["olt", "ogt"]), x, const("f", 0.25))
        return compare(self.pick(["slt", "sle", "sgt", "sge", "eq", "ne"],
                                 [3, 3, 3, 3, 0.5, 1]),
                       self.index(2), self.index(2))

    def present(self):
        """Lengths, paddings on the left, positions or both of two: keys outside
        of which nobody has written."""
        l = self.leaves
        i, j, b, h = l["i"], l["j"], l["b"], l["h"]
        size = self.program.size(self.sk)

        def read(stem, low, high):
            dims, at = self.pick([((self.b,), [b]), ((self.h,), [h]),
                                  ((self.b, self.h), [b, h])], [5, 1, 1])
            operand = self.capture(stem, dims, self.pick(["i32", "i64"]),
                                   ("range", low, high))
            return op("i", "read", *at, data=operand.name)

        def one():
            way = self.pick(["length", "start", "position"], [3, 2, 1])
            if way == "length":
                return op("b", "cmp", j, read("lengths", 0, size + 2), data="slt")
            if way == "start":
                return op("b", "cmp", j, read("starts", 0, size + 1), data="sge")
            last = op("i", "addi", read("positions", 0, size + 1), i)
            return op("b", "cmp", j, last, data="sle")

        return one() if self.chance(0.6) else op("b", "and", one(), one())

    # Numbers.

    def float_type(self):
        if self.dtype == "f64":
            return self.pick(["f64", "f32"], [3, 1])
        if self.dtype != "f32":
            return self.dtype
        return self.pick(["f32", "f16", "bf16"], [4, 1, 1])

    def number(self, depth):
        """Makes a number of the region's type, of moderate size."""
        one = const("f", 1.0)
        if depth == 0:
            kind = self.pick(["s", "const", "read", "place", "scalar"],
                             [5, 2, 4, 2, 0.7])
            if kind == "s":
                return self.leaves["s"]
            if kind == "const":
                return const("f", round(float(self.rng.uniform(-2, 2)), 3))
            if kind == "read":
                return self.read("f", "t", self.float_type(),
                                 ("normal", float(self.pick([0.3, 1.0, 2.0]))))
            if kind == "scalar":
                operand = self.capture("x", (), self.dtype, ("normal", 1.0),
                                       scalar=True)
                return op("f", "read", data=operand.name)
            x = op("f", "sitofp", self.index(1),
                   data=self.pick(["i32", "i64"]))
            return op("f", "mulf", x, const("f", self.pick([0.125, 0.01, -0.03])))
        name = self.pick(
            ["addf", "subf", "mulf", "tanh", "sin", "cos", "erf", "atan", "exp",
             "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "divf", "square",
             "maximumf", "minimumf", "absf", "negf", "fma", "select", "sigmoid",
             "choose"],
            [8, 4, 5, 4, 1, 1, 1, 1, 2, 1, 0.5, 1, 0.5, 1, 1, 2, 1, 1, 1, 1, 1, 1,
             2, 1, 0.7])
        a = self.number(depth - 1)
        if name in ("addf", "subf", "maximumf", "minimumf"):
            return op("f", name, a, self.number(depth - 1))
        if name == "mulf":
            return op("f", name, a, self.bounded(depth - 1))
        if name == "fma":
            return op("f", name, a, self.bounded(depth - 1),
                      self.number(depth - 1))
        if name == "tanh":
            cap = const("f", self.pick([1.0, 2.5, 30.0]))
            return op("f", "mulf", op("f", "tanh", op("f", "divf", a, cap)), cap)
        if name in ("sin", "cos", "erf", "atan", "absf", "negf"):
            return op("f", name, a)
        if name in ("exp", "exp2", "expm1"):
            return op("f", name, op("f", "minimumf", a, const("f", 2.0)))
        if name == "log":
            return op("f", name, op("f", "addf", one, op("f", "absf", a)))
        if name == "log1p":
            return op("f", name, op("f", "absf", a))
        if name in ("sqrt", "rsqrt"):
            return op("f", name, op("f", "addf", one, op("f", "mulf", a, a)))
        if name == "square":
            return op("f", "mulf", op("f", "mulf", a, a), const("f", 0.1))
        if name == "divf":
            if self.rng.random() < 0.5:
                return op("f", name, a, const("f", self.pick([1.5, 3.0, -7.0])))
            b = self.number(depth - 1)
            return op("f", name, a,
                      op("f", "addf", one, op("f", "mulf", b, b)))
        if name == "sigmoid":
            e = op("f", "exp", op("f", "minimumf", op("f", "negf", a),
                                  const("f", 20.0)))
            return op("f", "divf", one, op("f", "addf", one, e))
        if name == "select":
            return op("f", "select", self.truth(1), a, self.number(depth - 1))
        return op("f", "select",
                  op("b", "cmp", a, const("f", 0.1), data="ogt"),
                  op("f", "mulf", a, const("f", 0.5)), a)

    def bounded(self, depth):
        if self.rng.random() < 0.4:
            return const("f", round(float(self.rng.uniform(-1.5, 1.5)), 3))
        return op("f", self.pick(["tanh", "sin", "cos"]), self.number(depth))

    def score(self):
        """A known modification, or any expression."""
        s, i, j = (self.leaves[n] for n in "sij")
        way = self.pick(["cap", "alibi", "bias", "any", "table", "hide"],
                        [1, 1, 1.5, 4, 1, 1])
        if way == "hide":
            return self.hide()
        if way == "cap":
            cap = const("f", 2.5)
            return op("f", "mulf", op("f", "tanh", op("f", "divf", s, cap)), cap)
        if way == "alibi":
            slopes = self.capture("slopes", (self.h,), self.float_type(),
                                  ("normal", 0.2))
            slope = op("f", "read", self.leaves["h"], data=slopes.name)
            far = op("f", "sitofp", op("i", "subi", j, i), data="i32")
            return op("f", "addf", s, op("f", "mulf", slope, far))
        if way in ("bias", "table"):
            x = self.read("f", "bias", self.float_type(), ("normal", 1.0))
            return op("f", "addf", s, x)
        return self.number(int(self.rng.integers(1, 4)))


    def hide(self):
        """A mask as libraries without one write it: a large negative number or
        minus infinity, added or selected."""
        s = self.leaves["s"]
        low = float(self.pick([-1e4, -1e9, -3.4028234663852886e38, -np.inf],
                              [1, 2, 2, 2]))
        if self.dtype not in ("f32", "f64"):
            low = -1e4
        if self.attention.form == "linalg" and low == -np.inf:
            # Whole rows of it are NaN there.
            low = -1e9
        if self.chance(0.5):
            return op("f", "select", self.truth(1), s, const("f", low))
        kind = self.float_type() if low == -1e4 else self.dtype
        return op("f", "addf", s, self.read("f", "bias", kind, ("holes", low)))

    def chance(self, p):
        return self.rng.random() < p


class Generator:
    def __init__(self, seed, index, target, simulate, gradients):
        self.rng = np.random.default_rng([seed, index])
        self.target, self.simulate = target, simulate
        self.kind = ("simulate" if simulate
                     else "host" if target == "host" else "gpu")
        self.gradients = gradients
        self.count = 0
        self.seed, self.index = seed, index

    def pick(self, choices, weights=None):
        if weights is not None:
            weights = np.array(weights) / np.sum(weights)
        return choices[self.rng.choice(len(choices), p=weights)]

    def chance(self, p):
        return self.rng.random() < p

    def new(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def sizes(self):
        rng = self.rng
        group = self.pick([1, 2, 3, 4, 8], [6, 3, 1, 1, 0.5])
        heads = self.pick([1, 2, 3], [5, 3, 1])
        sizes = {"B": self.pick([1, 2, 3], [5, 3, 1]), "G": heads,
                 "H": heads * group}
        sizes["Sq"] = self.pick(LENGTHS)
        sizes["Sk"] = sizes["Sq"] if self.chance(0.45) else self.pick(LENGTHS)
        sizes["D"] = self.pick(HEAD_DIMS)
        sizes["E"] = sizes["D"] if self.chance(0.7) else self.pick(HEAD_DIMS)
        if self.chance(0.04):
            sizes[self.pick(["B", "Sq", "Sk", "D", "E"],
                            [1, 2, 2, 0.5, 0.5])] = 0
        if self.chance(0.05):
            sizes["Sq"] = 1
        order = ["B", "G", "Sq", "Sk", "D", "E"]
        while (sizes["B"] * sizes["H"] * sizes["Sq"] * sizes["Sk"]
               * (sizes["D"] + sizes["E"]) > WORK[self.kind]):
            name = order[rng.integers(len(order))]
            if sizes[name] > 1:
                sizes[name] = (sizes[name] + 1) // 2
                if name == "G":
                    sizes["H"] = sizes["G"] * group
        sizes["P"] = sizes["D"] // 2
        return sizes

    def dtype(self):
        return self.pick(["f64", "f32", "f16", "bf16"],
                         [3, 3, 2, 2] if self.kind == "host" else [1, 2, 3, 3])

    def operand(self, stem, dims, dtype, values=("normal", 1.0)):
        operand = Operand(stem, tuple(dims), dtype, values)
        if len(dims) == 4 and self.chance(0.2):
            operand.layout = self.pick(
                ["offset", "turned", "packed", "step", "expand", "inner",
                 "reversed"])
        self.program.operands.append(operand)
        self.program.tensors[operand.name] = operand
        return operand.name

    def add(self, statement):
        statement.declare(self.program)
        self.program.body.append(statement)
        return statement.out

    def around(self, x, depth=1):
        """Zero, one or two operations on a tensor."""
        program = self.program
        for _ in range(depth):
            tensor = program.tensors[x]
            way = self.pick(["none", "layer", "rms", "rope", "residual", "scale",
                             "elementwise"], [6, 1, 1, 1.2, 1, 0.5, 0.8])
            last = tensor.dims[-1]
            narrow = self.pick([tensor.dtype, "f32"])
            if way in ("layer", "rms") and program.size(last):
                weight = (self.operand(self.new("w"), (last,), narrow)
                          if self.chance(0.7) else None)
                bias = (self.operand(self.new("c"), (last,), narrow)
                        if way == "layer" and self.chance(0.6) else None)
                x = self.add(Norm(self.new("t"), x, weight, bias,
                                  self.pick([1e-6, 1e-5, 1e-2]),
                                  way == "layer"))
            elif way == "rope" and last == "D" and program.size("D") % 2 == 0:
                dims = (tensor.dims[2], "P")
                tables = [self.operand(self.new(n), dims, narrow)
                          for n in ("cos", "sin")]
                x = self.add(Rope(self.new("t"), x, *tables, self.chance(0.5)))
            elif way == "residual":
                other = self.operand(self.new("r"), tensor.dims, narrow)
                x = self.add(Residual(self.new("t"), x, other))
            elif way == "scale":
                x = self.add(Scale(self.new("t"), x,
                                   self.pick([0.125, 0.3, -1.7])))
            elif way == "elementwise":
                x = self.elementwise(x)
        return x

    def elementwise(self, x):
        tensor = self.program.tensors[x]
        xs = [x]
        if self.chance(0.5):
            xs.append(self.operand(self.new("g"), tensor.dims, tensor.dtype))
        arguments = [leaf(f"x{n}") for n in range(len(xs))]
        first = arguments[0]
        other = arguments[-1]
        body = self.pick([
            op("f", "mulf", first, other),
            op("f", "addf", op("f", "tanh", first), other),
            op("f", "mulf", op("f", "maximumf", first, const("f", 0.0)), other),
            op("f", "subf", op("f", "mulf", first, const("f", 0.5)), other)])
        if tensor.dtype in ("f16", "bf16"):
            # Functions of small types are not tried.
            body = self.pick([op("f", "mulf", first, other),
                              op("f", "addf", first, other)])
        result = (self.pick([tensor.dtype, "f32"])
                  if tensor.dtype in ("f16", "bf16") else tensor.dtype)
        return self.add(Elementwise(self.new("t"), tuple(xs), body,
                                    tensor.dtype, result))

    def attention(self, q, k, v, form, mode, region=True):
        program = self.program
        kinds = [program.tensors[n].dtype for n in (q, k, v)]
        d = max(program.size(program.tensors[q].dims[3]), 1)
        # Scores of some units: much larger ones leave every error open.
        scale = float(self.pick(
            [d**-0.5, round(d**-0.5, 6), 2 * d**-0.5, 0.3 * d**-0.5,
             1.0 if d <= 16 else 0.125, -0.25 if d <= 64 else -0.0625]))
        out = self.pick([kinds[0], "f32"], [4, 1])
        if out == "f32" and "f64" in kinds:
            out = "f64"
        a = Attention(self.new("o"), q, k, v, scale, out, form=form)
        a.inner = wider(*kinds[:2])
        if form == "graph" and kinds[0] in ("f16", "bf16") and self.chance(0.1) \
                and len(set(kinds)) == 1 and mode == "plain":
            a.inner = kinds[0]
        if form == "linalg":
            a.heads_first = program.tensors[q].dims[1] == "H"
            a.one_softmax = self.chance(0.4)
        dtype = a.inner if form == "graph" else a.accumulator(program)
        regions = Regions(self.rng, program, a, dtype)
        if region:
            if self.chance(0.5) and mode == "plain":
                a.score = regions.score()
            if self.chance(0.6):
                a.mask = regions.truth(2)
            if mode == "nan" and self.chance(0.6):
                present = regions.present()
                a.mask = (op("b", "and", present, a.mask) if a.mask
                          else present)
        if form != "linalg":
            if self.chance(0.12) and mode == "plain":
                a.dropout = float(self.pick([0.1, 0.5, 0.9]))
                a.seeds = tuple(
                    regions.capture(n, (), "i64", ("number", value),
                                    scalar=True).name
                    for n, value in (("seed", int(self.rng.integers(2**60))),
                                     ("offset", int(self.rng.integers(2**40)))))
            if self.chance(0.2):
                a.lse = self.new("l")
        return self.add(a), a

    def inputs(self, dims, dtypes, names="qkv", turned=False):
        order = (lambda x: (x[0], x[2], x[1], x[3])) if turned else (lambda x: x)
        magnitude = float(self.pick([1.0, 1.0, 0.5, 2.0]))
        return [self.operand(name, order(dim), dtype, ("normal", magnitude
                             if name[0] == "q" else 1.0))
                for name, dim, dtype in zip(names, dims, dtypes)]

    def make(self):
        rng = self.rng
        gradients = {"no": False, "yes": True,
                     "both": self.chance(0.5)}[self.gradients]
        mode = self.pick(["plain", "huge", "nan"], [90, 5, 5])
        if mode != "plain":
            gradients = False
        sizes = self.sizes()
        static = {n: self.chance(0.5) for n in sizes}
        if self.chance(0.35):
            static = {n: True for n in sizes}
        # Heads and features are known in practice.
        for name, p in (("H", 0.9), ("D", 0.9), ("E", 0.9)):
            static[name] = static[name] or self.chance(p)
        static["G"] = static["H"]
        static["P"] = static["D"]
        self.program = Program(sizes, {n for n in sizes if static[n]}, [], [], [])
        program = self.program
        dtype = self.dtype()
        dtypes = [dtype] * 3
        if self.chance(0.15):
            dtypes = [self.dtype() for _ in range(3)]
        dims = [("B", "H", "Sq", "D"), ("B", "G", "Sk", "D"),
                ("B", "G", "Sk", "E")]
        form = self.pick(["op", "graph", "linalg"], [4, 4, 2])
        if mode == "nan" and form == "linalg":
            form = "op"
        turned = form == "linalg" and self.chance(0.5)
        q, k, v = self.inputs(dims, dtypes, turned=turned)
        if (self.chance(0.1) and sizes["H"] == sizes["G"]
                and sizes["Sq"] == sizes["Sk"] and sizes["D"] == sizes["E"]):
            # The operand is itself keys and values.
            kept = program.operands[0]
            program.operands[:] = [kept]
            for name in (k, v):
                del program.tensors[name]
            k = v = q
        plain = mode == "plain" and form != "linalg"
        if plain:
            q = self.around(q, int(rng.integers(0, 3)))
            if k != q:
                k = self.around(k)
                v = self.around(v, int(self.chance(0.3)))
        o, first = self.attention(q, k, v, form, mode)
        results = [o]
        if first.lse:
            results.append(first.lse)
        if plain:
            o2 = self.around(o, int(rng.integers(0, 2)))
            results[0] = o2
            # Errors of small types grow from one layer to the next.
            more = [7, 2.5, 0.5] if dtype in ("f32", "f64") else [9, 1, 0]
            for _ in range(self.pick([0, 1, 2], more)):
                x = program.tensors[o2]
                kinds = [x.dtype] * 2
                if sizes["H"] == sizes["G"] and self.chance(0.3):
                    k2 = v2 = o2
                else:
                    last = x.dims[3]
                    k2, v2 = (self.operand(self.new(n), ("B", "G", "Sk", last),
                                           d) for n, d in zip("kv", kinds))
                o3, more = self.attention(o2, k2, v2, self.pick(["op", "graph"]),
                                          mode)
                if self.chance(0.3):
                    o3 = self.add(Residual(self.new("t"), o3, o2))
                o2 = self.around(o3, int(self.chance(0.3)))
                results[0] = o2
                if more.lse:
                    results.append(more.lse)
            if self.chance(0.1) and not (gradients and self.gradients == "yes"):
                gradients = False
                results[0] = self.loop(o2)
        program.results = results
        case = Case(self.seed, self.index, program, target=self.target,
                    simulate=self.simulate, gradients=gradients, mode=mode)
        self.keep_all_rows(case)
        self.options(case)
        return case

    def loop(self, x):
        program = self.program
        tensor = program.tensors[x]
        kept = list(program.body)
        k, v = (self.operand(self.new(n), ("B", "G", "Sk", tensor.dims[3]),
                             tensor.dtype) for n in "kv")
        carried = self.new("y")
        self.program.tensors[carried] = tensor
        program.body[:] = []
        o, attention = self.attention(carried, k, v, self.pick(["op", "graph"]),
                                      "plain")
        attention.dtype = tensor.dtype
        attention.lse = None
        attention.declare(program)
        following = self.add(Residual(self.new("t"), o, carried))
        body, program.body[:] = list(program.body), kept
        return self.add(Loop(self.new("z"), x, carried, following, body,
                             int(self.rng.integers(0, 4))))

    def keep_all_rows(self, case):
        """Importers' softmax of a row without a key is NaN, fused it is zero,
        and neither is wrong: such graphs lose their mask."""
        for a in case.program.body:
            if isinstance(a, Attention) and a.form == "linalg":
                values = plain(make_operands(case))
                shape = [case.program.size(d) for d in
                         (a.dims(case.program)[n] for n in (0, 1, 3, 4))]
                keep, _ = a.keep(case.program, values, shape)
                if not bool(keep.any(-1).all()):
                    a.mask = None
                    if not shape[3]:
                        case.program.sizes["Sk"] = 1

    def options(self, case):
        case.strategy = self.pick(list(STRATEGIES), list(STRATEGIES.values()))
        if case.gradients:
            case.recompute = self.pick(["auto", "always", "never"], [1, 2, 1])
            if self.chance(0.15):
                case.textbook, case.strategy = True, "unfused"
            case.partition = self.chance(0.3)
        case.deterministic = self.chance(0.15)
        if self.target == "host":
            case.arch = self.pick(["native", "avx2", "generic"], [6, 2, 2])
        if self.simulate:
            case.partition = False
            if case.strategy == "unfused":
                case.strategy = "fused"
            case.textbook = False


def generate(seed, index, target="host", simulate=False, gradients="both",
             compile_only=False, schedules=False):
    case = Generator(seed, index, target, simulate, gradients).make()
    case.compile_only = compile_only
    if schedules:
        # By numbers of their own, so that the graph is the same without.
        rng = np.random.default_rng([seed, index, 1])
        for statement in case.program.body:
            if isinstance(statement, Attention) and statement.form == "op":
                statement.schedule = draw(rng, target, bool(statement.mask))
                if case.gradients and not case.partition:
                    case.backward_schedule = draw_backward(
                        rng, bool(statement.mask))
    return case

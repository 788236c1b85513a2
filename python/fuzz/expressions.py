# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar expressions of regions: printed as MLIR, computed by PyTorch, followed
by `approx` with derivatives.

A node is of kind "i" (an index), "b" (a truth value) or "f" (a number of the
region's type). A node that is used twice is one object, and one operation.
"""

import dataclasses
import math

import torch

from . import approx
from .approx import Approx


@dataclasses.dataclass(eq=False)
class Node:
    kind: str
    op: str
    args: tuple = ()
    #: The value of constants, the name of captures, the type of casts.
    data: object = None

    def order(self, seen=None):
        """All nodes of the expression, operands first."""
        seen = {} if seen is None else seen
        if id(self) not in seen:
            for arg in self.args:
                arg.order(seen)
            seen[id(self)] = self
        return list(seen.values())

    def names(self):
        return {node.data for node in self.order() if node.op == "read"}


def _erf_slope(x):
    return 2 / math.sqrt(math.pi) * torch.exp(-x * x)


#: Functions: op, torch's, derivative, range, what rounding is relative to.
FUNCTIONS = {
    "tanh": ("math.tanh", torch.tanh, lambda x: 1 - torch.tanh(x)**2, -1, 1, 0),
    "exp": ("math.exp", torch.exp, torch.exp, 0, math.inf, 0),
    "exp2": ("math.exp2", torch.exp2, lambda x: torch.exp2(x) * math.log(2), 0,
             math.inf, 0),
    "expm1": ("math.expm1", torch.expm1, torch.exp, -1, math.inf, 0),
    "log": ("math.log", torch.log, lambda x: 1 / x, -math.inf, math.inf, 0),
    "log1p": ("math.log1p", torch.log1p, lambda x: 1 / (1 + x), -math.inf,
              math.inf, 0),
    "sqrt": ("math.sqrt", torch.sqrt, lambda x: 0.5 / torch.sqrt(x), 0,
             math.inf, 0),
    "rsqrt": ("math.rsqrt", torch.rsqrt, lambda x: -0.5 * x**-1.5, 0, math.inf,
              0),
    # Reducing the argument leaves an absolute error near the zeros.
    "sin": ("math.sin", torch.sin, torch.cos, -1, 1, 1),
    "cos": ("math.cos", torch.cos, lambda x: -torch.sin(x), -1, 1, 1),
    "erf": ("math.erf", torch.erf, _erf_slope, -1, 1, 0),
    "atan": ("math.atan", torch.atan, lambda x: 1 / (1 + x * x), -2, 2, 0),
}
ARITHMETIC = {"addf": "arith.addf", "subf": "arith.subf", "mulf": "arith.mulf",
              "divf": "arith.divf"}
EXTREMES = {"maximumf": "arith.maximumf", "minimumf": "arith.minimumf"}
INTEGER = {"addi", "subi", "muli", "divsi", "remsi", "floordivsi", "andi", "ori",
           "xori", "maxsi", "minsi"}
COMPARE = {"eq": torch.eq, "ne": torch.ne, "slt": torch.lt, "sle": torch.le,
           "sgt": torch.gt, "sge": torch.ge, "olt": torch.lt, "ogt": torch.gt}


# Printing.

_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000,
             "f64": 0x7FF0000000000000}
_SIGN = {"f16": 1 << 15, "bf16": 1 << 15, "f32": 1 << 31, "f64": 1 << 63}


def literal(value, dtype="f64"):
    """A number as MLIR writes floating-point ones: with a point."""
    if math.isinf(value):
        return hex(_INFINITY[dtype] | (_SIGN[dtype] if value < 0 else 0))
    text = repr(float(value))
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


class Printer:
    """Prints expressions as operations on SSA values."""

    def __init__(self, dtype, prefix="e"):
        self.dtype = dtype
        self.lines = []
        self.names = {}
        self.prefix = prefix

    def new(self, text, keep=None):
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if keep is not None:
            self.names[id(keep)] = name
        return name

    def print(self, root, leaves, captures):
        """The name of the root's value. `leaves` are the names of arguments;
        `captures` has MLIR's type and the sizes of what is read."""
        for node in root.order():
            if id(node) not in self.names:
                self.names[id(node)] = self.print_node(node, leaves, captures)
        return self.names[id(root)]

    def print_node(self, node, leaves, captures):
        args = [self.names[id(arg)] for arg in node.args]
        t, op = self.dtype, node.op
        if op == "leaf":
            return leaves[node.data]
        if op == "const":
            if node.kind == "f":
                return self.new(
                    f"arith.constant {literal(node.data, t)} : {t}")
            if node.kind == "b":
                return self.new(f"arith.constant {str(node.data).lower()}")
            return self.new(f"arith.constant {node.data} : index")
        if op == "size":
            name, dim = node.data
            kind, sizes = captures[name]
            if sizes[dim] is not None:
                return self.new(f"arith.constant {sizes[dim]} : index")
            at = self.new(f"arith.constant {dim} : index")
            return self.new(f"tensor.dim %{name}, {at} : {kind}")
        if op == "read":
            kind, sizes = captures[node.data]
            element = kind.rsplit("x", 1)[-1].rstrip(">")
            element = element.removeprefix("tensor<")
            value = f"%{node.data}"
            if kind.startswith("tensor"):
                value = self.new(f"tensor.extract {value}[{', '.join(args)}] : "
                                 f"{kind}")
            if node.kind == "b":
                return value
            if node.kind == "i":
                return self.new(f"arith.index_cast {value} : {element} to index")
            if element == t:
                return value
            if approx._UNITS[element] > approx._UNITS[t]:
                return self.new(f"arith.extf {value} : {element} to {t}")
            return self.new(f"arith.truncf {value} : {element} to {t}")
        if op == "sitofp":
            integer = self.new(
                f"arith.index_cast {args[0]} : index to {node.data}")
            return self.new(f"arith.sitofp {integer} : {node.data} to {t}")
        if op in FUNCTIONS:
            return self.new(f"{FUNCTIONS[op][0]} {args[0]} : {t}")
        if op in ARITHMETIC or op in EXTREMES:
            return self.new(f"arith.{op} {args[0]}, {args[1]} : {t}")
        if op == "negf":
            return self.new(f"arith.negf {args[0]} : {t}")
        if op == "absf":
            return self.new(f"math.absf {args[0]} : {t}")
        if op == "fma":
            return self.new(f"math.fma {', '.join(args)} : {t}")
        if op == "select":
            kind = t if node.kind == "f" else "index"
            return self.new(f"arith.select {', '.join(args)} : {kind}")
        if op == "absi":
            return self.new(f"math.absi {args[0]} : index")
        if op == "clamp":
            # Into the bounds of a dimension, of which 0 is always one.
            zero = self.new("arith.constant 0 : index")
            one = self.new("arith.constant 1 : index")
            last = self.new(f"arith.subi {args[1]}, {one} : index")
            low = self.new(f"arith.minsi {args[0]}, {last} : index")
            return self.new(f"arith.maxsi {low}, {zero} : index")
        if node.kind == "i":
            assert op in INTEGER, op
            return self.new(f"arith.{op} {args[0]}, {args[1]} : index")
        if op == "cmp":
            left = node.args[0].kind
            if left == "f":
                return self.new(
                    f"arith.cmpf {node.data}, {args[0]}, {args[1]} : {t}")
            return self.new(
                f"arith.cmpi {node.data}, {args[0]}, {args[1]} : index")
        if op == "not":
            true = self.new("arith.constant true")
            return self.new(f"arith.xori {args[0]}, {true} : i1")
        assert op in ("and", "or", "xor"), op
        return self.new(f"arith.{op}i {args[0]}, {args[1]} : i1")


# Computing.

def _integer(op, a, b):
    if op in ("divsi", "floordivsi"):
        return torch.div(a, b, rounding_mode="trunc" if op == "divsi"
                         else "floor")
    return {"addi": torch.add, "subi": torch.sub, "muli": torch.mul,
            "remsi": torch.fmod, "andi": torch.bitwise_and,
            "ori": torch.bitwise_or, "xori": torch.bitwise_xor,
            "maxsi": torch.maximum, "minsi": torch.minimum}[op](a, b)


def _discrete(node, args, env):
    """Returns values that are the same in any arithmetic; None for others."""
    op = node.op
    if op == "leaf":
        return env.leaves[node.data]
    if op == "const" and node.kind != "f":
        return torch.tensor(node.data)
    if op == "size":
        name, dim = node.data
        return torch.tensor(env.shapes[name][dim])
    if op == "read" and node.kind != "f":
        return env.values[node.data][tuple(args)]
    if op in INTEGER:
        return _integer(op, args[0], args[1])
    if op == "absi":
        return args[0].abs()
    if op == "clamp":
        return args[0].minimum(args[1] - 1).clamp_min(0)
    if op in ("and", "or", "xor"):
        return getattr(torch, f"logical_{op}")(args[0], args[1])
    if op == "not":
        return ~args[0]
    if op == "cmp" and node.args[0].kind == "i":
        return COMPARE[node.data](*args)
    if op == "select" and node.kind == "i":
        return torch.where(*args)
    return None


@dataclasses.dataclass
class Env:
    """What an expression is computed with: coordinates and other arguments by
    name; captured tensors, whose floating-point ones are float64 tensors, or
    `Approx` for `track`; their sizes; the region's type; the relative error of
    tanh where it is that of a GPU's instruction."""
    leaves: dict
    values: dict
    shapes: dict
    dtype: str
    tanh: float = 0.0


def evaluate(root, env):
    """Evaluates in float64, through which autograd goes."""
    found = {}
    for node in root.order():
        args = [found[id(arg)] for arg in node.args]
        value = _discrete(node, args, env)
        if value is None:
            value = _evaluate(node, args, env)
        found[id(node)] = value
    return found[id(root)]


def _evaluate(node, args, env):
    op = node.op
    if op == "const":
        return torch.tensor(float(node.data), dtype=torch.float64)
    if op == "read":
        return env.values[node.data][tuple(args)]
    if op == "sitofp":
        return args[0].double()
    if op in FUNCTIONS:
        return FUNCTIONS[op][1](args[0])
    if op == "cmp":
        return COMPARE[node.data](*args)
    if op == "select":
        return torch.where(*args)
    return {"addf": torch.add, "subf": torch.sub, "mulf": torch.mul,
            "divf": torch.div, "maximumf": torch.maximum,
            "minimumf": torch.minimum, "negf": torch.neg, "absf": torch.abs,
            "fma": lambda a, b, c: a * b + c}[op](*args)


class Tracked:
    """An expression with its errors, and its derivatives."""

    def __init__(self, root, env):
        self.root, self.env = root, env
        self.u = approx.unit(env.dtype)
        self.found = {}
        #: Where a choice between numbers could fall out either way.
        self.doubt = {}
        for node in root.order():
            args = [self.found[id(arg)] for arg in node.args]
            value = _discrete(node, args, env)
            if value is None:
                value = self._track(node, args)
            self.found[id(node)] = value
        self.result = self.found[id(root)]

    def _track(self, node, args):
        op, u = node.op, self.u
        if op == "const":
            value = torch.tensor(float(node.data), dtype=torch.float64)
            return Approx(value, torch.where(value.isinf(), 0.0,
                                             value.abs() * u))
        if op == "read":
            where = tuple(args)
            value = self.env.values[node.data].map(lambda x: x[where])
            # It may be rounded to the region's type.
            value = value.round(self.env.dtype)
            return Approx(value.value, torch.where(value.value.isinf(), 0.0,
                                                   value.error))
        if op == "sitofp":
            return Approx(args[0].double(), args[0].double().abs() * u)
        if op in FUNCTIONS:
            _, f, slope, low, high, size = FUNCTIONS[op]
            return approx.function(args[0], u, self._off(op), f, slope, low,
                                   high, size)
        if op in ("addf", "subf"):
            return approx.add(*args, u, 1 if op == "addf" else -1)
        if op == "mulf":
            return approx.mul(*args, u)
        if op == "divf":
            return approx.divide(*args, u)
        if op == "fma":
            return approx.add(approx.mul(args[0], args[1], u), args[2], u)
        if op == "negf":
            return Approx(-args[0].value, args[0].error)
        if op == "absf":
            self.doubt[id(node)] = args[0].value.abs() <= args[0].error
            return Approx(args[0].value.abs(), args[0].error)
        if op in EXTREMES:
            a, b = args
            value = (torch.maximum if op == "maximumf" else torch.minimum)(
                a.value, b.value)
            error = torch.maximum(a.error, b.error)
            self.doubt[id(node)] = (a.value - b.value).abs() <= (
                a.error + b.error)
            return Approx(value, error + torch.zeros_like(value))
        if op == "cmp":
            a, b = args
            self.doubt[id(node)] = (a.value - b.value).abs() <= (
                a.error + b.error)
            return COMPARE[node.data](a.value, b.value)
        assert op == "select", op
        condition, a, b = args
        value = torch.where(condition, a.value, b.value)
        error = torch.where(condition, a.error, b.error)
        doubt = self.doubt.get(id(node.args[0]))
        if doubt is not None:
            self.doubt[id(node)] = doubt
            error = torch.where(doubt, torch.maximum(a.error, b.error)
                                + (a.value - b.value).abs(), error)
        return Approx(value, error)

    def pull_back(self, gradient):
        """From the gradient of the result, of the full shape: the gradients of
        arguments by name, and what each read of a captured tensor adds to it:
        (name, indices, Approx)."""
        u = self.u
        shape = gradient.shape
        sums = {id(self.root): gradient}
        arguments, reads = {}, []

        def give(node, value):
            if node.kind != "f":
                return
            known = sums.get(id(node))
            sums[id(node)] = value if known is None else approx.add(
                known, value, u)

        for node in reversed(self.root.order()):
            g = sums.get(id(node))
            if g is None or node.kind != "f":
                continue
            args = [approx.expand(self.found[id(arg)], shape)
                    if arg.kind == "f" else self.found[id(arg)]
                    for arg in node.args]
            if node.op == "leaf":
                arguments[node.data] = g
            elif node.op == "read":
                indices = [torch.broadcast_to(arg, shape) for arg in args]
                reads.append((node.data, indices, g))
            else:
                for arg, value in zip(node.args, self._pull(node, args, g)):
                    if value is not None:
                        give(arg, value)
        return arguments, reads

    def _pull(self, node, args, g):
        op, u = node.op, self.u
        minus = Approx(-g.value, g.error)
        if op in ("const", "sitofp"):
            return []
        if op == "addf":
            return [g, g]
        if op == "subf":
            return [g, minus]
        if op == "negf":
            return [minus]
        if op == "mulf":
            return [approx.mul(g, args[1], u), approx.mul(g, args[0], u)]
        if op == "fma":
            return [approx.mul(g, args[1], u), approx.mul(g, args[0], u), g]
        if op == "divf":
            first = approx.divide(g, args[1], u)
            second = approx.divide(approx.mul(first, args[0], u), args[1], u)
            return [first, Approx(-second.value, second.error)]
        if op in FUNCTIONS:
            return [approx.mul(g, self._slope(op, args[0]), u)]
        doubt = self.doubt.get(id(node))
        unsure = g.value.abs() + g.error if doubt is None else torch.where(
            doubt, g.value.abs() + g.error, 0.0)
        if op == "absf":
            sign = torch.sign(args[0].value)
            return [Approx(g.value * sign, g.error + 2 * unsure)]
        if op in EXTREMES:
            a, b = args
            first = a.value >= b.value if op == "maximumf" else (
                a.value <= b.value)
            return [Approx(torch.where(side, g.value, 0.0),
                           torch.where(side, g.error, 0.0) + unsure)
                    for side in (first, ~first)]
        assert op == "select", op
        if doubt is None:
            unsure = torch.zeros(())
        condition = torch.broadcast_to(args[0], g.shape)
        return [None] + [Approx(torch.where(side, g.value, 0.0),
                                torch.where(side, g.error, 0.0) + unsure)
                         for side in (condition, ~condition)]

    def _slope(self, op, x):
        """The derivative of a function, as rules compute it: its error is that
        of the argument, by the second derivative, and some roundings of the
        numbers on the way, which are at most 1 or the derivative's size."""
        f = FUNCTIONS[op][2]
        value = f(x.value)
        spread = torch.maximum((f(x.value + x.error) - value).abs(),
                               (f(x.value - x.error) - value).abs())
        # Where the argument's error is that of float64, differences of the
        # derivative are noise: its own slope, bounded by a difference nearby.
        h = 1e-4 * (1 + x.value.abs())
        bend = ((f(x.value + h) - f(x.value - h)) / (2 * h)).abs()
        spread = torch.maximum(spread, 1.01 * bend * x.error)
        bounded = op in ("tanh", "sin", "cos", "erf", "atan")
        size = value.abs().clamp_min(1.0 if bounded else 0.0)
        return Approx(value, spread
                      + 2 * self._off(op) * size + approx.lost(self.u))

    def _off(self, op):
        """The relative error that a function may have."""
        return max(approx.FUNCTION * self.u,
                   self.env.tanh if op == "tanh" else 0)


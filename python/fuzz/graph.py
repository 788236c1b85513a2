# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs: a list of statements on tensors, each of which can print itself as
MLIR (`text`), compute itself by PyTorch in float64 (`evaluate`), follow errors
forward (`track`) and from the results' gradients to its operands' (`pull`).

Sizes are named, so that one name is one size everywhere: "B" batch, "H" and "G"
heads of queries and of keys, "Sq" and "Sk" positions, "D" and "E" features of
keys and of values.
"""

import dataclasses

import torch

from . import approx
from .approx import Approx
from .expressions import Env, Printer, Tracked, evaluate, literal

FLOATS = ("f64", "f32", "f16", "bf16")


@dataclasses.dataclass
class Tensor:
    name: str
    dims: tuple
    dtype: str


@dataclasses.dataclass
class Operand(Tensor):
    """`values` says how the elements are made: ("normal", magnitude), ("ids",
    n), ("range", low, high), ("bits", probability), ("holes", what a mask adds),
    ("number", x)."""
    values: tuple = ("normal", 1.0)
    #: Its layout in memory.
    layout: str = "contiguous"
    scalar: bool = False


@dataclasses.dataclass
class Program:
    sizes: dict
    #: Names of sizes that the text gives as numbers.
    static: set
    operands: list
    body: list
    #: Names of what is returned.
    results: list
    tensors: dict = dataclasses.field(default_factory=dict)
    #: Types of 16 bits of which the host multiplies pairs, weights among them.
    pairs: tuple = ()

    def __post_init__(self):
        for tensor in self.operands:
            self.tensors[tensor.name] = tensor

    def shape(self, name):
        return tuple(self.size(d) for d in self.tensors[name].dims)

    def size(self, dim):
        return dim if isinstance(dim, int) else self.sizes[dim]

    def kind(self, name):
        """MLIR's type."""
        tensor = self.tensors[name]
        if getattr(tensor, "scalar", False):
            return tensor.dtype
        return self.kind_of(tensor.dims, tensor.dtype)

    def kind_of(self, dims, dtype):
        sizes = "".join(
            f"{self.size(d) if self.is_static(d) else '?'}x" for d in dims)
        return f"tensor<{sizes}{dtype}>"

    def is_static(self, dim):
        return isinstance(dim, int) or dim in self.static

    def captures(self):
        """For printing regions: types and static sizes of all operands."""
        return {tensor.name: (self.kind(tensor.name), [
            self.size(d) if self.is_static(d) else None for d in tensor.dims])
                for tensor in self.operands}

    def shapes(self):
        return {name: self.shape(name) for name in self.tensors}

    @property
    def variables(self):
        """Operands that have gradients."""
        return [tensor.name for tensor in self.operands
                if tensor.dtype in FLOATS and not tensor.scalar]

    @property
    def text(self):
        operands = ", ".join(f"%{t.name}: {self.kind(t.name)}"
                             for t in self.operands)
        kinds = ", ".join(self.kind(name) for name in self.results)
        lines = []
        for statement in self.body:
            lines += statement.text(self)
        names = ", ".join(f"%{name}" for name in self.results)
        lines.append(f"return {names} : {kinds}")
        maps = "".join(f"{line}\n" for statement in self.body
                       for line in getattr(statement, "header", lambda: [])())
        return (f"{maps}func.func @f({operands}) -> ({kinds}) {{\n"
                + "".join(f"  {line}\n" for line in lines) + "}\n")

    def evaluate(self, values):
        """Computes all tensors by name, from those of the operands."""
        values = dict(values)
        for statement in self.body:
            statement.evaluate(self, values)
        return values

    def track(self, values, target):
        """The same as `Approx`."""
        values = dict(values)
        for statement in self.body:
            statement.track(self, values, target)
        return values

    def pull(self, values, gradients, target):
        """Computes the operands' gradients from those of the results."""
        sums = Gradients(self)
        # Cotangents are numbers of their types.
        sums.update(gradients)
        for statement in reversed(self.body):
            statement.pull(self, values, sums, target)
        return sums


class Gradients(dict):
    """Sums by tensor, each term and each sum rounded to the tensor's type."""

    def __init__(self, program):
        super().__init__()
        self.program = program

    def add(self, name, term):
        tensor = self.program.tensors[name]
        if tensor.dtype not in FLOATS or getattr(tensor, "scalar", False):
            return
        term = term.store(tensor.dtype)
        known = self.get(name)
        if known is not None:
            term = approx.add(known, term, 0).store(tensor.dtype)
        self[name] = term

    def take(self, name):
        """Takes the gradient of a result, or None if nothing depends on it."""
        return self.get(name)


class Statement:
    def output(self, program, name, dims, dtype):
        program.tensors[name] = Tensor(name, dims, dtype)


@dataclasses.dataclass
class Norm(Statement):
    out: str
    x: str
    weight: str
    bias: str
    epsilon: float
    mean: bool

    def declare(self, program):
        x = program.tensors[self.x]
        self.output(program, self.out, x.dims, x.dtype)

    def inputs(self):
        return [n for n in (self.x, self.weight, self.bias) if n]

    def text(self, program):
        op = "attn.layer_norm" if self.mean else "attn.rms_norm"
        line = f"%{self.out} = {op} %{self.x} "
        if self.weight:
            line += f"weight(%{self.weight} : {program.kind(self.weight)}) "
        if self.bias:
            line += f"bias(%{self.bias} : {program.kind(self.bias)}) "
        return [line + f"epsilon({literal(self.epsilon)}) : {program.kind(self.x)}"]

    def evaluate(self, program, values):
        x = values[self.x]
        if self.mean:
            x = x - x.mean(-1, keepdim=True)
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon)
        if self.weight:
            y = y * values[self.weight]
        if self.bias:
            y = y + values[self.bias]
        values[self.out] = y

    def _types(self, program):
        dtypes = [program.tensors[n].dtype for n in self.inputs()]
        return approx.unit(approx.wider(*dtypes)), program.tensors[self.x].dtype

    def _parts(self, program, values):
        """The centred rows, the normalised rows and the factor of a row. The
        variance computed is not negative, which bounds the factor."""
        u, _ = self._types(program)
        x = values[self.x]
        if self.mean:
            x = approx.sub(x, self._average(x, u), u)
        variance = self._average(approx.mul(x, x, u), u)
        exact = (variance.value + self.epsilon).rsqrt()
        most = ((variance.value - variance.error).clamp_min(0)
                + self.epsilon).rsqrt()
        bend = 0.5 * most**3 * variance.error
        r = Approx(exact, torch.minimum(bend, torch.maximum(most - exact, exact))
                   + 2 * approx.QUOTIENT * u * exact)
        return x, approx.mul(x, r, u), r

    @staticmethod
    def _average(x, u):
        n = max(x.shape[-1], 1)
        return times_rounded(approx.total(x, (-1,), u), 1 / n, u).map(
            lambda t: t.unsqueeze(-1))

    def track(self, program, values, target):
        u, dtype = self._types(program)
        _, y, _ = self._parts(program, values)
        if self.weight:
            y = approx.mul(y, values[self.weight], u)
        if self.bias:
            y = approx.add(y, values[self.bias], u)
        values[self.out] = y.store(dtype)

    def pull(self, program, values, gradients, target):
        g = gradients.take(self.out)
        if g is None:
            return
        u, _ = self._types(program)
        _, y, r = self._parts(program, values)
        if self.bias:
            gradients.add(self.bias, approx.sum_to(g, values[self.bias].shape, u))
        if self.weight:
            gradients.add(self.weight, approx.sum_to(
                approx.mul(g, y, u), values[self.weight].shape, u))
            g = approx.mul(g, values[self.weight], u)
        inner = self._average(approx.mul(g, y, u), u)
        g_x = approx.sub(g, approx.mul(y, inner, u), u)
        if self.mean:
            g_x = approx.sub(g_x, self._average(g, u), u)
        gradients.add(self.x, approx.mul(g_x, r, u))


def times_rounded(a, factor, u):
    """Multiplies by a number that is rounded, as is the product."""
    value = a.value * factor
    return Approx(value, a.error * abs(factor) + 2 * u * value.abs()
                  + approx.lost(u))


@dataclasses.dataclass
class Rope(Statement):
    out: str
    x: str
    cos: str
    sin: str
    interleaved: bool

    def declare(self, program):
        x = program.tensors[self.x]
        self.output(program, self.out, x.dims, x.dtype)

    def inputs(self):
        return [self.x, self.cos, self.sin]

    def text(self, program):
        flag = " interleaved" if self.interleaved else ""
        kinds = ", ".join(map(program.kind, self.inputs()))
        return [f"%{self.out} = attn.rope %{self.x}, %{self.cos}, %{self.sin}"
                f"{flag} : {kinds}"]

    def _split(self, x):
        half = x.shape[-1] // 2
        if self.interleaved:
            return x[..., 0::2], x[..., 1::2]
        return x[..., :half], x[..., half:]

    def _join(self, a, b):
        if self.interleaved:
            return torch.stack((a, b), -1).flatten(-2)
        return torch.cat((a, b), -1)

    def evaluate(self, program, values):
        a, b = self._split(values[self.x])
        c, s = values[self.cos], values[self.sin]
        values[self.out] = self._join(a * c - b * s, b * c + a * s)

    def _halves(self, x):
        return [Approx(v, e) for v, e in zip(self._split(x.value),
                                             self._split(x.error))]

    def track(self, program, values, target):
        dtype = program.tensors[self.x].dtype
        u = approx.unit(approx.wider(
            *(program.tensors[n].dtype for n in self.inputs())))
        a, b = self._halves(values[self.x])
        c, s = values[self.cos], values[self.sin]
        first = approx.sub(approx.mul(a, c, u), approx.mul(b, s, u), u)
        second = approx.add(approx.mul(b, c, u), approx.mul(a, s, u), u)
        values[self.out] = Approx(
            self._join(first.value, second.value),
            self._join(first.error, second.error)).store(dtype)

    def pull(self, program, values, gradients, target):
        g = gradients.take(self.out)
        if g is None:
            return
        u = approx.unit(approx.wider(
            *(program.tensors[n].dtype for n in self.inputs())))
        p, q = self._halves(g)
        a, b = self._halves(values[self.x])
        c, s = values[self.cos], values[self.sin]
        first = approx.add(approx.mul(p, c, u), approx.mul(q, s, u), u)
        second = approx.sub(approx.mul(q, c, u), approx.mul(p, s, u), u)
        gradients.add(self.x, Approx(self._join(first.value, second.value),
                                     self._join(first.error, second.error)))
        for name, one, two in ((self.cos, (p, a), (q, b)),
                               (self.sin, (q, a), (p, b))):
            sign = 1 if name == self.cos else -1
            term = approx.add(approx.mul(*one, u), approx.mul(*two, u), u, sign)
            gradients.add(name, approx.sum_to(term, values[name].shape, u))


@dataclasses.dataclass
class Residual(Statement):
    out: str
    x: str
    y: str

    def declare(self, program):
        x = program.tensors[self.x]
        self.output(program, self.out, x.dims, x.dtype)

    def inputs(self):
        return [self.x, self.y]

    def text(self, program):
        return [f"%{self.out} = attn.residual_add %{self.x}, %{self.y} : "
                f"{program.kind(self.x)}, {program.kind(self.y)}"]

    def evaluate(self, program, values):
        values[self.out] = values[self.x] + values[self.y]

    def track(self, program, values, target):
        dtypes = [program.tensors[n].dtype for n in self.inputs()]
        values[self.out] = approx.add(
            values[self.x], values[self.y],
            approx.unit(approx.wider(*dtypes))).store(dtypes[0])

    def pull(self, program, values, gradients, target):
        g = gradients.take(self.out)
        if g is not None:
            gradients.add(self.x, g)
            gradients.add(self.y, g)


@dataclasses.dataclass
class Scale(Statement):
    out: str
    x: str
    factor: float

    def declare(self, program):
        x = program.tensors[self.x]
        self.output(program, self.out, x.dims, x.dtype)

    def inputs(self):
        return [self.x]

    def text(self, program):
        return [f"%{self.out} = attn.scale %{self.x} by {literal(self.factor)} : "
                f"{program.kind(self.x)}"]

    def evaluate(self, program, values):
        values[self.out] = values[self.x] * self.factor

    def _times(self, program, a):
        # The factor may be rounded to the type, too.
        dtype = program.tensors[self.x].dtype
        return times_rounded(a, self.factor, approx.unit(dtype)).store(dtype)

    def track(self, program, values, target):
        values[self.out] = self._times(program, values[self.x])

    def pull(self, program, values, gradients, target):
        g = gradients.take(self.out)
        if g is not None:
            gradients.add(self.x, self._times(program, g))


@dataclasses.dataclass
class Elementwise(Statement):
    """A function of one element of each input, in their type."""
    out: str
    xs: tuple
    body: object
    #: The type of inputs and of the arithmetic, and of the result.
    dtype: str
    result: str

    def declare(self, program):
        self.output(program, self.out, program.tensors[self.xs[0]].dims,
                    self.result)

    def inputs(self):
        return list(self.xs)

    def text(self, program):
        printer = Printer(self.dtype)
        leaves = {f"x{n}": f"%x{n}" for n in range(len(self.xs))}
        value = printer.print(self.body, leaves, program.captures())
        if self.result != self.dtype:
            op = ("arith.extf" if approx._UNITS[self.result]
                  < approx._UNITS[self.dtype] else "arith.truncf")
            value = printer.new(f"{op} {value} : {self.dtype} to {self.result}")
        names = ", ".join(f"%{x}" for x in self.xs)
        kinds = ", ".join(map(program.kind, self.xs))
        arguments = ", ".join(f"{name}: {self.dtype}"
                              for name in leaves.values())
        return ([f"%{self.out} = attn.elementwise {names} {{",
                 f"^bb0({arguments}):"]
                + ["  " + line for line in printer.lines]
                + [f"  attn.yield {value} : {self.result}",
                   f"}} : ({kinds}) -> {program.kind(self.out)}"])

    def evaluate(self, program, values):
        leaves = {f"x{n}": values[x] for n, x in enumerate(self.xs)}
        value = evaluate(self.body, Env(leaves, values, {}, self.dtype))
        values[self.out] = value.expand(values[self.xs[0]].shape)

    def _tracked(self, values):
        leaves = {f"x{n}": values[x] for n, x in enumerate(self.xs)}
        return Tracked(self.body, Env(leaves, values, {}, self.dtype))

    def track(self, program, values, target):
        result = approx.expand(self._tracked(values).result,
                               values[self.xs[0]].shape)
        values[self.out] = result.store(self.result)

    def pull(self, program, values, gradients, target):
        g = gradients.take(self.out)
        if g is None:
            return
        arguments, _ = self._tracked(values).pull_back(g.store(self.dtype))
        for name, gradient in arguments.items():
            gradients.add(self.xs[int(name[1:])], gradient)


@dataclasses.dataclass
class Loop(Statement):
    """Statements over and over on one tensor, as a loop over layers."""
    out: str
    start: str
    #: The name that the body has for what is carried, and the name of the next.
    carried: str
    following: str
    body: list
    count: int

    def declare(self, program):
        start = program.tensors[self.start]
        self.output(program, self.carried, start.dims, start.dtype)
        for statement in self.body:
            statement.declare(program)
        self.output(program, self.out, start.dims, start.dtype)

    def inputs(self):
        inner = {self.carried} | {s.out for s in self.body}
        names = [self.start]
        for statement in self.body:
            names += [n for n in statement.inputs() if n not in inner]
        return names

    def text(self, program):
        kind = program.kind(self.start)
        low, high, step = (f"%{self.out}_{n}" for n in ("low", "high", "step"))
        lines = [f"{low} = arith.constant 0 : index",
                 f"{high} = arith.constant {self.count} : index",
                 f"{step} = arith.constant 1 : index",
                 f"%{self.out} = scf.for %{self.out}_at = {low} to {high} step "
                 f"{step} iter_args(%{self.carried} = %{self.start}) -> "
                 f"({kind}) {{"]
        for statement in self.body:
            lines += ["  " + line for line in statement.text(program)]
        return lines + [f"  scf.yield %{self.following} : {kind}", "}"]

    def evaluate(self, program, values):
        at = values[self.start]
        for _ in range(self.count):
            values[self.carried] = at
            for statement in self.body:
                statement.evaluate(program, values)
            at = values[self.following]
        values[self.out] = at

    def track(self, program, values, target):
        at = values[self.start]
        for _ in range(self.count):
            values[self.carried] = at
            for statement in self.body:
                statement.track(program, values, target)
            at = values[self.following]
        values[self.out] = at

    def pull(self, program, values, gradients, target):
        raise NotImplementedError("loops have no gradients")

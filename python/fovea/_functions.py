# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of PyTorch on traced values, as operations of a region.

FUNCTIONS has one function for each name, whether PyTorch has it as a function,
a method or an operator; _scalars.py has what they do to numbers.
"""

import functools
import itertools
import math

import torch

from . import _scalars as scalars
from ._regions import fail
from ._values import (DTYPES, FUNCTIONS, METHODS, Array, Number, Row, Traced,
                      Value, move)

#--- Elements and types ------------------------------------------------------


def public(*names):
    """Enters a function into FUNCTIONS, under its own name without underscore
    and under others."""
    def enter(function):
        for name in (function.__name__.strip("_"), *names):
            FUNCTIONS[name] = function
        return function
    return enter


def find_region(args):
    for arg in args:
        if isinstance(arg, Traced):
            return arg.region
        if isinstance(arg, (tuple, list)):
            region = find_region(arg)
            if region is not None:
                return region
    return None


def read(region, arg):
    """Returns an operand as a `Value`, an `Array` or a number of Python."""
    if isinstance(arg, Row):
        return arg.unroll()
    if isinstance(arg, (Value, Array, bool, int, float)):
        return arg
    if isinstance(arg, torch.Tensor):
        region.tracer.check(arg)
        return Row(region, arg).unroll()
    if isinstance(arg, (Number, torch.SymInt)):
        return region.tracer.number(region, arg)
    if isinstance(arg, torch.SymFloat):
        fail("a float that is symbolic; expected a number or a tensor")
    if hasattr(arg, "dtype") and hasattr(arg, "item") and not arg.shape:
        return arg.item()  # A number of NumPy.
    fail(f"an operand of type {type(arg).__name__}; expected tensors and numbers")


def elementwise(function):
    """Makes a function of values and numbers one of arrays as well, whose
    shapes are broadcast."""
    @functools.wraps(function)
    def apply(*args, **options):
        region = find_region(args)
        args = [read(region, arg) for arg in args]
        arrays = [arg for arg in args if isinstance(arg, Array)]
        if not arrays:
            return function(region, *args, **options)
        try:
            shape = torch.broadcast_shapes(*(a.shape for a in arrays))
        except RuntimeError as error:
            fail(str(error), RuntimeError)
        columns = []
        for arg in args:
            if isinstance(arg, Array):
                columns.append(_expand(arg, shape).items)
            else:
                columns.append(itertools.repeat(arg, shape.numel()))
        return Array(shape, [function(region, *row, **options)
                             for row in zip(*columns)])
    return apply


def _expand(array, shape):
    if array.shape == shape:
        return array
    return move(lambda numbers: numbers.expand(shape), array)


@public("clip")
def clamp(self, min=None, max=None):
    if min is None:
        return elementwise(lambda r, a, y: scalars.clamp(r, a, None, y))(self, max)
    if max is None:
        return elementwise(lambda r, a, x: scalars.clamp(r, a, x))(self, min)
    return elementwise(scalars.clamp)(self, min, max)


for _name, _function in (
        ("add", scalars.add), ("sub", scalars.sub), ("mul", scalars.mul),
        ("div", scalars.div), ("floor_divide", scalars.floor_divide),
        ("remainder", scalars.remainder), ("fmod", scalars.fmod),
        ("pow", scalars.power), ("neg", scalars.negate),
        ("abs", scalars.absolute), ("maximum", scalars.largest),
        ("minimum", scalars.least)):
    FUNCTIONS[_name] = elementwise(_function)
for _name, _known in (
        ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"),
        ("true_divide", "div"), ("truediv", "div"), ("float_power", "pow"),
        ("floordiv", "floor_divide"), ("mod", "remainder"), ("negative", "neg"),
        ("absolute", "abs"), ("clamp_min", "maximum"),
        ("clamp_max", "minimum")):
    FUNCTIONS[_name] = FUNCTIONS[_known]
for _name, _known in (
        ("rsub", "sub"), ("radd", "add"), ("rmul", "mul"), ("rdiv", "div"),
        ("rtruediv", "div"), ("rfloordiv", "floor_divide"),
        ("rmod", "remainder"), ("rpow", "pow")):
    FUNCTIONS[_name] = (lambda a, b, function=FUNCTIONS[_known]:
                        function(b, a))

@public()
def where(condition, input=None, other=None):
    if input is None or other is None:
        fail("where: expected a value for true and one for false")
    return elementwise(scalars.where)(condition, input, other)


METHODS["where"] = lambda self, condition, other: where(condition, self, other)
for _name in scalars.PREDICATES:
    FUNCTIONS[_name] = elementwise(functools.partial(scalars.compare, _name))
for _name, _known in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                      ("greater_equal", "ge"), ("not_equal", "ne")):
    FUNCTIONS[_name] = FUNCTIONS[_known]
for _name, _operation in (("and", "andi"), ("or", "ori"), ("xor", "xori")):
    _function = functools.partial(scalars.logic, _operation)
    for _form in (_name, f"r{_name}", f"bitwise_{_name}"):
        FUNCTIONS[_form] = elementwise(_function)
    FUNCTIONS[f"logical_{_name}"] = elementwise(
        lambda region, a, b, function=_function: function(
            region, scalars.convert(region, a, "i1"),
            scalars.convert(region, b, "i1")))
for _name, _operation in (("lshift", "shli"), ("rshift", "shrsi")):
    _function = functools.partial(scalars.shift, _operation)
    FUNCTIONS[_name] = elementwise(_function)
    FUNCTIONS[f"r{_name}"] = elementwise(
        lambda region, a, b, function=_function: function(region, b, a))
FUNCTIONS["bitwise_left_shift"] = FUNCTIONS["lshift"]
FUNCTIONS["bitwise_right_shift"] = FUNCTIONS["rshift"]
FUNCTIONS["bitwise_not"] = FUNCTIONS["invert"] = elementwise(scalars.invert)
FUNCTIONS["logical_not"] = elementwise(
    lambda region, a: scalars.invert(region, scalars.convert(region, a, "i1")))

for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
              "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"):
    FUNCTIONS[_name] = elementwise(functools.partial(scalars.call_math, _name))
for _name, _known in (("arcsin", "asin"), ("arccos", "acos"),
                      ("arctan", "atan"), ("arcsinh", "asinh"),
                      ("arccosh", "acosh"), ("arctanh", "atanh"),
                      ("special_exp2", "exp2"), ("special_expm1", "expm1"),
                      ("special_erf", "erf"), ("special_log1p", "log1p")):
    FUNCTIONS[_name] = FUNCTIONS[_known]


for _name, _operation in (("floor", "floor"), ("ceil", "ceil"),
                          ("trunc", "trunc"), ("fix", "trunc"),
                          ("round", "roundeven")):
    FUNCTIONS[_name] = elementwise(functools.partial(scalars.round_to, _operation))


for _name, _answer in (("isnan", 0), ("isinf", 0), ("isfinite", 1)):
    FUNCTIONS[_name] = elementwise(
        functools.partial(scalars.classify, _name, _answer))


for _name, _operation in (("atan2", "math.atan2"), ("arctan2", "math.atan2"),
                          ("copysign", "math.copysign"),
                          ("fmax", "arith.maxnumf"),
                          ("fmin", "arith.minnumf")):
    FUNCTIONS[_name] = elementwise(
        functools.partial(scalars.call_binary, _operation))


def _f(name):
    return lambda *args: FUNCTIONS[name](*args)


_exp, _log1p, _tanh, _erf = map(_f, ("exp", "log1p", "tanh", "erf"))
add, mul, maximum, minimum, bitwise_and, bitwise_or = map(
    _f, ("add", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or"))


@public("special_expit")
def sigmoid(input):
    return 1.0 / (1.0 + _exp(-input))


@public()
def silu(input, inplace=False):
    return input * sigmoid(input)


@public()
def gelu(input, *, approximate="none"):
    if approximate == "tanh":
        cubic = input + 0.044715 * (input * input * input)
        return 0.5 * input * (1.0 + _tanh(math.sqrt(2 / math.pi) * cubic))
    return 0.5 * input * (1.0 + _erf(input * math.sqrt(0.5)))


@public()
def relu(input, inplace=False):
    return maximum(input, 0)


@public()
def relu6(input, inplace=False):
    return minimum(maximum(input, 0), 6)


@public()
def leaky_relu(input, negative_slope=0.01, inplace=False):
    return where(input > 0, input, input * negative_slope)


@public()
def elu(input, alpha=1.0, inplace=False):
    return where(input > 0, input, alpha * FUNCTIONS["expm1"](
        minimum(input, 0)))


@public()
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return clamp(input, min_val, max_val)


@public()
def hardsigmoid(input, inplace=False):
    return relu6(input + 3.0) / 6.0


@public()
def hardswish(input, inplace=False):
    return input * hardsigmoid(input)


@public()
def softplus(input, beta=1.0, threshold=20.0):
    scaled = input * beta
    smooth = (maximum(scaled, 0) + _log1p(_exp(-abs(scaled)))) / beta
    return where(scaled > threshold, input, smooth)


@public("log_sigmoid")
def logsigmoid(input):
    return minimum(input, 0) - _log1p(_exp(-abs(input)))


@public()
def mish(input, inplace=False):
    return input * _tanh(softplus(input))


@public()
def logaddexp(input, other):
    largest = maximum(input, other)
    return largest + _log1p(_exp(-abs(input - other)))


@public()
def softsign(input):
    return input / (1.0 + abs(input))


@public()
def square(input):
    return input * input


@public()
def reciprocal(input):
    return 1.0 / input


@public("sgn")
def sign(input):
    """Minus 1, 0 or 1, of the input's type."""
    return where(input > 0, 1, where(input < 0, -1, 0)).to(input.dtype)


@public()
def frac(input):
    return input - FUNCTIONS["trunc"](input)


@public()
def lerp(input, end, weight):
    return input + weight * (end - input)


@public()
def addcmul(input, tensor1, tensor2, *, value=1):
    return input + value * tensor1 * tensor2


@public()
def addcdiv(input, tensor1, tensor2, *, value=1):
    return input + value * tensor1 / tensor2


@public()
def hypot(input, other):
    return FUNCTIONS["sqrt"](input * input + other * other)


@public("xlogy")
def special_xlogy(input, other):
    return where(other == 0, 0.0, input * FUNCTIONS["log"](other))


@public("rad2deg")
def _rad2deg(input):
    return input * (180.0 / math.pi)


@public("deg2rad")
def _deg2rad(input):
    return input * (math.pi / 180.0)

#--- Conversions -------------------------------------------------------------

TYPES = {dtype: type for type, dtype in DTYPES.items()}


def _to_dtype(region, a, *, dtype):
    type = TYPES.get(dtype)
    if type is not None:
        return scalars.convert(region, a, type)
    if dtype in (torch.float16, torch.bfloat16):
        return scalars.convert(region, a, "f32")
    if dtype.is_floating_point or dtype.is_complex:
        fail(f"a conversion to {dtype}, which a region does not have")
    return scalars.convert(region, a, "index")


def cast(input, dtype):
    return elementwise(functools.partial(_to_dtype, dtype=dtype))(input)


@public("_to_copy", "to_copy")
def to(self, *args, dtype=None, **_):
    for arg in args:
        if isinstance(arg, torch.dtype):
            dtype = arg
        elif isinstance(arg, (torch.Tensor, Traced)):
            dtype = arg.dtype
    return self if dtype is None else cast(self, dtype)


@public("type_as")
def _type_as(self, other):
    return cast(self, other.dtype)


@public("type")
def _type(self, dtype):
    return cast(self, dtype)


for _name, _dtype in (("float", torch.float32), ("double", torch.float64),
                      ("half", torch.float16), ("bfloat16", torch.bfloat16),
                      ("int", torch.int32), ("long", torch.int64),
                      ("short", torch.int16), ("bool", torch.bool)):
    FUNCTIONS[_name] = (lambda self, dtype=_dtype, **_: cast(self, dtype))

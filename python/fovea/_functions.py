# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of PyTorch on traced values, as operations of a region.

FUNCTIONS has one function for each name, whether PyTorch has it as a function,
a method or an operator. Types promote as PyTorch's do, with two differences:
integers all have 64 bits, and what would be f16 or bf16 is f32, unrounded.
"""

import functools
import itertools
import math

import torch

from ._values import (DTYPES, FUNCTIONS, MAX, METHODS, MIN, NOWHERE, Array,
                      Number, Row, Traced, Value, fail, move)

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


_RANKS = {"i1": 0, "index": 1, "f32": 2, "f64": 3}


def default_float():
    return "f64" if torch.get_default_dtype() is torch.float64 else "f32"


def _common_type(*args, least="i1"):
    """Returns the type that operands are promoted to; numbers of Python decide
    only whether it is i1, an integer or a float."""
    type = least
    for arg in args:
        if isinstance(arg, Value) and _RANKS[arg.type] > _RANKS[type]:
            type = arg.type
    for arg in args:
        if isinstance(arg, float) and _RANKS[type] < _RANKS["f32"]:
            type = default_float()
        elif type == "i1" and isinstance(arg, int) and (
                not isinstance(arg, bool)):
            type = "index"
    return type


def _float_type(*args):
    type = _common_type(*args)
    return type if _RANKS[type] >= _RANKS["f32"] else default_float()


def convert(region, arg, type):
    """Returns a value or a number as a value of a type."""
    if not isinstance(arg, Value):
        return region.constant(arg, type)
    old = arg.type
    if old == type:
        return arg
    cast = f"{arg.name} : {old} to {type}"
    if type == "f64" and old == "f32":
        return region.emit(f"arith.extf {cast}", type)
    if type == "f32" and old == "f64":
        return region.emit(f"arith.truncf {cast}", type)
    if type == "i1":
        return _compare("ne", region, arg, 0)
    if type == "index":
        if old == "i1":
            return region.emit(f"arith.index_castui {cast}", type, 0, 1)
        # A float beyond the integers, or not a number, would have no value.
        low, high = (region.constant(sign * 2.0**62, old) for sign in (-1, 1))
        arg = region.emit(f"arith.maxnumf {arg.name}, {low.name} : {old}", old)
        arg = region.emit(f"arith.minnumf {arg.name}, {high.name} : {old}", old)
        whole = region.emit(f"arith.fptosi {arg.name} : {old} to i64", "i64")
        return region.emit(f"arith.index_cast {whole.name} : i64 to index", type,
                           -2**62, 2**62)
    if old == "i1":
        return region.emit(f"arith.uitofp {cast}", type)
    narrow = "i32" if -2**31 <= arg.low and arg.high < 2**31 else "i64"
    whole = region.emit(f"arith.index_cast {arg.name} : index to {narrow}",
                        narrow)
    return region.emit(f"arith.sitofp {whole.name} : {narrow} to {type}", type)


def _emit(region, operation, args, type, low=MIN, high=MAX, exact=None):
    names = ", ".join(arg.name for arg in args)
    return region.emit(f"{operation} {names} : {args[0].type}", type, low, high,
                       exact)


def _is(arg, number):
    """Returns True if an operand is known to be a number."""
    if isinstance(arg, Value):
        return (arg.type in ("index", "i1") and arg.low == arg.high == number)
    return arg == number


#--- Arithmetic --------------------------------------------------------------


def _both(a, b):
    """The coordinates of two integers that vary independently, else None."""
    if a.exact is None or b.exact is None or a.exact & b.exact:
        return None
    return a.exact | b.exact


def _multiply_by(region, arg, alpha):
    return arg if alpha == 1 else _mul(region, arg, alpha)


def _add(region, a, b, *, alpha=1):
    b = _multiply_by(region, b, alpha)
    type = _common_type(a, b)
    if type == "i1":
        return _logic("ori", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return _emit(region, "arith.addf", (a, b), type)
    if _is(a, 0):
        return b
    if _is(b, 0):
        return a
    return _emit(region, "arith.addi", (a, b), type, a.low + b.low,
                 a.high + b.high, _both(a, b))


def _sub(region, a, b, *, alpha=1):
    b = _multiply_by(region, b, alpha)
    type = _common_type(a, b)
    if type == "i1":
        fail("subtraction of booleans; use ^ or ~", RuntimeError)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return _emit(region, "arith.subf", (a, b), type)
    if _is(b, 0):
        return a
    return _emit(region, "arith.subi", (a, b), type, a.low - b.high,
                 a.high - b.low, _both(a, b))


def _mul(region, a, b):
    type = _common_type(a, b)
    if type == "i1":
        return _logic("andi", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return _emit(region, "arith.mulf", (a, b), type)
    if _is(a, 1):
        return b
    if _is(b, 1):
        return a
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    exact = _both(a, b) if NOWHERE in (a.exact, b.exact) else None
    return _emit(region, "arith.muli", (a, b), type, min(ends), max(ends), exact)


def _guard(region, b):
    """Returns a divisor, or 1 where it is 0: an integer cannot be divided by 0
    on every machine."""
    if _is(b, 0):
        fail("integer division by zero", ZeroDivisionError)
    if b.low > 0 or b.high < 0:
        return b
    zero = _compare("eq", region, b, 0)
    return _select(region, zero, 1, b, (b.low or 1, b.high or 1))


def _select(region, condition, a, b, span=None):
    type = _common_type(a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    low, high = span or (min(a.low, b.low), max(a.high, b.high))
    return region.emit(f"arith.select {condition.name}, {a.name}, {b.name} : "
                       f"{type}", type, low, high)


def _divide_integers(operation, region, a, b):
    """Divides integers by "floordivsi" or "divsi", which cuts towards 0."""
    round_ = (lambda x, y: x // y) if operation == "floordivsi" else (
        lambda x, y: abs(x) // abs(y) * (1 if x * y >= 0 else -1))
    if _is(b, 1):
        return a
    divisor = _guard(region, b)
    if a.low == MIN and divisor.low <= -1 <= divisor.high:
        # The quotient of the least integer by -1 has more than 64 bits.
        a = _largest(region, a, MIN + 1)
    ends = [round_(x, y) for x in (a.low, a.high)
            for y in (divisor.low, divisor.high) if y]
    if divisor.low <= 1 <= divisor.high:
        ends += [a.low, a.high]
    if divisor.low <= -1 <= divisor.high:
        ends += [-a.low, -a.high]
    if a.low >= 0 and divisor.low > 0:
        operation = "divsi"  # The same, and cheaper.
    exact = a.exact if divisor.exact == NOWHERE and divisor.low > 0 else None
    return _emit(region, f"arith.{operation}", (a, divisor), "index", min(ends),
                 max(ends), exact)


def _floor_divide(region, a, b):
    type = _common_type(a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type == "index":
        return _divide_integers("floordivsi", region, a, b)
    return _emit(region, "math.floor", (_emit(region, "arith.divf", (a, b),
                                              type),), type)


def _div(region, a, b, *, rounding_mode=None):
    if rounding_mode == "floor":
        return _floor_divide(region, a, b)
    if rounding_mode == "trunc" and _common_type(a, b, least="index") == "index":
        return _divide_integers("divsi", region, convert(region, a, "index"),
                                convert(region, b, "index"))
    type = _float_type(a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    quotient = _emit(region, "arith.divf", (a, b), type)
    if rounding_mode == "trunc":
        return _emit(region, "math.trunc", (quotient,), type)
    return quotient


def _remainder(region, a, b):
    """The remainder with the divisor's sign, as Python's."""
    type = _common_type(a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        rest = _emit(region, "arith.remf", (a, b), type)
        below = _compare("lt", region, rest, 0.0)
        wrong = _logic("xori", region, below, _compare("lt", region, b, 0.0))
        wrong = _logic("andi", region, wrong, _compare("ne", region, rest, 0.0))
        return _select(region, wrong, _add(region, rest, b), rest)
    divisor = _guard(region, b)
    if a.low >= 0 and divisor.low > 0:
        if a.high < divisor.low:
            return a
        return _emit(region, "arith.remui", (a, divisor), type, 0,
                     min(a.high, divisor.high - 1))
    if divisor.low > 0:
        rest = _emit(region, "arith.remsi", (a, divisor), type)
        below = _compare("lt", region, rest, 0)
        return _select(region, below, _add(region, rest, divisor), rest,
                       (0, divisor.high - 1))
    quotient = _divide_integers("floordivsi", region, a, divisor)
    rest = _sub(region, a, _mul(region, quotient, divisor))
    return region.emit_like(rest, min(divisor.low + 1, 0),
                            max(divisor.high - 1, 0))


def _fmod(region, a, b):
    """The remainder with the dividend's sign, as C's."""
    type = _common_type(a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return _emit(region, "arith.remf", (a, b), type)
    quotient = _divide_integers("divsi", region, a, b)
    return _sub(region, a, _mul(region, quotient, b))


def _pow(region, a, b):
    type = _common_type(a, b)
    if isinstance(b, (int, float)) and float(b).is_integer() and 1 <= b <= 16 or (
            type == "index" and isinstance(b, int) and 0 <= b <= 64):
        power = convert(region, a, type) if b else 1
        for bit in bin(int(b))[3:]:
            power = _mul(region, power, power)
            if bit == "1":
                power = _mul(region, power, a)
        return convert(region, power, type)
    if type == "index":
        if _is(a, 2):
            return _shift("shli", region, 1, b)
        fail("an integer to a power that is traced or negative; convert it to "
             "float")
    if isinstance(b, Value):
        return _emit(region, "math.powf", (convert(region, a, type),
                                           convert(region, b, type)), type)
    if b == 0.5:
        return _emit(region, "math.sqrt", (convert(region, a, type),), type)
    if b == -1:
        return _div(region, 1.0, a)
    if b == -0.5:
        return _emit(region, "math.rsqrt", (convert(region, a, type),), type)
    return _emit(region, "math.powf", (convert(region, a, type),
                                       convert(region, b, type)), type)


def _neg(region, a):
    if a.type == "i1":
        fail("negation of a boolean; use ~", RuntimeError)
    if a.type == "index":
        return _sub(region, 0, a)
    return _emit(region, "arith.negf", (a,), a.type)


def _abs(region, a):
    if a.type == "i1":
        return a
    if a.type != "index":
        return _emit(region, "math.absf", (a,), a.type)
    if a.low >= 0:
        return a
    result = _largest(region, a, _neg(region, a))
    return region.emit_like(result, 0, result.high)


def _extreme(operation, pick, region, a, b):
    type = _common_type(a, b)
    if type == "i1":
        return _logic("ori" if operation == "max" else "andi", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return _emit(region, f"arith.{operation}imumf", (a, b), type)
    for x, y in ((a, b), (b, a)):
        if x.low >= y.high if operation == "max" else x.high <= y.low:
            return x
    exact = (a.exact if b.exact == NOWHERE else
             b.exact if a.exact == NOWHERE else None)
    return _emit(region, f"arith.{operation}si", (a, b), type,
                 pick(a.low, b.low), pick(a.high, b.high), exact)


def _largest(region, a, b):
    return _extreme("max", max, region, a, b)


def _least(region, a, b):
    return _extreme("min", min, region, a, b)


def _clamp(region, a, low=None, high=None):
    if low is None and high is None:
        fail("clamp: expected min or max", RuntimeError)
    if low is not None:
        a = _largest(region, a, low)
    return a if high is None else _least(region, a, high)


@public("clip")
def clamp(self, min=None, max=None):
    if min is None:
        return elementwise(lambda r, a, y: _clamp(r, a, None, y))(self, max)
    if max is None:
        return elementwise(lambda r, a, x: _clamp(r, a, x))(self, min)
    return elementwise(_clamp)(self, min, max)


for _name, _function in (
        ("add", _add), ("sub", _sub), ("mul", _mul), ("div", _div),
        ("floor_divide", _floor_divide), ("remainder", _remainder),
        ("fmod", _fmod), ("pow", _pow), ("neg", _neg), ("abs", _abs),
        ("maximum", _largest), ("minimum", _least)):
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

#--- Conditions and bits -----------------------------------------------------

_PREDICATES = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"),
               "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge")}


def _compare(name, region, a, b):
    type = _common_type(a, b)
    if type == "i1" and name not in ("eq", "ne"):
        type = "index"
    a, b = convert(region, a, type), convert(region, b, type)
    predicate = _PREDICATES[name][type in ("f32", "f64")]
    operation = "cmpf" if type in ("f32", "f64") else "cmpi"
    return region.emit(f"arith.{operation} {predicate}, {a.name}, {b.name} : "
                       f"{type}", "i1", 0, 1)


def _logic(operation, region, a, b):
    """andi, ori or xori, of booleans or of integers bit by bit."""
    type = _common_type(a, b)
    if type in ("f32", "f64"):
        fail("bitwise operations on floats", RuntimeError)
    if type == "i1":
        neutral, final = {"andi": (1, 0), "ori": (0, 1),
                          "xori": (0, None)}[operation]
        for x, y in ((a, b), (b, a)):
            if _is(x, neutral):
                return convert(region, y, type)
            if final is not None and _is(x, final):
                return region.constant(final, type)
    a, b = convert(region, a, type), convert(region, b, type)
    low, high = MIN, MAX
    if type == "i1":
        low, high = 0, 1
    elif operation == "andi" and max(a.low, b.low) >= 0:
        low = 0
        high = min(x.high for x in (a, b) if x.low >= 0)
    elif min(a.low, b.low) >= 0:
        low, high = 0, (1 << max(a.high, b.high).bit_length()) - 1
    return _emit(region, f"arith.{operation}", (a, b), type, low, high)


def _not(region, a):
    if a.type in ("f32", "f64"):
        fail("bitwise_not of a float", RuntimeError)
    if a.type == "i1":
        if a.low == a.high:
            return region.constant(not a.low, "i1")
        return _logic("xori", region, a, True)
    return _sub(region, -1, a)


def _shift(operation, region, a, b):
    a, b = convert(region, a, "index"), convert(region, b, "index")
    if b.low == b.high and not 0 <= b.low < 64:
        fail(f"a shift by {b.low} bits; expected 0 to 63", ValueError)
    low, high = MIN, MAX
    if 0 <= b.low and b.high < 64:
        if operation == "shrsi":
            low = min(a.low >> b.low, a.low >> b.high)
            high = max(a.high >> b.low, a.high >> b.high)
        else:
            low = min(a.low << b.low, a.low << b.high)
            high = max(a.high << b.low, a.high << b.high)
    exact = a.exact if b.exact == NOWHERE else None
    return _emit(region, f"arith.{operation}", (a, b), "index", low, high, exact)


def _where(region, condition, a, b):
    condition = convert(region, condition, "i1")
    if condition.low == condition.high:
        type = _common_type(a, b)
        return convert(region, a if condition.low else b, type)
    return _select(region, condition, a, b)


@public()
def where(condition, input=None, other=None):
    if input is None or other is None:
        fail("where: expected a value for true and one for false")
    return elementwise(_where)(condition, input, other)


METHODS["where"] = lambda self, condition, other: where(condition, self, other)
for _name in _PREDICATES:
    FUNCTIONS[_name] = elementwise(functools.partial(_compare, _name))
for _name, _known in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                      ("greater_equal", "ge"), ("not_equal", "ne")):
    FUNCTIONS[_name] = FUNCTIONS[_known]
for _name, _operation in (("and", "andi"), ("or", "ori"), ("xor", "xori")):
    _function = functools.partial(_logic, _operation)
    for _form in (_name, f"r{_name}", f"bitwise_{_name}"):
        FUNCTIONS[_form] = elementwise(_function)
    FUNCTIONS[f"logical_{_name}"] = elementwise(
        lambda region, a, b, function=_function: function(
            region, convert(region, a, "i1"), convert(region, b, "i1")))
for _name, _operation in (("lshift", "shli"), ("rshift", "shrsi")):
    _function = functools.partial(_shift, _operation)
    FUNCTIONS[_name] = elementwise(_function)
    FUNCTIONS[f"r{_name}"] = elementwise(
        lambda region, a, b, function=_function: function(region, b, a))
FUNCTIONS["bitwise_left_shift"] = FUNCTIONS["lshift"]
FUNCTIONS["bitwise_right_shift"] = FUNCTIONS["rshift"]
FUNCTIONS["bitwise_not"] = FUNCTIONS["invert"] = elementwise(_not)
FUNCTIONS["logical_not"] = elementwise(
    lambda region, a: _not(region, convert(region, a, "i1")))

#--- Functions of one float --------------------------------------------------


def _call_math(operation, region, a):
    type = _float_type(a)
    return _emit(region, f"math.{operation}", (convert(region, a, type),), type)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
              "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"):
    FUNCTIONS[_name] = elementwise(functools.partial(_call_math, _name))
for _name, _known in (("arcsin", "asin"), ("arccos", "acos"),
                      ("arctan", "atan"), ("arcsinh", "asinh"),
                      ("arccosh", "acosh"), ("arctanh", "atanh"),
                      ("special_exp2", "exp2"), ("special_expm1", "expm1"),
                      ("special_erf", "erf"), ("special_log1p", "log1p")):
    FUNCTIONS[_name] = FUNCTIONS[_known]


def _round_to(operation, region, a):
    """floor, ceil, trunc and roundeven: an integer stays as it is."""
    if a.type in ("index", "i1"):
        return a
    return _emit(region, f"math.{operation}", (a,), a.type)


for _name, _operation in (("floor", "floor"), ("ceil", "ceil"),
                          ("trunc", "trunc"), ("fix", "trunc"),
                          ("round", "roundeven")):
    FUNCTIONS[_name] = elementwise(functools.partial(_round_to, _operation))


def _classify(operation, answer, region, a):
    if a.type in ("index", "i1"):
        return region.constant(answer, "i1")
    return region.emit(f"math.{operation} {a.name} : {a.type}", "i1", 0, 1)


for _name, _answer in (("isnan", 0), ("isinf", 0), ("isfinite", 1)):
    FUNCTIONS[_name] = elementwise(
        functools.partial(_classify, _name, _answer))


def _call_binary(operation, region, a, b):
    type = _float_type(a, b)
    return _emit(region, operation, (convert(region, a, type),
                                     convert(region, b, type)), type)


for _name, _operation in (("atan2", "math.atan2"), ("arctan2", "math.atan2"),
                          ("copysign", "math.copysign"),
                          ("fmax", "arith.maxnumf"),
                          ("fmin", "arith.minnumf")):
    FUNCTIONS[_name] = elementwise(
        functools.partial(_call_binary, _operation))


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
        return convert(region, a, type)
    if dtype in (torch.float16, torch.bfloat16):
        return convert(region, a, "f32")
    if dtype.is_floating_point or dtype.is_complex:
        fail(f"a conversion to {dtype}, which a region does not have")
    return convert(region, a, "index")


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

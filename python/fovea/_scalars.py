# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on the numbers of a region, for whatever traces a mod.

Operands are `Scalar`s and numbers of Python; a number takes the type of what it
is combined with. Types promote as PyTorch's do, with two differences: integers
all have 64 bits, and what would be f16 or bf16 is f32, unrounded. JAX's mods
name every conversion, so that nothing promotes.
"""

from ._regions import MAX, MIN, NOWHERE, Scalar, fail

#--- Types ---------------------------------------------------------------------

_RANKS = {"i1": 0, "index": 1, "f32": 2, "f64": 3}


def common_type(region, *args, least="i1"):
    """Returns the type that operands are promoted to; numbers of Python decide
    only whether it is i1, an integer or a float."""
    type = least
    for arg in args:
        if isinstance(arg, Scalar) and _RANKS[arg.type] > _RANKS[type]:
            type = arg.type
    for arg in args:
        if isinstance(arg, float) and _RANKS[type] < _RANKS["f32"]:
            type = region.default_float
        elif type == "i1" and isinstance(arg, int) and (
                not isinstance(arg, bool)):
            type = "index"
    return type


def float_type(region, *args):
    type = common_type(region, *args)
    return type if _RANKS[type] >= _RANKS["f32"] else region.default_float


def convert(region, arg, type):
    """Returns a value or a number as a value of a type."""
    if not isinstance(arg, Scalar):
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
        return compare("ne", region, arg, 0)
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


def emit(region, operation, args, type, low=MIN, high=MAX, exact=None):
    names = ", ".join(arg.name for arg in args)
    return region.emit(f"{operation} {names} : {args[0].type}", type, low, high,
                       exact)


def is_number(arg, number):
    """Returns True if an operand is known to be a number."""
    if isinstance(arg, Scalar):
        return (arg.type in ("index", "i1") and arg.low == arg.high == number)
    return arg == number


#--- Arithmetic --------------------------------------------------------------


def _both(a, b):
    """The coordinates of two integers that vary independently, else None."""
    if a.exact is None or b.exact is None or a.exact & b.exact:
        return None
    return a.exact | b.exact


def _multiply_by(region, arg, alpha):
    return arg if alpha == 1 else mul(region, arg, alpha)


def add(region, a, b, *, alpha=1):
    b = _multiply_by(region, b, alpha)
    type = common_type(region, a, b)
    if type == "i1":
        return logic("ori", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return emit(region, "arith.addf", (a, b), type)
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    return emit(region, "arith.addi", (a, b), type, a.low + b.low,
                a.high + b.high, _both(a, b))


def sub(region, a, b, *, alpha=1):
    b = _multiply_by(region, b, alpha)
    type = common_type(region, a, b)
    if type == "i1":
        fail("subtraction of booleans; use ^ or ~", RuntimeError)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return emit(region, "arith.subf", (a, b), type)
    if is_number(b, 0):
        return a
    return emit(region, "arith.subi", (a, b), type, a.low - b.high,
                a.high - b.low, _both(a, b))


def mul(region, a, b):
    type = common_type(region, a, b)
    if type == "i1":
        return logic("andi", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return emit(region, "arith.mulf", (a, b), type)
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    exact = _both(a, b) if NOWHERE in (a.exact, b.exact) else None
    return emit(region, "arith.muli", (a, b), type, min(ends), max(ends), exact)


def guard_divisor(region, b):
    """Returns a divisor, or 1 where it is 0: an integer cannot be divided by 0
    on every machine."""
    if is_number(b, 0):
        fail("integer division by zero", ZeroDivisionError)
    if b.low > 0 or b.high < 0:
        return b
    zero = compare("eq", region, b, 0)
    return select(region, zero, 1, b, (b.low or 1, b.high or 1))


def select(region, condition, a, b, span=None):
    type = common_type(region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    low, high = span or (min(a.low, b.low), max(a.high, b.high))
    return region.emit(f"arith.select {condition.name}, {a.name}, {b.name} : "
                       f"{type}", type, low, high)


def divide_integers(operation, region, a, b):
    """Divides integers by "floordivsi" or "divsi", which cuts towards 0."""
    round_ = (lambda x, y: x // y) if operation == "floordivsi" else (
        lambda x, y: abs(x) // abs(y) * (1 if x * y >= 0 else -1))
    if is_number(b, 1):
        return a
    divisor = guard_divisor(region, b)
    if a.low == MIN and divisor.low <= -1 <= divisor.high:
        # The quotient of the least integer by -1 has more than 64 bits.
        a = largest(region, a, MIN + 1)
    ends = [round_(x, y) for x in (a.low, a.high)
            for y in (divisor.low, divisor.high) if y]
    if divisor.low <= 1 <= divisor.high:
        ends += [a.low, a.high]
    if divisor.low <= -1 <= divisor.high:
        ends += [-a.low, -a.high]
    if a.low >= 0 and divisor.low > 0:
        operation = "divsi"  # The same, and cheaper.
    exact = a.exact if divisor.exact == NOWHERE and divisor.low > 0 else None
    return emit(region, f"arith.{operation}", (a, divisor), "index", min(ends),
                max(ends), exact)


def floor_divide(region, a, b):
    type = common_type(region, a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type == "index":
        return divide_integers("floordivsi", region, a, b)
    return emit(region, "math.floor", (emit(region, "arith.divf", (a, b),
                type),), type)


def div(region, a, b, *, rounding_mode=None):
    if rounding_mode == "floor":
        return floor_divide(region, a, b)
    if rounding_mode == "trunc" and common_type(region, a, b, least="index") == "index":
        return divide_integers("divsi", region, convert(region, a, "index"),
                                convert(region, b, "index"))
    type = float_type(region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    quotient = emit(region, "arith.divf", (a, b), type)
    if rounding_mode == "trunc":
        return emit(region, "math.trunc", (quotient,), type)
    return quotient


def remainder(region, a, b):
    """The remainder with the divisor's sign, as Python's."""
    type = common_type(region, a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        rest = emit(region, "arith.remf", (a, b), type)
        below = compare("lt", region, rest, 0.0)
        wrong = logic("xori", region, below, compare("lt", region, b, 0.0))
        wrong = logic("andi", region, wrong, compare("ne", region, rest, 0.0))
        return select(region, wrong, add(region, rest, b), rest)
    divisor = guard_divisor(region, b)
    if a.low >= 0 and divisor.low > 0:
        if a.high < divisor.low:
            return a
        return emit(region, "arith.remui", (a, divisor), type, 0,
                    min(a.high, divisor.high - 1))
    if divisor.low > 0:
        rest = emit(region, "arith.remsi", (a, divisor), type)
        below = compare("lt", region, rest, 0)
        return select(region, below, add(region, rest, divisor), rest,
                       (0, divisor.high - 1))
    quotient = divide_integers("floordivsi", region, a, divisor)
    rest = sub(region, a, mul(region, quotient, divisor))
    return region.emit_like(rest, min(divisor.low + 1, 0),
                            max(divisor.high - 1, 0))


def fmod(region, a, b):
    """The remainder with the dividend's sign, as C's."""
    type = common_type(region, a, b, least="index")
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return emit(region, "arith.remf", (a, b), type)
    quotient = divide_integers("divsi", region, a, b)
    return sub(region, a, mul(region, quotient, b))


def power(region, a, b):
    type = common_type(region, a, b)
    if isinstance(b, (int, float)) and float(b).is_integer() and 1 <= b <= 16 or (
            type == "index" and isinstance(b, int) and 0 <= b <= 64):
        power = convert(region, a, type) if b else 1
        for bit in bin(int(b))[3:]:
            power = mul(region, power, power)
            if bit == "1":
                power = mul(region, power, a)
        return convert(region, power, type)
    if type == "index":
        if is_number(a, 2):
            return shift("shli", region, 1, b)
        fail("an integer to a power that is traced or negative; convert it to "
             "float")
    if isinstance(b, Scalar):
        return emit(region, "math.powf", (convert(region, a, type),
                    convert(region, b, type)), type)
    if b == 0.5:
        return emit(region, "math.sqrt", (convert(region, a, type),), type)
    if b == -1:
        return div(region, 1.0, a)
    if b == -0.5:
        return emit(region, "math.rsqrt", (convert(region, a, type),), type)
    return emit(region, "math.powf", (convert(region, a, type),
                convert(region, b, type)), type)


def negate(region, a):
    if a.type == "i1":
        fail("negation of a boolean; use ~", RuntimeError)
    if a.type == "index":
        return sub(region, 0, a)
    return emit(region, "arith.negf", (a,), a.type)


def absolute(region, a):
    if a.type == "i1":
        return a
    if a.type != "index":
        return emit(region, "math.absf", (a,), a.type)
    if a.low >= 0:
        return a
    result = largest(region, a, negate(region, a))
    return region.emit_like(result, 0, result.high)


def extreme(operation, pick, region, a, b):
    type = common_type(region, a, b)
    if type == "i1":
        return logic("ori" if operation == "max" else "andi", region, a, b)
    a, b = convert(region, a, type), convert(region, b, type)
    if type != "index":
        return emit(region, f"arith.{operation}imumf", (a, b), type)
    for x, y in ((a, b), (b, a)):
        if x.low >= y.high if operation == "max" else x.high <= y.low:
            return x
    exact = (a.exact if b.exact == NOWHERE else
             b.exact if a.exact == NOWHERE else None)
    return emit(region, f"arith.{operation}si", (a, b), type,
                pick(a.low, b.low), pick(a.high, b.high), exact)


def largest(region, a, b):
    return extreme("max", max, region, a, b)


def least(region, a, b):
    return extreme("min", min, region, a, b)


def clamp(region, a, low=None, high=None):
    if low is None and high is None:
        fail("clamp: expected min or max", RuntimeError)
    if low is not None:
        a = largest(region, a, low)
    return a if high is None else least(region, a, high)


#--- Conditions and bits -----------------------------------------------------

PREDICATES = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"),
               "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge")}


def compare(name, region, a, b):
    type = common_type(region, a, b)
    if type == "i1" and name not in ("eq", "ne"):
        type = "index"
    a, b = convert(region, a, type), convert(region, b, type)
    predicate = PREDICATES[name][type in ("f32", "f64")]
    operation = "cmpf" if type in ("f32", "f64") else "cmpi"
    return region.emit(f"arith.{operation} {predicate}, {a.name}, {b.name} : "
                       f"{type}", "i1", 0, 1)


def logic(operation, region, a, b):
    """andi, ori or xori, of booleans or of integers bit by bit."""
    type = common_type(region, a, b)
    if type in ("f32", "f64"):
        fail("bitwise operations on floats", RuntimeError)
    if type == "i1":
        neutral, final = {"andi": (1, 0), "ori": (0, 1),
                          "xori": (0, None)}[operation]
        for x, y in ((a, b), (b, a)):
            if is_number(x, neutral):
                return convert(region, y, type)
            if final is not None and is_number(x, final):
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
    return emit(region, f"arith.{operation}", (a, b), type, low, high)


def invert(region, a):
    if a.type in ("f32", "f64"):
        fail("bitwise_not of a float", RuntimeError)
    if a.type == "i1":
        if a.low == a.high:
            return region.constant(not a.low, "i1")
        return logic("xori", region, a, True)
    return sub(region, -1, a)


def shift(operation, region, a, b):
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
    return emit(region, f"arith.{operation}", (a, b), "index", low, high, exact)


def where(region, condition, a, b):
    condition = convert(region, condition, "i1")
    if condition.low == condition.high:
        type = common_type(region, a, b)
        return convert(region, a if condition.low else b, type)
    return select(region, condition, a, b)


#--- Functions of one float --------------------------------------------------


def call_math(operation, region, a):
    type = float_type(region, a)
    return emit(region, f"math.{operation}", (convert(region, a, type),), type)


def round_to(operation, region, a):
    """floor, ceil, trunc and roundeven: an integer stays as it is."""
    if a.type in ("index", "i1"):
        return a
    return emit(region, f"math.{operation}", (a,), a.type)


def classify(operation, answer, region, a):
    if a.type in ("index", "i1"):
        return region.constant(answer, "i1")
    return region.emit(f"math.{operation} {a.name} : {a.type}", "i1", 0, 1)


def call_binary(operation, region, a, b):
    type = float_type(region, a, b)
    return emit(region, operation, (convert(region, a, type),
                convert(region, b, type)), type)

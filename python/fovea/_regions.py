# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of regions, whatever a mod is written with, PyTorch or JAX: numbers
and what makes text of them.

Types are "f32", "f64", "index" for every integer, and "i1".
"""

import math
import re
import struct
import sys

from ._library import Error

#: The least and the largest integer of 64 bits: the range of an integer of
#: which nothing is known.
MIN, MAX = -2**63, 2**63 - 1

#: The largest number of elements of a tensor that is unrolled.
MAX_ELEMENTS = 1024

#: The integers of the same bits.
BITS = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}

#: The most queries that are counted in the text for a GPU: those of a step of
#: decoding, also one that checks several tokens at once.
_FEW_QUERIES = 16

#: The scales that a clamp keeps: those that a GPU's kernel may have as the unit of its
#: scores.
_LEAST_SCALE, _MOST_SCALE = 2.0**-96, 2.0**96

#: Of an integer that is constant: it depends on no coordinate.
NOWHERE = frozenset()


class TraceError(Error):
    """A mod that cannot become a region: the message has the file and the line,
    the operation, and what is expected instead."""


#: Packages that a mod's author did not write.
_INSIDE = ("fovea", "torch", "jax")


def fail(message, kind=TraceError):
    """Raises an error at the line of the innermost function that belongs
    neither to this package nor to the framework. Its `reason` is the message
    alone."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_globals.get("__name__") or "").partition(
            ".")[0] in _INSIDE:
        frame = frame.f_back
    error = kind(f"{frame.f_code.co_filename}:{frame.f_lineno}: {message}")
    error.reason = message
    raise error


class Scalar:
    """One number of a region: its name in the text, its type, and what is known
    of it if it is an integer."""

    __slots__ = ("region", "name", "type", "low", "high", "exact")

    def __init__(self, region, name, type, low=MIN, high=MAX, exact=None):
        self.region = region
        self.name = name
        self.type = type
        #: The range of an integer, both ends included; of an i1 0 to 1.
        self.low = low
        self.high = high
        #: The coordinates that the integer depends on, where both ends of its
        #: range occur; else None.
        self.exact = exact

    @property
    def coordinate(self):
        """Returns True for a coordinate itself."""
        return self.name in ("%b", "%h", "%q", "%kv")


class Region:
    """The text of one region, operation by operation. Equal computations are
    written once."""

    #: The type of a float of Python where no operand decides it.
    default_float = "f32"

    #: The class of its numbers.
    scalar = Scalar

    def __init__(self, tracer):
        self.tracer = tracer
        self.lines = []
        #: The lines of integers that a mod has as constants, and their numbers.
        self.integers = []
        self._known = {}

    def emit(self, code, type, low=MIN, high=MAX, exact=None):
        """Returns the value of an operation, `code` being its text behind the
        equals sign."""
        name = self._known.get(code)
        if name is None:
            name = self._known[code] = f"%{len(self._known)}"
            self.lines.append(f"{name} = {code}")
        if low < MIN or high > MAX:
            low, high, exact = MIN, MAX, None
        return self.scalar(self, name, type, low, high, exact)

    def constant(self, number, type):
        """Returns a Python number as a value."""
        if type == "i1":
            number = bool(number)
            return self.emit(f"arith.constant {str(number).lower()}", type,
                             number, number)
        if type == "index":
            number = int(number)
            if not MIN <= number <= MAX:
                fail(f"expected an integer of 64 bits, got {number}")
            code = f"arith.constant {number} : index"
            if code not in self._known:
                self.integers.append((len(self.lines), number))
            return self.emit(code, type, number, number, NOWHERE)
        return self.emit(f"arith.constant {write_float(number, type)} : "
                         f"{type}", type)

    def replace(self, line, name):
        """Replaces the value of a line by one from outside of the region, and
        returns the value's old name."""
        old, _, _ = self.lines[line].partition(" =")
        self.lines[line] = ""
        pattern = re.compile(rf"{old}(?!\d)")
        self.lines = [pattern.sub(name, text) for text in self.lines]
        return old

    def emit_like(self, value, low, high):
        """Returns the same value with another range."""
        return self.scalar(self, value.name, value.type, low, high, None)

    def read(self, name, places, element, is_bits, low, high):
        """Returns the element of an operand at a place: f16 and bf16 as f32,
        integers as index. `is_bits` says that the operand has the integers of
        `element`'s bits."""
        text = f"tensor.extract %{name}[{', '.join(places)}] : !{name}"
        if is_bits:
            value = self.emit(text, BITS[element])
            value = self.emit(f"arith.bitcast {value.name} : {BITS[element]} "
                              f"to {element}", element)
        else:
            value = self.emit(text, element)
        if element in ("f16", "bf16"):
            return self.emit(f"arith.extf {value.name} : {element} to f32",
                             "f32")
        if element in ("f32", "f64"):
            return value
        if element == "i1":
            return self.emit_like(value, 0, 1)
        cast = "index_cast" if low < 0 else "index_castui"
        return self.emit(f"arith.{cast} {value.name} : {element} to index",
                         "index", low, high)

    def write(self, result, arguments, type):
        """Returns the region in braces; `arguments` is the text of those in
        front of the coordinates."""
        lines = [*filter(None, self.lines), f"attn.yield {result} : {type}"]
        return (f"{{\n    ^bb0({arguments}%b: index, %h: index, %q: index, "
                "%kv: index):\n" +
                "".join(f"      {line}\n" for line in lines) + "    }")


def write_attention(operands, numbers, results, scale, regions, dropout=0.0,
                    init=None, steps=(), split_size=0):
    """Returns the text of a function of one `attn.attention`.

    operands: the types of query, key and value, then of captured tensors, by
        name; results: those of the output and, if wanted, of the log-sum-exp.
    numbers: the text of further parameters.
    regions: the text of "score" and "mask", for each that there is.
    init: the operand that is the log-sum-exp that attention starts from.
    steps: the text of operations in front.
    split_size: the keys of a part of the sums, 0 if the compiler divides them.
    """
    parameters = [f"%{name}: !{name}" for name in operands] + numbers
    draw = ""
    if dropout:
        parameters += ["%seed: i64", "%offset: i64"]
        draw = f" dropout({write_float(dropout, 'f64')}, %seed, %offset)"
    names = ", ".join(f"%{name}" for name in results)
    values = ", ".join(f"!{name}" for name in results)
    types = {**operands, **results}
    return "".join([
        *(f"!{name} = {type}\n" for name, type in types.items()),
        f"func.func @attention({', '.join(parameters)}) -> ({values}) {{\n",
        *(f"  {step}\n" for step in steps),
        f"  {names} = attn.attention %query, %key, %value "
        f"scale({write_float(scale, 'f64')}){draw}{write_init(init)}\n",
        *(f"    {name} {text}\n" for name, text in regions.items()),
        f"    {write_split(split_size)}: !query, !key, !value -> {values}\n",
        f"  return {names} : {values}\n}}\n"])


def is_constant_scale(size, scale):
    """Returns True for the scales that are constants of a kernel: the default of a head
    size, however it was computed, and 1. With another one, an operand, a kernel has a
    product more for each score."""
    return scale == 1.0 or math.isclose(scale, 1.0 / math.sqrt(size or 1),
                                        rel_tol=1e-15)


def is_usual_scale(scale):
    """Returns True for a scale that is positive and neither tiny nor huge. A GPU's
    forward pass that knows this, by a clamp, has no product for it."""
    return _LEAST_SCALE <= scale <= _MOST_SCALE


def find_bits(scale):
    """Returns the integer with the bits of a scale, f64: operators take no floats."""
    return struct.unpack("<q", struct.pack("<d", scale))[0]


def name_scale(scale, type):
    """Returns the float that `write_scale` makes."""
    return "%scale_usual" if is_usual_scale(scale) else f"%scale_{type}"


def write_scale(scale, type):
    """Returns the steps that make a float of `%scale_bits`."""
    steps = ["%scale_f64 = arith.bitcast %scale_bits : i64 to f64"]
    if type == "f32":
        steps.append("%scale_f32 = arith.truncf %scale_f64 : f64 to f32")
    if is_usual_scale(scale):
        least, most = (write_float(number, type) for number in (_LEAST_SCALE,
                                                                _MOST_SCALE))
        steps += [f"%scale_least = arith.constant {least} : {type}",
                  f"%scale_most = arith.constant {most} : {type}",
                  f"%scale_raised = arith.maxnumf %scale_{type}, %scale_least : {type}",
                  f"%scale_usual = arith.minnumf %scale_raised, %scale_most : {type}"]
    return steps


def write_split(size):
    """Returns the attribute of the keys of a part of the sums, if it is given."""
    return f"{{split_size = {size} : i64}} " if size else ""


def write_init(init):
    """Returns the clause of the log-sum-exp that attention starts from."""
    return f" init(%{init} : !{init})" if init else ""


def write_length(length, is_gpu):
    """Returns the number of queries as a size of a type: dynamic, so that one
    kernel serves all lengths, but for one query, and for few on a GPU."""
    most = _FEW_QUERIES if is_gpu else 1
    return str(length) if isinstance(length, int) and (
        1 <= length <= most) else "?"


def write_float(number, type):
    number = float(number)
    if number - number != 0:  # Infinite, or not a number.
        if type == "f32":
            return f"0x{struct.unpack('<I', struct.pack('<f', number))[0]:08X}"
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if type == "f32":
        try:
            struct.pack("<f", number)
        except OverflowError:
            return write_float(float("inf") if number > 0 else float("-inf"),
                                type)
    text = repr(number)
    if "." not in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}.0" + (f"e{exponent}" if exponent else "")
    return text



# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's mods as regions.

A mod is traced by JAX, on a score and four coordinates; the jaxpr is then
walked, and each of its equations becomes operations of a region. Arrays that the
mod closes over are the jaxpr's constants, tracers of an outer `jit` or `grad`
among them, and become operands. A small array that the mod makes is a NumPy
array of the region's numbers.
"""

import functools
import itertools
import math
import re
from typing import NamedTuple

import jax
import numpy
from jax._src.source_info_util import summarize
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from . import _scalars as scalars
from ._library import MAX_RANK
from ._regions import (BITS, MAX, MAX_ELEMENTS, Region, Scalar, TraceError,
                       fail, write_attention, write_length)

#: MLIR's name of the elements of an array.
ELEMENTS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32",
            "float64": "f64", "bool": "i1", "int8": "i8", "uint8": "i8",
            "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
            "int64": "i64"}


def _type_of(dtype):
    """Returns the type that numbers of a dtype have in a region."""
    name = numpy.dtype(dtype).name
    if name in ("float16", "bfloat16", "float32"):
        return "f32"
    if name == "float64":
        return "f64"
    if name == "bool":
        return "i1"
    if name.startswith(("int", "uint")):
        return "index"
    fail(f"numbers of {name}, which a region does not have")


class Capture:
    """An array that a mod closes over: its name, and what is static of it."""

    def __init__(self, name, array):
        self.name = name
        self.array = jax.ShapeDtypeStruct(array.shape, array.dtype)
        #: Whether each dimension's size is part of the text; others may differ
        #: without another kernel.
        self.fixed = [False] * array.ndim

    def write_type(self, is_constant):
        """Returns the operand's type; a constant's is one of integers, so that
        it gets no gradient."""
        element = ELEMENTS[self.array.dtype.name]
        if is_constant:
            element = BITS.get(element, element)
        sizes = [f"{size}x" if fixed else "?x"
                 for size, fixed in zip(self.array.shape, self.fixed)]
        return f"tensor<{''.join(sizes)}{element}>"


class View:
    """A part of a captured array: no number of it is read yet."""

    def __init__(self, region, capture, starts, dims):
        self.region = region
        self.capture = capture
        #: For each dimension of the array where the part starts, a number of
        #: Python or a scalar.
        self.starts = starts
        #: The dimensions that the part has, of the array's, and their sizes.
        self.dims = dims

    @property
    def shape(self):
        return tuple(size for _, size in self.dims)

    def slice(self, starts, sizes):
        """Returns the part of it with these sizes, at a place that is clamped,
        as lax.dynamic_slice clamps it."""
        moved = list(self.starts)
        for (dim, whole), start, size in zip(self.dims, starts, sizes):
            start = self.region.clamp(start, self.capture, dim, whole, size)
            moved[dim] = self.region.add(moved[dim], start)
        return View(self.region, self.capture, moved, [
            (dim, size) for (dim, _), size in zip(self.dims, sizes)])

    def squeeze(self, dims):
        return View(self.region, self.capture, self.starts, [
            dim for at, dim in enumerate(self.dims) if at not in dims])

    def unroll(self):
        """Returns all numbers of it."""
        _check_size(self.shape)
        result = numpy.empty(self.shape, object)
        for place in itertools.product(*map(range, self.shape)):
            index = list(self.starts)
            for (dim, _), at in zip(self.dims, place):
                index[dim] = self.region.add(index[dim], at)
            result[place] = self.region.load(self.capture, index)
        return result


def _check_size(shape):
    if not 0 < math.prod(shape) <= MAX_ELEMENTS:
        fail(f"an array of shape {tuple(shape)} cannot be unrolled; expected 1 "
             f"to {MAX_ELEMENTS} elements")


class _Region(Region):

    def add(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return scalars.add(self, a, b)

    def prune(self, result):
        """Removes the operations that `result` does not need: JAX has the steps
        that make indices positive, with sizes in them, for all indices."""
        needed, kept = {result}, []
        for line in reversed(self.lines):
            name, _, code = line.partition(" = ")
            if name in needed:
                needed.update(re.findall(r"%\w+", code))
                kept.append(line)
        self.lines = kept[::-1]

    def clamp(self, start, capture, dim, whole, size):
        """Returns where a part of a dimension starts, so that it fits in."""
        if isinstance(start, Scalar) and start.low == start.high:
            start = start.low
        last = whole - size
        if isinstance(start, int):
            return min(max(start, 0), last)
        if 0 <= start.low and start.high <= last:
            return start
        if size != 1:
            capture.fixed[dim] = True
            start = scalars.largest(self, start, 0)
            return scalars.least(self, start, last)
        number = self.emit(f"index.constant {dim}", "index")
        name = capture.name
        extent = self.emit(f"tensor.dim %{name}, {number.name} : !{name}",
                           "index", 0, MAX)
        last = scalars.sub(self, extent, 1)
        start = scalars.largest(self, start, 0)
        return self.emit(f"arith.minui {start.name}, {last.name} : index",
                         "index", 0, whole - 1)

    def load(self, capture, index):
        """Returns an element of a captured array."""
        names = []
        for dim, at in enumerate(index):
            if isinstance(at, int) or at.name == "%h":
                capture.fixed[dim] = True
            names.append(scalars.convert(self, at, "index").name)
        element = ELEMENTS[capture.array.dtype.name]
        bits = 8 * capture.array.dtype.itemsize
        low, high = ((-2**(bits - 1), 2**(bits - 1) - 1)
                     if capture.array.dtype.kind == "i" else (0, 2**bits - 1))
        return self.read(capture.name, names, element,
                         capture.name in self.tracer.constants
                         and element in BITS, low, high)


#--- Equations ----------------------------------------------------------------

#: By the name of a primitive: a function of the region, the equation's
#: parameters and its operands.
_RULES = {}


def _rule(*names):
    def enter(function):
        for name in names:
            _RULES[name] = function
        return function
    return enter


def _as_array(operand):
    return operand.unroll() if isinstance(operand, View) else operand


def _map(function, *operands):
    """Calls a function for each place of operands of one shape."""
    arrays = numpy.broadcast_arrays(*map(_as_array, operands))
    result = numpy.empty(arrays[0].shape, object)
    for place in numpy.ndindex(result.shape):
        result[place] = function(*(array[place] for array in arrays))
    return result


def _elementwise(function):
    return lambda region, params, *operands: _map(
        functools.partial(function, region), *operands)


def _truncating_div(region, a, b):
    if a.type == "index":
        return scalars.divide_integers("divsi", region, a, b)
    return scalars.div(region, a, b)


def _compare(name, region, a, b):
    # True for any size: coordinates are never negative.
    if a.type == "index" and scalars.is_number(b, 0) and a.low >= 0:
        if name in ("lt", "ge"):
            return region.constant(name == "ge", "i1")
    return scalars.compare(name, region, a, b)


def _sign(region, a):
    result = scalars.where(
        region, scalars.compare("lt", region, a, 0), -1,
        scalars.where(region, scalars.compare("gt", region, a, 0), 1, 0))
    if a.type == "index":
        return result
    # That of a number that is none is none, and of a zero the zero.
    plain = scalars.convert(region, result, a.type)
    is_nonzero = scalars.compare("gt", region, scalars.absolute(region, a), 0.0)
    return scalars.where(region, is_nonzero, plain, a)


def _logistic(region, a):
    e = scalars.call_math("exp", region, scalars.negate(region, a))
    return scalars.div(region, 1.0, scalars.add(region, 1.0, e))


def _shift_right_logical(region, a, b):
    if a.low < 0:
        fail("shift_right_logical of an integer that may be negative; use an "
             "arithmetic shift")
    return scalars.shift("shrsi", region, a, b)


for _names, _function in (
        (("add", "add_any"), scalars.add), (("sub",), scalars.sub),
        (("mul",), scalars.mul), (("div",), _truncating_div),
        (("rem",), scalars.fmod), (("neg",), scalars.negate),
        (("abs",), scalars.absolute), (("max",), scalars.largest),
        (("min",), scalars.least), (("pow",), scalars.power),
        (("sign",), _sign), (("logistic",), _logistic),
        (("not",), scalars.invert), (("square",), lambda region, a: scalars.mul(
            region, a, a)),
        (("and",), functools.partial(scalars.logic, "andi")),
        (("or",), functools.partial(scalars.logic, "ori")),
        (("xor",), functools.partial(scalars.logic, "xori")),
        (("shift_left",), functools.partial(scalars.shift, "shli")),
        (("shift_right_arithmetic",),
         functools.partial(scalars.shift, "shrsi")),
        (("shift_right_logical",), _shift_right_logical),
        (("is_finite",), functools.partial(scalars.classify, "isfinite", True)),
        (("floor",), functools.partial(scalars.round_to, "floor")),
        (("ceil",), functools.partial(scalars.round_to, "ceil")),
        (("atan2",), functools.partial(scalars.call_binary, "math.atan2")),
        (("clamp",), lambda region, low, a, high: scalars.clamp(
            region, a, low, high))):
    for _name in _names:
        _RULES[_name] = _elementwise(_function)
for _name in ("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "cbrt",
              "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
              "tanh", "asinh", "acosh", "atanh", "erf", "erfc"):
    _RULES[_name] = _elementwise(functools.partial(scalars.call_math, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _RULES[_name] = _elementwise(functools.partial(_compare, _name))


@_rule("integer_pow")
def _integer_pow(region, params, a):
    y = params["y"]

    def compute(value):
        power = scalars.power(region, value, abs(y)) if y else (
            region.constant(1, value.type))
        return power if y >= 0 else scalars.div(region, 1.0, power)
    return _map(compute, a)


@_rule("round")
def _round(region, params, a):
    if int(params["rounding_method"]) == 1:
        return _map(functools.partial(scalars.round_to, "roundeven", region), a)
    fail("lax.round away from zero; use jnp.round")


@_rule("select_n")
def _select(region, params, which, *cases):
    def pick(which, *cases):
        if which.type == "i1":
            return scalars.where(region, which, cases[1], cases[0])
        result = cases[-1]
        for at in reversed(range(len(cases) - 1)):
            result = scalars.where(
                region, scalars.compare("le", region, which, at), cases[at],
                result)
        return result
    return _map(pick, which, *cases)


@_rule("convert_element_type")
def _convert(region, params, a):
    type = _type_of(params["new_dtype"])
    return _map(lambda value: scalars.convert(region, value, type), a)


@_rule("copy", "copy_p", "stop_gradient", "optimization_barrier",
       "reduce_precision")
def _identity(region, params, a):
    return a


@_rule("iota")
def _iota(region, params):
    _check_size(params["shape"])
    dim, type = params["dimension"], _type_of(params["dtype"])
    result = numpy.empty(params["shape"], object)
    for place in numpy.ndindex(result.shape):
        result[place] = region.constant(place[dim], type)
    return result


@_rule("broadcast_in_dim")
def _broadcast(region, params, a):
    _check_size(params["shape"])
    a = _as_array(a)
    sizes = [1] * len(params["shape"])
    for dim, size in zip(params["broadcast_dimensions"], a.shape):
        sizes[dim] = size
    return numpy.broadcast_to(a.reshape(sizes), params["shape"])


@_rule("reshape")
def _reshape(region, params, a):
    return _as_array(a).reshape(params["new_sizes"])


@_rule("squeeze")
def _squeeze(region, params, a):
    if isinstance(a, View):
        return a.squeeze(params["dimensions"])
    return a.squeeze(params["dimensions"])


@_rule("transpose")
def _transpose(region, params, a):
    if isinstance(a, View):
        return View(region, a.capture, a.starts, [
            a.dims[dim] for dim in params["permutation"]])
    return a.transpose(params["permutation"])


@_rule("rev")
def _reverse(region, params, a):
    return numpy.flip(_as_array(a), params["dimensions"])


@_rule("concatenate")
def _concatenate(region, params, *operands):
    return numpy.concatenate(list(map(_as_array, operands)), params["dimension"])


@_rule("stack")
def _stack(region, params, *operands):
    return numpy.stack(list(map(_as_array, operands)), params["axis"])


@_rule("slice")
def _slice(region, params, a):
    starts, limits = params["start_indices"], params["limit_indices"]
    strides = params["strides"]
    if isinstance(a, View) and all(step == 1 for step in strides or ()):
        return a.slice(starts, [limit - start
                                for start, limit in zip(starts, limits)])
    return _as_array(a)[tuple(map(slice, starts, limits,
                                  strides or [1] * len(starts)))]


@_rule("dynamic_slice")
def _dynamic_slice(region, params, a, *starts):
    if not isinstance(a, View):
        fail("an index that is traced, into an array that is traced: index the "
             "captured array itself")
    return a.slice([start[()] for start in starts], params["slice_sizes"])


@_rule("gather")
def _gather(region, params, a, indices):
    if not isinstance(a, View):
        fail("an index that is traced, into an array that is traced: index the "
             "captured array itself")
    numbers = params["dimension_numbers"]
    sizes = params["slice_sizes"]
    if numbers.operand_batching_dims:
        fail("a gather with batch dimensions")
    indices = _as_array(indices)
    fills = params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
    parts = numpy.empty(indices.shape[:-1], object)
    for place in numpy.ndindex(parts.shape):
        starts, inside = [0] * len(sizes), None
        for dim, start in zip(numbers.start_index_map, indices[place]):
            starts[dim] = start
            last = a.shape[dim] - sizes[dim]
            if fills and not 0 <= start.low <= start.high <= last:
                a.capture.fixed[a.dims[dim][0]] = True
                for name, bound in (("ge", 0), ("le", last)):
                    holds = _compare(name, region, start, bound)
                    inside = holds if inside is None else scalars.logic(
                        "andi", region, inside, holds)
        part = a.slice(starts, sizes).squeeze(
            numbers.collapsed_slice_dims).unroll()
        if inside is not None:
            part = _map(lambda value: scalars.where(
                region, inside, value, _fill(params, a.capture)), part)
        parts[place] = part
    # The dimensions of the indices come first; then they are put in place.
    rank = parts.ndim + len(numbers.offset_dims)
    shape = parts.shape + part.shape
    result = numpy.empty(shape, object)
    for place in numpy.ndindex(parts.shape):
        result[place] = parts[place][()]
    others = [dim for dim in range(rank) if dim not in numbers.offset_dims]
    return numpy.moveaxis(result, range(rank), [*others, *numbers.offset_dims])


def _fill(params, capture):
    """Returns what a gather has where its index is out of bounds."""
    if params["fill_value"] is not None:
        return params["fill_value"]
    dtype = capture.array.dtype
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return int(info.min if dtype.kind == "i" else info.max)
    return math.nan


def _reduce(function, region, params, a):
    a = _as_array(a)
    axes = params["axes"]
    kept = [dim for dim in range(a.ndim) if dim not in axes]
    rows = a.transpose(*kept, *axes).reshape(
        *(a.shape[dim] for dim in kept), -1)
    result = numpy.empty(rows.shape[:-1], object)
    for place in numpy.ndindex(result.shape):
        result[place] = functools.reduce(
            functools.partial(function, region), rows[place])
    return result


for _name, _function in (
        ("sum", scalars.add), ("prod", scalars.mul), ("max", scalars.largest),
        ("min", scalars.least),
        ("and", functools.partial(scalars.logic, "andi")),
        ("or", functools.partial(scalars.logic, "ori"))):
    _RULES[f"reduce_{_name}"] = functools.partial(_reduce, _function)


@_rule("argmax")
def _argmax(region, params, a):
    a = numpy.moveaxis(_as_array(a), params["axes"][0], -1)
    result = numpy.empty(a.shape[:-1], object)
    for place in numpy.ndindex(result.shape):
        best, *others = a[place]
        if best.type not in ("i1", "index"):
            fail("argmax of floats")
        found = 0
        for at, value in enumerate(others, 1):
            is_larger = scalars.compare("gt", region, value, best)
            found = scalars.where(region, is_larger, at, found)
            best = scalars.largest(region, value, best)
        result[place] = scalars.convert(region, found, "index")
    return result


@_rule("dot_general")
def _dot(region, params, a, b):
    (a_dims, b_dims), (a_batch, b_batch) = params["dimension_numbers"]
    if a_batch:
        fail("a product of arrays with batch dimensions")
    a, b = _as_array(a), _as_array(b)
    a = numpy.moveaxis(a, a_dims, range(-len(a_dims), 0))
    b = numpy.moveaxis(b, b_dims, range(-len(b_dims), 0))
    type = _type_of(params["preferred_element_type"] or numpy.float32)
    count = math.prod(a.shape[a.ndim - len(a_dims):])
    rows = a.reshape(-1, count)
    columns = b.reshape(-1, count)
    result = numpy.empty((len(rows), len(columns)), object)
    for place in numpy.ndindex(result.shape):
        terms = [scalars.mul(region, scalars.convert(region, x, type),
                             scalars.convert(region, y, type))
                 for x, y in zip(rows[place[0]], columns[place[1]])]
        result[place] = functools.reduce(
            functools.partial(scalars.add, region), terms)
    return result.reshape(a.shape[:a.ndim - len(a_dims)] +
                          b.shape[:b.ndim - len(b_dims)])


#: Primitives that call a jaxpr.
_CALLS = {"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat",
          "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}

#: Functions of jax.numpy that take many equations and one operation.
_KNOWN = {"floor_divide": scalars.floor_divide, "remainder": scalars.remainder}


@functools.lru_cache(maxsize=None)
def _write_known(name, *types):
    """Returns the jaxpr of a function of `_KNOWN` for operands of some types."""
    operands = [jax.ShapeDtypeStruct(*type) for type in types]
    jaxpr = jax.make_jaxpr(getattr(jax.numpy, name))(*operands)
    return str(jaxpr.eqns[0].params["jaxpr"])


def _is_known(name, jaxpr):
    """Returns True if a jaxpr is that of a function of `_KNOWN`."""
    if name not in _KNOWN:
        return False
    types = [(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
    return str(jaxpr) == _write_known(name, *types)


class _Jaxpr(NamedTuple):
    """What of a jaxpr `_evaluate` walks."""
    constvars: tuple
    invars: tuple
    eqns: tuple
    outvars: tuple

    @classmethod
    def copy(cls, jaxpr):
        return cls(*(tuple(getattr(jaxpr, name)) for name in cls._fields))


def _evaluate(region, jaxpr, constants, operands):
    """Walks a jaxpr; returns what it returns."""
    known = dict(zip(jaxpr.constvars, constants))
    known.update(zip(jaxpr.invars, operands))

    def read(atom):
        if not isinstance(atom, Literal):
            return known[atom]
        result = numpy.empty((), object)
        result[()] = region.constant(numpy.asarray(atom.val).item(),
                                     _type_of(atom.aval.dtype))
        return result

    for equation in jaxpr.eqns:
        try:
            results = _apply(region, equation, list(map(read, equation.invars)))
        except Exception as error:
            reason = getattr(error, "reason", None)
            place = summarize(equation.source_info)
            # The innermost equation that knows the line: those of functions that
            # JAX has traced before do not.
            if reason is None or not place:
                raise
            raise type(error)(f"{place}: {reason}") from None
        known.update(zip(equation.outvars, results))
    return list(map(read, jaxpr.outvars))


def _apply(region, equation, operands):
    name = equation.primitive.name
    rule = _RULES.get(name)
    if rule is not None:
        return [rule(region, equation.params, *operands)]
    for inner in equation.params.values() if name in _CALLS else ():
        if isinstance(inner, ClosedJaxpr):
            known = equation.params.get("name")
            if _is_known(known, inner):
                function = functools.partial(_KNOWN[known], region)
                return [_map(function, *operands)]
            return _evaluate(region, inner.jaxpr,
                             [region.tracer.capture(region, x)
                              for x in inner.consts], operands)
        if isinstance(inner, Jaxpr):
            return _evaluate(region, inner, (), operands)
    fail(f"{name} has no counterpart in a region")


#--- Mods ---------------------------------------------------------------------


class Tracer:
    """Traces the mods of one attention. `query`, `key` and `value` have shapes
    [B, H, S, D] and dtypes. Caches may hold it: it holds no array."""

    def __init__(self, query, key, value, score_mod, mask_mod):
        self.inputs = {"query": query, "key": key, "value": value}
        self.is_wide = any(x.dtype == "float64" for x in self.inputs.values())
        self.float = "f64" if self.is_wide else "f32"
        #: The names of captured arrays that get no gradient.
        self.constants = frozenset()
        self._sizes = (*query.shape[:3], key.shape[2])
        # By the array's identity.
        self._captures = {}
        self._arrays = []
        # By "score" and "mask": the jaxpr, without its constants, which later versions
        # of JAX keep in it; and the captures that these are.
        self._jaxprs = {}
        for kind, mod in (("score", score_mod), ("mask", mask_mod)):
            if mod:
                jaxpr = self._make_jaxpr(kind, mod)
                self._jaxprs[kind] = _Jaxpr.copy(jaxpr.jaxpr), [
                    self._find(x) for x in jaxpr.consts]
        # Captures of inner functions are known once the regions are written.
        self._write_regions()

    def _make_jaxpr(self, kind, mod):
        operands = [jax.ShapeDtypeStruct((), numpy.int32)] * 4
        if kind == "score":
            score = numpy.float64 if self.is_wide else numpy.float32
            operands.insert(0, jax.ShapeDtypeStruct((), score))
        jaxpr = jax.make_jaxpr(mod)(*operands)
        code = getattr(getattr(mod, "__wrapped__", mod), "__code__", None)
        place = (f"{code.co_filename}:{code.co_firstlineno}" if code else
                 type(mod).__name__)
        wanted = "a number" if kind == "score" else "a boolean"
        result = jaxpr.out_avals[0] if len(jaxpr.out_avals) == 1 else None
        if result is None or result.shape or (
                kind == "mask" and result.dtype != bool):
            raise TraceError(
                f"{place}: {kind}_mod returns "
                f"{', '.join(map(str, jaxpr.out_avals)) or 'nothing'}; expected "
                f"an array of no dimensions, {wanted} for each score")
        return jaxpr

    def take_arrays(self):
        """Returns the captured arrays, in the order of the operands, and forgets
        them."""
        arrays, self._arrays = self._arrays, None
        return arrays

    @property
    def names(self):
        return [capture.name for capture in self._captures.values()]

    def capture(self, region, array):
        """Returns a captured array as an operand of a region."""
        return self._view(region, self._find(array))

    def _view(self, region, capture):
        shape = capture.array.shape
        view = View(region, capture, [0] * len(shape), list(enumerate(shape)))
        return view if shape else view.unroll()

    def _find(self, array):
        """Returns the operand of a captured array, one for each."""
        capture = self._captures.get(id(array))
        if capture is None:
            if array.dtype.name not in ELEMENTS:
                fail(f"a captured array of {array.dtype}; expected one of "
                     f"{', '.join(ELEMENTS)}")
            if array.ndim > MAX_RANK:
                fail(f"a captured array of rank {array.ndim}; expected at most "
                     f"{MAX_RANK}")
            capture = Capture(f"capture{len(self._captures)}", array)
            self._captures[id(array)] = capture
            self._arrays.append(array)
        return capture

    def _write_regions(self):
        return {kind: self._write_region(kind, *traced)
                for kind, traced in self._jaxprs.items()}

    def _write_region(self, kind, jaxpr, captures):
        region = _Region(self)
        operands = []
        for name, size in zip(("b", "h", "q", "kv"), self._sizes):
            operands.append(Scalar(region, f"%{name}", "index", 0,
                                   max(size - 1, 0), frozenset((name,))))
        arguments, type = "", "i1"
        if kind == "score":
            type = self.float
            operands.insert(0, Scalar(region, "%score", type))
            arguments = f"%score: {type}, "
        cells = []
        for operand in operands:
            cells.append(numpy.empty((), object))
            cells[-1][()] = operand
        constants = [self._view(region, capture) for capture in captures]
        result, = _evaluate(region, jaxpr, constants, cells)
        result = scalars.convert(region, _as_array(result)[()], type)
        region.prune(result.name)
        return region.write(result.name, arguments, type)

    def write(self, scale, lse=None, constants=frozenset()):
        """Returns the text of the function, with the log-sum-exp as a second
        result of type `lse` if that is given, and no gradients of the captured
        arrays whose names are `constants`."""
        self.constants = constants
        regions = self._write_regions()
        query, value = self.inputs["query"], self.inputs["value"]
        length = write_length(query.shape[2], jax.default_backend() == "gpu")
        types = {name: f"tensor<?x{x.shape[1]}x{length if name == 'query' else '?'}x"
                       f"{x.shape[3]}x{ELEMENTS[x.dtype.name]}>"
                 for name, x in self.inputs.items()}
        types.update((capture.name, capture.write_type(
            capture.name in constants)) for capture in self._captures.values())
        heads = query.shape[1]
        results = {"output": f"tensor<?x{heads}x{length}x{value.shape[3]}x"
                             f"{ELEMENTS[query.dtype.name]}>"}
        if lse:
            results["lse"] = f"tensor<?x{heads}x{length}x{lse}>"
        return write_attention(types, [], results, scale, regions)

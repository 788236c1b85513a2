# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of PyTorch on traced tensors: making, indexing, moving and reducing
them. A tensor of which the shape is not () is unrolled into its elements."""

import functools
import math

import torch

from ._functions import (TYPES, add, bitwise_and, bitwise_or, cast, find_region,
                         maximum, minimum, mul, public, read)
from ._regions import fail
from ._scalars import convert
from ._values import DTYPES, FUNCTIONS, Array, Row, Traced, Value, move

#--- New tensors -------------------------------------------------------------


def _fill(like, shape, number, dtype):
    """A tensor of one number; `like` gives what is not given."""
    dtype = like.dtype if dtype is None else dtype
    region = like.region
    item = cast(convert(region, number, TYPES.get(dtype) or (
        "f32" if dtype.is_floating_point else "index")), dtype)
    if isinstance(shape, int):
        shape = (shape,)
    shape = tuple(shape)
    if not shape:
        return item
    return Array(shape, [item] * torch.Size(shape).numel())


def _shape_of(size, sizes):
    if size is not None:
        return size
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return sizes[0]
    return sizes


def _make_new(number):
    def make(self, *sizes, size=None, dtype=None, **_):
        return _fill(self, _shape_of(size, sizes), number, dtype)
    return make


for _name, _number in (("new_ones", 1), ("new_zeros", 0), ("new_empty", 0)):
    FUNCTIONS[_name] = _make_new(_number)
for _name, _number in (("ones_like", 1), ("zeros_like", 0), ("empty_like", 0)):
    FUNCTIONS[_name] = (lambda input, *, dtype=None, number=_number, **_:
                        _fill(input, input.shape, number, dtype))


@public()
def new_full(self, size, fill_value, *, dtype=None, **_):
    return _fill(self, size, fill_value, dtype)


@public()
def full_like(input, fill_value, *, dtype=None, **_):
    return _fill(input, input.shape, fill_value, dtype)


@public("scalar_tensor")
def new_tensor(self, data, *, dtype=None, **_):
    if isinstance(data, (list, tuple)):
        fail("new_tensor: expected a number; capture a tensor made outside of "
             "the mod")
    if dtype is None:
        dtype = DTYPES["i1" if isinstance(data, bool) else
                       "index" if isinstance(data, int) else
                       self.region.default_float]
    return _fill(self, (), data, dtype)


#--- Small tensors -----------------------------------------------------------


def _unroll(input):
    if isinstance(input, Value):
        return Array((), [input])
    return read(find_region([input]), input)


def _reshape_by(function):
    """Makes a function that moves elements about from one on tensors of their
    numbers."""
    def apply(self, *args, **kwargs):
        return move(lambda numbers: function(numbers, *args, **kwargs),
                    _unroll(self))
    return apply


for _name in ("unsqueeze", "squeeze", "view", "reshape", "expand", "flatten",
              "transpose", "permute", "t", "flip", "roll", "ravel", "select",
              "narrow", "diagonal", "broadcast_to", "expand_as", "view_as",
              "reshape_as"):
    FUNCTIONS[_name] = _reshape_by(getattr(torch.Tensor, _name))
for _name in ("detach", "clone", "contiguous", "positive", "alias",
              "lift_fresh_copy", "lift_fresh", "cpu", "cuda",
              "requires_grad_"):
    FUNCTIONS[_name] = lambda self, *_, **__: self
FUNCTIONS["dim"] = FUNCTIONS["ndimension"] = lambda self: len(self.shape)
FUNCTIONS["numel"] = FUNCTIONS["nelement"] = lambda self: self.shape.numel()
FUNCTIONS["size"] = lambda self, dim=None: (
    self.shape if dim is None else self.shape[dim])
FUNCTIONS["is_floating_point"] = lambda self: self.dtype.is_floating_point
FUNCTIONS["is_complex"] = lambda self: False
FUNCTIONS["len"] = len


@public("getitem")
def _getitem(self, index):
    if isinstance(self, Traced):
        return self[index]
    region = find_region(index if isinstance(index, tuple) else (index,))
    region.tracer.check(self)
    return Row(region, self)[index]


@public("index")
def _index(self, indices):
    return _getitem(self, tuple(
        slice(None) if index is None else index for index in indices))


@public()
def index_select(input, dim, index):
    return _getitem(input, (slice(None),) * (dim % len(input.shape)) + (index,))


@public()
def take(input, index):
    return _getitem(input.flatten(), index)


def _reduce(combine, initial=None):
    """Makes a reduction, by adding one element after another."""
    def apply(self, dim=None, keepdim=False, *, dtype=None):
        array = _unroll(self)
        if dtype is not None:
            array = _unroll(cast(array, dtype))
        if initial is not None:
            array = _unroll(initial(array))
        rank = len(array.shape)
        dims = range(rank) if dim is None else (
            (dim,) if isinstance(dim, int) else dim)
        dims = sorted({d % rank for d in dims}) if rank else []
        kept = [d for d in range(rank) if d not in dims]
        count = math.prod(array.shape[d] for d in kept)
        # One row for each result.
        rows = move(lambda numbers: numbers.permute(*kept, *dims).reshape(
            count, -1), array)
        width = rows.shape[1]
        items = [functools.reduce(combine, rows.items[at:at + width])
                 for at in range(0, count * width, width)]
        shape = [array.shape[d] if d in kept else 1 for d in range(rank)
                 if keepdim or d in kept]
        return items[0] if not shape else Array(shape, items)
    return apply


def _integer_of(array):
    return array.to(torch.int64) if array.type == "i1" else array


_sum = FUNCTIONS["sum"] = _reduce(add, _integer_of)
FUNCTIONS["prod"] = _reduce(mul, _integer_of)
FUNCTIONS["any"] = _reduce(bitwise_or, lambda a: cast(a, torch.bool))
FUNCTIONS["all"] = _reduce(bitwise_and, lambda a: cast(a, torch.bool))
FUNCTIONS["amax"] = _reduce(maximum)
FUNCTIONS["amin"] = _reduce(minimum)


@public()
def mean(input, dim=None, keepdim=False, *, dtype=None):
    total = _sum(input, dim, keepdim, dtype=dtype)
    count = torch.Size(input.shape).numel()
    return total / (count // torch.Size(getattr(total, "shape", ())).numel())


def _make_extreme(name, pair):
    def apply(input, *args, **kwargs):
        other = args[0] if args else kwargs.get("other", kwargs.get("dim"))
        if other is None:
            return FUNCTIONS["a" + name](input)
        if isinstance(other, (Traced, torch.Tensor)):
            return pair(input, other)
        fail(f"{name} along a dimension has two results; use a{name}")
    return apply


FUNCTIONS["max"] = _make_extreme("max", maximum)
FUNCTIONS["min"] = _make_extreme("min", minimum)


@public("inner", "vdot")
def dot(input, other):
    return _sum(input * other, -1)


@public("mv", "linalg_vecdot")
def matmul(input, other):
    if len(input.shape) > 2 or len(other.shape) > 2:
        fail("matmul of tensors of more than two dimensions")
    region = find_region((input, other))
    input, other = (_unroll(read(region, x)) for x in (input, other))
    if len(other.shape) == 2:
        other = FUNCTIONS["t"](other)
        if len(input.shape) == 2:
            input = FUNCTIONS["unsqueeze"](input, 1)
    return _sum(input * other, -1)


FUNCTIONS["rmatmul"] = lambda a, b: matmul(b, a)


def _linear_norm(input, p=2, dim=None, keepdim=False, **_):
    if p not in (2, 2.0, None, "fro"):
        fail("a norm other than the Euclidean one")
    return FUNCTIONS["sqrt"](_sum(input * input, dim, keepdim))


FUNCTIONS["norm"] = _linear_norm
FUNCTIONS["linalg_vector_norm"] = FUNCTIONS["linalg_norm"] = _linear_norm


@public()
def stack(tensors, dim=0):
    region = find_region(tensors)
    return move(lambda *numbers: torch.stack(numbers, dim),
                *(_unroll(read(region, x)) for x in tensors))


@public("concat")
def cat(tensors, dim=0):
    region = find_region(tensors)
    return move(lambda *numbers: torch.cat(numbers, dim),
                *(_unroll(read(region, x)) for x in tensors))


@public()
def unbind(input, dim=0):
    return move(lambda numbers: numbers.unbind(dim), _unroll(input))

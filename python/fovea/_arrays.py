# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays, PyTorch tensors and whatever speaks DLPack, as memory.

A reader turns an operand into (address, dtype number, sizes, strides in
elements, keeper), where the keeper holds the memory for the time of the call. A
writer turns a result's memory into an array of the kind that the operands were.
"""

import sys

import numpy

from . import _library
from ._library import Error

_NUMPY_DTYPES = (
    numpy.dtype(numpy.float16),
    numpy.dtype(numpy.uint16),  # bf16 as its bits
    numpy.dtype(numpy.float32),
    numpy.dtype(numpy.float64),
    numpy.dtype(numpy.bool_),
    numpy.dtype(numpy.int8),
    numpy.dtype(numpy.int16),
    numpy.dtype(numpy.int32),
    numpy.dtype(numpy.int64),
)

# Integers are signless: unsigned ones are taken by their bits.
_FROM_NUMPY = {
    dtype: number
    for number, dtype in enumerate(_NUMPY_DTYPES)
    if number != _library.BF16
}
_FROM_NUMPY.update({
    numpy.dtype(numpy.uint8): _library.I8,
    numpy.dtype(numpy.uint16): _library.I16,
    numpy.dtype(numpy.uint32): _library.I32,
    numpy.dtype(numpy.uint64): _library.I64,
})


def read_numpy(array, wanted):
    dtype = array.dtype
    number = _FROM_NUMPY.get(dtype)
    if number is None:
        if dtype.name == "bfloat16":  # of the ml_dtypes package
            number = _library.BF16
        elif dtype.newbyteorder("=") in _FROM_NUMPY:
            return read_numpy(array.astype(dtype.newbyteorder("=")), wanted)
        else:
            raise Error(f"dtype {dtype} is not supported")
    elif wanted == _library.BF16 and dtype == numpy.uint16:
        number = _library.BF16
    itemsize = dtype.itemsize
    strides = array.strides
    if any(stride % itemsize for stride in strides):
        array = numpy.ascontiguousarray(array)
        strides = array.strides
    return (
        array.__array_interface__["data"][0],
        number,
        array.shape,
        tuple(stride // itemsize for stride in strides),
        array,
    )


class _Memory:
    """Memory that the library owns, as NumPy's array protocol shows it; NumPy
    holds on to this object for as long as an array looks at the memory."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, data, typestr, shape, owner):
        self.owner = owner
        self.__array_interface__ = {
            "data": (data, False),
            "typestr": typestr,
            "shape": shape,
            "version": 3,
        }

    def __del__(self, release=_library.lib.fovea_owner_release):
        release(self.owner)


_TYPESTRS = tuple(dtype.str for dtype in _NUMPY_DTYPES)


def write_numpy(data, number, shape, owner):
    return numpy.asarray(_Memory(data, _TYPESTRS[number], shape, owner))


class _Torch:
    """PyTorch's side; made once PyTorch has been imported by somebody."""

    def __init__(self, torch):
        self.Tensor = torch.Tensor
        self.grad_enabled = torch.is_grad_enabled
        self.from_numpy = torch.from_numpy
        self.bfloat16 = torch.bfloat16
        names = ("float16", "bfloat16", "float32", "float64", "bool", "int8",
                 "int16", "int32", "int64")
        self.numbers = {
            getattr(torch, name): number for number, name in enumerate(names)
        }
        self.numbers[torch.uint8] = _library.I8

    def read(self, tensor, wanted):
        number = self.numbers.get(tensor.dtype)
        if number is None:
            raise Error(f"dtype {tensor.dtype} is not supported")
        if not tensor.is_cpu:
            raise Error(
                f"the tensor is on {tensor.device}; expected one on the CPU")
        if tensor.requires_grad and self.grad_enabled():
            raise Error(
                "the tensor requires a gradient, which is not computed; "
                "detach it or call within torch.no_grad()")
        return tensor.data_ptr(), number, tensor.shape, tensor.stride(), tensor

    def write(self, data, number, shape, owner):
        if number == _library.BF16:
            memory = _Memory(data, "<i2", shape, owner)
            return self.from_numpy(numpy.asarray(memory)).view(self.bfloat16)
        return self.from_numpy(write_numpy(data, number, shape, owner))


_torch = None


def get_torch():
    """PyTorch's side, or None where nobody has imported PyTorch."""
    global _torch
    if _torch is None and "torch" in sys.modules:
        _torch = _Torch(sys.modules["torch"])
    return _torch


def read_other(operand, wanted):
    """An operand that is neither NumPy's nor PyTorch's."""
    if hasattr(operand, "__dlpack__"):
        return read_numpy(numpy.from_dlpack(operand), wanted)
    if hasattr(operand, "__array_interface__") or hasattr(
            operand, "__array__"):
        return read_numpy(numpy.asarray(operand), wanted)
    raise Error(
        f"expected a NumPy array, a PyTorch tensor or an object with "
        f"__dlpack__, got {type(operand).__name__}")


def make_number(value, wanted):
    """A Python number as an array of rank 0."""
    dtype = _NUMPY_DTYPES[wanted]
    name = _library.DTYPE_NAMES[wanted]
    if isinstance(value, (bool, int, float, numpy.generic)):
        kind = numpy.asarray(value).dtype.kind
        if dtype.kind == "f" and kind in "biuf":
            return numpy.array(value, dtype)
        if wanted != _library.BF16 and kind in "biu":
            try:
                array = numpy.array(value, dtype)
            except OverflowError:
                array = None
            if array is not None and int(array) == int(value):
                return array
    raise Error(f"expected a number of type {name}, got {value!r}")

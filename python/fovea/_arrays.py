# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays, PyTorch tensors and whatever speaks DLPack, as memory.

An operand is read as (address, dtype number, sizes, strides in elements,
keeper), where the keeper holds the memory for the time of the call. A result is
written as an array of the kind that the operands were.
"""

import sys

import numpy

from . import _library
from ._library import Error

#: By dtype number.
NUMPY_DTYPES = (
    numpy.dtype(numpy.float16),
    None,  # bf16
    numpy.dtype(numpy.float32),
    numpy.dtype(numpy.float64),
    numpy.dtype(numpy.bool_),
    numpy.dtype(numpy.int8),
    numpy.dtype(numpy.int16),
    numpy.dtype(numpy.int32),
    numpy.dtype(numpy.int64),
)

# Integers are signless: unsigned ones are taken by their bits.
_NUMBERS = {dtype: number for number, dtype in enumerate(NUMPY_DTYPES) if dtype}
_NUMBERS.update({
    numpy.dtype(numpy.uint8): _library.I8,
    numpy.dtype(numpy.uint16): _library.I16,
    numpy.dtype(numpy.uint32): _library.I32,
    numpy.dtype(numpy.uint64): _library.I64,
})

# NumPy has no bf16: use its bits.
_TYPESTRS = tuple(dtype.str if dtype else "<u2" for dtype in NUMPY_DTYPES)


def has_whole_strides(array):
    """Returns True if the array's strides are multiples of its element."""
    size = array.itemsize
    return all(stride % size == 0 for stride in array.strides)


def _read_numpy(array, wanted):
    dtype = array.dtype
    number = _NUMBERS.get(dtype)
    if number is None and dtype.newbyteorder("=") in _NUMBERS:
        array = array.astype(dtype.newbyteorder("="))
        number = _NUMBERS[array.dtype]
    if wanted == _library.BF16 and (dtype == numpy.uint16
                                    or dtype.name == "bfloat16"):
        number = wanted
    if number is None:
        raise Error(f"dtype {dtype} is not supported")
    if not has_whole_strides(array):
        array = array.copy()
    size = array.itemsize
    return (array.__array_interface__["data"][0], number, array.shape,
            [stride // size for stride in array.strides], array)


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


def write_numpy(data, number, shape, owner):
    return numpy.asarray(_Memory(data, _TYPESTRS[number], shape, owner))


class _Torch:
    """PyTorch's side."""

    def __init__(self, torch):
        self.Tensor = torch.Tensor
        #: By dtype number.
        self.dtypes = (torch.float16, torch.bfloat16, torch.float32,
                       torch.float64, torch.bool, torch.int8, torch.int16,
                       torch.int32, torch.int64)
        self._numbers = {
            dtype: number for number, dtype in enumerate(self.dtypes)
        }
        self._numbers[torch.uint8] = _library.I8
        self._strided = torch.strided
        self.is_grad_enabled = torch.is_grad_enabled
        self._increment_version = torch.autograd.graph.increment_version
        self._from_dlpack = torch.utils.dlpack.from_dlpack
        self.empty = torch.empty
        self.is_compiling = torch.compiler.is_dynamo_compiling
        # Private, but what PyTorch's own Python kernels ask.
        self._get_excluded = torch._C._dispatch_tls_local_exclude_set
        self._autograd_key = (
            torch._C.DispatchKey.AutogradFunctionality)
        from . import _native
        self.call = _native.call
        self.plain = _native.PLAIN
        self.is_watched = _native.is_watched

    def note_update(self, tensor):
        """Tells autograd that a tensor has changed, where tensors have versions."""
        if not tensor.is_inference():
            self._increment_version(tensor)

    def get_stream(self, device):
        """Returns the current stream of a GPU, as the driver knows it."""
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream

    def read_on_gpu(self, tensor, device):
        """The same as `read` for a tensor on the GPU `device`."""
        number = self._numbers.get(tensor.dtype)
        if number is None:
            raise Error(f"dtype {tensor.dtype} is not supported")
        if tensor.device != device or tensor.layout is not self._strided:
            raise Error(f"expected a dense tensor on {device}, got a "
                        f"{tensor.layout} one on {tensor.device}")
        if self._wants_gradient(tensor):
            raise Error(
                "the tensor requires a gradient, which is not computed; "
                "detach it or call within torch.no_grad()")
        if tensor.dim() and tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
            tensor = tensor.contiguous()
        return tensor.data_ptr(), number, tensor.shape, tensor.stride(), tensor

    def _wants_gradient(self, tensor):
        """Returns True if autograd expects to follow what is computed from a
        tensor; an operator's kernel runs below autograd, which follows the
        operator."""
        return (tensor.requires_grad and self.is_grad_enabled()
                and not self._get_excluded().has(self._autograd_key))

    def read(self, tensor):
        number = self._numbers.get(tensor.dtype)
        if number is None:
            raise Error(f"dtype {tensor.dtype} is not supported")
        if not tensor.is_cpu or tensor.layout is not self._strided:
            raise Error(f"expected a dense tensor on the CPU, got a "
                        f"{tensor.layout} one on {tensor.device}")
        if self._wants_gradient(tensor):
            raise Error(
                "the tensor requires a gradient, which is not computed; "
                "detach it or call within torch.no_grad()")
        return tensor.data_ptr(), number, tensor.shape, tensor.stride(), tensor

    def write(self, data, number, shape, owner):
        return self._from_dlpack(_library.new_capsule(
            _library.lib.fovea_owner_to_dlpack(owner), b"dltensor", None))


#: PyTorch's side, once somebody has imported PyTorch.
torch = None


def find_torch():
    global torch
    if torch is None and "torch" in sys.modules:
        torch = _Torch(sys.modules["torch"])
    return torch


def _round_to_bf16(value):
    """The bits of the bf16 that is nearest to a number, of two the even one."""
    value = float(value)
    if value != value:
        return 0x7FC0
    with numpy.errstate(over="ignore"):
        single = numpy.float32(value)
    bits = int(single.view(numpy.uint32))
    # The lowest bit is set where f32 is not exact, so that nothing is rounded
    # twice.
    if float(single) != value:
        bits = (bits - (abs(float(single)) > abs(value))) | 1
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _make_number(value, wanted):
    """A Python number as an array of rank 0."""
    dtype = NUMPY_DTYPES[wanted]
    if wanted == _library.BF16 and isinstance(
            value, (bool, int, float, numpy.number)) and not isinstance(
                value, numpy.complexfloating):
        return numpy.array(_round_to_bf16(value), numpy.uint16)
    if dtype and isinstance(value, (bool, int, float, numpy.generic)):
        kind = numpy.asarray(value).dtype.kind
        if dtype.kind == "f" and kind in "biuf":
            return numpy.array(value, dtype)
        if kind in "biu":
            try:
                array = numpy.array(value, dtype)
            except OverflowError:
                array = None
            if array is not None and int(array) == int(value):
                return array
    raise Error(f"expected a number of type {_library.DTYPE_NAMES[wanted]}, "
                f"got {value!r}")


def read(operand, wanted, is_scalar, torch):
    """An operand of any kind, of which the dtype `wanted` is expected."""
    if torch and isinstance(operand, torch.Tensor):
        return torch.read(operand)
    if is_scalar and not isinstance(operand, numpy.ndarray):
        operand = _make_number(operand, wanted)
    if not isinstance(operand, numpy.ndarray):
        if hasattr(operand, "__dlpack__"):
            operand = numpy.from_dlpack(operand)
        elif hasattr(operand, "__array_interface__"):
            operand = numpy.asarray(operand)
        else:
            raise Error(
                "expected a NumPy array, a PyTorch tensor or an object with "
                f"__dlpack__, got {type(operand).__name__}")
    return _read_numpy(operand, wanted)

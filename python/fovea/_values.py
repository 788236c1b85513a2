# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that stand for those of a region while a mod is traced.

A `Value` is one number of a region: it has a name in the region's text, a type,
and, if it is an integer, the range that its text implies. A `Row` is a captured
tensor of which some leading dimensions have been indexed; an `Array` is a small
tensor of values, unrolled. They take the place of the 0-d tensors that PyTorch
gives to `score_mod` and `mask_mod`, by the protocol `__torch_function__`.

Types are "f32", "f64", "index" for every integer, and "i1". Tensors of f16 and
bf16 are widened where they are read. Ranges hold for the sizes of this call,
and so does the text that they shape; other sizes are traced again.
"""

import contextlib
import itertools

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import _regions
from ._library import MAX_RANK
from ._regions import MAX, MAX_ELEMENTS, MIN, Scalar, TraceError, fail

#: The `dtype` that a mod sees of each type.
DTYPES = {"f32": torch.float32, "f64": torch.float64, "index": torch.int64,
          "i1": torch.bool}

#: MLIR's name of the elements of a captured tensor.
ELEMENTS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
            torch.float64: "f64", torch.bool: "i1", torch.int8: "i8",
            torch.uint8: "i8", torch.int16: "i16", torch.int32: "i32",
            torch.int64: "i64"}

#: The ranges of elements that are integers.
RANGES = {torch.int8: (-2**7, 2**7 - 1), torch.uint8: (0, 2**8 - 1),
          torch.int16: (-2**15, 2**15 - 1), torch.int32: (-2**31, 2**31 - 1)}


class Number:
    """An integer that becomes an operand of the kernel, not a constant of its
    text, so that another number needs no other kernel. Valid as an operand of
    an operation with a `Value`."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


class Region(_regions.Region):
    """A region of which operations are on `Value`s."""

    def __init__(self, tracer, device):
        super().__init__(tracer)
        self.device = device

    @property
    def default_float(self):
        """The type of a float of Python where no operand decides it."""
        return "f64" if torch.get_default_dtype() is torch.float64 else "f32"

    def load(self, tensor, indices):
        """Returns the element of a captured tensor at a place, of which each
        index is an int or a value."""
        operand = self.tracer.capture(tensor)
        names = [self._place(tensor, operand, dim, index).name
                 for dim, index in enumerate(indices)]
        element = ELEMENTS[tensor.dtype]
        low, high = RANGES.get(tensor.dtype, (MIN, MAX))
        return self.read(operand.name, names, element,
                         operand.bits is not None, low, high)

    def _place(self, tensor, operand, dim, index):
        """Returns an index as PyTorch reads it: a negative one counts from the
        end. One that cannot be proven to lie in the tensor is clamped to it."""
        size = tensor.shape[dim]
        known = isinstance(size, int)
        if isinstance(index, int):
            if known and not -size <= index < size:
                fail(f"index {index} is out of bounds for dimension {dim} with "
                     f"size {size}", IndexError)
            if index < 0 and not known:
                index = self.constant(index, "index")
            else:
                operand.note(dim, is_fixed=known)
                return self.constant(index + size if index < 0 else index,
                                     "index")
        operand.note(dim, is_fixed=index.name == "%h")
        if known and 0 <= index.low and index.high < size:
            return index
        if index.coordinate and not known:
            # Checked where the function is called.
            return index
        low, high = index.low, index.high
        if known and self.tracer.runs:
            if not size:
                fail(f"index is out of bounds for dimension {dim} with size 0",
                     IndexError)
            if index.exact is not None and not -size <= low <= high < size:
                wrong = high if high >= size else low
                fail(f"index {wrong} is out of bounds for dimension {dim} with "
                     f"size {size}", IndexError)
        number = self.emit(f"index.constant {dim}", "index")
        extent = self.emit(f"tensor.dim %{operand.name}, {number.name} : "
                           f"!{operand.name}", "index", 0, MAX)
        if low < 0:
            zero = self.constant(0, "index")
            below = self.emit(
                f"arith.cmpi slt, {index.name}, {zero.name} : index", "i1")
            end = self.emit(f"arith.addi {index.name}, {extent.name} : index",
                            "index")
            index = self.emit(f"arith.select {below.name}, {end.name}, "
                              f"{index.name} : index", "index")
        one = self.constant(1, "index")
        last = self.emit(f"arith.subi {extent.name}, {one.name} : index",
                         "index")
        # Unsigned: what is still negative is larger than everything, and is
        # clamped here rather than an error of the call.
        return self.emit(f"arith.minui {index.name}, {last.name} : index",
                         "index")


#: Functions of PyTorch by name; _functions.py fills it in.
FUNCTIONS = {}

#: Methods whose operands come in another order than those of the function.
METHODS = {}

#: Attributes of tensors that are no functions, by name.
ATTRIBUTES = {
    "dtype": lambda self: DTYPES[self.type],
    "device": lambda self: self.region.device,
    "ndim": lambda self: len(self.shape),
    "requires_grad": lambda self: False,
    "is_cuda": lambda self: self.region.device.type == "cuda",
    "is_nested": lambda self: False,
    "layout": lambda self: torch.strided,
    "T": lambda self: FUNCTIONS["t"](self),
}


def name_of(function):
    """Returns the name of a function of PyTorch, as FUNCTIONS has it."""
    schema = getattr(function, "_schema", None)
    if schema is not None:
        name = schema.name.partition("::")[2]
    else:
        name = getattr(function, "__name__", str(function))
    return name[2:-2] if name.startswith("__") else name


class Traced:
    """Whatever a mod can compute with; operations are those of FUNCTIONS."""

    __slots__ = ()

    # NumPy leaves operations to this class.
    __array_ufunc__ = None
    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = name_of(function)
        handler = FUNCTIONS.get(name)
        if name in METHODS and function is getattr(torch.Tensor, name):
            handler = METHODS[name]
        if handler is None:
            where = getattr(function, "__module__", None) or "torch.Tensor"
            fail(f"{where.removeprefix('torch._C.')}.{name} has no counterpart "
                 "in a region")
        return call(handler, name, args, kwargs or {})

    def __getattr__(self, name):
        attribute = ATTRIBUTES.get(name)
        if attribute is not None:
            return attribute(self)
        handler = None if name.startswith("__") else (
            METHODS.get(name) or FUNCTIONS.get(name))
        if handler is not None:
            return lambda *args, **kwargs: call(handler, name, (self, *args),
                                                kwargs)
        if not name.startswith("__") and hasattr(torch.Tensor, name):
            fail(f"Tensor.{name} has no counterpart in a region")
        raise AttributeError(f"a traced tensor has no attribute '{name}'")

    def __bool__(self):
        fail("a branch on a traced value: its number is not known while the mod "
             "is traced; use torch.where, and &, | and ~ in place of and, or and "
             "not", TraceError)

    def _refuse(self, *_):
        fail("a traced value has no number yet; use torch's functions on it, not "
             "Python's or NumPy's")

    __int__ = __float__ = __index__ = __complex__ = __array__ = _refuse
    item = tolist = numpy = _refuse

    def __round__(self):
        return FUNCTIONS["round"](self)


def call(handler, name, args, kwargs):
    """Calls a function of FUNCTIONS; arguments that it does not know are an
    error that names it."""
    try:
        return handler(*args, **kwargs)
    except TypeError as error:
        if error.__traceback__.tb_next is None:
            fail(f"{name}: {error}")
        raise


def _install(cls):
    def binary(name, swap):
        def apply(self, other):
            function = FUNCTIONS[name]
            return function(other, self) if swap else function(self, other)
        return apply

    for operator, name in (
            ("add", "add"), ("sub", "sub"), ("mul", "mul"),
            ("truediv", "div"), ("floordiv", "floor_divide"),
            ("mod", "remainder"), ("pow", "pow"), ("and", "bitwise_and"),
            ("or", "bitwise_or"), ("xor", "bitwise_xor"),
            ("lshift", "bitwise_left_shift"),
            ("rshift", "bitwise_right_shift"), ("matmul", "matmul")):
        setattr(cls, f"__{operator}__", binary(name, False))
        setattr(cls, f"__r{operator}__", binary(name, True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(cls, f"__{name}__", binary(name, False))
    for operator, name in (("neg", "neg"), ("pos", "positive"),
                           ("invert", "bitwise_not"), ("abs", "abs")):
        setattr(cls, f"__{operator}__",
                lambda self, name=name: FUNCTIONS[name](self))


_install(Traced)


class Value(Traced, Scalar):
    """One number of a region: a tensor of no dimensions."""

    __slots__ = ()

    @property
    def shape(self):
        return torch.Size(())

    def __getitem__(self, index):
        return Array((), [self])[index]

    def __iter__(self):
        fail("iteration over a 0-d tensor", TypeError)

    def __len__(self):
        fail("len() of a 0-d tensor", TypeError)

    def __repr__(self):
        return f"<traced {self.type} {self.name}>"


Region.scalar = Value


class Array(Traced):
    """A tensor of a known shape, whose elements are values or Python's
    numbers."""

    __slots__ = ("shape", "items")

    def __init__(self, shape, items):
        self.shape = torch.Size(shape)
        self.items = items

    @property
    def region(self):
        return next(item.region for item in self.items
                    if isinstance(item, Value))

    @property
    def type(self):
        return next(item.type for item in self.items if isinstance(item, Value))

    def __len__(self):
        if not self.shape:
            fail("len() of a 0-d tensor", TypeError)
        return self.shape[0]

    def __iter__(self):
        return (self[at] for at in range(len(self)))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if any(isinstance(item, Traced) for item in index):
            fail("an index that is traced, into a tensor that is traced: index "
                 "the captured tensor itself")
        return move(lambda numbers: numbers[index], self)

    def __repr__(self):
        return f"<traced tensor of shape {tuple(self.shape)}>"


def move(function, *arrays):
    """Moves elements of arrays about, as a function does that takes and returns
    tensors: they hold the elements' numbers."""
    items, numbers = [], []
    with outside_of_modes():
        for array in arrays:
            numbers.append(torch.arange(
                len(items), len(items) + len(array.items),
                device="cpu").reshape(array.shape))
            items += array.items
        found = function(*numbers)
        parts = found if isinstance(found, tuple) else (found,)
        results = tuple(
            Array(part.shape, [items[at] for at in part.flatten().tolist()])
            if part.dim() else items[int(part)] for part in parts)
    return results if isinstance(found, tuple) else results[0]


def outside_of_modes():
    """A context in which tensors are real, also where others are fake."""
    if torch._C._len_torch_dispatch_stack():
        return _disable_current_modes()
    return contextlib.nullcontext()


class Row(Traced):
    """A captured tensor of which leading dimensions are indexed."""

    __slots__ = ("region", "tensor", "indices")

    def __init__(self, region, tensor, indices=()):
        self.region = region
        self.tensor = tensor
        self.indices = indices

    @property
    def shape(self):
        return self.tensor.shape[len(self.indices):]

    @property
    def dtype(self):
        return self.tensor.dtype

    @property
    def type(self):
        element = ELEMENTS[self.tensor.dtype]
        return element if element in ("f64", "i1") else (
            "f32" if element in ("f16", "bf16", "f32") else "index")

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) == 1 and isinstance(index[0], list):
            index = (Array((len(index[0]),), [
                self.region.constant(at, "index") if isinstance(at, int) else at
                for at in index[0]]),)
        rank = len(self.shape) + sum(item is None for item in index)
        if Ellipsis in [item for item in index
                        if not isinstance(item, (Traced, torch.Tensor))]:
            at = next(at for at, item in enumerate(index) if item is Ellipsis)
            rest = rank - (len(index) - 1)
            index = index[:at] + (slice(None),) * rest + index[at + 1:]
        if len(index) > rank:
            fail("too many indices for tensor of dimension "
                 f"{len(self.shape)}", IndexError)
        index = [self._read_index(item) for item in index]
        while index and isinstance(index[-1], slice) and (
                index[-1] == slice(None)):
            index.pop()
        if all(isinstance(item, (int, Value)) for item in index):
            indices = self.indices + tuple(index)
            if len(indices) == self.tensor.dim():
                return self.region.load(self.tensor, indices)
            return Row(self.region, self.tensor, indices)
        return self._gather(index)

    def _read_index(self, index):
        if isinstance(index, Row):
            index = index.unroll()
        if isinstance(index, torch.Tensor):
            self.region.tracer.check(index)
            index = (Row(self.region, index)[()] if not index.dim()
                     else Row(self.region, index).unroll())
        if isinstance(index, bool):
            fail("an index that is a bool; expected an integer")
        if isinstance(index, (Value, Array)) and index.type != "index":
            fail(f"an index of type {DTYPES[index.type]}; expected an integer")
        if isinstance(index, (Number, torch.SymInt)):
            index = self.region.tracer.number(self.region, index)
        if index is not None and not isinstance(index, (int, Value, Array,
                                                        slice)):
            fail(f"an index of type {type(index).__name__}; expected integers, "
                 "slices and traced values")
        return index

    def _gather(self, index):
        """Indexes by slices and arrays as well: element by element."""
        given = sum(item is not None for item in index)
        index += [slice(None)] * (len(self.shape) - given)
        arrays = [item for item in index if isinstance(item, Array)]
        if len(arrays) > 1:
            fail("more than one index that is a vector")
        lists, shape = [], []
        sizes = iter(self.shape)
        for item in index:
            if item is None:
                shape.append(1)
                continue
            size = next(sizes)
            if isinstance(item, slice):
                lists.append(range(*item.indices(size)))
            elif isinstance(item, Array):
                lists.append(item.items)
            else:
                lists.append([item])
                continue
            shape += item.shape if isinstance(item, Array) else [len(lists[-1])]
        self._check_size(shape)
        return Array(shape, [self.region.load(self.tensor, self.indices + place)
                             for place in itertools.product(*lists)])

    def unroll(self):
        """Returns all elements."""
        self._check_size(self.shape)
        if not self.shape:
            return self[()]
        return Array(self.shape, [
            self.region.load(self.tensor, self.indices + place)
            for place in itertools.product(*map(range, self.shape))])

    def _check_size(self, shape):
        if not all(isinstance(size, int) for size in shape):
            fail("a vector whose size is dynamic cannot be unrolled")
        count = torch.Size(shape).numel()
        if not 0 < count <= MAX_ELEMENTS:
            fail(f"a tensor of shape {tuple(shape)} cannot be unrolled; expected "
                 f"1 to {MAX_ELEMENTS} elements")

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[at] for at in range(len(self)))

    def __repr__(self):
        return f"<traced tensor of shape {tuple(self.shape)}>"


def check_capture(tensor, device):
    """Raises an error if a tensor cannot be read by a region."""
    if tensor.dtype not in ELEMENTS:
        fail(f"a captured tensor of dtype {tensor.dtype}; expected one of "
             f"{', '.join(str(d).removeprefix('torch.') for d in ELEMENTS)}")
    if tensor.dim() > MAX_RANK:
        fail(f"a captured tensor of rank {tensor.dim()}; expected at most "
             f"{MAX_RANK}")
    if tensor.layout is not torch.strided or tensor.is_nested:
        fail("a captured tensor that is not dense")
    if tensor.device != device and tensor.dim():
        fail("Expected all tensors to be on the same device, but found at least "
             f"two devices, {device} and {tensor.device}!", RuntimeError)

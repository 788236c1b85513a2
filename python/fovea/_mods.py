# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tracing a mod depends on, so that another call need not trace it.

    key, tensors, numbers = read_mods(mods)     # None three times: not known

The key has the code of the mod and of the functions that it calls, and the values of
all else that they read: numbers by value, containers by what they hold, objects by
the attributes that are read. Tensors, and integers that are operands, are numbered, and
listed apart: of these tracing may depend on what `_memo.Memo` knows them by. The key is
made anew at every call; two calls with one key have the same trace, if no number of a
tensor was read meanwhile, which a `Watch` sees. Of what is not understood there is no
key.
"""

import builtins
import functools
import math
import operator
import types
from collections import namedtuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from . import _vectors  # noqa: F401, with _functions fills in FUNCTIONS
from ._bytecode import CELL, GLOBAL, find_reads
from ._functions import find_region
from ._native import PLAIN
from ._values import ATTRIBUTES, FUNCTIONS, METHODS, Number, Traced

#: As many codes as are known.
_MOST = 4096

#: The longest list that is a part of a key.
_LONGEST = 256


class _Unknown(Exception):
    """It is not known what the mod reads."""


#: Attributes that change nothing: those of traced values, but for such as lists and
#: dictionaries have, too.
_PLAIN_ATTRIBUTES = frozenset(
    {*FUNCTIONS, *METHODS, *ATTRIBUTES, "shape"} - {"requires_grad_"}
    - {*dir(list), *dir(dict), *dir(set)})

#: Python's functions of which the results depend on nothing but their arguments.
_FUNCTIONS_OF_PYTHON = (
    abs, all, any, bool, divmod, enumerate, filter, float, int, isinstance, len, list,
    map, max, min, pow, range, reversed, round, slice, sorted, sum, tuple, zip,
    functools.reduce, *(
        getattr(operator, name) for name in (
            "abs", "add", "and_", "eq", "floordiv", "ge", "getitem", "gt", "inv",
            "invert", "le", "lt", "matmul", "mod", "mul", "ne", "neg", "not_", "or_",
            "pos", "pow", "sub", "truediv", "xor")), *(
        found for found in vars(math).values()
        if type(found) is types.BuiltinFunctionType))


def _find_functions():
    """Returns the functions that a mod may call and that need not be read."""
    found = set(_FUNCTIONS_OF_PYTHON)
    for module in (torch, torch.nn.functional, torch.special, torch.linalg):
        for name in FUNCTIONS:
            function = getattr(module, name, None)
            if type(function) in (types.BuiltinFunctionType, types.FunctionType):
                found.add(function)
    return frozenset(found)


_FUNCTIONS = _find_functions()

#: Types of which two values that are equal are the same to a mod.
_VALUES = frozenset((int, bool, str, type(None), type(Ellipsis), range, torch.dtype,
                     torch.device))

_LISTS = frozenset((tuple, list, torch.Size))

#: Types of values that have no attributes but of their type, or whose attributes are
#: checked.
_LEAVES = _VALUES | _LISTS | {
    *PLAIN, float, dict, Number, functools.partial, types.FunctionType, types.MethodType,
    types.BuiltinFunctionType}

#: Descriptors that do nothing but to read a field.
_FIELDS = (types.MemberDescriptorType, type(namedtuple("_Field", "x").x))

_MISSING = object()

# By the identity of a code, and whether its first parameter is an object.
_known = {}


def _find_reads(code, has_self):
    found = _known.get((id(code), has_self))
    if found is None:
        if len(_known) >= _MOST:
            _known.clear()
        # The code is kept, so that its identity stays its own.
        found = _known[id(code), has_self] = (
            find_reads(code, _PLAIN_ATTRIBUTES, has_self), code)
    return found[0]


def read_mods(mods):
    """Returns the key of the trace of mods, and the tensors and the integers that they
    may capture, in the key's order; or None three times."""
    for at in range(torch._C._len_torch_function_stack()):
        if type(torch._C._get_function_stack_at(at)) is not DeviceContext:
            return None, None, None  # The mode of another would see the mods' functions.
    reader = _Reader()
    try:
        for mod in mods:
            reader.read_mod(mod)
    except (_Unknown, RecursionError):
        return None, None, None
    # The type of numbers of Python where no operand decides it.
    reader.key.append(torch.get_default_dtype())
    return reader.key, reader.tensors, reader.numbers


class _Reader:
    """Reads mods for one call."""

    __slots__ = ("key", "tensors", "numbers", "_seen", "_has_lists", "_updates")

    def __init__(self):
        self.key = []
        self.tensors = []
        self.numbers = []
        # By the identity of a tensor, number or function: what stands for it.
        self._seen = {}
        self._has_lists = self._updates = False

    def read_mod(self, mod):
        """Adds a mod: also an object that is called."""
        kind = type(mod)
        if kind not in _LEAVES:
            function = _find_in_class(kind, "__call__")
            if type(function) is types.FunctionType:
                self._read_method(function, mod)
                return
        self.read(mod)

    def read(self, value):
        """Adds a value that a mod reads."""
        key = self.key
        kind = type(value)
        if kind in PLAIN:
            at = self._seen.get(id(value))
            if at is None:
                if value.layout is not torch.strided or value.is_nested:
                    raise _Unknown
                self._check_attributes(value)
                at = self._seen[id(value)] = len(self.tensors)
                self.tensors.append(value)
            key += (kind, at)
        elif kind in _VALUES:
            key += (kind, value)
        elif kind is Number:
            if type(value.number) is not int:
                raise _Unknown
            # Two of one number are two operands.
            at = self._seen.get(id(value))
            if at is None:
                at = self._seen[id(value)] = len(self.numbers)
                self.numbers.append(value)
            key += (kind, at)
        elif kind is float:
            # 0.0 equals -0.0.
            key += (kind, value if value else str(value))
        elif kind is types.FunctionType and value not in _FUNCTIONS:
            self._read_function(value)
        elif kind in _LISTS:
            self._note_list(value)
            for item in value:
                self.read(item)
        elif kind is dict:
            self._note_list(value)
            for name, item in value.items():
                self.read(name)
                self.read(item)
        elif kind is types.MethodType:
            self._check_attributes(value.__func__)
            self._read_method(value.__func__, value.__self__)
        elif kind is functools.partial:
            self._check_attributes(value)
            key.append(kind)
            for item in (value.func, value.args, value.keywords):
                self.read(item)
        elif kind is types.BuiltinFunctionType or kind is type or (
                kind is types.FunctionType):
            if value not in _FUNCTIONS:
                raise _Unknown
            key.append(value)
        else:
            raise _Unknown
        if self._has_lists and self._updates:
            raise _Unknown  # Either alone changes nothing.

    def _note_list(self, value):
        if len(value) > _LONGEST:
            raise _Unknown
        kind = type(value)
        self._has_lists |= kind is list or kind is dict
        self.key += (kind, len(value))

    @staticmethod
    def _check_attributes(value):
        """Refuses a value that has attributes which hide those of its type."""
        if value.__dict__ and not _PLAIN_ATTRIBUTES.isdisjoint(value.__dict__):
            raise _Unknown

    def _read_function(self, function):
        at = self._seen.get(id(function))
        if at is not None:
            self.key += (types.FunctionType, at)
            return
        self._seen[id(function)] = len(self.key)
        self._check_attributes(function)
        self._read_code(function, None, False)

    def _read_method(self, function, owner):
        if type(function) is not types.FunctionType:
            raise _Unknown
        # A method that calls itself would have no end here.
        place = (id(function), id(owner))
        at = self._seen.get(place)
        if at is not None:
            self.key += (types.MethodType, at)
            return
        self._seen[place] = len(self.key)
        self._read_code(function, owner, True)

    def _read_code(self, function, owner, has_self):
        reads = _find_reads(function.__code__, has_self)
        scope = function.__globals__
        if reads is None or getattr(function, "__builtins__", vars(builtins)) is not (
                vars(builtins)):
            raise _Unknown
        self._updates |= reads.updates
        self.key.append(reads)
        if function.__defaults__ is not None or function.__kwdefaults__ is not None:
            self.read(function.__defaults__)
            self.read(function.__kwdefaults__)
        for kind, root, names, start in reads.paths:
            if kind == CELL:
                try:
                    value = function.__closure__[root].cell_contents
                except ValueError:
                    raise _Unknown from None  # The cell is empty.
            elif kind == GLOBAL:
                value = scope.get(root, _MISSING)
                if value is _MISSING:
                    value = getattr(builtins, root, _MISSING)
                    if value is _MISSING:
                        raise _Unknown
            else:
                value = owner
            for at, name in enumerate(names):
                if type(value) in _LEAVES:
                    if at < start:
                        raise _Unknown
                    break
                value = _find_attribute(value, name)
            self.read(value)


def _find_in_class(kind, name):
    """Returns what a class has under a name, as it is."""
    for base in kind.__mro__:
        found = base.__dict__.get(name, _MISSING)
        if found is not _MISSING:
            return found
    return _MISSING


def _find_attribute(value, name):
    """Returns an attribute of an object, where that runs no code of others."""
    kind = type(value)
    if kind is types.ModuleType:
        found = value.__dict__.get(name, _MISSING)
        if found is _MISSING:
            raise _Unknown
        return found
    if kind is type:
        found = _find_in_class(value, name)
        if found is _MISSING or hasattr(type(found), "__get__"):
            raise _Unknown
        return found
    if kind.__getattribute__ is not object.__getattribute__:
        raise _Unknown
    found = _find_in_class(kind, name)
    if type(found) in _FIELDS:
        try:
            return found.__get__(value)
        except AttributeError:
            raise _Unknown from None
    if found is not _MISSING and hasattr(type(found), "__set__"):
        raise _Unknown  # A property, or the like.
    own = getattr(value, "__dict__", None)
    if type(own) is dict and name in own:
        return own[name]
    if type(found) is types.FunctionType:
        return types.MethodType(found, value)
    if found is not _MISSING:
        if hasattr(type(found), "__get__"):
            raise _Unknown
        return found
    if getattr(kind, "__getattr__", None) is torch.nn.Module.__getattr__:
        for part in ("_parameters", "_buffers", "_modules"):
            if name in own[part]:
                return own[part][name]
    raise _Unknown


def _find_metadata():
    """Returns the functions that read nothing but what a memo knows a tensor by, or
    whether two tensors share memory."""
    own = torch.Tensor
    fields = (own.shape, own.dtype, own.device, own.ndim, own.requires_grad, own.is_cuda,
              own.layout, own.is_nested)
    return frozenset((*(field.__get__ for field in fields), own.dim, own.size, own.numel,
                      own.__len__, own.is_floating_point, own.data_ptr, own.stride))


_METADATA = _find_metadata()


class Watch(TorchFunctionMode):
    """While mods are traced, sees whether more is asked of the tensors than decides
    the text: of a number of theirs, or for another tensor that is made of them."""

    def __init__(self, tensors):
        super().__init__()
        self._tensors = {id(x) for x in tensors}
        self.is_clean = True

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = (*args, *kwargs.values())
        if find_region(given) is not None:
            with self:
                return Traced.__torch_function__(function, types, args, kwargs)
        if function not in _METADATA and self._find(given):
            self.is_clean = False
        return function(*args, **kwargs)

    def _find(self, given):
        """Returns True if one of the tensors is given."""
        return any(self._find(x) if isinstance(x, (tuple, list)) else
                   id(x) in self._tensors for x in given)

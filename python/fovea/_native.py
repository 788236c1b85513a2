# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls from PyTorch's dispatcher to the library, without Python in between, and
from Python to the library, without a dispatcher.

    fovea::call(Tensor[] operands, int[] numbers, int function) -> Tensor[]

calls a compiled function; its kernel, and that of `fovea::attention`, are the
library's own, written to PyTorch's stable C interface. Where PyTorch lacks
something that they need, there is no `call`, and Python makes the calls.

Half of the time of such a call is PyTorch's, which looks for what may take part in
it. Nothing does where tensors are plain and without gradients, and no mode, transform,
tracing or profiler is on: functions that the library makes then read tensors by
DLPack's exchange of C functions. For everything else they return None.
"""

import ctypes
import os

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ._library import (Tensor, TorchFind, TorchObjects, get_capsule, lib,
                       make_python_function, register_python)

#: Types of tensors that are nothing but memory.
PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_transformed():
    """Returns True within a transform of `torch.func`."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_watched():
    """Returns True if a mode or a transform of `torch.func` takes part in the
    operators that are called."""
    return bool(torch._C._len_torch_dispatch_stack()) or is_transformed()


class NativeFunction:
    """A function of a module for `call`."""

    def __init__(self, module, number):
        self._module = module  # It must outlive the function.
        self.address = lib.fovea_torch_function_create(module.handle, number,
                                                       module.is_gpu)
        #: Calls the function if nothing else takes part; None if there is no such.
        self.run = _has_functions and make_python_function(self.address) or None

    def __del__(self, destroy=lib.fovea_torch_function_destroy):
        destroy(self.address)


@TorchFind
def _find(text, length, is_gpu, is_deterministic, is_swapped, operands, count,
          message, room):
    """Compiles a text that an operator's kernel has not seen."""
    try:
        from . import _operator
        tensors = (Tensor * count).from_address(operands)
        function = _operator.find(
            ctypes.string_at(text, length).decode(),
            torch.device("cuda" if is_gpu else "cpu"), bool(is_deterministic),
            # Of tensors that no function takes the rank is negative.
            [tuple(x.shape[:max(x.rank, 0)]) for x in tensors], bool(is_swapped))
        return function.native.address
    except BaseException as error:
        text = str(error).encode()[:room - 1]
        ctypes.memmove(message, text + b"\0", len(text) + 1)
        return None


def _register(library):
    """Registers the library's kernels. Returns True if PyTorch has all that they
    need."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    paths = [os.path.join(folder, f"libtorch_{name}.so").encode()
             for name in ("cpu", "cuda")]
    if torch.version.cuda is None:
        paths[1] = None
    library.define("call(Tensor[] operands, int[] numbers, int function) "
                   "-> Tensor[]")
    library.impl("call", torch.library.fallthrough_kernel, "Autograd")
    library.define("accepts(Tensor x, SymInt[] numbers, str text) -> Tensor[]")
    return lib.fovea_torch_register(*paths, _find) is None


def _accepts():
    """Returns True if PyTorch can call the library's kernel of
    `fovea::attention`."""
    try:
        # Where this module is imported tensors may be fake.
        with torch.no_grad(), _disable_current_modes():
            x = torch.empty(0, device="cpu")
            return torch.ops.fovea.accepts(x, [1, 2], "text") == []
    except RuntimeError:
        return False


def _register_functions():
    """Returns True if PyTorch has what functions without a dispatcher need, part of
    which is private."""
    try:
        from torch import _C
        dlpack = get_capsule(torch.Tensor.__dlpack_c_exchange_api__,
                             b"dlpack_exchange_api")
        watchers = (_C._len_torch_dispatch_stack,
                    _C._functorch.peek_interpreter_stack, _C._is_tracing,
                    _C._autograd._profiler_enabled)
        return bool(register_python(dlpack, TorchObjects(
            *PLAIN, watchers,
            _C._aoti.alloc_tensors_by_stealing_from_void_ptrs)))
    except (AttributeError, ValueError):
        return False


_library = torch.library.Library("fovea", "FRAGMENT")

#: The operator, None if PyTorch lacks what it needs.
call = torch.ops.fovea.call.default if _register(_library) else None

#: The library's kernel of `fovea::attention` can be called.
has_attention = call is not None and _accepts()

_has_functions = has_attention and _register_functions()

#: `fovea::attention` where nothing else takes part; else it returns None. None if there
#: is no such function.
attend = make_python_function(None) if _has_functions else None

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libfovea.so as ctypes sees it: include/fovea-c/fovea.h, name by name."""

import ctypes
import os
import pathlib
import sys

MAX_RANK = 8

F16, BF16, F32, F64, BOOL, I8, I16, I32, I64 = range(9)

#: MLIR's name of each element type, by its number.
DTYPE_NAMES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")


class Error(Exception):
    """An error that Fovea reports: the message names the operation or the
    operand, what was expected and what came."""


class Options(ctypes.Structure):
    _fields_ = [
        ("target", ctypes.c_char_p),
        ("strategy", ctypes.c_char_p),
        ("arch", ctypes.c_char_p),
        ("cpu", ctypes.c_char_p),
        ("opt_level", ctypes.c_int),
        ("deterministic", ctypes.c_int),
        ("check_bounds", ctypes.c_int),
        ("exact_functions", ctypes.c_int),
        ("typical_length", ctypes.c_int64),
        ("operands", ctypes.c_void_p),
        ("num_operands", ctypes.c_size_t),
    ]


class GradientOptions(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_char_p),
        ("recompute", ctypes.c_char_p),
        ("textbook", ctypes.c_int),
        ("partition", ctypes.c_int),
        ("target", ctypes.c_char_p),
    ]


class Type(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("is_scalar", ctypes.c_int32),
        ("is_writable", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("name", ctypes.c_char_p),
    ]


class Tensor(ctypes.Structure):
    """fovea_tensor."""
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("owner", ctypes.c_void_p),
    ]


TENSOR_SIZE = ctypes.sizeof(Tensor)


def tensor_format(rank):
    """The members of a fovea_tensor of this rank, for the struct module: data,
    dtype, rank, sizes, strides, and 8 bytes of owner."""
    sizes = f"{rank}q{8 * (MAX_RANK - rank)}x"
    return f"Pii{sizes}{sizes}"


#: What finds the function of an operator's text, see fovea_torch_find.
TorchFind = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
    ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
    ctypes.c_void_p, ctypes.c_size_t)


class TorchObjects(ctypes.Structure):
    """fovea_torch_python."""
    _fields_ = [
        ("tensor", ctypes.py_object),
        ("parameter", ctypes.py_object),
        ("watchers", ctypes.py_object * 4),
        ("take_tensors", ctypes.py_object),
    ]


def _find():
    override = os.environ.get("FOVEA_LIBRARY")
    if override:
        return override
    here = pathlib.Path(__file__).resolve().parent
    # In an installed package; in a checkout that was built; in a package that
    # was installed with -e, whose library is not where its sources are.
    for folder in (here, here.parents[1] / "build" / "lib",
                   *sys.modules[__package__].__path__):
        path = pathlib.Path(folder) / "libfovea.so"
        if path.exists():
            return str(path)
    return "libfovea.so"


def _load():
    path = _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot load Fovea's library '{path}': {error}; build it with "
            "scripts/demo or pip install, or set FOVEA_LIBRARY to its path"
        ) from None
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    out = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
        ("fovea_status_get_message", text, [pointer]),
        ("fovea_status_destroy", None, [pointer]),
        ("fovea_get_version", text, []),
        ("fovea_get_num_threads", ctypes.c_int, []),
        ("fovea_set_num_threads", None, [ctypes.c_int]),
        ("fovea_buffer_get_data", pointer, [pointer]),
        ("fovea_buffer_get_size", size, [pointer]),
        ("fovea_buffer_destroy", None, [pointer]),
        ("fovea_context_create", pointer, [out]),
        ("fovea_compile", pointer,
         [pointer, text, size, ctypes.POINTER(Options), out]),
        ("fovea_differentiate", pointer,
         [text, size, ctypes.POINTER(GradientOptions), out]),
        ("fovea_module_destroy", None, [pointer]),
        ("fovea_module_emit", pointer, [pointer, text, out]),
        ("fovea_module_get_num_functions", size, [pointer]),
        ("fovea_module_get_function_name", text, [pointer, size]),
        ("fovea_module_find_function", pointer,
         [pointer, text, ctypes.POINTER(size)]),
        ("fovea_module_get_num_operands", size, [pointer, size]),
        ("fovea_module_get_num_results", size, [pointer, size]),
        ("fovea_module_get_operand_type", pointer,
         [pointer, size, size, ctypes.POINTER(Type)]),
        ("fovea_module_get_result_type", pointer,
         [pointer, size, size, ctypes.POINTER(Type)]),
        ("fovea_module_call", pointer,
         [pointer, size, pointer, size, pointer, size]),
        ("fovea_module_launch", pointer,
         [pointer, size, pointer, size, pointer, pointer, size]),
        ("fovea_module_get_remarks", pointer, [pointer, out]),
        ("fovea_module_get_resources", pointer, [pointer, out]),
        ("fovea_module_report", pointer, [pointer, size, pointer, size, out]),
        ("fovea_module_tune", pointer,
         [pointer, size, pointer, size, size, out]),
        ("fovea_owner_release", None, [pointer]),
        ("fovea_owner_to_dlpack", pointer, [pointer]),
        ("fovea_torch_function_create", pointer, [pointer, size, ctypes.c_int]),
        ("fovea_torch_function_destroy", None, [pointer]),
        ("fovea_torch_register", text, [text, text, TorchFind]),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()


# These need Python's lock, and are objects of their own: types that are set on
# ctypes.pythonapi's are set for all packages of the process.
register_python = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(TorchObjects))(
        ("fovea_torch_register_python", lib))
make_python_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
    ("fovea_torch_function_get_python", lib))
get_capsule = ctypes.PYFUNCTYPE(
    ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi))


def check(status):
    """Raises the error that a function returned, if it did."""
    if status:
        message = lib.fovea_status_get_message(status)
        lib.fovea_status_destroy(status)
        raise Error(message.decode(errors="replace"))


def take_text(function, *arguments):
    """Returns the bytes of the buffer that a function makes."""
    buffer = create(function, *arguments)
    try:
        return ctypes.string_at(lib.fovea_buffer_get_data(buffer),
                                lib.fovea_buffer_get_size(buffer))
    finally:
        lib.fovea_buffer_destroy(buffer)


def create(function, *arguments):
    """Calls a function whose last parameter is where it puts an object."""
    result = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(result)))
    return result.value

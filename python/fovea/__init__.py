# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea compiles graphs of attention to fused kernels.

    attend = fovea.compile(text)      # MLIR: attn, linalg, tensor, arith, math
    output = attend(q, k, v)          # NumPy arrays or PyTorch tensors
    print(attend.mlir("tiled"))       # any level on the way to the machine
    attend = fovea.differentiable(text)   # with gradients, for PyTorch
    output = fovea.flex_attention(q, k, v, score_mod)   # FlexAttention's mods
    import fovea.jax                  # the same for JAX

Arrays are used where they are, without a copy, whatever their strides, if
elements are neighbours along the last dimension; others are copied first.
Results are of the kind that the operands are. Everything may be used from
several threads at once.
"""

import ctypes
import html
import importlib
import json
import operator
import struct
from ctypes import c_char
from typing import TYPE_CHECKING

from numpy import ndarray

from . import _arrays, _library
from ._autograd import Differentiable
from ._explain import Explanation, Kernel, explain, write_html
from ._library import Error, check, create, lib, take_text
from ._progress import show

__all__ = ["Differentiable", "Error", "Explanation", "Function", "Kernel",
           "Report", "STRATEGIES", "Tuning", "compile", "differentiable",
           "differentiate", "explain", "get_num_threads", "set_num_threads"]

if TYPE_CHECKING:
    from ._attention import attention, scaled_dot_product_attention
    from ._flash import (flash_attn_func, flash_attn_varlen_func,
                         flash_attn_with_kvcache)
    from ._importers import from_jax, from_torch
    from ._plots import find_tiles, plot_mask, plot_roofline
    from ._flex import (AuxOutput, AuxRequest, and_masks, create_mask,
                        flex_attention, noop_mask, or_masks, trace)
    from ._regions import TraceError

# Imported when they are first used, for most import PyTorch.
_LATE = {
    "flex_attention": "_flex", "trace": "_flex", "AuxOutput": "_flex",
    "AuxRequest": "_flex", "and_masks": "_flex", "create_mask": "_flex",
    "noop_mask": "_flex", "or_masks": "_flex", "TraceError": "_regions",
    "attention": "_attention", "scaled_dot_product_attention": "_attention",
    "flash_attn_func": "_flash", "flash_attn_varlen_func": "_flash",
    "flash_attn_with_kvcache": "_flash",
    "from_jax": "_importers", "from_torch": "_importers",
    "find_tiles": "_plots", "plot_mask": "_plots", "plot_roofline": "_plots",
}


def __getattr__(name):
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module 'fovea' has no attribute '{name}'")
    found = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_LATE})

__version__ = lib.fovea_get_version().decode()

# The ways to compute attention, see `compile`.
STRATEGIES = ("fused", "two-pass", "three-pass", "unfused")

_context = create(lib.fovea_context_create)


def get_num_threads():
    """Returns the number of threads that a call uses."""
    return lib.fovea_get_num_threads()


def set_num_threads(threads):
    """Sets the number of threads that a call uses. 0 means the default:
    FOVEA_NUM_THREADS, or what PyTorch uses where it is imported, or one for
    each core."""
    threads = operator.index(threads)
    if not 0 <= threads < 1 << 31:
        raise ValueError(f"expected 0 threads or more, got {threads}")
    lib.fovea_set_num_threads(threads)


def compile(text, target="host", *, entry=None, strategy="fused",
            arch="native", cpu=None, opt_level=None, deterministic=False,
            check_bounds=False, exact_functions=False, typical_length=None,
            operands=()):
    """Compiles a module of functions on tensors, given as MLIR's text.

    Returns the function `entry`, or the only one, as a `Function`.

    target: "host"; "gpu", what suits the GPU here; or a GPU by its name:
        "sm_80", "sm_86", "sm_89", "sm_90a" or "sm_120". A function for a GPU takes PyTorch tensors that are on it, without a copy,
        runs on PyTorch's current stream and does not wait; other operands are
        copied to the GPU and the results back.
    strategy: how attention is computed: "fused" (over the keys once),
        "two-pass", "three-pass", or "unfused" (the graph as written).
    arch: "native", "amx", "avx512_bf16", "avx512", "avx2" or
        "generic".
    cpu: a processor by LLVM's name, instead of the one that `arch` implies.
    opt_level: effort of code generation, 0 to 3.
    deterministic: results are the same bits in every run. A host's always are;
        on a GPU gradients of attention then take longer, and those of captured
        tensors whose elements scores share more memory.
    check_bounds: every call first runs the graph as it is written, on the host,
        and raises `Error` where an index into a tensor is out of bounds or a
        divisor of integers is 0, with the operation and the numbers. Slow;
        without it such operands lead to wrong results or end the process.
        Operands must be in host memory.
    exact_functions: scores never use a GPU's approximate tanh, and a host's
        powers of two are as exact as those of f32. Otherwise scores of bf16 use
        it, with a relative error of 2^-11, and a host's powers, where weights are
        rounded for products of 16-bit pairs, have one of 2^-13 for results in bf16
        and of 2^-18 for f16, but not for a log-sum-exp in f32; and tensor cores may
        multiply f32 as three parts in bf16, with errors below those of f32, which
        keeps numbers below 2^-110 to 2^-134 only.
    typical_length: the lengths that a GPU's dynamic ones are taken for where the
        way in which attention is computed is chosen; code serves all lengths in
        any case. None: 4096, and where the model finds it faster there is code for
        lengths of some 1024 as well, which the first call that it serves compiles.
        The two may differ in how they round.
    operands: those of a call that will follow, if they are known, as tensors,
        numbers, or tuples of the sizes of tensors. What serves such a call of the
        only function, as that code for short lengths, is then compiled at the same
        time, not by the call, unless the text has been compiled before.
    """
    module = _compile(text, target, strategy, arch, cpu, opt_level,
                      deterministic, check_bounds, exact_functions,
                      typical_length, operands)
    number = ctypes.c_size_t()
    check(lib.fovea_module_find_function(module.handle, _encode(entry),
                                         ctypes.byref(number)))
    return Function(module, number.value)


def differentiate(text, *, entry=None, recompute="auto", textbook=False,
                  partition=False, target="host"):
    """Differentiates the function `entry`, or the only one, and returns the
    text of a module with its gradients, which can be read, edited and compiled.

    For `@f` that is `@f_gradient(operands, cotangents) -> (results, gradients)`
    with a cotangent for each result and a gradient for each operand that is a
    tensor of floating-point numbers.

    recompute: where the backward pass computes the probabilities again, instead
        of having them saved: "always", "never", or "auto", where that is
        predicted to be faster.
    textbook: op by op, as the graph is written, with nothing fused.
    partition: as two functions, `@f_forward(operands) -> (results, saved)` and
        `@f_backward(operands, results, saved, cotangents) -> gradients`, of
        which the second takes only what it reads.
    target: what the text will be compiled for, which decides what is
        recomputed.
    """
    options = _library.GradientOptions(_encode(entry), _encode(recompute),
                                       bool(textbook), bool(partition),
                                       _encode(target))
    data = _encode_text(text)
    return take_text(lib.fovea_differentiate, data, len(data),
                     ctypes.byref(options)).decode()


def differentiable(text, target="host", *, entry=None, recompute="auto",
                   textbook=False, strategy="fused", arch="native", cpu=None,
                   opt_level=None, deterministic=False, check_bounds=False,
                   exact_functions=False, typical_length=None):
    """Compiles a function and its backward pass, as a function of PyTorch
    tensors that autograd goes through. Options are those of `compile` and of
    `differentiate`.

        attend = fovea.differentiable(text)
        attend(q, k, v).sum().backward()
    """
    split = differentiate(text, entry=entry, recompute=recompute,
                          textbook=textbook, partition=True, target=target)
    module = _compile(split, target, strategy, arch, cpu, opt_level,
                      deterministic, check_bounds, exact_functions,
                      typical_length)
    return Differentiable(Function(module, 0), Function(module, 1))


def _encode(value):
    return None if value is None else str(value).encode()


def _encode_text(text):
    if not isinstance(text, str):
        raise TypeError("expected a module's text as a str, got "
                        f"{type(text).__name__}")
    return text.encode()


def _pack_shapes(operands):
    """Returns tensors of the library, of which only the shapes are those of
    `operands`."""
    shapes = [tuple(getattr(x, "shape", x if isinstance(x, tuple) else ()))
              for x in operands]
    for index, shape in enumerate(shapes):
        if len(shape) > _library.MAX_RANK:
            raise Error(f"operand {index} has rank {len(shape)}; expected at most "
                        f"{_library.MAX_RANK}")
    return (_library.Tensor * len(shapes))(
        *(_library.Tensor(rank=len(shape), shape=shape) for shape in shapes))


def _compile(text, target, strategy, arch, cpu, opt_level, deterministic,
             check_bounds, exact_functions, typical_length, operands=()):
    if opt_level is not None and opt_level not in range(4):
        raise Error(f"opt_level is {opt_level}; expected 0 to 3")
    if typical_length is not None and not 1 <= typical_length < 1 << 63:
        raise Error(f"typical_length is {typical_length}; expected 1 or more")
    shapes = _pack_shapes(operands)
    options = _library.Options(
        _encode(target), _encode(strategy), _encode(arch), _encode(cpu),
        0 if opt_level is None else opt_level + 1, bool(deterministic),
        bool(check_bounds), bool(exact_functions), typical_length or 0,
        ctypes.addressof(shapes), len(shapes))
    data = _encode_text(text)
    with show(f"compiling for {target}"):
        handle = create(lib.fovea_compile, _context, data, len(data),
                        ctypes.byref(options))
    return _Module(handle, target != "host")


class _Module:
    """Holds a compiled module for its functions."""

    def __init__(self, handle, is_gpu):
        self.handle = handle
        self.is_gpu = is_gpu

    def __del__(self, destroy=lib.fovea_module_destroy):
        destroy(self.handle)


class _Type:
    """The type of an operand or a result."""

    def __init__(self, get, module, function, index):
        raw = _library.Type()
        check(get(module, function, index, ctypes.byref(raw)))
        self.number = raw.dtype
        self.dtype = _library.DTYPE_NAMES[raw.dtype]
        self.rank = raw.rank
        self.is_scalar = bool(raw.is_scalar)
        self.is_writable = bool(raw.is_writable)
        self.shape = tuple(
            None if size < 0 else size for size in raw.shape[:raw.rank])
        self.name = raw.name.decode()

    def __str__(self):
        if self.is_scalar:
            return f"{self.dtype} number"
        sizes = "x".join("?" if size is None else str(size)
                         for size in self.shape)
        return f"{self.dtype} tensor of shape {sizes}"


class Report(dict):
    """FLOPs, bytes and seconds of each of the `strategies`; as a string, a
    table."""

    def __str__(self):
        return self["text"]

    def _repr_html_(self):
        return f"<pre>{html.escape(str(self))}</pre>"


class Tuning(Report):
    """The schedules of each of the `attentions` of a function with their times,
    and the number of the `best`; as a string, a table."""


class Function:
    """A compiled function; call it with one argument for each operand.

    A call updates writable operands, those that the text marks as
    `{bufferization.writable = true}`, where they are: NumPy arrays or PyTorch
    tensors that share no memory with other operands.
    """

    def __init__(self, module, number):
        self._module = module
        self._number = number
        handle = module.handle
        self.name = lib.fovea_module_get_function_name(handle, number).decode()
        #: The types of the operands: `name`, `dtype`, `shape` (None where
        #: dynamic), `is_scalar`, `is_writable`.
        self.operands = [
            _Type(lib.fovea_module_get_operand_type, handle, number, index)
            for index in range(
                lib.fovea_module_get_num_operands(handle, number))
        ]
        #: The types of the results.
        self.results = [
            _Type(lib.fovea_module_get_result_type, handle, number, index)
            for index in range(lib.fovea_module_get_num_results(handle, number))
        ]
        self._pack = struct.Struct("".join(
            _library.tensor_format(operand.rank) + "8x"
            for operand in self.operands)).pack
        self._unpack = struct.Struct("".join(
            _library.tensor_format(result.rank) + "P"
            for result in self.results)).unpack_from
        self._expected = [(operand.number, operand.rank)
                          for operand in self.operands]
        self._result_ranks = [result.rank for result in self.results]
        self._memory = ctypes.c_char * (
            _library.TENSOR_SIZE * len(self.results))
        self._pack_results = struct.Struct("".join(
            _library.tensor_format(result.rank) + "8x"
            for result in self.results)).pack_into
        # Shapes of results by shapes of operands, as found by launches.
        self._known_shapes = {}
        self._writable = [index for index, operand in enumerate(self.operands)
                          if operand.is_writable]
        # By operand: True if it is a number.
        self._are_numbers = [operand.is_scalar for operand in self.operands]
        self._native = None
        self._run = None
        # PyTorch's operator takes tensors, and numbers that are integers.
        self._is_for_native = not all(self._are_numbers) and all(
            operand.number == _library.I64 for operand in self.operands
            if operand.is_scalar)

    def __call__(self, *operands):
        # Where Dynamo traces, it would warn of what it cannot see into.
        if self._run is not None and not _arrays.torch.is_compiling():
            results = self._run(*operands)
            if results is not None:
                if self._writable:
                    self._note_updates(operands, _arrays.torch)
                return results
        expected = self._expected
        if len(operands) != len(expected):
            raise Error(f"@{self.name}: expected {len(expected)} operands, "
                        f"got {len(operands)}")
        torch = _arrays.torch or _arrays.find_torch()
        if torch and torch.call and self._is_for_native:
            results = self._call_natively(operands, torch)
            if results is not None:
                self._note_updates(operands, torch)
                return results[0] if len(results) == 1 else tuple(results)
        write = _arrays.write_numpy
        words = []
        keepers = []
        # Arrays of exactly the usual kinds and types take a short path.
        for index, operand in enumerate(operands):
            number, rank = expected[index]
            kind = type(operand)
            if kind is ndarray:
                flags = operand.flags
                if (operand.dtype is _arrays.NUMPY_DTYPES[number]
                        and operand.ndim == rank and flags.c_contiguous
                        and flags.writeable and operand.size):
                    size = operand.itemsize
                    words += (ctypes.addressof(c_char.from_buffer(operand)),
                              number, rank, *operand.shape)
                    words += [stride // size for stride in operand.strides]
                    continue
            elif torch and isinstance(operand, torch.Tensor):
                write = torch.write
                if operand.is_cuda:
                    return self._launch(operands, torch, operand.device)
                if (operand.dtype is torch.dtypes[number] and operand.is_cpu
                        and not (operand.requires_grad
                                 and torch.is_grad_enabled())):
                    shape = operand.shape
                    if len(shape) == rank:
                        try:
                            words += (operand.data_ptr(), number, rank, *shape,
                                      *operand.stride())
                            continue
                        except RuntimeError:
                            # It has no memory of its own, as a sparse tensor:
                            # reading it raises an error that says what it is.
                            pass
            words += self._read(index, operand, torch, keepers)
        results = self._memory()
        status = lib.fovea_module_call(
            self._module.handle, self._number, self._pack(*words),
            len(expected), results, len(self._result_ranks))
        if status:
            check(status)
        self._note_updates(operands, torch)
        words = self._unpack(results)
        arrays = []
        at = 0
        for rank in self._result_ranks:
            arrays.append(write(words[at], words[at + 1],
                                words[at + 3:at + 3 + rank],
                                words[at + 3 + 2 * rank]))
            at += 4 + 2 * rank
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    @property
    def native(self):
        """The function for PyTorch's operator."""
        if self._native is None:
            from ._native import NativeFunction
            _arrays.find_torch()
            self._native = NativeFunction(self._module, self._number)
            self._run = self._native.run
        return self._native

    def _call_natively(self, operands, torch):
        """Calls the function by PyTorch's operator. Returns None if an operand
        is of another kind, and where the call fails: the longer road says
        why."""
        tensors, numbers = [], []
        for operand, is_number in zip(operands, self._are_numbers):
            if is_number:
                if type(operand) is not int:
                    return None
                numbers.append(operand)
            elif type(operand) in torch.plain and not (
                    operand.requires_grad and torch.is_grad_enabled()):
                tensors.append(operand)
            else:
                return None
        if torch.is_watched():
            return None
        try:
            return torch.call(tensors, numbers, self.native.address)
        except RuntimeError:
            return None

    def _launch(self, operands, torch, device):
        """Calls the function on a GPU's memory; operands of rank 0 that are
        numbers come from the host."""
        words = []
        keepers = []
        shapes = []
        for index, operand in enumerate(operands):
            if self.operands[index].is_scalar:
                words += self._read(index, operand, torch, keepers)
                continue
            if not isinstance(operand, torch.Tensor):
                raise Error(f"{self._describe(index)}: expected a PyTorch "
                            f"tensor on {device}, as other operands are, got "
                            f"{type(operand).__name__}")
            try:
                data, number, shape, strides, keeper = torch.read_on_gpu(
                    operand, device)
            except Error as error:
                raise Error(f"{self._describe(index)}: {error}") from None
            if len(shape) != self.operands[index].rank:
                raise Error(f"{self._describe(index)}: expected "
                            f"{self.operands[index]}, got a tensor of rank "
                            f"{len(shape)}")
            self._check_writable(index, operand, keeper)
            words += (data, number, len(shape), *shape, *strides)
            keepers.append(keeper)
            shapes.append(shape)
        key = tuple(shapes)
        known = self._known_shapes.get(key)
        results = self._memory()
        arrays = None
        if known is not None:
            # PyTorch's own memory, which its allocator reuses.
            arrays = [
                torch.empty(shape, dtype=torch.dtypes[result.number],
                            device=device)
                for shape, result in zip(known, self.results)
            ]
            room = []
            for array, result in zip(arrays, self.results):
                room += (array.data_ptr(), result.number, result.rank,
                         *array.shape, *array.stride())
            self._pack_results(results, 0, *room)
        status = lib.fovea_module_launch(
            self._module.handle, self._number, self._pack(*words),
            len(self._expected), torch.get_stream(device), results,
            len(self._result_ranks))
        if status:
            check(status)
        self._note_updates(operands, torch)
        if arrays is None:
            words = self._unpack(results)
            arrays = []
            at = 0
            for rank in self._result_ranks:
                data, number = words[at:at + 2]
                shape = words[at + 3:at + 3 + rank]
                owner = words[at + 3 + 2 * rank]
                # Nothing is allocated for a result without elements.
                arrays.append(
                    torch.write(data, number, shape, owner) if owner else
                    torch.empty(shape, dtype=torch.dtypes[number],
                                device=device))
                at += 4 + 2 * rank
            self._known_shapes[key] = [tuple(a.shape) for a in arrays]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _read(self, index, operand, torch, keepers):
        """Reads an operand of any kind as the words that describe it."""
        expected = self.operands[index]
        try:
            data, number, shape, strides, keeper = _arrays.read(
                operand, expected.number, expected.is_scalar, torch)
        except Error as error:
            raise Error(f"{self._describe(index)}: {error}") from None
        rank = len(shape)
        if rank != expected.rank:
            raise Error(f"{self._describe(index)}: expected {expected}, got a "
                        f"tensor of rank {rank}")
        self._check_writable(index, operand, keeper)
        keepers.append(keeper)
        return (data, number, rank, *shape, *strides)

    def _check_writable(self, index, operand, keeper):
        """Refuses a writable operand that was read from a copy, or may not be
        written."""
        if not self.operands[index].is_writable:
            return
        if keeper is not operand:
            raise Error(f"{self._describe(index)}: it is updated in place; expected "
                        "a NumPy array or a PyTorch tensor that is used where it is, "
                        "with elements next to each other along the last dimension, "
                        f"got {type(operand).__name__}")
        if type(operand) is ndarray and not operand.flags.writeable:
            raise Error(f"{self._describe(index)}: it is updated in place; expected "
                        "an array that may be written")

    def _note_updates(self, operands, torch):
        """Tells autograd which tensors have changed."""
        for index in self._writable:
            if torch and isinstance(operands[index], torch.Tensor):
                torch.note_update(operands[index])

    def _describe(self, index):
        name = self.operands[index].name
        return (f"operand {index}{f' (%{name})' if name else ''} of "
                f"@{self.name}")

    def mlir(self, level="fused"):
        """The module's text at a level: "attn", "fused", "tiled" or "llvm"; of
        a GPU also "tile", "gpu" or "nvvm"."""
        if level in ("asm", "obj", "ptx", "cubin"):
            raise Error(f"unknown level '{level}'; expected attn, fused, tiled, "
                        "tile, gpu, nvvm or llvm")
        return self._emit(level).decode()

    @property
    def asm(self):
        """The module's machine code as assembly text."""
        return self._emit("asm").decode()

    @property
    def obj(self):
        """The module's machine code as the bytes of an object file."""
        return self._emit("obj")

    @property
    def ptx(self):
        """The kernels of a module for a GPU, as PTX."""
        return self._emit("ptx").decode()

    @property
    def cubin(self):
        """The kernels of a module for a GPU, as the bytes of a cubin."""
        return self._emit("cubin")

    @property
    def remarks(self):
        """What is not as good as it could be: what the compiler gave up, and
        what is amiss on this machine; a list of texts."""
        return take_text(lib.fovea_module_get_remarks,
                         self._module.handle).decode().splitlines()

    @property
    def resources(self):
        """The resources that each kernel needs, from ptxas: a list of
        dictionaries with `name`, `registers`, `spill_store_bytes`, ..."""
        return json.loads(take_text(lib.fovea_module_get_resources,
                                    self._module.handle))

    def _emit(self, level):
        return take_text(lib.fovea_module_emit, self._module.handle,
                         level.encode())

    def _read_measured(self, operands):
        """The operands of a measurement, in memory, and what keeps them there."""
        if operands and len(operands) != len(self.operands):
            raise Error(f"@{self.name}: expected {len(self.operands)} operands, "
                        f"got {len(operands)}")
        torch = _arrays.torch or _arrays.find_torch()
        words = []
        keepers = []
        for index, operand in enumerate(operands):
            words += self._read(index, operand, torch, keepers)
        return self._pack(*words) if operands else None, keepers

    def report(self, *operands):
        """Runs every strategy on the operands, for some seconds, and compares
        them, as a `Report`. Without operands, random ones are made if all sizes
        are static."""
        packed, _keepers = self._read_measured(operands)
        with show(f"measuring @{self.name} by every strategy"):
            text = take_text(lib.fovea_module_report, self._module.handle,
                             self._number, packed, len(operands))
        return Report(json.loads(text))

    def tune(self, *operands, candidates=None):
        """Compiles and measures the schedules that the model considers valid, on
        the operands, and keeps the fastest on disk, for the same text with the
        same options on this machine: processes that start later take it. This
        function stays as it is. Returns the measurements as a `Tuning`.

        candidates: the number of schedules to try for each attention, those with
            the least predicted times first; all of them, unless it is given.
        """
        if candidates is not None and candidates < 1:
            raise Error(f"candidates={candidates}: expected at least 1")
        packed, _keepers = self._read_measured(operands)
        with show(f"measuring schedules of @{self.name}"):
            text = take_text(lib.fovea_module_tune, self._module.handle,
                             self._number, packed, len(operands),
                             candidates or 0)
        return Tuning(json.loads(text))

    def __repr__(self):
        operands = ", ".join(map(str, self.operands))
        results = ", ".join(map(str, self.results))
        return f"<fovea.Function @{self.name}({operands}) -> ({results})>"

    def _repr_html_(self):
        return write_html(self, repr(self))


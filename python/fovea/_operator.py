# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as operators of PyTorch.

    fovea::attention(Tensor query, Tensor key, Tensor value, Tensor[] captures,
                     SymInt[] numbers, str text, bool deterministic)
        -> (Tensor output, Tensor lse)
    fovea::attention_backward(..., Tensor output, Tensor lse,
                              Tensor output_gradient, Tensor lse_gradient)
        -> Tensor[]

`text` is the MLIR text of a function of these operands, in this order, as
_trace.py writes it. It is all that the kernel is made from, so that graphs
which hold the operator, and caches of them, are self-contained. `lse` has no
elements where the text has no second result; with gradients it must be of f64,
which the backward pass reads. In a graph the text is one line, with tabs for
the ends of lines: inductor writes arguments of operators into comments of its code.
Results have the stride order of the query,
gradients that of what they are gradients of. Kernels write row-major results and
those whose heads lie behind their positions; other orders are copies.

The library has kernels of `fovea::attention` itself (_native.py), which ask this
module for the function of a text once. Those here are for a PyTorch in which these
cannot run, and record what runs where `fovea.explain` asks.

Kernels are compiled at the first call with a text, kept for the life of the
process, and found again in the disk cache.
"""

import functools
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

from . import _explain, _native
from ._library import Error
from ._native import is_transformed
from ._orders import SWAPPED, find_order, swap

_lock = threading.Lock()
_forwards = {}
_pairs = {}


def _target_of(device):
    if device.type == "cpu":
        return "host"
    if device.type == "cuda":
        return "gpu"
    raise Error(f"query: expected a tensor on the CPU or a CUDA device, got one "
                f"on {device}")


def get_forward(text, device, operands, is_swapped=False):
    """Returns the compiled function of a text, for a call with these operands. If it
    `is_swapped`, dimensions 1 and 2 of its first result are in each other's place.
    """
    key = (text, device.type, is_swapped)
    function = _forwards.get(key)
    if function is None:
        from . import compile
        function = compile(swap(text, "attention", [0] if is_swapped else []),
                           _target_of(device), operands=operands)
        with _lock:
            function = _forwards.setdefault(key, function)
    return function


def _keep(split, kind):
    """Returns the text of a module without the functions of the other pass."""
    other = {"forward": "backward", "backward": "forward"}[kind]
    return re.sub(
        rf"^( *)func\.func (?:private )?@attention_{other}\w*\(.*?^\1\}}\n", "",
        split, flags=re.M | re.S)


def get_pair(text, device, deterministic, operands, is_swapped=False, gradients=()):
    """Returns the forward and the backward pass of a text, both compiled; the former
    for a call with these operands.
    Dimensions 1 and 2 are in each other's place of the output, if it
    `is_swapped`, and of the gradients whose numbers are `gradients`."""
    # A host's results always have the same bits.
    deterministic = deterministic and device.type != "cpu"
    key = (text, device.type, deterministic, is_swapped, gradients)
    pair = _pairs.get(key)
    if pair is None:
        from . import Differentiable, compile, differentiate
        target = _target_of(device)
        split = differentiate(text, recompute="always", partition=True,
                              target=target)
        split = swap(split, "attention_forward", [0] if is_swapped else [])
        split = swap(split, "attention_backward", gradients)
        # At once, in the time of the longer one.
        with ThreadPoolExecutor(1) as other:
            forward, backward = (
                functools.partial(compile, _keep(split, kind), target,
                                  entry=f"attention_{kind}",
                                  deterministic=deterministic, operands=of_call)
                for kind, of_call in (("forward", operands), ("backward", ())))
            backward = other.submit(backward)
            pair = Differentiable(forward(), backward.result())
        with _lock:
            pair = _pairs.setdefault(key, pair)
    return pair


def join_lines(text):
    """Returns a text as a graph holds it, in one line."""
    return text.replace("\n", "\t")


def _divide_lines(text):
    """Undoes `join_lines`, so that a graph has the kernels of calls."""
    return text if "\n" in text else text.replace("\t", "\n")


def find(text, device, deterministic, operands, is_swapped):
    """Returns the function that computes a text's results, for a call with these
    operands."""
    text = _divide_lines(text)
    if _lse_dtype(text) == torch.float64:
        # The backward pass will follow: both are compiled at once, for gradients
        # in the order of the query.
        return get_pair(text, device, deterministic, operands, is_swapped,
                        (0, 1, 2) if is_swapped else ()).forward
    return get_forward(text, device, operands, is_swapped)


@functools.lru_cache(maxsize=None)
def _lse_dtype(text):
    """Returns the type of a text's log-sum-exp, None if it has none."""
    match = re.search(r"^!lse = tensor<.*x(f32|f64)>$", _divide_lines(text), re.M)
    return match and {"f32": torch.float32, "f64": torch.float64}[match[1]]


def empty_in_order_of(like, shape):
    """Returns an uninitialised tensor with the element type, the device and the
    order of strides of another; of one that is expanded, row-major."""
    order = find_order(like)
    memory = torch.empty([shape[dim] for dim in order], dtype=like.dtype,
                         device=like.device)
    inverse = sorted(range(len(shape)), key=lambda at: order[at])
    return memory.permute(inverse)


def in_order_of(like, tensor, is_swapped=False):
    """Returns a row-major tensor, of which dimensions 1 and 2 may be in each other's
    place, in the order of strides of another."""
    order = find_order(like)
    if is_swapped:
        tensor = tensor.transpose(1, 2)
        if order == SWAPPED:
            return tensor
    elif order == tuple(range(len(order))):
        return tensor
    return empty_in_order_of(like, tensor.shape).copy_(tensor)


def run(function, kind, operands):
    _explain.record(kind, function, operands)
    with torch.no_grad():
        results = function(*operands)
    return results if isinstance(results, tuple) else (results,)


def run_forward(query, key, value, captures, numbers, text, deterministic):
    is_swapped = find_order(query) == SWAPPED
    operands = (query, key, value, *captures, *numbers)
    function = find(text, query.device, deterministic, operands, is_swapped)
    results = run(function, "forward", operands)
    output = in_order_of(query, results[0], is_swapped)
    return output, results[1] if len(results) > 1 else query.new_empty(0)


def run_backward(query, key, value, captures, numbers, text, deterministic,
                 output, lse, output_gradient, lse_gradient):
    is_swapped = find_order(query) == SWAPPED
    swapped = tuple(at for at, x in enumerate((query, key, value))
                    if find_order(x) == SWAPPED)
    operands = (query, key, value, *captures, *numbers)
    pair = get_pair(_divide_lines(text), query.device, deterministic, operands,
                    is_swapped, swapped)
    values = {"operand": operands, "result": (output, lse),
              "cotangent": (output_gradient, lse_gradient)}
    gradients = run(pair.backward, "backward",
                     [values[kind][at] for kind, at in pair.sources])
    return [in_order_of(operands[at], gradient, at in swapped)
            for at, gradient in zip(pair.variables, gradients)]


def fake_forward(query, key, value, captures, numbers, text, deterministic):
    # PyTorch takes this one where any of the tensors is on the meta device.
    for x in (key, value, *captures):
        if x.device != query.device:
            raise Error(f"fovea::attention: expected all tensors on {query.device}, got "
                        f"one on {x.device}")
    output = empty_in_order_of(query, (*query.shape[:3], value.shape[3]))
    dtype = _lse_dtype(text)
    return output, (query.new_empty(0) if dtype is None else
                    query.new_empty(query.shape[:3], dtype=dtype))


def _differentiable_operands(query, key, value, captures):
    return [x for x in (query, key, value, *captures) if x.is_floating_point()]


def fake_backward(query, key, value, captures, *_):
    return [empty_in_order_of(x, x.shape)
            for x in _differentiable_operands(query, key, value, captures)]


def set_up(ctx, inputs, output):
    """Keeps what the backward pass needs of the operands and results."""
    query, key, value, captures, numbers, text, deterministic = inputs
    ctx.save_for_backward(query, key, value, *captures, *output)
    ctx.options = numbers, text, deterministic


def _differentiate(ctx, output_gradient, lse_gradient):
    query, key, value, *captures, output, lse = ctx.saved_tensors
    numbers, text, deterministic = ctx.options
    if lse.dtype != torch.float64:
        raise Error("fovea::attention: expected a text with a second result of "
                    "f64 where there are gradients")
    operands = (query, key, value, captures, numbers, text, deterministic, output,
                lse, output_gradient, lse_gradient)
    if is_transformed():
        gradients = _AttentionBackward.apply(len(captures), *_flatten(operands))
    else:
        gradients = torch.ops.fovea.attention_backward(*operands)
    return arrange(gradients, query, key, value, captures, numbers)


def arrange(gradients, query, key, value, captures, numbers):
    """Returns the gradients of floats as those of all operands."""
    gradients = iter(gradients)
    found = [next(gradients) if x.is_floating_point() else None
             for x in (query, key, value, *captures)]
    # PyTorch wants a list without elements for one without elements.
    return (*found[:3], found[3:], None if numbers else [], None, None)


def refuse_second_order(ctx, *_):
    raise NotImplementedError(
        "fovea::attention_backward: gradients of gradients are not computed")


def _map_over(operator, info, in_dims, *args):
    """Calls an operator for each element of the mapped dimensions."""
    def pick(arg, dim, at):
        if isinstance(arg, (list, tuple)):
            dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(arg)
            return [pick(x, d, at) for x, d in zip(arg, dims)]
        return arg if dim is None else arg.select(dim, at)

    results = [operator(*(pick(arg, dim, at) for arg, dim in zip(args, in_dims)))
               for at in range(info.batch_size)]
    stacked = [torch.stack(parts) for parts in zip(*results)]
    if isinstance(results[0], list):
        return stacked, [0] * len(stacked)
    return tuple(stacked), (0,) * len(stacked)


OPERANDS = ("Tensor query, Tensor key, Tensor value, Tensor[] captures, "
             "SymInt[] numbers, str text, bool deterministic")
GRADIENT_OPERANDS = (f"{OPERANDS}, Tensor output, Tensor lse, "
                      "Tensor output_gradient, Tensor lse_gradient")


# While explanations are recorded, the kernels that record.
_recording = None


class _Shortcut:
    """A library of operators whose kernels run only where a function, which has the
    same arguments, returns None."""

    def __init__(self, library, function):
        self._library = library
        self._function = function

    def impl(self, name, kernel, key, with_keyset):
        function = self._function

        def run(keys, *operands):
            results = None if _recording else function(*operands)
            return kernel(keys, *operands) if results is None else results

        self._library.impl(name, run, key, with_keyset=with_keyset)


def define(library, name, schema, run, fake, backward, set_up=None, tags=(),
           shortcut=None):
    """Defines an operator with its kernel, None if that is registered elsewhere,
    its fake one and its gradients. A `shortcut` has the results where autograd has
    nothing to do, or None."""
    library.define(name + schema, tags=(torch.Tag.needs_exact_strides, *tags))
    if run is not None:
        for device in ("CPU", "CUDA"):
            library.impl(name, run, device)
    torch.library.register_fake(f"fovea::{name}", fake, lib=library)
    torch.library.register_autograd(
        f"fovea::{name}", backward, setup_context=set_up,
        lib=_Shortcut(library, shortcut) if shortcut else library)


_library = torch.library.Library("fovea", "FRAGMENT")
define(_library, "attention", f"({OPERANDS}) -> (Tensor, Tensor)",
       None if _native.has_attention else run_forward, fake_forward,
       _differentiate, set_up, shortcut=_native.attend)
define(_library, "attention_backward", f"({GRADIENT_OPERANDS}) -> Tensor[]",
       run_backward, fake_backward, refuse_second_order)
for _name in ("attention", "attention_backward"):
    torch.library.register_vmap(
        f"fovea::{_name}", functools.partial(
            _map_over, getattr(torch.ops.fovea, _name)), lib=_library)

_attention = torch.ops.fovea.attention.default


def _record(is_on):
    """Replaces the library's kernel by that of Python, or undoes it."""
    global _recording
    if not _native.has_attention:
        return
    if not is_on:
        _recording._destroy()
        _recording = None
        return
    _recording = torch.library.Library("fovea", "IMPL")
    with warnings.catch_warnings():
        # That a kernel takes the place of another is the purpose.
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        for device in ("CPU", "CUDA"):
            _recording.impl("attention", run_forward, device,
                            allow_override=True)


_explain.follow(_record)


def _flatten(operands):
    """Puts the captured tensors, which are a list, last."""
    return (*operands[:3], *operands[4:], *operands[3])


class _AttentionBackward(torch.autograd.Function):
    """The operator of the backward pass for `torch.func`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(count, *operands):
        split = len(operands) - count
        return tuple(torch.ops.fovea.attention_backward(
            *operands[:3], operands[split:], *operands[3:split]))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(refuse_second_order)


class _Attention(torch.autograd.Function):
    """The operator with gradients for `torch.func`, which does not follow those
    that torch.library registers."""

    generate_vmap_rule = True

    @staticmethod
    def forward(numbers, text, deterministic, query, key, value, *captures):
        return torch.ops.fovea.attention(query, key, value, captures, numbers,
                                         text, deterministic)

    @staticmethod
    def setup_context(ctx, inputs, output):
        numbers, text, deterministic, query, key, value, *captures = inputs
        set_up(ctx, (query, key, value, captures, numbers, text, deterministic),
               output)

    @staticmethod
    def backward(ctx, *gradients):
        query, key, value, captures, *_ = _differentiate(ctx, *gradients)
        return (None, None, None, query, key, value, *captures)


def attention(query, key, value, captures, numbers, text, deterministic, grows):
    """Computes attention, with gradients if it `grows` autograd's graph."""
    if not grows and not _recording and _native.attend:
        results = _native.attend(query, key, value, captures, numbers, text,
                                 deterministic)
        if results is not None:
            return results
    is_traced = bool(torch._C._len_torch_dispatch_stack())
    if is_traced:
        text = join_lines(text)
    if is_transformed():
        if not grows:
            return torch.ops.fovea.attention(query, key, value, captures,
                                             numbers, text, deterministic)
        return _Attention.apply(numbers, text, deterministic, query, key, value,
                                *captures)
    if not grows and not is_traced and all(
            type(x) in _native.PLAIN for x in (query, key, value, *captures)):
        # Nothing but the kernel looks at such a call.
        if _native.has_attention and not _recording:
            try:
                with torch._C._AutoDispatchBelowAutograd():
                    return _attention(query, key, value, captures, numbers, text,
                                      deterministic)
            except RuntimeError:
                pass  # The longer road says why.
        return run_forward(query, key, value, captures, numbers, text,
                           deterministic)
    try:
        return _attention(query, key, value, captures, numbers, text,
                          deterministic)
    except RuntimeError as error:
        # The library's kernel throws what PyTorch's dispatcher knows.
        _, name, message = str(error).partition("fovea::attention: ")
        if not name:
            raise
        raise Error(message) from None

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
which the backward pass reads. Results have the stride order of the query,
gradients that of what they are gradients of.

Kernels are compiled at the first call with a text, kept for the life of the
process, and found again in the disk cache.
"""

import functools
import re
import threading

import torch

from . import _explain
from ._library import Error

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


def get_forward(text, device):
    """Returns the compiled function of a text."""
    key = (text, device.type)
    function = _forwards.get(key)
    if function is None:
        from . import compile
        function = compile(text, _target_of(device))
        with _lock:
            function = _forwards.setdefault(key, function)
    return function


def get_pair(text, device, deterministic):
    """Returns the forward and the backward pass of a text, compiled
    together."""
    # A host's results always have the same bits.
    deterministic = deterministic and device.type != "cpu"
    key = (text, device.type, deterministic)
    pair = _pairs.get(key)
    if pair is None:
        from . import differentiable
        pair = differentiable(text, _target_of(device), recompute="always",
                              deterministic=deterministic)
        with _lock:
            pair = _pairs.setdefault(key, pair)
    return pair


@functools.lru_cache(maxsize=None)
def _lse_dtype(text):
    """Returns the type of a text's log-sum-exp, None if it has none."""
    match = re.search(r"^!lse = tensor<.*x(f32|f64)>$", text, re.M)
    return match and {"f32": torch.float32, "f64": torch.float64}[match[1]]


def empty_in_order_of(like, shape):
    """Returns an uninitialised tensor with the element type, the device and the
    order of strides of another; of one that is expanded, row-major."""
    strides = like.stride()
    order = range(len(shape))
    if all(stride != 0 for stride in strides):
        order = sorted(order, key=lambda dim: -strides[dim])
    memory = torch.empty([shape[dim] for dim in order], dtype=like.dtype,
                         device=like.device)
    inverse = sorted(range(len(shape)), key=lambda at: order[at])
    return memory.permute(inverse)


def in_order_of(like, tensor):
    """Returns a row-major tensor in the order of strides of another."""
    if like.is_contiguous():
        return tensor
    result = empty_in_order_of(like, tensor.shape)
    if result.stride() == tensor.stride():
        return tensor
    return result.copy_(tensor)


def run(function, kind, operands):
    _explain.record(kind, function, operands)
    with torch.no_grad():
        results = function(*operands)
    return results if isinstance(results, tuple) else (results,)


def run_forward(query, key, value, captures, numbers, text, deterministic):
    if _lse_dtype(text) == torch.float64:
        # The backward pass will follow: both are compiled at once.
        function = get_pair(text, query.device, deterministic).forward
    else:
        function = get_forward(text, query.device)
    results = run(function, "forward",
                   (query, key, value, *captures, *numbers))
    output = in_order_of(query, results[0])
    return output, results[1] if len(results) > 1 else query.new_empty(0)


def run_backward(query, key, value, captures, numbers, text, deterministic,
                 output, lse, output_gradient, lse_gradient):
    pair = get_pair(text, query.device, deterministic)
    operands = (query, key, value, *captures, *numbers)
    values = {"operand": operands, "result": (output, lse),
              "cotangent": (output_gradient, lse_gradient)}
    gradients = run(pair.backward, "backward",
                     [values[kind][at] for kind, at in pair.sources])
    return [in_order_of(operand, gradient) for operand, gradient in zip(
        (operands[at] for at in pair.variables), gradients)]


def _fake_forward(query, key, value, captures, numbers, text, deterministic):
    output = empty_in_order_of(query, (*query.shape[:3], value.shape[3]))
    dtype = _lse_dtype(text)
    return output, (query.new_empty(0) if dtype is None else
                    query.new_empty(query.shape[:3], dtype=dtype))


def _differentiable_operands(query, key, value, captures):
    return [x for x in (query, key, value, *captures) if x.is_floating_point()]


def _fake_backward(query, key, value, captures, *_):
    return [empty_in_order_of(x, x.shape)
            for x in _differentiable_operands(query, key, value, captures)]


def _set_up(ctx, inputs, output):
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
        gradients = iter(_AttentionBackward.apply(len(captures), *_flatten(
            operands)))
    else:
        gradients = iter(torch.ops.fovea.attention_backward(*operands))
    found = [next(gradients) if x.is_floating_point() else None
             for x in (query, key, value, *captures)]
    # PyTorch wants a list without elements for one without elements.
    return (*found[:3], found[3:], None if numbers else [], None, None)


def _refuse_second_order(ctx, *_):
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


_OPERANDS = ("Tensor query, Tensor key, Tensor value, Tensor[] captures, "
             "SymInt[] numbers, str text, bool deterministic")
_GRADIENT_OPERANDS = (f"{_OPERANDS}, Tensor output, Tensor lse, "
                      "Tensor output_gradient, Tensor lse_gradient")


def _define():
    library = torch.library.Library("fovea", "FRAGMENT")
    for name, schema, run, fake, set_up, backward in (
            ("attention", f"({_OPERANDS}) -> (Tensor, Tensor)", run_forward,
             _fake_forward, _set_up, _differentiate),
            ("attention_backward", f"({_GRADIENT_OPERANDS}) -> Tensor[]",
             run_backward, _fake_backward, None, _refuse_second_order)):
        library.define(name + schema,
                       tags=(torch.Tag.needs_exact_strides,))
        for device in ("CPU", "CUDA"):
            library.impl(name, run, device)
        qualified = f"fovea::{name}"
        torch.library.register_fake(qualified, fake, lib=library)
        torch.library.register_autograd(qualified, backward,
                                        setup_context=set_up, lib=library)
        torch.library.register_vmap(
            qualified, functools.partial(
                _map_over, getattr(torch.ops.fovea, name)), lib=library)
    return library


_library = _define()


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

    backward = staticmethod(_refuse_second_order)


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
        _set_up(ctx, (query, key, value, captures, numbers, text, deterministic),
                output)

    @staticmethod
    def backward(ctx, *gradients):
        query, key, value, captures, *_ = _differentiate(ctx, *gradients)
        return (None, None, None, query, key, value, *captures)


def _is_plain(tensors):
    """Returns True if nothing but the kernel looks at a call: no subclass, mode
    or transform."""
    return (all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in tensors)
            and not torch._C._len_torch_dispatch_stack())


def is_transformed():
    """Returns True within a transform of `torch.func`."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def attention(query, key, value, captures, numbers, text, deterministic, grows):
    """Computes attention, with gradients if it `grows` autograd's graph."""
    if is_transformed():
        if not grows:
            return torch.ops.fovea.attention(query, key, value, captures,
                                             numbers, text, deterministic)
        return _Attention.apply(numbers, text, deterministic, query, key, value,
                                *captures)
    if not grows and _is_plain((query, key, value, *captures)):
        # The same as the operator, without the dispatcher.
        return run_forward(query, key, value, captures, numbers, text,
                           deterministic)
    return torch.ops.fovea.attention(query, key, value, captures, numbers, text,
                                     deterministic)

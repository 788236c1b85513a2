# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea in the place of PyTorch's kernels of flash attention, by PyTorch's
registry of implementations.

`scaled_dot_product_attention` itself decides what goes to flash attention; the
kernels here compute that, forward and backward. Results have the strides that
PyTorch's own have, for compiled graphs rely on them. The log-sum-exp between
both passes is f32, as in PyTorch.
"""

import warnings

import torch

from . import _attention, _flex, _operator, _varlen
from ._orders import SWAPPED, find_order
from ._trace import Tracer

_CPU = "_scaled_dot_product_flash_attention_for_cpu"
_CUDA = "_scaled_dot_product_flash_attention"


# By what decides them: the text of a call, and the type as which its mask is viewed.
_texts = {}


def _trace(query, key, value, is_causal, attn_mask, scale, lse):
    """Returns the captured tensors, the numbers and the text."""
    kind, numbers = _flex.note_scale(query, scale)
    mask_key = attn_mask is not None and (attn_mask.shape, attn_mask.dtype,
                                          attn_mask.requires_grad)
    of = (query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype,
          query.device, is_causal, mask_key, kind, lse)
    found = _texts.get(of)
    if found is None:
        captures, text = _trace_anew(query, key, value, is_causal, attn_mask, scale,
                                     lse)
        type = captures[0].dtype if captures else None
        if len(_texts) >= 4096:
            _texts.clear()
        found = _texts[of] = text, len(captures), type
    text, count, type = found
    if not count:
        return [], numbers, text
    return [attn_mask if type == attn_mask.dtype
            else attn_mask.detach().view(type)], numbers, text


def _trace_anew(query, key, value, is_causal, attn_mask, scale, lse):
    score_mod = mask_mod = None
    if is_causal:
        mask_mod = lambda b, h, i, j: i >= j
    if attn_mask is not None:
        mod = _attention.make_bias("attn_mask", attn_mask, (
            *query.shape[:3], key.shape[2]), query.device)
        if attn_mask.dtype == torch.bool:
            causal = mask_mod
            mask_mod = mod if causal is None else (
                lambda *place: mod(*place) & causal(*place))
        else:
            score_mod = mod
    tracer = Tracer(query, key, value, has_gradients=True)
    tracer.scale_by(_flex.find_scale(query, scale))
    tracer.trace(score_mod, mask_mod)
    return tracer.captures, tracer.write(lse)


def _lse_type(query):
    return "f64" if query.dtype == torch.float64 else "f32"


def _run_forward(query, key, value, is_causal, attn_mask, scale):
    captures, numbers, text = _trace(query, key, value, is_causal, attn_mask, scale,
                                     _lse_type(query))
    is_swapped = find_order(query) == SWAPPED
    operands = (query, key, value, *captures, *numbers)
    function = _operator.get_forward(text, query.device, operands, is_swapped)
    output, lse = _operator.run(function, "forward", operands)
    if is_swapped:
        output = output.transpose(1, 2)
    like = torch.empty_like(query)
    if like.stride() != output.stride():
        output = like.copy_(output)
    return output, lse


def _run_backward(grad_out, query, key, value, out, logsumexp, is_causal,
                  attn_mask, scale):
    captures, numbers, text = _trace(query, key, value, is_causal, attn_mask, scale,
                                     "f64")
    lse = logsumexp.double()
    return _operator.run_backward(
        query, key, value, captures, numbers, text,
        torch.are_deterministic_algorithms_enabled(), out, lse, grad_out,
        torch.zeros_like(lse))


def _forward_on_cpu(query, key, value, dropout_p=0.0, is_causal=False, *,
                    attn_mask=None, scale=None):
    output, lse = _run_forward(query, key, value, is_causal, attn_mask, scale)
    return output, lse.transpose(1, 2).contiguous().transpose(1, 2)


def _backward_on_cpu(grad_out, query, key, value, out, logsumexp, dropout_p,
                     is_causal, *, attn_mask=None, scale=None):
    gradients = _run_backward(grad_out, query, key, value, out, logsumexp,
                              is_causal, attn_mask, scale)
    return tuple(x.transpose(1, 2).contiguous().transpose(1, 2)
                 for x in gradients)


def _forward_on_cuda(query, key, value, dropout_p=0.0, is_causal=False,
                     return_debug_mask=False, *, scale=None):
    output, lse = _run_forward(query, key, value, is_causal, None, scale)
    return (output, lse, None, None, query.shape[2], key.shape[2],
            torch.zeros(2, dtype=torch.uint64, device=query.device),
            torch.zeros((), dtype=torch.uint64, device=query.device),
            query.new_empty(0))


def _backward_on_cuda(grad_out, query, key, value, out, logsumexp, cum_seq_q,
                      cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
                      philox_offset, *, scale=None):
    return tuple(_run_backward(grad_out, query, key, value, out, logsumexp,
                               is_causal, None, scale))


class _Handle:
    """Keeps the kernels registered; PyTorch calls `remove`."""

    def __init__(self, library):
        self._library = library

    def remove(self):
        self._library = None


def _register(library, name, kernel, device, dropout_at):
    """Registers a kernel; calls with dropout, or for the mask of it, go to the
    one that was there."""
    original = torch.library.get_kernel(f"aten::{name}", device)

    def run(keys, *args, **kwargs):
        dropout = kwargs.get("dropout_p", args[dropout_at] if (
            len(args) > dropout_at) else 0.0)
        if dropout or kwargs.get("return_debug_mask") or (
                name == _CUDA and len(args) > 5 and args[5]):
            return original.call_boxed(keys, *args, **kwargs)
        with torch.no_grad():
            return kernel(*args, **kwargs)

    library.impl(name, run, device, with_keyset=True)


def activate():
    """Registers the kernels with PyTorch's dispatcher, for as long as the
    returned handle has not been removed."""
    library = torch.library.Library("aten", "IMPL")
    kernels = [(_CPU, _forward_on_cpu, "CPU", 3),
               (f"{_CPU}_backward", _backward_on_cpu, "CPU", 6)]
    if torch.cuda.is_available():
        kernels += [(_CUDA, _forward_on_cuda, "CUDA", 3),
                    (f"{_CUDA}_backward", _backward_on_cuda, "CUDA", 10)]
    with warnings.catch_warnings():
        # That a kernel takes the place of another is the purpose.
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        for kernel in kernels:
            _register(library, *kernel)
        _varlen.register(library)
    return _Handle(library)

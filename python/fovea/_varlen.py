# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea in the place of the operators that PyTorch's `varlen_attn` calls: attention of
packed sequences, forward and backward, and of queries against a paged cache.

They are flash attention's functions (_flash.py) under other names. On the CPU PyTorch
has no such operators.
"""

import torch

from . import _flash, _flash_options, _flex, _operator
from ._trace import Tracer

_FORWARD = "_flash_attention_forward"
_INTO = "_flash_attention_forward_no_dropout_inplace"
_BACKWARD = "_flash_attention_backward"

# By what decides them: the texts of calls with gradients.
_texts = {}


def _attend(query, key, value, cum_seq_q, cum_seq_k, max_q, is_causal, scale, left,
            right, seqused_k, block_table):
    """Returns the output, with the strides of the query, and the log-sum-exp."""
    options = {"softmax_scale": scale, "causal": is_causal,
               "window_size": (left, right), "return_softmax_lse": True}
    if block_table is not None or key.dim() == 4 and cum_seq_q is not None or (
            cum_seq_q is None and seqused_k is not None):
        packed = {} if cum_seq_q is None else {"cu_seqlens_q": cum_seq_q,
                                               "max_seqlen_q": max_q}
        output, lse = _flash.flash_attn_with_kvcache(
            query, key, value, cache_seqlens=seqused_k, page_table=block_table,
            **packed, **options)
    elif cum_seq_q is None:
        output, lse = _flash.flash_attn_func(query, key, value, **options)
    else:
        output, lse = _flash.flash_attn_varlen_func(
            query, key, value, cum_seq_q, cum_seq_k, seqused_k=seqused_k, **options)
    return _with_strides_of(query, output), lse.float().contiguous()


def _with_strides_of(like, tensor):
    """Returns a tensor with the strides that PyTorch's own results have, for compiled
    graphs rely on them."""
    wanted = torch.empty_like(like)
    if wanted.shape != tensor.shape:
        return tensor.contiguous()
    return tensor if wanted.stride() == tensor.stride() else wanted.copy_(tensor)


def _forward(query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
             is_causal, return_debug_mask, *, scale=None, window_size_left=None,
             window_size_right=None, seqused_k=None, alibi_slopes=None,
             block_table=None, num_splits=None):
    output, lse = _attend(query, key, value, cum_seq_q, cum_seq_k, max_q, is_causal,
                          scale, window_size_left, window_size_right, seqused_k,
                          block_table)
    return (output, lse, torch.zeros(2, dtype=torch.uint64, device=query.device),
            torch.zeros((), dtype=torch.uint64, device=query.device),
            query.new_empty(0))


def _forward_into(out, *args, **kwargs):
    output, lse, *_ = _forward(*args, **kwargs)
    out.copy_(output)
    return lse


def _trace(query, key, value, first, end, scale):
    """Returns the numbers and the text of attention of packed rows, of which each sees
    the keys from one on to below another."""
    kind, numbers = _flex.note_scale(query, scale)
    of = (query.shape, key.shape, value.shape, query.dtype, query.device, kind)
    text = _texts.get(of)
    if text is None:
        tracer = Tracer(query, key, value, has_gradients=True)
        tracer.scale_by(_flex.find_scale(query, scale))
        tracer.trace(None, lambda b, h, i, j: (j >= first[i]) & (j < end[i]))
        text = tracer.write("f64")
        if len(_texts) >= 4096:
            _texts.clear()
        _texts[of] = text
    return numbers, text


def _backward(grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q,
              max_k, dropout_p, is_causal, rng_state, unused, *, scale=None,
              window_size_left=None, window_size_right=None):
    options = _flash_options.Options(query, scale, is_causal, (
        window_size_left, window_size_right), 0, 0.0, 1, None, 0, None, True)
    first, end = options.find_keys(query, cum_seq_q, cum_seq_k, None, None)
    operands = [x.transpose(0, 1)[None] for x in (query, key, value)]
    lse = logsumexp.double()[None]
    gradients = _operator.run_backward(
        *operands, [first, end], *_trace(*operands, first, end, scale),
        torch.are_deterministic_algorithms_enabled(), out.transpose(0, 1)[None], lse,
        grad_out.transpose(0, 1)[None], torch.zeros_like(lse))
    return tuple(_with_strides_of(x, gradient[0].transpose(0, 1))
                 for x, gradient in zip((query, key, value), gradients))


def _refuses(name, given):
    """Returns why a call is PyTorch's, None if it is not."""
    if given.get("dropout_p"):
        return "dropout_p: expected 0"
    if given.get("return_debug_mask"):
        return "return_debug_mask: expected False"
    if given.get("alibi_slopes") is not None:
        return "alibi_slopes: expected None"
    if name == _BACKWARD and given["cum_seq_q"] is None:
        return "cum_seq_q: expected a tensor of integers"
    return None


def _register(library, name, kernel, device):
    """Registers a kernel; what it does not compute goes to the one that was there."""
    operator = getattr(torch.ops.aten, name).default
    names = [argument.name for argument in operator._schema.arguments]
    try:
        original = torch.library.get_kernel(operator, device)
    except RuntimeError:
        original = None

    def run(keys, *args, **kwargs):
        reason = _refuses(name, {**dict(zip(names, args)), **kwargs})
        if reason and original is None:
            raise NotImplementedError(f"aten::{name}: {reason} on {device}")
        if reason:
            return original.call_boxed(keys, *args, **kwargs)
        with torch.no_grad():
            return kernel(*args, **kwargs)

    library.impl(name, run, device, with_keyset=True)


def register(library):
    """Registers the kernels that PyTorch has operators for."""
    devices = ["CPU"] + (["CUDA"] if torch.cuda.is_available() else [])
    for name, kernel in ((_FORWARD, _forward), (_INTO, _forward_into),
                         (_BACKWARD, _backward)):
        if hasattr(torch.ops.aten, name):
            for device in devices:
                _register(library, name, kernel, device)

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention with the usual options, and PyTorch's scaled_dot_product_attention:
mods put together from arguments, for what _flex.py does with mods."""

from __future__ import annotations

import operator

import torch
from torch import Tensor

from . import _flex
from ._memo import Memo
from ._native import PLAIN
from ._values import Number

__all__ = ["attention", "scaled_dot_product_attention"]

_memo = Memo()


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | tuple[int, int] | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    bias: Tensor | None = None,
    score_mod: _flex.ScoreMod | None = None,
    mask_mod: _flex.MaskMod | None = None,
    q_offset: int | Tensor = 0,
    kv_lengths: Tensor | None = None,
    layout: str = "bhsd",
    return_lse: bool = False,
    dropout_p: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention with what models ask for, in one kernel, with gradients.

        fovea.attention(q, k, v, causal=True, window=1024, softcap=50.0)

    q: `[B, H, Sq, D]` by layout "bhsd", `[B, Sq, H, D]` by "bshd"; f16, bf16,
        f32 or f64, with any strides. k, v: as q, with Sk positions, a number
        of heads that divides H, and for v any head size.
    scale: multiplies products, 1 / sqrt(D) if None.
    causal: query i sees keys up to its position, i + q_offset.
    window: a number w: keys nearer than w positions, those ahead only if not
        causal (Hugging Face's `sliding_window`); or a pair (left, right): keys
        from `left` behind to `right` ahead, -1 for any (flash-attn's
        `window_size`).
    softcap: c makes a scaled score s `c * tanh(s / c)`.
    bias: a tensor that broadcasts to `[B, H, Sq, Sk]` whatever the layout:
        floats are added to scores after the cap, booleans are a mask, True for
        what counts.
    score_mod, mask_mod: as those of `flex_attention`, after the bias; their
        q_idx does not include q_offset.
    sinks: `[H]`, for each head the score of one more key whose value is 0.
    q_offset: the position of the first query, as in a cache: an integer, or a
        tensor of integers, of no dimensions or `[B]`. Another offset needs no
        other kernel.
    kv_lengths: `[B]`, integers: the keys that each sequence has. Keys
        behind these are not read.
    return_lse: also returns the natural logarithm of the sum of exponentials,
        sinks included, `[B, H, Sq]`, f32 (f64 if an operand is).
    dropout_p, generator: as those of `flex_attention`.

    Returns the output in the layout and the order of strides of q. Tensors may
    require gradients: q, k, v, sinks, a bias of floats, and what mods close
    over.
    """
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: expected 'bhsd' or 'bshd', got {layout!r}")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if layout == "bshd":
        for name, x in (("q", q), ("k", k), ("v", v)):
            if x.dim() != 4:
                raise ValueError(f"{name}: expected a tensor of rank 4, got "
                                 f"{tuple(x.shape)}")
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if isinstance(sinks, torch.Tensor) and sinks.is_floating_point():
        sinks = sinks.to(_flex.find_score_type(q, k, v))
    call = None
    if not dropout_p:
        # The mask of a model keeps its calls itself.
        memo = getattr(mask_mod, "memo", _memo)

        def open(memo, *mods):
            return _open(memo, q, k, v, scale, causal, window, softcap, sinks, bias,
                         q_offset, kv_lengths, return_lse,
                         () if mods == (None, None) else mods)

        call = open(memo, score_mod, mask_mod if memo is _memo else None)
    found = call and call.run()
    if call and not found and memo is not _memo:
        # The mask of a step before may have been of the same kind.
        found = call.run_by(open(_memo, score_mod, mask_mod))
    if not found:
        found = _attend(q, k, v, scale, causal, window, softcap, sinks, bias,
                        score_mod, mask_mod, q_offset, kv_lengths, return_lse,
                        dropout_p, generator, call)
    output, lse = found
    if layout == "bshd":
        output = output.transpose(1, 2)
    return (output, lse) if return_lse else output


def _open(memo, q, k, v, scale, causal, window, softcap, sinks, bias, q_offset,
          kv_lengths, return_lse, mods):
    """Returns the call of `attention` with these arguments, None if it cannot be kept
    in a memo."""
    if scale is not None and type(scale) not in (bool, int, float):
        return None
    kind, numbers = _flex.note_scale(q, scale)
    tensors, options = [q, k, v], [return_lse, kind]
    for option in (causal, window, softcap):
        if option is not None and type(option) not in (bool, int, float, tuple):
            return None
        options.append(option)
    for x in (bias, kv_lengths, sinks):
        options.append(x is not None)
        if x is not None:
            tensors.append(x)
    if isinstance(q_offset, torch.Tensor):
        tensors.append(q_offset)
        options.append("offset")
    elif type(q_offset) is not int:
        return None
    elif q_offset:
        # Its sign and its size shape no text.
        numbers.append(q_offset)
        options.append("number")
    return memo.open(tensors, numbers, ("attention", *options), mods)


def _attend(q, k, v, scale, causal, window, softcap, sinks, bias, score_mod, mask_mod,
            q_offset, kv_lengths, return_lse, dropout_p, generator, call):
    """Checks the arguments of `attention`, makes mods of them, and returns the output
    and the log-sum-exp."""
    _flex._check_inputs(q, k, v, True, None)
    _flex._check_dropout(dropout_p)
    _flex._check_mods(score_mod, mask_mod)
    batch, heads, length = q.shape[:3]
    kv_length = k.shape[2]
    _check_shape("sinks", sinks, (heads,), False, q.device)
    _check_shape("kv_lengths", kv_lengths, (batch,), True, q.device)
    scores, masks = [], []
    if kv_lengths is not None:
        masks.append(lambda b, h, i, j: j < kv_lengths[b])
    masks += _make_window(causal, window, _make_position(q_offset, batch, q.device))
    if softcap is not None:
        cap = float(softcap)
        if not cap > 0:
            raise ValueError(f"softcap: expected a number above 0, got {softcap}")
        scores.append(lambda s, b, h, i, j: cap * torch.tanh(s / cap))
    if bias is not None:
        mod = make_bias("bias", bias, (batch, heads, length, kv_length), q.device)
        (masks if bias.dtype == torch.bool else scores).append(mod)
    if score_mod is not None:
        scores.append(score_mod)
    if mask_mod is not None:
        masks.append(mask_mod)
    output, lse, _ = _flex.attend(
        q, k, v, _chain(scores), _flex.and_masks(*masks) if masks else None,
        scale, wants_lse=return_lse, dropout_p=dropout_p, generator=generator,
        call=call, sinks=sinks)
    return output, lse


def _check_shape(name, tensor, shape, is_integer, device):
    if tensor is None:
        return
    wrong = None
    if not isinstance(tensor, torch.Tensor):
        wrong = type(tensor).__name__
    elif tensor.shape != shape or is_integer != (
            not tensor.is_floating_point() and tensor.dtype != torch.bool):
        wrong = f"one of {tensor.dtype} of shape {tuple(tensor.shape)}"
    if wrong:
        kind = "integers" if is_integer else "floats"
        raise ValueError(f"{name}: expected a tensor of {kind} of shape {shape}, "
                         f"got {wrong}")
    check_device(name, tensor, device)


def check_device(name, tensor, device):
    """Checks that a tensor is where the query is; a number may be on the CPU."""
    if tensor.device != device and (tensor.dim() or tensor.device.type != "cpu"):
        raise ValueError(f"{name}: expected a tensor on {device}, as the query is, "
                         f"got one on {tensor.device}")


def _make_position(offset, batch, device):
    """Returns a function of a sequence and a query that gives its position."""
    if isinstance(offset, torch.Tensor):
        _check_shape("q_offset", offset, () if not offset.dim() else (batch,),
                     True, device)
        if offset.dim():
            return lambda b, i: i + offset[b]
        return lambda b, i: i + offset
    if isinstance(offset, int) and not offset:
        return lambda b, i: i
    # Dynamo has integers of its own that are operands.
    number = offset if torch.compiler.is_dynamo_compiling() else Number(
        operator.index(offset))
    return lambda b, i: i + number


def _make_window(causal, window, position):
    """Returns the masks of a causal mask and a window."""
    left = right = -1
    if window is not None:
        if isinstance(window, (tuple, list)):
            if len(window) != 2:
                raise ValueError("window: expected a number or (left, right), got "
                                 f"{window}")
            left, right = map(operator.index, window)
        else:
            left = right = operator.index(window) - 1
            if left < 0:
                raise ValueError(f"window: expected 1 or more, got {window}")
    if causal:
        right = 0
    masks = []
    if right == 0:
        masks.append(lambda b, h, i, j: position(b, i) >= j)
    elif right > 0:
        masks.append(lambda b, h, i, j: j - position(b, i) <= right)
    if left >= 0:
        masks.append(lambda b, h, i, j: position(b, i) - j <= left)
    return masks


def make_bias(name, bias, shape, device):
    """Returns a mod that adds a tensor which broadcasts to the scores' shape,
    or a mask of booleans."""
    if not isinstance(bias, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(bias).__name__}")
    try:
        fits = torch.broadcast_shapes(bias.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"{name}: expected a shape that broadcasts to {shape}, "
                           f"got {tuple(bias.shape)}")
    check_device(name, bias, device)

    def read(*place):
        place = place[len(place) - bias.dim():]
        return bias[tuple(0 if size == 1 else index
                          for size, index in zip(bias.shape, place))]

    if bias.dtype == torch.bool:
        return read
    return lambda s, *place: s + read(*place)


def _chain(mods):
    if len(mods) < 2:
        return mods[0] if mods else None

    def score_mod(score, *place):
        for mod in mods:
            score = mod(score, *place)
        return score

    return score_mod


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`, by Fovea: its
    arguments, results and errors.

    query: `[..., Hq, L, E]`, key: `[..., H, S, E]`, value: `[..., H, S, Ev]`,
        of the same type: f16, bf16, f32 or f64. Ranks from 2; leading
        dimensions are broadcast.
    attn_mask: a tensor that broadcasts to `[..., Hq, L, S]`: booleans, True for
        what counts, or floats, which are added to the scores.
    dropout_p: the share of probabilities that become 0, drawn from PyTorch's
        default generator of the CPU; as in PyTorch, whatever the mode of a
        module.
    is_causal: query i sees keys 0 to i; with a mask, where both hold.
    scale: 1 / sqrt(E) if None.
    enable_gqa: H divides Hq, and each key serves Hq / H queries.

    A row whose scores are all masked is 0. Scores are f32 (f64 of f64) and
    never in memory, whatever the mask.
    """
    call = None
    if not dropout_p:
        call = _open_sdpa(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    found = call and call.run()
    if found:
        return found[0]
    _check_sdpa(query, key, value, attn_mask)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError("dropout probability has to be between 0 and 1, but got "
                           f"{dropout_p}")
    rank = max(x.dim() for x in (query, key, value))
    has_heads = rank > 3 or enable_gqa
    lead = -3 if has_heads else -2
    batch = torch.broadcast_shapes(*(x.shape[:lead] for x in (query, key, value)))
    heads = query.shape[-3] if has_heads else 1
    if has_heads and not enable_gqa:
        heads, = torch.broadcast_shapes(*(x.shape[-3:-2]
                                          for x in (query, key, value)))
        query, key, value = (_expand_heads(x, heads)
                             for x in (query, key, value))
    query, key, value = (_flatten_batch(x, batch, lead)
                         for x in (query, key, value))
    score_mod, masks = None, []
    if is_causal:
        masks.append(lambda b, h, i, j: i >= j)
    if attn_mask is not None:
        shape = (*batch, heads, query.shape[2], key.shape[2]) if has_heads else (
            *batch, query.shape[2], key.shape[2])
        mask = _flatten_mask(attn_mask, batch, shape, has_heads)
        mod = make_bias("attn_mask", mask, (query.shape[0], heads, *shape[-2:]),
                        query.device)
        if attn_mask.dtype == torch.bool:
            masks.append(mod)
        else:
            score_mod = mod
    if dropout_p == 1.0:
        # Everything is dropped.
        output = query.new_zeros((*query.shape[:3], value.shape[3]))
    else:
        _flex._check_inputs(query, key, value, True, None)
        output, _, _ = _flex.attend(
            query, key, value, score_mod,
            _flex.and_masks(*masks) if masks else None, scale,
            dropout_p=dropout_p, call=call)
    if has_heads:
        return output.reshape(*batch, *output.shape[1:])
    return output.reshape(*batch, *output.shape[2:])


def _open_sdpa(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    """Returns the call of `scaled_dot_product_attention` with these arguments, None if
    it is none of operands that are used as they are."""
    if type(query) not in PLAIN or type(key) not in PLAIN or (
            type(value) not in PLAIN):
        return None
    if not query.dim() == key.dim() == value.dim() == 4:
        return None
    batch, heads = query.shape[:2]
    if not key.shape[0] == value.shape[0] == batch or not (
            enable_gqa or key.shape[1] == value.shape[1] == heads):
        return None
    if scale is not None and type(scale) not in (int, float):
        return None
    tensors = [query, key, value]
    if attn_mask is not None:
        if type(attn_mask) not in PLAIN or attn_mask.dim() > 4:
            return None
        tensors.append(attn_mask)
    kind, numbers = _flex.note_scale(query, scale)
    return _memo.open(tensors, numbers, ("sdpa", attn_mask is not None,
                                         bool(is_causal), kind, bool(enable_gqa)))


def _check_sdpa(query, key, value, attn_mask):
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, torch.Tensor):
            raise TypeError("scaled_dot_product_attention(): argument "
                            f"'{name}' must be Tensor, not {type(x).__name__}")
    query, key, value = _flex.cast_as_autocast(query, key, value)
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: "
            f"{value.dtype} instead.")
    if not query.device == key.device == value.device:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got "
            f"query.device: {query.device} key.device: {key.device} and "
            f"value.device: {value.device} instead.")
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got query.dim: {query.dim()}, key.dim: {key.dim()} and value.dim: "
            f"{value.dim()} instead.")
    if attn_mask is None:
        return
    # Autocast takes a mask of floats for one of its own type.
    mask_type = attn_mask.dtype
    if mask_type.is_floating_point:
        mask_type = _flex.cast_as_autocast(attn_mask.new_empty(0))[0].dtype
    if mask_type not in (torch.bool, torch.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, "
            f"but got attn_mask.dtype: {attn_mask.dtype} and  query.dtype: "
            f"{query.dtype} instead.")


def _expand_heads(x, heads):
    if x.dim() < 3:
        x = x[None]
    return x.expand(*x.shape[:-3], heads, *x.shape[-2:])


def _flatten_batch(x, batch, lead):
    """Returns a tensor of rank 4, whose first dimension is all leading ones."""
    tail = x.shape[lead:]
    x = x.expand(*batch, *tail).reshape(batch.numel(), *tail)
    return x if lead == -3 else x[:, None]


def _flatten_mask(mask, batch, shape, has_heads):
    """Returns a mask of rank 4 or less, sizes of 1 where it is broadcast."""
    if not has_heads:
        mask = mask[..., None, :, :] if mask.dim() > 2 else mask
        shape = (*shape[:-2], 1, *shape[-2:])
    if mask.dim() <= 4 and len(batch) == 1 or mask.dim() <= 3:
        return mask
    mask = mask.expand(*batch, *mask.shape[-3:])
    return mask.reshape(batch.numel(), *mask.shape[-3:])

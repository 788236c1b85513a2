# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashAttention-3's functions, by Fovea: their arguments, made of mods and of
gathers of rows."""

from __future__ import annotations

import functools
import operator

import torch
from torch import Tensor

from . import _append, _attention, _flex, _ragged
from ._flash_options import Options, note_writes, read_window
from ._memo import Arguments, cast_as_autocast, is_watched
from ._values import Number

__all__ = ["flash_attn_func", "flash_attn_varlen_func",
           "flash_attn_with_kvcache"]

_HALVES = (torch.float16, torch.bfloat16)

#: The type of caches of 8 bits.
_SMALL = torch.float8_e4m3fn


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
    *,
    s_aux: Tensor | None = None,
    return_softmax_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """FlashAttention-3's `flash_attn_func`, with gradients.

    q: `[B, Sq, H, D]`; k: `[B, Sk, Hkv, D]`; v: `[B, Sk, Hkv, Dv]`, Hkv a
        divisor of H; f16, bf16, f32 or f64.
    softmax_scale: 1 / sqrt(D) if None.
    causal: query i sees keys up to i + Sk - Sq: the last query sees all.
    window_size: (left, right): keys from `left` behind a query's position to
        `right` ahead; -1 for any.
    attention_chunk: n lets a query see keys of its own chunk of n positions
        only; 0 for any.
    softcap: c makes a scaled score s `c * tanh(s / c)`; 0 for none.
    s_aux: `[H]`, sinks: for each head the score of one more key, whose value is
        0; may require gradients.
    deterministic: gradients with the same bits in every run on a GPU.
    num_splits, pack_gqa, sm_margin: checked, and left to the compiler.
    return_softmax_lse, return_attn_probs: also return the natural logarithm of
        the sum of exponentials, sinks included, `[B, H, Sq]`, f32.
    qv, q_descale, k_descale, v_descale: not supported; None.

    Returns the output, `[B, Sq, H, Dv]`, of q's type. A query that sees no key
    is 0, its log-sum-exp minus infinity.
    """
    wants_lse = return_softmax_lse or return_attn_probs
    arguments = Arguments(
        "fixed", (q, k, v, s_aux, qv, q_descale, k_descale, v_descale), window_size,
        softmax_scale, causal, attention_chunk, softcap, num_splits, pack_gqa,
        deterministic, sm_margin, wants_lse)
    if arguments.known:
        output, lse = arguments.known.run(
            *(x.transpose(1, 2) for x in (q, k, v)), arguments.tensors)
        output = output.transpose(1, 2)
        return (output, lse) if wants_lse else output
    _refuse(qv=qv, q_descale=q_descale, k_descale=k_descale,
            v_descale=v_descale)
    _check_tensors(4, q=q, k=k, v=v)
    _check_same(q, k, v, ("q", "k", "v"))
    if k.shape[0] != q.shape[0]:
        raise ValueError(f"k: expected the batch of q, {q.shape[0]}, got "
                         f"{k.shape[0]}")
    options = Options(q, softmax_scale, causal, window_size, attention_chunk,
                      softcap, num_splits, pack_gqa, sm_margin, s_aux, wants_lse)
    offset = _lift(k.shape[1] - q.shape[1])
    output, lse = options.attend(
        *(x.transpose(1, 2) for x in (q, k, v)),
        "fixed", options.make_masks(lambda b, i: i + offset), deterministic,
        lifted=[offset], arguments=arguments)
    output = output.transpose(1, 2)
    return (output, lse) if wants_lse else output


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
    *,
    s_aux: Tensor | None = None,
    return_softmax_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """FlashAttention-3's `flash_attn_varlen_func`, with gradients: sequences of
    several lengths, packed one after another.

    q: `[Tq, H, D]`; k: `[Tk, Hkv, D]`; v: `[Tk, Hkv, Dv]`.
    cu_seqlens_q, cu_seqlens_k: `[B + 1]`, integers that do not decrease:
        sequence b has the queries, or keys, from its element b to below element
        b + 1.
    max_seqlen_q, max_seqlen_k: not needed; nothing depends on them.
    seqused_q, seqused_k: `[B]`, the queries, or keys, of a sequence that count,
        from its first one on; keys behind these are not read.

    All else is as in `flash_attn_func`, positions being those in a sequence.
    Returns the output, `[Tq, H, Dv]`, and the log-sum-exp, `[H, Tq]`. Queries
    that belong to no sequence, or do not count, are 0.
    """
    wants_lse = return_softmax_lse or return_attn_probs
    has_same_starts = cu_seqlens_k is cu_seqlens_q
    arguments = Arguments(
        "packed", (q, k, v, s_aux, cu_seqlens_q,
                   None if has_same_starts else cu_seqlens_k, seqused_q, seqused_k, qv,
                   q_descale, k_descale, v_descale), window_size, softmax_scale, causal,
        attention_chunk, softcap, num_splits, pack_gqa, deterministic, sm_margin,
        wants_lse, has_same_starts)
    if arguments.known:
        tensors = arguments.tensors
        if not _gathers_packed(q, k, v, s_aux, cu_seqlens_q):
            tensors += tuple(_ragged.find_keys(
                q, cu_seqlens_q, cu_seqlens_k, seqused_q, None,
                *read_window(window_size, causal), attention_chunk))
        output, lse = arguments.known.run(
            *(x.transpose(0, 1)[None] for x in (q, k, v)), tensors)
        output = output.squeeze(0).transpose(0, 1)
        return (output, lse[0]) if wants_lse else output
    _refuse(qv=qv, q_descale=q_descale, k_descale=k_descale,
            v_descale=v_descale)
    _check_tensors(3, q=q, k=k, v=v)
    _check_same(q, k, v, ("q", "k", "v"))
    for name, x in (("cu_seqlens_q", cu_seqlens_q),
                    ("cu_seqlens_k", cu_seqlens_k)):
        if x is None:
            raise TypeError(f"{name}: expected a tensor of integers, got None")
    _check_integers("cu_seqlens_q", cu_seqlens_q, None, q.device)
    shape = tuple(cu_seqlens_q.shape)
    if not shape[0]:
        raise ValueError("cu_seqlens_q: expected at least one element, got none")
    _check_integers("cu_seqlens_k", cu_seqlens_k, shape, q.device)
    batch = (shape[0] - 1,)
    _check_integers("seqused_q", seqused_q, batch, q.device)
    _check_integers("seqused_k", seqused_k, batch, q.device)
    options = Options(q, softmax_scale, causal, window_size, attention_chunk,
                      softcap, num_splits, pack_gqa, sm_margin, s_aux, wants_lse)
    if not is_watched():
        operands = cast_as_autocast(q, k, v)
        if _gathers_packed(*operands, s_aux, cu_seqlens_q):
            output, lse = _attend_packed(options, *operands, cu_seqlens_q, cu_seqlens_k,
                                         seqused_q, seqused_k, arguments)
            return (output, lse) if wants_lse else output
    first_key, end_key = options.find_keys(q, cu_seqlens_q,
                                           cu_seqlens_k, seqused_q, seqused_k)
    masks = [lambda b, h, i, j: j >= first_key[i],
             lambda b, h, i, j: j < end_key[i]]
    arguments.tensors += first_key, end_key
    if not batch[0]:
        arguments.forget()  # A graph finds keys of at least one sequence.
    if seqused_k is not None:
        arguments.forget()
        # A tile of queries may see keys on both sides of those that do not count.
        k, v = _clear_rows(cu_seqlens_k, seqused_k, k, v)
    output, lse = options.attend(
        *(x.transpose(0, 1)[None] for x in (q, k, v)), "packed", masks, deterministic,
        captures=[first_key, end_key], arguments=arguments)
    # The gradient of a squeezed tensor is a view, that of an indexed one a copy.
    output = output.squeeze(0).transpose(0, 1)
    return (output, lse[0]) if wants_lse else output


def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    qv: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    page_table: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k_new: Tensor | None = None,
    max_seqlen_q: int | None = None,
    rotary_seqlens: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    scheduler_metadata: Tensor | None = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
    *,
    s_aux: Tensor | None = None,
    split_size: int = 0,
) -> Tensor | tuple[Tensor, Tensor]:
    """FlashAttention-3's `flash_attn_with_kvcache`: queries against a cache of
    keys and values. There are no gradients.

    q: `[B, Sq, H, D]`; with cu_seqlens_q `[T, H, D]`.
    k_cache, v_cache: `[slots, S, Hkv, D]` and `[slots, S, Hkv, Dv]`, of which
        slot b is that of sequence b; with page_table `[pages, page, Hkv, D]`.
        What lies behind a sequence's length, or before its first key, may be
        anything, NaN too.
    cache_seqlens: the keys of each sequence that the cache has before the call:
        an integer, or integers `[B]`; all of it if None.
    k, v: `[B, Snew, Hkv, D]`, or with cu_seqlens_k_new `[Tnew, Hkv, D]`: new
        keys and values, which are written to the cache behind cache_seqlens, and
        then are keys of it.
    rotary_cos, rotary_sin: `[positions, R / 2]`: rotate the first R features of
        k and of q, pairs (2t, 2t + 1) if rotary_interleaved, else
        (t, t + R / 2), by the position: cache_seqlens[b] on, or
        rotary_seqlens[b] on. All queries have the first position if there is
        neither a causal mask nor a window.
    cache_batch_idx: integers `[B]`, the slot of each sequence.
    cache_leftpad: integers `[B]`, the first key of each sequence.
    page_table: integers `[B, P]`: keys n * page to below (n + 1) * page of
        sequence b are in page page_table[b, n]. What it has behind a sequence's
        length is not used.
    cu_seqlens_q, cu_seqlens_k_new: as in `flash_attn_varlen_func`, of q and of
        k; cu_seqlens_q with max_seqlen_q, queries that no sequence exceeds. Results
        of queries that belong to no sequence may be anything.
    k_descale, v_descale: beside caches of float8_e4m3fn, of which q has another
        type: f32 `[B, Hkv]`, what keys and values are multiplied by; 1 if None.
        New keys and values are of the type of the cache.
    scheduler_metadata: ignored; num_splits: checked, and left to the compiler.
    split_size: a positive multiple of 64 divides the sums over keys at its multiples,
        whatever else the batch has: the results of a sequence then have the same
        bits in any batch and in a cache of any size, for as many queries. With 0
        the compiler divides them so that all of a GPU is busy.

    All else is as in `flash_attn_func`: the last query of a sequence is at the
    position of its last key. Returns the output, of the shape of q with features
    Dv, and the log-sum-exp, `[B, H, Sq]` or `[H, T]`. Other lengths, batches and
    numbers of pages need no other kernel.
    """
    is_packed = cu_seqlens_q is not None
    is_small = getattr(k_cache, "dtype", None) == _SMALL
    length = None if isinstance(cache_seqlens, Tensor) else cache_seqlens
    arguments = Arguments(
        "cache", (q, k_cache, v_cache, s_aux, k, v, qv, rotary_cos, rotary_sin,
                  cache_seqlens if length is None else None, cache_batch_idx,
                  cache_leftpad, page_table, cu_seqlens_q, cu_seqlens_k_new,
                  rotary_seqlens, q_descale, k_descale, v_descale), window_size,
        softmax_scale, causal, attention_chunk, softcap, num_splits, pack_gqa,
        sm_margin, return_softmax_lse, split_size, length, max_seqlen_q,
        rotary_interleaved)
    appends = k is not None
    if is_packed or cu_seqlens_k_new is not None or appends and (
            is_small or getattr(q, "is_cpu", True)):
        arguments.forget()
    elif appends and arguments.key:
        # In some memory rows are not written by a graph.
        arguments.add(k_cache.stride(), v_cache.stride(),
                      k_cache.data_ptr() == v_cache.data_ptr())
    if arguments.known:
        output, lse = _attend_known(arguments, q, k_cache, v_cache, appends, is_small,
                                    page_table, cache_batch_idx)
        return (output, lse) if return_softmax_lse else output
    _check_tensors(3 if is_packed else 4, q=q)
    if is_small:
        _refuse(qv=qv, q_descale=q_descale)
        if rotary_cos is not None:
            raise NotImplementedError("rotary_cos: expected None beside caches of "
                                      f"{_SMALL}; keys are rotated before they "
                                      "are rounded")
        k_cache, v_cache, k, v = _view_bytes(k_cache=k_cache, v_cache=v_cache, k=k,
                                             v=v)
    else:
        _refuse(qv=qv, q_descale=q_descale, k_descale=k_descale,
                v_descale=v_descale)
        _check_tensors(4, k_cache=k_cache, v_cache=v_cache)
    _check_same(q, k_cache, v_cache, ("q", "k_cache", "v_cache"), is_small)
    _check_integers("cu_seqlens_q", cu_seqlens_q, None, q.device)
    batch = cu_seqlens_q.shape[0] - 1 if is_packed else q.shape[0]
    if batch < 0:
        raise ValueError("cu_seqlens_q: expected at least one element, got none")
    if is_packed:
        if max_seqlen_q is None:
            raise ValueError("max_seqlen_q: expected an integer beside cu_seqlens_q, "
                             "got None")
        max_seqlen_q = operator.index(max_seqlen_q)
    _check_integers("cache_batch_idx", cache_batch_idx, (batch,), q.device)
    _check_integers("cache_leftpad", cache_leftpad, (batch,), q.device)
    _check_integers("page_table", page_table, (batch, None), q.device)
    if page_table is not None and cache_batch_idx is not None:
        raise ValueError("cache_batch_idx: expected None beside page_table, which "
                         "says where each sequence is")
    if page_table is not None:
        room = page_table.shape[1] * k_cache.shape[1]
    else:
        room = k_cache.shape[1]
        if cache_batch_idx is None and k_cache.shape[0] < batch:
            raise ValueError(f"k_cache: expected a slot for each of {batch} "
                             f"sequences, got {k_cache.shape[0]}")
    if isinstance(cache_seqlens, Tensor):
        _check_integers("cache_seqlens", cache_seqlens, (batch,), q.device)
    elif cache_seqlens is not None:
        cache_seqlens = operator.index(cache_seqlens)
    new = rows = None
    with torch.no_grad():
        if k is not None or v is not None or rotary_cos is not None:
            new = _append.Append(q, k_cache, v_cache, k, v, batch,
                                 cu_seqlens_k_new, cache_seqlens)
            if rotary_cos is not None:
                new.rotate(rotary_cos, rotary_sin, rotary_seqlens,
                           rotary_interleaved,
                           causal or any(x >= 0 for x in window_size),
                           q.shape[-1])
            rows = new.find_rows(q, k_cache, v_cache, cache_batch_idx, page_table)
            if rows is None:
                arguments.forget()
                q, cache_seqlens = new.write(q, cu_seqlens_q, k_cache, v_cache,
                                             cache_batch_idx, page_table)
                new = None
        options = Options(q, softmax_scale, causal, window_size, attention_chunk,
                          softcap, num_splits, pack_gqa, sm_margin, s_aux,
                          return_softmax_lse, split_size)
        for name, x in (("k_descale", k_descale), ("v_descale", v_descale)):
            _check_scales(name, x, (batch, k_cache.shape[2]), q.device)
        options.set_scales(k_descale, v_descale, k_cache.shape[2])
        if cache_seqlens is None:
            cache_seqlens = room
        output, lse = _attend_cache(
            options, q, k_cache, v_cache, batch, cache_seqlens, cache_leftpad,
            cache_batch_idx, page_table, cu_seqlens_q, max_seqlen_q, arguments, new,
            rows)
    return (output, lse) if return_softmax_lse else output


def _attend_known(arguments, q, k_cache, v_cache, appends, is_small, page_table,
                  cache_batch_idx):
    """Attends to a cache as such a call before did."""
    if is_small:
        k_cache, v_cache = (x.view(torch.uint8) for x in (k_cache, v_cache))
    key, value = k_cache, v_cache
    if not (appends or is_small or page_table is not None or
            cache_batch_idx is not None):
        key, value = (x[:q.shape[0]].transpose(1, 2) for x in (key, value))
    output, lse = arguments.known.run(q.transpose(1, 2), key, value, arguments.tensors)
    note_writes(k_cache, v_cache, appends)
    return output.transpose(1, 2), lse


def _lift(number):
    """Returns an integer that is an operand of the kernel."""
    # Dynamo has integers of its own that are operands.
    return number if torch.compiler.is_dynamo_compiling() else Number(number)


def _clear_rows(starts, used, *tensors):
    """Returns packed tensors with zeros where rows do not count."""
    if not used.shape[0]:
        return tensors
    sequence, place = _append.find_places(tensors[0].shape, starts, used.device)
    counts = (place < used[sequence])[:, None, None]
    return [torch.where(counts, x, 0) for x in tensors]


#: Sequences with fewer queries and keys than a tile has, without a group of heads, fill
#: it badly by themselves; where the keys of each query are searched, several are in
#: one, which so many queries make up for.
_TILE, _MANY = 128, 4096

#: Queries of one sequence up to which it is a batch of one.
_MOST_OF_ONE = 1024

#: The most features for which blocks of a GPU get tiles from a list, which has none
#: that no sequence has.
_MOST_LISTED = 128


@functools.cache
def _lists_tiles(device):
    """Returns True if blocks of a device get tiles from a list."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9


def _gathers_packed(q, k, v, sinks, cu_seqlens_q):
    """Returns True if a graph shall read the keys of each sequence where they lie
    packed, so that those of each query need no search. It has no gradients."""
    count, kv_count = q.shape[0], k.shape[0]
    sequences = cu_seqlens_q.shape[0] - 1
    return (_lists_tiles(q.device) and q.dtype in _HALVES and count and kv_count
            and sequences and max(q.shape[2], v.shape[2]) <= _MOST_LISTED
            and (q.shape[1] > k.shape[1] or count < _MANY
                 or max(count, kv_count) >= _TILE * sequences)
            and not (torch.is_grad_enabled() and any(
                x is not None and x.requires_grad for x in (q, k, v, sinks))))


def _attend_packed(options, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k,
                   arguments):
    """Attends to packed keys of at least one sequence, read where they lie. Returns the
    output and the log-sum-exp in the shapes of the public function."""
    # One sequence is a batch of one, in which some queries and keys may not count, and
    # needs no list of tiles, which takes long beside few. Chunks begin where it does.
    is_one = (cu_seqlens_q.shape[0] == 2 and q.shape[0] <= _MOST_OF_ONE
              and not options.chunk)

    def count(b):
        # A query of no sequence sees no key.
        own = cu_seqlens_k[b + 1] - cu_seqlens_k[b]
        return own if seqused_k is None else torch.minimum(seqused_k[b], own)

    def count_queries(b):
        if seqused_q is None:
            return cu_seqlens_q[b + 1] - cu_seqlens_q[b]
        return seqused_q[b]

    def position(b, i):
        place = i + count(b) - count_queries(b)
        return place + (cu_seqlens_k[b] - cu_seqlens_q[b]) if is_one else place

    operands = [x.transpose(0, 1)[None] for x in (q, k, v)]
    if is_one:
        masks = [lambda b, h, i, j: j >= cu_seqlens_k[b],
                 lambda b, h, i, j: j < cu_seqlens_k[b] + count(b),
                 lambda b, h, i, j: i >= cu_seqlens_q[b],
                 lambda b, h, i, j: i < cu_seqlens_q[b] + count_queries(b)]
        captures = [cu_seqlens_q, *(x for x in (cu_seqlens_k, seqused_q, seqused_k)
                                    if x is not None and x is not cu_seqlens_q)]
        output, lse = options.attend(
            *operands, ("one", cu_seqlens_k is cu_seqlens_q, seqused_q is None,
                        seqused_k is None),
            masks + options.make_masks(position), False, captures,
            arguments=arguments)
    else:
        masks = [lambda b, h, i, j: j < count(b)]
        if seqused_q is not None:
            masks.append(lambda b, h, i, j: i < seqused_q[b])
        gathers = {"starts": cu_seqlens_q, "key_starts": cu_seqlens_k,
                   "key_used": seqused_k}
        output, lse = options.attend_rows(
            *operands, masks + options.make_masks(position), gathers, (seqused_q,),
            arguments)
    return output[0].transpose(0, 1), lse[0] if options.wants_lse else None


def _attend_cache(options, q, k_cache, v_cache, batch, cache_seqlens,
                  cache_leftpad, cache_batch_idx, page_table, cu_seqlens_q,
                  max_seqlen_q, arguments, new=None, rows=None):
    """Attends to a cache that has all keys but `new` ones, which are written as
    `rows`. Returns the output and the log-sum-exp in the shapes of the public
    function."""
    # The queries of one sequence are a batch of one, in which some may not count. With
    # parts of a fixed size it has the bits that it has beside others.
    is_one = cu_seqlens_q is not None and new is None and batch == 1 and (
        not options.split_size and not torch.compiler.is_dynamo_compiling())
    is_packed = cu_seqlens_q is not None and not is_one
    added = 0 if new is None else new.added
    lifted = []

    def lift(number):
        lifted.append(_lift(number))
        return lifted[-1]

    if added is None:
        if isinstance(cache_seqlens, Tensor):
            def begin(b):
                return cache_seqlens[b]
        else:
            before = lift(cache_seqlens)

            def begin(b):
                return before

        def end(b):
            return begin(b) + new.count(b)
    elif not isinstance(cache_seqlens, Tensor):
        number = lift(cache_seqlens + added)

        def end(b):
            return number
    elif new is None:
        def end(b):
            return cache_seqlens[b]
    else:
        count = lift(added)

        def end(b):
            return cache_seqlens[b] + count
    masks = [lambda b, h, i, j: j < end(b)]
    if is_packed:
        # Rows behind a sequence's last one go nowhere, and so may be anything; one
        # without a row needs no keys.
        masks.append(lambda b, h, i, j: cu_seqlens_q[b] < cu_seqlens_q[b + 1])

        def position(b, i):
            return i + end(b) - (cu_seqlens_q[b + 1] - cu_seqlens_q[b])
    elif is_one:
        masks += [lambda b, h, i, j: i >= cu_seqlens_q[b],
                  lambda b, h, i, j: i < cu_seqlens_q[b + 1]]

        def position(b, i):
            return i + end(b) - cu_seqlens_q[b + 1]
    elif added is None:
        length = lift(q.shape[1])

        def position(b, i):
            return i + (end(b) - length)
    elif isinstance(cache_seqlens, Tensor):
        length = lift(q.shape[1] - added)

        def position(b, i):
            return i + (cache_seqlens[b] - length)
    else:
        first = lift(cache_seqlens + added - q.shape[1])

        def position(b, i):
            return i + first
    if cache_leftpad is not None:
        masks.append(lambda b, h, i, j: j >= cache_leftpad[b])
    masks += options.make_masks(position)
    if cu_seqlens_q is None:
        query = q.transpose(1, 2)
    else:
        query = q.transpose(0, 1)[None]
    rows_of_one = cu_seqlens_q if is_one else None
    if not is_packed and rows is None and page_table is None and (
            cache_batch_idx is None and k_cache.dtype == q.dtype):
        captures = [x for x in (cache_leftpad, cache_seqlens, rows_of_one)
                    if isinstance(x, Tensor)]
        output, lse = options.attend(
            query, *(x[:batch].transpose(1, 2) for x in (k_cache, v_cache)),
            ("cache", cache_leftpad is None, isinstance(cache_seqlens, Tensor), is_one),
            masks, False, captures, lifted, arguments=arguments)
    else:
        if page_table is None and cache_batch_idx is None:
            k_cache, v_cache = k_cache[:batch], v_cache[:batch]
        gathers = {"pages": page_table, "slots": cache_batch_idx, "new": rows,
                   "value_scale": options.value_scale}
        if is_packed:
            gathers["starts"] = cu_seqlens_q
            gathers["longest"] = max_seqlen_q
        output, lse = options.attend_rows(
            query, k_cache, v_cache, masks, gathers,
            (cache_leftpad, cache_seqlens, rows_of_one), arguments)
    if cu_seqlens_q is None:
        return output.transpose(1, 2), lse
    return output[0].transpose(0, 1), lse[0] if options.wants_lse else None


#--- Checks -------------------------------------------------------------------


def _refuse(**arguments):
    """Raises an error for arguments that Fovea does not have."""
    reasons = {"qv": "a second query against values is not supported"}
    for name, argument in arguments.items():
        if argument is not None:
            reason = reasons.get(name, "only caches of float8_e4m3fn have scales")
            raise NotImplementedError(f"{name}: expected None; {reason}")


def _view_bytes(**tensors):
    """Returns tensors of floats of 8 bits as their bytes, and None for None."""
    for name, x in tensors.items():
        if x is None and not name.endswith("cache"):
            continue
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        if x.dtype != _SMALL:
            raise ValueError(f"{name}: expected {_SMALL}, as k_cache has, got "
                             f"{x.dtype}")
        if name.endswith("cache") and x.dim() != 4:
            raise ValueError(f"{name}: expected a tensor of rank 4, got one of "
                             f"shape {tuple(x.shape)}")
    return [None if x is None else x.view(torch.uint8) for x in tensors.values()]


def _check_scales(name, x, shape, device):
    if x is None:
        return
    if not isinstance(x, Tensor) or x.dtype != torch.float32 or x.shape != shape:
        got = type(x).__name__
        if isinstance(x, Tensor):
            got = f"one of {x.dtype} of shape {tuple(x.shape)}"
        raise ValueError(f"{name}: expected a tensor of float32 of shape {shape}, "
                         f"a number for each head of keys of each sequence, got {got}")
    _attention.check_device(name, x, device)


def _check_tensors(rank, **tensors):
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        if x.dim() != rank:
            raise ValueError(f"{name}: expected a tensor of rank {rank}, got one "
                             f"of shape {tuple(x.shape)}")
        if x.dtype not in _flex._FLOATS:
            raise ValueError(f"{name}: expected float16, bfloat16, float32 or "
                             f"float64, got {x.dtype}")


def _check_same(q, k, v, names, is_small=False):
    """Checks what queries, keys and values must share."""
    for name, x in zip(names[1:], (k, v)):
        if x.device != q.device:
            raise ValueError(f"{name}: expected a tensor on {q.device}, as q is, "
                             f"got one on {x.device}")
        if x.dtype != q.dtype and not is_small:
            raise ValueError(f"{name}: expected {q.dtype}, as q has, got "
                             f"{x.dtype}")
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"{names[1]}: expected the features of q, "
                         f"{q.shape[-1]}, got {k.shape[-1]}")
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(f"{names[2]}: expected a shape {tuple(k.shape[:-1])} "
                         f"before the features, as {names[1]} has, got "
                         f"{tuple(v.shape[:-1])}")
    if not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"{names[1]}: expected a number of heads that divides "
                         f"that of q, {q.shape[-2]}, got {k.shape[-2]}")


def _check_integers(name, x, shape, device):
    """Checks a tensor of integers; a size of None may be any, a shape of None is
    that of any vector."""
    if x is None:
        return
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a tensor of integers, got "
                        f"{type(x).__name__}")
    wanted = (None,) if shape is None else shape
    fits = x.dim() == len(wanted) and all(
        size in (None, has) for size, has in zip(wanted, x.shape))
    if x.dtype not in (torch.int32, torch.int64) or not fits:
        text = ", ".join("any" if size is None else str(size) for size in wanted)
        raise ValueError(f"{name}: expected int32 or int64 of shape ({text}), got "
                         f"{x.dtype} of shape {tuple(x.shape)}")
    if x.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, as q is, got "
                         f"one on {x.device}")

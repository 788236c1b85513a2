# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What FlashAttention-3's functions have in common: their options, which become mods,
and the attention that these options say."""

import operator

import torch
from torch import Tensor

from . import _append, _arrays, _attention, _dynamo, _flex, _operator, _ragged
from ._gather import GatherTracer
from ._memo import Memo, cast_as_autocast, describe, is_watched
from ._native import PLAIN
from ._regions import write_length

_memo = Memo()


def read_window(window_size, causal):
    """Returns the keys behind and ahead of a position; negative ones are no limit."""
    if len(window_size) != 2:
        raise ValueError("window_size: expected (left, right), got "
                         f"{window_size}")
    left, right = (operator.index(-1 if size is None else size)
                   for size in window_size)
    return left, 0 if causal else right


class Options:
    """The arguments that all functions have, checked."""

    def __init__(self, q, softmax_scale, causal, window_size, attention_chunk,
                 softcap, num_splits, pack_gqa, sm_margin, s_aux, wants_lse,
                 split_size=0):
        self.scale = softmax_scale
        self.left, self.right = read_window(window_size, causal)
        self.chunk = operator.index(attention_chunk)
        if self.chunk < 0:
            raise ValueError("attention_chunk: expected 0 or more, got "
                             f"{attention_chunk}")
        self.softcap = float(softcap)
        if not self.softcap >= 0:
            raise ValueError(f"softcap: expected 0 or more, got {softcap}")
        for name, number in (("num_splits", num_splits),
                             ("sm_margin", sm_margin)):
            if operator.index(number) < 0:
                raise ValueError(f"{name}: expected 0 or more, got {number}")
        if pack_gqa not in (None, False, True):
            raise ValueError(f"pack_gqa: expected None or a bool, got {pack_gqa}")
        _attention._check_shape("s_aux", s_aux, (q.shape[-2],), False,
                                q.device)
        self.split_size = operator.index(split_size)
        if self.split_size < 0 or self.split_size % 64:
            raise ValueError("split_size: expected 0 or a multiple of 64, got "
                             f"{split_size}")
        self.sinks = None if s_aux is None else s_aux.to(
            torch.float64 if q.dtype == torch.float64 else torch.float32)
        self.wants_lse = wants_lse
        self.heads = q.shape[-2]
        self.key_scale = self.value_scale = None

    def set_scales(self, key_scale, value_scale, kv_heads):
        """Gives keys and values factors of their heads, which scores have, and the
        output."""
        self.key_scale, self.value_scale = key_scale, value_scale
        self.group = self.heads // max(kv_heads, 1)

    def make_masks(self, position):
        """Returns the masks of a causal mask, a window and a chunk; `position`
        gives the position of a sequence's query."""
        masks = _attention._make_window(False, (self.left, self.right), position)
        if self.chunk:
            chunk = self.chunk

            def starts(b, i):
                place = position(b, i)
                return place - place % chunk

            masks += [lambda b, h, i, j: j >= starts(b, i),
                      lambda b, h, i, j: j < starts(b, i) + chunk]
        return masks

    def find_keys(self, queries, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k):
        """Returns the first key that each packed query sees, and the one behind its
        last, as tensors of i32."""
        count = queries.shape[0]
        starts, ends = cu_seqlens_q[:-1], cu_seqlens_q[1:]
        if not starts.shape[0]:
            return torch.zeros(2, count, dtype=torch.int32,
                               device=cu_seqlens_q.device)
        if not is_watched():
            return _ragged.find_keys(queries, cu_seqlens_q, cu_seqlens_k, seqused_q,
                                     seqused_k, self.left, self.right, self.chunk)
        lengths = ends - starts if seqused_q is None else seqused_q
        kv_lengths = (cu_seqlens_k[1:] - cu_seqlens_k[:-1]
                      if seqused_k is None else seqused_k)
        sequence, place = _append.find_places((count,), cu_seqlens_q,
                                              cu_seqlens_q.device)
        end = kv_lengths[sequence].long()
        position = place + end - lengths[sequence]
        first = torch.zeros_like(end)
        counts = (place < lengths[sequence]) & (place >= 0)
        if self.right >= 0:
            end = torch.minimum(end, position + self.right + 1)
        if self.left >= 0:
            first = torch.maximum(first, position - self.left)
        if self.chunk:
            chunk = position - position % self.chunk
            first = torch.maximum(first, chunk)
            end = torch.minimum(end, chunk + self.chunk)
        shift = cu_seqlens_k[:-1][sequence]
        counts &= first < end
        first = torch.where(counts, first + shift, _ragged.LARGEST)
        return first.to(torch.int32), torch.where(counts, end + shift, 0).to(
            torch.int32)

    def _make_score(self):
        cap, key_scale = self.softcap, self.key_scale
        mods = []
        if key_scale is not None:
            group = self.group
            mods.append(lambda s, b, h, i, j: s * key_scale[b, h // group])
        if cap:
            mods.append(lambda s, b, h, i, j: cap * torch.tanh(s / cap))
        return _attention._chain(mods)

    def attend(self, query, key, value, kind, masks, deterministic, captures=(),
               lifted=(), *, arguments):
        """Attention on operands `[B, H, S, D]`. Returns the output and, if that
        is wanted, the log-sum-exp, sinks included. The masks are those of a `kind` of
        call, capture these tensors, and may depend on lengths and the integers that
        are `lifted`; those of the kind "packed" depend on none."""
        call = None
        if not deterministic and not is_watched() and type(self.scale) in _flex.SCALES:
            call = self._open(query, key, value, kind, captures, lifted)
        found = call and call.run()
        if found:
            arguments.keep(call)
            return found
        output, lse, _ = _flex.attend(
            query, key, value, self._make_score(),
            _flex.and_masks(*masks) if masks else None, self.scale,
            wants_lse=self.wants_lse, deterministic=deterministic or None, call=call,
            sinks=self.sinks, split_size=self.split_size)
        return output, lse

    def _note(self, kind):
        """Returns what the options and a kind of call add to what a text depends on."""
        return (kind, self.left, self.right, self.chunk, self.softcap, self.split_size,
                self.wants_lse, self.sinks is None)

    def _open(self, query, key, value, kind, captures, lifted):
        """Returns the call, None if it cannot be kept in a memo."""
        scale, numbers = _flex.note_scale(query, self.scale)
        note = [*self._note(kind), scale]
        if self.sinks is not None:
            captures = [*captures, self.sinks]
        if kind != "packed":
            return _memo.open([query, key, value, *captures], numbers, tuple(note),
                              lifted=lifted)
        if torch._C._is_any_autocast_enabled():
            query, key, value = cast_as_autocast(query, key, value)
        tensors = [query, key, value, *captures]
        if not all(type(x) in PLAIN for x in tensors):
            return None
        for x in tensors[:3]:
            note += (x.shape[1], x.shape[3], x.dtype, x.device, x.requires_grad,
                     not x.shape[2])
        if self.sinks is not None:
            note += describe(self.sinks)
        note.append(write_length(query.shape[2], query.is_cuda))
        return _memo.open_by(tuple(note), tensors, numbers)

    def attend_rows(self, query, key, value, masks, gathers, read, arguments):
        """Attention whose rows a graph gathers, see `GatherTracer`. `read` is what masks
        read beside positions and what gathers read: tensors, numbers, or None."""
        call = None
        if not is_watched():
            call = self._open_rows(query, key, value, gathers, read)
        found = call and call.run()
        if not found:
            return self._trace_rows(query, key, value, masks, gathers, call)
        arguments.keep(call)
        note_writes(key, value, gathers.get("new") is not None)
        return found

    def _open_rows(self, query, key, value, gathers, read):
        """Returns the call, None if it cannot be kept in a memo."""
        new = gathers.get("new")
        given = [*read, self.sinks, self.key_scale,
                 *(x for name, x in gathers.items() if name != "new"),
                 *(() if new is None else new.operands)]
        note, tensors, places = [*self._note("rows")], [query, key, value], {}
        knows_lengths = "key_starts" not in gathers
        for x in tensors:
            note += describe(x) if knows_lengths else _describe_packed(x)
        for x in given:
            if not isinstance(x, Tensor):
                note.append(x)
                continue
            at = places.setdefault(id(x), len(tensors))
            if at < len(tensors):
                note.append((at,))  # A number would be an operand.
                continue
            note.append(describe(x) if knows_lengths else (x.dtype, x.device))
            tensors.append(x)
        if any(type(x) not in PLAIN for x in tensors):
            return None
        note.append(_flex.find_scale(query, self.scale))
        return _memo.open_by(tuple(note), tensors)

    # As mods and their closures, the operands of a gather are none of a graph
    # that Dynamo could hold.
    @_dynamo.disable
    def _trace_rows(self, query, key, value, masks, gathers, call):
        tracer = GatherTracer(query, key, value, **gathers)
        if self.sinks is not None:
            tracer.start_from(self.sinks)
        tracer.split_by(self.split_size)
        tracer.scale_by(_flex.find_scale(query, self.scale))
        tracer.trace(self._make_score(), _flex.and_masks(*masks))
        tracer.lift_integers()
        lse_type = "f64" if query.dtype == torch.float64 else "f32"
        text = tracer.write(lse_type if self.wants_lse else None)
        if call:
            call.note(text, tracer.captures, tracer.lifted, False, self.wants_lse, None)
        results = _operator.attention(query, key, value, tracer.captures,
                                      tracer.numbers, text, False, False)
        note_writes(key, value, gathers.get("new") is not None)
        return results


def _describe_packed(x):
    """Returns what a text may depend on of packed rows."""
    return x.shape[1], x.shape[3], x.dtype, x.device


def note_writes(key, value, appends):
    """Tells autograd that a cache got new rows, if it did."""
    if appends:
        for cache in (key, value):
            _arrays.find_torch().note_update(cache)

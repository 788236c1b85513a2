# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New keys and values for a cache: their rotation, and where they are written.

Nothing here waits for a device: lengths stay where they are. Rows of `[B, S]` are
rotated by one kernel for queries and one for keys, and placed by another; what is
traced or transformed, and packed rows, take PyTorch's operators.
"""

import functools

import torch

from . import _operator
from ._native import PLAIN, is_watched
from ._values import ELEMENTS


def find_sequences(starts, count):
    """Returns the sequence of each of `count` packed rows, the last one for rows
    behind all."""
    places = torch.arange(count, dtype=starts.dtype, device=starts.device)
    # Not in `starts[1:]`: inductor's kernels for GPUs begin at the first element of
    # what a slice is a part of.
    sequences = torch.searchsorted(starts.contiguous(), places, right=True,
                                   out_int32=True) - 1
    return sequences.clamp_(min=0, max=max(starts.shape[0] - 2, 0))


def find_places(shape, starts, device):
    """Returns the sequence of each row, and its place among those of its sequence,
    of rows `[B, S]`, or packed ones `[T]` where `starts` are given."""
    if starts is None:
        return (torch.arange(shape[0], device=device)[:, None],
                torch.arange(shape[1], device=device)[None, :])
    sequences = find_sequences(starts, shape[0]).long()
    return (sequences,
            torch.arange(shape[0], device=device) - starts[sequences])


class Append:
    """The new keys and values of one call, checked."""

    def __init__(self, q, k_cache, v_cache, k, v, batch, starts, lengths):
        if k is None or v is None:
            name, other = ("v", "k") if k is not None else ("k", "v")
            if k is None and v is None:
                name, other = "k", "rotary_cos"
            raise ValueError(f"{name}: expected a tensor beside {other}, got None")
        if lengths is None:
            raise ValueError("cache_seqlens: expected where new keys begin, an "
                             "integer or a tensor of integers, beside k; got None")
        rank = 4 if starts is None else 3
        for name, x, cache in (("k", k, k_cache), ("v", v, v_cache)):
            lead = (batch, k.shape[1]) if starts is None and k.dim() == 4 else (
                k.shape[0],)
            wanted = (*lead, *cache.shape[2:])
            if x.dim() != rank or x.shape != wanted:
                text = ("(batch, new keys, heads, features)" if rank == 4 else
                        "(new keys, heads, features)")
                raise ValueError(f"{name}: expected {text} of the cache, "
                                 f"{tuple(wanted)}, got {tuple(x.shape)}")
            if x.dtype != cache.dtype or x.device != cache.device:
                raise ValueError(
                    f"{name}: expected {cache.dtype} on {cache.device}, as the "
                    f"cache is, got {x.dtype} on {x.device}")
        self._keys, self._values = k, v
        self._starts = starts
        if not isinstance(lengths, torch.Tensor):
            lengths = torch.full((batch,), lengths, dtype=torch.int32,
                                 device=q.device)
        self._lengths = lengths
        self._device = q.device
        if starts is not None and starts.shape != (batch + 1,):
            raise ValueError("cu_seqlens_k_new: expected a shape "
                             f"({batch + 1},), got {tuple(starts.shape)}")

    def rotate(self, q, starts, cos, sin, lengths, interleaved, has_order):
        """Rotates the new keys and returns the rotated queries."""
        for name, x in (("rotary_cos", cos), ("rotary_sin", sin)):
            if not isinstance(x, torch.Tensor) or x.dim() != 2 or (
                    x.shape != cos.shape or 2 * x.shape[1] > q.shape[-1]):
                raise ValueError(
                    f"{name}: expected a tensor (positions, half of the features "
                    "to rotate), as large as rotary_cos, got "
                    f"{tuple(getattr(x, 'shape', ())) or type(x).__name__}")
        if lengths is None:
            lengths = self._lengths
        elif lengths.shape != self._lengths.shape:
            raise ValueError("rotary_seqlens: expected a shape "
                             f"{tuple(self._lengths.shape)}, got "
                             f"{tuple(lengths.shape)}")
        self._keys = _rotate_rows(self._keys, self._starts, lengths, cos, sin,
                                  interleaved, True)
        return _rotate_rows(q, starts, lengths, cos, sin, interleaved, has_order)

    def write(self, k_cache, v_cache, slots, pages):
        """Writes the new keys and values to the cache, and returns the lengths
        with them."""
        keys, values = self._keys, self._values
        rows = slots if pages is None else pages
        operands = [x for x in (self._lengths, rows) if x is not None]
        if self._starts is None:
            added = keys.shape[1]
        else:
            added = self._starts[1:] - self._starts[:-1]
            if not keys.shape[0] or not added.shape[0]:
                return self._lengths + added
        if self._starts is None and _runs_now(*operands) and (
                pages is None or pages.shape[1]):
            text = _write_places(*(ELEMENTS[x.dtype] for x in operands),
                                 is_paged=pages is not None)
            slot, place = _operator.get_forward(text, self._device)(
                *operands, added, k_cache.shape[1])
        else:
            sequences, places = find_places(keys.shape, self._starts,
                                            self._device)
            if self._starts is not None:
                # What belongs to no sequence repeats the last row that does, so
                # that both write the same; where there is none, a row keeps what
                # it has.
                row = torch.arange(keys.shape[0], device=self._device)
                row = torch.minimum(row, self._starts[-1] - 1).clamp_(min=0)
                sequences = sequences[row]
                places = places[row].clamp(min=0)
                keys, values = keys[row], values[row]
            place = self._lengths[sequences].long() + places
            if pages is not None:
                size = k_cache.shape[1]
                slot = pages[sequences, place // size].long()
                place = place % size
            else:
                slot = (sequences if slots is None else slots[sequences]).long()
                slot, place = torch.broadcast_tensors(slot, place)
        for cache, new in ((k_cache, keys), (v_cache, values)):
            if self._starts is not None:
                new = torch.where(self._starts[-1] > 0, new, cache[slot, place])
            cache.index_put_((slot, place), new)
        return self._lengths + added


def _rotate(x, positions, cos, sin, interleaved):
    """Rotates pairs of the first features of x, `[..., heads, features]`, by the
    angles of their positions, `[...]`."""
    half = cos.shape[1]
    cos, sin = (t[positions.long()].float()[..., None, :] for t in (cos, sin))
    part = x[..., :2 * half].float()
    if interleaved:
        a, b = part[..., ::2], part[..., 1::2]
    else:
        a, b = part[..., :half], part[..., half:]
    turned = (a * cos - b * sin, b * cos + a * sin)
    turned = (torch.stack(turned, -1).flatten(-2) if interleaved
              else torch.cat(turned, -1))
    return torch.cat((turned.to(x.dtype), x[..., 2 * half:]), -1)


def _runs_now(x, *others):
    """Returns true if nothing but kernels looks at what is done with tensors,
    which are on one device."""
    if torch.compiler.is_dynamo_compiling() or is_watched():
        return False
    return x.device.type in ("cpu", "cuda") and all(
        type(each) in PLAIN and each.device == x.device for each in (x, *others))


def _rotate_rows(x, starts, lengths, cos, sin, interleaved, has_order):
    """Rotates rows, packed ones if there are `starts`, at the positions behind
    `lengths`, those of a sequence all at the first one if they have no order."""
    if starts is None and cos.numel() and _runs_now(x, lengths, cos, sin):
        text = _write_rotation(
            x.shape[-1], cos.shape[1], bool(interleaved), bool(has_order),
            *(ELEMENTS[t.dtype] for t in (x, lengths, cos, sin)))
        return _operator.get_forward(text, x.device)(x, lengths, cos, sin)
    sequences, places = find_places(x.shape, starts, x.device)
    if not has_order:
        places = torch.zeros_like(places)
    return _rotate(x, lengths[sequences] + places, cos, sin, interleaved)


#--- Graphs -------------------------------------------------------------------


def _convert(name, element, wide):
    """Returns the conversion of a float, `%<name>_read`, and what it is called
    then."""
    narrow, full = (int(type.lstrip("bf")) for type in (element, wide))
    if narrow == full:
        return "", f"%{name}_read"
    op = "extf" if narrow < full else "truncf"
    return f"%{name} = arith.{op} %{name}_read : {element} to {wide}", f"%{name}"


@functools.lru_cache(maxsize=None)
def _write_rotation(size, half, interleaved, has_order, element, integer, cosine,
                    sine):
    """Returns the graph of a rotation of rows `[B, S, H, size]`. A position that
    the tables do not have gives NaN."""
    wide = "f64" if element == "f64" else "f32"
    nan = "0x7FF8000000000000" if wide == "f64" else "0x7FC00000"
    conversions, names = zip(*(
        _convert(name, source, wide)
        for name, source in (("own", element), ("other", element),
                             ("cosine", cosine), ("sine", sine))))
    own, other, cos, sin = names
    if interleaved:
        pair = ["%number = arith.divui %d, %c2 : index",
                "%odd = arith.remui %d, %c2 : index",
                "%isfirst = arith.cmpi eq, %odd, %c0 : index",
                "%double = arith.muli %number, %c2 : index",
                "%even = arith.subi %c1, %odd : index",
                "%across = arith.addi %double, %even : index"]
    else:
        pair = ["%number = arith.addi %d, %c0 : index",
                "%isfirst = arith.cmpi ult, %d, %half : index",
                "%across = arith.addi %d, %half : index"]
    body = [
        "%b = linalg.index 0 : index",
        "%i = linalg.index 1 : index",
        "%h = linalg.index 2 : index",
        "%d = linalg.index 3 : index",
        "%length = tensor.extract %lengths[%b] : !lengths",
        f"%start = arith.index_cast %length : {integer} to index",
        f"%position = arith.addi %start, {'%i' if has_order else '%c0'} : index",
        "%exists = arith.cmpi ult, %position, %positions : index",
        "%row = arith.select %exists, %position, %c0 : index",
        "%isturned = arith.cmpi ult, %d, %turned : index",
        *pair,
        "%place = arith.remui %number, %half : index",
        "%partner = arith.remui %across, %turned : index",
        "%other_read = tensor.extract %x[%b, %i, %h, %partner] : !x",
        "%cosine_read = tensor.extract %cos[%row, %place] : !cos",
        "%sine_read = tensor.extract %sin[%row, %place] : !sin",
        *filter(None, conversions),
        f"%minus = arith.negf {sin} : {wide}",
        f"%signed = arith.select %isfirst, %minus, {sin} : {wide}",
        f"%left = arith.mulf {own}, {cos} : {wide}",
        f"%right = arith.mulf {other}, %signed : {wide}",
        f"%sum = arith.addf %left, %right : {wide}",
        f"%y = arith.select %exists, %sum, %nan : {wide}"]
    turned = "%y"
    if element != wide:
        turned = "%rounded"
        body.append(f"%rounded = arith.truncf %y : {wide} to {element}")
    body += [f"%z = arith.select %isturned, {turned}, %own_read : {element}",
             f"linalg.yield %z : {element}"]
    return "\n".join([
        "#all = affine_map<(b, i, h, d) -> (b, i, h, d)>",
        f"!x = tensor<?x?x?x{size}x{element}>",
        f"!lengths = tensor<?x{integer}>",
        f"!cos = tensor<?x{half}x{cosine}>",
        f"!sin = tensor<?x{half}x{sine}>",
        "func.func @rotate(%x: !x, %lengths: !lengths, %cos: !cos, %sin: !sin) "
        "-> !x {",
        *(f"  %c{n} = arith.constant {n} : index" for n in range(3)),
        f"  %half = arith.constant {half} : index",
        f"  %turned = arith.constant {2 * half} : index",
        f"  %nan = arith.constant {nan} : {wide}",
        "  %batch = tensor.dim %x, %c0 : !x",
        "  %count = tensor.dim %x, %c1 : !x",
        "  %heads = tensor.dim %x, %c2 : !x",
        "  %positions = tensor.dim %cos, %c0 : !cos",
        "  %room = tensor.empty(%batch, %count, %heads) : !x",
        "  %result = linalg.generic {indexing_maps = [#all, #all],",
        "      iterator_types = [\"parallel\", \"parallel\", \"parallel\", "
        "\"parallel\"]}",
        "      ins(%x : !x) outs(%room : !x) {",
        f"  ^bb0(%own_read: {element}, %unused: {element}):",
        *(f"    {line}" for line in body),
        "  } -> !x",
        "  return %result : !x",
        "}"])


@functools.lru_cache(maxsize=None)
def _write_places(integer, row=None, *, is_paged):
    """Returns the graph of the slot and of the place in it of new rows `[B, S]`.
    What is behind all pages has a slot that no cache has."""
    rows = f"tensor<?x{'?x' if is_paged else ''}{row}>"
    sizes, slot = [], ["%place = arith.addi %at, %c0 : index"]
    if is_paged:
        sizes = ["%columns = tensor.dim %rows, %c1 : !rows"]
        slot = ["%column = arith.divui %at, %size : index",
                "%place = arith.remui %at, %size : index",
                "%exists = arith.cmpi ult, %column, %columns : index",
                "%known = arith.select %exists, %column, %c0 : index",
                "%entry = tensor.extract %rows[%b, %known] : !rows",
                f"%page = arith.index_cast %entry : {row} to index",
                "%slot = arith.select %exists, %page, %none : index"]
    elif row:
        slot += ["%entry = tensor.extract %rows[%b] : !rows",
                 f"%slot = arith.index_cast %entry : {row} to index"]
    else:
        slot += ["%slot = arith.addi %b, %c0 : index"]
    return "\n".join([
        "#all = affine_map<(b, i) -> (b, i)>",
        f"!lengths = tensor<?x{integer}>",
        *([f"!rows = {rows}"] if row else []),
        "!places = tensor<?x?xi64>",
        f"func.func @place(%lengths: !lengths{', %rows: !rows' if row else ''}, "
        "%count: index, %size: index) -> (!places, !places) {",
        "  %c0 = arith.constant 0 : index",
        "  %c1 = arith.constant 1 : index",
        f"  %none = arith.constant {2**62} : index",
        "  %batch = tensor.dim %lengths, %c0 : !lengths",
        *(f"  {line}" for line in sizes),
        "  %room = tensor.empty(%batch, %count) : !places",
        "  %result:2 = linalg.generic {indexing_maps = [#all, #all],",
        "      iterator_types = [\"parallel\", \"parallel\"]} "
        "outs(%room, %room : !places, !places) {",
        "  ^bb0(%unused: i64, %other: i64):",
        "    %b = linalg.index 0 : index",
        "    %i = linalg.index 1 : index",
        "    %length = tensor.extract %lengths[%b] : !lengths",
        f"    %start = arith.index_cast %length : {integer} to index",
        "    %at = arith.addi %start, %i : index",
        *(f"    {line}" for line in slot),
        "    %slot_number = arith.index_cast %slot : index to i64",
        "    %place_number = arith.index_cast %place : index to i64",
        "    linalg.yield %slot_number, %place_number : i64, i64",
        "  } -> (!places, !places)",
        "  return %result#0, %result#1 : !places, !places",
        "}"])

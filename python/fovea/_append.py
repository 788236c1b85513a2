# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New keys and values for a cache: their rotation, and where they are written.

Nothing here waits for a device: lengths stay where they are.
"""

import torch


def find_sequences(starts, count):
    """Returns the sequence of each of `count` packed rows, the last one for rows
    behind all."""
    places = torch.arange(count, dtype=starts.dtype, device=starts.device)
    sequences = torch.searchsorted(starts[1:].contiguous(), places, right=True,
                                   out_int32=True)
    return sequences.clamp_(max=max(starts.shape[0] - 2, 0))


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
        self._sequences, self._places = find_places(k.shape, starts, q.device)

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
        self._keys = _rotate(self._keys, lengths[self._sequences] + self._places,
                             cos, sin, interleaved)
        sequences, places = find_places(q.shape, starts, q.device)
        if not has_order:
            places = torch.zeros_like(places)
        return _rotate(q, lengths[sequences] + places, cos, sin, interleaved)

    def write(self, k_cache, v_cache, slots, pages):
        """Writes the new keys and values to the cache, and returns the lengths
        with them."""
        sequences, places = self._sequences, self._places
        keys, values = self._keys, self._values
        if self._starts is None:
            added = keys.shape[1]
        else:
            added = self._starts[1:] - self._starts[:-1]
            if not keys.shape[0] or not added.shape[0]:
                return self._lengths + added
            # What belongs to no sequence repeats the last row that does, so that
            # both write the same; where there is none, a row keeps what it has.
            row = torch.arange(keys.shape[0], device=self._device)
            row = torch.minimum(row, self._starts[-1] - 1).clamp_(min=0)
            sequences, places = sequences[row], places[row].clamp(min=0)
            keys, values = keys[row], values[row]
        place = self._lengths[sequences].long() + places
        if pages is not None:
            size = k_cache.shape[1]
            slot, place = pages[sequences, place // size].long(), place % size
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

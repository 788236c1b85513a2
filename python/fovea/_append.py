# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New keys and values for a cache: their rotation, and where they are written.

Nothing here waits for a device: lengths stay where they are. A graph rotates and
writes rows in front of the attention that reads them (`NewRows`), in one call; what
is traced or transformed takes PyTorch's operators.
"""

import torch

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
        self._lengths = lengths
        self._batch = batch
        self._device = q.device
        self._rotation = self._positions = None
        if starts is not None and starts.shape != (batch + 1,):
            raise ValueError("cu_seqlens_k_new: expected a shape "
                             f"({batch + 1},), got {tuple(starts.shape)}")

    def rotate(self, cos, sin, lengths, interleaved, has_order, size):
        """Rotates the new keys, and says how queries are to be rotated."""
        for name, x in (("rotary_cos", cos), ("rotary_sin", sin)):
            if not isinstance(x, torch.Tensor) or x.dim() != 2 or (
                    x.shape != cos.shape or 2 * x.shape[1] > size):
                raise ValueError(
                    f"{name}: expected a tensor (positions, half of the features "
                    "to rotate), as large as rotary_cos, got "
                    f"{tuple(getattr(x, 'shape', ())) or type(x).__name__}")
        if lengths is not None and lengths.shape != (self._batch,):
            raise ValueError("rotary_seqlens: expected a shape "
                             f"{(self._batch,)}, got {tuple(lengths.shape)}")
        self._rotation = (cos, sin, interleaved, has_order)
        self._positions = lengths

    def count(self, b):
        """Returns the number of new keys of sequence b, which is traced."""
        return self._starts[b + 1] - self._starts[b]

    @property
    def added(self):
        """The number of new keys of each sequence, None if they differ."""
        return self._keys.shape[1] if self._starts is None else None

    def find_rows(self, q, k_cache, v_cache, slots, pages):
        """Returns the new rows for a graph that writes them; None if operators
        of PyTorch have to."""
        cos, sin, *_ = self._rotation or (None, None)
        operands = [self._keys, self._values, k_cache, v_cache, self._starts,
                    self._positions, cos, sin, slots, pages]
        if isinstance(self._lengths, torch.Tensor):
            operands.append(self._lengths)
        if not _runs_now(q, *(x for x in operands if x is not None)):
            return None
        # What is written and nothing else is one tensor.
        if not self._keys.numel() or not self._values.numel() or not all(
                x.numel() and x.stride(-1) == 1 and 0 not in x.stride()
                for x in (k_cache, v_cache)) or (
                    k_cache.data_ptr() == v_cache.data_ptr()) or (
                        cos is not None and not cos.numel()):
            return None
        if q.device.type == "cpu":
            self._check_places(k_cache, slots, pages)
        sequences = None
        if self._starts is not None:
            sequences = find_sequences(self._starts, self._keys.shape[0])
        return NewRows(self._keys, self._values, self._lengths, self._starts,
                       sequences, self._rotation, self._positions)

    def _check_places(self, cache, slots, pages):
        """Raises an error for rows without a place, which a GPU leaves out."""
        sequences, at, _ = self._find_rows()
        size = cache.shape[1]
        rows = torch.broadcast_to(sequences if slots is None else slots[sequences],
                                  at.shape)
        if pages is not None:
            if at.numel() and not 0 <= at.max() < pages.shape[1] * size:
                raise IndexError(
                    f"k: place {int(at.max())} of a sequence is out of bounds for "
                    f"page_table with {pages.shape[1]} pages of {size} keys")
            rows, at = pages[sequences, at // size], at % size
        for name, x, count in (("place", at, size), ("slot", rows, cache.shape[0])):
            if x.numel() and not 0 <= x.min() <= x.max() < count:
                wrong = x.min() if x.min() < 0 else x.max()
                raise IndexError(f"k: {name} {int(wrong)} of the cache is out of "
                                 f"bounds for {count} of them")

    def _find_rows(self):
        """Returns the sequences of new rows, their places in these, and, of packed
        rows, the ones that are new; what belongs to no sequence repeats the last
        row that does, so that both are the same."""
        sequences, places = find_places(self._keys.shape, self._starts,
                                        self._device)
        row = None
        if self._starts is not None:
            row = torch.arange(self._keys.shape[0], device=self._device)
            row = torch.minimum(row, self._starts[-1] - 1).clamp_(min=0)
            sequences = sequences[row]
            places = places[row].clamp(min=0)
        return sequences, self._make_lengths()[sequences].long() + places, row

    def _make_lengths(self):
        if isinstance(self._lengths, torch.Tensor):
            return self._lengths
        return torch.full((self._batch,), self._lengths, dtype=torch.int32,
                          device=self._device)

    def write(self, q, starts, k_cache, v_cache, slots, pages):
        """Writes the new keys and values to the cache by PyTorch's operators, and
        returns the rotated queries and the lengths with the new keys."""
        keys, values = self._keys, self._values
        if self._rotation:
            positions = self._positions
            if positions is None:
                positions = self._make_lengths()
            cos, sin, interleaved, has_order = self._rotation
            keys = _rotate_rows(keys, self._starts, positions, cos, sin,
                                interleaved, True)
            q = _rotate_rows(q, starts, positions, cos, sin, interleaved,
                             has_order)
        if self._starts is None:
            added = keys.shape[1]
        else:
            added = self._starts[1:] - self._starts[:-1]
            if not keys.shape[0] or not added.shape[0]:
                return q, self._make_lengths() + added
        sequences, place, row = self._find_rows()
        if row is not None:
            keys, values = keys[row], values[row]
        if pages is not None:
            size = k_cache.shape[1]
            slot = pages[sequences, place // size].long()
            place = place % size
        else:
            slot = (sequences if slots is None else slots[sequences]).long()
            slot, place = torch.broadcast_tensors(slot, place)
        for cache, new in ((k_cache, keys), (v_cache, values)):
            # Where there is no new row at all, a row keeps what it has.
            if self._starts is not None:
                new = torch.where(self._starts[-1] > 0, new, cache[slot, place])
            cache.index_put_((slot, place), new)
        return q, self._make_lengths() + added


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
    sequences, places = find_places(x.shape, starts, x.device)
    if not has_order:
        places = torch.zeros_like(places)
    return _rotate(x, lengths[sequences] + places, cos, sin, interleaved)


#--- Graphs -------------------------------------------------------------------


class NewRows:
    """New rows of caches as a part of a graph, which a tracer writes."""

    def __init__(self, keys, values, lengths, starts, sequences, rotation,
                 positions):
        self._tensors = {
            "new_keys": keys, "new_values": values, "cache_seqlens": lengths,
            "cu_seqlens_k_new": starts, "new_sequences": sequences,
            "rotary_seqlens": positions}
        self._rotation = rotation
        if rotation:
            self._tensors.update(rotary_cos=rotation[0], rotary_sin=rotation[1])
        self._operands = {}

    def enter(self, tracer):
        """Makes the tensors operands of a tracer, and a length that is an integer a
        number."""
        for name, x in self._tensors.items():
            if isinstance(x, torch.Tensor):
                operand = tracer.enter(name, x)
                if name.startswith(("new_keys", "new_values", "rotary_c",
                                    "rotary_sin")):
                    for dim in range(1 if x.dim() == 2 else x.dim() - 2, x.dim()):
                        operand.note(dim, is_fixed=True)
                self._operands[name] = operand
            elif name == "cache_seqlens":
                self._operands[name] = tracer.add_number(x)

    @property
    def operands(self):
        """The tensors and numbers of the graph, and what else decides its text."""
        return [*self._tensors.values(), *(self._rotation or ())[2:]]

    @property
    def turns(self):
        """True if queries are to be rotated."""
        return self._rotation is not None

    def _read(self, name, place):
        """Returns an element of an operand of integers, `%<name>`, at %<place>, as
        an index; of a number, the number."""
        operand = self._operands[name]
        if isinstance(operand, str):
            return [f"%{name}_{place} = arith.addi {operand}, %c0 : index"]
        element = ELEMENTS[operand.tensor.dtype]
        return [f"%{name}_{place}_number = tensor.extract "
                f"%{operand.name}[%{place}] : !{operand.name}",
                f"%{name}_{place} = arith.index_cast %{name}_{place}_number : "
                f"{element} to index"]

    def write_turn(self, element, place, read, is_new=False):
        """Returns the element `%turned` of a row of sequence %b, which is in `place`
        among its sequence's; `read` gives the text of reading its element at a
        place along the row, of which %d is its own. A position that the tables do
        not have gives NaN."""
        cos, sin, interleaved, has_order = self._rotation
        half = cos.shape[1]
        names = [self._operands[name].name for name in ("rotary_cos", "rotary_sin")]
        lengths = "rotary_seqlens" if "rotary_seqlens" in self._operands else (
            "cache_seqlens")
        wide = "f64" if element == "f64" else "f32"
        nan = "0x7FF8000000000000" if wide == "f64" else "0x7FC00000"
        conversions, (own, other, cosine, sine) = zip(*(
            _convert(name, source, wide)
            for name, source in (("own", element), ("other", element),
                                 ("cosine", ELEMENTS[cos.dtype]),
                                 ("sine", ELEMENTS[sin.dtype]))))
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
        place = place if is_new or has_order else "%c0"
        lines = [
            f"%half = arith.constant {half} : index",
            f"%whole = arith.constant {2 * half} : index",
            f"%nan = arith.constant {nan} : {wide}",
            *(self._read(lengths, "b") if not is_new or lengths[0] == "r" else ()),
            f"%position = arith.addi %{lengths}_b, {place} : index",
            f"%positions = tensor.dim %{names[0]}, %c0 : !{names[0]}",
            "%has_angle = arith.cmpi ult, %position, %positions : index",
            "%angle = arith.select %has_angle, %position, %c0 : index",
            "%turns = arith.cmpi ult, %d, %whole : index",
            *pair,
            "%column_of_angle = arith.remui %number, %half : index",
            "%partner = arith.remui %across, %whole : index",
            f"%own_read = {read('%d')}",
            f"%other_read = {read('%partner')}",
            f"%cosine_read = tensor.extract %{names[0]}[%angle, %column_of_angle] : "
            f"!{names[0]}",
            f"%sine_read = tensor.extract %{names[1]}[%angle, %column_of_angle] : "
            f"!{names[1]}",
            *filter(None, conversions),
            f"%minus = arith.negf {sine} : {wide}",
            f"%signed = arith.select %isfirst, %minus, {sine} : {wide}",
            f"%left = arith.mulf {own}, {cosine} : {wide}",
            f"%right = arith.mulf {other}, %signed : {wide}",
            f"%sum = arith.addf %left, %right : {wide}",
            f"%in_wide = arith.select %has_angle, %sum, %nan : {wide}"]
        result = "%in_wide"
        if element != wide:
            result = "%rounded"
            lines.append(f"%rounded = arith.truncf %in_wide : {wide} to {element}")
        return [*lines, f"%turned = arith.select %turns, {result}, %own_read : "
                        f"{element}"]

    def write_rows(self, slots, pages):
        """Returns the steps that write the new rows to %key and %value, as
        %new_key and %new_value. What has no place is left out."""
        keys, values = (self._tensors[name] for name in ("new_keys", "new_values"))
        caches = [("key", keys, "new_keys"), ("value", values, "new_values")]
        groups = [caches]
        if keys.shape[-1] != values.shape[-1]:
            groups = [[cache] for cache in caches]
        starts = self._operands.get("cu_seqlens_k_new")
        new = self._operands["new_keys"].name
        steps = [f"%new_count = tensor.dim %{new}, %c{0 if starts else 1} : !{new}"]
        if starts:
            steps += [f"%new_bounds = tensor.dim %{starts.name}, %c0 : "
                      f"!{starts.name}",
                      "%last = arith.subi %new_bounds, %c1 : index",
                      *self._read("cu_seqlens_k_new", "last")]
        return steps + [self._write_loop(group, slots, pages) for group in groups]

    def _write_loop(self, caches, slots, pages):
        """Returns the loop that writes rows of these caches, all as long."""
        heads, size = (int(n) for n in caches[0][1].shape[-2:])
        is_packed = "new_sequences" in self._operands
        if is_packed:
            indices, sizes, row = "%t, %h", "%new_count", "%t, %h"
            place = self._read("new_sequences", "t") + [
                "%b = arith.addi %new_sequences_t, %c0 : index",
                *self._read("cu_seqlens_k_new", "b"),
                "%i = arith.subi %t, %cu_seqlens_k_new_b : index",
                "%is_row = arith.cmpi ult, %t, %cu_seqlens_k_new_last : index"]
        else:
            indices, sizes, row = "%b, %i, %h", "%batch, %new_count", "%b, %i, %h"
            place = []
        place += [*self._read("cache_seqlens", "b"),
                  "%at = arith.addi %cache_seqlens_b, %i : index",
                  "%rows_of_slot = tensor.dim %key, %c1 : !key"]
        if pages is not None:
            place += ["%number_of_page = arith.divui %at, %rows_of_slot : index",
                      "%row_of_slot = arith.remui %at, %rows_of_slot : index",
                      "%has_page = arith.cmpi ult, %number_of_page, %columns : "
                      "index",
                      "%known_page = arith.select %has_page, %number_of_page, %c0 "
                      ": index",
                      f"%entry = tensor.extract %{pages.name}[%b, %known_page] : "
                      f"!{pages.name}",
                      f"%found = arith.index_cast %entry : "
                      f"{ELEMENTS[pages.tensor.dtype]} to index"]
        else:
            place += ["%row_of_slot = arith.addi %at, %c0 : index",
                      "%has_page = arith.cmpi ult, %at, %rows_of_slot : index"]
            if slots is not None:
                place += [f"%entry = tensor.extract %{slots.name}[%b] : "
                          f"!{slots.name}",
                          f"%found = arith.index_cast %entry : "
                          f"{ELEMENTS[slots.tensor.dtype]} to index"]
            else:
                place.append("%found = arith.addi %b, %c0 : index")
        place += ["%slots = tensor.dim %key, %c0 : !key",
                  "%has_slot = arith.cmpi ult, %found, %slots : index",
                  "%has_place = arith.andi %has_page, %has_slot : i1",
                  "%exists = arith.andi %has_place, "
                  f"{'%is_row' if is_packed else '%has_place'} : i1",
                  "%slot = arith.select %exists, %found, %c0 : index",
                  "%inside = arith.select %exists, %row_of_slot, %c0 : index",
                  "%n = arith.select %exists, %c1, %c0 : index"]
        elements = [ELEMENTS[x.dtype] for _, x, _ in caches]
        types = [f"tensor<?x{size}x{element}>" for element in elements]
        where = f"[%slot, %inside, %h, 0] [%n, 1, 1, {size}] [1, 1, 1, 1]"
        names = [name for name, _, _ in caches]
        body = ["%d = linalg.index 1 : index"]
        results = []
        for (name, _, source), element in zip(caches, elements):
            operand = self._operands[source].name

            def read(d, operand=operand):
                return f"tensor.extract %{operand}[{row}, {d}] : !{operand}"

            if name == "key" and self.turns:
                body += self.write_turn(element, "%i", read, is_new=True)
                results.append("%turned")
            else:
                body.append(f"%{name}_element = {read('%d')}")
                results.append(f"%{name}_element")
        rooms = [f"%{name}_room" for name in names]
        rows = [f"%{name}_row" for name in names]
        return "\n".join([
            f"{', '.join(f'%new_{name}' for name in names)} = scf.forall ({indices}) "
            f"in ({sizes}, {heads})",
            f"      shared_outs({', '.join(f'%{name}_out = %{name}' for name in names)}"
            f") -> ({', '.join(f'!{name}' for name in names)}) {{",
            *(f"    {line}" for line in place),
            *(f"    {room} = tensor.extract_slice %{name}_out{where} : !{name} to "
              f"{type}" for room, name, type in zip(rooms, names, types)),
            f"    {', '.join(rows)} = linalg.generic {{indexing_maps = "
            f"[{', '.join(['#place'] * len(names))}],",
            "        iterator_types = [\"parallel\", \"parallel\"]} outs("
            f"{', '.join(rooms)} : {', '.join(types)}) {{",
            "    ^bb0("
            + ", ".join(f"%unused_{name}: {element}"
                        for name, element in zip(names, elements)) + "):",
            *(f"      {line}" for line in body),
            f"      linalg.yield {', '.join(results)} : {', '.join(elements)}",
            f"    }} -> ({', '.join(types)})",
            "    scf.forall.in_parallel {",
            *(f"      tensor.parallel_insert_slice {r} into %{name}_out{where} : "
              f"{type} into !{name}" for r, name, type in zip(rows, names, types)),
            "    }", "  }"])


def _convert(name, element, wide):
    """Returns the conversion of a float, `%<name>_read`, and what it is called
    then."""
    narrow, full = (int(type.lstrip("bf")) for type in (element, wide))
    if narrow == full:
        return "", f"%{name}_read"
    op = "extf" if narrow < full else "truncf"
    return f"%{name} = arith.{op} %{name}_read : {element} to {wide}", f"%{name}"

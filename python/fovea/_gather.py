# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of attention whose rows lie elsewhere: keys in pages or in slots of a
cache, queries, or queries and keys, of several lengths packed one after another.

Where a row lies is part of the graph: a `linalg.generic` that reads the row by
`tensor.extract`, in front of `attn.attention` for queries, keys and values, and
behind it for results. New rows are written to a cache by an `scf.forall` in front of
all that, in place. The text holds the numbers and sizes of heads, the size of
a page and, as all texts, the length of few queries; the batch, other lengths and
the number of pages are dynamic.
"""

import re

from ._regions import write_float, write_init, write_length, write_split
from ._trace import Tracer
from ._values import ELEMENTS, Number

#: The end of a tensor's type, from the last size on.
_ELEMENT = re.compile(r"x[a-z]+[0-9]+>$")


class GatherTracer(Tracer):
    """Traces the mods of one attention and writes the graph with its gathers.

    query: `[B, H, Sq, D]`, or with `starts` `[1, H, T, D]`.
    key, value: `[pages, page, Hkv, D]` with `pages`, `[1, Hkv, Tk, D]` with
        `key_starts`, else `[slots, S, Hkv, D]`.
    pages: `[B, P]`, the pages of each sequence.
    slots: `[B]`, the slot of each sequence.
    starts: `[B + 1]`, the first query of each sequence; longest: queries that no
        sequence exceeds.
    key_starts: `[B + 1]`, beside `starts` and without `longest`, the first key of
        each sequence; key_used: `[B]`, how many of its keys count, if not all do.
        Queries of no sequence are two more, without keys: number B has those in
        front of all others, number B + 1 those behind. The text depends on no
        length, nor on B.
    new: `NewRows` that are written to key and value, and rotate queries.
    value_scale: `[B, Hkv]`, a factor of all values of a head.

    Elements of key and value that are bytes are floats of 8 bits, `f8E4M3FN`: keys
    and values are those that they become in the query's type, which has them all.
    """

    def __init__(self, query, key, value, *, pages=None, slots=None, starts=None,
                 longest=None, key_starts=None, key_used=None, new=None,
                 value_scale=None):
        super().__init__(query, key, value, has_gradients=False)
        self._known = {}
        self._pages = self.enter("page_table", pages)
        self._slots = self.enter("cache_batch_idx", slots)
        self._starts = self.enter("cu_seqlens_q", starts)
        self._key_starts = self.enter("cu_seqlens_k", key_starts)
        self._key_used = self.enter("seqused_k", key_used)
        heads = query.shape[1]
        batch, length = query.shape[0], query.shape[2]
        if longest is not None:
            batch, length = starts.shape[0] - 1, longest
            self.add_number(longest)
        self._value_scale = self.enter("v_descale", value_scale)
        if value_scale is not None:
            self._value_scale.note(1, is_fixed=True)
        self._new = new
        if new is not None:
            new.enter(self)
        kv_length = key.shape[1]
        if pages is not None:
            kv_length *= pages.shape[1]
        self._sizes = (batch, heads, length, kv_length)
        if key_starts is not None:
            self._sizes = (None, heads, None, None)
        self.runs = all(self._sizes)

    def enter(self, name, tensor):
        """Makes a tensor an operand of this name."""
        if tensor is None:
            return None
        self._known[id(tensor)] = name
        return self.capture(tensor)

    def add_number(self, number):
        """Makes an integer an operand and returns its name."""
        self._numbers.append(Number(number))
        return f"%number{len(self._numbers) - 1}"

    def _name(self, identity):
        return self._known.get(identity) or super()._name(identity)

    def write(self, lse=None):
        query, key, value = (self._inputs[name]
                             for name in ("query", "key", "value"))
        is_packed = self._starts is not None
        has_packed_keys = self._key_starts is not None
        heads = int(query.shape[1])
        kv_heads = int(key.shape[1 if has_packed_keys else 2])
        size, value_size = int(key.shape[3]), int(value.shape[3])
        page = "?" if self._pages is None else int(key.shape[1])
        length = "?"
        if not has_packed_keys:
            length = write_length(self._sizes[2], self.device.type == "cuda")
        # Several queries of packed sequences are read where they lie, whatever
        # their number.
        if is_packed and length != "1":
            length = "?"
        types = {"query": self._write_input(query, "?" if is_packed else length)}
        for name, tensor, features in (("key", key, size), ("value", value, value_size)):
            types[name] = self._write_input(tensor) if has_packed_keys else (
                f"tensor<?x{page}x{kv_heads}x{features}x{ELEMENTS[tensor.dtype]}>")
        types.update((name, operand.type)
                     for name, operand in self._names.items())
        written = ("key", "value") if self._new is not None else ()
        parameters = [f"%{name}: !{name}"
                      + " {bufferization.writable = true}" * (name in written)
                      for name in types]
        parameters += self._write_numbers()
        for name, tensor in (("keys", key), ("values", value)):
            types[name] = (f"tensor<?x{kv_heads}x?x{int(tensor.shape[3])}x"
                           f"{ELEMENTS[query.dtype]}>")
        ends = {"output": f"{value_size}x{ELEMENTS[query.dtype]}"}
        if lse:
            ends["lse"] = lse
        # Results of the padded queries, and of the packed ones.
        padded = {}
        for name, end in ends.items():
            types[name] = f"tensor<?x{heads}x{'?x' if is_packed else f'{length}x'}{end}>"
            padded[name] = name
            if is_packed:
                padded[name] = f"padded_{name}"
                types[padded[name]] = f"tensor<?x{heads}x{length}x{end}>"
        steps = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index",
                 "%c2 = arith.constant 2 : index", *self._write_scale(),
                 *self._write_sizes()]
        if self._new is not None:
            steps += self._new.write_rows(self._slots, self._pages)
        has_many = is_packed and length == "?"
        for name, source in (("keys", "key"), ("values", "value")):
            steps += self._write_keys(name, source, types[name], has_many)
        queries = "query"
        turns = self._new is not None and self._new.turns
        if is_packed:
            queries = "queries"
            types[queries] = self._write_input(query, length)
            steps += self._write_queries(types[queries], has_many)
        elif turns:
            queries = "queries"
            types[queries] = types["query"]
            steps += self._write_turned(types[queries])
        found = list(padded.values())
        if self._value_scale is not None:
            found[0] = "unscaled"
            wide = self._float
            types["unscaled"] = _ELEMENT.sub(f"x{wide}>", types[padded["output"]])
        values = ", ".join(f"!{name}" for name in found)
        steps.append("\n".join([
            f"{', '.join(f'%{name}' for name in found)} = "
            f"attn.attention %{queries}, %keys, %values "
            f"scale({write_float(self._factor, 'f64')}){write_init(self._init)}",
            *(f"    {name} {self._write_region(name)}"
              for name in self._regions),
            f"    {write_split(self._split_size)}: !{queries}, !keys, !values -> "
            f"{values}"]))
        if self._value_scale is not None:
            steps += self._write_scaled(padded["output"], types, heads // kv_heads)
        if is_packed:
            steps += self._write_results(padded, types)
        names = ", ".join(f"%{name}" for name in ends)
        values = ", ".join(f"!{name}" for name in ends)
        return "".join([
            "#all = affine_map<(b, h, i, d) -> (b, h, i, d)>\n",
            "#row = affine_map<(b, h, i) -> (b, h, i)>\n" if is_packed and lse
            else "",
            *(f"!{name} = {type}\n" for name, type in types.items()),
            "#place = affine_map<(n, d) -> (n, d)>\n" if written else "",
            f"func.func @attention({', '.join(parameters)}) -> ({values}) {{\n",
            *(f"  {step}\n" for step in steps),
            f"  return {names} : {values}\n}}\n"])

    def _write_sizes(self):
        """Returns the numbers of sequences and of keys that one may have."""
        bounds = []
        if self._starts is not None:
            name = self._starts.name
            bounds = [f"%bounds = tensor.dim %{name}, %c0 : !{name}"]
        if self._key_starts is not None:
            return [*bounds, "%sequences = arith.subi %bounds, %c1 : index",
                    "%batch = arith.addi %bounds, %c1 : index",
                    "%length = tensor.dim %key, %c2 : !key"]
        if self._pages is not None:
            table = self._pages.name
            return [f"%batch = tensor.dim %{table}, %c0 : !{table}",
                    f"%columns = tensor.dim %{table}, %c1 : !{table}",
                    "%page = tensor.dim %key, %c1 : !key",
                    # No tensor is longer, so that positions are known to be small.
                    f"%longest = arith.constant {2**30} : index",
                    "%all_columns = arith.muli %columns, %page : index",
                    *_clamp("length", "%all_columns", "%longest")]
        if self._slots is not None:
            batch = [f"%batch = tensor.dim %{self._slots.name}, %c0 : "
                     f"!{self._slots.name}"]
        elif self._starts is not None:
            batch = [*bounds, "%batch = arith.subi %bounds, %c1 : index"]
        else:
            batch = ["%batch = tensor.dim %query, %c0 : !query"]
        return [*batch, "%length = tensor.dim %key, %c1 : !key"]

    def _write_keys(self, name, source, type, has_many):
        """Returns a gather of the keys or the values of every sequence. The
        number of a page is clamped to the cache: behind a sequence's length,
        tables may hold anything. Where a slot is a sequence's own, and it may have many
        queries, it is a view."""
        if self._key_starts is not None:
            return [f"%{name}_room = tensor.empty(%batch, %length) : !{name}",
                    self._write_copies({name: source}, {name: type}, True,
                                       self._write_key_place())]
        body = []
        if self._pages is not None:
            body += ["%column = arith.divui %j, %page : index",
                     "%place = arith.remui %j, %page : index",
                     *_read_index("entry", self._pages, "%b, %column")]
        elif self._slots is not None:
            body += _read_index("entry", self._slots, "%b")
        if body:
            body += _clamp("row", "%entry", f"%last_{source}")
        row = "%row" if body else "%b"
        place = "%place" if self._pages is not None else "%j"
        stored = source if self._new is None else f"new_{source}"
        read = f"tensor.extract %{stored}[{row}, {place}, %h, %d] : !{source}"
        if ELEMENTS[self._inputs[source].dtype] == "i8":
            body += [f"%bits = {read}",
                     "%small = arith.bitcast %bits : i8 to f8E4M3FN",
                     f"%x = arith.extf %small : f8E4M3FN to {_find_element(type)}"]
        elif has_many and not body:
            return [f"%{name}_room = tensor.empty(%batch, %length) : !{name}",
                    f"%{name} = linalg.transpose ins(%{stored} : !{source}) "
                    f"outs(%{name}_room : !{name}) permutation = [0, 2, 1, 3]"]
        else:
            body.append(f"%x = {read}")
        return [f"%count_{source} = tensor.dim %{source}, %c0 : !{source}",
                f"%last_{source} = arith.subi %count_{source}, %c1 : index",
                f"%{name}_room = tensor.empty(%batch, %length) : !{name}",
                _write_generic(name, type, "bhjd", body)]

    def _write_scaled(self, name, types, group):
        """Returns the output times the factors of its values' heads, which so are
        multiplied once for each query and not for each key."""
        type, wide = types[name], _find_element(types["unscaled"])
        scale = self._value_scale.name
        body = [f"%group = arith.constant {group} : index",
                "%kv_head = arith.divui %h, %group : index",
                f"%factor = tensor.extract %{scale}[%b, %kv_head] : !{scale}"]
        factor = "%factor"
        if wide != "f32":
            factor = "%wide_factor"
            body.append(f"%wide_factor = arith.extf %factor : f32 to {wide}")
        body.append(f"%scaled = arith.mulf %own, {factor} : {wide}")
        result = "%scaled"
        if wide != _find_element(type):
            result = "%x"
            body.append(f"%x = arith.truncf %scaled : {wide} to "
                        f"{_find_element(type)}")
        return [*_write_room(name, type, "unscaled"),
                _write_generic(name, type, "bhid", body, result, ("unscaled", wide))]

    def _write_queries(self, type, has_many):
        """Returns packed queries as a batch, as many for each sequence as the longest
        one has. Many are copied by a loop, so that the compiler knows the rows that
        are not there."""
        sizes = ["%tokens = tensor.dim %query, %c2 : !query"]
        if self._key_starts is None:
            # No sequence has more, whatever the call says.
            sizes += _clamp("rows", "%number0", "%tokens")
        is_copy = has_many and (self._new is None or not self._new.turns)
        if is_copy:
            return [*sizes,
                    f"%queries_room = tensor.empty(%batch, {self._most}) : !queries",
                    self._write_copies({"queries": "query"}, {"queries": type}, True,
                                       self._write_query_place())]
        row, result = self._write_read("%c0, %h, %row")
        room = f"%batch, {self._most}" if has_many else "%batch"
        return [*sizes, "%last_query = arith.subi %tokens, %c1 : index",
                f"%queries_room = tensor.empty({room}) : !queries",
                _write_generic("queries", type, "bhid", [
                    *_read_index("start", self._starts, "%b"),
                    "%token = arith.addi %start, %i : index",
                    *_clamp("row", "%token", "%last_query"), *row], result)]

    def _write_turned(self, type):
        """Returns rotated queries."""
        row, result = self._write_read("%b, %h, %i")
        return [*_write_room("queries", type, "query"),
                _write_generic("queries", type, "bhid", row, result)]

    def _write_read(self, place):
        """Returns the body that reads the query at a place, and rotates it if that is
        wanted, and the name of what it reads."""
        if self._new is None or not self._new.turns:
            return [f"%x = tensor.extract %query[{place}, %d] : !query"], "%x"
        element = ELEMENTS[self._inputs["query"].dtype]
        return self._new.write_turn(
            element, "%i",
            lambda d: f"tensor.extract %query[{place}, {d}] : !query"), "%turned"

    def _write_results(self, padded, types):
        """Returns results that are packed as the queries are: `padded` has the names
        of those of the padded queries. Rows of no sequence are not written."""
        rooms = [f"%{name}_room = tensor.empty(%c1, %tokens) : !{name}"
                 for name in padded]
        return [*rooms, self._write_copies(padded, {
            name: types[source] for name, source in padded.items()}, False,
            self._write_query_place())]

    @property
    def _most(self):
        """The queries that no sequence exceeds."""
        return "%rows" if self._key_starts is None else "%tokens"

    def _write_query_place(self):
        """Returns the steps that say where the queries of a sequence begin, `start`,
        and how many there are, `count`."""
        steps = ["%next = arith.addi %b, %c1 : index"]
        if self._key_starts is None:
            return [*steps, *_read_index("first", self._starts, "%b"),
                    *_read_index("end", self._starts, "%next"),
                    *_write_count("%tokens", self._most)]
        return [*steps, *_write_bounds("%end_of"),
                "%is_front = arith.cmpi eq, %b, %sequences : index",
                "%is_behind = arith.cmpi sgt, %b, %sequences : index",
                "%end_at = arith.select %is_front, %c0, %end_of : index",
                *_read_index("begin", self._starts, "%first_at"),
                *_read_index("finish", self._starts, "%end_at"),
                "%first = arith.select %is_front, %c0, %begin : index",
                "%end = arith.select %is_behind, %tokens, %finish : index",
                *_write_count("%tokens", self._most)]

    def _write_key_place(self):
        """Returns the same of the keys of a sequence. Queries of no sequence have
        none."""
        steps = ["%next = arith.addi %b, %c1 : index", *_write_bounds("%end_at"),
                 *_read_index("first", self._key_starts, "%first_at"),
                 *_read_index("end", self._key_starts, "%end_at")]
        if self._key_used is None:
            return [*steps, *_write_count("%length", "%length")]
        return [*steps, "%last = arith.subi %sequences, %c1 : index",
                "%used_at = arith.minsi %b, %last : index",
                *_read_index("used", self._key_used, "%used_at"),
                *_clamp("most", "%used", "%length"),
                *_write_count("%length", "%most")]

    def _write_copies(self, sources, types, is_to_padded, place):
        """Returns a loop that copies the rows of each sequence from where they lie
        packed to the first ones of its batch, or from there. `sources` are the names
        of what each result is copied from, `types` the types of padded tensors, and
        `place` the steps that say where the rows are."""
        slices, insertions = [], []
        for name, source in sources.items():
            # A log-sum-exp has no features.
            heads, _, *features, element = types[name].split("x")[1:]
            extent = ", ".join(["1", heads, "%count", *features])
            ones = ", ".join(["1"] * (3 + len(features)))
            behind = ", 0" * len(features)
            places = [f"[0, 0, %start{behind}]", f"[%b, 0, 0{behind}]"]
            read, written = places if is_to_padded else places[::-1]
            rows = f"tensor<1x{heads}x?x{'x'.join([*features, element])}"
            slices.append(f"%{name}_rows = tensor.extract_slice %{source}{read} "
                          f"[{extent}] [{ones}] : !{source} to {rows}")
            insertions.append(
                f"tensor.parallel_insert_slice %{name}_rows into "
                f"%{name}_copied{written} [{extent}] [{ones}] : {rows} into !{name}")
        body = [*place, *slices, "scf.forall.in_parallel {",
                *(f"  {line}" for line in insertions), "}"]
        rooms = ", ".join(f"%{name}_copied = %{name}_room" for name in sources)
        return "\n".join([
            f"{', '.join(f'%{name}' for name in sources)} = scf.forall (%b) in "
            f"(%batch) shared_outs({rooms}) -> "
            f"({', '.join(f'!{name}' for name in sources)}) {{",
            *(f"    {line}" for line in body), "  }"])


def _read_index(name, operand, place):
    """Returns the element of an operand of integers, as an index."""
    element = ELEMENTS[operand.tensor.dtype]
    return [f"%{name}_number = tensor.extract %{operand.name}[{place}] : "
            f"!{operand.name}",
            f"%{name} = arith.index_cast %{name}_number : {element} to index"]


def _clamp(name, value, last):
    """Returns an index that is clamped to 0 and the last one."""
    return [f"%{name}_low = arith.maxsi {value}, %c0 : index",
            f"%{name} = arith.minsi %{name}_low, {last} : index"]


def _write_bounds(end):
    """Returns the steps that say where the bounds of a sequence are, of which there may
    be two more than have bounds: `first_at`, and what `end` names."""
    return ["%first_at = arith.minsi %b, %sequences : index",
            f"{end} = arith.minsi %next, %sequences : index"]


def _write_count(tokens, most):
    """Returns the steps that make of the first of some packed rows and the end of
    these, in so many, where they begin and how many they are, at most so many."""
    return [*_clamp("start", "%first", tokens),
            f"%stop = arith.minsi %end, {tokens} : index",
            "%more = arith.subi %stop, %start : index",
            *_clamp("count", "%more", most)]


def _find_element(type):
    """Returns the type of a tensor type's elements."""
    return _ELEMENT.search(type)[0][1:-1]


def _write_room(name, type, like):
    """Returns the room of a tensor of a name, as long as another one."""
    if type.count("?") != 2:
        return [f"%{name}_room = tensor.empty(%batch) : !{name}"]
    return [f"%{name}_length = tensor.dim %{like}, %c2 : !{like}",
            f"%{name}_room = tensor.empty(%batch, %{name}_length) : !{name}"]


def _write_generic(name, type, letters, body, result="%x", source=None):
    """Returns a tensor, in the room of its name, each of whose elements is the
    result of a body that has the element's coordinates by their letters, and as %own
    that of a source, a name and the type of its elements, if there is one."""
    element = _find_element(type)
    iterators = ", ".join(['"parallel"'] * len(letters))
    places = [f"%{letter} = linalg.index {at} : index"
              for at, letter in enumerate(letters)]
    maps = ["#all" if len(letters) == 4 else "#row"] * (2 if source else 1)
    inputs, own = "", ""
    if source:
        inputs, own = f" ins(%{source[0]} : !{source[0]})", f"%own: {source[1]}, "
    return "\n".join([
        f"%{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}],",
        f"      iterator_types = [{iterators}]}}{inputs} outs(%{name}_room : "
        f"!{name}) {{",
        f"  ^bb0({own}%unused: {element}):",
        *(f"    {line}" for line in places + body),
        f"    linalg.yield {result} : {element}",
        f"  }} -> !{name}"])

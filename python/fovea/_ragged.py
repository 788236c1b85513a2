# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The keys that queries of sequences see which are packed one after another.

A graph finds them in one launch: what `_flash_options.py` writes with PyTorch's
operators for what is traced takes some thirty. The text of the graph holds what is asked
for, and numbers are operands of it.
"""

import functools

from . import _operator
from ._values import ELEMENTS

#: The first key of a query that sees none: it must not widen the bounds of its tile.
LARGEST = 2**31 - 1


def find_keys(queries, starts_q, starts_k, used_q, used_k, left, right, chunk):
    """Returns the first key that each packed query sees, and the one behind its last,
    as tensors of i32; `LARGEST` and 0 of a query that sees none.

    queries: `[T, H, D]`, of which only `T` is read.
    starts_q, starts_k: `[B + 1]`, the first query, or key, of each of at least one
        sequence; used_q, used_k: `[B]`, how many of these count, or None for all.
    left, right: how many keys behind and ahead of its position a query sees; chunk: of
        how many positions it sees those of its own chunk only. Negative, or 0 for
        `chunk`: any. The last query is at the last key.
    """
    # A size that a tensor has is known before the call.
    tensors = {"queries": queries.detach(), "starts_q": starts_q, "starts_k": starts_k,
               "used_q": used_q, "used_k": used_k}
    numbers = {"left": left if left >= 0 else None,
               "right": right if right >= 0 else None, "chunk": chunk or None}
    text = write(
        tuple((name, ELEMENTS[x.dtype]) for name, x in tensors.items()
              if x is not None),
        tuple(name for name, number in numbers.items() if number is not None))
    # The search halves the sequences that it may be.
    halvings = max(starts_q.shape[0] - 2, 0).bit_length()
    operands = [*(x for x in tensors.values() if x is not None), halvings,
                *(number for number in numbers.values() if number is not None)]
    return _operator.get_forward(text, starts_q.device, operands)(*operands)


@functools.cache
def write(tensors, numbers):
    """Returns the text of the graph; `tensors` are the names and types of elements of
    those that there are, and `numbers` the names of what bounds the keys."""
    types = dict(tensors)

    def read(result, name, place):
        return [f"%{result}_number = tensor.extract %{name}[{place}] : !{name}",
                f"%{result} = arith.index_cast %{result}_number : {types[name]} to "
                "index"]

    def count(side):
        """The rows of a sequence that count."""
        if f"used_{side}" in types:
            return read(f"count_{side}", f"used_{side}", "%sequence")
        return [*read(f"end_{side}", f"starts_{side}", "%next"),
                f"%count_{side} = arith.subi %end_{side}, %start_{side} : index"]

    body = [
        "%t = linalg.index 0 : index",
        "%sequence, %unused = scf.for %n = %c0 to %halvings step %c1 "
        "iter_args(%low = %c0, %high = %last) -> (index, index) {",
        "  %sum = arith.addi %low, %high : index",
        "  %middle = arith.shrui %sum, %c1 : index",
        "  %behind = arith.addi %middle, %c1 : index",
        *(f"  {line}" for line in read("bound", "starts_q", "%behind")),
        "  %is_behind = arith.cmpi sge, %t, %bound : index",
        "  %raised = arith.select %is_behind, %behind, %low : index",
        "  %new_low = arith.minsi %raised, %high : index",
        "  %new_high = arith.select %is_behind, %high, %middle : index",
        "  scf.yield %new_low, %new_high : index, index",
        "}",
        "%next = arith.addi %sequence, %c1 : index",
        *read("start_q", "starts_q", "%sequence"),
        *read("start_k", "starts_k", "%sequence"), *count("q"), *count("k"),
        "%place = arith.subi %t, %start_q : index",
        "%shift = arith.subi %count_k, %count_q : index",
        "%position = arith.addi %place, %shift : index",
    ]
    first, end = "%c0", "%count_k"
    if "right" in numbers:
        body += ["%ahead = arith.addi %position, %right : index",
                 "%behind_ahead = arith.addi %ahead, %c1 : index",
                 f"%end_right = arith.minsi {end}, %behind_ahead : index"]
        end = "%end_right"
    if "left" in numbers:
        body += ["%far = arith.subi %position, %left : index",
                 f"%first_left = arith.maxsi {first}, %far : index"]
        first = "%first_left"
    if "chunk" in numbers:
        body += ["%chunks = arith.floordivsi %position, %chunk : index",
                 "%begin = arith.muli %chunks, %chunk : index",
                 "%finish = arith.addi %begin, %chunk : index",
                 f"%first_chunk = arith.maxsi {first}, %begin : index",
                 f"%end_chunk = arith.minsi {end}, %finish : index"]
        first, end = "%first_chunk", "%end_chunk"
    body += [
        "%is_here = arith.cmpi sge, %place, %c0 : index",
        "%is_counted = arith.cmpi slt, %place, %count_q : index",
        f"%has_keys = arith.cmpi slt, {first}, {end} : index",
        "%is_used = arith.andi %is_here, %is_counted : i1",
        "%sees = arith.andi %is_used, %has_keys : i1",
        f"%first_key = arith.addi {first}, %start_k : index",
        f"%end_key = arith.addi {end}, %start_k : index",
        "%first_of = arith.select %sees, %first_key, %largest : index",
        "%end_of = arith.select %sees, %end_key, %c0 : index",
        "%x = arith.index_cast %first_of : index to i32",
        "%y = arith.index_cast %end_of : index to i32",
        "linalg.yield %x, %y : i32, i32",
    ]
    parameters = [f"%{name}: !{name}" for name in types]
    parameters += [f"%{name}: index" for name in ("halvings", *numbers)]
    return "".join([
        "#row = affine_map<(t) -> (t)>\n",
        *(f"!{name} = tensor<{'?x?x' if name == 'queries' else ''}?x{element}>\n"
          for name, element in tensors),
        "!keys = tensor<?xi32>\n",
        f"func.func @find_keys({', '.join(parameters)}) -> (!keys, !keys) {{\n",
        "  %c0 = arith.constant 0 : index\n",
        "  %c1 = arith.constant 1 : index\n",
        "  %c2 = arith.constant 2 : index\n",
        f"  %largest = arith.constant {LARGEST} : index\n",
        "  %bounds = tensor.dim %starts_q, %c0 : !starts_q\n",
        "  %last = arith.subi %bounds, %c2 : index\n",
        "  %count = tensor.dim %queries, %c0 : !queries\n",
        "  %room = tensor.empty(%count) : !keys\n",
        "  %first, %end = linalg.generic {indexing_maps = [#row, #row],\n",
        '      iterator_types = ["parallel"]} outs(%room, %room : !keys, !keys) {\n',
        "  ^bb0(%x_unused: i32, %y_unused: i32):\n",
        *(f"    {line}\n" for line in body),
        "  } -> (!keys, !keys)\n",
        "  return %first, %end : !keys, !keys\n}\n"])

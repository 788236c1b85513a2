# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as importers leave it: generics over operands of any layout, the
mask selected by minus infinity, softmax in one op or in four."""

from . import approx
from .expressions import literal


def _map(count, results):
    names = ", ".join(f"d{n}" for n in range(count))
    return f"affine_map<({names}) -> ({', '.join(results)})>"


def attention_text(attention, program):
    a = attention
    b, h, g, sq, sk, d, e = a.dims(program)
    t = a.accumulator(program)
    at = f"%{a.out}_"
    lines = []

    def new(name, text):
        lines.append(f"{at}{name} = {text}")
        return f"{at}{name}"

    # Every dynamic size by name.
    places = {}
    for operand in (a.q, a.k, a.v):
        for index, dim in enumerate(program.tensors[operand].dims):
            if not program.is_static(dim):
                places.setdefault(dim, (operand, index))
    sizes = {}
    for dim, (operand, index) in places.items():
        c = new(f"c{dim}", f"arith.constant {index} : index")
        sizes[dim] = new(f"n{dim}", f"tensor.dim %{operand}, {c} : "
                                    f"{program.kind(operand)}")

    def empty(name, dims, dtype):
        dynamic = ", ".join(sizes[x] for x in dims if x in sizes)
        return new(name, f"tensor.empty({dynamic}) : "
                         f"{program.kind_of(dims, dtype)}")

    def fill(name, value, target, kind, dtype):
        return new(name, f"linalg.fill ins({value} : {dtype}) outs({target} : "
                         f"{kind}) -> {kind}")

    def generic(name, maps, kinds, ins, outs, arguments, body, reductions=1):
        """Prints a generic of parallel loops, with the last ones reductions."""
        count = maps[0].count("d", 0, maps[0].index("->"))
        types = ['"parallel"'] * (count - reductions)
        types += ['"reduction"'] * reductions
        inputs = f"ins({', '.join(ins)} : {', '.join(kinds[:-1])}) " if ins else ""
        lines.append(
            f"{at}{name} = linalg.generic {{indexing_maps = "
            f"[{', '.join(maps)}], iterator_types = [{', '.join(types)}]}} "
            f"{inputs}outs({outs} : {kinds[-1]}) {{")
        lines.append(f"^bb0({', '.join(arguments)}):")
        lines.extend(f"  {line}" for line in body)
        lines.append(f"}} -> {kinds[-1]}")
        return f"{at}{name}"

    def widen(name, dtype, body):
        if dtype == t:
            return name
        body.append(f"{name}w = arith.extf {name} : {dtype} to {t}")
        return f"{name}w"

    zero = new("zero", f"arith.constant 0.0 : {t}")
    inf = new("inf", "arith.constant "
              + ("0xFFF0000000000000" if t == "f64" else "0xFF800000")
              + f" : {t}")
    scores = (b, h, sq, sk)
    rows = (b, h, sq)
    s_kind, r_kind = program.kind_of(scores, t), program.kind_of(rows, t)
    s_empty, r_empty = empty("es", scores, t), empty("er", rows, t)
    group = ("d1" if g == h else
             f"d1 floordiv {program.size(h) // max(program.size(g), 1)}")
    order = (lambda x: x) if a.heads_first else (
        lambda x: [x[0], x[2], x[1], x[3]])

    # Scores.
    body = []
    left = widen("%x", program.tensors[a.q].dtype, body)
    right = widen("%y", program.tensors[a.k].dtype, body)
    body += [f"%m = arith.mulf {left}, {right} : {t}",
             f"%r = arith.addf %c, %m : {t}", f"linalg.yield %r : {t}"]
    z = fill("zs", zero, s_empty, s_kind, t)
    s = generic("s", [_map(5, order(["d0", "d1", "d2", "d4"])),
                      _map(5, order(["d0", group, "d3", "d4"])),
                      _map(5, ["d0", "d1", "d2", "d3"])],
                [program.kind(a.q), program.kind(a.k), s_kind],
                [f"%{a.q}", f"%{a.k}"], z,
                [f"%x: {program.tensors[a.q].dtype}",
                 f"%y: {program.tensors[a.k].dtype}", f"%c: {t}"], body)

    # Scale, score and mask, at their coordinates.
    (score, value), (mask, keep) = a.region(program, t, f"{a.out}_")
    body = [f"%{n} = linalg.index {index} : index"
            for index, n in enumerate(("b", "h", "i", "j"))]
    body += [f"%scale = arith.constant {literal(a.scale)} : {t}",
             f"%s = arith.mulf %x, %scale : {t}", *score]
    last = value or "%s"
    if keep:
        body += [*mask, f"%kept = arith.select {keep}, {last}, {inf} : {t}"]
        last = "%kept"
    body.append(f"linalg.yield {last} : {t}")
    full = ["d0", "d1", "d2", "d3"]
    every, row = _map(4, full), _map(4, full[:3])
    m = generic("m", [every, every], [s_kind, s_kind], [s], s_empty,
                [f"%x: {t}", f"%c: {t}"], body, 0)

    # Softmax.
    if a.one_softmax:
        p = new("p", f"linalg.softmax dimension(3) ins({m} : {s_kind}) "
                     f"outs({s_empty} : {s_kind}) -> {s_kind}")
    else:
        def pair(name, op, x, y, extra=None):
            body = [f"%d = arith.{op} %x, %y : {t}"]
            if extra:
                body.append(f"%e = {extra} %d : {t}")
            body.append(f"linalg.yield {'%e' if extra else '%d'} : {t}")
            return generic(name, [every, row, every], [s_kind, r_kind, s_kind],
                           [x, y], s_empty,
                           [f"%x: {t}", f"%y: {t}", f"%c: {t}"], body, 0)

        def reduce(name, op, x, start):
            target = fill(f"f{name}", start, r_empty, r_kind, t)
            return generic(name, [every, row], [s_kind, r_kind], [x], target,
                           [f"%x: {t}", f"%c: {t}"],
                           [f"%r = arith.{op} %x, %c : {t}",
                            f"linalg.yield %r : {t}"])

        top = reduce("max", "maximumf", m, inf)
        exp = pair("exp", "subf", m, top, "math.exp")
        p = pair("p", "divf", exp, reduce("sum", "addf", exp, zero))

    # Values.
    o_dims = tuple(order([b, h, sq, e]))
    o_kind = program.kind_of(o_dims, t)
    o_empty = empty("eo", o_dims, t)
    body = []
    right = widen("%y", program.tensors[a.v].dtype, body)
    body += [f"%m = arith.mulf %x, {right} : {t}",
             f"%r = arith.addf %c, %m : {t}", f"linalg.yield %r : {t}"]
    z = fill("zo", zero, o_empty, o_kind, t)
    name = "o" if a.dtype != t else None
    maps = [_map(5, ["d0", "d1", "d2", "d4"]),
            _map(5, order(["d0", group, "d4", "d3"])),
            _map(5, order(["d0", "d1", "d2", "d3"]))]
    o = generic("o", maps, [s_kind, program.kind(a.v), o_kind],
                [p, f"%{a.v}"], z,
                [f"%x: {t}", f"%y: {program.tensors[a.v].dtype}", f"%c: {t}"],
                body)
    if name is None:
        # The last generic is the result itself.
        lines[:] = [line.replace(f"{at}o = linalg", f"%{a.out} = linalg")
                    for line in lines]
        return lines
    narrow = empty("en", o_dims, a.dtype)
    op = ("arith.truncf" if approx.unit(a.dtype) > approx.unit(t)
          else "arith.extf")
    generic("n", [every, every], [o_kind, program.kind_of(o_dims, a.dtype)],
            [o], narrow, [f"%x: {t}", f"%c: {a.dtype}"],
            [f"%r = {op} %x : {t} to {a.dtype}", f"linalg.yield %r : {a.dtype}"],
            0)
    lines[:] = [line.replace(f"{at}n = linalg", f"%{a.out} = linalg")
                for line in lines]
    return lines

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes failing cases small: tries simpler ones as long as they fail alike."""

import copy

from .attend import Attention
from .graph import FLOATS, Loop


def _attentions(body):
    for statement in body:
        if isinstance(statement, Attention):
            yield statement
        elif isinstance(statement, Loop):
            yield from _attentions(statement.body)


def _all(body):
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from statement.body


def _tidy(program):
    """Removes what no result needs; sets types as statements now have them."""
    needed = set(program.results)
    kept = []
    for statement in reversed(program.body):
        outs = {statement.out, getattr(statement, "lse", None)}
        if outs & needed:
            kept.append(statement)
            needed |= set(statement.inputs())
    program.body[:] = kept[::-1]
    program.operands[:] = [t for t in program.operands if t.name in needed]
    program.tensors = {t.name: t for t in program.operands}
    for statement in program.body:
        statement.declare(program)


def _replace(case, old, new):
    """Replaces uses of one tensor by those of another."""
    for statement in _all(case.program.body):
        for field in ("x", "y", "q", "k", "v", "start", "following"):
            if getattr(statement, field, None) == old:
                setattr(statement, field, new)
        if hasattr(statement, "xs"):
            statement.xs = tuple(new if n == old else n for n in statement.xs)
    case.program.results = [new if n == old else n
                            for n in case.program.results]


def _nodes(attention):
    for name in ("score", "mask"):
        root = getattr(attention, name)
        if root is not None:
            for node in root.order():
                yield name, node


def _changes(case):
    """Functions that make a copy simpler, the most hopeful first."""
    program = case.program

    def setter(name, value):
        return lambda c: setattr(c, name, value)

    if len(program.results) > 1:
        for name in program.results:
            yield lambda c, name=name: c.program.results.remove(name)
    for at, statement in enumerate(program.body):
        def drop(c, at=at):
            s = c.program.body[at]
            x = getattr(s, "x", getattr(s, "q", getattr(s, "start", None)))
            x = s.xs[0] if hasattr(s, "xs") else x
            a, b = c.program.tensors[x], c.program.tensors[s.out]
            assert a.dims == b.dims and a.dtype == b.dtype
            _replace(c, s.out, x)
        yield drop
    for name, value in (("gradients", False), ("strategy", "fused"),
                        ("textbook", False), ("partition", False),
                        ("deterministic", False), ("recompute", "always"),
                        ("arch", "native"), ("mode", "plain"),
                        ("backward_schedule", None)):
        if getattr(case, name) != value:
            yield setter(name, value)
    for at, a in enumerate(_attentions(program.body)):
        for name, value in (("score", None), ("mask", None), ("dropout", 0.0),
                            ("lse", None), ("scale", 1.0)):
            if getattr(a, name) and getattr(a, name) != value:
                def clear(c, at=at, name=name, value=value):
                    b = list(_attentions(c.program.body))[at]
                    if name == "lse":
                        c.program.results = [
                            n for n in c.program.results if n != b.lse]
                    if name == "dropout":
                        b.seeds = ()
                    setattr(b, name, value)
                yield clear
    for name, size in program.sizes.items():
        for smaller in {1, size // 2, size - 1}:
            if 0 < smaller < size and name not in ("P", "G", "H"):
                def cut(c, name=name, smaller=smaller):
                    sizes = c.program.sizes
                    if name in ("Sq", "Sk") and sizes["Sq"] == sizes["Sk"]:
                        # A tensor may be indexed by both.
                        sizes["Sq"] = sizes["Sk"] = smaller
                    sizes[name] = smaller
                    if name == "D":
                        assert smaller % 2 == 0 or "P" not in str(
                            [t.dims for t in c.program.operands])
                        c.program.sizes["P"] = smaller // 2
                yield cut
    if program.sizes["H"] > 1:
        yield lambda c: c.program.sizes.update(H=1, G=1)
        if program.sizes["H"] > program.sizes["G"]:
            yield lambda c: c.program.sizes.update(H=c.program.sizes["G"])
    if len(program.static) < len(program.sizes):
        yield lambda c: c.program.static.update(c.program.sizes)
    if any(t.layout != "contiguous" for t in program.operands):
        def lay(c):
            for t in c.program.operands:
                t.layout = "contiguous"
        yield lay
    for dtype in ("f32",):
        if any(t.dtype in FLOATS and t.dtype != dtype for t in program.operands):
            def widen(c, dtype=dtype):
                for t in c.program.operands:
                    if t.dtype in FLOATS:
                        t.dtype = dtype
                for a in _attentions(c.program.body):
                    a.dtype = a.inner = dtype
                for s in c.program.body:
                    if hasattr(s, "xs"):
                        s.dtype = s.result = dtype
            yield widen
    # An expression by one of its operands of the same kind.
    for at, a in enumerate(_attentions(program.body)):
        for number, (name, node) in enumerate(_nodes(a)):
            for index, arg in enumerate(node.args):
                if arg.kind == node.kind and node.op not in ("clamp",):
                    def lift(c, at=at, number=number, index=index):
                        b = list(_attentions(c.program.body))[at]
                        _, node = list(_nodes(b))[number]
                        inner = node.args[index]
                        node.op, node.args, node.data = (
                            inner.op, inner.args, inner.data)
                    yield lift


def shrink(case, kind, fails, most=60):
    """`fails(case)` is the outcome of a case. Returns the smallest that was
    found, with its outcome or None."""
    best, outcome, tried = case, None, 0
    progress = True
    while progress and tried < most:
        progress = False
        changes = list(_changes(best))
        for number in range(len(changes)):
            if tried >= most:
                break
            smaller = copy.deepcopy(best)
            try:
                # Changes of the copy, as `changes` are functions of any case.
                changes[number](smaller)
                _tidy(smaller.program)
                smaller.program.text
            except Exception:
                # Parts that do not fit together are no candidate.
                continue
            tried += 1
            found = fails(smaller)
            if found.kind == kind:
                best, outcome, progress = smaller, found, True
                break
    return best, outcome


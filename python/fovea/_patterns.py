# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that a graph of Dynamo writes out: a product of queries and keys,
scaled and masked in any order, a softmax over the keys, a product with values.

Products are matmul, bmm, @ or baddbmm; masks are added, or filled in where a
condition holds. Keys and values that are repeated for groups of heads are used as
they were before. Code that reads probabilities elsewhere, or drops some of them,
is left as it is.
"""

import dataclasses
import operator

import torch
from torch.fx import Node

_PRODUCTS = {torch.matmul, torch.bmm, operator.matmul, "matmul", "bmm",
             "__matmul__"}
_SUMS = {torch.add, operator.add, "add"}
_MULTIPLES = {torch.mul, operator.mul, "mul"}
_QUOTIENTS = {torch.div, torch.true_divide, operator.truediv, "div"}
_SOFTMAXES = {torch.softmax, torch.nn.functional.softmax, "softmax"}
_CASTS = {"to", "float", "half", "bfloat16", "type_as", "contiguous"}
_FILLS = {torch.masked_fill, "masked_fill"}
_TRANSPOSES = {torch.transpose, torch.swapaxes, "transpose", "swapaxes",
               "swapdims"}
_RESHAPES = {torch.reshape, "reshape", "view"}
_REPEATS = {torch.repeat_interleave, "repeat_interleave"}

# Operations that a match may consist of, none of which has an effect.
_KNOWN = (_PRODUCTS | _SUMS | _MULTIPLES | _QUOTIENTS | _SOFTMAXES | _CASTS
          | _FILLS | _TRANSPOSES | _RESHAPES | _REPEATS | {
              torch.where, torch.baddbmm, "baddbmm", "expand", operator.getitem,
              torch.nn.functional.dropout, torch.dropout})


@dataclasses.dataclass
class Match:
    """An attention in a graph, of nodes of it."""

    query: Node
    key: Node
    value: Node
    #: Terms that are added to scores: nodes, and pairs of a condition and two numbers
    #: that it chooses from.
    masks: list
    scale: float
    #: Keys and values have fewer heads than queries.
    is_grouped: bool
    #: The node that has the result.
    output: Node


def _is(node, targets):
    return isinstance(node, Node) and node.op in (
        "call_function", "call_method") and node.target in targets


def _value(node):
    """The fake tensor of a node, None if there is none."""
    found = node.meta.get("example_value") if isinstance(node, Node) else None
    return found if isinstance(found, torch.Tensor) else None


def _argument(node, position, *names, default=None):
    if len(node.args) > position:
        return node.args[position]
    for name in names:
        if name in node.kwargs:
            return node.kwargs[name]
    return default


def find(graph):
    """Returns the matches in a graph, in its order."""
    matches = []
    for node in graph.nodes:
        if _is(node, _SOFTMAXES):
            match = _match(node)
            if match is not None:
                matches.append(match)
    return matches


def _match(softmax):
    scores = softmax.args[0] if softmax.args else softmax.kwargs.get("input")
    if _value(scores) is None or _value(scores).dim() < 3:
        return None
    if _argument(softmax, 1, "dim") not in (-1, _value(scores).dim() - 1):
        return None
    output = _follow(softmax)
    if output is None:
        return None
    match = Match(None, None, output.args[1], [], 1.0, False, output)
    if not _collect(scores, match) or not _check(match, scores):
        return None
    return match


def _follow(node):
    """Returns the product with values that alone reads the probabilities."""
    while True:
        if len(node.users) != 1:
            return None
        user, = node.users
        if _is(user, _PRODUCTS):
            is_left = len(user.args) == 2 and user.args[0] is node
            return user if is_left and user.args[1] is not node else None
        if _is(user, {torch.nn.functional.dropout, torch.dropout}):
            if _argument(user, 1, "p", default=0.5) != 0 and _argument(
                    user, 2, "training", "train", default=True) is not False:
                return None
        elif not _is(user, _CASTS):
            return None
        node = user


def _collect(node, match):
    """Walks from the scores to the product, and notes what lies between."""
    if not isinstance(node, Node):
        return False
    if _is(node, _CASTS):
        return _collect(node.args[0], match)
    if _is(node, _PRODUCTS):
        match.query, match.key = node.args
        return True
    if _is(node, {torch.baddbmm, "baddbmm"}):
        return _collect_baddbmm(node, match)
    if _is(node, _MULTIPLES | _QUOTIENTS):
        number = _argument(node, 1, "other")
        inner = node.args[0]
        if not isinstance(number, (int, float)) and _is(node, _MULTIPLES):
            inner, number = number, inner
        if not isinstance(number, (int, float)) or not number:
            return False
        match.scale *= number if _is(node, _MULTIPLES) else 1 / number
        return _collect(inner, match)
    if match.scale != 1.0:
        return False  # What is masked before it is scaled.
    if _is(node, _SUMS) and len(node.args) == 2 and not node.kwargs:
        for inner, mask in (node.args, node.args[::-1]):
            before = match.scale, len(match.masks)
            match.masks.append(mask)
            if isinstance(mask, Node) and _collect(inner, match):
                return True
            match.scale = before[0]
            del match.masks[before[1]:]
        return False
    if _is(node, _FILLS):
        inner, condition, number = (_argument(node, at, name) for at, name in
                                    enumerate(("input", "mask", "value")))
        return _collect_fill(inner, condition, number, True, match)
    if _is(node, {torch.where}) and len(node.args) == 3:
        condition, inner, number = node.args
        return _collect_fill(inner, condition, number, False, match)
    return False


def _collect_fill(inner, condition, number, is_hidden, match):
    if isinstance(number, Node) and _is(number, {torch.tensor, torch.full}):
        number = number.args[-1]
    # Another number would not hide the score that it is added to.
    if not isinstance(number, (int, float)) or not number <= -1e4:
        return False
    match.masks.append((condition, number, 0.0) if is_hidden else
                       (condition, 0.0, number))
    return _collect(inner, match)


def _collect_baddbmm(node, match):
    """`beta * mask + alpha * query @ key`."""
    beta, alpha = (node.kwargs.get(name, 1)
                   for name in ("beta", "alpha"))
    mask, query, key = (_argument(node, at, name) for at, name in
                        enumerate(("input", "batch1", "batch2")))
    if mask is None or not isinstance(alpha, (int, float)) or not alpha:
        return False
    if beta != 0:
        if beta != 1 or match.scale != 1.0:
            return False
        match.masks.append(mask)
    match.scale *= alpha
    match.query, match.key = query, key
    return True


def _check(match, scores):
    """Finds the keys as they lie, and returns True if attention computes what
    the nodes of a match do."""
    key = match.key
    match.key = None
    if _is(key, _TRANSPOSES) and len(key.args) == 3:
        rank = _value(key).dim() if _value(key) is not None else 0
        if rank and {key.args[1] % rank, key.args[2] % rank} == {
                rank - 2, rank - 1}:
            match.key = key.args[0]
    if match.key is None:
        return False
    tensors = [_value(x) for x in (match.query, match.key, match.value)]
    if any(x is None for x in tensors):
        return False
    query, *others = tensors
    if any(x.dim() != query.dim() or x.dtype != query.dtype for x in others):
        return False
    shape = _value(scores).shape
    for mask in match.masks:
        mask = _value(mask[0] if isinstance(mask, tuple) else mask)
        if mask is None:
            return False
        try:
            if torch.broadcast_shapes(mask.shape, shape) != shape:
                return False
        except RuntimeError:
            return False
    keys, values = _before_repeat(match.key), _before_repeat(match.value)
    if keys is not None and values is not None:
        match.key, match.value, match.is_grouped = keys, values, True
    return True


def _before_repeat(node):
    """Returns the keys or values whose heads a node repeats, None if it does
    not."""
    base = None
    if _is(node, _REPEATS) and _argument(node, 2, "dim") in (1, -3):
        base = node.args[0]
    elif _is(node, _RESHAPES) and _is(node.args[0], {"expand"}):
        inner = node.args[0].args[0]
        if _is(inner, {operator.getitem}):
            index = inner.args[1]
            whole = slice(None, None, None)
            if isinstance(index, tuple) and index[:3] == (whole, whole, None) and (
                    all(item == whole for item in index[3:])):
                base = inner.args[0]
    new, old = _value(node), _value(base)
    if old is None or new is None or old.dim() != 4 or new.dim() != 4 or (
            new.shape[2:] != old.shape[2:] or new.shape[0] != old.shape[0]):
        return None
    return base


def replace(graph, match, function):
    """Replaces a match by a call of `scaled_dot_product_attention`, or a function
    with its arguments, and removes what nothing else reads."""
    output = match.output
    with graph.inserting_before(output):
        total = None
        dtype = _value(match.query).dtype
        for mask in match.masks:
            if isinstance(mask, tuple):
                mask = graph.call_function(torch.where, mask)
            mask = graph.call_method("to", (mask, (
                torch.float32 if dtype != torch.float64 else dtype)))
            total = mask if total is None else graph.call_function(
                torch.add, (total, mask))
        found = graph.call_function(
            function, (match.query, match.key, match.value),
            {"attn_mask": total, "scale": match.scale,
             "enable_gqa": match.is_grouped})
        found.meta = dict(output.meta)
    output.replace_all_uses_with(found)
    old = [output]
    while old:
        node = old.pop()
        if node.op in ("call_function", "call_method") and not node.users and (
                node.target in _KNOWN):
            inputs = node.all_input_nodes
            graph.erase_node(node)
            old += [x for x in inputs if not x.users]

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that a graph of Dynamo writes out: a product of queries and keys,
scaled, capped and masked in any order, a softmax over the keys, a product with values.

Products are matmul, bmm, @, baddbmm or einsum; masks are added, or filled in where a
condition holds; a cap is a tanh; sinks are one more column of scores, dropped behind
the softmax. Batch and heads may be one dimension where products
are computed. Keys and values that are repeated for groups of heads are used as they
were before. Code that reads probabilities elsewhere is left as it is.
"""

import dataclasses
import math
import operator

import torch
from torch.fx import Node

_PRODUCTS = {torch.matmul, torch.bmm, operator.matmul, "matmul", "bmm",
             "__matmul__"}
_SUMS = {torch.add, operator.add, operator.iadd, "add", "add_"}
_MULTIPLES = {torch.mul, operator.mul, operator.imul, "mul", "mul_"}
_QUOTIENTS = {torch.div, torch.true_divide, operator.truediv, operator.itruediv,
              "div", "div_"}
_CAPS = {torch.tanh, "tanh"}
_SOFTMAXES = {torch.softmax, torch.nn.functional.softmax, "softmax"}
_CASTS = {"to", "type", "float", "half", "bfloat16", "type_as", "contiguous"}
_FILLS = {torch.masked_fill, "masked_fill", "masked_fill_"}
_TRANSPOSES = {torch.transpose, torch.swapaxes, "transpose", "swapaxes",
               "swapdims"}
_RESHAPES = {torch.reshape, "reshape", "view"}
_REPEATS = {torch.repeat_interleave, "repeat_interleave"}
_DIFFERENCES = {torch.sub, torch.subtract, operator.sub, "sub"}
_MAXIMA = {torch.max, torch.amax, "max", "amax"}
_JOINS = {torch.cat, torch.concat, torch.concatenate}
_DROPOUTS = {torch.nn.functional.dropout, torch.dropout}
#: Operations that change their first operand.
_IN_PLACE = {operator.iadd, operator.imul, operator.itruediv, "add_", "mul_", "div_",
             "masked_fill_"}

#: The least number of f32; masks that add less add minus infinity.
_LEAST = torch.finfo(torch.float32).min

# Operations that a match may consist of, none of which has an effect.
_KNOWN = (_PRODUCTS | _SUMS | _MULTIPLES | _QUOTIENTS | _SOFTMAXES | _CASTS
          | _FILLS | _TRANSPOSES | _RESHAPES | _REPEATS | _CAPS | _DROPOUTS
          | _DIFFERENCES | _MAXIMA | _JOINS | {
              torch.where, torch.baddbmm, "baddbmm", torch.einsum, "expand",
              operator.getitem})


@dataclasses.dataclass
class Mask:
    """A tensor, or a choice of two numbers, that is added to scaled scores."""

    #: A node, or a condition and two numbers that it chooses from.
    term: object
    #: What it is multiplied by.
    factor: float
    #: Batch and heads are one dimension of the scores to which it is added.
    is_flat: bool


@dataclasses.dataclass
class Match:
    """An attention in a graph, of nodes of it."""

    #: The product with values, its right operand, and whether batch and heads are one
    #: dimension of them.
    output: Node
    value: Node
    is_flat: bool
    dropout: float
    #: Batch and heads are one dimension where the walk from the softmax to the queries
    #: is.
    is_joined: bool
    query: Node = None
    key: Node = None
    masks: list = dataclasses.field(default_factory=list)
    #: Of the scores within the cap, if there is one, and else of all.
    scale: float = 1.0
    softcap: float = None
    #: A tensor that scales the scores of queries, and the operation that does.
    factor: Node = None
    rescale: object = None
    #: The sizes of batch and heads, and the scores' shape, where they are one dimension
    #: of something and two of something else.
    lead: tuple = None
    shape: tuple = None
    #: The score of one more key for each head, `[H]`, if there is one.
    sinks: Node = None
    #: Where products are einsums: by the name of an operand its dimensions as attention
    #: has them, and by "output" those of attention as the einsum has them.
    orders: dict = dataclasses.field(default_factory=dict)
    #: Keys are as the product takes them, with the head size first.
    is_transposed: bool = False
    #: Keys and values have fewer heads than queries.
    is_grouped: bool = False


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
    scores, sinks = _before_sinks(scores)
    match = _follow(softmax if sinks is None else _behind_sinks(softmax))
    if match is None:
        return None
    match.sinks = sinks
    if not _collect(scores, match) or not _check(match, scores):
        return None
    return match


def _before_sinks(node):
    """Returns the scores that a softmax's input has beside a column of sinks, and the
    sinks; the input and None where there are none."""
    joined = node
    # A row's maximum changes nothing.
    if _is(node, _DIFFERENCES) and len(node.args) == 2 and not node.kwargs:
        joined, largest = node.args
        if _is(largest, {operator.getitem}) and largest.args[1] == 0:
            largest = largest.args[0]
        if not _is(largest, _MAXIMA) or largest.args[0] is not joined or (
                _argument(largest, 1, "dim") not in (-1, _value(node).dim() - 1)
                or _argument(largest, 2, "keepdim") is not True):
            return node, None
    if not _is(joined, _JOINS) or _argument(joined, 1, "dim") not in (
            -1, _value(node).dim() - 1):
        return node, None
    parts = _argument(joined, 0, "tensors")
    if len(parts) != 2 or any(_value(x) is None for x in parts):
        return node, None
    scores, column = parts
    heads = _value(scores).shape[1]
    sinks = column
    while _is(sinks, _CASTS | _RESHAPES | {"expand"}):
        sinks = sinks.args[0]
    found, shape = _value(sinks), _value(column).shape
    if _value(scores).dim() != 4 or shape[-1] != 1 or found is None or (
            found.dim() != 1 or found.shape[0] != heads) or shape[1] != heads:
        return node, None
    return scores, sinks


def _behind_sinks(node):
    """Returns what alone reads the probabilities without the last column, None if
    there is no such reader."""
    while len(node.users) == 1:
        node, = node.users
        if _is(node, {operator.getitem}):
            last = slice(None, -1, None)
            return node if node.args[1] == (Ellipsis, last) or node.args[1] == (
                *[slice(None, None, None)] * 3, last) else None
        if not _is(node, _CASTS):
            break
    return None


def _joins_heads(flat, whole):
    """Returns True if one tensor is another with batch and heads in one dimension."""
    return (flat is not None and whole is not None and flat.dim() == 3
            and whole.dim() == 4 and flat.shape[1:] == whole.shape[2:])


def _follow(node):
    """Returns a match with the product with values that alone reads the
    probabilities."""
    is_joined = is_flat = _value(node) is not None and _value(node).dim() == 3
    dropout = 0.0
    while True:
        if node is None or len(node.users) != 1:
            return None
        user, = node.users
        if _is(user, _PRODUCTS):
            if len(user.args) != 2 or user.args[0] is not node or (
                    user.args[1] is node):
                return None
            return Match(user, user.args[1], is_flat, dropout, is_joined)
        if _is(user, {torch.einsum}):
            found = _read_values(user, node)
            return found and Match(user, found[0], is_flat, dropout, is_joined,
                                   orders=found[1])
        if _is(user, _DROPOUTS):
            share, trains = (_argument(user, 1, "p", default=0.5), _argument(
                user, 2, "training", "train", default=True))
            if isinstance(share, Node) or isinstance(trains, Node):
                return None
            if share and trains:
                if dropout or not 0 < share < 1:
                    return None
                dropout = share
        elif _is(user, _RESHAPES):
            new, old = _value(user), _value(node)
            if _joins_heads(new, old) or _joins_heads(old, new):
                is_flat = not is_flat
            elif new is None or old is None or new.shape != old.shape:
                return None
        elif not _is(user, _CASTS):
            return None
        node = user


def _read_einsum(node):
    """Returns the letters of the two operands and of the result of an einsum, and the
    operands; None if it has others."""
    equation, *operands = node.args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not isinstance(equation, str) or len(operands) != 2 or node.kwargs:
        return None
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    letters = [*inputs.split(","), result]
    if not arrow or len(letters) != 3 or any(
            not part.isalpha() or len({*part}) != len(part) for part in letters):
        return None
    return letters, list(operands)


def _order(letters, wanted):
    """Returns the permutation of dimensions to the wanted ones, None if they are
    others."""
    if sorted(letters) != sorted(wanted):
        return None
    return tuple(letters.index(letter) for letter in wanted)


def _read_scores(node):
    """Returns queries, keys and their orders, if an einsum is their product."""
    found = _read_einsum(node)
    if found is None:
        return None
    (left, right, result), operands = found
    lead, row, column = result[:-2], result[-2:-1], result[-1:]
    if row in right:
        left, right, operands = right, left, operands[::-1]
    inner = "".join({*left} - {*result})
    orders = {"query": _order(left, lead + row + inner),
              "key": _order(right, lead + column + inner)}
    if len(inner) != 1 or None in orders.values():
        return None
    return *operands, orders


def _read_values(node, probabilities):
    """Returns the values and the orders of values and result, if an einsum is the
    product of probabilities and values."""
    found = _read_einsum(node)
    if found is None or found[1].count(probabilities) != 1:
        return None
    (left, right, result), operands = found
    if operands[0] is not probabilities:
        left, right, operands = right, left, operands[::-1]
    lead, row, column = left[:-2], left[-2:-1], left[-1:]
    inner = "".join({*right} - {*left})
    value = _order(right, lead + column + inner)
    output = _order(lead + row + inner, result)
    if len(inner) != 1 or value is None or output is None:
        return None
    return operands[1], {"value": value, "output": output}


def _collect(node, match):
    """Walks from the scores to the product, and notes what lies between."""
    if not isinstance(node, Node):
        return False
    # What is changed in place is nobody else's.
    if _is(node, _IN_PLACE) and (not isinstance(node.args[0], Node)
                                 or len(node.args[0].users) != 1):
        return False
    if _is(node, _CASTS):
        return _collect(node.args[0], match)
    if _is(node, _PRODUCTS):
        match.query, match.key = node.args
        return True
    if _is(node, {torch.einsum}):
        found = _read_scores(node)
        if found is None:
            return False
        match.query, match.key, orders = found
        match.orders = {**match.orders, **orders}
        return True
    if _is(node, {torch.baddbmm, "baddbmm"}):
        return _collect_baddbmm(node, match)
    if _is(node, _RESHAPES):
        return _collect_reshape(node, match)
    if _is(node, _MULTIPLES | _QUOTIENTS):
        number = _argument(node, 1, "other")
        inner = node.args[0]
        if not isinstance(number, (int, float)) and _is(node, _MULTIPLES):
            inner, number = number, inner
        if isinstance(number, Node):
            return _collect_factor(node, match)
        if not isinstance(number, (int, float)) or not number:
            return False
        match.scale *= number if _is(node, _MULTIPLES) else 1 / number
        return _collect(inner, match)
    if match.factor is not None and _is(node, _CAPS):
        return False
    if (match.softcap is not None or match.factor is not None) and _is(
            node, _SUMS | _DIFFERENCES | _FILLS | {torch.where}):
        return False  # A mask within the cap, or scaled by a tensor.
    if _is(node, _CAPS) and match.softcap is None and match.scale > 0:
        # c tanh(b s) is the score b c s with the cap c.
        match.softcap = match.scale
        return _collect(node.args[0], match)
    if _is(node, _SUMS) and len(node.args) == 2 and not node.kwargs:
        return _collect_sum(node, match)
    if _is(node, _DIFFERENCES) and len(node.args) == 2 and not node.kwargs and (
            isinstance(node.args[1], Node)):
        match.masks.append(Mask(node.args[1], -match.scale, match.is_joined))
        return _collect(node.args[0], match)
    if _is(node, _FILLS):
        inner, condition, number = (_argument(node, at, name) for at, name in
                                    enumerate(("input", "mask", "value")))
        return _collect_fill(inner, condition, number, True, match)
    if _is(node, {torch.where}) and len(node.args) == 3:
        condition, inner, number = node.args
        return _collect_fill(inner, condition, number, False, match)
    return False


def _collect_factor(node, match):
    """Looks through a tensor that scales each query's scores; it can scale the query."""
    if match.factor is not None or len(node.args) != 2 or node.kwargs:
        return False
    sides = [node.args]
    if _is(node, _MULTIPLES) and not _is(node, _IN_PLACE):
        sides.append(node.args[::-1])
    for inner, factor in sides:
        value = _value(factor)
        if value is None or value.dim() and value.shape[-1] != 1:
            continue
        found = dataclasses.replace(
            match, factor=factor, rescale=torch.mul if _is(node, _MULTIPLES)
            else torch.div)
        if _collect(inner, found):
            vars(match).update(vars(found))
            return True
    return False


def _collect_sum(node, match):
    for inner, mask in (node.args, node.args[::-1]):
        if isinstance(mask, (int, float)) and not mask:
            return _collect(inner, match)
        found = dataclasses.replace(match, masks=[
            *match.masks, Mask(mask, match.scale, match.is_joined)])
        if isinstance(mask, Node) and _collect(inner, found):
            vars(match).update(vars(found))
            return True
        if _is(node, _IN_PLACE):
            break
    return False


def _collect_reshape(node, match):
    """Looks through a change of shape that divides batch from heads, or joins them, or
    is none."""
    new, old = _value(node), _value(node.args[0])
    if new is None or old is None:
        return False
    if new.shape == old.shape:
        return _collect(node.args[0], match)
    if _joins_heads(new, old):
        match.is_joined = False
        return _collect(node.args[0], match)
    sizes = node.args[1:]
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    if not _joins_heads(old, new) or len(sizes) != 4:
        return False
    if match.lead is not None and match.shape != tuple(new.shape):
        return False
    match.lead, match.shape = sizes[:2], tuple(new.shape)
    match.is_joined = True
    return _collect(node.args[0], match)


def _collect_fill(inner, condition, number, is_hidden, match):
    if isinstance(number, Node) and _is(number, {torch.tensor, torch.full}):
        number = number.args[-1]
    # Another number would not hide the score that it is added to.
    if not isinstance(number, (int, float)) or not number * match.scale <= -1e4:
        return False
    match.masks.append(Mask((condition, number, 0.0) if is_hidden else
                            (condition, 0.0, number), match.scale,
                            match.is_joined))
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
        if not isinstance(beta, (int, float)) or (
                match.softcap is not None or match.factor is not None):
            return False
        match.masks.append(Mask(mask, match.scale * beta, match.is_joined))
    match.scale *= alpha
    match.query, match.key = query, key
    return True


def _check(match, scores):
    """Finds the keys as they lie, and returns True if attention computes what
    the nodes of a match do."""
    key = match.key
    is_product = "key" not in match.orders
    if is_product and _is(key, _TRANSPOSES) and len(key.args) == 3 and (
            _value(key) is not None):
        rank = _value(key).dim()
        if {key.args[1] % rank, key.args[2] % rank} == {rank - 2, rank - 1}:
            match.key = key.args[0]
    # Other keys are transposed again, at the price of the product's own operand.
    is_transposed = is_product and match.key is key
    tensors = [_value(x) for x in (match.query, match.key, match.value)]
    if any(x is None for x in tensors):
        return False
    query, *others = tensors
    if any(x.dtype != query.dtype for x in others):
        return False
    # Heads that are joined are looked for in front.
    if (match.is_joined or match.is_flat) and any(map(_is_permuted,
                                                      match.orders.values())):
        return False
    shape = match.shape or tuple(_value(scores).shape)
    if match.lead is None and not (
            match.is_flat == match.is_joined == (len(shape) == 3)):
        return False
    if query.dim() != (3 if match.is_joined else len(shape)) or (
            tensors[1].dim() != query.dim()) or tensors[2].dim() != (
                3 if match.is_flat else len(shape)):
        return False
    if match.lead is not None and (match.sinks is not None
                                   or match.factor is not None):
        return False
    if match.factor is not None:
        factor = _value(match.factor)
        order = match.orders.get("query", range(query.dim()))
        wanted = torch.Size(query.shape[dim] for dim in order)
        try:
            if factor.dtype != query.dtype or (
                    torch.broadcast_shapes(factor.shape, wanted) != wanted):
                return False
        except RuntimeError:
            return False
    # What fovea.attention takes.
    if match.softcap is not None or match.sinks is not None:
        batches = [x.shape[match.orders.get(name, (0,))[0]] for name, x in zip(
            ("query", "key", "value"), tensors)]
        if len(shape) != 4 or (match.lead is None and any(
                size != batches[0] for size in batches)):
            return False
    for mask in match.masks:
        value = _value(mask.term[0] if isinstance(mask.term, tuple) else mask.term)
        if value is None:
            return False
        mask.is_flat = mask.is_flat and match.lead is not None
        wanted = shape
        if mask.is_flat:
            wanted = (_value(match.value if match.is_flat else match.query).shape[0],
                      *shape[-2:])
            if value.dim() != 3 or value.shape[0] != wanted[0]:
                return False
        try:
            if torch.broadcast_shapes(value.shape, wanted) != torch.Size(wanted):
                return False
        except RuntimeError:
            return False
    match.is_transposed = is_transposed
    if match.lead is None and not match.is_flat and not is_transposed and not any(
            _is_permuted(match.orders.get(name, ())) for name in ("key", "value")):
        keys, values = _before_repeat(match.key), _before_repeat(match.value)
        if keys is not None and values is not None:
            match.key, match.value, match.is_grouped = keys, values, True
    return True


def _is_permuted(order):
    return order != tuple(range(len(order)))


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


def replace(graph, match, function, capped):
    """Replaces a match by a call of a function, `scaled_dot_product_attention` or one
    with its arguments, or of `capped`, `fovea.attention`, and removes what nothing else
    reads."""
    output = match.output

    def divide(node):
        return graph.call_method("unflatten", (node, 0, match.lead))

    def permute(node, name):
        order = match.orders.get(name, ())
        return graph.call_method("permute", (node, order)) if (
            _is_permuted(order)) else node

    with graph.inserting_before(output):
        query, key, value = (permute(getattr(match, name), name)
                             for name in ("query", "key", "value"))
        if match.factor is not None:
            query = graph.call_function(match.rescale, (query, match.factor))
        if match.is_transposed:
            key = graph.call_method("transpose", (key, -1, -2))
        if match.lead is not None:
            if match.is_joined:
                query, key = divide(query), divide(key)
            value = divide(value) if match.is_flat else value
        total = None
        dtype = _value(match.query).dtype
        for mask in match.masks:
            term = mask.term
            if isinstance(term, tuple):
                numbers = (number * mask.factor for number in term[1:])
                term = graph.call_function(torch.where, (
                    term[0], *(-math.inf if number < _LEAST else number
                               for number in numbers)))
            if mask.is_flat:
                term = divide(term)
            term = graph.call_method("to", (term, (
                torch.float32 if dtype != torch.float64 else dtype)))
            if mask.factor != 1 and not isinstance(mask.term, tuple):
                term = graph.call_function(torch.mul, (term, mask.factor))
            total = term if total is None else graph.call_function(
                torch.add, (total, term))
        if match.softcap is None and match.sinks is None:
            found = graph.call_function(
                function, (query, key, value),
                {"attn_mask": total, "scale": match.scale,
                 "enable_gqa": match.is_grouped, "dropout_p": match.dropout})
        else:
            found = graph.call_function(
                capped, (query, key, value),
                {"bias": total, "scale": match.scale, "softcap": match.softcap,
                 "sinks": match.sinks, "dropout_p": match.dropout})
        if match.is_flat and match.lead is not None:
            found = graph.call_method("flatten", (found, 0, 1))
        found = permute(found, "output")
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

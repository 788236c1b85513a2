# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing `score_mod` and `mask_mod` to the text of a graph.

A mod is called once with values that stand for the score and its coordinates;
what it computes with them becomes a region of one `attn.attention`. Tensors
that it closes over become operands, each once. Batch and lengths are dynamic
in the text, heads and head sizes static, so that other lengths need no other
kernel; only the few queries of a step of decoding are counted in the text, by
which a GPU's kernel packs the queries of a group of heads and splits the keys.

Kernels are cached by text, whatever it was traced from. Tracing takes some tens of
microseconds to some hundreds; what has not changed since a call like it is not traced
again (_memo.py).
"""

import keyword
import re
import threading

import torch

from . import _vectors  # noqa: F401, with _functions fills in FUNCTIONS
from ._native import is_transformed
from ._regions import (NOWHERE, TraceError, find_bits, is_constant_scale, name_scale,
                       write_attention, write_float, write_length, write_scale)
from ._values import (ELEMENTS, FUNCTIONS, Array, Number, Region, Row, Traced,
                      Value, check_capture)

_RESERVED = {"query", "key", "value", "score", "b", "h", "q", "kv", "output",
             "lse", "seed", "offset", "scale_bits", "scale_f64", "scale_f32",
             "scale_least", "scale_most", "scale_raised", "scale_usual", "index",
             "tensor", "vector", "memref", "none", "complex", "tuple"}
_NAME = re.compile(r"(?!(result|saved|cotangent|capture|number)\d*$|[fiu]\d+$)"
                   r"[A-Za-z_][A-Za-z0-9_]*$", re.ASCII)

#: The last place of a dimension whose size is unknown.
_ANYWHERE = 2**31 - 1

#: Texts that differ in integers only, before these become operands.
_MAX_VARIANTS = 3

#: The type of integers in the place of floats, by their size in bytes.
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

# By text without its integers: the integers of the first texts, and the places
# of those that change.
_variants = {}
_lock = threading.Lock()


def _find_changing(text, numbers):
    """Returns the places of the integers that shall be operands."""
    with _lock:
        variants, changing = _variants.setdefault(text, ([], set()))
        if numbers in variants:
            return ()
        if len(variants) < _MAX_VARIANTS:
            variants.append(numbers)
            return ()
        for other in variants:
            changing.update(at for at, number in enumerate(numbers)
                            if number != other[at])
        return sorted(changing)


class _Operand:
    """A captured tensor as an operand of the function."""

    def __init__(self, name, tensor, is_constant):
        self.name = name
        self.tensor = tensor
        #: The integers that the operand has in the place of floats, if it has:
        #: no gradient is then computed for it.
        self.bits = None
        if is_constant and tensor.is_floating_point():
            self.bits = BITS[tensor.dtype.itemsize]
        self._fixed = [None] * tensor.dim()

    def note(self, dim, is_fixed):
        """Notes an index into a dimension: its size is static if all indices
        are heads or constants."""
        if self._fixed[dim] is not False:
            self._fixed[dim] = is_fixed

    @property
    def type(self):
        sizes = [f"{size}x" if is_fixed and isinstance(size, int) else "?x"
                 for size, is_fixed in zip(self.tensor.shape, self._fixed)]
        element = ELEMENTS[self.bits or self.tensor.dtype]
        return f"tensor<{''.join(sizes)}{element}>"

    @property
    def value(self):
        """The tensor that the function takes."""
        return (self.tensor if self.bits is None
                else self.tensor.detach().view(self.bits))


class Tracer:
    """Traces the mods of one attention. Sizes are integers, or symbolic.

    With a `length`, the queries are those from `start` of so many, and their
    coordinates are those of the whole. It is said by `has_gradients`, or found
    from the operands, whether captured tensors that require no gradient are
    constants to a backward pass.
    """

    def __init__(self, query, key, value, start=None, length=None, *,
                 has_gradients=None):
        self._inputs = {"query": query, "key": key, "value": value}
        self.device = query.device
        self._start = None if length is None else Number(start)
        self._sizes = (query.shape[0], query.shape[1],
                       query.shape[2] if length is None else length,
                       key.shape[2])
        #: True if there is any score, as far as is known.
        self.runs = all(isinstance(size, int) and size for size in self._sizes)
        self._is_wide = any(x.dtype == torch.float64
                            for x in (query, key, value))
        # The tensors of torch.func have no memory of their own.
        self._is_transformed = is_transformed()
        # Of captured tensors only those that require a gradient shall get one.
        self._has_gradients = has_gradients
        if has_gradients is None:
            self._has_gradients = (
                torch.is_grad_enabled() and not self._is_transformed
                and any(x.requires_grad for x in (query, key, value)))
        self._operands = {}
        self._names = {}
        self._numbers = []
        # By "score" and "mask": the region, the name of its result, the text of
        # its first argument and the result's type.
        self._regions = {}
        self._known_names = None
        self._mods = []
        self._kept = []
        # The sinks, and their name, if there are any.
        self._sinks = self._init = None
        self._split_size = 0
        # The scale, the constant that it is in the text, and its place among the
        # numbers if it is an operand.
        self._scale = self._factor = self._scale_at = None
        # Lengths, and integers that are operands and not 0, are what they are in this
        # call.
        self._knows_lengths = True

    #--- Operands ------------------------------------------------------------

    def check(self, tensor):
        check_capture(tensor, self.device)

    def capture(self, tensor):
        """Returns the operand of a captured tensor: one for each, and one for
        views of the same memory that need no gradient."""
        identity = id(tensor)
        operand = self._operands.get(identity)
        if operand is not None:
            return operand
        place = None
        if (not tensor.requires_grad and type(tensor) is torch.Tensor
                and not self._is_transformed and tensor.data_ptr()):
            place = (tensor.data_ptr(), tensor.shape, tensor.stride(),
                     tensor.dtype)
            operand = self._operands.get(place)
        if operand is None:
            operand = _Operand(self._name(identity), tensor,
                               self._has_gradients and not tensor.requires_grad)
            self._names[operand.name] = operand
        self._operands[identity] = operand
        if place is not None:
            self._operands[place] = operand
        # Holds the tensor, so that its identity stays its own.
        self._kept.append(tensor)
        return operand

    def start_from(self, sinks):
        """Gives each head, by a tensor `[H]`, the score of one more key, whose
        value is 0. Comes before mods are traced."""
        self._sinks = sinks
        sinks = sinks.to(torch.float64 if self._is_wide else torch.float32)
        operand = _Operand("sinks", sinks, False)
        operand.note(0, True)
        self._names[operand.name] = operand
        self._init = operand.name

    def split_by(self, size):
        """Divides the sums over keys at all multiples of `size`, if that is not 0."""
        self._split_size = size

    @property
    def _float(self):
        """The type of scores."""
        return "f64" if self._is_wide else "f32"

    def scale_by(self, scale, is_constant=False):
        """Multiplies products by a number before the mods see them: by an operand,
        unless it `is_constant` or one of those that always are. Comes before mods are
        traced."""
        self._scale = self._factor = scale
        if not is_constant and not is_constant_scale(
                int(self._inputs["query"].shape[3]), scale):
            self._factor = 1.0
            self._scale_at = len(self._numbers)
            self._numbers.append(Number(find_bits(scale)))

    def number(self, region, number):
        """Returns a `Number` or a symbolic integer as a value of a region. Each
        is an operand of its own: which ones are equal must not shape the text."""
        for at, other in enumerate(self._numbers):
            if other is number:
                break
        else:
            at = len(self._numbers)
            self._numbers.append(number)
        low, high = -_ANYWHERE, _ANYWHERE
        if isinstance(number, Number) and isinstance(number.number, int) and (
                self._knows_lengths or not number.number):
            low = high = number.number
        return Value(region, f"%number{at}", "index", low, high, NOWHERE)

    def _name(self, identity):
        """Returns a name for a captured tensor: that which its mod has for it,
        if that can be found."""
        name = self._find_names().get(identity)
        if name is None or name in self._names:
            count = sum(known.startswith("capture") for known in self._names)
            name = f"capture{count}"
        return name

    def _find_names(self):
        if self._known_names is None:
            self._known_names = {}
            functions = list(self._mods)
            # A mod may close over others, as those of `and_masks` do.
            for function in functions:
                code = getattr(function, "__code__", None)
                if code is None:
                    continue
                for cell, name in zip(getattr(function, "__closure__", None) or
                                      (), code.co_freevars):
                    try:
                        value = cell.cell_contents
                    except ValueError:
                        continue  # The cell is empty.
                    self._note_name(value, name)
                    for inner in value if isinstance(value, tuple) else (value,):
                        if hasattr(inner, "__code__") and inner not in functions:
                            functions.append(inner)
                scope = function.__globals__
                for name in code.co_names:
                    if name in scope:
                        self._note_name(scope[name], name)
        return self._known_names

    def _note_name(self, value, name):
        if isinstance(value, torch.Tensor) and _NAME.match(name) and (
                name not in _RESERVED and not keyword.iskeyword(name)):
            self._known_names.setdefault(id(value), name)

    #--- Regions -------------------------------------------------------------

    def _call(self, mod, is_score):
        """Returns the region of a mod and what the mod returns."""
        region = Region(self, self.device)
        coordinates = []
        for name, size in zip(("b", "h", "q", "kv"), self._sizes):
            last = max(size - 1, 0) if isinstance(size, int) else _ANYWHERE
            coordinates.append(Value(region, f"%{name}", "index", 0, last,
                                     frozenset(name)))
        self._mods.append(mod)
        self._known_names = None
        if self._start is not None:
            place = coordinates[2] + self._start
            coordinates[2] = Value(region, place.name, "index", 0,
                                   coordinates[2].high, frozenset(("q",)))
        if is_score:
            type = self._float
            score = Value(region, "%score", type)
            if self._scale_at is not None:
                score = region.emit(
                    f"arith.mulf %score, {name_scale(self._scale, type)} : {type}", type)
            coordinates.insert(0, score)
        try:
            return region, mod(*coordinates)
        except TypeError as error:
            if "__array_ufunc__" not in str(error):
                raise
            raise TraceError(f"{_locate(mod)}: a function of NumPy on a traced "
                             "value; use torch's") from error

    def _read_result(self, region, mod, kind, result):
        if isinstance(result, torch.Tensor) and not result.dim():
            self.check(result)
            result = Row(region, result)[()]
        if isinstance(result, Array) and not result.shape:
            result = result.items[0]
        if isinstance(result, Value):
            return result
        what = type(result).__name__
        if isinstance(result, (Traced, torch.Tensor)):
            what = f"a tensor of shape {tuple(result.shape)}"
        wanted = "number" if kind == "score_mod" else "boolean"
        raise TraceError(f"{_locate(mod)}: {kind} returns {what}; expected a "
                         f"0-d tensor, a {wanted} for each score")

    def trace(self, score_mod, mask_mod):
        """Traces the mods; each may be None."""
        self._trace_score(score_mod)
        self._trace_mask(mask_mod)

    def trace_any_length(self, score_mod, mask_mod):
        """Returns a tracer of the same attention, and the same mods, that knows neither
        lengths nor integers that are operands, but which of these are 0: what it writes
        serves all others. Raises what a mod raises that needs to know them."""
        other = Tracer(*self._inputs.values(), has_gradients=self._has_gradients)
        other._knows_lengths = False
        # Few queries are counted in the text.
        length = write_length(self._sizes[2], self.device.type == "cuda")
        other._sizes = (*self._sizes[:2], None if length == "?" else int(length), None)
        other.runs = False
        if self._sinks is not None:
            other.start_from(self._sinks)
        other.split_by(self._split_size)
        other.scale_by(self._scale)
        other._trace_score(score_mod)
        other._trace_mask(mask_mod)
        other.lift_integers()
        return other

    def _trace_score(self, mod):
        if mod is None:
            if self._scale_at is None:
                return
            mod = _keep_score
        region, result = self._call(mod, True)
        result = self._read_result(region, mod, "score_mod", result)
        type = self._float
        dtype = torch.float64 if self._is_wide else torch.float32
        result = FUNCTIONS["to"](result, dtype)
        if result.name == "%score":
            return  # It changes nothing.
        self._regions["score"] = [region, result.name, f"%score: {type}, ", type]

    def _trace_mask(self, mod):
        if mod is None:
            return
        region, result = self._call(mod, False)
        result = self._read_result(region, mod, "mask_mod", result)
        if result.type != "i1":
            raise TraceError(f"{_locate(mod)}: mask_mod returns a number of "
                             f"{result.dtype}; expected torch.bool")
        if result.low == 1:
            return  # It keeps everything.
        self._regions["mask"] = [region, result.name, "", "i1"]

    #--- The module ----------------------------------------------------------

    def lift_integers(self):
        """Makes operands of those constants of the mods that change from call
        to call, such as a position or a length, so that calls with other
        numbers need no other kernel. That they change shows when more than a
        few texts differ in them only."""
        integers = [(entry, line, number) for entry in self._regions.values()
                    for line, number in entry[0].integers]
        if not integers:
            return
        texts = []
        for name, (region, result, *_) in self._regions.items():
            lines = list(region.lines)
            for line, _ in region.integers:
                lines[line] = ""
            texts += [name, result, *lines]
        numbers = tuple(number for _, _, number in integers)
        for at in _find_changing("\n".join(texts), numbers):
            entry, line, number = integers[at]
            name = f"%number{len(self._numbers)}"
            self._numbers.append(Number(number))
            if entry[0].replace(line, name) == entry[1]:
                entry[1] = name

    def _write_region(self, name):
        """Returns the text of a region in braces, "" if there is none."""
        if name not in self._regions:
            return ""
        region, result, arguments, type = self._regions[name]
        return region.write(result, arguments, type)

    def _write_numbers(self):
        """Returns the parameters of the numbers."""
        return ["%scale_bits: i64" if at == self._scale_at else f"%number{at}: index"
                for at in range(len(self._numbers))]

    def _write_scale(self):
        """Returns the steps that make a float of the scale, if it is an operand."""
        return [] if self._scale_at is None else write_scale(self._scale, self._float)

    def write(self, lse=None, dropout=0.0):
        """Returns the text of the function, with the log-sum-exp as a second
        result of type `lse` if that is given."""
        query, value = self._inputs["query"], self._inputs["value"]
        length = write_length(query.shape[2], self.device.type == "cuda")
        types = {name: self._write_input(x)
                 for name, x in self._inputs.items()}
        types["query"] = self._write_input(query, length)
        types.update((name, operand.type)
                     for name, operand in self._names.items())
        heads = int(query.shape[1])
        results = {"output": f"tensor<?x{heads}x{length}x{int(value.shape[3])}x"
                             f"{ELEMENTS[query.dtype]}>"}
        if lse:
            results["lse"] = f"tensor<?x{heads}x{length}x{lse}>"
        return write_attention(
            types, self._write_numbers(), results, self._factor,
            {name: self._write_region(name) for name in self._regions}, dropout,
            self._init, self._write_scale(), self._split_size)

    def write_max(self):
        """Returns the text of a function of query, key, the captured tensors
        and the numbers: the largest score of each row. It keeps all scores."""
        query, key = self._inputs["query"], self._inputs["key"]
        wide = self._float
        heads = int(query.shape[1])
        lowest = "0xFFF0000000000000" if self._is_wide else "0xFF800000"
        types = {name: self._write_input(x)
                 for name, x in (("query", query), ("key", key))}
        types.update((name, operand.type)
                     for name, operand in self._names.items())
        types["scores"] = f"tensor<?x{heads}x?x?x{wide}>"
        types["most"] = f"tensor<?x{heads}x?x{wide}>"
        operands = [f"%{name}: !{name}" for name in
                    ("query", "key", *self._names)]
        operands += self._write_numbers()
        steps = [f"  {step}\n" for step in self._write_scale()]
        steps += ["  %s0 = attn.scores %query, %key : !query, !key -> !scores\n",
                  f"  %s1 = attn.scale %s0 by {write_float(self._factor, 'f64')} "
                  ": !scores\n"]
        last = "%s1"
        for name, operation, kind in (("%s2", "modify", "score"),
                                      ("%s3", "mask", "mask")):
            body = self._write_region(kind)
            if body:
                steps.append(f"  {name} = attn.{operation} {last} {body} "
                             ": !scores\n")
                last = name
        return "".join([
            "#all = affine_map<(b, h, i, j) -> (b, h, i, j)>\n"
            "#row = affine_map<(b, h, i, j) -> (b, h, i)>\n",
            *(f"!{name} = {type}\n" for name, type in types.items()),
            f"func.func @max_scores({', '.join(operands)}) -> !most {{\n",
            *steps,
            f"""  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %query, %c0 : !query
  %length = tensor.dim %query, %c2 : !query
  %lowest = arith.constant {lowest} : {wide}
  %empty = tensor.empty(%batch, %length) : !most
  %start = linalg.fill ins(%lowest : {wide}) outs(%empty : !most) -> !most
  %most = linalg.generic {{indexing_maps = [#all, #row],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
    ins({last} : !scores) outs(%start : !most) {{
  ^bb0(%x: {wide}, %y: {wide}):
    %z = arith.maximumf %x, %y : {wide}
    linalg.yield %z : {wide}
  }} -> !most
  return %most : !most
}}
"""])

    def _write_input(self, tensor, length="?"):
        heads, size = int(tensor.shape[1]), int(tensor.shape[3])
        return f"tensor<?x{heads}x{length}x{size}x{ELEMENTS[tensor.dtype]}>"

    @property
    def captures(self):
        """The captured tensors, as the function takes them."""
        return [operand.value for operand in self._names.values()]

    @property
    def lifted(self):
        """The integers that are operands, as the mods have them."""
        return list(self._numbers)

    @property
    def numbers(self):
        return [x.number if isinstance(x, Number) else x for x in self._numbers]


def _keep_score(score, b, h, q, kv):
    return score


def _locate(mod):
    code = getattr(mod, "__code__", None)
    if code is None:
        return getattr(mod, "__name__", type(mod).__name__)
    return f"{code.co_filename}:{code.co_firstlineno}"

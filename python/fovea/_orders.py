# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose results lie in memory as their caller wants them.

Results of a function are row-major. Attention over heads that are dimension 2 in
memory, `[B, L, H, E]`, as models have them, is a function with a transposed
result: the compiler writes it so, without a copy.
"""

import re

from ._library import Error

#: The order of dimensions of which dimensions 1 and 2 are in each other's place.
SWAPPED = (0, 2, 1, 3)

_TYPE = re.compile(r"tensor<(.*)x(\w+)>")


def find_order(tensor):
    """Returns the dimensions of a tensor in the order in which they lie in memory,
    the one with the largest stride first; row-major for one that is expanded."""
    rank = tensor.dim()
    strides = tensor.stride()
    if tensor.is_contiguous() or 0 in strides:
        return tuple(range(rank))
    return tuple(sorted(range(rank), key=lambda dim: -strides[dim]))


def swap(text, name, results):
    """Returns a text whose function `name` has the results whose numbers are
    `results`, of rank 4, with dimensions 1 and 2 in each other's place."""
    if not results:
        return text
    match = re.search(rf"^( *)func\.func @{name}\((.*)\) -> (.*) \{{$", text, re.M)
    if match is None:
        raise Error(f"expected a text with a function @{name}")
    indent, operands, types = match.groups()
    aliases = dict(re.findall(r"^(!\w+) = (.*)$", text, re.M))
    types = types.removeprefix("(").removesuffix(")").split(", ")
    names = re.findall(r"(%\w+):", operands)
    operand_types = re.sub(r"%\w+: | \{[^}]*\}", "", operands)
    lines = [f"%whole:{len(types)} = func.call @{name}_in_rows({', '.join(names)}) : "
             f"({operand_types}) -> ({', '.join(types)})"]
    values, found = [], []
    for at, type in enumerate(types):
        value = f"%whole#{at}"
        if at in results:
            sizes, element = _TYPE.fullmatch(aliases.get(type, type)).groups()
            sizes = sizes.split("x")
            swapped = [sizes[dim] for dim in SWAPPED]
            extents = []
            for dim in SWAPPED:
                if sizes[dim] == "?":
                    lines += [f"%i{at}_{dim} = arith.constant {dim} : index",
                              f"%n{at}_{dim} = tensor.dim {value}, %i{at}_{dim} : "
                              f"{type}"]
                    extents.append(f"%n{at}_{dim}")
            new = f"tensor<{'x'.join(swapped)}x{element}>"
            lines += [f"%e{at} = tensor.empty({', '.join(extents)}) : {new}",
                      f"%s{at} = linalg.transpose ins({value} : {type}) "
                      f"outs(%e{at} : {new}) permutation = {list(SWAPPED)}"]
            value, type = f"%s{at}", new
        values.append(value)
        found.append(type)
    lines.append(f"return {', '.join(values)} : {', '.join(found)}")
    body = "".join(f"{indent}  {line}\n" for line in lines)
    wrapper = (f"{indent}func.func @{name}({operands}) -> ({', '.join(found)}) {{\n"
               f"{body}{indent}}}\n")
    inner = match[0].replace(f"func.func @{name}(",
                             f"func.func private @{name}_in_rows(", 1)
    return text[:match.start()] + wrapper + inner + text[match.end():]

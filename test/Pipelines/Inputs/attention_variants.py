"""Attention written in many ways, as MLIR text.

Every variant is a layout of the operands, a way to contract, to scale, to mask,
to take the softmax, and a choice of types. `--opt` checks that each becomes one
attn.attention and nothing of the graph remains; `--run` executes each and
checks it against the float64 evaluation of the graph.
"""

import argparse
import collections
import pathlib
import random
import subprocess
import sys
import tempfile

Tensor = collections.namedtuple("Tensor", "name shape element")
WIDTH = {"f16": 16, "bf16": 16, "f32": 32}
MINUS_INFINITY = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000"}
LARGE = {"f16": -6.0e4, "bf16": -2.3819763e38, "f32": -2.3819763e38}


def type_of(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def dims(rank):
    return [f"d{index}" for index in range(rank)]


def affine_map(loops, results):
    return f"affine_map<({', '.join(dims(loops))}) -> ({', '.join(results)})>"


class Graph:
    """A function under construction."""

    def __init__(self):
        self.arguments, self.lines, self.count = [], [], 0

    def argument(self, element, shape):
        self.arguments.append(Tensor(f"%arg{len(self.arguments)}", shape, element))
        return self.arguments[-1]

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def op(self, text, shape=None, element=None):
        """A line; with a shape, the tensor that it defines."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return Tensor(name, list(shape), element) if element else name

    def number(self, value, element):
        text = MINUS_INFINITY[element] if value == "-inf" else f"{value:e}"
        return self.op(f"arith.constant {text} : {element}")

    def splat(self, value, like):
        text = MINUS_INFINITY[like.element] if value == "-inf" else f"{value:e}"
        kind = type_of(like.shape, like.element)
        return self.op(f"arith.constant dense<{text}> : {kind}", *like[1:])

    def empty(self, shape, element):
        return self.op(f"tensor.empty() : {type_of(shape, element)}", shape, element)

    def fill(self, value, shape, element):
        return self.into(f"linalg.fill ins({self.number(value, element)} : {element})",
                         self.empty(shape, element))

    def into(self, text, init, tail="", arrow=True):
        kind = type_of(init.shape, init.element)
        end = f" -> {kind}" if arrow else ""
        return self.op(f"{text} outs({init.name} : {kind}){tail}{end}", *init[1:])

    def ins(self, *tensors):
        names = ", ".join(tensor.name for tensor in tensors)
        kinds = ", ".join(type_of(*tensor[1:]) for tensor in tensors)
        return f"ins({names} : {kinds})"

    def generic(self, inputs, maps, init, body, result=None, loops=None, sums=0):
        """linalg.generic; `body` computes %r from %a, %b, ... and %out."""
        loops = loops or len(init.shape)
        kinds = ["parallel"] * (loops - sums) + ["reduction"] * sums
        every = [affine_map(loops, m) for m in maps + [result or dims(loops)]]
        arguments = [f"%{'abc'[index]}: {tensor.element}"
                     for index, tensor in enumerate(inputs)]
        arguments = ", ".join(arguments + [f"%out: {init.element}"])
        ins = self.ins(*inputs) + " " if inputs else ""
        kind = type_of(init.shape, init.element)
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        return self.op(
            f"linalg.generic {{indexing_maps = [{', '.join(every)}], "
            f"iterator_types = [{iterators}]}} {ins}outs({init.name} : {kind}) {{\n"
            f"  ^bb0({arguments}):\n    " + "\n    ".join(body) +
            f"\n    linalg.yield %r : {init.element}\n  }} -> {kind}", *init[1:])

    def elementwise(self, tensor, body, others=(), maps=(), element=None):
        """A function of %a, an element of `tensor`, and of others read by maps."""
        rank = len(tensor.shape)
        return self.generic([tensor, *others], [dims(rank), *maps],
                            self.empty(tensor.shape, element or tensor.element), body)

    def named(self, name, *tensors):
        return self.into(f"linalg.{name} {self.ins(*tensors)}",
                         self.empty(*tensors[0][1:]))

    def cast(self, tensor, element):
        if tensor.element == element:
            return tensor
        verb = "extf" if WIDTH[element] > WIDTH[tensor.element] else "truncf"
        body = [f"%r = arith.{verb} %a : {tensor.element} to {element}"]
        return self.elementwise(tensor, body, element=element)

    def transpose(self, tensor, order):
        shape = [tensor.shape[dim] for dim in order]
        return self.into(f"linalg.transpose {self.ins(tensor)}",
                         self.empty(shape, tensor.element),
                         f" permutation = {order}", arrow=False)

    def broadcast(self, tensor, shape, new):
        return self.into(f"linalg.broadcast {self.ins(tensor)}",
                         self.empty(shape, tensor.element),
                         f" dimensions = {new}", arrow=False)

    def collapse(self, tensor, groups):
        shape = []
        for group in groups:
            size = 1
            for dim in group:
                size *= tensor.shape[dim]
            shape.append(size)
        return self.op(f"tensor.collapse_shape {tensor.name} {groups} : "
                       f"{type_of(*tensor[1:])} into {type_of(shape, tensor.element)}",
                       shape, tensor.element)

    def expand(self, tensor, groups, shape):
        return self.op(f"tensor.expand_shape {tensor.name} {groups} output_shape "
                       f"{shape} : {type_of(*tensor[1:])} into "
                       f"{type_of(shape, tensor.element)}", shape, tensor.element)

    def reduce(self, verb, start, tensor):
        init = self.fill(start, tensor.shape[:-1], tensor.element)
        return self.into(f"linalg.reduce {{ arith.{verb} }} {self.ins(tensor)}", init,
                         f" dimensions = [{len(tensor.shape) - 1}]", arrow=False)

    def contract(self, spec, left, right, sizes, style):
        """An einsum, such as "bhid,bhjd->bhij"."""
        operands, result = spec.split("->")
        first, second = operands.split(",")
        sums = [letter for letter in first if letter not in result]
        place = {letter: f"d{index}" for index, letter in enumerate([*result, *sums])}
        maps = [[place[letter] for letter in letters]
                for letters in (first, second, result)]
        init = self.fill(0.0, [sizes[letter] for letter in result], left.element)
        if style == "contract":
            every = ", ".join(affine_map(len(place), m) for m in maps)
            return self.into(f"linalg.contract indexing_maps = [{every}] "
                             f"{self.ins(left, right)}", init)
        body = [f"%m = arith.mulf %a, %b : {left.element}",
                f"%r = arith.addf %out, %m : {left.element}"]
        return self.generic([left, right], maps[:2], init, body, maps[2], len(place),
                            len(sums))

    def text(self, result):
        signature = ", ".join(f"{argument.name}: {type_of(*argument[1:])}"
                              for argument in self.arguments)
        body = "\n  ".join(self.lines)
        kind = type_of(*result[1:])
        return (f"func.func @attend({signature}) -> {kind} {{\n  {body}\n"
                f"  return {result.name} : {kind}\n}}\n")


def scaled(graph, tensor, factor, style):
    element = tensor.element
    if style == "generic":
        number = graph.number(factor, element)
        return graph.elementwise(tensor, [f"%r = arith.mulf %a, {number} : {element}"])
    if style == "division":
        divisor = graph.splat(1 / factor, tensor)
        return graph.op(f"arith.divf {tensor.name}, {divisor.name} : "
                        f"{type_of(*tensor[1:])}", *tensor[1:])
    if style == "broadcast":
        scalar = graph.splat(factor, Tensor("", [], element))
        every = graph.broadcast(scalar, tensor.shape, list(range(len(tensor.shape))))
        return graph.op(f"arith.mulf {every.name}, {tensor.name} : "
                        f"{type_of(*tensor[1:])}", *tensor[1:])
    assert style == "named"
    return graph.named("mul", tensor, graph.fill(factor, tensor.shape, element))


def masked(graph, scores, kind):
    rank, element = len(scores.shape), scores.element
    rows, keys = scores.shape[-2:]
    row, key = f"d{rank - 2}", f"d{rank - 1}"
    places = [f"%i = linalg.index {rank - 2} : index",
              f"%j = linalg.index {rank - 1} : index"]
    causal = "%c = arith.cmpi sge, %i, %j : index"
    if kind in ("causal", "causal large", "window"):
        low = graph.number(LARGE[element] if "large" in kind else "-inf", element)
        body = places + [causal]
        if kind == "window":
            width = graph.op("arith.constant 7 : index")
            body = places + ["%p = arith.cmpi sge, %i, %j : index",
                             "%d = arith.subi %i, %j : index",
                             f"%n = arith.cmpi slt, %d, {width} : index",
                             "%c = arith.andi %p, %n : i1"]
        body.append(f"%r = arith.select %c, %a, {low} : {element}")
        return graph.elementwise(scores, body)
    if kind == "added":
        zero, low = graph.number(0.0, element), graph.number("-inf", element)
        body = [places[0].replace(str(rank - 2), "0"),
                places[1].replace(str(rank - 1), "1"), causal,
                f"%r = arith.select %c, {zero}, {low} : {element}"]
        table = graph.generic([], [], graph.empty([rows, keys], element), body)
        body = [f"%r = arith.addf %a, %b : {element}"]
        return graph.elementwise(scores, body, [table], [[row, key]])
    if kind == "iota":
        iotas = []
        for dim in (0, 1):
            body = [f"%i = linalg.index {dim} : index",
                    "%r = arith.index_cast %i : index to i32"]
            iotas.append(graph.generic([], [], graph.empty([rows, keys], "i32"), body))
        keep = graph.op(f"arith.cmpi sge, {iotas[0].name}, {iotas[1].name} : "
                        f"{type_of([rows, keys], 'i32')}", [rows, keys], "i1")
        if rank > 2:
            keep = graph.broadcast(keep, scores.shape, list(range(rank - 2)))
        low = graph.splat(LARGE[element], scores)
        return graph.op(f"arith.select {keep.name}, {scores.name}, {low.name} : "
                        f"{type_of(*keep[1:])}, {type_of(*scores[1:])}", *scores[1:])
    if kind in ("bias", "bool"):
        table = graph.argument("i1" if kind == "bool" else element, [rows, keys])
        body = [f"%r = arith.addf %a, %b : {element}"]
        if kind == "bool":
            low = graph.number("-inf", element)
            body = [f"%r = arith.select %b, %a, {low} : {element}"]
        return graph.elementwise(scores, body, [table], [[row, key]])
    if kind == "cap":
        cap = graph.number(10.0, element)
        return graph.elementwise(scores, [f"%d = arith.divf %a, {cap} : {element}",
                                          f"%t = math.tanh %d : {element}",
                                          f"%r = arith.mulf %t, {cap} : {element}"])
    if kind == "slopes" and rank > 2:
        slopes = graph.argument("f32", [scores.shape[rank - 3]])
        slopes = graph.cast(slopes, element)
        body = places + ["%d = arith.subi %j, %i : index",
                         "%n = arith.index_cast %d : index to i32",
                         f"%f = arith.sitofp %n : i32 to {element}",
                         f"%m = arith.mulf %b, %f : {element}",
                         f"%r = arith.addf %a, %m : {element}"]
        return graph.elementwise(scores, body, [slopes], [[f"d{rank - 3}"]])
    if kind == "lengths" and rank > 2:
        lengths = graph.argument("i32", [scores.shape[0]])
        low = graph.number("-inf", element)
        body = places[1:] + ["%n = arith.index_cast %j : index to i32",
                             "%c = arith.cmpi slt, %n, %b : i32",
                             f"%r = arith.select %c, %a, {low} : {element}"]
        return graph.elementwise(scores, body, [lengths], [["d0"]])
    return scores


def softmax(graph, scores, style):
    rank, element = len(scores.shape), scores.element
    row, kept = dims(rank - 1), dims(rank - 1) + ["0"]
    if style == "op":
        return graph.into(f"linalg.softmax dimension({rank - 1}) {graph.ins(scores)}",
                          graph.empty(*scores[1:]))
    if style == "named":
        def spread(tensor):
            return graph.broadcast(tensor, scores.shape, [rank - 1])
        shifted = graph.named("sub", scores,
                              spread(graph.reduce("maxnumf", "-inf", scores)))
        powers = graph.named("exp", shifted)
        return graph.named("div", powers, spread(graph.reduce("addf", 0.0, powers)))
    if style in ("kept", "reciprocal"):
        def reduced(verb, start, tensor):
            init = graph.fill(start, scores.shape[:-1] + [1], element)
            return graph.generic([tensor], [dims(rank)], init,
                                 [f"%r = arith.{verb} %a, %out : {element}"], kept,
                                 rank, 1)
        shifted = graph.elementwise(scores, [f"%r = arith.subf %a, %b : {element}"],
                                    [reduced("maximumf", "-inf", scores)], [kept])
        powers = graph.elementwise(shifted, [f"%r = math.exp %a : {element}"])
        total, verb = reduced("addf", 0.0, powers), "divf"
        if style == "reciprocal":
            one = graph.number(1.0, element)
            total = graph.elementwise(total, [f"%r = arith.divf {one}, %a : {element}"])
            verb = "mulf"
        return graph.elementwise(powers, [f"%r = arith.{verb} %a, %b : {element}"],
                                 [total], [kept])
    largest = graph.reduce("maximumf", "-inf", scores)
    shift = f"%d = arith.subf %a, %b : {element}"
    if style == "base two":
        factor = graph.number(1.4426950408889634, element)
        body = [shift, f"%m = arith.mulf %d, {factor} : {element}",
                f"%r = math.exp2 %m : {element}"]
    else:
        body = [shift, f"%r = math.exp %d : {element}"]
    powers = graph.elementwise(scores, body, [largest], [row])
    total = graph.reduce("addf", 0.0, powers)
    kind = type_of(*total[1:])
    if style == "logarithm":
        log = graph.op(f"math.log {total.name} : {kind}", *total[1:])
        log = graph.op(f"arith.addf {largest.name}, {log.name} : {kind}", *total[1:])
        return graph.elementwise(scores, [shift, f"%r = math.exp %d : {element}"], [log],
                                 [row])
    assert style in ("fused steps", "base two")
    return graph.elementwise(powers, [f"%r = arith.divf %a, %b : {element}"], [total],
                             [row])


CHOICES = {
    "layout": ["heads", "positions", "transposed", "collapsed", "flat", "single",
               "groups", "repeated", "merged", "mirrored"],
    "style": ["generic", "contract"],
    "scale": ["none", "generic", "division", "broadcast", "named", "query", "both"],
    "mask": ["none", "causal", "causal large", "window", "added", "iota", "bias", "bool",
             "cap", "slopes", "lengths"],
    "softmax": ["op", "named", "kept", "reciprocal", "base two", "logarithm",
                "fused steps"],
    "types": ["f32", "f16", "f16 widened before", "f16 widened after",
              "bf16 widened after"],
}


def make(choice, sizes):
    graph = Graph()
    outer = choice["types"].split()[0]
    product = "f32" if "before" in choice["types"] else outer
    softmax_type = "f32" if "widened" in choice["types"] else outer
    factor = sizes["d"] ** -0.5
    b, h, k, g, i, j, d, e = (sizes[letter] for letter in "bhkgijde")

    def operands(*shapes):
        tensors = [graph.cast(graph.argument(outer, shape), product) for shape in shapes]
        if choice["scale"] == "query":
            tensors[0] = scaled(graph, tensors[0], factor, "generic")
        elif choice["scale"] == "both":
            for which in (0, 1):
                tensors[which] = scaled(graph, tensors[which], factor ** 0.5, "division")
        return tensors

    def probabilities(scores):
        if choice["scale"] not in ("none", "query", "both"):
            scores = scaled(graph, scores, factor, choice["scale"])
        scores = graph.cast(scores, softmax_type)
        for kind in choice["mask"]:
            scores = masked(graph, scores, kind)
        return graph.cast(softmax(graph, scores, choice["softmax"]), product)

    def attend(q, k, v, first, second):
        scores = graph.contract(first, q, k, sizes, choice["style"])
        return graph.contract(second, probabilities(scores), v, sizes, choice["style"])

    def heads_first(*tensors):
        return [graph.transpose(tensor, [0, 2, 1, 3]) for tensor in tensors]

    def repeat(tensor):
        """The KV heads, each for its group."""
        shape = [b, k, g, *tensor.shape[2:]]
        every = graph.broadcast(tensor, shape, [2])
        return graph.collapse(every, [[0], [1, 2], [3], [4]])

    plain = ("bhid,bhjd->bhij", "bhij,bhje->bhie")
    layout = choice["layout"]
    if layout == "heads":
        out = attend(*operands([b, h, i, d], [b, h, j, d], [b, h, j, e]), *plain)
    elif layout == "positions":
        out = attend(*operands([b, i, h, d], [b, j, h, d], [b, j, h, e]),
                     "bihd,bjhd->bhij", "bhij,bjhe->bihe")
    elif layout == "transposed":
        tensors = operands([b, i, h, d], [b, j, h, d], [b, j, h, e])
        out = graph.transpose(attend(*heads_first(*tensors), *plain), [0, 2, 1, 3])
    elif layout == "collapsed":
        tensors = operands([b, h, i, d], [b, h, j, d], [b, h, j, e])
        q, k_, v = (graph.collapse(tensor, [[0, 1], [2], [3]]) for tensor in tensors)
        scores = graph.contract("nid,njd->nij", q, k_, sizes, choice["style"])
        scores = graph.expand(scores, [[0, 1], [2], [3]], [b, h, i, j])
        p = graph.collapse(probabilities(scores), [[0, 1], [2], [3]])
        out = graph.contract("nij,nje->nie", p, v, sizes, choice["style"])
        out = graph.expand(out, [[0, 1], [2], [3]], [b, h, i, e])
    elif layout == "flat":
        out = attend(*operands([b * h, i, d], [b * h, j, d], [b * h, j, e]),
                     "nid,njd->nij", "nij,nje->nie")
    elif layout == "single":
        out = attend(*operands([i, d], [j, d], [j, e]), "id,jd->ij", "ij,je->ie")
    elif layout == "groups":
        out = attend(*operands([b, i, k, g, d], [b, j, k, d], [b, j, k, e]),
                     "bikgd,bjkd->bkgij", "bkgij,bjke->bikge")
        out = graph.collapse(out, [[0], [1], [2, 3, 4]])
    elif layout == "repeated":
        q, k_, v = operands([b, h, i, d], [b, k, j, d], [b, k, j, e])
        out = attend(q, repeat(k_), repeat(v), *plain)
    elif layout == "merged":
        q, k_, v = operands([b, i, h * d], [b, j, k * d], [b, j, k * e])
        split = [[0], [1], [2, 3]]
        q = graph.expand(q, split, [b, i, h, d])
        k_, v = graph.expand(k_, split, [b, j, k, d]), graph.expand(v, split, [b, j, k, e])
        q, k_, v = heads_first(q, k_, v)
        out = graph.transpose(attend(q, repeat(k_), repeat(v), *plain), [0, 2, 1, 3])
        out = graph.collapse(out, split)
    else:
        q, k_, v = operands([b, h, i, d], [b, h, j, d], [b, h, j, e])
        scores = graph.contract("bhjd,bhid->bhij", k_, q, sizes, choice["style"])
        out = graph.contract("bhje,bhij->bhei", v, probabilities(scores), sizes,
                             choice["style"])
    return graph.text(graph.cast(out, outer))


def variants(seed, count):
    source = random.Random(seed)
    for _ in range(count):
        choice = {name: source.choice(options) for name, options in CHOICES.items()}
        choice["mask"] = [choice["mask"]]
        if source.random() < 0.3:
            choice["mask"].append(source.choice(CHOICES["mask"]))
        heads, groups = source.choice([(2, 1), (4, 2), (6, 3)])
        sizes = {"b": source.choice([1, 2, 3]), "h": heads, "g": groups,
                 "k": heads // groups, "i": source.choice([1, 5, 19, 40]),
                 "j": source.choice([1, 7, 23, 40]), "d": source.choice([1, 8, 16]),
                 "e": source.choice([1, 8, 24])}
        sizes["n"] = sizes["b"] * sizes["h"]
        yield f"{choice} {sizes}", make(choice, sizes)


def failure(tool, text, arguments):
    """What is wrong with a tool's run on `text`, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "variant.mlir"
        path.write_text(text)
        run = subprocess.run([tool, str(path), *arguments], capture_output=True,
                             text=True, check=False)
    if run.returncode:
        return run.stdout + run.stderr
    if "--attn-fuse" not in arguments:
        return ""
    left = [word for word in ("math.exp", "linalg.softmax", "linalg.contract",
                              '"reduction"', "linalg.reduce") if word in run.stdout]
    if left or run.stdout.count("attn.attention") != 1:
        return f"not fused, or {left} remains:\n{run.stdout}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--opt", help="fovea-opt")
    parser.add_argument("--run", help="fovea-run")
    options = parser.parse_args()
    failures = 0
    for name, text in variants(options.seed, options.count):
        why = ""
        if options.opt:
            why = failure(options.opt, text, ["--attn-fuse"])
        if options.run and not why:
            why = failure(options.run, text,
                          ["--random=3", "--integers=0:20", "--check"])
        if not options.opt and not options.run:
            print(f"// {name}\n{text}\n// -----")
        if why:
            failures += 1
            print(f"{name}\n{text}\n{why}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

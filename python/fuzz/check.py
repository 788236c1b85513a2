# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one case and compares it with the reference, element by element."""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from . import approx
from .approx import TORCH, Approx
from .graph import FLOATS
from .schedules import set_backward

#: Valid graphs that are refused by the documentation: what the error says, and
#: which targets refuse them.
LIMITS = [
    # Everything is of size 0, so that there is no kernel to show.
    ("the module has no kernels", ("sm_80", "sm_90a"),
     "`fovea-compile --emit=ptx` of a graph without elements"),
]

#: What an error says of a schedule by hand (`--schedules`) that a graph or a GPU
#: cannot have: one that needs too much memory or, in the interpreter, would spill.
OF_SCHEDULES = (r"has a schedule|registers a thread for its fragments"
                r"|bytes of shared memory(, but a block has| a block, of at most)")

INTEGERS = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16,
            "i32": torch.int32, "i64": torch.int64}


@dataclasses.dataclass
class Outcome:
    #: "passed", "limit", or what failed: "wrong", "refused", "unequal", "crash",
    #: "hang", "fault" (of the device), "fuzzer" (the fuzzer is wrong).
    kind: str
    message: str = ""
    #: Largest error as a part of its bound, by result.
    ratios: dict = dataclasses.field(default_factory=dict)
    #: For each result: the median bound relative to the largest magnitude.
    widths: dict = dataclasses.field(default_factory=dict)

    @property
    def failed(self):
        return self.kind not in ("passed", "limit")


# Operands.

def _random(case, name):
    return np.random.default_rng(
        [case.seed, case.index, zlib.crc32(name.encode())])


def make_operands(case):
    """Tensors of the operands' types by name, contiguous."""
    program, found = case.program, {}
    for tensor in program.operands:
        rng = _random(case, tensor.name)
        shape = program.shape(tensor.name)
        way, *more = tensor.values
        if way == "normal":
            values = rng.standard_normal(shape) * more[0]
        elif way == "ids":
            values = np.sort(rng.integers(0, more[0], shape), -1)
        elif way == "range":
            values = rng.integers(more[0], more[1], shape)
        elif way == "holes":
            values = np.where(rng.random(shape) < 0.3, more[0], 0.0)
        elif way == "bits":
            values = rng.random(shape) < more[0]
        else:
            values = np.array(more[0])
        dtype = TORCH.get(tensor.dtype) or INTEGERS[tensor.dtype]
        found[tensor.name] = torch.as_tensor(np.asarray(values)).to(dtype)
    _plant(case, found)
    for tensor in program.operands:
        value = found[tensor.name]
        if tensor.layout == "expand" and value.shape[0]:
            found[tensor.name] = value[:1].expand(value.shape).contiguous()
    return found


def plain(operands):
    """float64, indices and truth values."""
    return {n: x.double() if x.is_floating_point() else
            (x.long() if x.dtype != torch.bool else x)
            for n, x in operands.items()}


def _plant(case, found):
    """Puts the modes' numbers into queries, keys and values."""
    rng = _random(case, "mode")
    if case.mode == "huge":
        name = case.program.operands[0].name
        limit = 3 if found[name].dtype == torch.float16 else 9
        found[name] = found[name] * 10.0**rng.uniform(1, limit)
    elif case.mode == "nan":
        a = case.program.body[0]
        for name in sorted({a.q, a.k, a.v}):
            values = found[name].reshape(-1)
            if values.numel() and rng.random() < 0.7:
                for _ in range(int(rng.integers(1, 4))):
                    at = int(rng.integers(values.numel()))
                    values[at] = torch.nan
        # Elements that nobody has written: those of absent keys, all of them.
        if a.k != a.q and rng.random() < 0.7:
            k, v = found[a.k], found[a.v]
            shape = (*found[a.q].shape[:3], k.shape[2])
            absent = a.absent(case.program, plain(found), shape, k.shape[1])
            for values in (k, v):
                values.masked_fill_(absent[..., None], torch.nan)


def make_cotangents(case):
    program = case.program
    found = {}
    for name in program.results:
        rng = _random(case, f"cotangent of {name}")
        found[name] = torch.as_tensor(rng.standard_normal(
            program.shape(name))).to(TORCH[program.tensors[name].dtype])
    return found


def lay_out(value, layout, numpy_allowed):
    """The same values, elsewhere in memory."""
    if layout == "offset":
        room = torch.empty(value.numel() + 1, dtype=value.dtype,
                           device=value.device)
        room[1:] = value.reshape(-1)
        return room[1:].view(value.shape)
    if not value.numel():
        return value
    if layout == "turned" or (layout == "reversed" and not (
            numpy_allowed and value.dtype != torch.bfloat16)):
        if value.dim() < 3:
            return value
        return value.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "packed":
        return torch.cat((value, value), -1)[..., :value.shape[-1]]
    if layout == "step":
        return value.repeat_interleave(2, -2)[..., ::2, :]
    if layout == "expand":
        return value[:1].expand(value.shape)
    if layout == "inner":
        return value.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "reversed":
        return np.ascontiguousarray(value.numpy()[..., ::-1, :])[..., ::-1, :]
    return value


# The reference.

@dataclasses.dataclass
class Reference:
    #: By result, and "gradient of x" by operand: values, bounds, types.
    values: dict
    bounds: dict
    dtypes: dict


def _without_nan(case, operands):
    if case.mode != "nan":
        return operands
    return {n: torch.nan_to_num(x, 0.0) if x.is_floating_point() else x
            for n, x in operands.items()}


def _read(case, value, dtype):
    """What a computation starts with: a GPU reads numbers of f32 and bf16 that
    are not normal as 0."""
    exact = Approx.exact(value.double())
    if case.target != "host" and dtype in ("f32", "bf16"):
        size = exact.value.abs()
        exact.error = torch.where(size < approx.least(dtype), size, 0.0)
    return exact


@functools.cache
def find_host_arch():
    """The processor that the compiler finds here."""
    import fovea
    text = "func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }"
    return re.search(r'arch = "(\w+)"', fovea.compile(text).mlir()).group(1)


def make_reference(case, operands, cotangents):
    program = case.program
    if (case.target == "host" and case.arch == "native"
            and find_host_arch() in ("amx", "avx512_bf16")):
        program.pairs = ("bf16",)
    clean = _without_nan(case, operands)
    values = plain(clean)
    leaves = dict(values)
    if case.gradients:
        for name in program.variables:
            leaves[name] = values[name].clone().requires_grad_()
    exact = program.evaluate(leaves)
    tracked = program.track(
        {n: _read(case, x, program.tensors[n].dtype)
         if program.tensors[n].dtype in FLOATS else x
         for n, x in values.items()}, case.target)
    reference = Reference({}, {}, {})

    def put(name, value, tracked, dtype):
        reference.values[name] = value.detach()
        reference.bounds[name] = tracked.error
        reference.dtypes[name] = dtype
        gap = torch.where(value.detach() == tracked.value, 0.0,
                          (value.detach() - tracked.value).abs())
        if not bool((gap <= tracked.error).all()):
            raise AssertionError(
                f"{name}: autograd and error analysis differ by "
                f"{gap.max().item():.3g}")

    for name in program.results:
        put(name, exact[name], tracked[name], program.tensors[name].dtype)
    if case.gradients:
        # A result that no operand changes has no gradient to give.
        live = [n for n in program.results if exact[n].requires_grad]
        wanted = torch.autograd.grad(
            [exact[n] for n in live], [leaves[n] for n in program.variables],
            [cotangents[n].double() for n in live],
            allow_unused=True) if live else [None] * len(program.variables)
        sums = program.pull(tracked, {
            n: _read(case, x, program.tensors[n].dtype)
            for n, x in cotangents.items()},
            case.target)
        for name, value in zip(program.variables, wanted):
            shape = program.shape(name)
            zeros = torch.zeros(shape, dtype=torch.float64)
            known = sums.get(name)
            put(f"gradient of {name}", zeros if value is None else value,
                Approx(zeros, zeros) if known is None else known,
                program.tensors[name].dtype)
    if case.mode == "nan":
        _put_nan(case, operands, values, reference)
    return reference


def _put_nan(case, operands, values, reference):
    """A NaN that is not masked reaches its row, and one of a value its feature.
    The contents of absent and masked keys do not matter; but a
    masked value that is not absent must be finite: its feature is then not known
    for the queries that do not see it."""
    a = case.program.body[0]
    q, k, v = (operands[n].double().isnan() for n in (a.q, a.k, a.v))
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    shape = (*q.shape[:3], k.shape[2])
    keep, _ = a.keep(case.program, values, shape)
    score = q.any(-1)[..., None] | k.any(-1)[..., None, :]
    rows = (score & keep).any(-1)
    spots = keep.double() @ v.double() > 0
    absent = a.absent(case.program, values, shape, shape[1] // group)
    present = ~absent.repeat_interleave(group, 1)[:, :, None]
    open_ = (~keep & present).double() @ v.double() > 0
    for name in case.program.results:
        value = reference.values[name]
        bad = rows if name == a.lse else rows[..., None] | spots
        reference.values[name] = torch.where(bad, torch.nan, value)
        if name != a.lse:
            reference.bounds[name] = torch.where(
                open_ & ~bad, torch.inf, reference.bounds[name])


# Running.

class Wrong(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def options(case):
    found = dict(strategy=case.strategy, deterministic=case.deterministic)
    if case.target == "host":
        found["arch"] = case.arch
    elif case.index % 2:
        # Short sequences may have code of their own, and this has to be right.
        found["typical_length"] = 4096
    return found


def differentiated(case):
    """The text of a case's program and its gradients, with schedules."""
    import fovea
    try:
        text = fovea.differentiate(
            case.program.text, recompute=case.recompute,
            textbook=case.textbook, partition=case.partition,
            target=case.target)
    except fovea.Error as error:
        raise Wrong("refused", str(error))
    if case.backward_schedule:
        text = set_backward(text, case.backward_schedule)
    return text


def get_text(case):
    """The text that fovea-run runs with the options of `command`."""
    return (differentiated(case) if case.gradients and case.backward_schedule
            else case.program.text)


def run(case, operands, cotangents):
    """Results, and gradients if there are any, as tensors by name; twice."""
    if case.simulate:
        return run_simulated(case, operands, cotangents)
    import fovea
    program = case.program
    device = "cpu" if case.target == "host" else "cuda"
    arguments = []
    for tensor in program.operands:
        value = operands[tensor.name]
        if tensor.scalar:
            arguments.append(value.item())
            continue
        arguments.append(lay_out(value.to(device), tensor.layout,
                                 device == "cpu" and not case.partition))
    names = list(program.results)
    given = [cotangents[n].to(device) for n in names]
    if case.gradients:
        names += [f"gradient of {n}" for n in program.variables]
    try:
        if not case.gradients:
            call = fovea.compile(program.text, case.target, **options(case))
            take = lambda: call(*arguments)
        elif case.partition:
            call = fovea.differentiable(
                program.text, case.target, recompute=case.recompute,
                textbook=case.textbook, **options(case))
            take = lambda: _through_autograd(case, call, arguments, given)
        else:
            call = fovea.compile(differentiated(case), case.target,
                                 **options(case))
            take = lambda: call(*arguments, *given)
        rounds = []
        for _ in range(2):
            results = take()
            if not isinstance(results, (tuple, list)):
                results = (results,)
            rounds.append([torch.as_tensor(x).cpu() for x in results])
    except fovea.Error as error:
        text = str(error)
        raise Wrong("fault" if "CUDA_ERROR" in text else "refused", text)
    except RuntimeError as error:
        if "CUDA" in str(error):
            raise Wrong("fault", str(error))
        raise
    first, second = rounds
    if len(first) != len(names):
        raise Wrong("wrong", f"{len(first)} results, expected {len(names)}")
    same_always = (case.target == "host" or case.deterministic
                   or not case.gradients)
    for name, one, two in zip(names, first, second):
        if same_always and not torch.equal(_bits(one), _bits(two)):
            raise Wrong("unequal", f"{name}: two runs differ in "
                        f"{int((_bits(one) != _bits(two)).sum())} elements")
    return dict(zip(names, first))


def _bits(x):
    return x.contiguous().view({2: torch.int16, 4: torch.int32,
                                8: torch.int64}[x.element_size()])


def _through_autograd(case, call, arguments, given):
    program = case.program
    leaves = []
    for tensor, argument in zip(program.operands, arguments):
        if tensor.name in program.variables:
            argument = argument.detach().requires_grad_()
        leaves.append(argument)
    results = call(*leaves)
    if not isinstance(results, tuple):
        results = (results,)
    wanted = [x for t, x in zip(program.operands, leaves)
              if t.name in program.variables]
    gradients = torch.autograd.grad(results, wanted, given, allow_unused=True)
    return [r.detach() for r in results] + [
        torch.zeros_like(x) if g is None else g
        for x, g in zip(wanted, gradients)]


def to_numpy(value):
    value = value.detach().contiguous()
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(np.uint16)
    return value.numpy()


def from_numpy(array, dtype):
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def save_operands(case, operands, cotangents, folder):
    """Saves operands as .npy files; returns inputs of fovea-run for them."""
    inputs = []
    for tensor in case.program.operands:
        value = operands[tensor.name]
        if tensor.scalar:
            inputs.append(f"--input={value.item()!r}")
        else:
            np.save(folder / f"{tensor.name}.npy", to_numpy(value))
            inputs.append(f"--input={tensor.name}.npy")
    if case.gradients:
        for name in case.program.results:
            np.save(folder / f"cotangent-{name}.npy",
                    to_numpy(cotangents[name]))
            inputs.append(f"--input=cotangent-{name}.npy")
    return inputs


def command(case):
    """Returns options of fovea-run for a case."""
    words = ["--bf16-bits"]
    if case.target != "host":
        words.append(f"--target={case.target}")
    else:
        words.append(f"--arch={case.arch}")
    if case.simulate:
        words.append("--simulate")
    if case.strategy != "fused":
        words.append(f"--strategy={case.strategy}")
    if case.gradients and not case.backward_schedule:
        words += ["--grad", f"--recompute={case.recompute}"]
    if case.deterministic:
        words.append("--deterministic")
    return words


def find_tool(name):
    """Finds a tool beside the library that is tested, or on the path."""
    library = os.environ.get("FOVEA_LIBRARY")
    if library:
        tool = pathlib.Path(library).resolve().parents[1] / "bin" / name
        if tool.exists():
            return str(tool)
    return name


def run_tool(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        # Errors of the tools exit with 1, crashes and signals do not.
        raise Wrong("refused" if done.returncode == 1 else "crash",
                    f"exit code {done.returncode}\n{done.stderr}")
    return done


def compile_only(case):
    """Compiles down to machine code, if there is a ptxas."""
    text = differentiated(case) if case.gradients else case.program.text
    words = [find_tool("fovea-compile"), "-", f"--target={case.target}",
             f"--strategy={case.strategy}", "--emit=cubin", "-o", os.devnull]
    if case.deterministic:
        words.append("--deterministic")
    run_tool(words, input=text)


def run_simulated(case, operands, cotangents):
    program = case.program
    names = list(program.results)
    dtypes = [program.tensors[n].dtype for n in names]
    if case.gradients:
        names += [f"gradient of {n}" for n in program.variables]
        dtypes += [program.tensors[n].dtype for n in program.variables]
    with tempfile.TemporaryDirectory() as at:
        folder = pathlib.Path(at)
        (folder / "case.mlir").write_text(get_text(case))
        inputs = save_operands(case, operands, cotangents, folder)
        outputs = [f"--output=result{n}.npy" for n in range(len(names))]
        run_tool([find_tool("fovea-run"), "case.mlir", *command(case),
                  "--seeds=2", *inputs, *outputs], cwd=at)
        return {name: from_numpy(np.load(folder / f"result{n}.npy"), dtype)
                for n, (name, dtype) in enumerate(zip(names, dtypes))}


# Comparing.

def compare(case, reference, actual):
    outcome = Outcome("passed")
    for name, expected in reference.values.items():
        bound, dtype = reference.bounds[name], reference.dtypes[name]
        got = actual[name]
        if got.dtype != TORCH[dtype] or got.shape != expected.shape:
            return Outcome("wrong", f"{name}: {got.dtype} of shape "
                           f"{tuple(got.shape)}, expected {dtype} of shape "
                           f"{tuple(expected.shape)}")
        if not got.numel():
            continue
        got = got.double()
        same = (got == expected) | (got.isnan() & expected.isnan())
        # Results that may overflow, or are unknown, are not compared.
        open_ = (expected.abs() + bound > approx.LARGEST[dtype]) \
            & expected.isfinite()
        error = torch.where(same | open_, 0.0, (got - expected).abs())
        error = torch.where(error.isnan(), torch.inf, error)
        ratio = torch.where(error > 0, error / bound.clamp_min(1e-300), 0.0)
        worst = ratio.max().item()
        outcome.ratios[name] = worst
        size = expected[expected.isfinite()].abs()
        if size.numel() and size.max() > 0:
            outcome.widths[name] = (bound.median() / size.max()).item()
        if worst > 1:
            at = np.unravel_index(int(ratio.argmax()), ratio.shape)
            wrong = int((ratio > 1).sum())
            outcome.kind = "wrong"
            outcome.message += (
                f"{name}: {wrong} of {ratio.numel()} elements are wrong, at "
                f"{tuple(map(int, at))} by {error[at].item():.3g}: "
                f"{got[at].item():.9g}, expected {expected[at].item():.9g}; "
                f"bound {bound[at].item():.3g}\n")
    return outcome


def is_limit(case, message):
    if ((case.backward_schedule
         or any(getattr(s, "schedule", None) for s in case.program.body))
            and re.search(OF_SCHEDULES, message)):
        return True
    return any(re.search(pattern, message) and case.target in targets
               for pattern, targets, _ in LIMITS)


def refuse(case, error):
    if error.kind == "refused" and is_limit(case, str(error)):
        return Outcome("limit", str(error))
    return Outcome(error.kind, str(error))


def check(case, change=None):
    """The outcome of a case. `change` is given what came, to alter it: how the
    fuzzer is tested itself."""
    try:
        if case.compile_only:
            compile_only(case)
            return Outcome("passed")
        operands = make_operands(case)
        cotangents = make_cotangents(case)
        reference = make_reference(case, operands, cotangents)
    except AssertionError as error:
        return Outcome("fuzzer", str(error))
    except Wrong as error:
        return refuse(case, error)
    try:
        actual = run(case, operands, cotangents)
    except Wrong as error:
        return refuse(case, error)
    if change:
        change(actual)
    return compare(case, reference, actual)

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fuzzer finds what is planted, its bounds hold for another machine that
rounds, and some fixed cases pass on the host and in the simulation."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import fovea
import pytest

torch = pytest.importorskip("torch")

from fuzz import approx, check, main  # noqa: E402
from fuzz.approx import TORCH  # noqa: E402
from fuzz.attend import Attention  # noqa: E402
from fuzz.check import (Outcome, compare, make_cotangents, make_operands,
                        make_reference)  # noqa: E402
from fuzz.expressions import Node  # noqa: E402
from fuzz.generate import STRATEGIES, Case, generate  # noqa: E402
from fuzz.graph import (FLOATS, Elementwise, Norm, Operand, Program,
                        Residual, Scale)  # noqa: E402
from fuzz.pool import Pool  # noqa: E402
from fuzz.shrink import shrink  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """More are slower than one at these sizes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def cases(count, wanted, seed=11):
    """The first cases that have a property."""
    found = []
    index = 0
    while len(found) < count:
        case = generate(seed, index)
        if wanted(case):
            found.append(case)
        index += 1
    return found


def is_plain(case):
    """With elements, and without what PyTorch rounds in another way."""
    return (case.mode == "plain" and 0 not in case.program.sizes.values()
            and all(t.dtype == "f32" for t in case.program.operands
                    if t.dtype in FLOATS))


def compute(case, dtype):
    """Results and gradients by PyTorch in a type."""
    program = case.program
    operands, cotangents = make_operands(case), make_cotangents(case)
    values = {n: x.to(dtype) if x.is_floating_point() else
              (x.long() if x.dtype != torch.bool else x)
              for n, x in operands.items()}
    if case.gradients:
        for name in program.variables:
            values[name].requires_grad_()
    found = program.evaluate(values)
    actual = {n: found[n].detach().to(TORCH[program.tensors[n].dtype])
              for n in program.results}
    if case.gradients:
        live = [n for n in program.results if found[n].requires_grad]
        gradients = torch.autograd.grad(
            [found[n] for n in live], [values[n] for n in program.variables],
            [cotangents[n].to(found[n].dtype) for n in live],
            allow_unused=True)
        for name, gradient in zip(program.variables, gradients):
            if gradient is None:
                gradient = torch.zeros(program.shape(name))
            actual[f"gradient of {name}"] = gradient.to(
                TORCH[program.tensors[name].dtype])
    return make_reference(case, operands, cotangents), actual


def test_cases_are_the_same_again():
    for index in range(40):
        one, two = (generate(3, index) for _ in range(2))
        assert one.program.text == two.program.text
        assert [vars(t) for t in one.program.operands] == [
            vars(t) for t in two.program.operands]
        options = [{n: v for n, v in vars(c).items() if n != "program"}
                   for c in (one, two)]
        assert options[0] == options[1]
        for name, value in make_operands(one).items():
            other = make_operands(two)[name]
            assert value.equal(other) or value.isnan().any()
    assert generate(3, 1).program.text != generate(4, 1).program.text


def test_schedules_are_all_that_differs():
    """Attention ops have them, of every kind, and what a schedule cannot have is
    no failure, if a case has schedules."""
    written = []
    for index in range(120):
        plain = generate(3, index, "sm_90a").program.text
        case = generate(3, index, "sm_90a", schedules=True)
        text = case.program.text
        written += re.findall(r"#attn.schedule<[^>]*>", text)
        assert re.sub(r" \{schedule = #attn.schedule<[^>]*>\}", "", text) == plain
        has_schedule = "#attn.schedule" in text
        assert check.is_limit(case, "has a schedule whose tile") == has_schedule
        assert not check.is_limit(case, "something else")
    for part in ("stale", "descending", "persistent", "shared", "dealt",
                 "alternating", "in_turn", "tiled", "split",
                 "cluster"):
        assert any(part in schedule for schedule in written), part


def test_schedules_of_gradients():
    """Backward passes that compute probabilities again have one, whatever their
    regions, and else the text is that of the gradients. Shares divide the heads of a
    group, where there is one."""
    written = divided = 0
    for index in range(100):
        case = generate(3, index, "sm_90a", simulate=True, gradients="yes",
                        schedules=True)
        if not case.backward_schedule:
            continue
        text = check.get_text(case)
        start = case.backward_schedule.partition(", gradients")[0].rstrip(">")
        attribute = re.compile(re.escape(f" {{schedule = {start}") + r"[^}]*}")
        passes = text.split("attn.attention_backward")[1:]
        for each in passes:
            has_statistics = "statistics(" in each.split("\n    return")[0]
            assert bool(attribute.search(each)) == has_statistics
        for found in attribute.finditer(text):
            written += 1
            if shares := re.search(r"shares = (\w+)>>}$", found[0]):
                heads, kv_heads = (int(shape.split("x")[1]) for shape in re.findall(
                    r"tensor<([^>]*)>", text[found.end():])[:2])
                assert heads // kv_heads % int(shares[1]) == 0
                divided += 1
        case.backward_schedule = None
        assert attribute.sub("", text) == check.differentiated(case)
    assert divided >= 3
    assert written >= 10


_DIGEST = """
import hashlib
from fuzz.check import make_operands, to_numpy
from fuzz.generate import generate
digest = hashlib.sha256()
for index in range(120):
    case = generate(3, index)
    digest.update(case.program.text.encode())
    for value in make_operands(case).values():
        digest.update(to_numpy(value).tobytes())
print(digest.hexdigest())
"""


def test_cases_are_the_same_in_other_processes():
    """Where strings have other hashes, and sets another order."""
    folder = str(pathlib.Path(check.__file__).parents[1])
    digests = {subprocess.run(
        [sys.executable, "-c", _DIGEST], text=True, check=True,
        stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=folder,
                                         PYTHONHASHSEED=seed)).stdout
        for seed in "123"}
    assert len(digests) == 1


def test_cases_are_of_all_kinds():
    """Every option and form comes up, and gradients as they are asked for."""
    found = [generate(5, index) for index in range(300)]
    for name in ("gradients", "strategy", "recompute", "textbook", "partition",
                 "deterministic", "arch", "mode"):
        assert len({getattr(case, name) for case in found}) > 1, name
    assert set(STRATEGIES) == set(fovea.STRATEGIES)
    text = "".join(case.program.text for case in found)
    for op in ("attn.attention", "attn.scores", "attn.mask", "attn.modify",
               "attn.softmax", "attn.dropout", "attn.log_sum_exp",
               "attn.values", "attn.layer_norm", "attn.rms_norm", "attn.rope",
               "attn.residual_add", "attn.scale", "attn.elementwise", "scf.for",
               "linalg.generic", "linalg.softmax", "math.tanh",
               "tensor.extract", "arith.index_cast"):
        assert op in text, op
    for wanted in ("yes", "no"):
        kinds = {case.gradients for case in
                 (generate(5, index, gradients=wanted) for index in range(20))
                 if case.mode == "plain"}
        assert kinds == {wanted == "yes"}


def test_bounds_hold_for_pytorch_and_are_close():
    """PyTorch in f32 stays within the bounds, forward and backward, and not
    further than some hundredfold: wider ones would hide mistakes."""
    ratios = []
    for case in cases(40, lambda c: is_plain(c) and c.gradients):
        outcome = compare(case, *compute(case, torch.float32))
        assert outcome.kind == "passed", (case.index, outcome.message)
        ratios += [r for n, r in outcome.ratios.items() if n in
                   case.program.results and r > 0]
    ratios.sort()
    assert ratios[len(ratios) // 2] > 1e-3
    assert ratios[-1] > 0.1


@pytest.mark.parametrize("dtype", FLOATS)
def test_wrong_elements_are_seen(dtype):
    """One element of a result or gradient that is off by a small part of the
    largest is found, in most cases: 16 bits hide some."""
    part = {"f64": 1e-9, "f32": 3e-3, "f16": 0.1, "bf16": 0.3}[dtype]
    seen = all_ = 0
    for case in cases(12, lambda c: c.mode == "plain" and c.gradients and len(
            c.program.body) == 1 and all(
                t.dtype == dtype for t in c.program.operands
                if t.dtype in FLOATS)):
        operands, cotangents = make_operands(case), make_cotangents(case)
        reference = make_reference(case, operands, cotangents)
        exact = {n: v.to(TORCH[reference.dtypes[n]])
                 for n, v in reference.values.items()}
        assert compare(case, reference, exact).kind == "passed"
        for name, value in exact.items():
            finite = value[value.isfinite()].abs().double()
            if not finite.numel() or finite.max() < 1e-3:
                continue
            at = int(value.double().nan_to_num(0, 0, 0).abs().argmax())
            for change in (part * finite.max().item(), float("nan")):
                bad = value.clone(memory_format=torch.contiguous_format)
                bad.view(-1)[at] += change
                outcome = compare(case, reference, {**exact, name: bad})
                assert change == change or outcome.kind == "wrong"
                seen += outcome.kind == "wrong"
                all_ += 1
    assert all_ > 20 and seen >= 0.8 * all_, (seen, all_)


def test_wrong_references_are_seen(monkeypatch):
    """An addition that subtracts, in the reference alone."""
    def evaluate(self, program, values):
        values[self.out] = values[self.x] - values[self.y]

    monkeypatch.setattr(Residual, "evaluate", evaluate)
    for case in cases(3, lambda c: any(
            isinstance(s, Residual) and s.out in c.program.results
            and s.y in [t.name for t in c.program.operands]
            for s in c.program.body)
            and 0 not in c.program.sizes.values()):
        assert check.check(case).kind == "fuzzer"


def test_absent_keys_hold_nan_and_do_not_matter():
    """NaN behind lengths and before starts must not come through; in a value
    that is masked in another way it may."""
    planted = opened = 0
    for case in cases(40, lambda c: c.mode == "nan" and 0 not in
                      c.program.sizes.values() and c.program.body[0].k
                      != c.program.body[0].q):
        program, a = case.program, case.program.body[0]
        operands = make_operands(case)
        shape = (*operands[a.q].shape[:3], operands[a.k].shape[2])
        heads = operands[a.k].shape[1]
        absent = a.absent(program, check.plain(operands), shape, heads)
        absent = absent.repeat_interleave(shape[1] // heads, 1)
        keep, _ = a.keep(program, check.plain(operands), shape)
        assert not bool((keep & absent[:, :, None]).any())
        bad = operands[a.v].isnan().repeat_interleave(
            shape[1] // operands[a.v].shape[1], 1)
        known = (bad & ~absent[..., None]).any(2, keepdim=True)
        reference = make_reference(case, operands, make_cotangents(case))
        expected, bound = (x[a.out] for x in (reference.values,
                                              reference.bounds))
        free = expected.isfinite() & ~known
        assert bool(bound[free].isfinite().all())
        opened += int(bound.isinf().sum())
        hidden = (bad & absent[..., None]).any(2, keepdim=True) & free
        if not bool(hidden.any()):
            continue
        planted += 1
        exact = {n: v.to(TORCH[reference.dtypes[n]])
                 for n, v in reference.values.items()}
        assert compare(case, reference, exact).kind == "passed"
        exact[a.out] = exact[a.out].masked_fill(hidden, torch.nan)
        assert compare(case, reference, exact).kind == "wrong"
    assert planted > 8 and opened > 0, (planted, opened)


def test_nan_is_in_all_that_is_expanded():
    """Where one batch stands for all, they hold the same."""
    planted = 0
    for case in (generate(101, index) for index in (2999, 4188, 6580)):
        operands = make_operands(case)
        for tensor in case.program.operands:
            value = operands[tensor.name]
            if tensor.layout == "expand" and value.shape[0] > 1:
                planted += bool(value.isnan().any())
                whole = value[:1].expand(value.shape)
                assert bool(((value == whole) | (
                    value.isnan() & whole.isnan())).all())
    assert planted


@pytest.mark.parametrize("index", [
    pytest.param(4840, id="the exact gradient is 0"),
    pytest.param(7430, id="some errors may be anything"),
    pytest.param(5376, id="importers' rows without a key")])
def test_bounds_hold_for_what_once_was_out_of_them(index):
    outcome = check.check(generate(101, index))
    assert outcome.kind == "passed", outcome.message


@pytest.fixture
def flushed():
    """Numbers of f32 that are not normal are 0, as on a GPU."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush numbers that are not normal")
    yield
    torch.set_flush_denormal(False)


def test_bounds_hold_for_flushed_probabilities(flushed):
    """The gradient of a bias is p D: p = 1.1e-38 is 0, and with it p D, although
    with D = 14 the product is normal."""
    case = generate(505, 4185, "sm_90a")
    reference, actual = compute(case, torch.float32)
    name = "gradient of bias_0"
    gone = (actual[name] == 0) & (reference.values[name].abs()
                                  > approx.least("f32"))
    assert bool(gone.any())
    outcome = compare(case, reference, actual)
    assert outcome.kind == "passed", outcome.message


def test_bounds_hold_for_products_that_are_lost(flushed):
    """Two small factors whose product is 0 lose what a third, large one would
    make of it: in products, quotients, sums, functions and products of matrices,
    by `least` each and not by a part of what they give."""
    generator = torch.Generator().manual_seed(1)

    def draw(low, high):
        size = 10.0 ** (low + (high - low) * torch.rand(64, generator=generator))
        return (size * (torch.rand(64, generator=generator) - 0.5).sign()).float()

    u = approx.unit("f32")
    a, b = draw(-22, -18), draw(-20, -17)
    c, large = draw(-37, -36), draw(20, 22)
    near = 1.02 * c
    of = lambda x: approx.Approx.exact(x.double())
    row = lambda x: x.reshape(8, 8)
    pairs = {
        "mul": (a * b, approx.mul(of(a), of(b), u)),
        "divide": (a / large, approx.divide(of(a), of(large), u)),
        "sub": (c - near, approx.sub(of(c), of(near), u)),
        "function": (torch.exp(-88 - a.abs() * 1e20), approx.function(
            of(-88 - a.abs() * 1e20), u, approx.FUNCTION * u, torch.exp,
            torch.exp)),
        "total": (torch.stack((c, -near)).sum(0), approx.total(
            of(torch.stack((c, -near))), (0,), u)),
        "matmul": (row(a) @ row(b), approx.matmul(of(row(a)), of(row(b)), u)),
    }
    lost = 0
    for name, (got, tracked) in pairs.items():
        error = (got.double() - tracked.value).abs()
        assert bool((error <= tracked.error).all()), name
        lost += int(((got == 0) & (tracked.value != 0)).sum())
    assert lost > 100


def build(operands, results, statements):
    program = Program({}, set(), operands, [], results)
    for statement in statements:
        statement.declare(program)
        program.body.append(statement)
    return program


def test_gradients_beyond_the_largest_number_are_not_known():
    """That of an f16 tensor on the way may be infinite, where those before it
    would be of moderate size."""
    case = Case(1, 0, build([Operand("x", (1, 1, 2, 4), "f16")], ["y"], [
        Scale("t", "x", 2.0**-10), Norm("y", "t", None, None, 1e-2, False)]),
        gradients=True)
    operands, cotangents = make_operands(case), make_cotangents(case)
    cotangents["y"][0, 0, 0] *= 2.0**14
    reference = make_reference(case, operands, cotangents)
    name = "gradient of x"
    assert reference.values[name].abs().max() < 1000
    assert bool(reference.bounds[name][0, 0, 0].isinf().all())
    assert bool(reference.bounds[name][0, 0, 1].isfinite().all())
    actual = check.run(case, operands, cotangents)
    for row, kind in ((0, "passed"), (1, "wrong")):
        assert compare(case, reference, actual).kind == "passed"
        actual[name][0, 0, row] = torch.inf
        assert compare(case, reference, actual).kind == kind


def test_rows_of_infinite_scores_are_not_known():
    """A query that overflows when it is stored may make its row NaN, whatever is
    between the least and the largest value, and with it all gradients."""
    kinds = [Operand(n, (1, 1, 2, 4), "f16") for n in "qkv"]
    case = Case(1, 0, build(kinds, ["o", "l"], [
        Scale("t", "q", 100.0),
        Attention("o", "t", "k", "v", 0.01, "f16", lse="l")]), gradients=True)
    operands, cotangents = make_operands(case), make_cotangents(case)
    operands["q"][0, 0, 0] = 1000
    bounds = make_reference(case, operands, cotangents).bounds
    for name in ("o", "l", "gradient of q"):
        assert bool(bounds[name][0, 0, 0].isinf().all()), name
        assert bool(bounds[name][0, 0, 1].isfinite().all()), name
    for name in ("k", "v"):
        assert bool(bounds[f"gradient of {name}"].isinf().all())


@pytest.mark.parametrize("target, outcome", [("sm_90a", "passed"),
                                             ("host", "wrong")])
def test_gpus_read_small_numbers_as_zero(target, outcome):
    x0, x1 = (Node("f", "leaf", (), n) for n in ("x0", "x1"))
    case = Case(1, 0, build(
        [Operand("x", (8,), "f32", ("normal", 1e-39)),
         Operand("z", (8,), "f32", ("normal", 1e30))], ["y"],
        [Elementwise("y", ("x", "z"), Node("f", "mulf", (x0, x1)), "f32",
                     "f32")]), target=target)
    operands, cotangents = make_operands(case), make_cotangents(case)
    reference = make_reference(case, operands, cotangents)
    assert reference.values["y"].abs().max() > 1e-10
    actual = {"y": torch.where(operands["x"].abs() < approx.least("f32"), 0.0,
                               operands["x"] * operands["z"])}
    assert compare(case, reference, actual).kind == outcome


def test_bounds_hold_for_stored_probabilities():
    """Which in f16 are multiples of 6e-8, with gradients of scores of 10."""
    case = generate(779, 904, "sm_90a", simulate=True, gradients="yes")
    case.strategy, case.recompute = "unfused", "never"
    outcome = check.check(case)
    assert outcome.kind == "passed", outcome.message


def spoil(actual):
    next(iter(actual.values())).view(-1)[0] += 1


def die(_):
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(_):
    time.sleep(100)


def small():
    return cases(1, lambda c: is_plain(c) and len(c.program.body) == 1
                 and max(c.program.sizes.values()) < 40)[0]


@pytest.mark.parametrize("change, kind", [
    (None, "passed"), (spoil, "wrong"), (die, "crash"), (hang, "hang")])
def test_workers_report(change, kind):
    """And go on: the second case comes after the first has failed."""
    case = small()
    with Pool(1, 6 if change is hang else 60, change) as pool:
        outcomes = dict(pool.run([(0, case), (1, case)]))
    assert [outcomes[n].kind for n in (0, 1)] == [kind, kind]


def test_refused_graphs_are_failures():
    case = small()
    text = case.program.text.replace("attn.", "nonsense.")
    text = text.replace("linalg.", "nonsense.")
    case.program.__class__ = type(
        "Broken", (case.program.__class__,), {"text": text})
    outcome = check.check(case)
    assert outcome.kind == "refused" and "nonsense" in outcome.message


def test_failures_leave_reproducers(tmp_path):
    """The folder of a failure has the graph, operands and expected results, and
    shrinking finds a smaller graph that fails alike."""
    case = cases(1, lambda c: is_plain(c) and len(c.program.body) > 2
                 and c.program.sizes["Sq"] > 20)[0]
    arguments = main.parse([])
    main.save(case, Outcome("wrong", "spoiled"), tmp_path, arguments)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"case.mlir", "case.pickle", "failure.txt"} <= names
    assert {f"{t.name}.npy" for t in case.program.operands
            if not t.scalar} <= names
    assert (tmp_path / "case.mlir").read_text() == case.program.text
    assert any(name.startswith("expected-") for name in names)

    def fails(smaller):
        has = smaller.program.sizes["Sq"] > 3
        return Outcome("wrong" if has else "passed")

    least, outcome = shrink(case, "wrong", fails, 200)
    assert outcome.kind == "wrong"
    assert least.program.sizes["Sq"] == 4
    assert len(least.program.body) < len(case.program.body)


@pytest.mark.parametrize("options", [
    ["--cases", "80"],
    ["--cases", "15", "--target", "sm_90a", "--simulate"],
    ["--cases", "12", "--target", "sm_90a", "--simulate", "--schedules"],
    ["--cases", "15", "--target", "sm_80", "--simulate"],
    ["--cases", "15", "--target", "sm_90a", "--compile"]], ids=" ".join)
def test_fixed_cases(options, tmp_path, capsys):
    """A minute and a half on two cores; `scripts/fuzz` has no end of others."""
    status = main.main([*options, "--seed", "1", "--jobs", "2", "--shrink", "0",
                        "--out", str(tmp_path)])
    output = capsys.readouterr().out
    assert status == 0, output
    assert output.endswith(f"\n{options[1]} passed, 0 failed\n")


def test_bounds_hold_for_tanh_of_gpus(tmp_path, capsys):
    """Scores of 16-bit types have the machine's instruction, whose error is no
    multiple of a type's unit."""
    options = ["--seed", "1818", "--start", "9", "--cases", "1", "--target", "sm_90a",
               "--simulate", "--shrink", "0", "--out", str(tmp_path)]
    status = main.main(options)
    assert status == 0, capsys.readouterr().out
    text = generate(1818, 9, "sm_90a", simulate=True).program.text
    assert "math.tanh" in text and "bf16" in text

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package's interface: kinds of arrays, levels, errors, threads."""

import ctypes
import gc
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import fovea
from attention import Case, check, from_bf16, to_bf16


@pytest.fixture(scope="module")
def attend():
    return fovea.compile(Case(mask="causal").text)


@pytest.fixture(scope="module")
def operands():
    return Case(mask="causal").make_operands(2, 37, 37)


def test_signature(attend):
    assert attend.name == "attend"
    assert [operand.name for operand in attend.operands] == ["q", "k", "v"]
    assert attend.operands[1].shape == (None, 2, None, 32)
    assert attend.results[0].dtype == "f32"
    assert repr(attend) == (
        "<fovea.Function @attend(f32 tensor of shape ?x4x?x32, f32 tensor of "
        "shape ?x2x?x32, f32 tensor of shape ?x2x?x32) -> (f32 tensor of shape "
        "?x4x?x32)>")


def test_levels(attend):
    assert "attn.softmax" in attend.mlir("attn")
    assert "attn.attention" in attend.mlir("fused")
    assert attend.mlir() == attend.mlir("fused")
    assert "scf.forall" in attend.mlir("tiled")
    assert "llvm.func @attend" in attend.mlir("llvm")
    assert "_fovea_packed_attend" in attend.asm
    assert attend.obj.startswith(b"\x7fELF")
    unfused = fovea.compile(Case().text, strategy="unfused")
    assert "attn.softmax" in unfused.mlir("attn")
    with pytest.raises(fovea.Error, match="unknown level 'ptx'; expected attn"):
        attend.mlir("ptx")


def test_report(attend, operands):
    report = attend.report(*operands)
    strategies = report["strategies"]
    assert tuple(reversed(strategies)) == fovea.STRATEGIES
    assert strategies["fused"]["bytes"] < strategies["unfused"]["bytes"]
    assert strategies["fused"]["measured_seconds"] > 0
    assert "fused against unfused" in str(report)
    with pytest.raises(fovea.Error, match="dynamic sizes; give it operands"):
        attend.report()
    static = fovea.compile(Case(static=(1, 8, 8)).text)
    assert static.report()["strategies"]["fused"]["flops"] > 0


@pytest.mark.parametrize("place", ["compile", "include/fovea-c/fovea.h"])
def test_strategies_are_described(place):
    """A report has those that the library knows, and equals fovea.STRATEGIES
    (test_report); what people read lists the same."""
    text = fovea.compile.__doc__ if place == "compile" else (
        pathlib.Path(__file__).parents[2] / place).read_text()
    named = re.findall(r'"((?:two-|three-|un)?(?:pass|fused))"', text)
    assert sorted(set(named)) == sorted(fovea.STRATEGIES)


def test_operands_that_are_known_ahead(operands):
    """Tensors, shapes, numbers, and what no call may have."""
    text = Case(mask="causal").text
    for known in (operands, [x.shape for x in operands], operands[:1], [1, 2.5, ()]):
        attend = fovea.compile(text, operands=known)
        assert np.array_equal(attend(*operands), fovea.compile(text)(*operands))


def test_results_own_their_memory(attend, operands):
    result = attend(*operands)
    view = result[0, 0]
    expected = view.copy()
    del result
    gc.collect()
    for _ in range(10):
        attend(*operands)
    np.testing.assert_array_equal(view, expected)
    assert view.base is not None
    view[:] = 0  # and may be written


def test_operands_stay_as_they_are(attend, operands):
    copies = [operand.copy() for operand in operands]
    attend(*operands)
    for operand, copy in zip(operands, copies):
        np.testing.assert_array_equal(operand, copy)


def test_several_functions_and_results():
    text = """
      func.func @first(%x: tensor<?xf32>) -> tensor<?xf32> {
        return %x : tensor<?xf32>
      }
      func.func @both(%x: tensor<?xf32>, %n: i64) -> (tensor<?xf32>, tensor<2xi64>) {
        %y = attn.scale %x by 3.0 : tensor<?xf32>
        %t = tensor.from_elements %n, %n : tensor<2xi64>
        return %y, %t : tensor<?xf32>, tensor<2xi64>
      }
      func.func @none() -> tensor<2x2xf64> {
        %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
        return %c : tensor<2x2xf64>
      }
      func.func @twice(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
        %y = attn.scale %x by 2.0 : tensor<3xf32>
        return %y, %y : tensor<3xf32>, tensor<3xf32>
      }"""
    with pytest.raises(fovea.Error, match="name one of @first, @both, @none"):
        fovea.compile(text)
    with pytest.raises(fovea.Error, match="no public function @third"):
        fovea.compile(text, entry="third")
    x = np.arange(3, dtype=np.float32)
    y = fovea.compile(text, entry="first")(x)
    np.testing.assert_array_equal(y, x)
    assert not np.shares_memory(x, y)
    y, t = fovea.compile(text, entry="both")(x, 2**40)
    np.testing.assert_array_equal(y, 3 * x)
    np.testing.assert_array_equal(t, [2**40, 2**40])
    for _ in range(2):
        np.testing.assert_array_equal(
            fovea.compile(text, entry="none")(), [[1, 2], [3, 4]])
    a, b = fovea.compile(text, entry="twice")(x)
    np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(a, b)


def test_dtypes_of_arrays():
    text = """func.func @f(%a: tensor<?xi32>, %b: tensor<?xi1>, %c: tensor<?xi8>) -> (tensor<?xi32>, tensor<?xi1>, tensor<?xi8>) {
      return %a, %b, %c : tensor<?xi32>, tensor<?xi1>, tensor<?xi8>
    }"""
    f = fovea.compile(text)
    a, b, c = f(np.array([-1, 2], ">i4"), np.array([True, False, True]),
                np.array([255], np.uint8))
    assert a.dtype == np.int32 and list(a) == [-1, 2]
    assert b.dtype == np.bool_ and list(b) == [True, False, True]
    assert c.dtype == np.int8 and list(c) == [-1]


def test_bf16_as_bits():
    case = Case(dtype="bf16")
    operands = case.make_operands(1, 9, 9)
    result = fovea.compile(case.text)(*operands)
    assert result.dtype == np.uint16
    (expected,), top = case.reference(operands)
    check(result, expected, "bf16", top)


class DLPack:
    """Nothing but the protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_operands(attend, operands):
    expected = attend(*operands)
    result = attend(*map(DLPack, operands))
    np.testing.assert_array_equal(result, expected)


class TestTorch:
    """PyTorch's tensors on the CPU."""

    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16",
                                       "bfloat16"])
    def test_against_its_own_attention(self, torch, dtype):
        name = {"float32": "f32", "float64": "f64", "float16": "f16",
                "bfloat16": "bf16"}[dtype]
        case = Case(dtype=name, heads=4, kv_heads=4, mask="causal")
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 4, 45, 32).to(getattr(torch, dtype))
                   for _ in range(3))
        result = fovea.compile(case.text)(q, k, v)
        assert isinstance(result, torch.Tensor) and result.dtype == q.dtype
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.double(), k.double(), v.double(), is_causal=True)
        bound = {"f32": 2e-5, "f64": 1e-12, "f16": 1e-3, "bf16": 8e-3}[name]
        assert (result.double() - expected).abs().max() < bound * 4

    def test_views_are_used_in_place(self, torch, attend):
        q = torch.randn(2, 37, 4, 32).transpose(1, 2)
        k = torch.randn(2, 50, 2, 64)[..., :32].transpose(1, 2)
        v = torch.randn(2, 2, 32, 50).transpose(2, 3)  # copied
        result = attend(q, k, v)
        expected = attend(q.contiguous(), k.contiguous(), v.contiguous())
        assert torch.equal(result, expected)

    def test_results_own_their_memory(self, torch, attend):
        result = attend(torch.randn(1, 4, 5, 32), torch.randn(1, 2, 5, 32),
                        torch.randn(1, 2, 5, 32))
        row, copy = result[0, 0], result[0, 0].clone()
        del result
        gc.collect()
        assert torch.equal(row, copy)

    def test_empty(self, torch, attend):
        result = attend(torch.randn(1, 4, 0, 32), torch.randn(1, 2, 5, 32),
                        torch.randn(1, 2, 5, 32))
        assert result.shape == (1, 4, 0, 32)

    def test_errors(self, torch, attend):
        q, k = torch.randn(1, 4, 5, 32), torch.randn(1, 2, 5, 32)
        with pytest.raises(fovea.Error, match=r"operand 0 \(%q\) of @attend: "
                           "the tensor requires a gradient"):
            attend(q.requires_grad_(), k, k)
        with torch.no_grad():
            attend(q, k, k)
        q = q.detach()
        with pytest.raises(fovea.Error, match="expected a dense tensor on the "
                           "CPU, got a torch.strided one on meta"):
            attend(q.to("meta"), k, k)
        with pytest.raises(fovea.Error, match="expected f32 tensor of shape "
                           r"\?x2x\?x32, got f16 tensor of shape 1x2x5x32"):
            attend(q, k.half(), k)
        with pytest.raises(fovea.Error, match="dtype torch.complex64 is not"):
            attend(q.to(torch.complex64), k, k)


class TestErrors:
    """One clear error that names the culprit."""

    @pytest.mark.parametrize("text, message", [
        ("func.func", "<text>:1:10: error: custom op 'func.func' expected"),
        ("func.func @f() { return %x : f32 }",
         "<text>:1:25: error: use of undeclared SSA value name"),
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
         "  %y = attn.dropout %x, 1.5 seed(%x, %x) : tensor<4xf32>",
         "<text>:2:"),
        ("", "no public function"),
        ("func.func @f(%x: memref<4xf32>) { return }",
         "operand 0 of @f is memref<4xf32>; only tensors and numbers"),
        ("\x00\xff", "<text>:1:2: error: unexpected character"),
    ])
    def test_text(self, text, message):
        with pytest.raises(fovea.Error) as error:
            fovea.compile(text)
        assert message in str(error.value)

    @pytest.mark.parametrize("options, message", [
        ({"target": "tpu"}, "unknown target 'tpu'; expected host"),
        ({"strategy": "fast"},
         "unknown strategy 'fast'; expected unfused, three-pass, two-pass or "
         "fused"),
        ({"arch": "mmx"},
         "unknown arch 'mmx'; expected native, amx, avx512_bf16, avx512, "
         "avx2 or generic"),
        ({"cpu": "abacus"}, "unknown processor 'abacus'"),
        ({"opt_level": 4}, "opt_level is 4; expected 0 to 3"),
        ({"operands": [1, np.zeros((1,) * 9)]},
         "operand 1 has rank 9; expected at most 8"),
    ])
    def test_options(self, options, message):
        with pytest.raises(fovea.Error) as error:
            fovea.compile(Case().text, **options)
        assert message in str(error.value)

    def test_texts(self):
        for function in (fovea.compile, fovea.differentiate,
                         fovea.differentiable):
            with pytest.raises(TypeError, match="expected a module's text as a "
                                                "str, got bytes"):
                function(b"module {}")

    def test_sparse_tensors(self, attend, operands):
        torch = pytest.importorskip("torch")
        q, k, v = map(torch.from_numpy, operands)
        with pytest.raises(fovea.Error) as error:
            attend(q, k.to_sparse(), v)
        assert str(error.value) == (
            "operand 1 (%k) of @attend: expected a dense tensor on the CPU, "
            "got a torch.sparse_coo one on cpu")

    def test_operands(self, attend, operands):
        q, k, v = operands
        for wrong, message in (
            ((q, k), "@attend: expected 3 operands, got 2"),
            ((q, k, v, v), "@attend: expected 3 operands, got 4"),
            ((q, k.astype(np.float64), v),
             "operand 1 (%k) of @attend: expected f32 tensor of shape "
             "?x2x?x32, got f64 tensor of shape 2x2x37x32"),
            ((q[0], k, v),
             "operand 0 (%q) of @attend: expected f32 tensor of shape "
             "?x4x?x32, got a tensor of rank 3"),
            ((q[..., :16], k, v),
             "operand 0 (%q) of @attend: expected f32 tensor of shape "
             "?x4x?x32, got f32 tensor of shape 2x4x37x16"),
            ((q, k, v[:, :, :30]),
             "dimension 2 of operand 1 (%k) of @attend is 37, expected 30, "
             "which is dimension 2 of operand 2 (%v) of @attend"),
            ((q, k[:1], v[:1]),
             "dimension 0 of operand 0 (%q) of @attend is 2, expected 1"),
            ((q, None, v), "operand 1 (%k) of @attend: expected a NumPy array"),
            ((q, k, [1.0]), "operand 2 (%v) of @attend: expected a NumPy"),
            ((q.astype(complex), k, v), "dtype complex128 is not supported"),
        ):
            with pytest.raises(fovea.Error) as error:
                attend(*wrong)
            assert message in str(error.value)

    def test_tables_that_are_too_short(self):
        case = Case(modification="alibi")
        operands = case.make_operands(1, 8, 8)
        f = fovea.compile(case.text)
        f(*operands)
        operands[3] = operands[3][:3]
        with pytest.raises(fovea.Error, match=r"dimension 0 of operand 3 "
                           r"\(%slopes\) of @attend is 3, expected at least 4"):
            f(*operands)
        case = Case(mask="documents")
        operands = case.make_operands(2, 8, 8)
        operands[3] = operands[3][:, :7]
        with pytest.raises(fovea.Error, match="is 7, expected at least 8"):
            fovea.compile(case.text)(*operands)

    def test_heads_that_do_not_divide(self):
        text = Case().text.replace("x4x", "x?x").replace("x2x", "x?x")
        f = fovea.compile(text)
        case = Case(heads=3, kv_heads=2)
        with pytest.raises(fovea.Error, match="dimension 1 of operand 0 .* is "
                           "3, expected a multiple of 2"):
            f(*case.make_operands(1, 4, 4))

    def test_numbers(self):
        f = fovea.compile("func.func @f(%n: i8, %x: f32) -> tensor<1xf32> {\n"
                          "  %t = tensor.from_elements %x : tensor<1xf32>\n"
                          "  return %t : tensor<1xf32>\n}")
        assert f(-3, 1.5)[0] == 1.5
        assert f(np.int64(3), np.float64(2))[0] == 2
        for wrong in ((300, 1.0), (1.5, 1.0), ("x", 1.0)):
            with pytest.raises(fovea.Error, match=r"operand 0 \(%n\) of @f: "
                               "expected a number of type i8, got"):
                f(*wrong)

    def test_numbers_of_bf16(self):
        """Rounded once to the nearest, ties to even; results are bits."""
        f = fovea.compile("func.func @f(%x: bf16) -> tensor<1xbf16> {\n"
                          "  %t = tensor.from_elements %x : tensor<1xbf16>\n"
                          "  return %t : tensor<1xbf16>\n}")
        for number, bits in ((1, 0x3F80), (-2.5, 0xC020), (1 + 2**-8, 0x3F80),
                             (1 + 2**-8 + 2**-40, 0x3F81), (1e39, 0x7F80),
                             (np.float64(1 + 3 * 2**-8), 0x3F82),
                             (float("-inf"), 0xFF80), (float("nan"), 0x7FC0)):
            assert f(number)[0] == bits, number
        with pytest.raises(fovea.Error, match="expected a number of type bf16"):
            f("x")

    @pytest.mark.skipif(not sys.platform.startswith("linux") or
                        hasattr(ctypes.CDLL(None), "__asan_init"),
                        reason="needs a build without AddressSanitizer, "
                        "which needs the whole address space")
    def test_out_of_memory(self):
        """In a process that may have 3 GB: the unfused scores need 4."""
        code = f"""
import resource, numpy as np, fovea
f = fovea.compile('''{Case(heads=1, kv_heads=1).text}''', strategy="unfused")
x = np.zeros((1, 1, 32768, 32), np.float32)
resource.setrlimit(resource.RLIMIT_AS, ({3 << 30}, {3 << 30}))
for _ in range(2):
    try:
        f(x, x, x)
    except fovea.Error as error:
        print(error)
x = x[:, :, :64]
print(f(x, x, x).shape)
"""
        here = os.path.dirname(__file__)
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True,
            env={**os.environ, "FOVEA_NUM_THREADS": "2",
                 "PYTHONPATH": os.path.join(here, "..")})
        assert result.returncode == 0, result.stderr
        lines = result.stdout.splitlines()
        assert lines[0].startswith("@attend: out of memory: cannot allocate ")
        assert lines == [lines[0], lines[0], "(1, 1, 64, 32)"]


class TestThreads:

    def run(self, work, threads=8):
        errors = []

        def guarded(index):
            try:
                work(index)
            except BaseException as error:  # pylint: disable=broad-except
                errors.append(error)

        workers = [threading.Thread(target=guarded, args=(index,))
                   for index in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if errors:
            raise errors[0]

    def test_one_function_from_many(self, attend):
        case = Case(mask="causal")
        sizes = [(1, 1 + 17 * i, 60) for i in range(8)]
        operands = [case.make_operands(*size, seed=i)
                    for i, size in enumerate(sizes)]
        expected = [case.reference(x) for x in operands]

        def work(index):
            for _ in range(20):
                (output,), top = expected[index]
                check(attend(*operands[index]), output, "f32", top)

        self.run(work)

    def test_compiling_from_many(self):
        case = Case(mask="causal")

        def work(index):
            # Every second thread compiles the same text as another.
            own = Case(mask="causal", dim=16 + 8 * (index // 2))
            operands = own.make_operands(1, 20, 20, seed=index)
            f = fovea.compile(own.text)
            (expected,), top = own.reference(operands)
            check(f(*operands), expected, "f32", top)
            assert "scf.forall" in f.mlir("tiled")

        self.run(work)

    def test_errors_from_many(self, attend, operands):
        q, k, v = operands

        def work(index):
            for _ in range(20):
                if index % 2:
                    attend(q, k, v)
                else:
                    with pytest.raises(fovea.Error, match="expected 30"):
                        attend(q, k, v[:, :, :30])

        self.run(work)

    def test_number_of_threads(self, attend, operands):
        before = fovea.get_num_threads()
        expected = attend(*operands)
        try:
            for threads in (1, 3, 8):
                fovea.set_num_threads(threads)
                assert fovea.get_num_threads() == threads
                np.testing.assert_array_equal(attend(*operands), expected)
        finally:
            fovea.set_num_threads(0)
        assert fovea.get_num_threads() == before

    def test_wrong_numbers_of_threads(self, attend, operands):
        for wrong, kind in ((-1, ValueError), (1 << 40, ValueError),
                            ("2", TypeError), (1.5, TypeError)):
            with pytest.raises(kind):
                fovea.set_num_threads(wrong)
        with pytest.raises(ValueError, match="0 threads or more, got -1"):
            fovea.set_num_threads(-1)

    def test_threads_of_pytorch(self):
        """Where PyTorch has OpenMP's threads, loops run on these, and as many
        as PyTorch uses."""
        torch = pytest.importorskip("torch")
        if "backend: OpenMP" not in torch.__config__.parallel_info():
            pytest.skip("needs PyTorch with OpenMP")
        code = f"""
import os
import fovea, torch
f = fovea.compile('''{Case().text}''')
torch.set_num_threads(3)
torch.ones(1 << 20).add_(1)
before = len(os.listdir("/proc/self/task"))
f(torch.ones(2, 4, 300, 32), *[torch.ones(2, 2, 300, 32)] * 2)
print(fovea.get_num_threads(), len(os.listdir("/proc/self/task")) - before)
torch.set_num_threads(2)
print(fovea.get_num_threads())
fovea.set_num_threads(5)
print(fovea.get_num_threads())
"""
        environment = {**os.environ,
                       "PYTHONPATH": os.path.join(os.path.dirname(__file__),
                                                  "..")}
        environment.pop("FOVEA_NUM_THREADS", None)
        result = subprocess.run([sys.executable, "-c", code], text=True,
                                capture_output=True, env=environment)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == ["3 0", "2", "5"]


TABLE = """
func.func @f(%q: tensor<1x1x?x16xf32>, %t: tensor<?xf32>, %ids: tensor<?xi64>) -> tensor<1x1x?x16xf32> {
  %o = attn.attention %q, %q, %q scale(0.25) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %id = tensor.extract %ids[%j] : tensor<?xi64>
    %at = arith.index_cast %id : i64 to index
    %e = tensor.extract %t[%at] : tensor<?xf32>
    %r = arith.addf %x, %e : f32
    attn.yield %r : f32
  } : tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x1x?x16xf32>
  return %o : tensor<1x1x?x16xf32>
}
"""


def test_check_bounds():
    random = np.random.default_rng(0)
    q = random.standard_normal((1, 1, 5, 16)).astype(np.float32)
    table = random.standard_normal(7).astype(np.float32)
    ids = np.arange(5)
    checked = fovea.compile(TABLE, check_bounds=True)
    assert np.array_equal(checked(q, table, ids), fovea.compile(TABLE)(q, table, ids))
    ids[3] = 7
    with pytest.raises(fovea.Error, match=(
            "@f: <text>:7:10: 'tensor.extract' is out of bounds: index 7 of "
            "dimension 0, whose size is 7")):
        checked(q, table, ids)
    # Sizes that do not agree are found before, as always.
    with pytest.raises(fovea.Error, match="operand 2"):
        checked(q, table, ids[:4])


def test_exact_functions():
    """A host's are for f32; its powers of two may be shorter for bf16."""
    random = np.random.default_rng(0)
    q = random.standard_normal((1, 1, 5, 16)).astype(np.float32)
    table = random.standard_normal(7).astype(np.float32)
    ids = np.arange(5)
    text = TABLE.replace("arith.addf %x, %e", "math.tanh %x")
    exact = fovea.compile(text, exact_functions=True)
    assert np.array_equal(exact(q, table, ids), fovea.compile(text)(q, table, ids))
    with pytest.raises(TypeError, match="exact_function"):
        fovea.compile(text, exact_function=True)
    text = """
    func.func @f(%q: tensor<1x1x40x16xbf16>) -> tensor<1x1x40x16xbf16> {
      %o = attn.attention %q, %q, %q scale(0.25)
          : tensor<1x1x40x16xbf16>, tensor<1x1x40x16xbf16>, tensor<1x1x40x16xbf16>
          -> tensor<1x1x40x16xbf16>
      return %o : tensor<1x1x40x16xbf16>
    }"""
    q = from_bf16(to_bf16(random.standard_normal((1, 1, 40, 16))))
    weights = np.exp(q[0, 0].astype(np.float64) @ q[0, 0].T / 4)
    expected = weights @ q[0, 0] / weights.sum(-1, keepdims=True)
    for exact in (True, False):
        attend = fovea.compile(text, exact_functions=exact)
        error = np.abs(from_bf16(attend(to_bf16(q))[0, 0]) - expected).max()
        assert error < 2**-8 * np.abs(expected).max()


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""),
                    reason="needs a build without AddressSanitizer, "
                    "which keeps what is freed")
def test_no_leak(attend, operands):
    """Memory does not grow with calls, failed ones included."""
    q, k, v = (np.repeat(x, 8, axis=2) for x in operands)
    bad = v[:, :, :-1]

    def work():
        for _ in range(50):
            attend(q, k, v)
            with pytest.raises(fovea.Error):
                attend(q, k, bad)

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    work()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # 100 results of 300 kB would be 30 MB.
    assert after - before < 10 << 10


def test_fused_memory_does_not_grow_with_the_scores():
    """16k queries and keys in one head: the scores would be 1 GB."""
    case = Case(heads=1, kv_heads=1, dim=16, value_dim=16, mask="window")
    f = fovea.compile(case.text)
    operands = case.make_operands(1, 16384, 16384)
    f(*(x[:, :, :64] for x in operands))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    f(*operands)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100 << 10


def test_where_the_library_is_found(monkeypatch, tmp_path):
    from fovea import _library

    checkout, installed = tmp_path / "checkout", tmp_path / "site-packages/fovea"
    sources = checkout / "python/fovea"
    for folder in (sources, checkout / "build/lib", installed):
        folder.mkdir(parents=True)
    monkeypatch.setattr(_library, "__file__", str(sources / "_library.py"))
    monkeypatch.setattr(fovea, "__path__", [str(installed), str(sources)])
    monkeypatch.delenv("FOVEA_LIBRARY", raising=False)
    assert _library._find() == "libfovea.so"
    for folder in (installed, checkout / "build/lib", sources):
        (folder / "libfovea.so").touch()
        assert _library._find() == str(folder / "libfovea.so")
    monkeypatch.setenv("FOVEA_LIBRARY", "elsewhere.so")
    assert _library._find() == "elsewhere.so"

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator fovea::attention: PyTorch's checks of operators, fake tensors,
torch.func, torch.compile, and calls below autograd."""

import re
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from fovea import _native, _operator
from fovea._trace import Tracer
from mods import DEVICE, causal_mask, make_qkv, on_device, reference
from test_flex import compare


def compiled(text):
    return fovea.compile(text, "host" if DEVICE == "cpu" else "gpu")


def make_operands(lse="f64", transposed=False, queries=9):
    q, k, v = make_qkv(queries, 12, grad=True)
    if transposed:
        q = q.detach().transpose(1, 2).contiguous().transpose(1, 2)
        q.requires_grad_()
    bias = torch.linspace(-1, 1, 12).requires_grad_()
    ids = torch.arange(12)
    tracer = Tracer(q, k, v)
    tracer.scale_by(0.25)
    tracer.trace(lambda s, b, h, i, j: s + bias[ids[j]], causal_mask)
    text = tracer.write(lse)
    assert tracer.captures[0] is ids and tracer.captures[1] is bias
    return q, k, v, tracer.captures, [], text, False


@pytest.mark.parametrize("transposed", [False, True])
def test_opcheck(transposed):
    operands = make_operands(transposed=transposed)
    results = torch.library.opcheck(torch.ops.fovea.attention.default, operands)
    assert set(results.values()) == {"SUCCESS"}


def test_opcheck_of_the_backward_pass():
    q, k, v, captures, *rest = make_operands()
    with torch.no_grad():
        output, lse = torch.ops.fovea.attention(q, k, v, captures, *rest)
    results = torch.library.opcheck(
        torch.ops.fovea.attention_backward.default,
        (q.detach(), k.detach(), v.detach(), [x.detach() for x in captures], *rest,
         output, lse, torch.randn_like(output), torch.randn_like(lse)))
    assert set(results.values()) == {"SUCCESS"}


def test_gradients_need_the_log_sum_exp():
    output, lse = torch.ops.fovea.attention(*make_operands(lse=None))
    assert lse.numel() == 0
    with pytest.raises(fovea.Error, match="a second result of f64"):
        output.sum().backward()


@pytest.mark.parametrize("swapped", [False, True])
def test_both_passes_are_compiled_at_once(monkeypatch, swapped):
    text = make_operands()[5].replace("0.25", "0.2578125")
    device = torch.device(DEVICE)
    together = threading.Barrier(2)
    texts = {}

    def compile_with_other(text, target, entry, **options):
        together.wait(60)
        texts[entry] = text
        return compile(text, target, entry=entry, **options)

    compile = fovea.compile
    monkeypatch.setattr(fovea, "compile", compile_with_other)
    pair = _operator.get_pair(text, device, False, (), swapped,
                              (0, 1, 2) if swapped else ())
    assert set(texts) == {"attention_forward", "attention_backward"}
    for entry, text in texts.items():
        names = re.findall(r"func.func (?:private )?@(\w+)", text)
        wrapped = [f"{entry}_in_rows"] if swapped else []
        assert names == [entry, *wrapped]
    assert pair.forward.name == "attention_forward"
    assert pair.backward.name == "attention_backward"


@pytest.mark.parametrize("is_native", [True, False])
def test_texts_are_compiled_for_their_calls(monkeypatch, is_native):
    """By the library's kernel, where there is one, and by Python."""
    shapes = []

    def compile_for(text, target, operands, **options):
        shapes.append([tuple(getattr(x, "shape", x)) for x in operands[:3]])
        return compile(text, target, **options)

    compile = fovea.compile
    monkeypatch.setattr(fovea, "compile", compile_for)
    q, k, v, captures, numbers, text, _ = make_operands(lse=None)
    text = text.replace("0.25", "0.2578125" if is_native else "0.265625")
    attend = torch.ops.fovea.attention if is_native else _operator.run_forward
    with torch.no_grad():
        attend(q, k, v, captures, numbers, text, False)
    assert shapes == [[tuple(x.shape) for x in (q, k, v)]]


def test_fake_tensors():
    """Shapes, types and strides without data; nothing is compiled."""
    from torch._subclasses import FakeTensorMode
    before = len(_operator._forwards)
    with FakeTensorMode():
        q = torch.empty(3, 11, 4, 16, dtype=torch.bfloat16).transpose(1, 2)
        k, v = torch.empty(3, 2, 7, 16), torch.empty(3, 2, 7, 24)
        output, lse = fovea.flex_attention(q, k, v, enable_gqa=True,
                                           return_lse=True)
    assert output.shape == (3, 4, 11, 24) and output.dtype == torch.bfloat16
    assert output.transpose(1, 2).is_contiguous()
    assert lse.shape == (3, 4, 11) and lse.dtype == torch.float32
    q, k, v = (x.to("meta").requires_grad_() for x in make_qkv(5, 5))
    output = fovea.flex_attention(q, k, v, mask_mod=causal_mask)
    assert output.shape == q.shape and output.requires_grad
    assert torch.autograd.grad(output.sum(), q)[0].device.type == "meta"
    assert len(_operator._forwards) == before


def test_function_below_autograd():
    """A Function is called in an operator's kernel, on tensors that require
    gradients, as by an operator of PyTorch's own."""
    q, k, v = make_qkv(5, 5, grad=True)
    attend = compiled(fovea.trace(None, causal_mask, query=q, key=k, value=v))
    with pytest.raises(fovea.Error, match="requires a gradient"):
        attend(q, k, v)
    with torch.library._scoped_library("fovea_test", "DEF") as library:
        library.define("attend(Tensor q, Tensor k, Tensor v) -> Tensor")
        library.impl("attend", attend, DEVICE.upper())

        def without_autograd(*operands):
            with torch._C._AutoDispatchBelowAutograd():
                return torch.ops.fovea_test.attend(*operands)

        library.impl("attend", without_autograd, f"Autograd{DEVICE.upper()}")
        actual = torch.ops.fovea_test.attend(q, k, v)
    compare(actual, reference(q, k, v, None, causal_mask)[0])


def test_func():
    """grad, vmap, and one in the other."""
    q, k, v = make_qkv(6, 6)
    bias = torch.linspace(-1, 1, 6)

    def attend(q, bias):
        return fovea.flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[j],
                                    mask_mod=causal_mask)

    def loss(q, bias):
        return (attend(q, bias)**2).sum()

    qs = torch.stack([q, q * 2, q - 1])
    biases = torch.stack([bias, bias * 2, -bias])
    compare(torch.func.vmap(attend)(qs, biases), torch.stack(
        [attend(*x) for x in zip(qs, biases)]).double())
    expected = []
    for pair in zip(qs, biases):
        pair = [x.clone().requires_grad_() for x in pair]
        expected.append(torch.autograd.grad(loss(*pair), pair))
    found = torch.func.grad(loss, (0, 1))(q, bias)
    for one, other in zip(found, expected[0]):
        compare(one, other.double())
    found = torch.func.vmap(torch.func.grad(loss, (0, 1)))(qs, biases)
    for one, other in zip(found, zip(*expected)):
        compare(one, torch.stack(other).double())
    with pytest.raises(NotImplementedError, match="gradients of gradients"):
        torch.func.grad(lambda q: torch.func.grad(loss)(q, bias).sum())(q)


def test_compiled_code():
    """Within torch.compile the call is made as it is, between two graphs."""
    q, k, v = make_qkv(6, 6, grad=True)

    @torch.compile(backend="aot_eager")
    def model(q, k, v):
        output = fovea.flex_attention(q * 2, k, v, mask_mod=causal_mask)
        return output.sin()

    actual = model(q, k, v)
    expected = reference(q * 2, k, v, None, causal_mask)[0].sin()
    compare(actual, expected)
    compare(torch.autograd.grad(actual.sum(), q)[0],
            torch.autograd.grad(expected.sum(), q)[0].double(), 2e-5)


def test_lengths_do_not_recompile():
    """The operator in a graph of dynamic sizes: one graph, one kernel."""
    # Fewer than 17 queries are counted in a text for a GPU.
    text = make_operands(queries=17)[5]
    from torch._dynamo.testing import CompileCounterWithBackend
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(backend=counter, dynamic=True, fullgraph=True)
    def attend(q, k, v, ids, bias):
        return torch.ops.fovea.attention(q, k, v, [ids, bias], [], text,
                                         False)[0]

    for length in (17, 20, 31):
        q, k, v = make_qkv(length, length)
        bias = torch.linspace(-1, 1, length)
        compare(attend(q, k, v, torch.arange(length), bias), reference(
            q, k, v, lambda s, b, h, i, j: s + bias[j], causal_mask)[0])
    assert counter.frame_count == 1


def test_checkpoint_draws_the_same_dropout():
    q, k, v = make_qkv(20, 20, grad=True)
    from torch.utils.checkpoint import checkpoint

    def attend(q):
        return fovea.flex_attention(q, k, v, dropout_p=0.5)

    torch.manual_seed(0)
    expected, = torch.autograd.grad(attend(q).sum(), q)
    torch.manual_seed(0)
    actual, = torch.autograd.grad(
        checkpoint(attend, q, use_reentrant=False).sum(), q)
    assert torch.equal(actual, expected)


#--- The library's own kernels -------------------------------------------------


def test_native_kernels():
    """They are those that run, with what Python's give."""
    assert _native.call is not None and _native.has_attention
    with pytest.raises(RuntimeError, match="other operands than expected"):
        torch.ops.fovea.accepts(torch.empty(0, device="cpu"), [2, 1], "text")
    operands = make_operands(transposed=True)
    with torch.no_grad():
        output, lse = torch.ops.fovea.attention(*operands)
        expected, expected_lse = _operator.run_forward(*operands)
    assert torch.equal(output, expected) and torch.equal(lse, expected_lse)
    assert output.stride() == expected.stride()
    q, k, v = make_qkv(9, 12)
    text = fovea.trace(None, lambda b, h, i, j: i >= j - 3, query=q, key=k, value=v)
    text = text.replace("%value: !value)", "%value: !value, %offset: index)")
    text = text.replace("arith.constant 3 : index", "arith.addi %offset, %offset : index")
    text = text.replace("arith.subi %kv, %0", "arith.subi %kv, %offset")
    for offset in (2, 5):
        compare(torch.ops.fovea.attention(q, k, v, [], [offset], text, False)[0],
                reference(q, k, v, None, lambda b, h, i, j: i >= j - offset)[0])


def test_errors_of_native_kernels():
    """They are RuntimeErrors that say what is wrong; Fovea's functions raise their
    own."""
    q, k, v = make_qkv(5, 5)
    text = fovea.trace(query=q, key=k, value=v)
    for wrong, message in (
            ((q, k, v[:, :1], [], [], text, False), "%value"),
            ((q, k, v.double(), [], [], text, False), "another type of elements"),
            ((q, k, v, [q], [], text, False), "expected 3 tensors and 0 numbers"),
            ((q, k, v, [], [], "func.func", False), "<text>:1:10: error")):
        with pytest.raises(RuntimeError, match=message):
            torch.ops.fovea.attention(*wrong)
    attend = compiled(text)
    with pytest.raises(fovea.Error, match=r"operand 2 \(%value\) of @attention"):
        attend(q, k, v[:, :1])
    compare(attend(q, k, v), reference(q, k, v)[0])
    table = torch.zeros(5)
    for grad in (False, True):
        x = q.detach().requires_grad_(grad)
        tracer = Tracer(x, k, v)
        tracer.scale_by(0.25)
        tracer.trace(lambda s, b, h, i, j: s + table[i], None)
        with pytest.raises(fovea.Error, match=r"^dimension 0 of operand 3 \(%table\)"):
            _operator.attention(x, k, v, [tracer.captures[0][:3]], [], tracer.write(
                "f64" if grad else None), False, grad)


def test_python_where_there_are_no_native_kernels(monkeypatch):
    from fovea import _arrays
    q, k, v = make_qkv(9, 12)
    attend = compiled(fovea.trace(query=q, key=k, value=v))
    expected = attend(q, k, v)
    assert attend._run is not None
    attend._run = None
    monkeypatch.setattr(_arrays.torch, "call", None)
    monkeypatch.setattr(_native, "call", None)
    monkeypatch.setattr(_native, "attend", None)
    monkeypatch.setattr(_native, "has_attention", False)
    assert torch.equal(attend(q, k, v), expected)
    assert torch.equal(fovea.flex_attention(q, k, v), expected)


#--- Calls without the dispatcher ------------------------------------------------


class _Subclass(torch.Tensor):
    pass


@pytest.fixture(name="calls")
def make_calls():
    """A function and the operator, each with what may run without the dispatcher: from
    operands that may differ in the value to the output, None where that is not for
    it."""
    q, k, v = make_qkv(9, 12)
    text = fovea.trace(None, causal_mask, query=q, key=k, value=v)
    attend = compiled(text)
    attend(q, k, v)

    def run_operator(*operands, run=torch.ops.fovea.attention):
        results = run(*operands[:3], operands[3:], [], text, False)
        return results and results[0]

    return (q, k, v), (
        (attend, attend._run),
        (run_operator, lambda *operands: run_operator(*operands, run=_native.attend)))


def test_calls_without_the_dispatcher(calls):
    operands, both = calls
    expected = reference(*operands, None, causal_mask)[0]
    for call, run in both:
        compare(run(*operands), expected)
        assert torch.equal(call(*operands), run(*operands))
    # Operands in any order and with strides, and several results.
    operands = make_operands(transposed=True)
    with torch.no_grad():
        results = _native.attend(*operands)
        for result, other in zip(results, _operator.run_forward(*operands), strict=True):
            assert torch.equal(result, other) and result.stride() == other.stride()
    # As many threads as want to.
    threads = [threading.Thread(target=lambda: [both[0][1](*calls[0]) for _ in range(99)])
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compare(both[0][1](*calls[0]), expected)


def test_results_do_not_outlive_their_names(calls):
    operands, both = calls
    roads = [lambda road=road: (road(*operands),) for pair in both for road in pair]
    several = [x.detach() if isinstance(x, torch.Tensor) else x
               for x in make_operands()]
    with torch.no_grad():
        roads += [lambda: _native.attend(*several),
                  lambda: torch.ops.fovea.attention(*several)]
        for road in roads:
            results = road()
            names = [weakref.ref(x) for x in results]
            del results
            assert [name() for name in names] == [None] * len(names)
    if DEVICE == "cuda":
        before = torch.cuda.memory_allocated()
        for road in roads:
            road()
        assert torch.cuda.memory_allocated() == before


def test_numbers_without_the_dispatcher():
    q, k, v = make_qkv(9, 12)
    text = fovea.trace(None, lambda b, h, i, j: i >= j - 3, query=q, key=k, value=v)
    text = text.replace("%value: !value)", "%value: !value, %offset: index)")
    text = text.replace("arith.subi %kv, %0", "arith.subi %kv, %offset")
    attend = compiled(text)
    for offset in (2, -1, 2**40):
        expected = reference(q, k, v, None, lambda b, h, i, j: i >= j - offset)[0]
        compare(attend(q, k, v, offset), expected)
        compare(attend._run(q, k, v, offset), expected)
        compare(_native.attend(q, k, v, [], (offset,), text, False)[0], expected)
    for wrong in (2**64, True, 1.0, torch.tensor(1), None):
        assert attend._run(q, k, v, wrong) is None
        assert _native.attend(q, k, v, [], [wrong], text, False) is None


def test_sizes_of_numbers_and_elements():
    compute = compiled("""
        #map = affine_map<(i, j) -> (i, j)>
        func.func @add(%x: tensor<?x?xf32>, %n: tensor<?xi64>, %rows: index)
            -> (tensor<?x?xf32>, tensor<?x?xf32>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %rows_of_x = tensor.dim %x, %c0 : tensor<?x?xf32>
          %columns_of_x = tensor.dim %x, %c1 : tensor<?x?xf32>
          %number = tensor.extract %n[%c0] : tensor<?xi64>
          %columns = arith.index_cast %number : i64 to index
          %empty = tensor.empty(%rows, %columns) : tensor<?x?xf32>
          %sum = linalg.generic {indexing_maps = [#map],
              iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<?x?xf32>) {
          ^bb0(%unused: f32):
            %i = linalg.index 0 : index
            %j = linalg.index 1 : index
            %place = arith.muli %i, %columns : index
            %element = arith.addi %place, %j : index
            %long = arith.index_cast %element : index to i64
            %value = arith.sitofp %long : i64 to f32
            linalg.yield %value : f32
          } -> tensor<?x?xf32>
          %room = tensor.empty(%rows_of_x, %columns_of_x) : tensor<?x?xf32>
          %twice = linalg.generic {indexing_maps = [#map, #map],
              iterator_types = ["parallel", "parallel"]}
              ins(%x : tensor<?x?xf32>) outs(%room : tensor<?x?xf32>) {
          ^bb0(%a: f32, %unused: f32):
            %b = arith.addf %a, %a : f32
            linalg.yield %b : f32
          } -> tensor<?x?xf32>
          return %sum, %twice : tensor<?x?xf32>, tensor<?x?xf32>
        }""")
    x = torch.randn(3, 5, device=DEVICE)

    def call_often():
        held = []
        for rows, columns in ((4, 6), (6, 4), (3, 8), (4, 6), (40, 60), (0, 6), (6, 0),
                              (1, 1), (5, 5), (5, 5)):
            n = torch.tensor([columns], device=DEVICE)
            results = compute(x, n, rows)
            expected = torch.arange(rows * columns, device=DEVICE).view(rows, columns)
            held.append((results, expected))
        for (places, twice), expected in held:
            assert torch.equal(places, expected.float())
            assert torch.equal(twice, x + x)

    call_often()
    if DEVICE == "cuda":
        before = torch.cuda.memory_allocated()
        call_often()
        assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("kind", [
    "gradient", "subclass", "sparse", "negated", "double", "meta", "batch", "rank",
    "heads", "array", "number", "none", "count"])
def test_operands_that_need_the_dispatcher(calls, kind):
    """They take the road that they took: it computes the same, or says what is
    wrong."""
    (q, k, v), both = calls
    others = []
    if kind == "gradient":
        other = v.clone().requires_grad_()
    elif kind == "subclass":
        other = v.as_subclass(_Subclass)
    elif kind == "negated":
        other = torch.complex(v, v).conj().imag
        assert other.is_neg()
    elif kind == "batch":
        other = v
        q = torch.cat([q, q])
    elif kind == "count":
        other, others = v, [v]
    else:
        other = {"sparse": v.to_sparse, "double": v.double, "meta": lambda: v.to("meta"),
                 "rank": lambda: v[0], "heads": lambda: v[:, :1], "array": v.tolist,
                 "number": lambda: 3, "none": lambda: None}[kind]()
    for call, run in both:
        assert run(q, k, other, *others) is None
        if kind in ("subclass", "negated"):
            compare(call(q, k, other), reference(q, k, other.clone(), None,
                                                 causal_mask)[0])
            continue
        if kind == "gradient":
            with torch.no_grad():
                assert run(q, k, other) is not None
            if call is not both[0][0]:
                continue
        with pytest.raises((fovea.Error, RuntimeError, TypeError)) as error:
            call(q, k, other, *others)
        assert "gradient" in str(error.value) or kind != "gradient"


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_what_looks_at_calls_sees_them(calls):
    """Modes, transforms, tracing and profilers."""
    from torch._subclasses import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    operands, ((attend, run), (operator, run_operator)) = calls
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Mode():
        assert run(*operands) is None and run_operator(*operands) is None
        operator(*operands)
    assert "fovea.attention.default" in seen
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert run_operator(*operands) is None
    query, *others = operands
    torch.func.vmap(lambda x: x + 0 * (run(*operands) is not None))(query)
    assert torch.func.vmap(lambda x: x * (run_operator(*operands) is None))(
        query).equal(query)
    with torch.profiler.profile() as profile:
        assert run(*operands) is None and run_operator(*operands) is None
        attend(*operands)
        operator(*operands)
    names = [event.key for event in profile.key_averages()]
    assert "fovea::call" in names and "fovea::attention" in names
    with pytest.warns(DeprecationWarning):
        traced = torch.jit.trace(
            lambda q: (attend(q, *others), fovea.attention(q, *others, causal=True)),
            (query,), check_trace=False)
    for output in traced(query * 2):
        compare(output, reference(query * 2, *others, None, causal_mask)[0])


def test_explanations_of_calls_by_the_dispatcher():
    operands = make_operands()
    with torch.no_grad():
        found = fovea.explain(torch.ops.fovea.attention, *operands)
        again = torch.ops.fovea.attention(*operands)
    assert len(found.kernels) == 1 and torch.equal(found.result[0], again[0])
    with fovea._explain.recording() as outer:
        assert len(fovea.explain(torch.ops.fovea.attention, *operands).kernels) == 1
        assert _operator._recording is not None
    assert len(outer) == 1 and _operator._recording is None


#--- Orders in memory ----------------------------------------------------------


def in_memory(tensor, order):
    """A copy whose dimensions lie in memory in an order."""
    inverse = sorted(range(tensor.dim()), key=lambda at: order[at])
    return tensor.permute(order).contiguous().permute(inverse)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (2, 0, 1, 3), (0, 1, 2, 3)])
def test_order_of_results(order, grad):
    q, k, v = (in_memory(x, order).requires_grad_(grad) for x in make_qkv(9, 12))
    rows = [x.detach().contiguous().requires_grad_(grad) for x in (q, k, v)]
    output = fovea.flex_attention(q, k, v, mask_mod=causal_mask)
    expected = fovea.flex_attention(*rows, mask_mod=causal_mask)
    assert output.stride() == in_memory(expected, order).stride()
    assert torch.equal(output, expected)
    if grad:
        cotangent = torch.randn_like(output)
        gradients = torch.autograd.grad(output, (q, k, v), cotangent)
        for x, gradient, other in zip((q, k, v), gradients, torch.autograd.grad(
                expected, rows, cotangent)):
            assert gradient.stride() == x.stride()
            assert torch.allclose(gradient, other, rtol=1e-6, atol=1e-6)


def test_heads_behind_positions_are_written_there():
    """Results have the order of a model's tensors, [B, L, H, E], without a copy."""
    q, k, v = (in_memory(x, (0, 2, 1, 3)).requires_grad_() for x in make_qkv(40, 37))
    found = fovea.explain(lambda: fovea.flex_attention(
        q, k, v, mask_mod=causal_mask).sum().backward())
    forward, backward = found.kernels
    heads = q.shape[1]
    assert forward.results[0].shape == (None, None, heads, q.shape[3])
    assert [x.shape for x in backward.results] == [
        (None, None, x.shape[1], x.shape[3]) for x in (q, k, v)]
    with torch.no_grad():
        found = fovea.explain(fovea.flex_attention, q, k, v, mask_mod=causal_mask)
    tiled = found.mlir("tiled")
    assert "transpose" not in tiled and "(d0, d2, d1, d3)" not in tiled
    assert tiled.count("tensor.parallel_insert_slice") == 1
    # A single query lies in memory as if there were no such order.
    one = in_memory(make_qkv(1, 37)[0], (0, 2, 1, 3))
    one = fovea.explain(fovea.flex_attention, one, k.detach(), v.detach())
    assert one.function.results[0].shape == (None, heads, 1, q.shape[3])

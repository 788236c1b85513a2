# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing of mods: the text that they become, each function of PyTorch, and the
errors of mods that cannot be traced."""

import inspect
import math
import re
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from mods import HEADS, causal_mask, make_qkv, on_device

Q, K, V = make_qkv(10, 12)


def trace(score_mod=None, mask_mod=None, **changed):
    return fovea.trace(score_mod, mask_mod, **{
        "query": Q, "key": K, "value": V, **changed})


def lines_of(score_mod=None, mask_mod=None):
    """The operations of the regions."""
    text = trace(score_mod, mask_mod)
    return re.findall(r"^      (.*)$", text, re.M)


def test_text():
    bias = torch.zeros(HEADS, 10, 12)
    text = trace(lambda score, b, h, q, kv: score + bias[h, q, kv],
                 causal_mask)
    assert text == """\
!query = tensor<?x4x?x16xf32>
!key = tensor<?x4x?x16xf32>
!value = tensor<?x4x?x16xf32>
!bias = tensor<4x?x?xf32>
!output = tensor<?x4x?x16xf32>
func.func @attention(%query: !query, %key: !key, %value: !value, %bias: !bias) -> (!output) {
  %output = attn.attention %query, %key, %value scale(0.25)
    score {
    ^bb0(%score: f32, %b: index, %h: index, %q: index, %kv: index):
      %0 = tensor.extract %bias[%h, %q, %kv] : !bias
      %1 = arith.addf %score, %0 : f32
      attn.yield %1 : f32
    }
    mask {
    ^bb0(%b: index, %h: index, %q: index, %kv: index):
      %0 = arith.cmpi sge, %q, %kv : index
      attn.yield %0 : i1
    }
    : !query, !key, !value -> !output
  return %output : !output
}
"""
    attend = fovea.compile(text)
    assert attend(Q, K, V, bias).shape == Q.shape


def test_what_changes_nothing_is_left_out():
    text = trace(lambda score, *_: score,
                 lambda b, h, q, kv: b.new_ones((), dtype=torch.bool))
    assert "score {" not in text and "mask {" not in text
    assert "mask {" not in trace(None, fovea.noop_mask)
    assert "mask {" not in trace(
        None, fovea.and_masks(fovea.noop_mask, fovea.noop_mask))


def test_one_operand_for_a_tensor():
    bias, other = torch.zeros(10), torch.zeros(12)

    def score_mod(score, b, h, q, kv):
        return score + bias[q] + bias[q] * other[kv] + bias[None, q].sum(-1)

    text = trace(score_mod, lambda b, h, q, kv: (bias[q] > 0) & (bias[q] < 9))
    assert "%value: !value, %bias: !bias, %other: !other)" in text
    # Each element is read once in a region.
    assert text.count("tensor.extract %bias[%q]") == 2


def test_names():
    """Operands are named as the mod names them, unless the text forbids it."""
    slopes, q = torch.zeros(HEADS), torch.zeros(10)
    result0, maße = torch.zeros(10), torch.zeros(10)

    def score_mod(score, b, h, i, j):
        return score + slopes[h] + q[i] + result0[i] + maße[i] + torch.ones(1)[0]

    text = trace(score_mod)
    assert re.findall(r"%(\w+): !", text)[3:] == [
        "slopes", "capture0", "capture1", "capture2", "capture3"]
    fovea.differentiate(text)


def test_sizes_do_not_shape_the_text():
    """Neither lengths nor batches, of operands or of captured tensors, but for a
    single query."""
    def make(queries, keys, batch):
        q, k, v = make_qkv(queries, keys, batch)
        bias, ids = torch.zeros(batch, queries, keys), torch.zeros(keys).long()
        return fovea.trace(
            lambda score, b, h, i, j: score + bias[b, i, j] + bias[0, i, ids[j]],
            lambda b, h, i, j: ids[j] <= i, query=q, key=k, value=v)

    assert make(10, 12, 1) == make(2, 1, 3) == make(1000, 3, 2)
    one = make(1, 12, 1)
    assert one == make(1, 1, 3)
    assert f"!query = tensor<?x{HEADS}x1x" in one
    assert f"!output = tensor<?x{HEADS}x1x" in one


#: Of a score and two positions, and of captured tensors.
FUNCTIONS = [
    "a + i * 2 - j", "(a + 3) / (i + 1)", "i / (j + 1) + a",
    "a - i // 3", "a + (i - j) // 3", "a + (i - j) % 5",
    "a + (i - j) % -5", "a % 1.5 + a % -1.5", "a // 0.7",
    "a ** 2 + a ** 3 + (a.abs() + 1) ** 0.5", "(a.abs() + 1) ** -1.5",
    "2.0 ** a + 2 ** i", "a + 7 // (i + 1) + 7 % (i + 1) + 9 - i",
    "-a + abs(a) + (+a) + abs(i - j)",
    "torch.where(i > j, a, -1.0) + torch.where(i < j, 1, 0)",
    "a.where(i >= j, a * 2)",
    "torch.maximum(a, a * a) + torch.minimum(i, j) + torch.max(a, i * 1.0)",
    "a.clamp(-1, 1) + a.clamp(min=0.5) + torch.clip(i, max=3)",
    "a + ((i & 5) | (j ^ 3)) + (i << 2) + (j >> 1) + ~i",
    "a + ((i > 3) & ~(j < 2) | (i == j) ^ (i != 4)) * 1.0",
    "a + torch.logical_and(i, j) + torch.logical_not(i) * 2.0",
    "a + (i > 2) + (j <= 2).float() + (a > 0).int()",
    "torch.exp(a) + a.exp2() + a.expm1()",
    "torch.log(a.abs() + 1) + (a.abs() + 1).log2() + torch.log1p(a.abs())",
    "a.abs().sqrt() + (a.abs() + 1).rsqrt() + torch.reciprocal(a.abs() + 1)",
    "a.sin() + a.cos() + a.atan() + torch.atan2(a, i + 1.0)",
    "a.sinh() + a.cosh() + a.tanh() + a.asinh() + a.erf() + a.erfc()",
    "torch.sigmoid(a) + F.silu(a) + F.mish(a) + F.softplus(a)",
    "F.gelu(a) + F.gelu(a, approximate='tanh') + F.logsigmoid(a)",
    "F.relu(a) + F.relu6(a * 9) + F.leaky_relu(a) + F.elu(a)",
    "F.hardtanh(a) + F.hardsigmoid(a) + F.hardswish(a) + F.softsign(a)",
    "a.floor() + a.ceil() + a.trunc() + a.round() + a.frac() + a.sign()",
    "torch.logaddexp(a, a * 2) + torch.hypot(a, i * 1.0) + a.square()",
    "torch.lerp(a, a * 3, 0.25) + torch.addcmul(a, a, a, value=2)",
    "a + torch.isnan(a) + torch.isfinite(a / 0.0) + torch.isinf(a / 0.0)",
    "torch.copysign(a, a * -1) + torch.fmod(a, 0.7) + torch.fmod(i - j, 4)",
    "a + (a * 5).to(torch.int32) + (a * 5).long() + i.to(a.dtype)",
    "a + i.double() + i.type_as(a) + i.half() + j.bfloat16()",
    "torch.div(i - j, 3, rounding_mode='trunc') + a",
    "torch.div(a, 0.3, rounding_mode='floor') + torch.rsub(a, 1)",
    "a + a.new_full((), 2) + torch.zeros_like(i) + torch.ones_like(a)",
    "a + torch.full_like(a, 3.5) + i.new_tensor(4) + a.new_zeros([])",
    "a.detach().clone().squeeze() + a.unsqueeze(0).squeeze(0)",
    "a + t[i] + t[-1] + t[2] + t[i - 3] + u[i, 1] + u[i][1] + u[2, i % 3]",
    "a + (u[i] * 2).sum() + u[i].mean(-1) + u[i].prod(0) + u[i].amax(-1)",
    "a + torch.dot(u[i], u[j]) + (u[i] @ u[j]) + (u[:3] @ u[i])[1]",
    "a + torch.stack([a, a * 2]).sum(0) + torch.cat([u[i], u[j]]).max()",
    "a + (u[i] == u[j]).any() + (u[i] >= u[j]).all(-1) + u[i, 1:].sum()",
    "a + u[i].min() + len(u[i]) + sum(x for x in u[i]) + u[i].shape[0]",
    "a + torch.norm(u[i]) + u[i].flip(0)[0] + u[i].view(3, 1)[2, 0]",
    "a + t[ids[i]] + t[ids[i] - 9] + ids[j] // 3 + ids[i] % 4",
    "a + t[u[i].long() % 4].sum() + t[i.clamp(2, 5) - 2]",
    "a + byte[i] + flag[j] + torch.where(flag[i], 1, 2)",
    "a + s * 3 + s",
]


@pytest.mark.parametrize("start", range(0, len(FUNCTIONS), 8))
def test_functions(start):
    """The log-sum-exp shows the scores."""
    expressions = FUNCTIONS[start:start + 8]
    size = 7
    t, u = torch.linspace(-2, 3, 9), torch.arange(27.0).reshape(9, 3).sin()
    ids = torch.tensor([3, 8, 0, 5, 7, 2, 1])
    byte = torch.tensor([200, 1, 2, 255, 128, 127, 0], dtype=torch.uint8)
    flag = torch.tensor([True, False, False, True, True, False, True])
    scope = {"torch": torch, "F": torch.nn.functional, "t": t, "u": u, "ids": ids,
             "byte": byte, "flag": flag, "s": torch.tensor(1.5)}
    q = torch.linspace(-1.3, 1.7, size)[None, None, :, None]
    q = q.expand(1, 1, size, 1).contiguous()
    k = torch.linspace(0.5, 1.5, size)[None, None, :, None].contiguous()
    for expression in expressions:
        mod = eval(f"lambda a, b, h, i, j: {expression}", scope)
        _, aux = fovea.flex_attention(
            q, k, k, mod, scale=1.0, return_aux=fovea.AuxRequest(lse=True))
        scores = q[0, 0] * k[0, 0].T
        expected = torch.stack([torch.stack([torch.as_tensor(
            mod(scores[i, j], torch.tensor(0), torch.tensor(0), torch.tensor(i),
                torch.tensor(j))).double() for j in range(size)])
            for i in range(size)])
        assert torch.allclose(aux.lse[0, 0].double(), expected.logsumexp(-1),
                              rtol=1e-5, atol=1e-5), expression


def test_ranges_leave_out_what_is_not_needed():
    """No wrapping and no bound where the index is in the tensor."""
    table = torch.zeros(22)
    for place in ("q + kv", "q - kv + 12", "(q - kv).abs()", "q // 2",
                  "(q * 7 + kv) % 22", "torch.clamp(q - kv, 0, 5)", "(q ^ kv) & 15",
                  "torch.where(q > kv, q, kv)", "q.clamp(max=5) * 2"):
        mod = eval(f"lambda score, b, h, q, kv: score + table[{place}]",
                   {"table": table, "torch": torch})
        assert not any("minui" in x or "cmpi slt" in x for x in lines_of(mod)
                       ), place
    assert lines_of(lambda score, b, h, q, kv: score + table[q - kv]) == [
        "%0 = arith.subi %q, %kv : index",
        "%1 = index.constant 0",
        "%2 = tensor.dim %table, %1 : !table",
        "%3 = arith.constant 0 : index",
        "%4 = arith.cmpi slt, %0, %3 : index",
        "%5 = arith.addi %0, %2 : index",
        "%6 = arith.select %4, %5, %0 : index",
        "%7 = arith.constant 1 : index",
        "%8 = arith.subi %2, %7 : index",
        "%9 = arith.minui %6, %8 : index",
        "%10 = tensor.extract %table[%9] : !table",
        "%11 = arith.addf %score, %10 : f32", "attn.yield %11 : f32"]


def expect(message, score_mod=None, mask_mod=None, kind=None):
    """The error has this file and the line of the mod."""
    line = (score_mod or mask_mod).__code__.co_firstlineno
    with pytest.raises(kind or fovea.TraceError) as caught:
        trace(score_mod, mask_mod)
    found = str(caught.value)
    assert re.search(re.escape(__file__) + rf":{line}: ", found), found
    assert message in found, found


def test_errors():
    table = torch.zeros(5, 5)
    expect("a branch on a traced value",
           lambda score, b, h, q, kv: score if q > kv else -score)
    expect("a branch on a traced value",
           None, lambda b, h, q, kv: q > kv and kv > 2)
    expect("Tensor.cumsum has no counterpart in a region",
           lambda score, b, h, q, kv: score.cumsum(0))
    expect("cumsum has no counterpart in a region",
           lambda score, b, h, q, kv: torch.cumsum(score, 0))
    expect("torch.nn.functional.dropout has no counterpart",
           lambda score, b, h, q, kv: torch.nn.functional.dropout(score))
    expect("no number yet", lambda score, b, h, q, kv: math.exp(score))
    expect("no number yet", lambda score, b, h, q, kv: score * q.item())
    expect("no number yet", None, lambda b, h, q, kv: kv in range(q))
    expect("score_mod returns tuple", lambda score, b, h, q, kv: (score, score))
    expect("score_mod returns NoneType", lambda score, b, h, q, kv: None)
    expect("score_mod returns a tensor of shape (5,)",
           lambda score, b, h, q, kv: score + table[0])
    expect("mask_mod returns a number of torch.int64; expected torch.bool",
           None, lambda b, h, q, kv: q - kv)
    expect("index 5 is out of bounds for dimension 0 with size 5",
           lambda score, b, h, q, kv: score + table[5, kv % 5], kind=IndexError)
    expect("index 11 is out of bounds for dimension 1 with size 5",
           lambda score, b, h, q, kv: score + table[0, kv], kind=IndexError)
    expect("too many indices for tensor of dimension 2",
           lambda score, b, h, q, kv: score + table[0, 0, q], kind=IndexError)
    expect("an index of type torch.float32; expected an integer",
           lambda score, b, h, q, kv: score + table[score, 0])
    expect("integer division by zero",
           lambda score, b, h, q, kv: score + q // 0, kind=ZeroDivisionError)
    expect("clamp: ", lambda score, b, h, q, kv: score.clamp(0, 1, 2))
    large = torch.zeros(3, 5000)
    expect("a tensor of shape (5000,) cannot be unrolled; expected 1 to 1024",
           lambda score, b, h, q, kv: score + large[h % 3].sum())
    expect("a captured tensor of dtype torch.complex64",
           lambda score, b, h, q, kv: score + table.cfloat()[q % 5, 0])
    expect("found at least two devices, cpu and meta",
           lambda score, b, h, q, kv: score + table.to("meta")[q % 5, 0],
           kind=RuntimeError)
    expect("an operand of type str", lambda score, b, h, q, kv: score + "1")


def test_line_is_that_of_the_operation():
    def helper(x):
        return x.cumsum(0)

    def mod(score, b, h, q, kv):
        score = score * 2
        return helper(score)

    line = inspect.getsourcelines(helper)[1] + 1
    with pytest.raises(fovea.TraceError, match=f"test_trace.py:{line}: "):
        trace(mod)


def test_errors_of_the_mod_itself():
    with pytest.raises(KeyError, match="missing"):
        trace(lambda score, b, h, q, kv: {}["missing"])
    with pytest.raises(TypeError, match="positional argument"):
        trace(lambda score, b, h: score)


def test_numbers_of_numpy():
    assert any("arith.constant 2.5 : f32" in line for line in lines_of(
        lambda score, b, h, q, kv: score * np.float32(2.5)))


def test_operators():
    """Operators of PyTorch's registry, and one that a user registers."""
    table = torch.zeros(10, 12)
    assert "tensor.extract %table[%q, %kv] : !table" in lines_of(
        lambda score, b, h, q, kv: score + torch.ops.aten.index(
            table, [q, kv]))[0]
    with torch.library._scoped_library("fovea_test", "DEF") as library:
        library.define("tanh(Tensor x) -> Tensor")
        assert lines_of(lambda score, b, h, q, kv: torch.ops.fovea_test.tanh(
            score) + torch.ops.aten.relu(score))[0] == "%0 = math.tanh %score : f32"


def test_speed():
    """Tracing is cheap enough for every call: a median of a causal mask and a
    bias, with room for a slow machine."""
    bias = torch.zeros(HEADS, 10, 12)
    mod = lambda score, b, h, q, kv: 20 * torch.tanh(score / 20) + bias[h, q, kv]
    times = []
    for _ in range(50):
        start = time.perf_counter()
        trace(mod, causal_mask)
        times.append(time.perf_counter() - start)
    assert sorted(times)[25] < 2e-3


def test_no_torch():
    """The package imports without PyTorch, and says what needs it."""
    code = """
import sys
sys.modules["torch"] = None
import fovea
print(fovea.__version__, "flex_attention" in dir(fovea))
try:
    fovea.flex_attention
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], text=True,
                            capture_output=True, check=True)
    assert result.stdout.splitlines()[0].endswith(" True")
    assert "torch" in result.stdout.splitlines()[1]
    code = "import sys, fovea; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], text=True,
                            capture_output=True, check=True)
    assert result.stdout == "False\n"

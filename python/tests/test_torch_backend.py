# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="fovea"), and inductor with Fovea's pass: what becomes
Fovea's and what does not, in one graph, with gradients and dynamic sizes."""

import functools
import os
import shutil

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
import fovea.torch
from mods import causal_mask, compile_eagerly, make_qkv, on_device, randn
from test_flex import compare
from functorch.compile import make_boxed_compiler
from torch._dynamo.backends.common import aot_autograd
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention


@pytest.fixture
def without_inductor(monkeypatch):
    """The rest of a graph runs as it is: inductor takes its time."""
    monkeypatch.setattr("fovea.torch.compile_fx", compile_eagerly)
    torch._dynamo.reset()


def check(model, *inputs, kernels=1, others=(), **options):
    """A compiled function has the results and the gradients that it has without;
    Fovea computes so many attentions in it."""
    compiled = torch.compile(model, backend="fovea", **options)
    found = fovea.explain(compiled, *inputs)
    assert len(found.kernels) == kernels
    expected = model(*inputs)
    compare(found.result, expected.double(), 2e-6)
    wanted = [x for x in (*inputs, *others) if x.requires_grad]
    if wanted:
        for one, other in zip(
                torch.autograd.grad(found.result.square().sum(), wanted),
                torch.autograd.grad(expected.square().sum(), wanted)):
            compare(one, other.double(), 2e-5)
    return compiled


needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")),
    reason="needs a C++ compiler for inductor")


@needs_compiler
def test_inductor():
    """With the real thing: the operator, and a kernel of inductor's. What was
    compiled is found in PyTorch's caches."""
    def model(q, k, v):
        return scaled_dot_product_attention(q.sin(), k, v, is_causal=True).cos()

    for _ in range(2):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        check(model, *make_qkv(grad=True), fullgraph=True)
    assert torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"] == 1


def count_kernels():
    from fovea import _operator
    return len(_operator._forwards), len(_operator._pairs)


@needs_compiler
def test_pass_of_inductor():
    """In the slot of inductor: attention that is called in three ways, one graph and
    no other kernel for other sizes, and the slot as it was."""
    def model(q, k, v):
        one = torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1) @ v
        other = fovea.flex_attention(q.sin(), k, v, mask_mod=causal_mask)
        return scaled_dot_product_attention(one, k, v, is_causal=True) + other

    calls = []
    before = torch._inductor.config.pre_grad_custom_pass
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    try:
        torch._inductor.config.pre_grad_custom_pass = calls.append
        with fovea.torch.use_in_inductor():
            compiled = torch.compile(model, dynamic=True, fullgraph=True)
            inputs = make_qkv(36, 36, grad=True)
            found = fovea.explain(compiled, *inputs)
        assert torch._inductor.config.pre_grad_custom_pass == calls.append
    finally:
        torch._inductor.config.pre_grad_custom_pass = before
    assert len(found.kernels) == 3 and calls
    kernels = count_kernels()
    for length in (36, 20, 31):
        inputs = make_qkv(length, length, grad=True)
        actual, expected = compiled(*inputs), model(*inputs)
        compare(actual, expected.double(), 2e-6)
        for one, other in zip(torch.autograd.grad(actual.square().sum(), inputs),
                              torch.autograd.grad(expected.square().sum(), inputs)):
            compare(one, other.double(), 2e-5)
        kernels = kernels if length != 36 else count_kernels()
    assert count_kernels() == kernels
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@needs_compiler
def test_pass_as_an_option():
    """Of one torch.compile; another one is PyTorch's."""
    def model(q, k, v):
        return scaled_dot_product_attention(q, k, v)

    torch._dynamo.reset()
    inputs = make_qkv()
    options = {"pre_grad_custom_pass": fovea.torch.inductor_pass}
    for given, count in ((options, 1), ({}, 0)):
        found = fovea.explain(torch.compile(model, options=given, fullgraph=True),
                              *inputs)
        assert len(found.kernels) == count
        compare(found.result, model(*inputs).double(), 2e-6)


@pytest.mark.parametrize("options, message", [
    ({"mode": "max-autotune-no-cudagraphs"}, None),
    ({"options": {"max_autotune": True}}, None),
    ({"options": {"nonsense": 1}}, "Unexpected optimization option nonsense"),
])
def test_options_of_inductor(monkeypatch, options, message):
    """A mode and options reach inductor, beside the pass."""
    given = []

    def note(graph, inputs, config_patches):
        given.append(config_patches["max_autotune"])
        return compile_eagerly(graph, inputs, config_patches)

    monkeypatch.setattr("fovea.torch.compile_fx", note)
    torch._dynamo.reset()
    compiled = torch.compile(scaled_dot_product_attention, backend="fovea", **options)
    if message:
        with pytest.raises(Exception, match=message):
            compiled(*make_qkv())
        return
    assert len(fovea.explain(compiled, *make_qkv()).kernels) == 1
    assert given == [True]


def test_names_of_the_pass():
    """Inductor's caches know a pass by its name; there is none beside a pass that
    has none."""
    one = fovea.torch.InductorPass([fovea.torch.inductor_pass])
    assert fovea.torch.inductor_pass.uuid() and one.uuid()
    assert one.uuid() != fovea.torch.inductor_pass.uuid()
    assert fovea.torch.InductorPass([print]).uuid() is None
    with fovea.torch.use_in_inductor(), fovea.torch.use_in_inductor():
        assert torch._inductor.config.pre_grad_custom_pass is (
            fovea.torch.inductor_pass)


@pytest.mark.parametrize("dynamic", [False, True])
def test_sdpa(without_inductor, dynamic):
    def model(q, k, v):
        mask = torch.where(torch.ones(q.shape[2], k.shape[2],
                                      device=q.device).tril() > 0, 0.0, -1e9)
        one = scaled_dot_product_attention(q, k, v, mask)
        return scaled_dot_product_attention(one, k, v, is_causal=True) + one

    compiled = check(model, *make_qkv(grad=True), kernels=2, fullgraph=True,
                     dynamic=dynamic)
    if dynamic:
        from fovea import _operator
        before = len(_operator._forwards), len(_operator._pairs)
        for length in (9, 17, 40):
            inputs = make_qkv(length, length, grad=True)
            compare(compiled(*inputs), model(*inputs).double())
        assert before == (len(_operator._forwards), len(_operator._pairs))


DROPOUT = {
    "sdpa": (lambda q, k, v: scaled_dot_product_attention(
        q, k, v, dropout_p=0.4, is_causal=True),
             lambda q, k, v: fovea.scaled_dot_product_attention(
        q, k, v, dropout_p=0.4, is_causal=True)),
    "written out": (lambda q, k, v: torch.nn.functional.dropout(
        torch.softmax(q @ k.mT.transpose(-1, -2).mT * 0.3, -1), 0.2) @ v,
                    lambda q, k, v: fovea.scaled_dot_product_attention(
        q, k, v, dropout_p=0.2, scale=0.3)),
    "capped": (lambda q, k, v: torch.nn.functional.dropout(torch.softmax(
        2 * torch.tanh(q @ k.transpose(-1, -2) / 2), -1), p=0.3) @ v,
               lambda q, k, v: fovea.attention(q, k, v, softcap=2.0, scale=1.0,
                                               dropout_p=0.3)),
}


@pytest.mark.parametrize("name", DROPOUT)
@pytest.mark.parametrize("grad", [False, True])
def test_dropout(without_inductor, name, grad):
    """A graph draws when it runs, what a call draws; the backward pass what the
    forward pass drew."""
    model, ours = DROPOUT[name]
    inputs = make_qkv(grad=grad)
    compiled = torch.compile(model, backend="fovea", fullgraph=True)
    compiled(*inputs)
    results = []
    for run in (compiled, ours, compiled):
        torch.manual_seed(5)
        output = run(*inputs)
        results.append([output.detach(), *(torch.autograd.grad(
            output.square().sum(), inputs) if grad else ())])
        again = run(*inputs)
        assert not torch.allclose(again, output)
    for other in results[1:]:
        for one, two in zip(results[0], other):
            compare(one, two.double(), 1e-6)
    assert len(fovea.explain(compiled, *inputs).kernels) == 1


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_texts_in_graphs_are_lines(monkeypatch, dropout):
    """Inductor writes nodes, with their arguments, into comments of its code for
    GPUs. The kernels are those of calls outside of graphs."""
    from fovea import _operator
    nodes = []

    def note(graph, _):
        nodes.extend(node for node in graph.graph.nodes
                     if "fovea" in str(node.target))
        return graph

    monkeypatch.setattr("fovea.torch.compile_fx", functools.partial(
        compile_eagerly, compiler=aot_autograd(
            fw_compiler=make_boxed_compiler(note))))
    torch._dynamo.reset()
    inputs = make_qkv(33, 33, grad=True)

    def attend(q, k, v):
        return fovea.scaled_dot_product_attention(q, k, v, dropout_p=dropout)

    model = torch.compile(lambda *x: scaled_dot_product_attention(
        *x, dropout_p=dropout), backend="fovea")
    attend(*inputs).sum().backward()
    before = len(_operator._pairs)
    model(*inputs).sum().backward()
    assert len(_operator._pairs) == before
    assert len(nodes) == 2
    for node in nodes:
        text, = (x for x in node.args if isinstance(x, str))
        assert "attn.attention" in text and "\n" not in node.format_node()


def test_opcheck_of_dropout():
    from fovea._trace import Tracer
    q, k, v = make_qkv(9, 12, grad=True)
    bias = torch.linspace(-1, 1, 12).requires_grad_()
    tracer = Tracer(q, k, v)
    tracer.scale_by(0.25)
    tracer.trace(lambda s, b, h, i, j: s + bias[j], causal_mask)
    text = tracer.write("f64", 0.3)
    results = torch.library.opcheck(
        torch.ops.fovea.attention_dropout.default,
        (q, k, v, tracer.captures, [], text, False),
        test_utils=("test_schema", "test_autograd_registration",
                    "test_faketensor"))
    assert set(results.values()) == {"SUCCESS"}


def test_operator_of_flex_attention(without_inductor):
    """PyTorch's flex_attention, and a BlockMask made within the graph."""
    bias = randn(4, seed=9)

    def model(q, k, v):
        blocks = create_block_mask(causal_mask, None, None, 36, 36,
                                   device=q.device)
        output, lse = flex_attention(
            q, k, v, lambda s, b, h, i, j: s * bias[h], blocks, return_lse=True)
        return output + lse[..., None]

    check(model, *make_qkv(), fullgraph=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_flex_attention(without_inductor, dynamic):
    """Fovea's own, in one graph, with a captured tensor that is learned."""
    bias = randn(4, seed=9).requires_grad_()

    def model(q, k, v):
        output, lse = fovea.flex_attention(
            q.sin(), k, v, lambda s, b, h, i, j: s * bias[h],
            mask_mod=causal_mask, return_lse=True)
        return output.cos() + lse[..., None]

    check(model, *make_qkv(grad=True), others=[bias], fullgraph=True,
          dynamic=dynamic)


def test_vectors(without_inductor):
    """Unrolled while tensors are fake."""
    points = randn(36, 3).requires_grad_()
    chosen = torch.arange(36).reshape(9, 4)

    def model(q, k, v):
        return fovea.flex_attention(
            q * 2, k, v, lambda s, b, h, i, j: s + (points[i] * points[j]).sum(),
            mask_mod=lambda b, h, i, j: (chosen[i // 4] == j).any() | (j == 0))

    check(model, *make_qkv(grad=True), others=[points], fullgraph=True)


def test_attention(without_inductor):
    sinks = randn(4, seed=2).requires_grad_()

    def model(q, k, v):
        return fovea.attention(q, k, v, causal=True, window=4, softcap=3.0,
                               q_offset=2, sinks=sinks)

    check(model, *make_qkv(grad=True), others=[sinks], fullgraph=True)


def test_other_backends(monkeypatch):
    """There the call is made between two graphs."""
    torch._dynamo.reset()
    q, k, v = make_qkv()

    def model(q):
        return fovea.flex_attention(q * 2, k, v, mask_mod=causal_mask)

    compiled = torch.compile(model, backend="aot_eager")
    found = fovea.explain(compiled, q)
    assert len(found.kernels) == 1
    compare(found.result, model(q).double())
    # The mod is not traced again.
    monkeypatch.setattr("fovea._flex.Tracer", None)
    compare(compiled(q), found.result.double())


def test_name():
    assert "fovea" in torch._dynamo.list_backends()


def test_rewrite():
    graph = torch.fx.symbolic_trace(
        lambda q, k: scaled_dot_product_attention(q, k, k, scale=0.5))
    assert fovea.torch.rewrite(graph) == 1
    q, k, _ = make_qkv()
    assert fovea.explain(graph, q, k).kernels
    assert fovea.torch.rewrite(graph) == 0


def _group(x):
    """As transformers repeats keys and values."""
    return x[:, :, None].expand(2, 2, 2, *x.shape[2:]).reshape(2, 4, *x.shape[2:])


def _mask(q, k):
    # Within a graph the default device is not that of the tests in all versions.
    i, j = (torch.arange(x.shape[-2], device=q.device) for x in (q, k))
    return torch.where(i[:, None] >= j, 0.0, torch.finfo(torch.float32).min)


def _join_sinks(q, scores):
    """The scores and, as GPT-OSS has it, one more for each head."""
    sinks = q.mean((0, 2, 3)).reshape(1, -1, 1, 1).expand(
        q.shape[0], -1, q.shape[-2], -1)
    return torch.cat([scores, sinks], dim=-1)


def _attend_with_sinks(q, k, v):
    scores = _join_sinks(q, torch.matmul(q, k.transpose(2, 3)) * 0.3 + _mask(q, k))
    scores = scores - scores.max(dim=-1, keepdim=True).values
    weights = torch.nn.functional.softmax(scores, dim=-1, dtype=scores.dtype)[..., :-1]
    return torch.matmul(torch.nn.functional.dropout(
        weights, p=0.0, training=True).to(v.dtype), v)


def _attend_joined(q, k, v, *masks):
    """Scores and probabilities have batch and heads in one dimension."""
    scores = torch.bmm(q.flatten(0, 1) * 0.5, k.flatten(0, 1).transpose(1, 2))
    joined, divided = scores.shape, (2, 4, *scores.shape[1:])
    for mask in masks:
        scores = mask(scores.view(divided)).view(joined)
    weights = torch.nn.functional.softmax(scores, dim=-1)
    return torch.bmm(weights, v.flatten(0, 1))


#: Attention written out, as models do it.
WRITTEN = {
    "plain": lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2), -1) @ v,
    "scaled": lambda q, k, v: torch.matmul(torch.nn.functional.softmax(
        torch.matmul(q, k.transpose(2, 3)) * 0.3, dim=-1,
        dtype=torch.float32).to(q.dtype), v),
    "masked": lambda q, k, v: torch.matmul(torch.nn.functional.dropout(
        (torch.matmul(q, k.transpose(-1, -2)) / 4.0 + _mask(q, k)).softmax(
            dim=-1), p=0.1, training=False), v),
    "two masks": lambda q, k, v: torch.softmax(
        _mask(q, k) + (q @ k.transpose(-2, -1) * 0.5 + q.mean()), -1) @ v,
    "filled": lambda q, k, v: torch.softmax((q @ k.transpose(-1, -2)).masked_fill(
        _mask(q, k) < 0, -1e9), -1) @ v,
    "chosen": lambda q, k, v: torch.softmax(torch.where(
        _mask(q, k) == 0, q @ k.transpose(-1, -2), float("-inf")), -1) @ v,
    "grouped": lambda q, k, v: torch.softmax(
        q @ _group(k[:, :2]).transpose(2, 3) * 0.25, -1) @ _group(v[:, :2]),
    "three dimensions": lambda q, k, v: torch.bmm(torch.softmax(torch.baddbmm(
        _mask(q, k)[None], q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2),
        beta=1.0, alpha=0.25), -1), v.flatten(0, 1)).reshape(2, 4, *q.shape[2:]),
    "keys as a product takes them": lambda q, k, v: torch.softmax(q @ k[:, :, :16], -1) @ v[
        :, :, :16],
    "masked, then scaled": lambda q, k, v: torch.softmax(
        (q @ k.transpose(-1, -2) + _mask(q, k) * 1e-38) * 0.5, -1) @ v,
    "scaled in place": lambda q, k, v: torch.softmax(
        (q @ k.transpose(-1, -2) + q.mean(-1, True)).mul_(0.5).add_(_mask(q, k)),
        -1) @ v,
    "filled, then scaled": lambda q, k, v: torch.softmax(
        (q @ k.transpose(-1, -2)).masked_fill(
            _mask(q, k) < 0, torch.finfo(torch.float32).min) * 1.5, -1) @ v,
    "capped": lambda q, k, v: torch.softmax(5.0 * torch.tanh(
        q @ k.transpose(-1, -2) * 0.5 / 5.0) + _mask(q, k), -1).type(q.dtype) @ v,
    # As Bloom: heads are joined for products.
    "joined heads": lambda q, k, v: torch.bmm(torch.softmax(torch.baddbmm(
        q.mean(2, True).mean(-1, True).expand(2, 4, 1, k.shape[2]).flatten(0, 1),
        q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=0.5, alpha=0.25).view(
            2, 4, q.shape[2], -1) + _mask(q, k), -1).view(
                8, q.shape[2], k.shape[2]), v.flatten(0, 1)).view(2, 4, *q.shape[2:]),
    # As DeBERTa: keys are scaled after they are transposed.
    "scaled keys": lambda q, k, v: torch.bmm(torch.softmax((0 + torch.bmm(
        q.flatten(0, 1), k.flatten(0, 1).transpose(-1, -2) / torch.tensor(4.0))).view(
            -1, 4, q.shape[2], k.shape[2]).masked_fill(_mask(q, k) < 0, -1e9),
        -1).view(-1, q.shape[2], k.shape[2]), v.flatten(0, 1)),
    # As FSMT, MVP and LED: masks are added where heads are divided.
    "masks of divided heads": lambda q, k, v: _attend_joined(
        q, k, v, lambda s: s + _mask(q, k), lambda s: s.masked_fill(
            q.mean(-1, True).mT[..., :1] > 9, -1e9)),
    "probabilities of divided heads": lambda q, k, v: torch.softmax((
        q.flatten(0, 1) @ k.flatten(0, 1).mT).view(
            2, 4, q.shape[2], k.shape[2]).add(_mask(q, k)).view(
                8, q.shape[2], k.shape[2]), -1).view(
                    2, 4, q.shape[2], k.shape[2]) @ v,
    "einsum": lambda q, k, v: torch.einsum("bhij,bhjd->bhid", torch.softmax(
        torch.einsum("b h i d, b h j d -> b h i j", q, k) * 0.3 + _mask(q, k), -1), v),
    # As with heads behind positions, and XLNet's difference.
    "einsum of other orders": lambda q, k, v: torch.einsum(
        "bnij,jbnd->ibnd", torch.softmax((torch.einsum("jbnd,ibnd->bnij", *(
            x.permute(2, 0, 1, 3) for x in (k, q))) + q.mean(-1, True)) * 0.3
            - 65500 * (_mask(q, k) < 0).float(), 3), v.permute(2, 0, 1, 3)).permute(
                1, 2, 0, 3),
    # As Swin V2, and with a learned temperature.
    "scaled by tensors of heads": lambda q, k, v: torch.softmax(
        torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(
            k, dim=-1).mT * k.mean((0, 2, 3)).exp()[:, None, None] + _mask(q, k),
        -1) @ v,
    "divided by a number that is a tensor": lambda q, k, v: torch.softmax(
        torch.einsum("ibhd,bhjd->bhij", q.permute(2, 0, 1, 3), k) / v.std(), -1) @ v,
    "sinks": _attend_with_sinks,
    "plain sinks": lambda q, k, v: torch.softmax(_join_sinks(
        q, q @ k.transpose(-1, -2)), -1)[:, :, :, :-1] @ v,
    "views that are none": lambda q, k, v: torch.softmax((q @ k.mT).view(
        2, 4, q.shape[2], k.shape[2]), -1).view(2, 4, q.shape[2], k.shape[2]) @ v,
}

#: Functions that attention does not compute.
OTHER = {
    "probabilities are read": lambda q, k, v: (lambda p: p @ v + p.sum())(
        torch.softmax(q @ k.transpose(-1, -2), -1)),
    "over queries": lambda q, k, v: torch.softmax(
        q @ k.transpose(-1, -2), 2) @ v,
    "a mask within a cap": lambda q, k, v: torch.softmax(torch.tanh(
        q @ k.transpose(-1, -2) + _mask(q, k) * 1e-38), -1) @ v,
    "scores that are changed in place and read": lambda q, k, v: (
        lambda s: torch.softmax(s.mul_(0.5), -1) @ v + s.mean())(
            q @ k.transpose(-1, -2)),
    "filled with what scaling makes small": lambda q, k, v: torch.softmax(
        (q @ k.transpose(-1, -2)).masked_fill(_mask(q, k) < 0, -1e4) * 1e-3,
        -1) @ v,
    "heads joined in another way": lambda q, k, v: torch.softmax(
        (q.flatten(0, 1) @ k.flatten(0, 1).mT).reshape(
            4, 2, q.shape[2], k.shape[2]).transpose(0, 1), -1) @ v,
    "heads divided in two ways": lambda q, k, v: torch.bmm(torch.softmax(torch.bmm(
        q.flatten(0, 1), k.flatten(0, 1).mT).view(
            2, 4, q.shape[2], k.shape[2]).mul(2).view(8, q.shape[2], k.shape[2]).view(
                4, 2, q.shape[2], k.shape[2]).add(_mask(q, k)).view(
                    8, q.shape[2], k.shape[2]), -1), v.flatten(0, 1)),
    "an einsum over heads": lambda q, k, v: torch.softmax(
        torch.einsum("bhid,bhjd->bij", q, k), -1)[:, None] @ v,
    "an einsum over keys of all heads": lambda q, k, v: torch.einsum(
        "bhij,bgjd->bhid", torch.softmax(q @ k.mT, -1), v),
    "an einsum of three": lambda q, k, v: torch.einsum(
        "bhij,bhjd,h->bhid", torch.softmax(q @ k.mT, -1), v, torch.ones(4, device=q.device)),
    "a difference of scores": lambda q, k, v: torch.softmax(
        q.mean(-1, True) - q @ k.mT, -1) @ v,
    "a cap on keys of one sequence": lambda q, k, v: torch.softmax(torch.tanh(
        q @ k[:1].mT), -1) @ v,
    "scaled by tensors of keys": lambda q, k, v: torch.softmax(
        (q @ k.mT) * k.mean(-1)[:, :, None], -1) @ v,
    "masked, then scaled by a tensor": lambda q, k, v: torch.softmax(
        (q @ k.mT + _mask(q, k) * 1e-38) * q.std(), -1) @ v,
    "capped, then scaled by a tensor": lambda q, k, v: torch.softmax(
        torch.tanh(q @ k.mT) * q.std(), -1) @ v,
    "an inner dropout": lambda q, k, v: torch.softmax(torch.nn.functional.dropout(
        q @ k.transpose(-1, -2), 1e-9), -1) @ v,
    "filled with a small number": lambda q, k, v: torch.softmax(
        (q @ k.transpose(-1, -2)).masked_fill(_mask(q, k) < 0, -1.0), -1) @ v,
    "a first column that is dropped": lambda q, k, v: torch.softmax(_join_sinks(
        q, q @ k.transpose(-1, -2)), -1)[..., 1:] @ v,
    "scores less something": lambda q, k, v: torch.softmax(_join_sinks(
        q, q @ k.transpose(-1, -2)) - q.mean(-1, True), -1)[..., :-1] @ v,
    "nothing but a softmax": lambda q, k, v: torch.softmax(q + k, -1) @ v[:, :, :16],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_out(without_inductor, name):
    found = check(WRITTEN[name], *make_qkv(grad=True), fullgraph=True)
    if name == "grouped":
        explained = fovea.explain(found, *make_qkv(grad=True, seed=1))
        assert explained.operands[1].shape == (None, 2, None, 16)


@pytest.mark.parametrize("name", [
    "scaled in place", "capped", "sinks", "joined heads", "scaled keys",
    "masks of divided heads", "einsum of other orders"])
def test_written_out_dynamically(without_inductor, name):
    """Other sizes need no other kernel."""
    from fovea import _operator
    compiled = check(WRITTEN[name], *make_qkv(grad=True), fullgraph=True, dynamic=True)
    before = len(_operator._forwards), len(_operator._pairs)
    for length in (9, 17):
        inputs = make_qkv(length, length, grad=True)
        compare(compiled(*inputs), WRITTEN[name](*inputs).double(), 2e-6)
    assert before == (len(_operator._forwards), len(_operator._pairs))


@pytest.mark.parametrize("name", OTHER)
def test_written_otherwise(without_inductor, name):
    check(OTHER[name], *make_qkv(grad=True), kernels=0, fullgraph=True)


@pytest.mark.parametrize("implementation", ["eager", "fovea"])
def test_model_of_transformers(without_inductor, implementation):
    """Its eager attention, both layers; and with Fovea's masks, which Dynamo traces,
    in one graph."""
    transformers = pytest.importorskip("transformers")
    import fovea.transformers
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    model.config.use_cache = False
    tokens = torch.arange(24).reshape(2, 12)
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0
    expected = model(tokens, attention_mask=mask).logits
    model.set_attn_implementation(implementation)
    compiled = torch.compile(model, backend="fovea", fullgraph=True)
    found = fovea.explain(lambda: compiled(tokens, attention_mask=mask).logits)
    assert len(found.kernels) == 1
    assert found.operands[1].shape == (None, 2, None, 8)
    keep = mask.bool()
    compare(found.result[keep], expected[keep].double(), 2e-5)


@pytest.mark.parametrize("kind", ["Llama", "Gemma3"])
def test_cache_of_transformers(without_inductor, kind):
    """One that a model makes in the call is a part of the one graph, of all layers; a
    step of decoding takes it from there."""
    transformers = pytest.importorskip("transformers")
    import fovea.transformers
    name = "Gemma3Text" if kind == "Gemma3" else kind
    config = getattr(transformers, f"{name}Config")(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        attn_implementation="fovea")
    config.sliding_window = 5
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    tokens = torch.arange(24).reshape(2, 12)
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0
    torch._dynamo.utils.counters.clear()
    with torch.no_grad():
        compiled = torch.compile(model, backend="fovea", fullgraph=True)
        found = compiled(tokens[:, :11], attention_mask=mask[:, :11], use_cache=True)
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
        model.set_attn_implementation("eager")
        expected = model(tokens[:, :11], attention_mask=mask[:, :11], use_cache=True)
        keep = mask[:, :11].bool()
        compare(found.logits[keep], expected.logits[keep].double(), 2e-5)
        assert len(found.past_key_values.layers) == 3
        for one, other in zip(found.past_key_values.layers,
                              expected.past_key_values.layers):
            assert one.is_initialized and one.dtype == other.dtype
            assert one.get_seq_length() == other.get_seq_length() == 11
        # Keys and values of padding are other ones behind the first layer.
        last, wanted = (model(tokens[:, 11:], attention_mask=mask,
                              past_key_values=x.past_key_values).logits
                        for x in (found, expected))
    compare(last, wanted.double(), 2e-5)

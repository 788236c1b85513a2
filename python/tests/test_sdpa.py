# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention and scaled_dot_product_attention, against PyTorch in f64."""

import math

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from mods import DEVICE, make_qkv, on_device, randn
from test_flex import check_gradients, compare
from torch.nn.functional import scaled_dot_product_attention as theirs


def expect(q, k, v, keep=None, bias=None, softcap=None, sinks=None, scale=None,
           score_mod=None):
    """The output and log-sum-exp of operands [B, H, S, D], in f64."""
    q, k, v = (x.double() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[-1]**-0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.double()
    if score_mod is not None:
        scores = score_mod(scores)
    if keep is not None:
        scores = torch.where(keep, scores, -math.inf)
    if sinks is not None:
        column = sinks.double()[:, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], -1)
    lse = torch.logsumexp(scores, -1)
    weights = torch.where(torch.isfinite(lse)[..., None],
                          torch.exp(scores - lse.nan_to_num()[..., None]), 0)
    return weights[..., :k.shape[2]] @ v, lse


QUERIES, KEYS = 9, 14
I = torch.arange(QUERIES, device=DEVICE)[:, None]
J = torch.arange(KEYS, device=DEVICE)[None]
START = torch.tensor([2, 5], device=DEVICE)
LENGTHS = torch.tensor([3, 0], device=DEVICE)


@pytest.mark.parametrize("options, keep", [
    ({"causal": True}, I >= J),
    ({"causal": True, "q_offset": 5}, I + 5 >= J),
    ({"causal": True, "window": 3}, (I >= J) & (I - J < 3)),
    ({"window": 3}, (I - J).abs() < 3),
    ({"window": (4, 2)}, (I - J <= 4) & (J - I <= 2)),
    ({"window": (-1, 2), "q_offset": 1}, J - I - 1 <= 2),
    ({"window": [2, -1]}, I - J <= 2),
    ({"causal": True, "q_offset": START},
     I + START[:, None, None, None] >= J),
    ({"causal": True, "q_offset": torch.tensor(4)}, I + 4 >= J),
    ({"kv_lengths": LENGTHS}, J < LENGTHS[:, None, None, None]),
    ({"mask_mod": lambda b, h, i, j: (i + j) % 2 == 0, "causal": True},
     (I >= J) & ((I + J) % 2 == 0)),
], ids=lambda x: ",".join(x) if isinstance(x, dict) else "")
def test_masks(options, keep):
    q, k, v = make_qkv(QUERIES, KEYS, kv_heads=2)
    output, lse = fovea.attention(q, k, v, **options, return_lse=True)
    expected = expect(q, k, v, keep)
    compare(output, expected[0])
    compare(lse, expected[1])


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_everything(layout):
    """All options at once, with gradients, in both layouts."""
    q, k, v = (x.requires_grad_() for x in make_qkv(QUERIES, KEYS, kv_heads=2))
    bias = randn(4, 1, KEYS, seed=1).requires_grad_()
    sinks = randn(4, seed=2).requires_grad_()
    gain = torch.tensor(0.7).requires_grad_()
    lengths = torch.tensor([KEYS, 6])
    given = [q, k, v] if layout == "bhsd" else [
        x.transpose(1, 2) for x in (q, k, v)]
    output, lse = fovea.attention(
        *given, scale=0.4, causal=True, window=6, softcap=2.0, sinks=sinks,
        bias=bias, score_mod=lambda s, b, h, i, j: s * gain, q_offset=3,
        kv_lengths=lengths, layout=layout, return_lse=True)
    assert output.shape == given[0].shape
    assert output.stride() == given[0].stride()
    if layout == "bshd":
        output = output.transpose(1, 2)
    keep = (I + 3 >= J) & (I + 3 - J < 6) & (J < lengths[:, None, None, None])
    expected = expect(q, k, v, keep, bias, 2.0, sinks, 0.4, lambda s: s * gain)
    compare(output, expected[0])
    compare(lse, expected[1])
    check_gradients([q, k, v, bias, sinks, gain], (output, lse), expected)


@pytest.mark.parametrize("value_dim", [8, 16, 32])
@pytest.mark.parametrize("queries, keys", [(1, 4), (5, 4), (5, 70), (8, 4)])
def test_few_queries_of_a_group(queries, keys, value_dim):
    """On a GPU, a head's statistics are read before a later head's take their
    place, though many reads of shared memory are in front of these."""
    q, k, v = (x.requires_grad_() for x in (
        randn(3, 4, queries, 64), randn(3, 1, keys, 64, seed=1),
        randn(3, 1, keys, value_dim, seed=2)))
    output = fovea.attention(q, k, v)
    expected = expect(q, k, v)[0]
    compare(output, expected)
    check_gradients([q, k, v], [output], [expected])


def biases(queries, keys, dtype):
    """Biases of two batches and four heads, whose memory TMA may copy or not."""
    return {
        "whole": randn(2, 4, queries, keys, dtype=dtype),
        "of all heads": randn(1, 1, queries, keys, dtype=dtype).expand(2, 4, -1, -1),
        "of keys": randn(2, 1, 1, keys, dtype=dtype).expand(-1, -1, queries, -1),
        "transposed": randn(1, 4, keys, queries, dtype=dtype).mT,
        "from the third key on": randn(1, 4, queries, keys + 3, dtype=dtype)[..., 3:],
        "every second row": randn(2, 1, 2 * queries, keys, dtype=dtype)[:, :, ::2],
    }


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 2e-5),
                                          (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("queries, keys", [(70, 136), (33, 67)])
@pytest.mark.parametrize("name", biases(1, 1, torch.float32))
def test_gradients_beside_a_bias(name, queries, keys, dtype, bound):
    q, k, v = (randn(2, h, n, 64, seed=seed, dtype=dtype).requires_grad_()
               for seed, (h, n) in enumerate([(4, queries), (2, keys), (2, keys)]))
    bias = biases(queries, keys, dtype)[name]
    output = fovea.attention(q, k, v, bias=bias)
    expected = expect(q, k, v, bias=bias)[0]
    compare(output, expected, bound)
    check_gradients([q, k, v], [output], [expected], bound)
    keep = bias > -1
    output = fovea.attention(q, k, v, bias=keep)
    expected = expect(q, k, v, keep)[0]
    check_gradients([q, k, v], [output], [expected], bound)


def test_offsets_need_no_other_kernel():
    from fovea import _operator
    q, k, v = make_qkv(1, 50)
    fovea.attention(q, k, v, causal=True, q_offset=7)
    before = len(_operator._forwards)
    for offset in (8, 20, 49):
        output = fovea.attention(q, k, v, causal=True, q_offset=offset)
        compare(output, expect(q, k, v, torch.arange(50) <= offset)[0])
    assert len(_operator._forwards) == before


def test_bias_of_booleans():
    q, k, v = make_qkv(QUERIES, KEYS)
    keep = randn(2, 1, 1, KEYS) < 0
    compare(fovea.attention(q, k, v, bias=keep), expect(q, k, v, keep)[0])


def test_keys_behind_the_length_are_not_read():
    q, k, v = make_qkv(1, 20)
    expected = expect(q, k, v, torch.arange(20) < 7)[0]
    k[:, :, 7:] = v[:, :, 7:] = math.nan
    compare(fovea.attention(q, k, v, kv_lengths=torch.tensor([7, 7])), expected)


@pytest.mark.parametrize("options, kind, message", [
    ({"layout": "sbhd"}, ValueError, "layout: expected 'bhsd' or 'bshd', got 'sb"),
    ({"window": 0}, ValueError, "window: expected 1 or more, got 0"),
    ({"window": (1, 2, 3)}, ValueError, r"expected a number or \(left, right\)"),
    ({"window": 1.5}, TypeError, "float"),
    ({"softcap": 0}, ValueError, "softcap: expected a number above 0, got 0"),
    ({"sinks": torch.zeros(3)}, ValueError,
     r"sinks: expected a tensor of floats of shape \(4,\), got one of "
     r"torch.float32 of shape \(3,\)"),
    ({"kv_lengths": torch.zeros(2)}, ValueError,
     "kv_lengths: expected a tensor of integers of shape"),
    ({"kv_lengths": [3, 4]}, ValueError, "of shape .2,., got list"),
    ({"q_offset": torch.zeros(3).long()}, ValueError, "q_offset: expected a"),
    ({"bias": torch.zeros(5, 5)}, RuntimeError,
     r"bias: expected a shape that broadcasts to \(2, 4, 9, 14\), got \(5, 5\)"),
    ({"bias": 3.0}, TypeError, "bias: expected a tensor, got float"),
    ({"bias": torch.zeros(14, device="meta")}, ValueError,
     "bias: expected a tensor on .*, as the query is, got one on meta"),
    ({"sinks": torch.zeros(4, device="meta")}, ValueError, "sinks: .* on meta"),
    ({"kv_lengths": torch.zeros(2, dtype=torch.int32, device="meta")}, ValueError,
     "kv_lengths: .* on meta"),
    ({"q_offset": torch.zeros(2, dtype=torch.int32, device="meta")}, ValueError,
     "q_offset: .* on meta"),
    ({"scale": "much"}, TypeError, "scale: expected a number, got str"),
    ({"scale": math.nan}, ValueError, "scale: expected a finite number, got nan"),
    ({"mask_mod": 3}, TypeError, "mask_mod: expected a function, got int"),
    ({"q": 3, "sinks": torch.zeros(4)}, TypeError, "q: expected a tensor, got int"),
    ({"v": [1], "layout": "bshd"}, TypeError, "v: expected a tensor, got list"),
    ({"k": torch.zeros(2, 3), "layout": "bshd"}, ValueError,
     r"k: expected a tensor of rank 4, got \(2, 3\)"),
])
def test_errors(options, kind, message):
    arguments = {**dict(zip("qkv", make_qkv(QUERIES, KEYS))), **options}
    with pytest.raises(kind, match=message):
        fovea.attention(**arguments)


#--- scaled_dot_product_attention ----------------------------------------------

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples(dtype):
    """PyTorch's own samples, forward and backward."""
    # What PyTorch's own tests need, a GPU machine may lack.
    database = pytest.importorskip(
        "torch.testing._internal.common_methods_invocations",
        exc_type=ImportError)
    operation = next(op for op in database.op_db
                     if op.name == "nn.functional.scaled_dot_product_attention")
    count = 0
    for sample in operation.sample_inputs(DEVICE, dtype, requires_grad=True):
        inputs = [sample.input, *sample.args]
        if sample.kwargs.get("dropout_p"):
            # Other elements are dropped: only the shape is equal.
            assert fovea.scaled_dot_product_attention(
                *inputs, **sample.kwargs).shape == theirs(
                    *inputs, **sample.kwargs).shape
            continue
        count += 1
        output = fovea.scaled_dot_product_attention(*inputs, **sample.kwargs)
        wide = [x.detach().double().requires_grad_() for x in inputs]
        options = dict(sample.kwargs)
        if torch.is_tensor(options.get("attn_mask")) and (
                options["attn_mask"].is_floating_point()):
            options["attn_mask"] = options["attn_mask"].double()
        expected = theirs(*wide, **options)
        bound = 1e-5 if dtype == torch.float32 else 1e-12
        compare(output, expected, bound)
        weight = randn(*output.shape, dtype=torch.float64)
        for one, other in zip(
                torch.autograd.grad((output * weight).sum(), inputs),
                torch.autograd.grad((expected * weight).sum(), wide)):
            assert one.dtype == dtype
            compare(one, other, 4 * bound)
    assert count > 10


def pick(*shape):
    return randn(*shape, seed=sum(shape))


@pytest.mark.parametrize("query, key, mask, options", [
    ((5, 8), (7, 8), (5, 7), {}),
    ((3, 5, 8), (3, 7, 8), (3, 1, 7), {}),
    ((3, 5, 8), (1, 7, 8), None, {"is_causal": True}),
    ((2, 4, 5, 8), (4, 7, 8), (4, 1, 1), {}),
    ((4, 5, 8), (2, 4, 7, 8), (2, 1, 5, 7), {"scale": 0.1}),
    ((2, 4, 5, 8), (2, 1, 7, 8), (1, 7), {}),
    ((1, 4, 5, 8), (3, 4, 7, 8), (3, 1, 5, 1), {"is_causal": True}),
    ((2, 3, 4, 5, 8), (3, 4, 7, 8), (2, 1, 4, 5, 7), {}),
    ((2, 3, 4, 5, 8), (2, 1, 4, 7, 8), (3, 1, 5, 7), {}),
    ((2, 6, 5, 8), (2, 3, 7, 8), (2, 6, 5, 7), {"enable_gqa": True}),
    ((6, 5, 8), (2, 7, 8), (6, 1, 7), {"enable_gqa": True}),
    ((2, 4, 5, 8), (2, 4, 0, 8), None, {}),
], ids=str)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_shapes(query, key, mask, options, kind):
    q, k, v = pick(*query), pick(*key), pick(*key[:-1], 6)
    if mask is not None:
        mask = pick(*mask)
        mask = mask > -0.5 if kind == "bool" else mask
    elif kind == "bool":
        return
    tensors = [q, k, v] + ([mask] if kind == "float" and mask is not None else [])
    for x in tensors:
        x.requires_grad_()
    actual = fovea.scaled_dot_product_attention(q, k, v, mask, **options)
    wide = mask.double() if mask is not None and kind == "float" else mask
    if wide is not None and options.get("is_causal"):
        # PyTorch's reference has one or the other.
        options = {**options, "is_causal": False}
        causal = torch.ones(query[-2], key[-2]).tril().bool()
        wide = wide & causal if kind == "bool" else torch.where(
            causal, wide, -math.inf)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = theirs(q.double(), k.double(), v.double(), wide, **options)
    compare(actual, expected)
    if expected.numel() and key[-2]:
        check_gradients(tensors, (actual,), (expected,))


def test_autocast():
    q, k, v = make_qkv()
    with torch.autocast(DEVICE, torch.bfloat16):
        output = fovea.scaled_dot_product_attention(q, k.bfloat16(), v)
        assert output.dtype == theirs(q, k.bfloat16(), v).dtype
    compare(output, expect(q, k, v)[0], 2e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_autocast_of_masks(dtype):
    """A mask of floats may be of any type that autocast takes for its own, in calls
    like ones before, too."""
    q, k, v = make_qkv(50, 50, dtype=torch.float16)
    mask = randn(50, 50, dtype=dtype)
    with torch.autocast(DEVICE, torch.bfloat16):
        if dtype == torch.float64:
            with pytest.raises(RuntimeError, match="Expected attn_mask dtype"):
                fovea.scaled_dot_product_attention(q, k, v, mask)
            return
        found = [fovea.scaled_dot_product_attention(q, k, v, mask) for _ in range(3)]
    expected, _ = expect(*(x.to(torch.bfloat16) for x in (q, k, v)), bias=mask)
    for output in found:
        assert output.dtype == torch.bfloat16
        compare(output, expected, 2e-2)



def test_dropout():
    q, k, _ = make_qkv(20, 30)
    identity = torch.eye(30).expand(2, 4, 30, 30)
    torch.manual_seed(4)
    kept = fovea.scaled_dot_product_attention(q, k, identity, dropout_p=0.5)
    torch.manual_seed(4)
    assert torch.equal(kept, fovea.scaled_dot_product_attention(
        q, k, identity, dropout_p=0.5))
    weights = expect(q, k, identity)[0]
    compare(kept, torch.where(kept == 0, 0, weights * 2))
    assert 0.4 < (kept == 0).float().mean() < 0.6
    assert not fovea.scaled_dot_product_attention(q, k, identity,
                                                  dropout_p=1.0).any()


@pytest.mark.parametrize("change", [
    {"key": torch.zeros(2, 4, 5, 8).double()},
    {"attn_mask": torch.ones(5, 5).long()},
    {"attn_mask": torch.ones(5, 5).half()},
    {"key": torch.zeros(2, 4, 5, 8, device="meta")},
    {"query": torch.zeros(8)},
    {"dropout_p": 1.5},
    {"value": [1]},
    {"key": torch.zeros(2, 2, 5, 8), "value": torch.zeros(2, 2, 5, 8)},
    {"attn_mask": torch.ones(4, 5).bool()},
], ids=str)
def test_errors_are_those_of_pytorch(change):
    """The kind of the error, and the first words of its message."""
    arguments = {name: torch.zeros(2, 4, 5, 8) for name in
                 ("query", "key", "value")} | change
    # The errors are those of the PyTorch that these functions were written for.
    is_known = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
    try:
        theirs(**arguments)
        expected = None
    except (RuntimeError, TypeError) as error:
        expected = error
    assert expected or not is_known
    with pytest.raises(type(expected) if expected else RuntimeError) as actual:
        fovea.scaled_dot_product_attention(**arguments)
    if is_known and "size of tensor" not in str(expected):
        assert str(actual.value)[:40] == str(expected)[:40]

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fovea.jax against the same mods over all scores in float64."""

import functools
import gc
import re
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax", "0.10")

import jax.numpy as jnp

import fovea
import fovea.jax
from fovea.jax import dot_product_attention, flex_attention

# A GPU's own would be that of 11 bits.
jax.config.update("jax_default_matmul_precision", "highest")

B, H, KH, L, S, E, EV = 2, 4, 2, 19, 27, 16, 24


def make(shape, seed, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def inputs(dtype=np.float32):
    return (make((B, L, H, E), 1, dtype), make((B, S, KH, E), 2, dtype),
            make((B, S, KH, EV), 3, dtype))


def dense(query, key, value, score_mod=None, mask_mod=None, scale=None):
    """All scores, in the types of the operands: output [B, L, H, EV] and lse."""
    group = query.shape[2] // key.shape[2]
    key, value = (jnp.repeat(x, group, 2) for x in (key, value))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
    scores = scores * (query.shape[-1]**-0.5 if scale is None else scale)
    place = jnp.meshgrid(*(jnp.arange(size, dtype=jnp.int32)
                           for size in scores.shape), indexing="ij")

    def over_all(mod, *operands):
        flat = [x.reshape(-1) for x in operands]
        return jax.vmap(mod)(*flat).reshape(scores.shape)

    if score_mod:
        scores = over_all(score_mod, scores, *place)
    if mask_mod:
        scores = jnp.where(over_all(mask_mod, *place), scores, -jnp.inf)
    lse = jax.nn.logsumexp(scores, -1)
    weights = jnp.exp(scores - jnp.where(jnp.isfinite(lse), lse, 0.0)[..., None])
    return (jnp.einsum("bhqk,bkhd->bqhd", weights, value),
            lse.transpose(0, 2, 1))


def dense64(*operands, **options):
    with jax.enable_x64(True):
        wide = [x.astype(jnp.float64) for x in operands[:3]]
        return tuple(np.asarray(x)
                     for x in dense(*wide, *operands[3:], **options))


def check(found, expected, tolerance=2e-6):
    found = np.asarray(found, np.float64)
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    bound = tolerance * max(np.abs(expected[finite]).max(initial=0), 1)
    assert np.abs(found[finite] - expected[finite]).max(initial=0) <= bound


BIAS = make((H, L, S), 4)
SLOPES = make((H,), 5)
RELATIVE = make((2 * S,), 6)
TABLE = make((8, 5), 7)
IDS = jnp.asarray(np.random.default_rng(8).integers(0, 3, (B, S)), jnp.int32)
# Some of these are no indices of TABLE.
WILD = jnp.asarray(np.random.default_rng(9).integers(-12, 12, (S,)), jnp.int16)
FLAGS = jnp.asarray(np.random.default_rng(10).random((L, S)) > 0.4)
BYTES = jnp.asarray(np.random.default_rng(11).integers(0, 256, (S,)), jnp.uint8)

SCORE_MODS = {
    "softcap": lambda s, b, h, i, j: 20 * jnp.tanh(s / 20),
    "alibi": lambda s, b, h, i, j: s - SLOPES[h] * abs(i - j),
    "bias": lambda s, b, h, i, j: s + BIAS[h, i, j],
    "bias, twice": lambda s, b, h, i, j: s + BIAS[h][i][j] * BIAS[h, i, 0],
    "relative": lambda s, b, h, i, j: s + RELATIVE[i - j + S],
    "from the end": lambda s, b, h, i, j: s + RELATIVE[-1 - i],
    "clamped": lambda s, b, h, i, j: s + TABLE[WILD[j], 2],
    "filled": lambda s, b, h, i, j: s + jnp.nan_to_num(
        jnp.take(TABLE[:, 1], jnp.minimum(WILD[j], 9), mode="fill")),
    "clipped": lambda s, b, h, i, j: s + jnp.take(SLOPES, i - 4, mode="clip"),
    "gathered": lambda s, b, h, i, j: s + TABLE[
        jnp.stack([h, i % 8]), jnp.array([1, 3])].sum(),
    "row": lambda s, b, h, i, j: s + jnp.dot(TABLE[h], TABLE[j % 8]),
    "matrix": lambda s, b, h, i, j: s + (TABLE[:5] @ TABLE[h])[2],
    "norm": lambda s, b, h, i, j: s * jnp.max(jnp.flip(TABLE[h + 1, 1:4])),
    "gelu": lambda s, b, h, i, j: jax.nn.gelu(s) + jax.nn.silu(s),
    "powers": lambda s, b, h, i, j: s**3 / 7 + jnp.abs(s + 2)**0.7 + (s + 9)**-2,
    "divided": lambda s, b, h, i, j: s + ((i - j) // 3 + (i - 9) % 4) / 5,
    "by one that is negative": lambda s, b, h, i, j: s + (
        (i - j) // (h - 7) - (j - i) % (h - 9)) / 5,
    "truncated": lambda s, b, h, i, j: s + (
        jax.lax.div(i - j, jnp.int32(4)) + jax.lax.rem(j - i, jnp.int32(3))) / 5,
    "sign": lambda s, b, h, i, j: s + jnp.sign(i - j) + jnp.sign(s),
    "bits": lambda s, b, h, i, j: s + ((i ^ j) & 5 | (h << 2) >> 1) / 9,
    "bytes": lambda s, b, h, i, j: s + BYTES[j] / 200,
    "rounded": lambda s, b, h, i, j: jnp.round(s * 4) + jnp.floor(s) / 3,
    "selected": lambda s, b, h, i, j: jnp.select(
        [i > j, i < j], [s * 2, s / 2], s + 1),
    "clip": lambda s, b, h, i, j: jnp.clip(s, -1.5, 0.5 + h),
    "logistic": lambda s, b, h, i, j: jax.nn.sigmoid(s) * jnp.log1p(jnp.exp(s)),
    "cast": lambda s, b, h, i, j: s.astype(jnp.int32) + s + (i > 3),
    "identity": lambda s, b, h, i, j: s,
}

MASK_MODS = {
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i >= j) & (i - j < 5),
    "documents": lambda b, h, i, j: IDS[b, i] == IDS[b, j],
    "flags": lambda b, h, i, j: FLAGS[i, j] | (h == 1),
    "blocks": lambda b, h, i, j: i // 4 >= j // 4,
    "empty rows": lambda b, h, i, j: (i % 3 > 0) & (j < 20),
    "any": lambda b, h, i, j: jnp.any(IDS[b, :4] == j % 3),
    "not": lambda b, h, i, j: ~jnp.logical_xor(i > j, h < 2),
    "all": lambda b, h, i, j: i == i,
}


@pytest.mark.parametrize("name", SCORE_MODS)
def test_score_mods(name):
    mod = SCORE_MODS[name]
    found, lse = flex_attention(*inputs(), mod, return_lse=True)
    expected, expected_lse = dense64(*inputs(), mod)
    check(found, expected, 5e-6)
    check(lse, expected_lse, 5e-6)


@pytest.mark.parametrize("name", MASK_MODS)
def test_mask_mods(name):
    mod = MASK_MODS[name]
    found, lse = jax.jit(lambda *x: flex_attention(
        *x, None, mod, scale=0.3, return_lse=True))(*inputs())
    expected, expected_lse = dense64(*inputs(), None, mod, scale=0.3)
    check(found, expected)
    check(lse, expected_lse)


def test_scales():
    """Numbers, and arrays with gradients, of which another needs no other text."""
    mod = lambda score, b, h, i, j: jnp.tanh(score) - 0.1 * j
    operands = inputs()
    texts = set()
    for scale in (0.3, 2, -0.4, 0.0, 1e-30):
        for score_mod in (None, mod):
            check(flex_attention(*operands, score_mod, scale=scale),
                  dense64(*operands, score_mod, scale=scale)[0], 5e-6)
        texts.update(re.findall(r"attn.attention .*? scale\S*", jax.jit(
            lambda *x: flex_attention(*x, mod, scale=scale)).lower(
                *operands).as_text()))
    assert len(texts) == 1
    compiled = jax.jit(jax.value_and_grad(
        lambda scale, *x: (flex_attention(*x, mod, scale=scale)**2).sum(), (0, 1)))
    exact = jax.value_and_grad(
        lambda scale, *x: (dense(*x, mod, scale=scale)[0]**2).sum(), (0, 1))
    for scale in (0.3, -0.4, 0.0):
        found, expected = (function(jnp.float32(scale), *operands)
                           for function in (compiled, exact))
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert compiled._cache_size() == 1


def gradients(attend, query, key, value, bias, slopes):
    """Gradients of a function of output and lse."""
    def loss(query, key, value, bias, slopes):
        output, lse = attend(
            query, key, value,
            lambda s, b, h, i, j: jnp.tanh(s) * slopes[h] + bias[h, i, j],
            lambda b, h, i, j: (i >= j - 4) & (IDS[b, i] == IDS[b, j]))
        weight = jnp.cos(jnp.arange(output.size)).reshape(output.shape)
        # The lse of an empty row is infinite.
        lse = jnp.where(jnp.isfinite(lse), lse, 0.0)
        return (output * weight).sum() + (lse * lse).sum() / 10
    return jax.grad(loss, range(5))(query, key, value, bias, slopes)


def gradients64(*operands):
    with jax.enable_x64(True):
        found = gradients(dense, *(x.astype(jnp.float64) for x in operands))
        return [np.asarray(x) for x in found]


@pytest.mark.parametrize("transform", (lambda f: f, jax.jit, jax.checkpoint),
                         ids=("eager", "jit", "checkpoint"))
def test_gradients(transform):
    operands = (*inputs(), BIAS, SLOPES)
    attend = functools.partial(flex_attention, return_lse=True)
    found = transform(functools.partial(gradients, attend))(*operands)
    for one, expected in zip(found, gradients64(*operands)):
        check(one, expected, 1e-5)


def test_gradient_of_the_output_alone():
    query, key, value = inputs()
    found = jax.grad(lambda q: (flex_attention(
        q, key, value, SCORE_MODS["bias"])**2).sum())(query)
    with jax.enable_x64(True):
        wide = [x.astype(jnp.float64) for x in (query, key, value)]
        expected = np.asarray(jax.grad(lambda q: (dense(
            q, *wide[1:], SCORE_MODS["bias"])[0]**2).sum())(wide[0]))
    check(found, expected, 1e-5)


def test_captures_that_need_no_gradient_get_none(monkeypatch):
    texts = []
    run = fovea.jax._run
    monkeypatch.setattr(fovea.jax, "_run", lambda text, *rest: (
        texts.append(text), run(text, *rest))[1])

    def loss(query, bias):
        return flex_attention(query, *inputs()[1:], lambda s, b, h, i, j:
                              s + bias[h, i, j] * SLOPES[h]).sum()

    jax.grad(loss, (0, 1))(inputs()[0], BIAS)
    captures = [line for line in texts[-1].splitlines()
                if "@attention_backward" in line]
    assert "%capture0: tensor<4x?x?xf32>" in captures[0]
    assert "%capture1: tensor<4xi32>" in captures[0]


@pytest.mark.parametrize("dtype, tolerance", (
    (jnp.float16, 2e-3), (jnp.bfloat16, 2e-2)))
def test_types_of_16_bits(dtype, tolerance):
    operands = inputs(dtype)
    bias = BIAS.astype(dtype)

    def mod(s, b, h, i, j):
        return s + bias[h, i, j]

    found, lse = flex_attention(*operands, mod, return_lse=True)
    assert found.dtype == dtype and lse.dtype == jnp.float32
    expected, expected_lse = dense64(*operands, mod)
    check(found, expected, tolerance)
    check(lse, expected_lse, 1e-5)
    found = jax.grad(lambda q: flex_attention(q, *operands[1:], mod).sum())(
        operands[0])
    assert found.dtype == dtype


def test_f64():
    with jax.enable_x64(True):
        operands = inputs(np.float64)
        found, lse = flex_attention(*operands, return_lse=True)
        assert found.dtype == lse.dtype == jnp.float64
        expected, expected_lse = dense(*operands)
        check(found, np.asarray(expected), 1e-13)
        check(lse, np.asarray(expected_lse), 1e-13)
        operands += (BIAS.astype(jnp.float64), SLOPES.astype(jnp.float64))
        attend = functools.partial(flex_attention, return_lse=True)
        for one, expected in zip(gradients(attend, *operands),
                                 gradients64(*operands)):
            check(one, expected, 1e-12)


def test_layout():
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in inputs())
    found, lse = flex_attention(query, key, value, SCORE_MODS["bias"],
                                layout="bnth", return_lse=True)
    expected, expected_lse = dense64(*inputs(), SCORE_MODS["bias"])
    check(jnp.swapaxes(found, 1, 2), expected)
    check(jnp.swapaxes(lse, 1, 2), expected_lse)
    found = jax.grad(lambda k: (flex_attention(
        query, k, value, layout="bnth")**2).sum())(key)
    expected = jax.grad(lambda k: (flex_attention(
        inputs()[0], k, inputs()[2])**2).sum())(inputs()[1])
    np.testing.assert_array_equal(jnp.swapaxes(found, 1, 2), expected)


def test_vmap():
    query, key, value = inputs()
    many = jnp.stack([query, query * 2, -query])
    biases = jnp.stack([BIAS, BIAS + 1, BIAS * 2])

    def attend(query, bias):
        return flex_attention(query, key, value,
                              lambda s, b, h, i, j: s + bias[h, i, j])

    found = jax.vmap(attend)(many, biases)
    for at in range(3):
        np.testing.assert_array_equal(found[at], attend(many[at], biases[at]))
    found = jax.jit(jax.vmap(jax.grad(lambda *x: (attend(*x)**2).sum(), 1)))(
        many, biases)
    for at in range(3):
        np.testing.assert_array_equal(found[at], jax.grad(
            lambda *x: (attend(*x)**2).sum(), 1)(many[at], biases[at]))


def test_other_lengths_need_no_other_kernel():
    def trace(length):
        x = jax.ShapeDtypeStruct((B, length, H, E), jnp.float32)
        bias = jax.ShapeDtypeStruct((H, length, length), jnp.float32)
        texts = []
        jax.eval_shape(lambda bias: texts.append(fovea.jax.trace(
            lambda s, b, h, i, j: s + bias[h, i, j], MASK_MODS["causal"],
            query=x, key=x, value=x)), bias)
        return texts[0]
    # GPUs have other kernels for few queries.
    assert trace(70) == trace(1000)
    assert "tensor.extract %capture0[%h, %q, %kv]" in trace(70)


def test_nothing_holds_captured_arrays():
    bias = make((H, L, S), 12)
    alive = weakref.ref(bias)

    def attend(bias):
        return flex_attention(*inputs(), lambda s, b, h, i, j: s + bias[h, i, j],
                              lambda b, h, i, j: bias[h, i, j] > -1).sum()

    with jax.checking_leaks():
        jax.jit(attend)(bias)
        jax.grad(attend)(bias)
    attend(bias)
    del bias
    gc.collect()
    assert alive() is None


def test_no_elements():
    query, key, value = inputs()
    assert flex_attention(query[:0], key[:0], value[:0]).shape == (0, L, H, EV)
    found = flex_attention(query, key[:, :0], value[:, :0])
    np.testing.assert_array_equal(found, np.zeros((B, L, H, EV)))


def error_of(kind, *args, function=flex_attention, **options):
    with pytest.raises(kind) as caught:
        function(*args, **options)
    return str(caught.value)


def test_errors():
    q, k, v = inputs()
    refuse = functools.partial(error_of, ValueError)
    assert "layout: expected 'btnh' or 'bnth', got 'bhsd'" == refuse(
        q, k, v, layout="bhsd")
    assert "query: expected rank 4" in refuse(q[0], k, v)
    assert "key: expected the batch and the head size" in refuse(q, k[:1], v)
    assert "value: expected the batch, the length" in refuse(q, k, v[:, 1:])
    assert "key: expected a number of heads that divides query's 3, got 2" == (
        refuse(q[:, :, :3], k, v))
    assert "query, key and value: expected one type" in error_of(
        TypeError, q, k.astype(jnp.float16), v)
    assert "query: expected one of float16" in error_of(
        TypeError, q.astype(jnp.int32), k, v)
    assert "scale: expected a number, got an array of shape (1,)" in error_of(
        TypeError, q, k, v, scale=jnp.ones(1))
    assert "scale: expected a number of Python, got a traced array" in error_of(
        TypeError, 1.0, function=jax.jit(lambda s: fovea.jax.trace(
            query=q, key=k, value=v, scale=s)))
    refuse = functools.partial(refuse, function=dot_product_attention)
    assert "mask: expected a shape that broadcasts to" in refuse(
        q, k, v, mask=jnp.ones((3, 1, L, S), bool))
    assert "mask: expected booleans" in error_of(
        TypeError, q, k, v, mask=jnp.ones((1, 1, L, S)),
        function=dot_product_attention)
    assert "key_value_seq_lengths: expected integers of shape (2,)" in refuse(
        q, k, v, key_value_seq_lengths=jnp.ones(3, jnp.int32))
    assert "local_window_size: expected" in refuse(
        q, k, v, local_window_size=-1)


def test_what_cannot_be_traced_is_named_with_its_line():
    q, k, v = inputs()

    def sorts(score, b, h, i, j):
        return score + jnp.sort(TABLE[h])[0]

    message = error_of(fovea.TraceError, q, k, v, sorts)
    line = sorts.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in message
    assert "sort has no counterpart in a region" in message
    assert "cannot be unrolled; expected 1 to 1024 elements" in error_of(
        fovea.TraceError, q, k, v, lambda s, b, h, i, j: s + BIAS.sum())
    assert "mask_mod returns float32[]; expected an array of no dimensions, a " \
        "boolean" in error_of(fovea.TraceError, q, k, v, None,
                              lambda b, h, i, j: SLOPES[h])
    assert "score_mod returns float32[5]" in error_of(
        fovea.TraceError, q, k, v, lambda s, b, h, i, j: s + TABLE[h])


def test_a_wrong_call_is_an_error_of_xla():
    x = make((2, 3), 1)
    text = ("func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {\n"
            "  return %x : tensor<?x?xf32>\n}")

    def call(*operands, result=x, **attributes):
        return jax.ffi.ffi_call("fovea", jax.ShapeDtypeStruct(
            result.shape, result.dtype))(*operands, **attributes)

    zero = np.int64(0)
    np.testing.assert_array_equal(call(x, text=text, function=zero), x)

    def fails(*operands, **options):
        with pytest.raises(Exception) as caught:
            # A GPU's calls fail when they run.
            jax.block_until_ready(call(*operands, **options))
        return str(caught.value)

    assert "expected the attributes text, a string, and function" in fails(
        x, text=text)
    assert "there is no function 3 in the text" in fails(
        x, text=text, function=np.int64(3))
    assert "@f: expected 1 arguments and 1 results, got 2 and 1" in fails(
        x, x, text=text, function=zero)
    assert "argument 0: expected type 2 and rank 2" in fails(
        x.astype(jnp.int32), text=text, function=zero)
    assert "dimension 1 of a result is 3, but XLA's memory has 4" in fails(
        x, result=make((2, 4), 1), text=text, function=zero)
    assert "argument 0 of the text is writable; XLA's buffers are only read" in fails(
        x, text=text.replace("xf32>)", "xf32> {bufferization.writable = true})", 1),
        function=zero)
    assert "custom op 'nonsense' is unknown" in fails(
        x, text="nonsense", function=zero)


CASES = {
    "plain": {},
    "scale": {"scale": 0.2},
    "causal": {"is_causal": True},
    "window": {"local_window_size": 3},
    "window, two sides": {"local_window_size": (4, 1), "is_causal": True},
    "bias": {"bias": BIAS[None]},
    "bias of one row": {"bias": BIAS[None, :, :1]},
    "mask": {"mask": FLAGS[None, None]},
    "bias of rank 3 and mask of rank 1": {"bias": BIAS, "mask": FLAGS[0]},
    "lengths": {"query_seq_lengths": jnp.array([5, L], jnp.int32),
                "key_value_seq_lengths": jnp.array([S, 9], jnp.int32)},
    "all": {"bias": BIAS[None], "mask": FLAGS[None, None], "is_causal": True,
            "key_value_seq_lengths": jnp.array([S, 9], jnp.int32), "scale": 0.4},
}


def square_inputs():
    """As jax.nn has them: values are of the keys' size."""
    query, key, value = inputs()
    return query, key, value[..., :E]


@pytest.mark.parametrize("name", CASES)
def test_dot_product_attention(name):
    options = CASES[name]
    theirs = functools.partial(jax.nn.dot_product_attention, **options)
    with jax.enable_x64(True):
        wide = [x.astype(jnp.float64) for x in square_inputs()]
        expected = np.asarray(theirs(*wide))
    found = dot_product_attention(*square_inputs(), **options)
    # Theirs is a mean of the values where a row has no score.
    is_empty = np.asarray(found == 0).all(-1, keepdims=True)
    assert is_empty.mean() < 0.5
    check(found, np.where(is_empty, 0, expected))
    query, key, value = (x[0] for x in square_inputs())
    if not any("lengths" in option for option in options):
        single = dot_product_attention(query, key, value, **options)
        np.testing.assert_array_equal(single, found[0])
        assert dot_product_attention(query, key, value, return_residual=True,
                                     **options)[1].shape == (L, H)


def test_residual():
    """As JAX has it: of the query's type, and a constant to a gradient."""
    query, key, value = (x.astype(jnp.bfloat16) for x in square_inputs())

    def loss(function, query):
        output, residual = function(query, key, value, return_residual=True)
        return (output**2).sum() + (residual**2).sum(), residual

    found, expected = (
        jax.grad(functools.partial(loss, function), has_aux=True)(query)
        for function in (dot_product_attention, jax.nn.dot_product_attention))
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype == jnp.bfloat16
        check(one.astype(jnp.float32), np.asarray(other, np.float32), 4e-2)


def test_gradient_of_a_bias():
    query, key, value = square_inputs()
    bias = BIAS[None, :, :1]

    def loss(function, bias):
        return (function(query, key, value, bias, is_causal=True)**2).sum()

    check(jax.grad(functools.partial(loss, dot_product_attention))(bias),
          np.asarray(jax.grad(functools.partial(
              loss, jax.nn.dot_product_attention))(bias)), 1e-5)


def test_beside_pytorch():
    torch = pytest.importorskip("torch", "2.11")
    # Sets types for all of the process that asks ctypes for the same function.
    jax.ffi.pycapsule(1)
    x = torch.randn(1, 2, 5, 8)
    found = fovea.flex_attention(x, x, x)
    expected = flex_attention(*[jnp.asarray(x.numpy())] * 3, layout="bnth")
    np.testing.assert_allclose(expected, found.numpy(), atol=1e-6)

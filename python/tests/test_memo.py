# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that are not traced again: the same results, from what is given now."""

import math

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from fovea import _attention, _flash, _flash_options, _flex
from fovea._memo import Arguments
from mods import DEVICE, make_qkv, randn, reference
from test_flex import compare
from torch.nn.attention import SDPBackend, sdpa_kernel

sdpa = torch.nn.functional.scaled_dot_product_attention


@pytest.fixture
def traced(monkeypatch):
    """The number of traces so far, in a list; nothing is known at first."""
    for module in (_attention, _flash_options, _flex):
        monkeypatch.setattr(module._memo, "kinds", {})
    monkeypatch.setattr(Arguments, "kept", {})
    count = [0]
    trace = _flex.Tracer.trace

    def counted(self, *mods):
        count[0] += 1
        return trace(self, *mods)

    monkeypatch.setattr(_flex.Tracer, "trace", counted)
    return count


def causal_from(offset, q, k):
    i, j = (torch.arange(x.shape[2], device=DEVICE) for x in (q, k))
    return i[:, None] + offset >= j


def test_sdpa(traced):
    """Traced once for each kind of call, whatever the numbers in its tensors."""
    for _ in range(3):
        q, k, v = make_qkv(7, 9)
        compare(fovea.scaled_dot_product_attention(q, k, v, is_causal=True),
                sdpa(q, k, v, is_causal=True).double())
        for mask in (randn(7, 9), torch.rand(2, 1, 7, 9, device=DEVICE) > 0.3):
            compare(fovea.scaled_dot_product_attention(q, k, v, mask, scale=0.3),
                    sdpa(q, k, v, mask, scale=0.3).double())
    assert traced[0] == 3
    # Another kind, which no other scale is.
    for scale in (0.4, 0.5):
        fovea.scaled_dot_product_attention(q, k, v, scale=scale)
        fovea.scaled_dot_product_attention(q, k, v[..., :8], scale=scale)
        fovea.scaled_dot_product_attention(q, k, v, torch.ones(7, 9, device=DEVICE),
                                           scale=scale)
    assert traced[0] == 5


def test_attention(traced):
    bias = None
    for offset in (3, 5, 4, 1):
        q, k, v = make_qkv(7, 9)
        bias, lengths = randn(4, 7, 9), torch.tensor([9, 5], device=DEVICE)
        actual, lse = fovea.attention(
            q, k, v, causal=True, window=4, softcap=2.0, bias=bias,
            q_offset=offset, kv_lengths=lengths, return_lse=True)
        seen = causal_from(offset, q, k) & ~causal_from(offset - 4, q, k)
        seen = seen & (torch.arange(9, device=DEVICE)
                       < lengths[:, None])[:, None, None]
        scores = q.double() @ k.double().mT / math.sqrt(q.shape[3])
        scores = 2 * torch.tanh(scores / 2) + bias.double()
        scores = scores.masked_fill(~seen, -math.inf)
        compare(actual, scores.softmax(-1).nan_to_num(0) @ v.double())
        compare(lse, scores.logsumexp(-1))
    assert traced[0] == 1
    # No offset has another text, as has none that is a tensor.
    fovea.attention(q, k, v, causal=True)
    compare(fovea.attention(q, k, v, causal=True, q_offset=torch.tensor(
        2, device=DEVICE)), sdpa(q, k, v, causal_from(2, q, k)).double())
    assert traced[0] == 3


def compare_causal(q, k, v, offset, actual):
    compare(actual, sdpa(q, k, v, causal_from(offset, q, k)).double())


def test_other_lengths(traced):
    """Of which a text knows nothing are not traced again."""
    for length, kv_length in ((20, 31), (33, 40), (33, 17), (20, 20)):
        q, k, v = make_qkv(length, kv_length)
        compare_causal(q, k, v, 0, fovea.scaled_dot_product_attention(
            q, k, v, is_causal=True))
        compare_causal(q, k, v, kv_length, fovea.attention(
            q, k, v, causal=True, q_offset=kv_length))
        lengths = torch.tensor([kv_length, 5], device=DEVICE)
        compare(fovea.attention(q, k, v, kv_lengths=lengths, softcap=2.0),
                reference(q, k, v, lambda s, b, h, i, j: 2 * torch.tanh(s / 2),
                          lambda b, h, i, j: j < lengths[b])[0])
        slopes = randn(4, seed=length)
        alibi = lambda s, b, h, i, j: s + slopes[h] * (j - i)
        compare(fovea.flex_attention(q, k, v, alibi),
                reference(q, k, v, alibi)[0])
    assert traced[0] == 4
    # A single query is counted in the text.
    for length in (1, 1):
        q, k, v = make_qkv(length, 30)
        compare_causal(q, k, v, 0, fovea.scaled_dot_product_attention(
            q, k, v, is_causal=True))
    assert traced[0] == 5


def by_remainder(length):
    return lambda s, b, h, i, j: s * (j % 25 + 1)


def by_tables(length):
    table = randn(length, seed=length)
    return lambda s, b, h, i, j: s + table[j] + table[0]


def by_clamps(length):
    return lambda s, b, h, i, j: s + torch.clamp(j, 0, 24)


def by_a_longer_table(length):
    table = randn(40)
    return lambda s, b, h, i, j: s + table[j]


def by_a_position(length):
    from fovea._values import Number
    table, number = randn(40), Number(length - 26)
    mod = lambda s, b, h, i, j: s + table[number + j * 0]
    mod.plain = lambda s, b, h, i, j: s + table[number.number + j * 0]
    return mod


def by_the_end(length):
    """Where the last index is negative or not is known from a length."""
    table = randn(40)
    return lambda s, b, h, i, j: s + table[j - 25]


@pytest.mark.parametrize("make", [
    by_remainder, by_tables, by_clamps, by_a_longer_table, by_a_position,
    by_the_end], ids=lambda make: make.__name__)
@pytest.mark.parametrize("order", [(20, 33, 26, 40, 20), (33, 20, 40, 26, 33)])
def test_texts_that_lengths_shape(make, order, traced):
    for length in order:
        q, k, v = make_qkv(20, length)
        mod = make(length)
        compare(fovea.flex_attention(q, k, v, mod), reference(
            q, k, v, getattr(mod, "plain", mod))[0])


def test_errors_of_other_lengths():
    """What a first call has checked is checked again."""
    q, k, v = make_qkv(20, 31)
    table = randn(31)
    mod = lambda s, b, h, i, j: s + table[j]
    mask = torch.zeros(1, 31, device=DEVICE)
    fovea.flex_attention(q, k, v, mod)
    fovea.scaled_dot_product_attention(q, k, v)
    fovea.attention(q, k, v, bias=mask)
    fovea.scaled_dot_product_attention(q, k, v, mask)
    _, k, v = make_qkv(20, 36)
    with pytest.raises(IndexError, match="index 35 is out of bounds"):
        fovea.flex_attention(q, k, v, mod)
    with pytest.raises(RuntimeError, match="bias: expected a shape that broadcasts"):
        fovea.attention(q, k, v, bias=mask)
    with pytest.raises(RuntimeError, match="attn_mask: expected a shape that broadca"):
        fovea.scaled_dot_product_attention(q, k, v, mask)
    for call in (fovea.scaled_dot_product_attention, fovea.attention):
        with pytest.raises(ValueError, match="same batch size, heads and length"):
            call(q, k, v[:, :, :31])
        compare(call(q, k[:, :, :0], v[:, :, :0]), torch.zeros_like(q).double())
        assert call(q[:, :, :0], k, v).shape == (2, 4, 0, 16)


def test_gradients(traced):
    """A call with gradients is another than one without."""
    for grad in (False, True, False, True):
        q, k, v = make_qkv(7, 9, grad=grad)
        bias = randn(7, 9)
        output = fovea.attention(q, k, v, bias=bias)
        assert output.requires_grad == grad
        compare(output, sdpa(q, k, v, bias).detach().double())
        if grad:
            gradients = torch.autograd.grad(output.sum(), (q, k, v))
            for x, y in zip(gradients, torch.autograd.grad(
                    sdpa(q, k, v, bias).sum(), (q, k, v))):
                compare(x, y.double())
    assert traced[0] == 2
    with torch.no_grad():
        assert not fovea.attention(q, k, v, bias=bias).requires_grad
    assert traced[0] == 3


def test_autocast(traced):
    """The types of operands are those that autocast gives them."""
    q, k, v = make_qkv(7, 9, grad=True)
    bias = randn(7, 9)
    small = [x.bfloat16() for x in (q, k, v)]
    for call in (lambda *x: fovea.attention(*x, bias=bias),
                 lambda *x: fovea.flex_attention(*x, lambda s, b, h, i, j: (
                     s + bias[i, j]))):
        traced[0] = 0
        expected = call(*small)
        wanted = torch.autograd.grad(expected.float().sum(), (q, k, v))
        for _ in range(2):
            with torch.autocast(DEVICE, torch.bfloat16):
                actual = call(q, k, v)
            assert torch.equal(actual, expected)
            for x, y in zip(torch.autograd.grad(actual.float().sum(), (q, k, v)),
                            wanted):
                assert x.dtype == torch.float32 and torch.equal(x, y)
        with torch.autocast(DEVICE, torch.float16):
            assert call(q, k, v).dtype == torch.float16
        assert call(q, k, v).dtype == torch.float32
        assert traced[0] == 3
        small = [x.bfloat16() for x in (q, k, v)]


def test_an_operand_that_is_captured(traced):
    """A tensor that is the query in one call, too, and another one in the next."""
    for turn in range(2):
        q, k, v = make_qkv(7, 9, dim=9)
        mask = randn(2, 4, 7, 9, seed=4) if turn else q
        compare(fovea.scaled_dot_product_attention(q, k, v, mask),
                sdpa(q, k, v, mask).double())
        compare(fovea.flex_attention(q, k, v, lambda s, b, h, i, j: s + mask[b, h, i, j]),
                sdpa(q, k, v, mask).double())
    assert traced[0] == 2


def test_one_tensor_in_two_places():
    """What shares memory in one call need not share it in the next."""
    q, k, v = make_qkv(7, 9)
    numbers = torch.tensor([3, 5], device=DEVICE)
    other = torch.tensor([9, 2], device=DEVICE)
    for offset, lengths in ((numbers, numbers), (numbers, other), (other, numbers)):
        compare(fovea.attention(q, k, v, causal=True, q_offset=offset,
                                kv_lengths=lengths),
                fovea.attention(
                    q, k, v, mask_mod=lambda b, h, i, j: (
                        (i + offset[b] >= j) & (j < lengths[b]))).double())


def test_what_is_not_kept(traced):
    """Calls in which something else takes part are traced."""
    q, k, v = make_qkv(7, 9)
    for _ in range(2):
        assert torch.func.vmap(lambda x: fovea.attention(x, x, x))(
            torch.stack([q, q])).shape == (2, *q.shape)
    assert traced[0] == 2
    with pytest.raises(ValueError, match="window"):
        fovea.attention(q, k, v, window=[1, 2, 3])


def test_masks_of_models(traced):
    """Each call of a model makes a mask; of one kind the first is traced, as long as the
    tensors of padding have one size."""
    transformers = pytest.importorskip("transformers", "5")
    import fovea.transformers
    config = transformers.Gemma3TextConfig(
        vocab_size=31, hidden_size=32, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])
    config._attn_implementation = "fovea"
    torch.manual_seed(0)
    model = transformers.Gemma3ForCausalLM(config).eval()
    tokens = torch.randint(3, 31, (2, 8))
    padding = torch.ones(2, 8, dtype=torch.long)
    padding[0, :3] = 0
    options = dict(max_new_tokens=9, do_sample=False, pad_token_id=0, eos_token_id=-1)
    for inputs, cache, count in (
            # Sliding windows of a static cache fill first.
            ({"attention_mask": None}, None, 4), ({"attention_mask": padding}, "static", 11)):
        for turn in range(2):
            model.config._attn_implementation = "fovea"
            before = traced[0]
            found = model.generate(tokens, **inputs, cache_implementation=cache,
                                   disable_compile=True, **options)
            assert traced[0] - before <= (0 if turn else count)
            model.config._attn_implementation = "eager"
            assert torch.equal(found, model.generate(
                tokens, **inputs, disable_compile=True, **options))


def test_layers_share_a_mask(traced):
    transformers = pytest.importorskip("transformers", "5")
    import fovea.transformers
    config = transformers.LlamaConfig(
        vocab_size=31, hidden_size=32, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2)
    config._attn_implementation = "fovea"
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(31, (2, 8))
    padding = torch.ones(2, 8, dtype=torch.long)
    padding[0, :3] = 0
    with torch.no_grad():
        model(tokens, attention_mask=padding)
        assert traced[0] == 1
        padding[0, 3] = 0
        actual = model(tokens, attention_mask=padding).logits
        # The same kind of mask, with other numbers.
        assert traced[0] == 1
        model.config._attn_implementation = "eager"
        expected = model(tokens, attention_mask=padding).logits
    assert torch.allclose(actual[1], expected[1], atol=1e-4)
    assert torch.allclose(actual[0, 4:], expected[0, 4:], atol=1e-4)


def test_use_for_sdpa(traced):
    """What PyTorch gives to flash attention, in a model's order in memory."""
    import fovea.torch
    dtype = torch.float32 if DEVICE == "cpu" else torch.float16
    try:
        for _ in range(3):
            inputs = [x.transpose(1, 2).contiguous().transpose(1, 2)
                      for x in make_qkv(40, 37, dtype=dtype)]
            q, k, v = inputs
            masks = [None] + ([randn(40, 37)] if DEVICE == "cpu" else [])
            expected = [sdpa(q, k, v, mask).double() for mask in masks]
            fovea.torch.use_for_sdpa()
            for mask, wanted in zip(masks, expected):
                # On some GPUs PyTorch prefers another one.
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    found = fovea.explain(sdpa, q, k, v, mask)
                assert found.kernels[0].results[0].shape == (None, None, *(
                    q.shape[dim] for dim in (1, 3)))
                assert found.result.stride() == q.stride()
                # PyTorch rounds probabilities elsewhere than we.
                compare(found.result, wanted, 1e-5 if DEVICE == "cpu" else 2e-3)
            torch.nn.attention.restore_flash_attention_impl()
        assert traced[0] == len(masks)
    finally:
        torch.nn.attention.restore_flash_attention_impl()


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def make_flash_calls(turn):
    """Calls of FlashAttention's functions by their names, of other tensors, lengths and
    integers in each turn."""
    def rows(*shape):
        return randn(*shape, seed=turn).to(torch.float32)

    more, calls = 8 * turn, {}
    # A GPU's text counts few queries.
    q, k, v = rows(2, 29 + more, 4, 16), rows(2, 32 + more, 2, 16), rows(2, 32 + more, 2, 8)
    sinks = randn(4, seed=turn)
    calls["fixed"] = lambda: fovea.flash_attn_func(
        q, k, v, 0.3 + turn, causal=True, s_aux=sinks, return_softmax_lse=True)
    packed = rows(30 + turn, 4, 16), rows(32 + turn, 2, 16), rows(32 + turn, 2, 16)
    ends = integers(0, 4, 30 + turn), integers(0, 5, 32 + turn)
    calls["packed"] = lambda: fovea.flash_attn_varlen_func(
        *packed, *ends, causal=turn > 0, window_size=(4, -1))
    calls["packed, more"] = lambda: fovea.flash_attn_varlen_func(
        *packed, integers(0, 2, 4, 30 + turn), integers(0, 3, 5, 32 + turn), causal=True,
        window_size=(4, -1))
    query, cache = rows(2, 1, 4, 16), rows(2, 32, 2, 16)
    lengths, first = integers(20 - turn, 9 + turn), integers(turn, 2)
    calls["cache"] = lambda: fovea.flash_attn_with_kvcache(
        query, cache, cache, cache_seqlens=lengths, cache_leftpad=first, causal=True)
    calls["cache, a number"] = lambda: fovea.flash_attn_with_kvcache(
        query, cache, cache, cache_seqlens=17 + turn, causal=True)
    pages = rows(9, 8, 2, 16)
    table = torch.stack([torch.randperm(9, device=DEVICE)[:4] for _ in range(2)]).int()
    calls["pages"] = lambda: fovea.flash_attn_with_kvcache(
        query, pages, pages, cache_seqlens=lengths, page_table=table, s_aux=sinks,
        softcap=3.0, return_softmax_lse=True)
    calls["pages, one tensor in two places"] = lambda: fovea.flash_attn_with_kvcache(
        query, pages, pages, cache_seqlens=first, page_table=table,
        cache_leftpad=first if turn == 1 else lengths)
    calls["slots"] = lambda: fovea.flash_attn_with_kvcache(
        query, cache, cache, cache_seqlens=lengths, causal=True,
        cache_batch_idx=integers(turn % 2, 0))
    calls["packed queries"] = lambda: fovea.flash_attn_with_kvcache(
        packed[0][:6], cache, cache, cache_seqlens=lengths, causal=True,
        cu_seqlens_q=integers(0, 1 + turn, 6), max_seqlen_q=5)
    new, angles = rows(2, 1, 2, 16), rows(32, 4)

    def append():
        caches = cache.clone(), cache.clone() + 1
        output = fovea.flash_attn_with_kvcache(
            query, *caches, new, new + 1, rotary_cos=angles, rotary_sin=angles + 1,
            cache_seqlens=lengths, causal=True)
        return output, *caches

    calls["append"] = append
    return calls


@pytest.mark.parametrize("name", make_flash_calls(0))
def test_flash(name, traced, monkeypatch):
    """Functions of FlashAttention have the results that a trace of each call gives, and
    trace once for as many calls as have one text."""
    for turn in range(3):
        call = make_flash_calls(turn)[name]
        for _ in range(2):
            found = call()
        count = traced[0]
        with monkeypatch.context() as patched:
            patched.setattr(Arguments, "kept", {})
            for opener in ("open", "open_by"):
                patched.setattr(_flash_options._memo, opener, lambda *_, **__: None)
            expected = call()
        traced[0] = count
        if isinstance(found, torch.Tensor):
            found, expected = (found,), (expected,)
        for x, y in zip(found, expected, strict=True):
            assert torch.equal(x, y)
    # A causal mask is of another kind than none.
    assert traced[0] == (2 if name == "packed" else 1)


@pytest.mark.parametrize("name", make_flash_calls(0))
def test_flash_is_known(name, traced, monkeypatch):
    """From the third call on arguments are looked up, not checked; one that is not what
    it was, if only in its type, is checked."""
    call = make_flash_calls(0)[name]
    results = [call(), call()]
    # A host looks at places, and the sequences of packed queries are another tensor.
    is_kept = name != "packed queries" and (name != "append" or DEVICE == "cuda")
    assert bool(Arguments.kept) == is_kept
    if not is_kept:
        return
    with monkeypatch.context() as patched:
        patched.setattr(_flash, "Options", None)
        results.append(call())
    for found in results:
        pairs = zip(found, results[0]) if isinstance(found, tuple) else [(found, results[0])]
        assert all(torch.equal(x, y) for x, y in pairs)


def test_flash_errors_of_known_calls(traced):
    q = randn(2, 5, 4, 16)
    for _ in range(3):
        fovea.flash_attn_func(q, q, q, causal=True, attention_chunk=1, window_size=(1, 2))
    for wrong in ({"attention_chunk": 1.0}, {"window_size": (1.0, 2)}):
        with pytest.raises(TypeError):
            fovea.flash_attn_func(q, q, q, causal=True, **{
                "attention_chunk": 1, "window_size": (1, 2)} | wrong)
    with pytest.raises(ValueError, match="v: expected a shape"):
        fovea.flash_attn_func(q, q, q[:, 1:], causal=True, attention_chunk=1,
                              window_size=(1, 2))


@pytest.mark.parametrize("window", [(None, None), (2, None), (None, 0), [2, 1]])
def test_flash_windows(window, traced):
    q, ends = randn(32, 4, 16), integers(0, 5, 32)
    wanted = tuple(-1 if size is None else size for size in window)
    expected = fovea.flash_attn_varlen_func(q, q, q, ends, ends, window_size=wanted)
    fixed = fovea.flash_attn_func(q[None], q[None], q[None], window_size=wanted)
    for _ in range(3):
        assert torch.equal(expected, fovea.flash_attn_varlen_func(
            q, q, q, ends, ends, window_size=window))
        assert torch.equal(fixed, fovea.flash_attn_func(
            q[None], q[None], q[None], window_size=window))


def test_flash_memory_of_two(traced):
    """What is in one memory in the first calls need not be in later ones."""
    query, pages = randn(2, 1, 4, 16), randn(9, 8, 2, 16)
    table = torch.arange(8, device=DEVICE, dtype=torch.int32).view(2, 4)
    one, two = integers(9, 12), integers(3, 2)
    for lengths, first in ((one, one), (one, one[:]), (one, two), (one, one), (two, one)):
        for _ in range(3):
            found = fovea.flash_attn_with_kvcache(
                query, pages, pages, page_table=table, cache_seqlens=lengths,
                cache_leftpad=first)
        expected = fovea.flash_attn_with_kvcache(
            query, pages, pages, page_table=table.long(), cache_seqlens=lengths.long(),
            cache_leftpad=first + 0)
        assert torch.equal(found, expected)


def test_flash_tensor_or_number(traced):
    """A length that is the number of the tensor which another call has in its place."""
    query, pages = randn(2, 1, 4, 16), randn(9, 8, 2, 16)
    table = torch.arange(8, device=DEVICE, dtype=torch.int32).view(2, 4)
    first = integers(1, 2)
    for lengths in (first, 3, 4, 5, 6):
        found = fovea.flash_attn_with_kvcache(query, pages, pages, page_table=table,
                                              cache_seqlens=lengths, cache_leftpad=first)
        other = integers(lengths, lengths) if isinstance(lengths, int) else lengths + 0
        expected = fovea.flash_attn_with_kvcache(
            query, pages, pages, page_table=table, cache_seqlens=other,
            cache_leftpad=first)
        assert torch.equal(found, expected)


def test_flash_gradients(traced):
    """Packed sequences of other lengths, with gradients and under autocast."""
    for turn in range(2):
        q, k, v = (randn(32 + turn, 4, 16, seed=turn + at).requires_grad_()
                   for at in range(3))
        ends = integers(0, 5, 32 + turn)
        for _ in range(3):
            found = fovea.flash_attn_varlen_func(q, k, v, ends, ends)
        with torch.autocast(DEVICE, torch.bfloat16):
            small = fovea.flash_attn_varlen_func(q, k, v, ends, ends)
        assert small.dtype == torch.bfloat16
        expected = [sdpa(*(x[part].transpose(0, 1) for x in (q, k, v))).transpose(0, 1)
                    for part in (slice(0, 5), slice(5, None))]
        expected = torch.cat(expected)
        compare(found, expected.detach().double())
        for x, y in zip(torch.autograd.grad(found.sum(), (q, k, v)),
                        torch.autograd.grad(expected.sum(), (q, k, v))):
            compare(x, y.double())
    assert traced[0] == 2

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash_attn_varlen_func, by FlashAttention's rule: both ways to the keys of packed
sequences, and which calls take which."""

import random

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from fovea import _flash, _flash_options, _memo, _native
from flash import (attend, check, check_lse, count_texts, find_keep, integers, pack,
                   randn)
from mods import DEVICE

NAN = float("nan")

VARLEN = [
    ([1], [1]), ([3, 0, 7], [3, 0, 7]), ([64, 1, 65], [64, 63, 129]),
    ([5, 20], [70, 6]), ([0, 0], [4, 0]), ([128, 17, 31], [0, 203, 31])]


@pytest.fixture(params=["searched", "gathered"])
def keys_of_sequences(request, monkeypatch):
    """Both ways to the keys of packed sequences, wherever the tests run."""
    monkeypatch.setattr(_flash, "_lists_tiles",
                        lambda device: request.param == "gathered")
    monkeypatch.setattr(_memo.Arguments, "kept", {})
    return request.param


@pytest.mark.parametrize("lengths, kv_lengths", VARLEN)
@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"window_size": (9, 4)}, {"causal": True,
                                                  "attention_chunk": 8}])
def test_varlen(lengths, kv_lengths, options, keys_of_sequences):
    q = randn(sum(lengths), 4, 32)
    k, v = (randn(sum(kv_lengths), 2, 32, seed=seed) for seed in (1, 2))
    found, lse = fovea.flash_attn_varlen_func(
        q, k, v, pack(lengths), pack(kv_lengths), max(lengths), max(kv_lengths),
        **options, return_softmax_lse=True)
    assert found.shape == q.shape and lse.shape == (4, sum(lengths))
    for one, kv, at, kv_at in zip(lengths, kv_lengths, pack(lengths),
                                  pack(kv_lengths)):
        keep = find_keep(one, kv, options.get("causal"),
                         options.get("window_size", (-1, -1)),
                         options.get("attention_chunk", 0))
        part = [q[at:at + one], k[kv_at:kv_at + kv], v[kv_at:kv_at + kv], keep]
        exact, exact_lse = attend(*part)
        check(found[at:at + one], exact, attend(*part, torch.bfloat16)[0])
        check_lse(lse[:, at:at + one], exact_lse)


def test_varlen_keys_of_a_graph(monkeypatch):
    """The keys that queries see, found by a graph, are those that PyTorch's operators
    find where a call is traced."""
    rng = random.Random(0)
    watched = _native.is_watched
    seen = 0

    def starts(total, batch):
        cuts = [rng.randint(0, total) for _ in range(batch)]
        dtype = rng.choice([torch.int32, torch.int64])
        return torch.tensor(sorted([*cuts, total]), dtype=dtype, device=DEVICE)

    def used(starts):
        if rng.random() < 0.5:
            return None
        counts = [rng.randint(0, int(x)) for x in starts.diff()]
        return torch.tensor(counts, dtype=torch.int32, device=DEVICE)

    for _ in range(60):
        batch = rng.choice([1, 2, 3, 16, 17])
        queries, keys = starts(rng.randint(0, 200), batch), starts(300, batch)
        left, right, chunk = rng.choice(
            [(-1, -1, 0), (-1, 0, 0), (5, 0, 0), (7, 3, 0), (-1, 0, 16), (4, -1, 8)])
        count = int(queries[-1]) + rng.choice([0, 4])
        q = torch.zeros(count, 2, 8, device=DEVICE)
        options = _flash_options.Options(
            q, None, False, (left, right), chunk, 0.0, 1, None, 0, None, False)
        arguments = (q, queries, keys, used(queries), used(keys))
        found = options.find_keys(*arguments)
        monkeypatch.setattr(_native, "is_watched", lambda: True)
        for x, y in zip(found, options.find_keys(*arguments), strict=True):
            assert x.dtype == y.dtype and torch.equal(x, y)
        monkeypatch.setattr(_native, "is_watched", watched)
        seen += int((found[1] > 0).sum())
    assert seen > 1000


def test_varlen_gradients():
    lengths, kv_lengths = [5, 0, 40, 3], [9, 4, 40, 1]
    q = randn(sum(lengths), 4, 16, dtype=torch.float32).requires_grad_()
    k, v = (randn(sum(kv_lengths), 2, 16, dtype=torch.float32, seed=seed)
            .requires_grad_() for seed in (1, 2))
    found = fovea.flash_attn_varlen_func(
        q, k, v, pack(lengths), pack(kv_lengths), causal=True)
    parts = [attend(q[at:at + one], k[kv_at:kv_at + kv], v[kv_at:kv_at + kv],
                    find_keep(one, kv, True))[0]
             for one, kv, at, kv_at in zip(lengths, kv_lengths, pack(lengths),
                                           pack(kv_lengths))]
    exact = torch.cat(parts)
    weights = randn(*q.shape, dtype=torch.float32, seed=5)
    ours = torch.autograd.grad((found * weights).sum(), (q, k, v))
    theirs = torch.autograd.grad((exact * weights).sum(), (q, k, v))
    for one, other in zip(ours, theirs):
        assert torch.allclose(one, other, atol=2e-5, rtol=2e-5)


def test_varlen_used(keys_of_sequences):
    """Rows behind what counts may hold anything, and are 0."""
    starts, kv_starts = integers([0, 8, 16, 17]), integers([0, 70, 140, 145])
    used, kv_used = integers([8, 3, 1]), integers([33, 0, 2])
    q = randn(20, 2, 32)
    k, v = (randn(145, 2, 32, seed=seed) for seed in (1, 2))
    k[33:140], v[33:140], k[142:], v[142:] = (NAN,) * 4
    found, lse = fovea.flash_attn_varlen_func(
        q, k, v, starts, kv_starts, seqused_q=used, seqused_k=kv_used,
        causal=True, return_softmax_lse=True)
    part = [q[:8], k[:33], v[:33], find_keep(8, 33, True)]
    check(found[:8], attend(*part)[0], attend(*part, torch.bfloat16)[0])
    part = [q[16:17], k[140:142], v[140:142], find_keep(1, 2, True)]
    check(found[16:17], attend(*part)[0], attend(*part, torch.bfloat16)[0])
    for rows in (slice(8, 16), slice(17, 20)):
        assert (found[rows] == 0).all() and lse[:, rows].isneginf().all()


def test_varlen_no_sequences(keys_of_sequences):
    """Rows of no sequence are 0, in calls like ones before, too."""
    q = randn(6, 2, 32)
    starts = integers([0, 6])[:1]
    for _ in range(4):
        found, lse = fovea.flash_attn_varlen_func(
            q, q, q, starts, starts, causal=True, return_softmax_lse=True)
        assert (found == 0).all() and lse.isneginf().all()


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_varlen_repeated(is_same, dtype, keys_of_sequences):
    """Calls with other lengths and sequences have the same kernel, also where rows of no
    sequence are in front, and calls like one before what is in their tensors."""
    texts, kept = set(), []
    for first, lengths in ((0, [5, 40]), (3, [17, 0, 2]), (1, [11, 2, 70, 1, 9]),
                           (3, [2, 0, 17])):
        starts = pack([first, *lengths])[1:]
        count = int(starts[-1]) + 4
        q, k, v = (randn(count, heads, 64, dtype=dtype, seed=heads)
                   for heads in (4, 2, 2))
        sinks = randn(4, dtype=torch.float32, seed=9)
        found, lse = fovea.flash_attn_varlen_func(
            q, k, v, starts, starts if is_same else starts.clone(), causal=True,
            s_aux=sinks, return_softmax_lse=True)
        texts.add(count_texts())
        kept.append(len(_memo.Arguments.kept))
        for at, length in zip(starts, lengths):
            rows = slice(int(at), int(at) + length)
            part = [q[rows], k[rows], v[rows], find_keep(length, length, True)]
            exact, exact_lse = attend(*part, sinks=sinks)
            check(found[rows], exact, attend(*part, dtype, sinks=sinks)[0])
            check_lse(lse[:, rows], exact_lse)
        for rows in (slice(0, first), slice(int(starts[-1]), count)):
            assert (found[rows] == 0).all()
    assert len(texts) == 1
    # The last call had tensors of the same shapes as one before.
    assert 0 < kept[-1] == kept[-2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_varlen_autocast(dtype, keys_of_sequences):
    """Autocast's type is that of what is smaller."""
    starts = pack([30, 0, 5])
    q, k, v = (randn(35, heads, 32, dtype=dtype, seed=heads) for heads in (4, 2, 2))
    with torch.autocast(torch.device(DEVICE).type, torch.bfloat16):
        found = fovea.flash_attn_varlen_func(q, k, v, starts, starts, causal=True)
    wanted = torch.float64 if dtype == torch.float64 else torch.bfloat16
    assert found.dtype == wanted
    part = [*(x[:30].to(wanted) for x in (q, k, v)), find_keep(30, 30, True)]
    check(found[:30], attend(*part)[0], attend(*part, torch.bfloat16)[0])


@pytest.mark.parametrize("first, behind", [(0, 0), (5, 3)])
@pytest.mark.parametrize("options", [
    {"causal": True}, {"window_size": (9, 4)}, {"attention_chunk": 8}])
@pytest.mark.parametrize("is_used", [False, True])
def test_varlen_of_one(first, behind, options, is_used, keys_of_sequences):
    """One sequence, with rows of none on both sides, and keys that do not count."""
    length, kv_length = 40, 70
    used, kv_used = (33, 61) if is_used else (length, kv_length)
    starts, kv_starts = integers([first, first + length]), integers([2, 2 + kv_length])
    q = randn(first + length + behind, 4, 32)
    k, v = (randn(2 + kv_length + behind, 2, 32, seed=seed) for seed in (1, 2))
    # Rows of no sequence are read, where keys are searched and all of these count.
    fill = NAN if is_used or keys_of_sequences == "gathered" else 0
    for x in (k, v):
        x[:2], x[2 + kv_used:] = fill, fill
    counts = {"seqused_q": integers([used]),
              "seqused_k": integers([kv_used])} if is_used else {}
    found, lse = fovea.flash_attn_varlen_func(
        q, k, v, starts, kv_starts, **counts, **options, return_softmax_lse=True)
    keep = find_keep(used, kv_used, options.get("causal"),
                     options.get("window_size", (-1, -1)),
                     options.get("attention_chunk", 0))
    part = [q[first:first + used], k[2:2 + kv_used], v[2:2 + kv_used], keep]
    exact, exact_lse = attend(*part)
    check(found[first:first + used], exact, attend(*part, torch.bfloat16)[0])
    check_lse(lse[:, first:first + used], exact_lse)
    for rows in (slice(0, first), slice(first + used, None)):
        assert (found[rows] == 0).all() and lse[:, rows].isneginf().all()


@pytest.mark.parametrize("change, is_gathered", [
    ({}, True), ({"dtype": torch.float32}, False), ({"size": 160}, False),
    ({"grad": True}, False), ({"heads": 1}, True), ({"heads": 1, "count": 5000}, False),
    ({"heads": 1, "count": 5000, "kv_count": 50000}, True), ({"count": 0}, False),
    ({"sequences": 0}, False)])
def test_varlen_way_to_keys(change, is_gathered, monkeypatch):
    """Which calls gather keys: none that need gradients, none with short sequences that
    fill the tiles of a GPU better together."""
    monkeypatch.setattr(_flash, "_lists_tiles", lambda device: True)
    given = {"dtype": torch.bfloat16, "size": 64, "grad": False, "heads": 4,
             "count": 100, "kv_count": 100, "sequences": 50, **change}
    q = torch.empty(given["count"], given["heads"], given["size"], dtype=given["dtype"],
                    requires_grad=given["grad"])
    k = torch.empty(given["kv_count"], 1, given["size"], dtype=given["dtype"])
    starts = torch.zeros(given["sequences"] + 1)
    assert bool(_flash._gathers_packed(q, k, k, None, starts)) == is_gathered


@pytest.mark.parametrize("change, message", [
    ({"cu_seqlens_q": None}, "cu_seqlens_q: expected a tensor of integers"),
    ({"cu_seqlens_q": torch.zeros(2)}, "cu_seqlens_q: expected int32 or int64 of "
     r"shape \(any\), got torch.float32"),
    ({"cu_seqlens_q": integers([])}, "cu_seqlens_q: expected at least one"),
    ({"cu_seqlens_k": integers([0, 4])}, r"cu_seqlens_k: .* of shape \(3\), got "
     r"torch.int32 of shape \(2,\)"),
    ({"seqused_k": integers([1])}, r"seqused_k: .* of shape \(2\)"),
    ({"q": randn(2, 3, 4, 16)}, "q: expected a tensor of rank 3"),
])
def test_varlen_errors(change, message):
    arguments = {"q": randn(8, 4, 16), "k": randn(8, 2, 16),
                 "v": randn(8, 2, 16), "cu_seqlens_q": integers([0, 3, 8]),
                 "cu_seqlens_k": integers([0, 3, 8]), **change}
    with pytest.raises((ValueError, TypeError), match=message):
        fovea.flash_attn_varlen_func(**arguments)

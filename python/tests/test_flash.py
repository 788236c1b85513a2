# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash_attn_func and flash_attn_with_kvcache, by FlashAttention's rule: an error at
most twice that of PyTorch's own attention in the type of the operands, beside attention
in f64."""

import random

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from fovea import _append, _flash_options, _gather, _operator, _regions
from flash import (attend, check, check_lse, count_texts, find_keep, integers, pack,
                   randn)
from mods import DEVICE

NAN = float("nan")


#--- flash_attn_func ----------------------------------------------------------

@pytest.mark.parametrize("length, kv_length", [
    (1, 1), (1, 64), (63, 65), (64, 128), (65, 63), (113, 203), (128, 217),
    (129, 127), (5, 0)])
@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"window_size": (12, 3)},
    {"window_size": (7, -1), "causal": True}, {"softcap": 15.0},
    {"attention_chunk": 16, "causal": True}])
def test_func(length, kv_length, options):
    q = randn(2, length, 6, 32)
    k, v = (randn(2, kv_length, 2, 32, seed=seed) for seed in (1, 2))
    if "softcap" in options:
        q = q * 15
    found, lse = fovea.flash_attn_func(q, k, v, **options,
                                       return_softmax_lse=True)
    keep = find_keep(length, kv_length, options.get("causal"),
                     options.get("window_size", (-1, -1)),
                     options.get("attention_chunk", 0))
    cap = options.get("softcap", 0.0)
    for b in range(2):
        exact, exact_lse = attend(q[b], k[b], v[b], keep, softcap=cap)
        own, _ = attend(q[b], k[b], v[b], keep, torch.bfloat16, softcap=cap)
        check(found[b], exact, own)
        check_lse(lse[b], exact_lse)


@pytest.mark.parametrize("sizes", [(32, 32), (64, 40), (8, 96)])
def test_func_head_sizes(sizes):
    q, k, v = (randn(1, 20, 4, size, dtype=torch.float16, seed=seed)
               for seed, size in enumerate((sizes[0], *sizes)))
    found = fovea.flash_attn_func(q, k, v, softmax_scale=0.3, causal=True)
    keep = find_keep(20, 20, True)
    exact, _ = attend(q[0], k[0], v[0], keep, scale=0.3)
    own, _ = attend(q[0], k[0], v[0], keep, torch.float16, scale=0.3)
    check(found[0], exact, own)


def test_func_gradients():
    q, k, v = (randn(2, length, heads, 16, dtype=torch.float32, seed=heads)
               .requires_grad_() for length, heads in ((9, 4), (14, 2), (14, 2)))
    sinks = randn(4, dtype=torch.float32, seed=9).requires_grad_()
    inputs = (q, k, v, sinks)
    out, lse = fovea.flash_attn_func(
        q, k, v, causal=True, window_size=(6, 0), s_aux=sinks,
        return_attn_probs=True)
    keep = find_keep(9, 14, True, (6, 0))
    pairs = [attend(q[b], k[b], v[b], keep, sinks=sinks) for b in range(2)]
    exact, exact_lse = (torch.stack(parts) for parts in zip(*pairs))
    weights = randn(*out.shape, dtype=torch.float32, seed=5)
    found = torch.autograd.grad((out * weights).sum() + lse.sin().sum(), inputs)
    wanted = torch.autograd.grad(
        (exact * weights).sum() + exact_lse.sin().sum(), inputs)
    for one, other in zip(found, wanted):
        assert torch.allclose(one, other.float(), atol=2e-5, rtol=2e-5)


#--- flash_attn_with_kvcache --------------------------------------------------

def rotate(x, positions, cos, sin, interleaved):
    """The rotation of `[S, H, D]`, by complex numbers."""
    half = cos.shape[1]
    if not len(x):
        return x
    part = x[..., :2 * half].double()
    part = (part.unflatten(-1, (half, 2)) if interleaved else
            part.unflatten(-1, (2, half)).transpose(-1, -2))
    turn = torch.complex(cos.double(), sin.double())[positions][:, None]
    part = torch.view_as_real(torch.view_as_complex(part.contiguous()) * turn)
    part = part.flatten(-2) if interleaved else part.transpose(-1, -2).flatten(-2)
    return torch.cat([part.to(x.dtype), x[..., 2 * half:]], -1)


def make_cases():
    """A sample of FlashAttention's list for the cache."""
    lists = {
        "sizes": [(1, 128), (1, 339), (3, 204), (64, 80), (64, 256), (3, 199),
                  (16, 250), (128, 128), (1, 63), (1, 65), (2, 64)],
        "heads": [(6, 6), (6, 2), (6, 1)],
        "order": ["full", "causal", "local"],
        "page": [None, 1, 4, 16, 128],
        "slots": [False, True], "leftpad": [False, True],
        "packed": [False, True], "new": [None, 1, "query", "packed"],
        "rotary": [None, (0.5, True), (1.0, False), (1.0, True)],
        "splits": [1, 3, 0]}
    draw = random.Random(17)
    cases = [{name: draw.choice(values) for name, values in lists.items()}
             for _ in range(60)]
    return [pytest.param(case, id=str(number))
            for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", make_cases())
def test_kvcache(case):
    """Lengths of every size, from none; what lies in the cache behind lengths,
    in front of the left padding and in pages of nobody is NaN, and tables have
    any number behind lengths."""
    draw = random.Random(str(case))
    batch, size = 5, 32
    length, room = case["sizes"]
    heads, kv_heads = case["heads"]
    page = case["page"]
    lengths = [draw.randrange(1, length + 1) for _ in range(batch)]
    if not case["packed"]:
        lengths = [length] * batch
    new = {None: [0] * batch, 1: [1] * batch, "query": [length] * batch,
           "packed": [draw.randrange(3) for _ in range(batch)]}[case["new"]]
    # The first sequence has no key, others as many as there is room for.
    before = [draw.randrange(room - n + 1) for n in new]
    before[0], before[1] = 0, room - new[1]
    after = [x + n for x, n in zip(before, new)]
    pads = [0] * batch
    if case["leftpad"]:
        pads = [draw.randrange(x + 1) for x in before]
    table = slots = None
    if page:
        columns = -(-room // page)
        numbers = list(range(batch * columns + 3))
        draw.shuffle(numbers)
        table = [numbers[b * columns:(b + 1) * columns] for b in range(batch)]
        shape = (len(numbers), page)
        garbage = [[draw.choice([-7, 10**6, 2**31 - 1]) if n * page >= x else one
                    for n, one in enumerate(row)]
                   for row, x in zip(table, after)]
    else:
        slots = list(range(batch))
        if case["slots"]:
            slots = draw.sample(range(batch + 2), batch)
        shape = (batch + 2 * case["slots"], room)

    def find(cache, b, first, end):
        """Views of rows of a sequence."""
        if page:
            return [cache[table[b][j // page], j % page]
                    for j in range(first, end)]
        return [cache[slots[b], j] for j in range(first, end)]

    caches, wanted, news = [], [], []
    for seed in (1, 2):
        cache = torch.full((*shape, kv_heads, size), NAN,
                           dtype=torch.bfloat16, device=DEVICE)
        old = randn(batch, room, kv_heads, size, seed=seed)
        for b in range(batch):
            for j, row in enumerate(find(cache, b, pads[b], before[b])):
                row.copy_(old[b, pads[b] + j])
        caches.append(cache)
        news.append([randn(n, kv_heads, size, seed=seed + 7 * b + 3)
                     for b, n in enumerate(new)])
        wanted.append([[row.clone() for row in find(cache, b, 0, before[b])]
                       for b in range(batch)])
    queries = [randn(n, heads, size, seed=30 + b) for b, n in enumerate(lengths)]
    causal, window = case["order"] == "causal", (-1, -1)
    if case["order"] == "local":
        window = (draw.randrange(40), draw.randrange(20))
    arguments = {"causal": causal, "window_size": window,
                 "num_splits": case["splits"], "return_softmax_lse": True,
                 "cache_seqlens": integers(before)}
    turned, new_turned = queries, news[0]
    if case["rotary"] and case["new"]:
        fraction, interleaved = case["rotary"]
        angles = torch.rand(room + length, int(fraction * size) // 2,
                            device=DEVICE) * 6.28
        table_of = (angles.cos().bfloat16(), angles.sin().bfloat16())
        arguments.update(rotary_cos=table_of[0], rotary_sin=table_of[1],
                         rotary_interleaved=interleaved)

        def places(b, n, moves=True):
            return before[b] + torch.arange(n, device=DEVICE) * moves

        moves = causal or window != (-1, -1)
        turned = [rotate(x, places(b, len(x), moves), *table_of, interleaved)
                  for b, x in enumerate(queries)]
        new_turned = [rotate(x, places(b, len(x)), *table_of, interleaved)
                      for b, x in enumerate(news[0])]
    if case["new"]:
        if case["new"] == "packed":
            arguments["cu_seqlens_k_new"] = pack(new)
            # A row more than there are.
            extra = randn(1, kv_heads, size)
            arguments.update(k=torch.cat([*news[0], extra]),
                             v=torch.cat([*news[1], extra]))
        else:
            arguments.update(k=torch.stack(news[0]), v=torch.stack(news[1]))
    if page:
        arguments["page_table"] = integers(garbage)
    elif case["slots"]:
        arguments["cache_batch_idx"] = integers(slots)
    if case["leftpad"]:
        arguments["cache_leftpad"] = integers(pads)
    if case["packed"]:
        query = torch.cat(queries)
        arguments.update(cu_seqlens_q=pack(lengths), max_seqlen_q=max(lengths))
    else:
        query = torch.stack(queries)
    found, lse = fovea.flash_attn_with_kvcache(query, *caches, **arguments)
    at = 0
    for b in range(batch):
        one = lengths[b]
        part = (found[at:at + one], lse[:, at:at + one]) if case["packed"] else (
            found[b], lse[b])
        at += one
        k, v = (torch.stack([torch.zeros_like(row) if j < pads[b] else row
                             for j, row in enumerate(rows[b])] + [*added[b]])
                if after[b] else caches[0].new_zeros(0, kv_heads, size)
                for rows, added in zip(wanted, (new_turned, news[1])))
        # Rotated in f64, then rounded, the cache is exact but for ties.
        for cache, rows in zip(caches, (k, v)):
            for j, row in enumerate(find(cache, b, before[b], after[b])):
                assert torch.allclose(row, rows[before[b] + j], rtol=1e-2,
                                      atol=1e-2)
        if after[b]:
            stored = [torch.stack(find(cache, b, 0, after[b]))
                      for cache in caches]
            k, v = (torch.where((torch.arange(after[b], device=DEVICE)
                                 < pads[b])[:, None, None], rows, kept)
                    for rows, kept in zip((k, v), stored))
        keep = find_keep(one, after[b], causal, window, 0, pads[b])
        exact, exact_lse = attend(turned[b], k, v, keep)
        own, _ = attend(turned[b], k, v, keep, torch.bfloat16)
        check(part[0], exact, own)
        check_lse(part[1], exact_lse)


@pytest.mark.parametrize("heads, kv_heads", [(8, 2), (12, 2), (14, 2), (6, 2), (16, 1)])
@pytest.mark.parametrize("batch, queries, room", [
    (1, 20, 2100), (3, 40, 2200), (30, 17, 90), (9, 70, 100), (4, 160, 300)])
def test_kvcache_groups(heads, kv_heads, batch, queries, room):
    """Heads of a group are rows of a batch's queries on a GPU, of few and of several."""
    q = randn(batch, queries, heads, 64)
    k, v = (randn(batch, room, kv_heads, 64, seed=seed) for seed in (1, 2))
    lengths = [(room * b) // max(batch - 1, 1) for b in range(batch)]
    if batch == 1:
        lengths = [room]
    found, lse = fovea.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=integers(lengths), causal=True, return_softmax_lse=True)
    for b in {0, batch // 2, batch - 1}:
        part = [q[b], k[b, :lengths[b]], v[b, :lengths[b]],
                find_keep(queries, lengths[b], True)]
        exact, exact_lse = attend(*part)
        check(found[b], exact, attend(*part, q.dtype)[0])
        check_lse(lse[b], exact_lse)


@pytest.mark.parametrize("pages", [False, True])
def test_kvcache_length_is_a_number(pages):
    q, cache = randn(2, 1, 4, 32), randn(2, 64, 2, 32, seed=1)
    same = fovea.flash_attn_func(q, cache[:, :33], cache[:, :33], causal=True)
    options = {"cache_seqlens": 33, "causal": True}
    shape = cache
    if pages:
        shape = cache.reshape(8, 16, 2, 32)
        options["page_table"] = torch.arange(8, device=DEVICE).view(2, 4)
    found = fovea.flash_attn_with_kvcache(q, shape, shape, **options)
    assert torch.equal(found, same)
    whole = fovea.flash_attn_with_kvcache(
        q, shape, shape, **{**options, "cache_seqlens": None})
    assert torch.equal(whole, fovea.flash_attn_func(q, cache, cache, causal=True))


def test_kvcache_options():
    """A soft cap, sinks, chunks and a scale, on pages."""
    q, cache = randn(2, 3, 4, 32) * 4, randn(6, 16, 2, 32, seed=1)
    table, lengths = integers([[4, 1, 9], [0, 3, 5]]), [20, 47]
    sinks = randn(4, dtype=torch.float32, seed=3)
    found, lse = fovea.flash_attn_with_kvcache(
        q, cache, cache, cache_seqlens=integers(lengths), page_table=table,
        causal=True, softcap=9.0, attention_chunk=8, softmax_scale=0.4,
        s_aux=sinks, return_softmax_lse=True)
    for b, n in enumerate(lengths):
        rows = cache[table[b].clamp(max=5).long()].flatten(0, 1)[:n]
        part = [q[b], rows, rows, find_keep(3, n, True, chunk=8)]
        options = {"softcap": 9.0, "scale": 0.4, "sinks": sinks}
        exact, exact_lse = attend(*part, **options)
        check(found[b], exact, attend(*part, torch.bfloat16, **options)[0])
        check_lse(lse[b], exact_lse)


def to_small(x):
    return x.to(torch.float8_e4m3fn)


@pytest.mark.parametrize("layout", ["contiguous", "slots", "pages", "packed"])
@pytest.mark.parametrize("appends", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_kvcache_of_8_bits(layout, appends, dtype):
    """Keys and values are what their bytes are in every type, times the factors of
    their heads. What lies behind lengths is NaN."""
    before, heads, size = [0, 13, 31], 4, 32
    before[0] += not appends
    after = [n + appends for n in before]
    lengths = [2, 1, 3] if layout == "packed" else [3, 3, 3]
    rows = [to_small(randn(3, 32, 2, size, seed=seed) * 3) for seed in (1, 2)]
    scales = [torch.rand(3, 2, device=DEVICE) + 0.5 for _ in range(2)]
    options = {"cache_seqlens": integers(before), "causal": True, "softcap": 20.0,
               "k_descale": scales[0], "v_descale": scales[1],
               "return_softmax_lse": True}
    places = {(b, j): (b, j) for b in range(3) for j in range(32)}
    shape = (3, 32)
    if layout == "slots":
        options["cache_batch_idx"] = integers([4, 0, 2])
        places = {(b, j): ((4, 0, 2)[b], j) for b, j in places}
        shape = (5, 32)
    elif layout != "contiguous":
        table = torch.randperm(14)[:12].view(3, 4)
        options["page_table"] = integers(table.tolist())
        places = {(b, j): (int(table[b, j // 8]), j % 8) for b, j in places}
        shape = (14, 8)
    caches, new = [], []
    for kind in rows:
        cache = torch.full((*shape, 2, size), 0x7f, dtype=torch.uint8, device=DEVICE)
        for b, n in enumerate(before):
            for j in range(n):
                cache[places[b, j]] = kind[b, j].view(torch.uint8)
        caches.append(cache.view(torch.float8_e4m3fn))
        new.append(torch.stack([kind[b, n:n + 1].view(torch.uint8)
                                for b, n in enumerate(before)
                                if appends] or [cache[0, :1]]).view(kind.dtype))
    if appends:
        options.update(k=new[0], v=new[1])
    queries = [randn(n, heads, size, dtype=dtype, seed=9 + b)
               for b, n in enumerate(lengths)]
    if layout == "packed":
        options.update(cu_seqlens_q=pack(lengths), max_seqlen_q=3)
        query = torch.cat(queries)
    else:
        query = torch.stack(queries)
    found, lse = fovea.flash_attn_with_kvcache(query, *caches, **options)
    at = 0
    for b, n in enumerate(lengths):
        part = (found[at:at + n], lse[:, at:at + n]) if layout == "packed" else (
            found[b], lse[b])
        at += n
        k, v = (kind[b, :after[b]].double() * scale[b].double()[:, None]
                for kind, scale in zip(rows, scales))
        keep = find_keep(n, after[b], True)
        exact, exact_lse = attend(queries[b], k, v, keep, softcap=20.0)
        own, _ = attend(queries[b], k.to(dtype), v.to(dtype), keep, dtype,
                        softcap=20.0)
        assert part[0].dtype == dtype
        check(part[0], exact, own)
        check_lse(part[1], exact_lse)
        for kind, cache in zip(rows, caches):
            for j in range(after[b]):
                assert torch.equal(cache[places[b, j]].view(torch.uint8),
                                   kind[b, j].view(torch.uint8))


@pytest.mark.parametrize("layout", ["contiguous", "slots", "pages"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("queries", [1, 3])
def test_split_size_fixes_bits(layout, dtype, queries):
    """The results of a sequence are the same bits in any batch and in caches of any
    size, where sums are divided at multiples of a size; other sizes give others."""
    torch.manual_seed(1)
    batch, room, heads, kv_heads, size, page = 6, 768, 4, 2, 64, 48
    q = torch.randn(batch, queries, heads, size, dtype=dtype, device=DEVICE)
    caches = [torch.randn(batch, room, kv_heads, size, dtype=dtype, device=DEVICE)
              for _ in range(2)]
    lengths = torch.tensor([768, 3, 129, 511, 256, 0], dtype=torch.int32,
                           device=DEVICE)
    order = torch.randperm(batch * room // page, device=DEVICE)
    table = order.view(batch, -1).int()
    if layout == "pages":
        for at, cache in enumerate(caches):
            caches[at] = torch.empty_like(cache).view(-1, page, kv_heads, size)
            caches[at][order] = cache.view(-1, page, kv_heads, size)

    def call(rows, split_size=128, rooms=room):
        rows = torch.tensor(rows, device=DEVICE)
        options = {}
        if layout == "contiguous":
            parts = [cache[rows, :rooms].contiguous() for cache in caches]
        else:
            parts = caches
            options = ({"cache_batch_idx": rows.int()} if layout == "slots" else
                       {"page_table": table[rows, :-(-rooms // page)]})
        return fovea.flash_attn_with_kvcache(
            q[rows], *parts, cache_seqlens=lengths[rows], causal=True,
            return_softmax_lse=True, split_size=split_size, **options)

    whole = call(range(batch))
    for rows, rooms in (([0], room), ([1], room), ([1], 48), ([2, 1], 144),
                        ([4, 3], room), ([5], room), ([3, 3, 0, 5, 1, 2, 4], room)):
        for x, y in zip(call(rows, rooms=rooms), whole):
            assert torch.equal(x, y[torch.tensor(rows, device=DEVICE)])
    other = call(range(batch), split_size=256)
    assert (other[0] - whole[0]).abs().max() < 2**-6
    if dtype == torch.float32:
        assert not torch.equal(other[0], whole[0])


def test_more_parts_than_are_merged_at_a_time():
    q, cache = randn(3, 1, 4, 32), randn(3, 9100, 1, 32, seed=1)
    values = randn(3, 9100, 1, 32, seed=2)
    lengths = integers([9100, 0, 8193])
    found, lse = fovea.flash_attn_with_kvcache(
        q, cache, values, cache_seqlens=lengths, causal=True, split_size=64,
        return_softmax_lse=True)
    own, own_lse = fovea.flash_attn_with_kvcache(
        q, cache, values, cache_seqlens=lengths, causal=True, return_softmax_lse=True)
    assert (found.float() - own.float()).abs().max() < 2e-3
    assert torch.equal(lse.isinf(), own_lse.isinf()) and torch.allclose(
        lse.nan_to_num(), own_lse.nan_to_num(), atol=1e-5)


def test_factors_of_8_bits_are_of_scores_and_outputs():
    """No factor is multiplied for each element of a cache."""
    q, cache = randn(1, 1, 4, 32), to_small(randn(2, 8, 2, 32))
    found = fovea.explain(fovea.flash_attn_with_kvcache, q, cache, cache,
                          k_descale=torch.ones(1, 2, device=DEVICE),
                          v_descale=torch.ones(1, 2, device=DEVICE),
                          page_table=integers([[1, 0]]), cache_seqlens=9)
    text = found.mlir("attn")
    before, attention = text.split("attn.attention")
    # One product gives the value of a byte.
    assert before.count("arith.mulf") == 2 and "descale" not in before.split("{", 1)[1]
    assert attention.count("arith.mulf") == 2


def test_kvcache_rotary_lengths():
    q, cache = randn(1, 2, 2, 16), randn(1, 32, 2, 16, seed=1)
    new = randn(1, 2, 2, 16, seed=2)
    angles = torch.rand(40, 8, device=DEVICE)
    cos, sin = angles.cos(), angles.sin()
    at = torch.arange(2, device=DEVICE)
    k = torch.cat([cache[0, :9], rotate(new[0], at + 21, cos, sin, True)])
    v = torch.cat([cache[0, :9], new[0]])
    found = fovea.flash_attn_with_kvcache(
        q, cache.clone(), cache.clone(), new, new, rotary_cos=cos,
        rotary_sin=sin, cache_seqlens=9, rotary_seqlens=integers([21]),
        causal=True)
    part = [rotate(q[0], at + 21, cos, sin, True), k, v, find_keep(2, 11, True)]
    check(found[0], attend(*part)[0], attend(*part, torch.bfloat16)[0])


@pytest.mark.parametrize("paged", [True, False])
def test_append_in_one_call(paged):
    """A graph rotates and writes rows in front of attention: PyTorch does nothing
    to tensors but make results."""
    q, cache, new = randn(2, 1, 4, 32), randn(6, 8, 2, 32), randn(2, 1, 2, 32)
    cos, sin = torch.rand(2, 40, 16, device=DEVICE)
    options = {"cache_seqlens": integers([3, 0]), "rotary_cos": cos,
               "rotary_sin": sin, "causal": True}
    if paged:
        options["page_table"] = integers([[4, 1], [0, 3]])
    other = cache.clone()
    version = cache._version
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        fovea.flash_attn_with_kvcache(q, cache, other, new, new, **options)
    names = {event.key for event in profile.key_averages()}
    assert not names & {"aten::index_put_", "aten::mul", "aten::cat",
                        "aten::stack", "aten::rsub"}
    assert cache._version == version + 1
    # On the CPU rows without a place are refused before.
    if DEVICE != "cpu":
        assert not names & {"aten::index", "aten::sub", "aten::add",
                            "aten::arange", "aten::floor_divide"}


def test_append_by_operators(monkeypatch):
    """Where a graph cannot write to caches, PyTorch's operators do, with the same
    results: here one tensor is both caches, in which values come last."""
    q, new = randn(2, 3, 4, 32), randn(2, 2, 2, 2, 32)
    angles = torch.rand(40, 8, device=DEVICE)
    for extra in ({}, {"rotary_cos": angles.cos(), "rotary_sin": angles.sin()}):
        options = {"page_table": integers([[4, 1], [0, 3]]), "causal": True,
                   "cache_seqlens": integers([3, 7]), **extra}
        found = []
        for by_graph in (True, False):
            if not by_graph:
                monkeypatch.setattr(_append, "_runs_now", lambda *_: False)
            caches = randn(6, 8, 2, 32), randn(6, 8, 2, 32, seed=1)
            found.append((fovea.flash_attn_with_kvcache(
                q, *caches, new[0], new[1], **options), *caches))
            monkeypatch.undo()
        for one, other in zip(*found):
            assert torch.allclose(one, other, rtol=1e-2, atol=1e-2)
    both = randn(6, 8, 2, 32)
    fovea.flash_attn_with_kvcache(q, both, both, new[0], new[1], **options)
    assert torch.equal(both[4, 3], new[1][0, 0])
    assert torch.equal(both[0, 7], new[1][1, 0])


def test_append_with_other_sizes():
    """Values that are longer than keys, and lengths that are one integer."""
    q, k, v = randn(2, 2, 4, 32), randn(3, 8, 2, 32), randn(3, 8, 2, 64, seed=1)
    new = randn(2, 1, 2, 32, seed=2), randn(2, 1, 2, 64, seed=3)
    found = fovea.flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=4,
                                          cache_batch_idx=integers([2, 0]))
    for b, slot in enumerate((2, 0)):
        assert torch.equal(k[slot, 4], new[0][b, 0])
        assert torch.equal(v[slot, 4], new[1][b, 0])
        part = [q[b], k[slot, :5], v[slot, :5], find_keep(2, 5, False)]
        check(found[b], attend(*part)[0], attend(*part, torch.bfloat16)[0])


def test_append_out_of_range():
    """New rows behind the last page or slot are refused on the CPU and left out on
    a GPU, and positions that the tables lack are no numbers."""
    q, cache, new = randn(1, 1, 2, 16), randn(4, 8, 2, 16), randn(1, 2, 2, 16)
    for lengths, table in ((16, [[2, 1]]), (15, [[2, 1]]), (7, [[9]]), (7, None)):
        options = {} if table is None else {"page_table": integers(table)}
        before = cache.clone()

        def run(keys=before):
            fovea.flash_attn_with_kvcache(q, keys, keys.clone(), new, new,
                                          cache_seqlens=lengths, **options)

        if DEVICE == "cpu":
            with pytest.raises(IndexError, match="out of bounds"):
                run()
            assert torch.equal(before, cache)
        else:
            run()
            place = {15: (1, 7), 7: (0, 7)}.get(lengths)
            if place and table != [[9]]:
                assert torch.equal(before[place], new[0, 0])
                before[place] = cache[place]
            assert torch.equal(before, cache)
    angles = torch.rand(8, 4, device=DEVICE)
    rows = cache[:1].clone()
    fovea.flash_attn_with_kvcache(
        q, rows, rows.clone(), new, new, cache_seqlens=3, rotary_cos=angles,
        rotary_sin=angles, rotary_seqlens=integers([7]))
    assert not rows[0, 3].isnan().any()
    assert rows[0, 4, :, :8].isnan().all() and not rows[0, 4, :, 8:].isnan().any()


#--- Compilations -------------------------------------------------------------

def test_no_recompilation():
    """Other batches, lengths, numbers of pages and, from two on, of packed queries
    have the same kernel."""
    def step(batch, columns, lengths, page=16):
        q = randn(batch, 1, 4, 32)
        cache = randn(batch * columns + 1, page, 2, 32, seed=1)
        table = torch.arange(batch * columns, device=DEVICE).view(batch, columns)
        fovea.flash_attn_with_kvcache(
            q, cache, cache, cache_seqlens=integers(lengths),
            page_table=table.int(), causal=True)
        flat = cache.flatten(0, 1)[None, :batch * columns * page]
        flat = flat.reshape(batch, columns * page, 2, 32)
        for slots in (None, integers(list(range(batch))).flip(0)):
            fovea.flash_attn_with_kvcache(
                q, flat, flat, cache_seqlens=integers(lengths),
                cache_batch_idx=slots, causal=True)
        fovea.flash_attn_with_kvcache(
            q, flat, flat, cache_seqlens=max(lengths), causal=True)
        packed = torch.cat([q[:, 0]] * batch)
        fovea.flash_attn_with_kvcache(
            packed, flat, flat, cache_seqlens=integers(lengths), causal=True,
            cu_seqlens_q=pack([batch] * batch), max_seqlen_q=batch)
        fovea.flash_attn_varlen_func(
            flat[0, :, :, :], flat[0], flat[0], pack(lengths), pack(lengths),
            causal=True)

    step(2, 3, [5, 40])
    before = count_texts()
    for batch, columns, lengths in ((3, 3, [1, 48, 0]), (2, 9, [144, 16]),
                                    (7, 2, [3] * 7), (4, 2, [9, 8, 7, 32])):
        step(batch, columns, lengths)
    assert count_texts() == before


class Traced(Exception):
    """Is raised in place of running a graph."""


@pytest.mark.parametrize("is_packed, length, size", [
    (True, 1, "1"), (True, 2, "?"), (True, 16, "?"), (True, 17, "?"),
    (False, 1, "1"), (False, 2, "2"), (False, 16, "16"), (False, 17, "?")])
def test_lengths_of_gpu_graphs(is_packed, length, size, monkeypatch):
    """On a GPU one kernel serves packed queries of any number but one, by loops that
    copy them and the results as they lie. Few that are not packed are static."""
    texts = []

    def attend(query, key, value, captures, numbers, text, *_):
        texts.append(text)
        raise Traced

    # As if the tensors were in a GPU's memory, and no call was kept.
    monkeypatch.setattr(_gather, "write_length",
                        lambda length, _: _regions.write_length(length, True))
    monkeypatch.setattr(_flash_options, "is_watched", lambda: True)
    monkeypatch.setattr(_operator, "attention", attend)
    q, cache = randn(2, length, 4, 32), randn(2, 64, 2, 32, seed=1)
    options = {"cache_seqlens": integers([20, 30]), "causal": True}
    if is_packed:
        q = q.flatten(0, 1)
        options.update(cu_seqlens_q=pack([length, length]), max_seqlen_q=length)
    else:
        options.update(cache_batch_idx=integers([1, 0]))
    with pytest.raises(Traced):
        fovea.flash_attn_with_kvcache(q, cache, cache, **options)
    [text] = texts
    types = dict(line[1:].split(" = ") for line in text.splitlines()
                 if line.startswith("!"))
    name = "queries" if is_packed else "query"
    assert types[name] == f"tensor<?x4x{size}x32xbf16>"
    assert text.count(" = scf.forall (") == (0, 1, 2)[is_packed * min(length, 2)]


def test_graph_can_be_read():
    """The graph has the gathers, and a text at every level."""
    q, cache = randn(2, 1, 4, 32), randn(6, 16, 2, 32, seed=1)
    found = fovea.explain(
        fovea.flash_attn_with_kvcache, q, cache, cache, causal=True,
        cache_seqlens=integers([20, 30]), page_table=integers([[1, 2], [3, 4]]))
    text = found.mlir("attn")
    assert [operand.name for operand in found.operands] == [
        "query", "key", "value", "page_table", "cache_seqlens", "number0"]
    assert text.count("linalg.generic") == 2
    assert text.count("attn.attention") == 1
    assert "arith.divui" in text and "attn.online_attention" in found.mlir("tiled")


@pytest.mark.parametrize("backend", ["eager", "fovea"])
def test_compiled(backend):
    """Dynamo takes calls, with Fovea's backend into its graph."""
    import fovea.torch  # noqa: F401

    def attend(q, cache, table, lengths, starts):
        rows = cache.flatten(0, 1)
        return (fovea.flash_attn_func(q, cache[:2], cache[:2], causal=True) + 1,
                fovea.flash_attn_with_kvcache(
                    q * 2, cache, cache, cache_seqlens=lengths, page_table=table,
                    causal=True),
                fovea.flash_attn_with_kvcache(
                    q * 2, cache, cache, cache_seqlens=9, causal=True),
                fovea.flash_attn_varlen_func(
                    q.flatten(0, 1), rows, rows, starts, starts, causal=True))

    inputs = (randn(2, 3, 4, 32), randn(6, 16, 2, 32, seed=1),
              integers([[1, 2], [3, 4]]), integers([20, 30]),
              integers([0, 2, 6]))
    with torch.no_grad():
        found = torch.compile(attend, backend=backend)(*inputs)
        for one, other in zip(found, attend(*inputs)):
            assert torch.allclose(one, other, atol=1e-2, rtol=1e-2)


#--- Errors -------------------------------------------------------------------

Q, KV = (2, 3, 4, 16), (2, 8, 2, 16)


@pytest.mark.parametrize("change, message", [
    ({"q": randn(2, 3, 4)}, r"q: expected a tensor of rank 4, got one of shape "
     r"\(2, 3, 4\)"),
    ({"k": 3}, "k: expected a tensor, got int"),
    ({"k": randn(2, 8, 3, 16), "v": randn(2, 8, 3, 16)},
     "k: expected a number of heads that divides that of q, 4, got 3"),
    ({"k": randn(2, 8, 2, 8)}, "k: expected the features of q, 16, got 8"),
    ({"v": randn(2, 7, 2, 16)}, r"v: expected a shape \(2, 8, 2\)"),
    ({"v": randn(*KV, dtype=torch.float16)},
     "v: expected torch.bfloat16, as q has, got torch.float16"),
    ({"q": torch.zeros(Q, dtype=torch.float8_e4m3fn)},
     "q: expected float16, .*, got torch.float8_e4m3fn"),
    ({"k": randn(1, 8, 2, 16), "v": randn(1, 8, 2, 16)},
     "k: expected the batch of q, 2, got 1"),
    ({"q_descale": torch.ones(2, 2)}, "q_descale: expected None; only caches of float8"),
    ({"qv": randn(*Q)}, "qv: expected None"),
    ({"window_size": (1, 2, 3)}, r"window_size: expected \(left, right\)"),
    ({"softcap": -1.0}, "softcap: expected 0 or more, got -1.0"),
    ({"attention_chunk": -1}, "attention_chunk: expected 0 or more"),
    ({"num_splits": -2}, "num_splits: expected 0 or more, got -2"),
    ({"pack_gqa": 3}, "pack_gqa: expected None or a bool, got 3"),
    ({"s_aux": torch.zeros(3)}, r"s_aux: expected a tensor of floats of shape "
     r"\(4,\)"),
])
def test_func_errors(change, message):
    arguments = {"q": randn(*Q), "k": randn(*KV), "v": randn(*KV), **change}
    with pytest.raises((ValueError, TypeError, NotImplementedError),
                       match=message):
        fovea.flash_attn_func(**arguments)


NEW = {"k": randn(2, 1, 2, 16), "v": randn(2, 1, 2, 16)}
SMALL = {name: to_small(randn(*KV)) for name in ("k_cache", "v_cache")}


@pytest.mark.parametrize("change, message", [
    ({"page_table": integers([1, 2])}, r"page_table: .* of shape \(2, any\)"),
    ({"page_table": integers([[1], [2]]), "cache_batch_idx": integers([0, 1])},
     "cache_batch_idx: expected None beside page_table"),
    ({"cache_seqlens": integers([1])}, r"cache_seqlens: .* of shape \(2\)"),
    ({"cache_leftpad": torch.zeros(2)}, "cache_leftpad: expected int32 or int64"),
    ({"q": randn(3, 1, 4, 16)}, "k_cache: expected a slot for each of 3"),
    ({"q": randn(8, 4, 16), "cu_seqlens_q": integers([0, 3, 8])},
     "max_seqlen_q: expected an integer beside cu_seqlens_q"),
    ({"split_size": 100}, "split_size: expected 0 or a multiple of 64, got 100"),
    ({"k": NEW["k"]}, "v: expected a tensor beside k, got None"),
    (NEW, "cache_seqlens: expected where new keys begin"),
    ({**NEW, "k": randn(2, 1, 2, 8), "cache_seqlens": 3},
     r"k: expected \(batch, new keys, heads, features\) of the cache, "
     r"\(2, 1, 2, 16\), got \(2, 1, 2, 8\)"),
    ({"rotary_cos": torch.ones(9, 8)}, "k: expected a tensor beside rotary_cos"),
    ({**NEW, "cache_seqlens": 3, "rotary_cos": torch.ones(9, 8),
      "rotary_sin": torch.ones(9, 4)}, "rotary_sin: expected a tensor"),
    ({**NEW, "cache_seqlens": 3, "cu_seqlens_k_new": integers([0, 1, 2])},
     r"k: expected \(new keys, heads, features\)"),
    ({"k_descale": torch.ones(2, 2)}, "k_descale: expected None"),
    ({**SMALL, "k_descale": torch.ones(2)},
     r"k_descale: expected a tensor of float32 of shape \(2, 2\), .* \(2,\)"),
    ({**SMALL, "v_descale": 1.0}, "v_descale: .*, got float"),
    ({**SMALL, "q_descale": torch.ones(2, 2)}, "q_descale: expected None"),
    ({"k_cache": SMALL["k_cache"]},
     "v_cache: expected torch.float8_e4m3fn, as k_cache has, got torch.bfloat16"),
    ({**SMALL, **NEW, "cache_seqlens": 3}, "k: expected torch.float8_e4m3fn"),
    ({**SMALL, "q": to_small(randn(*Q))}, "q: expected float16"),
    ({**SMALL, "rotary_cos": torch.ones(9, 8)}, "rotary_cos: expected None beside"),
])
def test_kvcache_errors(change, message):
    arguments = {"q": randn(*Q), "k_cache": randn(*KV), "v_cache": randn(*KV),
                 **change}
    with pytest.raises((ValueError, TypeError, NotImplementedError),
                       match=message):
        fovea.flash_attn_with_kvcache(**arguments)

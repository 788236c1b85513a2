# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash_attn_with_kvcache on packed queries, of sequences with many queries and few."""

import ctypes
import itertools
import mmap
import sys

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from flash import attend, check, check_lse, find_keep, integers, pack, randn
from mods import DEVICE

NAN = float("nan")


def attend_packed(lengths, kv_lengths, size, page=0, heads=16, group=4, **options):
    """Many queries, packed, on caches of which what lies behind a length is NaN:
    checks each sequence."""
    kv_heads = heads // group
    batch, room = len(lengths), max(*kv_lengths, 1)
    queries = [randn(n, heads, size, seed=9 + b) for b, n in enumerate(lengths)]
    rows = [[randn(n, kv_heads, size, seed=50 * kind + b)
             for b, n in enumerate(kv_lengths)] for kind in (1, 2)]
    count = -(-room // page) if page else 1
    table = torch.randperm(batch * count).view(batch, count)
    caches = []
    for kind in rows:
        cache = torch.full((batch, count * (page or room), kv_heads, size), NAN,
                           dtype=kind[0].dtype, device=DEVICE)
        for b, keys in enumerate(kind):
            cache[b, :len(keys)] = keys
        if page:
            pages = cache.view(batch * count, page, kv_heads, size)
            cache = torch.empty_like(pages)
            cache[table.flatten().to(DEVICE)] = pages
        caches.append(cache)
    if page:
        options["page_table"] = integers(table.tolist())
    options.setdefault("max_seqlen_q", max(lengths))
    found, lse = fovea.flash_attn_with_kvcache(
        torch.cat(queries), *caches, cache_seqlens=integers(kv_lengths),
        cu_seqlens_q=pack(lengths), return_softmax_lse=True, **options)
    for b, at in enumerate(itertools.accumulate([0, *lengths[:-1]])):
        one = lengths[b]
        keep = find_keep(one, kv_lengths[b], options.get("causal"))
        exact, exact_lse = attend(queries[b], rows[0][b], rows[1][b], keep)
        own, _ = attend(queries[b], rows[0][b], rows[1][b], keep, torch.bfloat16)
        check(found[at:at + one], exact, own)
        check_lse(lse[:, at:at + one], exact_lse)


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("lengths, kv_lengths", [
    ([300, 0, 1, 129, 64], [300, 40, 77, 200, 64]),
    ([0, 0, 257], [0, 90, 257]), ([140], [0]), ([20, 190], [310, 190])])
def test_kvcache_packed_prefill(size, page, lengths, kv_lengths):
    attend_packed(lengths, kv_lengths, size, page, causal=True)


@pytest.mark.parametrize("size, page, group", [(64, 0, 4), (128, 16, 4), (128, 0, 1)])
@pytest.mark.parametrize("lengths, kv_lengths", [
    ([40], [2500]), ([3, 1, 0, 20, 1], [2100, 500, 700, 2304, 0]),
    ([2, 2, 2], [3000, 40, 2048])])
def test_kvcache_packed_few(size, page, group, lengths, kv_lengths):
    """A few queries on many keys, of which tiles have parts on a GPU."""
    attend_packed(lengths, kv_lengths, size, page, group=group, causal=True)


@pytest.mark.parametrize("group", [2, 5, 6, 7, 32])
def test_kvcache_packed_groups(group):
    """Heads of a group are rows of one where they are 2 to 16, beside some without a head,
    or shares of as many."""
    attend_packed([150, 0, 1, 30], [150, 40, 77, 210], 64, heads=2 * group, group=group,
                  causal=True)


def test_kvcache_packed_all_keys():
    attend_packed([130, 3, 0, 70], [90, 5, 8, 200], 64)


def test_kvcache_packed_longest():
    """The largest number of queries may be said to be far more."""
    attend_packed([30, 20], [60, 20], 64, causal=True, max_seqlen_q=10**12)


def test_kvcache_packed_starts():
    """Starts that lie outside of the queries, or decrease, reach no other memory."""
    q = randn(200, 16, 64)
    k, v = (randn(4, 90, 4, 64, seed=seed) for seed in (1, 2))
    for starts in ([0, 100, 50, 150, 200], [-5, 10, 20, 1000, 2000],
                   [2**31 - 1, -2**31, 5, 100, 200], [200] * 5):
        found = fovea.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=integers([90, -1, 200, 5]),
            cu_seqlens_q=integers(starts), max_seqlen_q=150, causal=True)
        assert found.shape == q.shape
    starts = integers([20, 60, 60, 150, 200])
    found = fovea.flash_attn_with_kvcache(
        q, k, v, cu_seqlens_q=starts, max_seqlen_q=90, causal=True)
    for b in (0, 2, 3):
        rows = slice(int(starts[b]), int(starts[b + 1]))
        keep = find_keep(rows.stop - rows.start, 90, True)
        exact, _ = attend(q[rows], k[b], v[b], keep)
        check(found[rows], exact, attend(q[rows], k[b], v[b], keep, q.dtype)[0])


def put_beside_unreadable(tensor, is_behind):
    """A copy in a CPU's memory, behind or in front of a page that cannot be read."""
    page, size = mmap.PAGESIZE, tensor.nbytes
    room = -(-size // page) * page
    memory = mmap.mmap(-1, room + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert not protect(ctypes.c_void_p(address + (0 if is_behind else room)),
                       ctypes.c_size_t(page), 0)
    copy = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(),
                            offset=page if is_behind else room - size)
    return copy.view(tensor.shape).copy_(tensor)


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages by mprotect")
@pytest.mark.parametrize("is_behind", [True, False])
@pytest.mark.parametrize("starts", [[0, 0, 100, 200, 200], [0] * 5, [200] * 5,
                                    [0, 30, 30, 63, 200]])
def test_kvcache_packed_reads_no_other_memory(starts, is_behind):
    """On a CPU, where a sequence without a query begins with the first one, or behind
    the last."""
    q, k, v = (put_beside_unreadable(x.cpu(), is_behind) for x in (
        randn(200, 16, 64), randn(4, 90, 4, 64), randn(4, 90, 4, 64, seed=2)))
    lengths = torch.tensor([90, 0, 33, 5], dtype=torch.int32)
    found = fovea.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, max_seqlen_q=150, causal=True,
        cu_seqlens_q=torch.tensor(starts, dtype=torch.int32))
    for b, length in enumerate(lengths.tolist()):
        rows = slice(starts[b], starts[b + 1])
        if rows.start == rows.stop:
            continue
        one = [x.to(DEVICE) for x in (q[rows], k[b, :length], v[b, :length])]
        keep = find_keep(rows.stop - rows.start, length, True)
        check(found[rows].to(DEVICE), attend(*one, keep)[0],
              attend(*one, keep, q.dtype)[0])


@pytest.mark.parametrize("count", [5, 200])
@pytest.mark.parametrize("layout", ["contiguous", "slots", "pages"])
@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"causal": True, "window_size": (30, 0)}, {"softcap": 9.0}])
def test_kvcache_one_packed(count, layout, options):
    """One sequence is a batch of one, with its first query and its last one anywhere."""
    q = randn(count, 8, 64)
    k, v = (randn(1, 112, 2, 64, seed=seed) for seed in (1, 2))
    cache, others = [k, v], {}
    if layout == "slots":
        cache = [torch.cat([torch.full_like(x, NAN), x]) for x in cache]
        others["cache_batch_idx"] = integers([1])
    elif layout == "pages":
        cache = [x.view(7, 16, 2, 64) for x in cache]
        others["page_table"] = integers([list(range(7))])
    for starts in ((0, count), (1, count - 1), (count // 2, count // 2), (2, count + 9)):
        found, lse = fovea.flash_attn_with_kvcache(
            q, *cache, cache_seqlens=integers([90]), cu_seqlens_q=integers(starts),
            max_seqlen_q=count, return_softmax_lse=True, **options, **others)
        assert found.shape == q.shape and lse.shape == (8, count)
        rows = slice(*starts)
        keep = find_keep(starts[1] - starts[0], 90, options.get("causal"),
                         options.get("window_size", (-1, -1)))[:count - starts[0]]
        cap = options.get("softcap", 0.0)
        part = [q[rows], k[0, :90], v[0, :90], keep]
        exact, exact_lse = attend(*part, softcap=cap)
        check(found[rows], exact, attend(*part, torch.bfloat16, softcap=cap)[0])
        check_lse(lse[:, rows], exact_lse)

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mods as users of FlexAttention write them, and attention by PyTorch in f64.

Each function makes a mod for BATCH sequences of LENGTH queries and keys and
HEADS heads; `_learned` makes tensors that get gradients, `_fixed` others.
Where a mod uses vectors, which PyTorch does not differentiate, it has another
with numbers.
"""

import math
import os

import pytest
import torch
from torch._dynamo.backends.debugging import aot_eager
from torch._higher_order_ops.flex_attention import math_attention
from torch.nn.attention.flex_attention import (_identity, and_masks, noop_mask,
                                               or_masks)

BATCH, HEADS, LENGTH, DIM = 2, 4, 36, 16

#: Where the tests that use this module run; factories of tensors take it, too.
DEVICE = os.environ.get("FOVEA_TEST_DEVICE", "cpu")


@pytest.fixture(autouse=True)
def on_device():
    with torch.device(DEVICE):
        yield


def randn(*shape, seed=0, dtype=torch.float32):
    """The same numbers on every device."""
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float64,
                       device="cpu").to(DEVICE, dtype)


def plain(mod):
    """The mod that PyTorch can differentiate."""
    return getattr(mod, "plain", mod)


def reference(query, key, value, score_mod=None, mask_mod=None, scale=None):
    """The output, the natural log-sum-exp and the largest scores, in f64."""
    mask = (None,) * 9 + (mask_mod or noop_mask,)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    output, lse, top = math_attention(
        query.double(), key.double(), value.double(), score_mod or _identity,
        mask, scale, {})
    return output, lse * math.log(2), top * math.log(2)


def make_qkv(queries=LENGTH, keys=LENGTH, batch=BATCH, heads=HEADS, kv_heads=None,
             dim=DIM, value_dim=None, dtype=torch.float32, grad=False, seed=0):
    kv_heads = heads if kv_heads is None else kv_heads
    shapes = [(batch, heads, queries, dim), (batch, kv_heads, keys, dim),
              (batch, kv_heads, keys, dim if value_dim is None else value_dim)]
    return [randn(*shape, seed=3 * seed + at, dtype=dtype).requires_grad_(grad)
            for at, shape in enumerate(shapes)]


def _learned(*shape):
    return randn(*shape, seed=sum(shape) + 1).requires_grad_()


def _fixed(end, *shape):
    random = torch.Generator().manual_seed(end + sum(shape))
    return torch.randint(0, end, shape, generator=random, device="cpu").to(DEVICE)


MASKS, SCORES = {}, {}


def _mask(make):
    MASKS[make.__name__.strip("_")] = make
    return make


def _score(make):
    SCORES[make.__name__.strip("_")] = make
    return make


def causal_mask(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


@_mask
def causal():
    return causal_mask


@_mask
def inverse_causal():
    return lambda b, h, q_idx, kv_idx: q_idx <= kv_idx


@_mask
def sliding_window():
    return lambda b, h, q, kv: (q >= kv) & (q - kv <= 7)


@_mask
def prefix_lm():
    prefix = torch.tensor([5, 17])
    return or_masks(causal_mask, lambda b, h, q, kv: kv < prefix[b])


@_mask
def documents():
    ids = torch.sort(_fixed(4, LENGTH)).values.to(torch.int32)
    return and_masks(causal_mask, lambda b, h, q, kv: ids[q] == ids[kv])


@_mask
def documents_of_offsets():
    """Causal within documents of which the starts are given."""
    offsets = torch.tensor([0, 9, 20, LENGTH])
    ids = torch.repeat_interleave(torch.arange(3), offsets.diff())

    def mod(b, h, q, kv):
        same = ids[q] == ids[kv]
        return same & (q - offsets[ids[q]] >= kv - offsets[ids[kv]])

    return mod


@_mask
def dilated():
    return lambda b, h, q, kv: (((q - kv).abs() <= 12)
                                & ((q - kv) % 3 == 0)
                                & (q >= kv))


def _natten(width=6, kernel=3, tile=None):
    def split(index):
        if tile is None:
            return index // width, index % width
        across = width // tile
        within, block = index % (tile * tile), index // (tile * tile)
        return ((block // across) * tile + within // tile,
                (block % across) * tile + within % tile)

    def mod(b, h, q, kv):
        (qx, qy), (kx, ky) = split(q), split(kv)
        cx = qx.clamp(kernel // 2, (width - 1) - kernel // 2)
        cy = qy.clamp(kernel // 2, (width - 1) - kernel // 2)
        return ((cx - kx).abs() <= kernel // 2) & ((cy - ky).abs()
                                                   <= kernel // 2)

    return mod


@_mask
def natten():
    return _natten()


@_mask
def natten_of_tiles():
    return _natten(tile=3)


@_mask
def natten_in_morton_order():
    def unpack(x):
        x = x & 0x55555555
        x = (x ^ (x >> 1)) & 0x33333333
        return (x ^ (x >> 2)) & 0x0F0F0F0F

    def mod(b, h, q, kv):
        near_x = (unpack(q) - unpack(kv)).abs() <= 1
        return near_x & ((unpack(q >> 1) - unpack(kv >> 1)).abs() <= 1)

    return mod


@_mask
def of_true_division():
    def mod(b, h, q, kv):
        row = torch.floor(q / 6)
        return (row - torch.floor(kv / 6)).abs() <= 1

    return mod


@_mask
def block_diffusion():
    half, block = LENGTH // 2, 4

    def mod(b, h, q, kv):
        clean_q, clean_kv = q >= half, kv >= half
        block_q = torch.where(clean_q, (q - half) // block, q // block)
        block_kv = torch.where(clean_kv, (kv - half) // block, kv // block)
        diagonal = (block_q == block_kv) & (clean_q == clean_kv)
        offset = (block_q > block_kv) & clean_kv & ~clean_q
        return diagonal | offset | ((block_q >= block_kv) & clean_kv & clean_q)

    return mod


@_mask
def flamingo():
    """Text attends to the interval of its image."""
    intervals = torch.tensor([[0, 9], [9, 20], [20, 36]])
    image = torch.clamp(torch.arange(LENGTH) // 13, max=2)

    def mod(b, h, q, kv):
        interval = intervals[image[q]]
        found = torch.zeros_like(q, dtype=torch.bool)
        for k in range(3):
            found = found | ((kv >= intervals[k][0]) & (kv < intervals[k][1])
                             & (image[q] == k))
        return found & (kv >= interval[0]) & (kv < interval[1])

    return mod


@_mask
def global_and_sliding():
    is_global = _fixed(4, LENGTH) == 0
    return lambda b, h, q, kv: ((q - kv).abs() < 4) | is_global[q] | is_global[kv]


@_mask
def tree():
    """Speculative decoding: a node sees its ancestors."""
    parents = torch.tensor([0, 0, 0, 1, 1, 2, 3, 4])
    ancestors = torch.zeros(8, 8, dtype=torch.bool)
    for node in range(8):
        at = node
        ancestors[node, node] = True
        while at:
            at = int(parents[at])
            ancestors[node, at] = True
    start = LENGTH - 8

    def mod(b, h, q, kv):
        both = (q >= start) & (kv >= start)
        row = torch.where(q >= start, q - start, 0)
        column = torch.where(kv >= start, kv - start, 0)
        return torch.where(both, ancestors[row, column], q >= kv)

    return mod


@_mask
def shared_prefix():
    prefix, each = 12, 8

    def mod(b, h, q, kv):
        own = (q - prefix) // each == (kv - prefix) // each
        return (q >= kv) & ((kv < prefix) | own)

    return mod


@_mask
def sliding_tiles_3d():
    tile, grid, window = (1, 2, 3), (2, 2, 3), (1, 3, 1)
    volume = math.prod(tile)

    def place(index):
        at = index // volume
        return at // (grid[1] * grid[2]), at // grid[2] % grid[1], at % grid[2]

    def mod(b, h, q, kv):
        keep = kv >= 0
        for x, y, extent, width in zip(place(q), place(kv), grid, window):
            center = x.clamp(width // 2, extent - 1 - width // 2)
            keep = keep & ((center - y).abs() <= width // 2)
        return keep

    return mod


@_mask
def top_blocks():
    """A query's block attends to some blocks, whose numbers are listed."""
    chosen = torch.stack([torch.randperm(9, generator=torch.Generator(
    ).manual_seed(i), device="cpu")[:3] for i in range(BATCH * HEADS * 9)])
    chosen = chosen.reshape(BATCH, HEADS, 9, 3).to(DEVICE)

    def mod(b, h, q, kv):
        row = chosen[b, h, q // 4]
        return (row == kv // 4).any(-1)

    return mod


@_mask
def block_map():
    blocks = _fixed(2, HEADS, 6, 6).bool() | torch.eye(6, dtype=torch.bool)
    return lambda b, h, q, kv: blocks[h, q // 6, kv // 6]


@_mask
def padding_by_length():
    lengths = torch.tensor([20, LENGTH])
    return lambda b, h, q, kv: (q < lengths[b]) & (kv < lengths[b])


@_mask
def dependent():
    """Causal for one half of the sequences, bidirectional for the other."""
    kinds = torch.tensor([True, False])
    return lambda b, h, q, kv: torch.where(kinds[b], q >= kv, kv < 30)


@_mask
def odd_keys_and_empty_rows():
    return lambda b, h, q, kv: (kv % 2 == 1) & (q % 5 != 2)


@_mask
def by_a_number():
    """A position that is a tensor of no dimensions."""
    position = torch.tensor(11)
    return lambda b, h, q, kv: q + position >= kv


@_mask
def new_empty():
    return lambda b, h, q, kv: b.new_ones((), dtype=torch.bool) & (q >= kv)


@_score
def times_two():
    return lambda score, b, h, q, kv: score * 2


@_score
def squared():
    return lambda score, b, h, q, kv: score * score


@_score
def causal_score():
    return lambda score, b, h, q, kv: torch.where(q >= kv, score, -float("inf"))


@_score
def head_offset():
    offset = _learned(HEADS)
    return lambda score, b, h, q, kv: score * 0.5 * offset[h]


@_score
def relative():
    return lambda score, b, h, q, kv: score + (q - kv)


@_score
def distance():
    """Learned, for each distance whatever its sign."""
    table = _learned(LENGTH)
    return lambda score, b, h, q, kv: score + table[torch.abs(q - kv)]


@_score
def alibi():
    slopes = torch.exp2(-torch.arange(1, HEADS + 1) * 8.0 / HEADS)
    return lambda score, b, h, q, kv: score + (kv - q) * slopes[h]


@_score
def trigonometric():
    def mod(score, b, h, q, kv):
        return torch.sin(torch.cos(score)) + torch.tan(b) * 0.1

    return mod


@_score
def activations():
    def mod(score, b, h, q, kv):
        a = torch.nn.functional.gelu(score) + torch.nn.functional.silu(score)
        a = a + torch.nn.functional.gelu(score, approximate="tanh")
        a = a + torch.nn.functional.softplus(score) + torch.sigmoid(score)
        return a + torch.nn.functional.leaky_relu(score) + score.relu()

    return mod


@_score
def soft_cap():
    return lambda score, b, h, q, kv: 3.0 * torch.tanh(score / 3.0)


@_score
def sandwich():
    """A sum of cosines of the distance, unrolled."""
    def mod(score, b, h, q, kv):
        bias = 0.0
        for i in range(4):
            bias = bias + torch.cos((q - kv) / 10000.0**(2.0 * i / 8))
        return score + bias * 8.0 / (h + 1)

    return mod


@_score
def spatial():
    """Graphormer's bias by the distance of two nodes."""
    table, distances = _learned(9), _fixed(9, LENGTH, LENGTH)
    return lambda score, b, h, q, kv: score + table[distances[q, kv]]


@_score
def edges():
    """Graphormer's edges on a path: a mean of a few entries."""
    weights, path = _learned(5, HEADS), _fixed(5, LENGTH, LENGTH, 3)

    def mod(score, b, h, q, kv):
        total = 0.0
        for step in range(3):
            total = total + weights[path[q, kv, step], h]
        return score + total / 3

    return mod


@_score
def rope_by_dot():
    """A second product of queries and keys, of a few features."""
    left, right = _learned(BATCH, HEADS, LENGTH, 4), _learned(BATCH, LENGTH, 4)

    def mod(score, b, h, q, kv):
        return score + torch.dot(left[b, h, q], right[b, kv])

    mod.plain = lambda score, b, h, q, kv: score + sum(
        left[b, h, q, i] * right[b, kv, i] for i in range(4))
    return mod


@_score
def absolute_positions():
    bias = _learned(LENGTH)
    return lambda score, b, h, q, kv: score + bias[q] + bias[kv]


@_score
def full_bias():
    bias = _learned(BATCH, HEADS, LENGTH, LENGTH)
    return lambda score, b, h, q, kv: score + bias[b, h, q, kv]


@_score
def chained_indices():
    bias = _learned(BATCH, HEADS, LENGTH, LENGTH)
    mod = lambda score, b, h, q, kv: score + bias[b][h][q, kv]
    mod.plain = lambda score, b, h, q, kv: score + bias[b, h, q, kv]
    return mod


@_score
def view_of_bias():
    bias = _learned(1, BATCH, HEADS, LENGTH)
    mod = lambda score, b, h, q, kv: score + bias[0][b, h][kv]
    mod.plain = lambda score, b, h, q, kv: score + bias[0, b, h, kv]
    return mod


@_score
def indirect():
    bias, places = _learned(LENGTH), _fixed(LENGTH, LENGTH)
    return lambda score, b, h, q, kv: score + bias[places[kv]]


@_score
def distances():
    """Negative indices count from the end."""
    table = _learned(LENGTH)
    return lambda score, b, h, q, kv: score + table[q - kv]


@_score
def clamped_distances():
    table = _learned(HEADS, 2 * 8 + 1)
    return lambda score, b, h, q, kv: score + table[
        h, torch.clamp(q - kv, -8, 8) + 8]


@_score
def gate():
    gates, scale = _learned(HEADS), _learned(BATCH, 3)

    def mod(score, b, h, q, kv):
        return score * torch.sigmoid(gates[h]) * scale[b].sum(-1)

    mod.plain = lambda score, b, h, q, kv: score * torch.sigmoid(gates[h]) * (
        scale[b, 0] + scale[b, 1] + scale[b, 2])
    return mod


@_score
def flipped():
    bias = _learned(HEADS, LENGTH)
    return lambda score, b, h, q, kv: score * bias[HEADS - 1 - h,
                                                   LENGTH - kv - 1]


@_score
def euclidean():
    """The distance of two points, for each head its own weight."""
    points, weight = _learned(LENGTH, 3), _learned(HEADS)

    def mod(score, b, h, q, kv):
        gap = points[q] - points[kv]
        return score - weight[h] * torch.sqrt((gap * gap).sum(-1) + 1.0)

    mod.plain = lambda score, b, h, q, kv: score - weight[h] * torch.sqrt(
        sum((points[q, i] - points[kv, i])**2 for i in range(3)) + 1.0)
    return mod


@_score
def half_bias():
    bias = _learned(HEADS, LENGTH, LENGTH).detach().to(torch.bfloat16)
    return lambda score, b, h, q, kv: score + bias[h, q, kv]


def compile_eagerly(graph, inputs, config_patches, compiler=aot_eager):
    """Takes inductor's place behind Fovea's pass: what is left runs as it is."""
    config_patches["pre_grad_custom_pass"](graph.graph)
    graph.recompile()
    return compiler(graph, inputs)

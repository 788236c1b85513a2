# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of one sequence by PyTorch, and FlashAttention's rule for errors: at most
twice that of PyTorch's own attention in the type of the operands, beside attention in
f64."""

import itertools
import math

import torch

from fovea import _operator
from mods import DEVICE


def find_keep(length, kv_length, causal=False, window=(-1, -1), chunk=0,
              leftpad=0):
    """The keys that queries see, those in front of `leftpad` removed."""
    i = torch.arange(length, device=DEVICE)[:, None] + kv_length - length
    j = torch.arange(kv_length, device=DEVICE)[None]
    keep = (j >= leftpad) & (i == i)
    left, right = window
    if causal:
        right = 0
    if left >= 0:
        keep &= j >= i - left
    if right >= 0:
        keep &= j <= i + right
    if chunk:
        start = i - i % chunk
        keep &= (j >= start) & (j < start + chunk)
    return keep


def attend(q, k, v, keep, dtype=torch.float64, softcap=0.0, sinks=None,
           scale=None):
    """Attention of one sequence, `[S, H, D]`: the output and the log-sum-exp
    `[H, S]`. In a narrow type scores and probabilities are rounded."""
    q, k, v = (x.to(dtype) for x in (q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scale = q.shape[-1]**-0.5 if scale is None else scale
    scores = torch.einsum("qhd,khd->hqk", q * scale, k)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    wide = scores.to(torch.promote_types(dtype, torch.float32))
    wide = wide.masked_fill(~keep, -math.inf)
    if sinks is not None:
        column = sinks.to(wide.dtype)[:, None, None].expand(*wide.shape[:2], 1)
        wide = torch.cat([wide, column], -1)
    lse = torch.logsumexp(wide, -1)
    weights = torch.where(torch.isfinite(lse)[..., None],
                          torch.exp(wide - lse.nan_to_num(neginf=0)[..., None]), 0)
    weights = weights[..., :k.shape[0]].to(dtype)
    return torch.einsum("hqk,khd->qhd", weights, v), lse


def check(found, exact, own):
    """FlashAttention's rule."""
    assert found.isfinite().all() and found.shape == exact.shape
    error, allowed = ((x.double() - exact).abs() for x in (found, own))
    if error.numel():
        assert error.max() <= 2 * allowed.max() + 1e-5
        assert error.mean() <= 1.5 * allowed.mean() + 1e-6


def check_lse(found, exact):
    assert found.dtype == torch.float32
    both = exact.isneginf() & found.isneginf()
    assert torch.allclose(found.double().masked_fill(both, 0),
                          exact.masked_fill(both, 0), atol=2e-4, rtol=2e-4)


def randn(*shape, dtype=torch.bfloat16, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float32).to(dtype).to(DEVICE)


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def pack(lengths):
    return integers([0, *itertools.accumulate(lengths)])


def count_texts():
    """Returns the number of texts compiled so far."""
    return len(_operator._forwards) + len(_operator._pairs)

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pairs of a Python function and a region in docs/flex-attention.md compute
the same."""

import pathlib
import re

import numpy as np
import pytest

import fovea

torch = pytest.importorskip("torch")

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/flex-attention.md"
PAIRS = (re.findall(r"```python\n(.*?)```\n```mlir\n(.*?)```", PAGE.read_text(),
                    re.S) if PAGE.exists() else [])
BATCH, HEADS, LENGTH, DIM = 2, 4, 24, 16

GRAPH = """
!x = tensor<2x4x24x16xf32>
!s = tensor<2x4x24x24xf32>
func.func @f(%q: !x, %k: !x, %v: !x, {captures}) -> !x {{
  %s = attn.scores %q, %k : !x, !x -> !s
  %t = attn.scale %s by 0.25 : !s
  {region}
  %p = attn.softmax %m : !s -> !s
  %o = attn.values %p, %v : !s, !x -> !x
  return %o : !x
}}
"""


def captures():
    """What the page's mods close over, by name."""
    random = np.random.default_rng(1)
    return {
        "length": np.array([5, 17], np.int32),
        "ids": np.sort(random.integers(0, 4, (BATCH, LENGTH))).astype(np.int32),
        "slopes": -random.random(HEADS).astype(np.float32),
        "table": random.standard_normal((HEADS, 2 * LENGTH - 1), np.float32),
        "decay": random.random(LENGTH, np.float32),
    }


def compute(source, q, k, v, given):
    """By the Python function, in float64."""
    scope = {"torch": torch,
             **{name: torch.from_numpy(value) for name, value in given.items()}}
    exec(source, scope)
    b, h, i, j = torch.meshgrid(*map(torch.arange, (BATCH, HEADS, LENGTH, LENGTH)),
                                indexing="ij")
    scores = q @ k.transpose(-1, -2) * 0.25
    if "mask_mod" in scope:
        scores = scores.masked_fill(~scope["mask_mod"](b, h, i, j), -torch.inf)
    else:
        scores = scope["score_mod"](scores, b, h, i, j)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


@pytest.mark.parametrize("source, region", PAIRS,
                         ids=lambda text: text.splitlines()[1].strip()[:40])
def test_pair(source, region):
    given = {name: value for name, value in captures().items()
             if "%" + name in region}
    types = {np.dtype(np.int32): "i32", np.dtype(np.float32): "f32"}
    declared = ", ".join(
        f"%{name}: tensor<{'x'.join(map(str, value.shape))}x{types[value.dtype]}>"
        for name, value in given.items())
    text = GRAPH.format(captures=declared, region=region).replace(", )", ")")
    attend = fovea.compile(text)
    assert "attn.attention" in attend.mlir("fused")
    random = np.random.default_rng(0)
    q, k, v = random.standard_normal((3, BATCH, HEADS, LENGTH, DIM), np.float32)
    expected = compute(source, *(torch.from_numpy(x).double() for x in (q, k, v)),
                       given)
    unmodified = compute("def mask_mod(b, h, i, j): return i >= 0",
                         *(torch.from_numpy(x).double() for x in (q, k, v)), {})
    assert (expected - unmodified).abs().max() > 0.01
    result = attend(q, k, v, *given.values())
    np.testing.assert_allclose(result, expected.numpy(), rtol=0, atol=2e-6)


def test_page():
    """Every function on the page is in a pair."""
    if not PAGE.exists():
        pytest.fail(f"there is no {PAGE}")
    assert len(PAIRS) == PAGE.read_text().count("```mlir") >= 10
    assert all("_mod(" in source for source, _ in PAIRS)

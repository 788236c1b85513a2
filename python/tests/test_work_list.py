# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of the parts of sequences' keys: each key is in one part, whatever the lengths
are. Scores of zeros make the exponential of the log-sum-exp the number of keys, and an
output the mean of the values, here of their positions."""

import numpy as np
import pytest

import fovea

TILE, ROOM = 16, 200


def compile_parts(split):
    q, k, n = "tensor<?x1x1x16xf32>", "tensor<?x1x?x16xf32>", "tensor<?xi32>"
    return fovea.compile(f"""
func.func @count(%q: {q}, %k: {k}, %v: {k}, %len: {n}) -> ({q}, tensor<?x1x1xf64>) {{
  %o, %l = attn.attention %q, %k, %v scale(1.0)
      mask {{
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %len[%b] : {n}
        %e = arith.index_cast %x : i32 to index
        %keep = arith.cmpi slt, %j, %e : index
        attn.yield %keep : i1
      }} {{schedule = #attn.schedule<tile = 16x{TILE}, order = linear, split = {split}>}}
      : {q}, {k}, {k} -> {q}, tensor<?x1x1xf64>
  return %o, %l : {q}, tensor<?x1x1xf64>
}}""")


@pytest.mark.parametrize("split", ["2", "7", "fixed(32)"])
def test_each_key_once(split):
    function = compile_parts(split)
    rng = np.random.default_rng(0)
    values = np.broadcast_to(np.arange(1, ROOM + 1, dtype=np.float32)[:, None],
                             (ROOM, 16))
    for _ in range(10_000 // 3):
        batch = int(rng.integers(1, 9))
        lengths = rng.integers(0, ROOM + 1, batch).astype(np.int32)
        lengths[rng.random(batch) < 0.3] = rng.integers(0, 3) * TILE
        q = np.zeros((batch, 1, 1, 16), np.float32)
        k = np.zeros((batch, 1, ROOM, 16), np.float32)
        v = np.broadcast_to(values, (batch, 1, ROOM, 16)).copy()
        output, lse = function(q, k, v, lengths)
        assert np.allclose(np.exp(lse[:, 0, 0]), lengths, rtol=1e-6, atol=1e-9)
        mean = np.where(lengths, (lengths + 1) / 2, 0)
        assert np.allclose(output[:, 0, 0], mean[:, None], rtol=1e-5)


def test_many_parts():
    """More parts of a sequence than are merged at a time, beside one without a key."""
    function = compile_parts("fixed(16)")
    lengths = np.array([2048 + 16 * 131 + 5, 0, 2048, 2049], np.int32)
    room = int(lengths.max())
    k = np.zeros((4, 1, room, 16), np.float32)
    v = np.broadcast_to(np.arange(1, room + 1, dtype=np.float32)[:, None],
                        (4, 1, room, 16)).copy()
    output, lse = function(np.zeros((4, 1, 1, 16), np.float32), k, v, lengths)
    assert np.allclose(np.exp(lse[:, 0, 0]), lengths, rtol=1e-6)
    mean = np.where(lengths, (lengths + 1) / 2, 0)
    assert np.allclose(output[:, 0, 0], mean[:, None], rtol=1e-5)

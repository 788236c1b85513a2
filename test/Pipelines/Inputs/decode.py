"""Writes the graphs that calls of Fovea's Python functions become on a CUDA
device, for `decode.py FOLDER`. Tensors are fake: no device is needed."""

import pathlib
import sys

import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import fovea
from fovea._values import Number


class Graphs(TorchDispatchMode):
    """Keeps the text of the operator that ran last."""

    text = None

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if str(operator) == "fovea.attention.default":
            self.text = next(arg for arg in args if isinstance(arg, str))
        return operator(*args, **(kwargs or {}))


def padded(seen):
    """The mask that transformers hands on for a left-padded batch: positions
    of queries and keys begin at numbers."""
    first_query, first_key = Number(4095), Number(0)

    def mask_mod(b, h, q_idx, kv_idx):
        q_idx, kv_idx = q_idx + first_query, kv_idx + first_key
        return (kv_idx <= q_idx) & torch.ops.aten.index(seen, [b, kv_idx])

    return mask_mod


def make(heads, length):
    return torch.empty(1, heads, length, 128, dtype=torch.bfloat16, device="cuda")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with FakeTensorMode(), torch.no_grad(), Graphs() as graphs:
        k, v = make(8, 4096), make(8, 4096)
        seen = torch.ones(1, 4096, dtype=torch.bool, device="cuda")
        for name, queries, call in (
                ("sdpa", 1, lambda q: fovea.scaled_dot_product_attention(
                    q, k, v, enable_gqa=True)),
                ("flex", 1, lambda q: fovea.flex_attention(
                    q, k, v, lambda score, b, h, i, j: score * 2, enable_gqa=True)),
                ("padded", 1, lambda q: fovea.attention(
                    q, k, v, mask_mod=padded(seen))),
                *((f"causal{queries}", queries, lambda q: fovea.attention(
                    q, k, v, causal=True, q_offset=4000))
                  for queries in (1, 16, 17))):
            call(make(32, queries))
            (folder / f"{name}.mlir").write_text(graphs.text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

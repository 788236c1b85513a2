"""Writes the graphs that calls of FlashAttention's functions become, for
`flash.py FOLDER`."""

import pathlib
import sys

import torch

import fovea
from decode import Graphs


def make(*shape, dtype=torch.float16):
    return torch.zeros(shape, dtype=dtype)


def integers(*shape):
    return make(*shape, dtype=torch.int32)


def fix_starts(text, starts, longest):
    """Lets packed queries be of sequences that begin there, so that each row is one's."""
    for operand in ("%cu_seqlens_q: !cu_seqlens_q, ", ", %number0: index"):
        assert operand in text
        text = text.replace(operand, "")
    return text.replace("-> (!output, !lse) {", f"""-> (!output, !lse) {{
  %number0 = arith.constant {longest} : index
  %starts = arith.constant dense<{starts}> : tensor<{len(starts)}xi32>
  %cu_seqlens_q = tensor.cast %starts : tensor<{len(starts)}xi32> to !cu_seqlens_q
""", 1)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
with torch.no_grad(), Graphs() as graphs:
    cache = make(5, 16, 2, 64)
    packed = make(70, 2, 64)
    for name, call in (
            ("pages", lambda: fovea.flash_attn_with_kvcache(
                make(3, 1, 8, 64), cache, cache, cache_seqlens=integers(3),
                page_table=integers(3, 2), causal=True)),
            ("ragged", lambda: fovea.flash_attn_with_kvcache(
                make(6, 8, 64), cache, cache, cache_seqlens=integers(3),
                page_table=integers(3, 2), causal=True,
                cu_seqlens_q=integers(4), max_seqlen_q=2,
                return_softmax_lse=True)),
            ("slots", lambda: fovea.flash_attn_with_kvcache(
                make(3, 1, 8, 64), cache, cache, cache_seqlens=integers(3),
                cache_batch_idx=integers(3), cache_leftpad=integers(3))),
            ("varlen", lambda: fovea.flash_attn_varlen_func(
                make(70, 8, 64), packed, packed, integers(3), integers(3),
                causal=True))):
        call()
        text = graphs.text
        if name == "ragged":
            text = fix_starts(text, [0, 2, 6], 4)
        (folder / f"{name}.mlir").write_text(text)

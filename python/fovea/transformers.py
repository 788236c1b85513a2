# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea as an attention implementation of Hugging Face's transformers.

    import fovea.transformers
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="fovea")

Importing this module registers two things under the name "fovea": attention,
and the masks that models ask for. A mask arrives as a function of coordinates
and is handed on as one: no mask of query x key is ever built, and one kernel
serves all steps of `generate`. Soft caps, sinks, position biases, sliding and
chunked windows, packed sequences, padding, dropout and gradients are what the
models' eager attention computes. Models that do not use transformers'
attention interface keep their own.
"""

import functools

import torch
import transformers
from torch.nn.attention.flex_attention import BlockMask
from transformers.masking_utils import (AttentionMaskInterface,
                                        add_offsets_to_mask_function, and_masks,
                                        causal_mask_function,
                                        padding_mask_function,
                                        prepare_padding_mask)

from . import _flex
from ._attention import attention
from ._memo import Memo
from ._values import Number

__all__ = ["Mask", "attention_forward", "make_mask", "register"]


class Mask(BlockMask):
    """A mask as a function, on its way from `make_mask` to
    `attention_forward`. It is a BlockMask only for the code of transformers
    that asks for its kind."""

    def __init__(self, mask_mod, shape):
        # Not BlockMask's: there are no blocks.
        self.mask_mod = mask_mod
        self._shape = shape

    @property
    def shape(self):
        """(batch, 1, queries, keys)."""
        return self._shape

    ndim = 4

    def contiguous(self):
        return self

    def to(self, *_, **__):
        return self

    def __repr__(self):
        return f"<fovea.transformers.Mask of shape {self.shape}>"


def make_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0,
              mask_function=causal_mask_function, attention_mask=None, **_):
    """Returns the `Mask` of an attention; transformers' mask interface calls
    it.

    q_offset, kv_offset: the positions of the first query and key: integers,
        which become operands of the kernel, or tensors of no dimensions.
    mask_function: `(batch, head, q_position, kv_position) -> bool`.
    attention_mask: `[batch, positions]`, booleans, False for padding.
    """
    shape = batch_size, 1, q_length, kv_length
    if torch.compiler.is_dynamo_compiling() and _flex.compiles_to_graph():
        # Dynamo has integers of its own that are operands.
        mask_mod = _join(mask_function, attention_mask, kv_length, q_offset, kv_offset)
        return Mask(mask_mod, shape)
    return _make_mask_now(shape, q_offset, kv_offset, mask_function, attention_mask)


@torch._dynamo.disable
def _make_mask_now(shape, q_offset, kv_offset, mask_function, attention_mask):
    if attention_mask is not None and (
            attention_mask.device.type == "cpu" and bool(attention_mask.all())):
        attention_mask = None
    mask_mod = _join(mask_function, attention_mask, shape[-1], *(
        offset if isinstance(offset, torch.Tensor) else Number(int(offset))
        for offset in (q_offset, kv_offset)), numeric_offset=kv_offset)
    # The layers of a model share the mask, and need not trace it again.
    mask_mod.memo = Memo(is_fixed=True)
    return Mask(mask_mod, shape)


def _join(mask_function, attention_mask, kv_length, q_offset, kv_offset,
          numeric_offset=None):
    """Returns the mask_mod of a mask of positions, padding and offsets."""
    if attention_mask is not None:
        padding = prepare_padding_mask(
            attention_mask, kv_length,
            kv_offset if numeric_offset is None else numeric_offset)
        mask_function = and_masks(mask_function, padding_mask_function(padding))
    return add_offsets_to_mask_function(mask_function, q_offset, kv_offset)


def attention_forward(module, query, key, value, attention_mask, dropout=0.0,
                      scaling=None, softcap=None, s_aux=None, position_bias=None,
                      is_causal=None, **_):
    """Computes attention for a model; transformers' attention interface calls
    it.

    query: `[batch, heads, queries, size]`; key, value: with as many or fewer
        heads. attention_mask: a `Mask`, a tensor that broadcasts to `[batch,
        heads, queries, keys]` (floats are added, booleans are a mask), or
        None. s_aux: `[heads]`, sinks. position_bias: floats that are added,
        which may require a gradient.

    Returns the output `[batch, queries, heads, size]`, and None for the
    probabilities, which never exist.
    """
    length = key.shape[2]
    causal, mask_mod, bias, score_mod = False, None, None, None
    if isinstance(attention_mask, Mask):
        mask_mod = attention_mask.mask_mod
    elif attention_mask is not None:
        bias = attention_mask[..., :length]
    else:
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        causal = bool(is_causal) and query.shape[2] > 1
    if position_bias is not None:
        score_mod = functools.partial(_add_bias, position_bias[..., :length])
    output = attention(
        query, key, value, scale=scaling, causal=causal, softcap=softcap,
        sinks=s_aux, bias=bias, score_mod=score_mod, mask_mod=mask_mod,
        dropout_p=dropout if module.training else 0.0)
    return output.transpose(1, 2).contiguous(), None


def _add_bias(bias, score, b, h, i, j):
    place = [0 if size == 1 else index
             for size, index in zip(bias.shape, (b, h, i, j))]
    return score + bias[tuple(place)]


def register(name="fovea"):
    """Registers attention and masks with transformers under a name."""
    transformers.AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, make_mask)


register()

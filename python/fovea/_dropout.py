# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention with dropout as operators of PyTorch, for compiled graphs.

    fovea::attention_dropout(operands of fovea::attention)
        -> (Tensor output, Tensor lse, Tensor seed)
    fovea::attention_dropout_backward(operands of fovea::attention_backward,
                                      Tensor seed) -> Tensor[]

Each run draws Philox's seed and offset from PyTorch's default generator of the CPU:
two integers that are behind the numbers in the kernel's operands, and on the CPU as
`seed` for the backward pass. Outside of graphs they are numbers of fovea::attention.
"""

import torch

from . import _operator
from ._operator import GRADIENT_OPERANDS, OPERANDS


def draw_seed(generator=None):
    """Returns the seed and the offset of one dropout, as a tensor."""
    device = "cpu" if generator is None else generator.device
    seed = torch.empty(2, dtype=torch.int64, device=device)
    return seed.random_(generator=generator)


def _run(query, key, value, captures, numbers, text, deterministic):
    seed = draw_seed()
    return (*_operator.run_forward(query, key, value, captures,
                                   [*numbers, *seed.tolist()], text,
                                   deterministic), seed)


def _run_backward(query, key, value, captures, numbers, *rest):
    *rest, seed = rest
    return _operator.run_backward(query, key, value, captures,
                                  [*numbers, *seed.tolist()], *rest)


def _fake(*operands):
    return (*_operator.fake_forward(*operands),
            torch.empty(2, dtype=torch.int64, device="cpu"))


def _set_up(ctx, inputs, output):
    _operator.set_up(ctx, inputs, output)
    ctx.mark_non_differentiable(output[2])


def _differentiate(ctx, output_gradient, lse_gradient, _):
    query, key, value, *captures, output, lse, seed = ctx.saved_tensors
    numbers, text, deterministic = ctx.options
    gradients = torch.ops.fovea.attention_dropout_backward(
        query, key, value, captures, numbers, text, deterministic, output, lse,
        output_gradient, lse_gradient, seed)
    return _operator.arrange(gradients, query, key, value, captures, numbers)


_library = torch.library.Library("fovea", "FRAGMENT")
_operator.define(_library, "attention_dropout",
                 f"({OPERANDS}) -> (Tensor output, Tensor lse, Tensor seed)", _run,
                 _fake, _differentiate, _set_up,
                 (torch.Tag.nondeterministic_seeded,))
_operator.define(_library, "attention_dropout_backward",
                 f"({GRADIENT_OPERANDS}, Tensor seed) -> Tensor[]", _run_backward,
                 _operator.fake_backward, _operator.refuse_second_order)

attention = torch.ops.fovea.attention_dropout.default

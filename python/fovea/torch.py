# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea as a backend of torch.compile: attention by Fovea, the rest by
inductor.

    import fovea.torch                  # not needed where Fovea is installed
    model = torch.compile(model, backend="fovea")

Attention is found in the graph that Dynamo makes, before autograd: calls of
`scaled_dot_product_attention` and of `flex_attention`, PyTorch's and Fovea's,
and attention that is written out (_patterns.py). They become calls of the
operator `fovea::attention`, which has gradients of its own; everything else is
compiled by inductor. Sizes may be dynamic.

Without torch.compile, `use_for_sdpa()` puts Fovea behind PyTorch's
`scaled_dot_product_attention`, in the place of its flash attention.
"""

import math

import torch
from torch._inductor.compile_fx import compile_fx

from . import _attention, _flex, _patterns, _sdpa

__all__ = ["backend", "rewrite", "use_for_sdpa"]

_HOP = torch.ops.higher_order.flex_attention

_SDPA = (torch.nn.functional.scaled_dot_product_attention,
         torch._C._nn.scaled_dot_product_attention)

_SDPA_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal",
                   "scale", "enable_gqa")


def backend(graph, inputs, **options):
    """Compiles a graph of Dynamo; `torch.compile(backend="fovea")` calls it."""
    rewrite(graph)
    return compile_fx(graph, inputs, **options)


def use_for_sdpa():
    """Puts Fovea in the place of PyTorch's flash attention.

    From then on, what `torch.nn.functional.scaled_dot_product_attention` gives
    to flash attention is computed by Fovea, forward and backward. PyTorch
    decides what that is: on the CPU f16, bf16, f32 and f64 of rank 4, with a
    mask that requires no gradient, without dropout; on CUDA devices f16 and
    bf16 without a mask. Calls with dropout, and others, stay PyTorch's.

    It is `torch.nn.attention.activate_flash_attention_impl("fovea")`, a name
    that the import of this module registers. Undone by
    `torch.nn.attention.restore_flash_attention_impl()`, and by the activation
    of another implementation.
    """
    torch.nn.attention.activate_flash_attention_impl("fovea")


torch.nn.attention.register_flash_attention_impl("fovea",
                                                 register_fn=_sdpa.activate)


def rewrite(graph):
    """Replaces attention in a graph of Dynamo, an fx.GraphModule, by Fovea's.

    Returns the number of replaced calls. Dropout draws other elements than
    PyTorch's.
    """
    count = 0
    # No dead code is removed: Dynamo's graphs hold calls for their effects.
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _SDPA:
            given = {**dict(zip(_SDPA_ARGUMENTS, node.args)), **node.kwargs}
            # Whether there is dropout decides what is compiled.
            if isinstance(given.get("dropout_p"), torch.fx.Node):
                continue
            node.target = _attention.scaled_dot_product_attention
            node.args, node.kwargs = (), given
            count += 1
        elif node.target is _HOP:
            node.target = _attend
            count += 1
    for match in _patterns.find(graph.graph):
        _patterns.replace(graph.graph, match,
                          _attention.scaled_dot_product_attention,
                          _attention.attention)
        count += 1
    if count:
        graph.recompile()
    return count


def _attend(query, key, value, score_graph, block_mask, scale, options,
            score_buffers=(), mask_buffers=()):
    """Computes what the operator of flex_attention does; its log-sum-exp and
    its largest scores are logarithms to the base 2."""
    def score_mod(*operands):
        result = score_graph(*operands, *score_buffers)
        return result[0] if isinstance(result, tuple) else result

    def mask_mod(*operands):
        result = block_mask[-1](*operands, *mask_buffers)
        return result[0] if isinstance(result, tuple) else result

    output, lse, most = _flex.attend(
        query, key, value, score_mod, mask_mod, scale, wants_lse=True,
        wants_max=bool(options.get("OUTPUT_MAX")))
    if most is None:
        most = lse.new_empty(0)
    return output, lse / math.log(2), most / math.log(2)


def _register():
    """Makes the backend known by name, where no installed package has."""
    if "fovea" not in torch._dynamo.list_backends():
        torch._dynamo.register_backend(backend, name="fovea")


_register()


# Dynamo calls this while it traces.
@torch._dynamo.assume_constant_result
def compiles_here():
    """Returns True if Dynamo traces for this backend."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    compiler = InstructionTranslator.current_tx().output.compiler_fn
    while compiler is not backend:
        inner = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(
            compiler, "compiler_fn", None) or getattr(
                compiler, "__wrapped__", None)
        if inner is None or inner is compiler:
            return False
        compiler = inner
    return True

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fovea in torch.compile: attention by Fovea, the rest by inductor.

    import fovea.torch                  # not needed where Fovea is installed
    model = torch.compile(model, backend="fovea")

or, in inductor itself, for all that is compiled from then on:

    fovea.torch.use_in_inductor()
    model = torch.compile(model)

Attention is found in the graph that Dynamo makes, before autograd: calls of
`scaled_dot_product_attention` and of `flex_attention`, PyTorch's and Fovea's,
and attention that is written out (_patterns.py). They become calls of the
operator `fovea::attention`, which has gradients of its own; everything else is
compiled by inductor. Sizes may be dynamic.

Without torch.compile, `use_for_sdpa()` puts Fovea behind PyTorch's
`scaled_dot_product_attention` and `varlen_attn`, in the place of its flash attention.
"""

import functools
import hashlib
import math
import pathlib

import torch
from torch._inductor import config as _config
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomGraphPass

from . import _attention, _flex, _patterns, _sdpa

__all__ = ["InductorPass", "backend", "inductor_pass", "rewrite", "use_for_sdpa",
           "use_in_inductor"]

_HOP = torch.ops.higher_order.flex_attention

_SDPA = (torch.nn.functional.scaled_dot_product_attention,
         torch._C._nn.scaled_dot_product_attention)

_SDPA_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal",
                   "scale", "enable_gqa")


def backend(graph, inputs, mode=None, options=None):
    """Compiles a graph of Dynamo by inductor, with the pass; called by
    `torch.compile(backend="fovea")`, whose `mode` and `options` are inductor's."""
    patches = dict(torch._TorchCompileInductorWrapper(mode, options, None).config)
    patches["pre_grad_custom_pass"] = _add_pass(patches.get(
        "pre_grad_custom_pass", _config.pre_grad_custom_pass))
    return compile_fx(graph, inputs, config_patches=patches)


class InductorPass(CustomGraphPass):
    """A pass of inductor that replaces attention by Fovea's, in graphs before
    autograd. Other passes may come first."""

    def __init__(self, first=()):
        self.first = tuple(first)

    def __call__(self, graph):
        for other in self.first:
            other(graph)
        _rewrite(graph)

    def uuid(self):
        """Returns what inductor's caches know the pass by, None if they cannot know
        the passes that come first."""
        found = [_find_version()]
        for other in self.first:
            found.append(other.uuid() if isinstance(other, CustomGraphPass) else None)
        return None if None in found else tuple(found)


@functools.cache
def _find_version():
    """Returns a hash of the code that decides what a graph becomes."""
    found = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


#: The pass, for `torch.compile(options={"pre_grad_custom_pass": inductor_pass})`.
inductor_pass = InductorPass()


class _Slot:
    """What was in inductor's slot, to be put back."""

    def __init__(self, before):
        self._before = before

    def remove(self):
        _config.pre_grad_custom_pass = self._before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def use_in_inductor():
    """Makes a pass of inductor of Fovea, for `torch.compile` with its default backend.

    It is `inductor_pass` in the slot `torch._inductor.config.pre_grad_custom_pass`,
    behind passes that are there. Applies to what is compiled from then on, until the
    returned object's `remove()`, or the end of its `with` block.
    """
    before = _config.pre_grad_custom_pass
    _config.pre_grad_custom_pass = _add_pass(before)
    return _Slot(before)


def _list_passes(slot):
    """Returns the passes in a slot of inductor."""
    if slot is None:
        return ()
    return tuple(slot) if isinstance(slot, (list, tuple)) else (slot,)


def _add_pass(slot):
    """Returns what a slot of inductor holds, with Fovea's pass."""
    first = _list_passes(slot)
    if any(isinstance(found, InductorPass) for found in first):
        return slot
    return InductorPass(first) if first else inductor_pass


def use_for_sdpa():
    """Puts Fovea in the place of PyTorch's flash attention.

    From then on, what `torch.nn.functional.scaled_dot_product_attention` gives
    to flash attention is computed by Fovea, forward and backward. PyTorch
    decides what that is: on the CPU f16, bf16, f32 and f64 of rank 4, with a
    mask that requires no gradient, without dropout; on CUDA devices f16 and
    bf16 without a mask. Calls with dropout, and others, stay PyTorch's.

    So is what `torch.nn.attention.varlen.varlen_attn` computes of packed sequences:
    with a window, a paged cache and gradients as it has them, on the CPU too.

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
    count = _rewrite(graph.graph)
    if count:
        graph.recompile()
    return count


def _rewrite(graph):
    """Replaces attention in a graph. Returns the number of replaced calls."""
    count = 0
    # No dead code is removed: Dynamo's graphs hold calls for their effects.
    for node in list(graph.nodes):
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
    for match in _patterns.find(graph):
        _patterns.replace(graph, match, _attention.scaled_dot_product_attention,
                          _attention.attention)
        count += 1
    for node in graph.nodes if count else ():
        if node.target in (_attention.scaled_dot_product_attention,
                           _attention.attention, _attend):
            # What PyTorch's caches of graphs know a function of others by, where they
            # are asked behind the pass: PyTorch 2.11.
            node.meta.update(is_wrapped=True, user_cache_hash=_find_version())
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
    """Returns True if Dynamo traces for this backend, or for inductor with the
    pass."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    compiler = InstructionTranslator.current_tx().output.compiler_fn
    while compiler is not backend:
        if isinstance(compiler, torch._TorchCompileInductorWrapper):
            return any(isinstance(found, InductorPass) for found in _list_passes(
                compiler.config.get("pre_grad_custom_pass",
                                    _config.pre_grad_custom_pass)))
        inner = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(
            compiler, "compiler_fn", None) or getattr(
                compiler, "__wrapped__", None)
        if inner is None or inner is compiler:
            return False
        compiler = inner
    return True

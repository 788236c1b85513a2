# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's FlexAttention, by Fovea: the same arguments, results and errors."""

from __future__ import annotations

import contextlib
import math
import sys
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

try:
    from torch.nn.attention import flex_attention as _theirs
    from torch.nn.attention.flex_attention import (
        AuxOutput, AuxRequest, BlockMask, and_masks, create_mask, noop_mask,
        or_masks)
except ImportError:
    raise ImportError("fovea.flex_attention and what is built on it need PyTorch "
                      f"2.11 or later; this is {torch.__version__}") from None

from . import _dropout, _dynamo, _operator
from ._library import Error
from ._memo import Memo, cast_as_autocast
from ._regions import find_bits, is_constant_scale, is_usual_scale
from ._trace import Tracer
from ._values import ELEMENTS

__all__ = ["AuxOutput", "AuxRequest", "and_masks", "create_mask",
           "flex_attention", "noop_mask", "or_masks", "trace"]

#: `(score, b, h, q_idx, kv_idx) -> score`, of tensors of no dimensions.
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

#: `(b, h, q_idx, kv_idx) -> bool`, of tensors of no dimensions.
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

#: Sizes of blocks from which on a BlockMask stands for no mask.
_LARGE_BLOCK = 1 << 30

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

SCALES = (float, int, type(None))

_memo = Memo()


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | MaskMod | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Mapping[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
    mask_mod: MaskMod | None = None,
    dropout_p: float = 0.0,
    generator: torch.Generator | None = None,
    deterministic: bool | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """Attention with a modification of scores and a mask, in one kernel.

    Takes what `torch.nn.attention.flex_attention.flex_attention` takes,
    computes the same, and raises its errors; no `torch.compile` around it, and
    no BlockMask, is needed. On the CPU and on CUDA devices, with gradients.

        score = scale * (query[b, h, q] . key[b, h // group, kv])
        score = score_mod(score, b, h, q, kv)   where mask_mod(b, h, q, kv)
        output = softmax(score) @ value

    query: `[B, Hq, L, E]`, of f16, bf16, f32 or f64, in any layout; used
        without a copy if elements are neighbours along the last dimension.
    key: `[B, Hkv, S, E]`, value: `[B, Hkv, S, Ev]`; B may be 1.
    score_mod: `(score, b, h, q_idx, kv_idx) -> score`, a function of 0-d
        tensors as for PyTorch. The score is f32 (f64 if an operand is),
        coordinates are integers of 64 bits. Tensors that it closes over may
        require gradients. It is traced unless all that it reads is known to be
        as in a call before; docs/python.md lists what it may use. A captured tensor is indexed as PyTorch does it, with
        negative indices from the end; an index that data decide is clamped to
        the tensor.
    block_mask: a BlockMask, of which the `mask_mod` is used, or the table of
        blocks if it has no `mask_mod`; or a `mask_mod` itself.
    scale: a number, 1 / sqrt(E) if None. Another one needs no other kernel.
    enable_gqa: allows Hkv < Hq; Hkv divides Hq.
    return_lse: also returns the natural logarithm of the sum of exponentials,
        `[B, Hq, L]`, in f32 (f64 if an operand is). PyTorch deprecates it for
        `return_aux`.
    kernel_options: accepted and checked; Fovea chooses tiles itself.
    return_aux: an `AuxRequest` (lse, max_scores); also returns an `AuxOutput`.
        `max_scores`, the largest score of each row, `[B, Hq, L]`, takes a
        second pass, which keeps the scores of some queries in memory; it has
        no gradient.
    mask_mod: `(b, h, q_idx, kv_idx) -> bool`, of the scores that count; if
        there is a block_mask too, both must hold.
    dropout_p: the share of probabilities that become 0; others are divided by
        `1 - dropout_p`. Drawn by Philox, from a seed that `generator`, or
        PyTorch's default generator of the CPU, gives.
    deterministic: gradients with the same bits in every run on a GPU; if None,
        as `torch.use_deterministic_algorithms` says.

    Returns the output, `[B, Hq, L, Ev]`, of the query's type and order of
    strides; then what was asked for. A row whose scores are all masked is 0,
    with an lse of minus infinity. Gradients have their tensors' types and
    orders of strides; there are none of gradients.

    Raises PyTorch's errors for operands that do not fit; `fovea.TraceError`,
    with file and line, for a mod that cannot be traced.
    """
    _check_inputs(query, key, value, enable_gqa, block_mask)
    _check_options(kernel_options, return_lse, return_aux)
    _check_mods(score_mod, mask_mod)
    mask_mod = _find_mask(query, key, block_mask, mask_mod)
    _check_dropout(dropout_p)
    wants_max = return_aux is not None and return_aux.max_scores
    wants_lse = return_aux.lse if return_aux is not None else return_lse
    output, lse, max_scores = attend(
        query, key, value, score_mod, mask_mod, scale, wants_lse=wants_lse,
        wants_max=wants_max, dropout_p=dropout_p, generator=generator,
        deterministic=deterministic)
    if return_aux is not None:
        return output, AuxOutput(lse=lse, max_scores=max_scores)
    return (output, lse) if return_lse else output


def trace(
    score_mod: ScoreMod | None = None,
    mask_mod: MaskMod | None = None,
    *,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None = None,
) -> str:
    """Returns the text of the graph that two mods become for tensors of these
    types and shapes: one `attn.attention`, with the mods as its regions, to be
    read, edited and given to `fovea.compile`. Operands are query, key, value,
    then the captured tensors in the order in which the mods read them.

        print(fovea.trace(None, lambda b, h, q, kv: q >= kv, query=q, key=q, value=q))
    """
    with torch.no_grad():
        tracer = Tracer(query, key, value)
        tracer.scale_by(find_scale(query, scale), is_constant=True)
        tracer.trace(score_mod, mask_mod)
    return tracer.write()


def attend(query, key, value, score_mod, mask_mod, scale, *, wants_lse=False,
           wants_max=False, dropout_p=0.0, generator=None, deterministic=None,
           call=None, sinks=None, split_size=0):
    """Computes attention on operands that have been checked. Returns the
    output, the log-sum-exp and the largest scores, None for what is not
    wanted. `call` is the call of a memo that did not know it, see _memo.py; if
    None, that of this module's memo. `sinks`
    gives each head the score of one more key, whose value is 0. Sums over keys are
    divided at all multiples of `split_size`, if that is not 0."""
    if torch.compiler.is_dynamo_compiling() and compiles_to_graph() and (
            not dropout_p and not split_size):
        output, lse, most = _attend_in_graph(
            query, key, value, score_mod, mask_mod, scale,
            wants_lse or sinks is not None, wants_max)
        if sinks is not None:
            output, lse = _add_sinks(output, lse, sinks)
        return output, lse if wants_lse else None, most
    if torch.compiler.is_dynamo_compiling():
        return _attend_outside(query, key, value, score_mod, mask_mod, scale, wants_lse,
                               wants_max, dropout_p, generator, deterministic, sinks,
                               split_size)
    if call is None and not dropout_p and not wants_max and deterministic is None and (
            type(scale) in SCALES and key.shape[0] == query.shape[0]):
        tensors = [query, key, value]
        if sinks is not None:
            tensors.append(sinks)
        kind, numbers = note_scale(query, scale)
        call = _memo.open(tensors, numbers,
                          (kind, wants_lse, sinks is not None, split_size),
                          (score_mod, mask_mod))
        found = call and call.run()
        if found:
            return *found, None
    return _attend_now(query, key, value, score_mod, mask_mod, scale, wants_lse,
                       wants_max, dropout_p, generator, deterministic, call, sinks,
                       split_size)


def find_score_type(query, key, value):
    """Returns the type that scores have, and sinks."""
    is_wide = any(x.dtype == torch.float64 for x in (query, key, value))
    return torch.float64 if is_wide else torch.float32


def _add_sinks(output, lse, sinks):
    """Adds sinks to attention that has no argument for them."""
    sinks = sinks.to(lse.dtype)[:, None]
    # The share of the probabilities that the sink leaves.
    output = (output * torch.sigmoid(lse - sinks)[..., None]).to(output.dtype)
    return output, torch.logaddexp(lse, sinks)


@_dynamo.assume_constant_result
def compiles_to_graph():
    """Returns True if Dynamo traces for Fovea's backend."""
    module = sys.modules.get("fovea.torch")
    return module is not None and module.compiles_here()


def _attend_in_graph(query, key, value, score_mod, mask_mod, scale, wants_lse,
                     wants_max):
    """Writes PyTorch's operator into Dynamo's graph, which traces the mods and
    finds the tensors that they capture; the backend replaces it."""
    for x in (query, key, value):
        torch._dynamo.mark_static(x, -3)
        torch._dynamo.mark_static(x, -1)
    shapes = torch.fx.experimental.symbolic_shapes
    if isinstance(scale, (int, float)) and not shapes.has_static_value(scale):
        # PyTorch's operator would make a constant of a symbol.
        score_mod = _scale_first(query, key, value, scale, score_mod)
        scale = 1.0
    blocks = _theirs._create_empty_block_mask(query, key).as_tuple()
    _hold_effects()
    output, lse, most = _theirs.flex_attention_hop(
        query, key, value, _theirs._identity if score_mod is None else score_mod,
        (*blocks[:-1], noop_mask if mask_mod is None else mask_mod),
        find_scale(query, scale), {"OUTPUT_MAX": wants_max})
    _keep_effects()
    return (output, lse * math.log(2) if wants_lse else None,
            most * math.log(2) if wants_max else None)


# While Dynamo traces the mods of PyTorch's operator, its record of changes to objects
# becomes another. What it knows of an object from before refers to the old one, in
# PyTorch 2.13, and does not find what is written from then on: the layers of a cache that
# a model makes, say. So the record stays the same object, with the state of the new one.


def _scale_first(query, key, value, scale, score_mod):
    """Returns a mod that multiplies scores by a symbol of Dynamo, as a tensor, and then
    does what another mod does."""
    factor = query.new_ones((), dtype=find_score_type(query, key, value)) * scale

    def scaled(score, *place):
        score = score * factor
        return score if score_mod is None else score_mod(score, *place)

    return scaled


@_dynamo.assume_constant_result
def _hold_effects():
    """Notes Dynamo's record of changes."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    graph = InstructionTranslator.current_tx().output
    graph._fovea_effects = graph.side_effects


@_dynamo.assume_constant_result
def _keep_effects():
    """Puts the record that was noted in the place of the one of now."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    graph = InstructionTranslator.current_tx().output
    effects = graph.__dict__.pop("_fovea_effects")
    vars(effects).update(vars(graph.side_effects))
    graph.side_effects = effects


# Mods and their closures are no operands of a graph that Dynamo could hold.
@_dynamo.disable
def _attend_outside(query, key, value, score_mod, mask_mod, scale, wants_lse, wants_max,
                    dropout_p, generator, deterministic, sinks, split_size):
    """Computes attention between two graphs."""
    return attend(query, key, value, score_mod, mask_mod, scale, wants_lse=wants_lse,
                  wants_max=wants_max, dropout_p=dropout_p, generator=generator,
                  deterministic=deterministic, sinks=sinks, split_size=split_size)


@_dynamo.disable
def _attend_now(query, key, value, score_mod, mask_mod, scale, wants_lse,
                wants_max, dropout_p, generator, deterministic, call, sinks,
                split_size):
    query, key, value = cast_as_autocast(query, key, value)
    if key.shape[0] != query.shape[0]:
        key, value = (x.expand(query.shape[0], *x.shape[1:])
                      for x in (key, value))
    tracer = Tracer(query, key, value)
    if sinks is not None:
        tracer.start_from(sinks)
    tracer.split_by(split_size)
    scale = find_scale(query, scale)
    tracer.scale_by(scale)
    with call.watch() if call else contextlib.nullcontext():
        tracer.trace(score_mod, mask_mod)
    tracer.lift_integers()
    given = tracer.captures
    captures = [_move(x, query.device) for x in given]
    tensors = (query, key, value, *captures)
    grows = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    lse_type = None
    if wants_lse or grows:
        lse_type = "f64" if grows or any(
            x.dtype == torch.float64 for x in tensors[:3]) else "f32"
    text = tracer.write(lse_type, dropout_p)
    numbers = tracer.numbers
    if call:
        def find_text():
            try:
                return tracer.trace_any_length(score_mod, mask_mod).write(
                    lse_type, dropout_p)
            except Exception:
                return None  # The mods need to know lengths.

        call.note(text, given, tracer.lifted, grows, wants_lse, find_text)
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    deterministic = bool(deterministic)
    if dropout_p and generator is None and torch._C._len_torch_dispatch_stack():
        # What is traced into a graph draws when it runs.
        output, lse, _ = _dropout.attention(
            query, key, value, captures, numbers, _operator.join_lines(text),
            deterministic)
    else:
        if dropout_p:
            numbers += _dropout.draw_seed(generator).tolist()
        output, lse = _operator.attention(query, key, value, captures, numbers,
                                          text, deterministic, grows)
    if not wants_lse:
        lse = None
    elif lse.dtype == torch.float64 and query.dtype != torch.float64:
        lse = lse.float()
    return output, lse, (_find_max_scores(
        query, key, value, score_mod, mask_mod, scale) if wants_max else None)


def find_scale(query, scale):
    if scale is None:
        return 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    try:
        scale = float(scale)
    except (TypeError, ValueError):
        raise TypeError("scale: expected a number, got "
                        f"{type(scale).__name__}") from None
    if not math.isfinite(scale):
        raise ValueError(f"scale: expected a finite number, got {scale}")
    return scale


def note_scale(query, scale):
    """Returns what a scale adds to what a call's text depends on, and the numbers that
    it adds to the operands."""
    if scale is None or torch.compiler.is_dynamo_compiling() or (
            not math.isfinite(scale)) or is_constant_scale(
                query.shape[-1] if query.dim() else 1, scale):
        return scale, []
    return ("usual" if is_usual_scale(scale) else "any"), [find_bits(scale)]


def _move(capture, device):
    """A number that is a tensor of the CPU goes to the device."""
    return capture if capture.device == device else capture.to(device)


#--- Checks -------------------------------------------------------------------


def _check_inputs(query, key, value, enable_gqa, block_mask):
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        if x.is_nested:
            raise NotImplementedError(
                "flex_attention does not support NestedTensor inputs; convert "
                "inputs to dense tensors before calling flex_attention.")
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, "
            f"but got query.device: {query.device}, key.device: {key.device}, "
            f"and value.device: {value.device} instead.")
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError(
            "NYI: query, key, and value must be 4D tensors")
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dtype not in _FLOATS:
            raise ValueError(
                f"{name}: expected float16, bfloat16, float32 or float64, got "
                f"{x.dtype}")
        if x.layout is not torch.strided:
            raise ValueError(f"{name}: expected a dense tensor, got one of layout "
                             f"{x.layout}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.shape[-1]} and E={key.shape[-1]}.")
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(
            "Expect key and value to have the same batch size, heads and length "
            f"but got key.shape={tuple(key.shape)} and "
            f"value.shape={tuple(value.shape)}.")
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={kv_heads}. "
            "Try setting enable_gqa=True for GQA.")
    if enable_gqa and (not kv_heads or heads % kv_heads):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={kv_heads}.")
    batch, kv_batch = query.shape[0], key.shape[0]
    if batch != kv_batch:
        if block_mask is None:
            raise ValueError(
                "Expect query and key/value to have the same batch size, "
                "or non-none block_mask, "
                f"but got block_mask=None, Bq={batch}, and Bkv={kv_batch}.")
        blocks = getattr(block_mask, "kv_num_blocks", None)
        if blocks is not None and blocks.shape[0] != batch:
            raise ValueError(
                "Expect query and key/value to have the same batch size, "
                "or block_mask and query to have the same batch size, "
                f"but got Bq={batch}, Bkv={kv_batch}, "
                f"B_block_mask={blocks.shape[0]}.")
        if kv_batch != 1:
            raise RuntimeError("Bq and Bkv must broadcast. "
                               f"Got Bq={batch} and Bkv={kv_batch}")


def _check_mods(score_mod, mask_mod):
    for name, mod in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if mod is not None and not callable(mod):
            raise TypeError(f"{name}: expected a function, got {type(mod).__name__}")


def _check_options(kernel_options, return_lse, return_aux):
    options = kernel_options or {}
    if not isinstance(options, Mapping):
        raise TypeError("kernel_options: expected a dict, got "
                        f"{type(options).__name__}")
    if "BACKEND" in options:
        if options.get("FORCE_USE_FLEX_ATTENTION", False):
            raise RuntimeError(
                "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. "
                "BACKEND supersedes the legacy knob; please drop "
                "FORCE_USE_FLEX_ATTENTION and only specify the desired BACKEND.")
        valid = typing.get_args(_theirs._Backend)
        if options["BACKEND"] not in valid:
            raise ValueError(f"Invalid BACKEND value '{options['BACKEND']}'. "
                             f"Must be one of {valid}")
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is "
            "deprecated, please use return_aux=AuxRequest(lse=True) instead.")


def _check_dropout(dropout_p):
    if not 0.0 <= dropout_p < 1.0:
        raise ValueError("dropout_p: expected a probability from 0 to below 1, "
                         f"got {dropout_p}")


#--- Masks --------------------------------------------------------------------


def _find_mask(query, key, block_mask, mask_mod):
    """Returns the one mask_mod that a call has, None if there is no mask."""
    if block_mask is None:
        found = None
    elif isinstance(block_mask, BlockMask):
        found = _read_block_mask(query, key, block_mask)
    elif callable(block_mask):
        found = block_mask
    else:
        raise TypeError("block_mask: expected a BlockMask or a mask_mod, got "
                        f"{type(block_mask).__name__}")
    if found is None or found is noop_mask:
        found = mask_mod
    elif mask_mod is not None:
        found = and_masks(found, mask_mod)
    return None if found is noop_mask else found


def _read_block_mask(query, key, block_mask):
    if block_mask.mask_mod is _theirs._sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    rows, columns = block_mask.BLOCK_SIZE
    if rows == columns == _LARGE_BLOCK:
        return block_mask.mask_mod
    length, kv_length = query.shape[2], key.shape[2]
    whole, kv_whole = block_mask.shape[-2:]
    start = (f"block_mask was created for block_mask.shape={block_mask.shape} but "
             f"got q_len={length} and kv_len={kv_length}. As the block mask was "
             "created for a ")
    if length > whole or kv_length > kv_whole:
        raise ValueError(start + "smaller length than you're using it for, you "
                         "likely need to create a new block mask.")
    if length < whole or kv_length < kv_whole:
        raise ValueError(
            start + "larger length than you're using it for, you can either 1. "
            "create a new block mask with the correct length, or 2. 'adjust' the "
            "existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len). This essentially 'crops' the "
            "block mask to the upper left corner, which does not work for all "
            "mask_mods!")
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device but got "
            f"{query.device} and {block_mask.kv_num_blocks.device}.")
    if block_mask.mask_mod in (None, noop_mask):
        return _make_table_mod(block_mask)
    return block_mask.mask_mod


_tables = weakref.WeakKeyDictionary()


def _make_table_mod(block_mask):
    """Returns the mask_mod of a BlockMask that has none: its table of
    blocks."""
    blocks = _tables.get(block_mask)
    if blocks is None:
        blocks = _tables[block_mask] = block_mask.to_dense().bool()
    if bool(blocks.all()):
        return None
    rows, columns = block_mask.BLOCK_SIZE
    one_batch, one_head = (size == 1 for size in blocks.shape[:2])

    def mask_mod(b, h, q_idx, kv_idx):
        return blocks[0 if one_batch else b, 0 if one_head else h,
                      q_idx // rows, kv_idx // columns]

    return mask_mod


#--- The largest scores -------------------------------------------------------

#: The scores that are in memory at once.
_MAX_SCORES = 1 << 26


def _find_max_scores(query, key, value, score_mod, mask_mod, scale):
    """Returns the largest score of each row, some queries at a time."""
    with torch.no_grad():
        batch, heads, length, _ = query.shape
        kv_length = key.shape[2]
        rows = max(_MAX_SCORES // max(batch * heads * kv_length, 1), 1)
        parts = []
        for start in range(0, length, rows):
            part = query[:, :, start:start + rows].detach()
            tracer = Tracer(part, key, value, start=start, length=length)
            tracer.scale_by(scale)
            tracer.trace(score_mod, mask_mod)
            tracer.lift_integers()
            text = tracer.write_max()
            captures = [_move(x, query.device) for x in tracer.captures]
            operands = (part, key.detach(), *(x.detach() for x in captures),
                        *map(int, tracer.numbers))
            parts.append(
                _operator.get_forward(text, query.device, operands)(*operands))
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, 2) if parts else query.new_empty(
            query.shape[:3], dtype=torch.float32)

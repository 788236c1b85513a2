# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for JAX, as custom calls of XLA: with `jit`, `grad` and `vmap`, on
the CPU and on NVIDIA GPUs.

    import fovea.jax
    out = fovea.jax.flex_attention(q, k, v, mask_mod=lambda b, h, i, j: i >= j)

The text of the kernel is an attribute of the custom call, so that compiled
programs and caches of them are self-contained. It is compiled when the call
first runs, and found again in Fovea's disk cache.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from . import _jaxpr, compile, differentiable
from ._library import lib, new_capsule
from ._regions import TraceError, is_constant_scale

__all__ = ["TraceError", "dot_product_attention", "flex_attention", "trace"]

#: `(score, b, h, q_idx, kv_idx) -> score`, of arrays of no dimensions.
ScoreMod = Callable[[Array, Array, Array, Array, Array], Array]

#: `(b, h, q_idx, kv_idx) -> bool`, of arrays of no dimensions.
MaskMod = Callable[[Array, Array, Array, Array], Array]

_TARGET = "fovea"
_FLOATS = ("float16", "bfloat16", "float32", "float64")

for _platform, _handler in (("cpu", lib.fovea_xla_host),
                            ("CUDA", lib.fovea_xla_gpu)):
    jax.ffi.register_ffi_target(
        _TARGET, new_capsule(ctypes.cast(_handler, ctypes.c_void_p), None, None),
        platform=_platform)


def flex_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    score_mod: ScoreMod | None = None,
    mask_mod: MaskMod | None = None,
    *,
    scale: float | None = None,
    layout: str = "btnh",
    return_lse: bool = False,
) -> Array | tuple[Array, Array]:
    """Attention with a modification of scores and a mask, in one kernel.

        score = scale * (query[b, q, h] . key[b, kv, h // group])
        score = score_mod(score, b, h, q, kv)   where mask_mod(b, h, q, kv)
        output = softmax(score) @ value

    query: `[B, L, Hq, E]` by layout "btnh", which is that of `jax.nn`,
        `[B, Hq, L, E]` by "bnth"; f16, bf16, f32 or f64.
    key: as query, with S positions and H heads, which divide Hq; value: as key,
        with any head size.
    score_mod: `(score, b, h, q_idx, kv_idx) -> score`, of `jax.numpy`'s
        functions on arrays of no dimensions: the score is f32 (f64 if an
        operand is), coordinates are int32. It may close over arrays, tracers
        of an outer `jit` or `grad` too, and gets their gradients. Indices are
        as JAX has them: negative ones from the end, those outside clamped, or
        filled where `jnp` fills. Integers are computed with 64 bits, f16 and
        bf16 as f32.
    mask_mod: `(b, h, q_idx, kv_idx) -> bool`, of the scores that count.
    scale: a number, 1 / sqrt(E) if None; or an array of no dimensions, which may be a
        tracer and gets its gradient. Another scale needs no other kernel.
    return_lse: also returns the natural logarithm of the sum of exponentials,
        `[B, L, Hq]` by "btnh", else `[B, Hq, L]`, f32 (f64 if an operand is).

    Returns the output in the query's layout and type. A row whose scores are
    all masked is 0, its lse minus infinity.

    `jax.grad` differentiates it in reverse, once, with a fused backward pass;
    `jax.vmap` makes one call for each element.

    Raises ValueError and TypeError that name the argument; `TraceError`, with
    the line, for a mod that cannot become a region.
    """
    operands, scale = _check(query, key, value, scale, layout)
    if not isinstance(scale, float) or not is_constant_scale(query.shape[3], scale):
        score_mod = _scale_first(scale, score_mod)
        scale = 1.0
    tracer = _trace(operands, score_mod, mask_mod, layout)
    call = _Call(tracer, scale, layout == "btnh", return_lse)
    results = _attend(call, *operands, *tracer.take_arrays())
    return results if return_lse else results[0]


def trace(
    score_mod: ScoreMod | None = None,
    mask_mod: MaskMod | None = None,
    *,
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    scale: float | None = None,
    layout: str = "btnh",
) -> str:
    """Returns the text of the graph that two mods become for arrays of these
    types and shapes (`jax.ShapeDtypeStruct` will do), to be read, edited and
    given to `fovea.compile`. Its operands are `[B, H, L, E]` whatever the
    layout: query, key, value, then the captured arrays. Arguments and errors
    are those of `flex_attention`."""
    operands, scale = _check(query, key, value, scale, layout, is_shape=True)
    return _trace(operands, score_mod, mask_mod, layout).write(scale)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """`jax.nn.dot_product_attention`, by Fovea: its arguments and results.

    query: `[B, T, N, H]` or `[T, N, H]`; key, value: `[B, S, K, H]`, K divides
        N; of the same type: f16, bf16, f32 or f64.
    bias: added to the scaled scores; broadcasts to `[B, N, T, S]`. It gets its
        gradient.
    mask: booleans, True for what counts; broadcasts to `[B, N, T, S]`.
    scale: 1 / sqrt(H) if None.
    is_causal: query i sees keys 0 to i.
    query_seq_lengths, key_value_seq_lengths: `[B]`, int32: queries and keys
        beyond them do not count; output rows of such queries are 0.
    local_window_size: a number w, or (left, right): keys from `left` behind the
        query to `right` ahead of it.
    return_residual: also returns the log-sum-exp, `[B, T, N]`, of the query's type,
        without a gradient, as in JAX; `flex_attention` has one with both.

    One difference: a row whose scores are all masked is 0, and not the mean of
    the values.
    """
    arrays = {"query": query, "key": key, "value": value}
    for name, x in arrays.items():
        arrays[name] = x = jnp.asarray(x)
        if x.ndim not in (3, 4) or x.ndim != arrays["query"].ndim:
            raise ValueError(f"{name}: expected rank 3 or 4, that of query, got "
                             f"shape {x.shape}")
    is_single = arrays["query"].ndim == 3
    if is_single:
        arrays = {name: x[None] for name, x in arrays.items()}
    batch, queries, heads, _ = arrays["query"].shape
    shape = (batch, heads, queries, arrays["key"].shape[1])
    bias, mask = (
        _check_broadcast(name, x, shape, wants_bool)
        for name, x, wants_bool in (("bias", bias, False), ("mask", mask, True)))
    lengths = [
        _check_lengths(name, x, batch)
        for name, x in (("query_seq_lengths", query_seq_lengths),
                        ("key_value_seq_lengths", key_value_seq_lengths))]
    left, right = _read_window(local_window_size)

    def score_mod(score, b, h, i, j):
        return score + _read(bias, b, h, i, j).astype(score.dtype)

    def mask_mod(b, h, i, j):
        terms = []
        if mask is not None:
            terms.append(_read(mask, b, h, i, j))
        if is_causal:
            terms.append(i >= j)
        if left is not None:
            terms.append(i - j <= left)
        if right is not None:
            terms.append(j - i <= right)
        for length, at in zip(lengths, (i, j)):
            if length is not None:
                terms.append(at < length[b])
        return functools.reduce(jnp.logical_and, terms)

    masks = (mask is not None or is_causal or local_window_size is not None
             or any(length is not None for length in lengths))
    results = flex_attention(
        *arrays.values(), None if bias is None else score_mod,
        mask_mod if masks else None, scale=scale, return_lse=return_residual)
    if return_residual:
        output, lse = results
        results = output, jax.lax.stop_gradient(lse.astype(output.dtype))
    else:
        results = (results,)
    if is_single:
        results = tuple(x[0] for x in results)
    return results if return_residual else results[0]


def _read(array, *place):
    """Reads an array that broadcasts to the scores, at the place of one."""
    return array[tuple(0 if size == 1 else at
                       for size, at in zip(array.shape, place))]


#--- Checks -------------------------------------------------------------------


def _check(query, key, value, scale, layout, is_shape=False):
    if layout not in ("btnh", "bnth"):
        raise ValueError(f"layout: expected 'btnh' or 'bnth', got {layout!r}")
    operands = []
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not is_shape:
            x = jnp.asarray(x)
        if len(x.shape) != 4:
            raise ValueError(f"{name}: expected rank 4, in layout {layout}, got "
                             f"shape {x.shape}")
        if np.dtype(x.dtype).name not in _FLOATS:
            raise TypeError(f"{name}: expected one of {', '.join(_FLOATS)}, got "
                            f"{x.dtype}")
        operands.append(x)
    query, key, value = operands
    length, heads = (1, 2) if layout == "btnh" else (2, 1)
    if key.dtype != query.dtype or value.dtype != query.dtype:
        raise TypeError("query, key and value: expected one type, got "
                        f"{query.dtype}, {key.dtype} and {value.dtype}")
    if key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        raise ValueError("key: expected the batch and the head size of query, "
                         f"{query.shape}, got {key.shape}")
    if value.shape[:3] != key.shape[:3]:
        raise ValueError("value: expected the batch, the length and the heads of "
                         f"key, {key.shape}, got {value.shape}")
    if not key.shape[heads] or query.shape[heads] % key.shape[heads]:
        raise ValueError(f"key: expected a number of heads that divides query's "
                         f"{query.shape[heads]}, got {key.shape[heads]}")
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[3] or 1)
    elif isinstance(scale, jax.Array) and not is_shape:
        if scale.shape:
            raise TypeError("scale: expected a number, got an array of shape "
                            f"{scale.shape}")
        return operands, scale
    elif isinstance(scale, jax.core.Tracer):
        raise TypeError("scale: expected a number of Python, got a traced array")
    return operands, float(scale)


def _scale_first(scale, score_mod):
    """Returns a mod that multiplies scores by an array of no dimensions, and then does
    what another mod does."""
    factor = jnp.asarray(scale)

    def scaled(score, *place):
        score = score * factor.astype(score.dtype)
        return score if score_mod is None else score_mod(score, *place)

    if score_mod is not None:
        scaled.__wrapped__ = score_mod  # Errors name its line.
    return scaled


def _check_broadcast(name, array, shape, wants_bool):
    if array is None:
        return None
    array = jnp.asarray(array)
    if (array.dtype == bool) != wants_bool or not wants_bool and not (
            jnp.issubdtype(array.dtype, jnp.floating)):
        raise TypeError(f"{name}: expected {'booleans' if wants_bool else 'floats'}"
                        f", got {array.dtype}")
    full = (1,) * (4 - array.ndim) + array.shape
    if array.ndim > 4 or any(size not in (1, whole)
                             for size, whole in zip(full, shape)):
        raise ValueError(f"{name}: expected a shape that broadcasts to "
                         f"[B, N, T, S], {shape}, got {array.shape}")
    return array.reshape(full)


def _check_lengths(name, array, batch):
    if array is None:
        return None
    array = jnp.asarray(array)
    if array.shape != (batch,) or not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{name}: expected integers of shape {(batch,)}, got "
                         f"{array.dtype} of shape {array.shape}")
    return array


def _read_window(window):
    if window is None:
        return None, None
    pair = window if isinstance(window, tuple) else (window, window)
    if len(pair) != 2 or not all(isinstance(x, int) and x >= 0 for x in pair):
        raise ValueError("local_window_size: expected a number from 0 on or two, "
                         f"got {window!r}")
    return pair


#--- Calls --------------------------------------------------------------------


def _trace(operands, score_mod, mask_mod, layout):
    order = (0, 2, 1, 3) if layout == "btnh" else (0, 1, 2, 3)
    shapes = [jax.ShapeDtypeStruct(tuple(x.shape[dim] for dim in order),
                                   np.dtype(x.dtype)) for x in operands]
    return _jaxpr.Tracer(*shapes, score_mod, mask_mod)


class _Call:
    """The static part of a call. Two are equal if their texts are."""

    def __init__(self, tracer, scale, is_swapped, wants_lse):
        self.tracer = tracer
        self.scale = scale
        #: Whether dimensions 1 and 2 of the arrays are length and heads.
        self.is_swapped = is_swapped
        self.wants_lse = wants_lse
        lse = tracer.float if wants_lse else None
        self.text = tracer.write(scale, lse)
        self._key = (self.text, is_swapped, wants_lse)

    def __eq__(self, other):
        return isinstance(other, _Call) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def find_pair(self, constants):
        """Returns the text of the forward and the backward pass, and a
        `fovea.Differentiable` of it."""
        lse = self.tracer.float if self.wants_lse else None
        return _find_pair(self.tracer.write(self.scale, lse, constants))

    def swap(self, array):
        return jnp.swapaxes(array, 1, 2) if self.is_swapped else array


def _target():
    return "gpu" if jax.default_backend() == "gpu" else "host"


@functools.lru_cache(maxsize=None)
def _compile(text, target):
    """Compiles a text, for an error that says what is wrong with it; the
    handler finds the code in the cache."""
    return compile(text, target)


@functools.lru_cache(maxsize=None)
def _differentiate(text, target):
    return differentiable(text, target, recompute="always")


def _find_pair(text):
    from . import differentiate
    target = _target()
    return (differentiate(text, recompute="always", partition=True,
                          target=target), _differentiate(text, target))


def _run(text, number, function, operands, swapped, shapes):
    """Calls function `number` of a text; `shapes` are those of its results."""
    results = []
    for type, shape in zip(function.results, shapes):
        dtype = {"i1": "bool", "bf16": jnp.bfloat16}.get(
            type.dtype, type.dtype.replace("f", "float").replace("i", "int"))
        if dtype == "float64" and not jax.config.jax_enable_x64:
            # As bits: there is no such type.
            dtype, shape = "uint32", (*shape, 2)
        results.append(jax.ShapeDtypeStruct(shape, dtype))
    return jax.ffi.ffi_call(_TARGET, tuple(results), vmap_method="sequential")(
        *operands, text=text, function=np.int64(number),
        swapped=np.int64(swapped))


def _shape(call, query, value):
    """Returns the shapes of output and log-sum-exp, [B, H, L, E]."""
    query, value = (x.shape if not call.is_swapped else
                    (x.shape[0], x.shape[2], x.shape[1], x.shape[3])
                    for x in (query, value))
    return (*query[:3], value[3]), query[:3]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(call, *operands):
    function = _compile(call.text, _target())
    results = _run(call.text, 0, function, operands, 7 * call.is_swapped,
                   _shape(call, operands[0], operands[2]))
    return tuple(map(call.swap, results))


@jax.tree_util.register_static
class _Static:
    """Names that go from the forward to the backward pass."""

    def __init__(self, names):
        self.names = names

    def __eq__(self, other):
        return isinstance(other, _Static) and self.names == other.names

    def __hash__(self):
        return hash(self.names)


def _as_bits(array):
    """Returns a float's bits as integers, as a constant is captured."""
    dtype = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[array.dtype.itemsize]
    return jax.lax.bitcast_convert_type(array, dtype)


def _prepare(call, operands, constants):
    names = ("", "", "", *call.tracer.names)
    return [_as_bits(x) if name in constants else x
            for name, x in zip(names, operands)]


def _attend_forward(call, *primals):
    operands = tuple(x.value for x in primals)
    constants = frozenset(
        name for name, x in zip(call.tracer.names, primals[3:])
        if not x.perturbed and jnp.issubdtype(x.value.dtype, jnp.floating))
    text, pair = call.find_pair(constants)
    output, lse = _shape(call, operands[0], operands[2])
    shapes = [output] + [lse] * (len(pair.forward.results) - 1)
    results = _run(text, 0, pair.forward, _prepare(call, operands, constants),
                   7 * call.is_swapped, shapes)
    count = len(pair.results)
    return (tuple(map(call.swap, results[:count])),
            (operands, results, _Static(constants)))


def _attend_backward(call, saved, cotangents):
    operands, results, static = saved
    text, pair = call.find_pair(static.names)
    count = len(pair.results)
    known = {"operand": _prepare(call, operands, static.names),
             "result": results[:count], "saved": results[count:],
             "cotangent": cotangents}
    values, swapped = [], 0
    for at, (kind, index) in enumerate(pair.sources):
        value = known[kind][index]
        if isinstance(value, jax.custom_derivatives.SymbolicZero):
            value = jnp.zeros(value.shape, value.dtype)
        is_given = kind == "operand" and index < 3 or kind == "cotangent"
        if call.is_swapped and is_given:
            if value.ndim == 4:
                swapped |= 1 << at
            else:
                # A GPU wants elements of the last dimension next to each other.
                value = call.swap(value)
        values.append(value)
    shapes = []
    for index in pair.variables:
        shape = operands[index].shape
        if call.is_swapped and index < 3:
            shape = (shape[0], shape[2], shape[1], shape[3])
        shapes.append(shape)
    found = _run(text, 1, pair.backward, values, swapped, shapes)
    gradients = [None] * len(operands)
    for index, gradient in zip(pair.variables, found):
        gradients[index] = call.swap(gradient) if index < 3 else gradient
    return tuple(gradients)


_attend.defvjp(_attend_forward, _attend_backward, symbolic_zeros=True)

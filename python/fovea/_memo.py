# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose mods need no tracing a second time.

The text of a call with mods that this package wrote depends only on its options and
on its tensors' types, sizes, devices and need of gradients, so it is looked up by
them. Mods that others write are looked up by what they read, too (_mods.py), and
traced at every call where that is not known.
"""

import contextlib

import torch

from . import _mods, _native, _operator
from ._trace import BITS

#: As many calls as a memo keeps. A cache that grows by a step at a time makes a new
#: one of each step.
_MOST = 4096

#: In the place of a plan: such calls are traced each time.
_TRACED = object()


def cast_as_autocast(*tensors):
    """Returns tensors as autocast wants operands of attention: in its type, if
    they are f32 or smaller."""
    device = tensors[0].device.type
    if not torch.amp.is_autocast_available(device) or (
            not torch.is_autocast_enabled(device)):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return [x if x.dtype == torch.float64 else x.to(dtype) for x in tensors]


class Memo:
    """Calls by what decides the text of their kernel. With `is_fixed`, all have one
    mask, which captures the same tensors and numbers each time."""

    def __init__(self, is_fixed=False):
        self.plans = {}
        self.is_fixed = is_fixed

    def open(self, tensors, numbers, options, mods=()):
        """Returns the `Call` of tensors, of which the first three are query, key and
        value, with numbers that become operands, options that do not, and mods that
        others wrote; None where something takes part that these do not show."""
        if torch.compiler.is_dynamo_compiling() or _native.is_watched():
            return None
        if torch._C._is_any_autocast_enabled():
            tensors = [*cast_as_autocast(*tensors[:3]), *tensors[3:]]
        key = [options, torch.is_grad_enabled()]
        if mods:
            reads, captures = _mods.read_mods(mods)
            if reads is None:
                return None
            key += reads
            tensors = [*tensors, *captures]
        for x in tensors:
            if type(x) not in _native.PLAIN:
                return None
            key += (x.shape, x.dtype, x.device, x.requires_grad)
        if len(tensors) > 4 and len({x.data_ptr() for x in tensors[3:]}) + 3 != (
                len(tensors)):
            return None  # Tensors in the same memory are one operand.
        key = tuple(key)
        plan = self.plans.get(key)
        if plan is _TRACED:
            return None
        return Call(self, key, tensors, numbers, plan, bool(mods))


class Call:
    """One call."""

    __slots__ = ("_memo", "_key", "_tensors", "_numbers", "_plan", "_has_mods",
                 "_watch")

    def __init__(self, memo, key, tensors, numbers, plan, has_mods):
        self._memo = memo
        self._key = key
        self._tensors = tensors
        self._numbers = numbers
        self._plan = plan
        self._has_mods = has_mods
        self._watch = None

    def watch(self):
        """Returns a context in which the mods are traced."""
        if not self._has_mods:
            return contextlib.nullcontext()
        self._watch = _mods.Watch(self._tensors[3:])
        return self._watch

    def run(self):
        """Returns the output and the log-sum-exp, None if there was no such call
        before."""
        if self._plan is None:
            return None
        text, sources, numbers, grows, wants_lse = self._plan
        tensors = self._tensors
        captures = []
        for at, bits, device in sources:
            x = at if bits is False else tensors[at]
            if bits:
                x = x.detach().view(bits)
            captures.append(x if device is None else x.to(device))
        output, lse = _operator.attention(
            *tensors[:3], captures, self._numbers or numbers, text,
            torch.are_deterministic_algorithms_enabled(), grows)
        if not wants_lse:
            return output, None
        if lse.dtype == torch.float64 and output.dtype != torch.float64:
            lse = lse.float()
        return output, lse

    def note(self, text, captures, numbers, grows, wants_lse):
        """Keeps what the call became. The captures are where the mods have them."""
        plan = self._plan_call(text, captures, numbers, grows, wants_lse)
        if plan is None and not self._has_mods:
            return
        plans = self._memo.plans
        if len(plans) >= _MOST:
            plans.clear()
        plans[self._key] = _TRACED if plan is None else plan

    def _plan_call(self, text, captures, numbers, grows, wants_lse):
        """Returns what `run` needs, None if the next such call may differ."""
        # Numbers are the same in each call with a key, but for those given apart.
        is_fixed = self._memo.is_fixed or self._has_mods
        if numbers != self._numbers and (self._numbers or not is_fixed):
            return None  # Constants that changed from call to call are operands, too.
        if self._watch and not self._watch.is_clean:
            return None
        device = self._tensors[0].device
        sources = []
        for x in captures:
            source = self._find(x) or (self._memo.is_fixed and (x, False))
            if not source:
                return None
            sources.append((*source, None if x.device == device else device))
        return text, sources, numbers, grows, wants_lse

    def _find(self, capture):
        """Returns the number of the tensor that a captured one is, and the type as
        which it is viewed, or None. Query, key and value are none, though a captured
        one may be the same tensor in this call."""
        given = list(enumerate(self._tensors))[3:]
        for at, x in given:
            if x is capture:
                return at, None
        for at, x in given:
            if (x.data_ptr() == capture.data_ptr() and x.shape == capture.shape
                    and capture.dtype == BITS.get(x.dtype.itemsize)):
                return at, capture.dtype
        return None

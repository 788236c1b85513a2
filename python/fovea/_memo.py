# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose mods this package wrote, which need no tracing a second time.

The text of such a call depends only on its options and on its tensors' types, sizes,
devices and need of gradients, so it is looked up by them. Mods that others write are
traced at every call: nothing is known of what they read.
"""

import torch

from . import _native, _operator
from ._trace import BITS

#: As many calls as a memo keeps. A cache that grows by a step at a time makes a new
#: one of each step.
_MOST = 4096


class Memo:
    """Calls by what decides the text of their kernel. With `is_fixed`, all have one
    mask, which captures the same tensors and numbers each time."""

    def __init__(self, is_fixed=False):
        self.plans = {}
        self.is_fixed = is_fixed

    def open(self, tensors, numbers, options):
        """Returns the `Call` of tensors, of which the first three are query, key and
        value, with numbers that become operands and options that do not; None where
        something takes part that these do not show."""
        if torch.compiler.is_dynamo_compiling() or _native.is_watched() or (
                torch._C._is_any_autocast_enabled()):
            return None
        key = [options, torch.is_grad_enabled()]
        for x in tensors:
            if type(x) not in _native.PLAIN:
                return None
            key += (x.shape, x.dtype, x.device, x.requires_grad)
        if len(tensors) > 4 and len({x.data_ptr() for x in tensors[3:]}) + 3 != (
                len(tensors)):
            return None  # Tensors in the same memory are one operand.
        return Call(self, tuple(key), tensors, numbers)


class Call:
    """One call."""

    __slots__ = ("_memo", "_key", "_tensors", "_numbers")

    def __init__(self, memo, key, tensors, numbers):
        self._memo = memo
        self._key = key
        self._tensors = tensors
        self._numbers = numbers

    def run(self):
        """Returns the output and the log-sum-exp, None if there was no such call
        before."""
        plan = self._memo.plans.get(self._key)
        if plan is None:
            return None
        text, sources, numbers, grows, wants_lse = plan
        tensors = self._tensors
        captures = [tensors[at] if bits is None
                    else at if bits is False
                    else tensors[at].detach().view(bits) for at, bits in sources]
        output, lse = _operator.attention(
            *tensors[:3], captures, self._numbers or numbers, text,
            torch.are_deterministic_algorithms_enabled(), grows)
        if not wants_lse:
            return output, None
        if lse.dtype == torch.float64 and output.dtype != torch.float64:
            lse = lse.float()
        return output, lse

    def note(self, text, captures, numbers, grows, wants_lse):
        """Keeps what the call became."""
        is_fixed = self._memo.is_fixed
        if numbers != self._numbers and (self._numbers or not is_fixed):
            return  # Constants that changed from call to call are operands, too.
        sources = []
        for x in captures:
            source = self._find(x) or (is_fixed and (x, False))
            if not source:
                return
            sources.append(source)
        plans = self._memo.plans
        if len(plans) >= _MOST:
            plans.clear()
        plans[self._key] = text, sources, numbers, grows, wants_lse

    def _find(self, capture):
        """Returns the number of the tensor that a captured one is, and the type as
        which it is viewed, or None."""
        for at, x in enumerate(self._tensors):
            if x is capture:
                return at, None
        for at, x in enumerate(self._tensors[3:], 3):
            if (x.data_ptr() == capture.data_ptr() and x.shape == capture.shape
                    and capture.dtype == BITS.get(x.dtype.itemsize)):
                return at, capture.dtype
        return None

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose mods need no tracing a second time.

The text of a call with mods that this package wrote depends only on its options and
on its tensors' types, sizes, devices and need of gradients, so it is looked up by
them; where all of these are as before, arguments need not even be checked. Mods that
others write are looked up by what they read, too (_mods.py), and traced at every call
where that is not known.
"""

import contextlib
import sys

import torch

from . import _mods, _native, _operator
from ._regions import write_length
from ._trace import BITS

#: As many calls as a memo keeps. A cache that grows by a step at a time makes a new
#: one of each step.
_MOST = 4096

#: In the place of a plan: such calls are traced each time.
_TRACED = object()


#: The devices that have autocast; torch.compile does not always trace the question.
_AUTOCAST = frozenset(filter(torch.amp.is_autocast_available, ("cpu", "cuda")))


def cast_as_autocast(*tensors):
    """Returns tensors as autocast wants operands of attention: in its type, if
    they are f32 or smaller."""
    device = tensors[0].device.type
    if device not in _AUTOCAST or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return [x if x.dtype == torch.float64 else x.to(dtype) for x in tensors]


def is_watched():
    """Returns True if something but the call looks at what is done with tensors."""
    return torch.compiler.is_dynamo_compiling() or _native.is_watched()


def describe(x):
    """Returns what a text may depend on of a tensor."""
    return x.shape, x.dtype, x.device, x.requires_grad


def _have_same_memory(captures):
    """Returns True if two tensors are in the same memory, which makes them one
    operand."""
    return len(captures) > 1 and (
        len({x.data_ptr() for x in captures}) != len(captures))


class _Kind:
    """The plans of calls that differ in lengths and in integers that are operands."""

    __slots__ = ("plan", "plans", "is_tried")

    def __init__(self):
        #: For all of them.
        self.plan = None
        #: By lengths, and by the integers of mods that others wrote, where the text
        #: depends on these.
        self.plans = {}
        #: It was tried to have one for all.
        self.is_tried = False


class Memo:
    """Calls by what decides the text of their kernel. With `is_fixed`, all have one
    mask, which captures the same tensors and numbers each time."""

    def __init__(self, is_fixed=False):
        self.kinds = {}
        self.is_fixed = is_fixed
        self._count = 0

    def open(self, tensors, numbers, options, mods=(), lifted=()):
        """Returns the `Call` of tensors, of which the first three are query, key and
        value, with numbers that become operands, options that do not, and mods that
        others wrote; `lifted` are the numbers of those that this package wrote, where
        the text may depend on them. None where something takes part that these do not
        show."""
        if is_watched():
            return None
        if torch._C._is_any_autocast_enabled():
            tensors = [*cast_as_autocast(*tensors[:3]), *tensors[3:]]
        key = [options, torch.is_grad_enabled()]
        if mods:
            reads, captures, lifted = _mods.read_mods(mods)
            if reads is None:
                return None
            key += reads
            tensors = [*tensors, *captures]
        lengths = []
        for x in tensors[:3]:
            if type(x) not in _native.PLAIN or x.dim() != 4:
                return None
            batch, heads, length, size = x.shape
            lengths.append(length)
            key += (batch, heads, size, x.dtype, x.device, x.requires_grad)
        length, kv_length, value_length = lengths
        if value_length != kv_length:
            return None
        key += (write_length(length, tensors[0].is_cuda), not length, not kv_length)
        for x in tensors[3:]:
            if type(x) not in _native.PLAIN:
                return None
            key += describe(x)
        if _have_same_memory(tensors[3:]):
            return None
        key += [not x.number for x in lifted]
        key = tuple(key)
        sizes = (length, kv_length, *(x.number for x in lifted))
        kind = self.kinds.get(key)
        plan = kind and (kind.plan or kind.plans.get(sizes))
        if plan is _TRACED:
            return None
        return Call(self, key, sizes, tensors, numbers, lifted, plan, bool(mods))

    def open_by(self, key, tensors, numbers=None):
        """Returns the `Call` of tensors whose text depends on nothing but `key`, nor do
        the integers that are operands, without the `numbers`. The tensors are plain
        ones, not under autocast, where `is_watched` is false. None as by `open`."""
        if _have_same_memory(tensors[3:]):
            return None
        key = (key, torch.is_grad_enabled())
        kind = self.kinds.get(key)
        return Call(self, key, (), tensors, numbers, (), kind and kind.plans.get(()),
                    False)

    def keep(self, key, sizes, plan, find_text):
        """Keeps the plan of a call; `find_text` returns the text of such calls with
        any lengths and integers, None if there is none."""
        if self._count >= _MOST:
            self.kinds.clear()
            self._count = 0
        kind = self.kinds.setdefault(key, _Kind())
        self._count += 1
        if sizes and plan is not _TRACED and not kind.is_tried and not self.is_fixed:
            kind.is_tried = True
            if find_text() == plan.text:
                kind.plan = plan
                return
        kind.plans[sizes] = plan


class _Plan:
    """What a call became."""

    __slots__ = ("text", "sources", "numbers", "places", "grows", "wants_lse")

    def __init__(self, text, sources, numbers, places, grows, wants_lse):
        # Many plans have one text.
        self.text = sys.intern(text)
        #: Of each captured tensor: its number among the call's tensors and the type as
        #: which it is viewed, or itself and False; and the device that it goes to, if
        #: it is on another.
        self.sources = sources
        #: The integers that are operands, and for each its place among those of a
        #: call, None if it is the same in all; no places if all are.
        self.numbers = numbers
        self.places = places
        self.grows = grows
        self.wants_lse = wants_lse


#: The types of arguments that are no tensors.
_OPTIONS = frozenset((bool, int, float, str, type(None)))


class Arguments:
    """The arguments of a call as they are given, by which a call that is like ones
    before is found before they are checked. The first three tensors are the query,
    keys and values, others may be None; options are numbers, booleans and None, and a
    window is a tuple of these."""

    __slots__ = ("key", "tensors", "known")

    #: Calls by all that they depend on but what is in the tensors.
    kept = {}

    def __init__(self, name, tensors, window, *options):
        self.tensors = tensors
        #: None if the call is not kept.
        self.key = None
        if type(window) is tuple:
            self.key = self._note((name, *window, *options))
        #: The `Fixed` call of such arguments, None if there was none.
        self.known = self.kept.get(self.key)

    def _note(self, options):
        """Returns what the call depends on, None if something takes part that
        arguments do not show."""
        if is_watched() or torch._C._is_any_autocast_enabled():
            return None
        types = tuple(map(type, options))
        if not _OPTIONS.issuperset(types):
            return None
        # Numbers of several types are equal.
        key = [options, types, torch.is_grad_enabled()]
        for x in self.tensors:
            if x is None:
                key.append(None)
            elif type(x) in _native.PLAIN:
                key += describe(x)
            else:
                return None
        return tuple(key)

    def add(self, *more):
        """Adds what else the call depends on."""
        self.key = (self.key, more)
        self.known = self.kept.get(self.key)

    def forget(self):
        """Keeps the call from being kept."""
        self.key = self.known = None

    def keep(self, call):
        """Keeps what the call became."""
        fixed = self.key and call.fix(self.tensors)
        if fixed:
            if len(self.kept) >= _MOST:
                self.kept.clear()
            self.kept[self.key] = fixed


class Fixed:
    """A call of which all is known but the tensors."""

    __slots__ = ("_plan", "_places", "_numbers")

    def __init__(self, plan, places, numbers):
        self._plan = plan
        self._places = places
        self._numbers = numbers

    def run(self, query, key, value, tensors):
        """Returns the output and the log-sum-exp; `tensors` are as those of
        `Call.fix`."""
        captures = [tensors[at] if bits is None else tensors[at].detach().view(bits)
                    for at, bits in self._places]
        return _run(self._plan, (query, key, value), captures, self._numbers)


def _run(plan, tensors, captures, numbers):
    """Returns the output and the log-sum-exp of a plan, of which the first tensors are
    query, key and value."""
    output, lse = _operator.attention(
        *tensors[:3], captures, numbers, plan.text,
        torch.are_deterministic_algorithms_enabled(), plan.grows)
    if not plan.wants_lse:
        return output, None
    if lse.dtype == torch.float64 and output.dtype != torch.float64:
        lse = lse.float()
    return output, lse


class Call:
    """One call."""

    __slots__ = ("_memo", "_key", "_sizes", "_tensors", "_numbers", "_lifted", "_plan",
                 "_has_mods", "_watch", "_behind")

    def __init__(self, memo, key, sizes, tensors, numbers, lifted, plan, has_mods):
        self._memo = memo
        self._key = key
        self._sizes = sizes
        self._tensors = tensors
        self._numbers = numbers
        self._lifted = lifted
        self._plan = plan
        self._has_mods = has_mods
        self._watch = None
        self._behind = None

    def watch(self):
        """Returns a context in which the mods are traced."""
        if self._behind:
            return self._behind.watch()
        if not self._has_mods:
            return contextlib.nullcontext()
        self._watch = _mods.Watch(self._tensors[3:])
        return self._watch

    def run(self):
        """Returns the output and the log-sum-exp, None if there was no such call
        before."""
        plan = self._plan
        if plan is None:
            return None
        return _run(plan, self._tensors, self._find_captures(), self._find_numbers())

    def fix(self, tensors):
        """Returns what the call became for such tensors of the same shapes, in which,
        behind the first three, the captured ones are, and which may be None; None if
        one is not, or if another one is in its memory, so that they were one
        operand."""
        places = []
        for at, bits, device in self._plan.sources:
            place = next((place for place, x in enumerate(tensors)
                          if place > 2 and x is self._tensors[at]), None)
            if place is None or bits is False or device is not None:
                return None
            places.append((place, bits))
        captured = {tensors[place].data_ptr(): place for place, _ in places}
        if any(x is not None and captured.get(x.data_ptr(), place) != place
               for place, x in enumerate(tensors) if place > 2):
            return None
        return Fixed(self._plan, places, self._find_numbers())

    def run_by(self, other):
        """Runs as another memo knows this call, if it does, and keeps that; else the
        other call is noted with this one."""
        self._behind = other
        found = other and other.run()
        if found:
            captures, numbers = other._find_captures(), other._find_numbers()
            self._memo.keep(self._key, self._sizes, _Plan(
                other._plan.text, [(x, False, None) for x in captures], numbers, None,
                other._plan.grows, other._plan.wants_lse), None)
        return found

    def _find_captures(self):
        captures = []
        for at, bits, device in self._plan.sources:
            x = at if bits is False else self._tensors[at]
            if bits:
                x = x.detach().view(bits)
            captures.append(x if device is None else x.to(device))
        return captures

    def _find_numbers(self):
        plan = self._plan
        if plan.places is None:
            return plan.numbers
        given = (*self._numbers, *self._sizes[2:])
        return [number if at is None else given[at]
                for number, at in zip(plan.numbers, plan.places)]

    def note(self, text, captures, numbers, grows, wants_lse, find_text):
        """Keeps what the call became. The captures are where the mods have them, the
        numbers as they have them. For `find_text` see `Memo.keep`."""
        if self._behind:
            self._behind.note(text, captures, numbers, grows, wants_lse, find_text)
        plan = self._plan_call(text, captures, numbers, grows, wants_lse)
        if plan is not None or self._has_mods:
            self._memo.keep(self._key, self._sizes, plan or _TRACED, find_text)

    def _plan_call(self, text, captures, numbers, grows, wants_lse):
        """Returns the plan, None if the next such call may differ."""
        if self._watch and not self._watch.is_clean:
            return None
        places = self._place_numbers(numbers)
        if places is False:
            return None
        device = self._tensors[0].device
        sources = []
        for x in captures:
            source = self._find(x) or (self._memo.is_fixed and (x, False))
            if not source:
                return None
            sources.append((*source, None if x.device == device else device))
        return _Plan(text, sources, [x.number for x in numbers], places, grows,
                     wants_lse)

    def _place_numbers(self, numbers):
        """Returns the places of integers among those of the call, see `_Plan`; False if
        they are not known."""
        places = []
        if self._numbers is None:
            return None
        own = [x for x in numbers if not any(x is other for other in self._lifted)]
        is_fixed = self._memo.is_fixed or self._has_mods
        count = len(self._numbers)
        if [x.number for x in own[:count]] != self._numbers or (
                len(own) > count and not is_fixed):
            # Constants that changed from call to call are operands, too.
            return False
        if not self._numbers and not self._lifted:
            return None
        given = iter(range(len(self._numbers)))
        for x in numbers:
            at = next((at for at, other in enumerate(self._lifted) if x is other), None)
            if at is not None:
                places.append(len(self._numbers) + at)
            else:
                places.append(next(given, None))
        return places

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

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mods that are not traced again: only while nothing that they read has changed."""

import functools
import gc
import math
import operator
import random
import types
from collections import namedtuple

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
import mods
from mods import (DEVICE, HEADS, LENGTH, MASKS, SCORES, causal_mask, make_qkv, plain,
                  randn, reference)
from test_flex import compare
from test_memo import traced
from torch.nn.attention.flex_attention import and_masks, create_block_mask

on_device = mods.on_device


class Check:
    """Compares calls with one mod after another with PyTorch's, and counts those that
    were traced."""

    def __init__(self, count):
        self.count = count
        self.inputs = make_qkv(7, 9)

    def __call__(self, score_mod=None, mask_mod=None, **options):
        actual = fovea.flex_attention(*self.inputs, score_mod, mask_mod=mask_mod,
                                      **options)
        expected, _, _ = reference(*self.inputs, plain(score_mod), plain(mask_mod))
        compare(actual, expected)
        return actual

    @property
    def traces(self):
        """The number of traces since it was last asked for."""
        found = self.count[0]
        self.count[0] = 0
        return found


@pytest.fixture
def check(traced):
    return Check(traced)


#--- What is kept ---------------------------------------------------------------


#: Mods that read a part of a tensor while they are traced, which makes another.
TRACED = ("flamingo", "view_of_bias")


@pytest.mark.parametrize("kind, name", [
    *(("mask", name) for name in MASKS), *(("score", name) for name in SCORES)])
def test_mods(check, kind, name):
    """A second mod of the same kind is not traced, and reads its own tensors."""
    check.inputs = make_qkv()
    for turn in range(2):
        mod = {**MASKS, **SCORES}[name]()
        for cell in mod.__closure__ or ():
            if turn and isinstance(cell.cell_contents, torch.Tensor) and (
                    cell.cell_contents.is_floating_point()):
                cell.cell_contents = cell.cell_contents.detach().flip(0)
            elif isinstance(cell.cell_contents, torch.Tensor):
                cell.cell_contents = cell.cell_contents.detach()
        check(**{f"{kind}_mod": mod})
    assert check.traces == (2 if name in TRACED else 1)


def test_first_of_a_kind_only(check):
    """The number of traces of what is called in turn, with new tensors each time."""
    def make(window, offset):
        ids, bias = torch.arange(9, device=DEVICE) // 2 + offset, randn(9)
        return (lambda s, b, h, q, kv: s + bias[kv] * 0.5,
                and_masks(causal_mask, lambda b, h, q, kv: (
                    ids[q] == ids[kv]) | (q - kv < window)))

    for offset in range(3):
        for window in (2, 3):
            check(*make(window, offset))
    assert check.traces == 2
    # Other sizes, types and results are others.
    score_mod, mask_mod = make(2, 0)
    check(score_mod)
    check(score_mod, mask_mod, return_lse=False, scale=1 / math.sqrt(16))
    fovea.flex_attention(*make_qkv(8, 9), score_mod, mask_mod=mask_mod)
    fovea.flex_attention(*check.inputs, score_mod, mask_mod=mask_mod, return_lse=True)
    assert check.traces == 4
    check(score_mod, mask_mod)
    assert check.traces == 0


def test_gradients(check):
    """Of captured tensors that are other ones in each call."""
    for turn in range(3):
        q, k, v = make_qkv(7, 9, grad=True, seed=turn)
        bias, slopes = (randn(n, seed=turn).requires_grad_() for n in (9, 4))
        scale = randn(4, seed=turn)

        def mod(s, b, h, i, j):
            return s * scale[h] + bias[j] + slopes[h] * (j - i)

        wanted = q, k, v, bias, slopes
        output = fovea.flex_attention(q, k, v, mod, mask_mod=causal_mask)
        expected, _, _ = reference(q, k, v, mod, causal_mask)
        for one, other in zip(torch.autograd.grad(output.square().sum(), wanted),
                              torch.autograd.grad(expected.square().sum(), wanted)):
            compare(one, other.double(), 2e-5)
    assert check.traces == 1
    # One that needs a gradient no more, or that one comes to need.
    slopes, scale = slopes.detach(), scale.requires_grad_()
    output = fovea.flex_attention(q, k, v, mod)
    expected, _, _ = reference(q, k, v, mod)
    for one, other in zip(torch.autograd.grad(output.sum(), (bias, scale)),
                          torch.autograd.grad(expected.sum(), (bias, scale))):
        compare(one, other.double(), 2e-5)
    assert check.traces == 1


def test_attention(check):
    """Mods beside the usual options."""
    q, k, v = check.inputs
    for turn in range(3):
        bias = randn(9, seed=turn)
        score_mod = lambda s, b, h, i, j: s + bias[j]
        compare(fovea.attention(q, k, v, causal=True, q_offset=turn + 1, softcap=2.0,
                                score_mod=score_mod,
                                mask_mod=lambda b, h, i, j: j != 1),
                reference(q, k, v, lambda s, b, h, i, j: 2 * torch.tanh(s / 2) + bias[j],
                          lambda b, h, i, j: (i + turn + 1 >= j) & (j != 1))[0])
    assert check.traces == 1


def test_flash(check):
    """Functions that are made of mods."""
    q, k, v = make_qkv(9, 9)
    for turn in range(2):
        starts = torch.tensor([0, 2 + turn, 9], dtype=torch.int32, device=DEVICE)
        ids = torch.arange(9, device=DEVICE) >= 2 + turn
        packed = [x[0].transpose(0, 1) for x in (q, k, v)]
        sinks = randn(4, seed=turn)
        output, lse = fovea.flash_attn_varlen_func(
            *packed, starts, starts, causal=True, return_softmax_lse=True)
        mod = lambda b, h, i, j: (ids[i] == ids[j]) & (i >= j)
        exact, exact_lse, _ = reference(q[:1], k[:1], v[:1], None, mod)
        compare(output.transpose(0, 1)[None], exact)
        compare(lse[None], exact_lse)
        compare(fovea.flash_attn_varlen_func(*packed, starts, starts, causal=True,
                                             s_aux=sinks).transpose(0, 1)[None],
                exact * torch.sigmoid(exact_lse - sinks[:, None])[..., None])
    assert check.traces == 2
    for length in (7, 7, 5):
        # Where the last query is, is an operand.
        part = [x.transpose(1, 2) for x in (q[:, :, :length], k, v)]
        compare(fovea.flash_attn_func(*part, causal=True).transpose(1, 2),
                reference(q[:, :, :length], k, v, None,
                          lambda b, h, i, j: i + 9 - length >= j)[0])
    # A GPU's texts count few queries.
    assert check.traces == (1 if DEVICE == "cpu" else 2)


def test_block_mask(check):
    """A BlockMask has a mod, or is a table."""
    for _ in range(2):
        ids = torch.arange(128, device=DEVICE) // 40
        check.inputs = make_qkv(128, 128)
        blocks = create_block_mask(lambda b, h, q, kv: ids[q] == ids[kv], None, None,
                                   128, 128, device=DEVICE)
        compare(fovea.flex_attention(*check.inputs, block_mask=blocks),
                reference(*check.inputs, None, blocks.mask_mod)[0])
    assert check.traces == 1


def test_a_number_of_the_cpu(check):
    """Goes to the device at every call."""
    for turn in (3, 1):
        offset = torch.tensor(turn, device="cpu")
        number = turn
        compare(fovea.flex_attention(
            *check.inputs, mask_mod=lambda b, h, q, kv: q + offset >= kv),
            reference(*check.inputs, None, lambda b, h, q, kv: q + number >= kv)[0])
    assert check.traces == 1


#--- What mods read -------------------------------------------------------------

WIDTH = 2
HELPERS = [lambda x: x * 2]
SETTINGS = {"width": 2}
Pair = namedtuple("Pair", "low high")


def helper(x):
    return x + WIDTH


class Slots:
    __slots__ = ("width",)


class Settings:
    width = 2
    floor = 1

    @property
    def computed(self):
        return self.width

    @classmethod
    def of_class(cls):
        return cls.width

    def near(self, b, h, q, kv):
        return q - kv < self.width

    def __call__(self, b, h, q, kv):
        return q - kv < self.width

    def indirect(self, b, h, q, kv):
        return self.near(b, h, q, kv) & (kv >= self.floor)


class Evasive:
    """Makes attributes up."""
    def __init__(self):
        self.number = 2

    def __getattr__(self, name):
        return self.__dict__["number"]


class Diverting(Settings):
    def __getattribute__(self, name):
        return 3 if name == "width" else object.__getattribute__(self, name)


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(randn(9))
        self.register_buffer("table", randn(9, seed=1))
        self.width = 2

    def score(self, s, b, h, q, kv):
        return s * self.width + self.bias[kv] * self.table[q]


def test_reads_of_a_code():
    """In every version of Python."""
    from fovea._bytecode import CELL, GLOBAL, SELF, find_reads
    table, parts = torch.zeros(3), ()

    def mod(s, b, h, q, kv):
        place = [0 if size == 1 else at for size, at in zip(table.shape, (b, h))]
        inner = lambda x: x + table[b]
        for part in parts:
            s += part(s).sum()
        return torch.where(q > kv, inner(s), -torch.nn.functional.gelu(
            table[tuple(place)]))

    plain = {"shape", "sum"}
    cells = {name: at for at, name in enumerate(mod.__code__.co_freevars)}
    reads = find_reads(mod.__code__, plain)
    assert reads.updates and set(reads.paths) == {
        (GLOBAL, "zip", (), 0), (GLOBAL, "tuple", (), 0), (CELL, cells["parts"], (), 0),
        (CELL, cells["table"], ("shape",), 0), (CELL, cells["table"], (), 0),
        (GLOBAL, "torch", ("where",), 1),
        (GLOBAL, "torch", ("nn", "functional", "gelu"), 3)}
    assert find_reads(mod.__code__, {"shape"}) is None
    reads = find_reads(Settings.indirect.__code__, plain, True)
    assert not reads.updates and set(reads.paths) == {
        (SELF, 0, ("near",), 1), (SELF, 0, ("floor",), 1)}
    # Without an object these are attributes of what is not known.
    assert find_reads(Settings.indirect.__code__, plain) is None


def set_global(name, value):
    globals()[name] = value


@pytest.fixture(autouse=True)
def globals_as_they_were():
    before = dict(globals())
    before_settings = dict(vars(Settings))
    yield
    globals().clear()
    globals().update(before)
    HELPERS[:] = [lambda x: x * 2]
    SETTINGS.clear()
    SETTINGS["width"] = 2
    for name in ("width", "floor", "near"):
        setattr(Settings, name, before_settings[name])


def cell_of_number():
    width = 2

    def mod(b, h, q, kv):
        return q - kv < width

    def change():
        nonlocal width
        width = 5

    return mod, change


def global_number():
    return lambda b, h, q, kv: q - kv < WIDTH, lambda: set_global("WIDTH", 5)


def global_behind_a_helper():
    return lambda b, h, q, kv: helper(kv) >= q, lambda: set_global("WIDTH", 5)


def global_function():
    return lambda b, h, q, kv: helper(kv) >= q, lambda: set_global(
        "helper", lambda x: x - 1)


def global_function_of_the_same_code():
    def make(width):
        return lambda x: x + width

    set_global("helper", make(1))
    return lambda b, h, q, kv: helper(kv) >= q, lambda: set_global("helper", make(4))


def global_in_front_of_a_builtin():
    return lambda b, h, q, kv: abs(q - kv) < 3, lambda: set_global("abs", lambda x: x)


def default():
    mod = lambda b, h, q, kv, width=2: q - kv < width
    return mod, lambda: setattr(mod, "__defaults__", (5,))


def keyword_default():
    mod = lambda b, h, q, kv, *, width=2: q - kv < width
    return mod, lambda: mod.__kwdefaults__.update(width=5)


def code():
    mod = lambda b, h, q, kv: q - kv < 2
    return mod, lambda: setattr(mod, "__code__", (lambda b, h, q, kv: q > kv).__code__)


def code_of_a_helper():
    inner = lambda x: x + 1
    return lambda b, h, q, kv: inner(kv) >= q, lambda: setattr(
        inner, "__code__", (lambda x: x + 4).__code__)


def item_of_a_list():
    widths = [2]
    return lambda b, h, q, kv: q - kv < widths[0], lambda: widths.append(
        widths.pop() + 3)


def item_of_a_nested_list():
    widths = ([2, {"left": [2]}],)
    return lambda b, h, q, kv: q - kv < widths[0][1]["left"][0], lambda: (
        widths[0][1]["left"].__setitem__(0, 5))


def list_of_functions():
    return lambda b, h, q, kv: HELPERS[0](kv) >= q, lambda: HELPERS.__setitem__(
        0, lambda x: x - 1)


def item_of_a_dictionary():
    return lambda b, h, q, kv: q - kv < SETTINGS["width"], lambda: SETTINGS.update(
        width=5)


def order_of_a_dictionary():
    names = {"a": 2, "b": 5}

    def mod(b, h, q, kv):
        for name in names:
            width = names[name]
        return q - kv < width

    return mod, lambda: names.update(a=names.pop("a"))


def attribute():
    settings = Settings()
    return lambda b, h, q, kv: q - kv < settings.width, lambda: setattr(
        settings, "width", 5)


def attribute_of_a_class():
    settings = Settings()
    return lambda b, h, q, kv: q - kv < settings.width, lambda: setattr(
        Settings, "width", 5)


def attribute_of_a_named_class():
    return lambda b, h, q, kv: q - kv < Settings.width, lambda: setattr(
        Settings, "width", 5)


def attribute_of_an_attribute():
    settings = types.SimpleNamespace(inner=types.SimpleNamespace(width=2))
    return lambda b, h, q, kv: q - kv < settings.inner.width, lambda: setattr(
        settings.inner, "width", 5)


def object_of_an_attribute():
    settings = types.SimpleNamespace(inner=types.SimpleNamespace(width=2))
    return lambda b, h, q, kv: q - kv < settings.inner.width, lambda: setattr(
        settings, "inner", types.SimpleNamespace(width=5))


def attribute_of_a_module():
    module = types.ModuleType("settings")
    module.width = 2
    return lambda b, h, q, kv: q - kv < module.width, lambda: setattr(
        module, "width", 5)


def attribute_by_way_of_a_local():
    settings = types.SimpleNamespace(shape=2)

    def mod(b, h, q, kv):
        found = settings
        return q - kv < found.shape

    return mod, lambda: setattr(settings, "shape", 5)


def attribute_in_a_helper():
    settings = types.SimpleNamespace(shape=2)

    def read(x):
        return x.shape

    return lambda b, h, q, kv: q - kv < read(settings), lambda: setattr(
        settings, "shape", 5)


def attribute_in_a_list():
    all = [types.SimpleNamespace(shape=2)]
    return lambda b, h, q, kv: q - kv < all[0].shape, lambda: setattr(
        all[0], "shape", 5)


def attribute_of_either():
    one, other = (types.SimpleNamespace(shape=n) for n in (2, 3))
    return lambda b, h, q, kv: q - kv < (one if WIDTH else other).shape, lambda: setattr(
        one, "shape", 5)


def attribute_of_a_function():
    mod = lambda b, h, q, kv: q - kv < helper.shape
    helper.shape = 2
    return mod, lambda: setattr(helper, "shape", 5)


def attribute_of_a_function_by_way_of_a_local():
    helper.shape = 2

    def mod(b, h, q, kv):
        found = helper
        return q - kv < found.shape

    return mod, lambda: setattr(helper, "shape", 5)


def attribute_of_a_tensor():
    table = torch.zeros(3, device=DEVICE)
    table.size = lambda at: 2
    return lambda b, h, q, kv: q - kv < table.size(0), lambda: setattr(
        table, "size", lambda at: 5)


def slot():
    slots = Slots()
    slots.width = 2
    return lambda b, h, q, kv: q - kv < slots.width, lambda: setattr(slots, "width", 5)


def field():
    holder = types.SimpleNamespace(pair=Pair(0, 2))
    return lambda b, h, q, kv: q - kv < holder.pair.high, lambda: setattr(
        holder, "pair", Pair(0, 5))


def property_of_an_object():
    settings = Settings()
    return lambda b, h, q, kv: q - kv < settings.computed, lambda: setattr(
        settings, "width", 5)


def method_of_a_class():
    return lambda b, h, q, kv: q - kv < Settings.of_class(), lambda: setattr(
        Settings, "width", 5)


def attribute_that_is_made_up():
    settings = Evasive()
    return lambda b, h, q, kv: q - kv < settings.width, lambda: setattr(
        settings, "number", 5)


def attribute_that_is_diverted():
    settings = Diverting()
    settings.__dict__["width"] = 1
    return lambda b, h, q, kv: q - kv < settings.width, lambda: setattr(
        Diverting, "__getattribute__", object.__getattribute__)


def bound_method():
    settings = Settings()
    return settings.near, lambda: setattr(settings, "width", 5)


def object_that_is_called():
    settings = Settings()
    return settings, lambda: setattr(settings, "width", 5)


def method_of_an_attribute():
    settings = Settings()
    return lambda b, h, q, kv: settings.indirect(b, h, q, kv), lambda: setattr(
        settings, "floor", 3)


def method_that_is_replaced():
    settings = Settings()
    return settings.indirect, lambda: setattr(
        Settings, "near", lambda self, b, h, q, kv: q > kv)


def method_hidden_by_an_attribute():
    settings = Settings()
    return settings.indirect, lambda: setattr(
        settings, "near", lambda b, h, q, kv: q > kv)


def other_object():
    """The same method, of another object: the mod is a cell of a mod."""
    one, other = Settings(), Settings()
    other.width = 5
    chosen = one.near

    def mod(b, h, q, kv):
        return chosen(b, h, q, kv)

    def change():
        nonlocal chosen
        chosen = other.near

    return mod, change


def partial():
    mod = functools.partial(lambda width, b, h, q, kv, more: q - kv < width + more,
                            2, more=0)
    return mod, lambda: mod.keywords.update(more=3)


def builtin():
    combine = min

    def mod(b, h, q, kv):
        return q - kv < combine(2, 5)

    def change():
        nonlocal combine
        combine = max

    return mod, change


def kind_of_a_number():
    """1 equals 1.0 and True."""
    number = 1

    def mod(b, h, q, kv):
        return q - kv < (2 if isinstance(number, int) else 5)

    def change():
        nonlocal number
        number = 1.0

    return mod, change


def truth():
    number = 1

    def mod(b, h, q, kv):
        return q - kv < (5 if number is True else 2)

    def change():
        nonlocal number
        number = True

    return mod, change


def sign_of_zero():
    zero = 0.0

    def mod(b, h, q, kv):
        return q - kv < 3 + math.copysign(2, zero)

    def change():
        nonlocal zero
        zero = -0.0

    return mod, change


def lifted_number():
    from fovea._values import Number
    number = Number(1)
    mod = lambda b, h, q, kv: q + number >= kv
    mod.plain = lambda b, h, q, kv: q + number.number >= kv
    return mod, lambda: setattr(number, "number", 3)


def lifted_numbers_that_were_one():
    """Each is an operand of its own, equal or not."""
    from fovea._values import Number
    one = other = Number(1)

    def mod(b, h, q, kv):
        return (q + one >= kv) & (q <= kv + other)

    mod.plain = lambda b, h, q, kv: (q + one.number >= kv) & (q <= kv + other.number)

    def change():
        nonlocal other
        other = Number(4)

    return mod, change


def function_in_a_function():
    width = 2

    def mod(b, h, q, kv):
        inner = lambda x: x + width
        return inner(kv) >= q

    def change():
        nonlocal width
        width = 5

    return mod, change


def number_in_a_tensor():
    flag = torch.zeros((), dtype=torch.int64, device=DEVICE)
    return lambda b, h, q, kv: q > kv if flag else q - kv < 3, lambda: flag.fill_(1)


def length_in_a_tensor():
    count = torch.ones((), dtype=torch.int64, device="cpu")

    def mod(b, h, q, kv):
        found = q == kv
        for at in range(count):
            found = found | (q == kv + at + 1)
        return found

    return mod, lambda: count.fill_(3)


def number_from_a_part_of_a_tensor():
    counts = torch.ones(2, dtype=torch.int64, device="cpu")
    return lambda b, h, q, kv: q - kv < int(counts[1]), lambda: counts.fill_(3)


def text_of_a_tensor():
    flag = torch.zeros((), dtype=torch.int64, device="cpu")
    return lambda b, h, q, kv: q > kv if "%d" % flag == "1" else q - kv < 3, lambda: (
        flag.fill_(1))


def square_root_of_a_tensor():
    square = torch.full((), 4.0, device="cpu")
    return lambda b, h, q, kv: q - kv < math.sqrt(square), lambda: square.fill_(25.0)


def sum_of_a_tensor():
    flags = torch.zeros(3, dtype=torch.int64, device=DEVICE)
    return lambda b, h, q, kv: q - kv < flags.sum(), lambda: flags.fill_(1)


def tensor_in_a_function_of_tensors():
    """Where a tensor of numbers decides which part of a traced one is taken."""
    ids = torch.arange(18, device=DEVICE).reshape(9, 2) % 5
    start = torch.zeros((), dtype=torch.int64, device=DEVICE)
    mod = lambda b, h, q, kv: ids[kv].narrow(0, start, 1).sum() < 3
    mod.plain = lambda b, h, q, kv: ids[kv, start] < 3
    return mod, lambda: start.fill_(1)


def tensor_in_an_operator():
    table = torch.zeros(3, dtype=torch.int64, device=DEVICE)
    return lambda b, h, q, kv: q - kv < operator.getitem(table, 1), lambda: (
        table.fill_(3))


def tensor_updated_in_place():
    count = torch.zeros((), dtype=torch.int64, device=DEVICE)

    def mod(b, h, q, kv):
        found = count
        found += 1
        return q - kv < found + 0 * kv

    return mod, lambda: None


def random_number():
    return lambda b, h, q, kv: q - kv < random.randint(1, 3), lambda: None


def list_that_is_used_up():
    widths = [5, 4, 3, 2]
    return lambda b, h, q, kv: q - kv < widths.pop(), lambda: None


def list_that_is_sorted():
    widths = [[5, 4], [3, 2]]

    def mod(b, h, q, kv):
        for found in widths:
            found.sort()
        return q - kv < widths[0][0]

    return mod, lambda: widths.insert(0, [1])


def list_that_grows():
    widths = [2]

    def mod(b, h, q, kv):
        found = widths
        found += [1]
        return q - kv < len(widths)

    return mod, lambda: None


def iterator():
    numbers = iter((2, 3, 4, 5))

    def mod(b, h, q, kv):
        for number in numbers:
            return q - kv < number

    return mod, lambda: None


def counter():
    count = 0

    def mod(b, h, q, kv):
        nonlocal count
        count += 1
        return q - kv < count

    return mod, lambda: None


def global_counter():
    def mod(b, h, q, kv):
        global WIDTH
        WIDTH = WIDTH + 1
        return q - kv < WIDTH

    return mod, lambda: None


def attribute_that_counts():
    settings = Settings()

    def mod(b, h, q, kv):
        settings.width = settings.width + 1
        return q - kv < settings.width

    return mod, lambda: None


def import_of_a_module():
    import sys
    module = sys.modules["fovea_settings"] = types.ModuleType("fovea_settings")
    module.width = 2

    def mod(b, h, q, kv):
        import fovea_settings
        return q - kv < fovea_settings.width

    return mod, lambda: setattr(module, "width", 5)


def name_in_globals():
    return lambda b, h, q, kv: q - kv < globals()["WIDTH"], lambda: set_global(
        "WIDTH", 5)


def getattr_of_an_object():
    settings = Settings()
    return lambda b, h, q, kv: q - kv < getattr(settings, "width"), lambda: setattr(
        settings, "width", 5)


READS = [
    attribute, attribute_by_way_of_a_local, attribute_in_a_helper, attribute_in_a_list,
    attribute_of_a_class, attribute_of_a_function,
    attribute_of_a_function_by_way_of_a_local, attribute_of_a_module,
    attribute_of_a_named_class, attribute_of_a_tensor, attribute_of_an_attribute,
    attribute_of_either, attribute_that_is_diverted, attribute_that_is_made_up,
    bound_method, builtin, cell_of_number, code, code_of_a_helper, default, field,
    function_in_a_function, getattr_of_an_object, global_behind_a_helper,
    global_function, global_function_of_the_same_code, global_in_front_of_a_builtin,
    global_number, import_of_a_module, item_of_a_dictionary, item_of_a_list,
    item_of_a_nested_list, keyword_default, kind_of_a_number, length_in_a_tensor,
    lifted_number, lifted_numbers_that_were_one, list_of_functions, list_that_is_sorted,
    method_hidden_by_an_attribute,
    method_of_a_class, method_of_an_attribute, method_that_is_replaced, name_in_globals,
    number_from_a_part_of_a_tensor, number_in_a_tensor, object_of_an_attribute,
    object_that_is_called, order_of_a_dictionary, other_object, partial,
    property_of_an_object, sign_of_zero, slot, square_root_of_a_tensor, sum_of_a_tensor,
    tensor_in_a_function_of_tensors, tensor_in_an_operator, text_of_a_tensor,
    truth,
]

#: Mods that do another thing at each call.
COUNTING = [attribute_that_counts, counter, global_counter, iterator, list_that_grows,
            list_that_is_used_up, random_number, tensor_updated_in_place]


def test_module(check):
    """A method of a module, whose parameters and buffers are tensors of any call."""
    module = Module().to(DEVICE)
    for _ in range(2):
        first = check(module.score)
        with torch.no_grad():
            module.bias += 1.5
            module.table *= 2.0
        assert not torch.equal(check(module.score), first)
        module.bias = torch.nn.Parameter(randn(9, seed=3))
        check(lambda *x: module.score(*x))
    assert check.traces == 2
    module.width = 3
    check(module.score)
    module.bias.requires_grad_(False)
    check(module.score)
    module.table = module.table.double()
    check(module.score)
    assert check.traces == 3
    # What hides a parameter.
    module.__dict__["bias"] = torch.zeros(9, device=DEVICE, dtype=torch.float64)
    check(module.score)
    assert check.traces == 1


@pytest.mark.parametrize("make", READS, ids=lambda make: make.__name__)
def test_a_change_is_seen(check, make):
    """Whatever a mod reads may change between two calls."""
    mod, change = make()
    first = check(mask_mod=mod)
    again = check(mask_mod=mod)
    assert torch.equal(first, again)
    change()
    assert not torch.equal(check(mask_mod=mod), first)


@pytest.mark.parametrize("make", COUNTING, ids=lambda make: make.__name__)
def test_effects_occur_at_every_call(check, make):
    mod, _ = make()
    for _ in range(3):
        fovea.flex_attention(*check.inputs, mask_mod=mod)
    assert check.traces == 3

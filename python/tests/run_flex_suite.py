# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs tests that others wrote for FlexAttention, with Fovea in its place.

    python run_flex_suite.py [--set NAME=VALUE]... FILE... [-- OPTION OF PYTEST...]

FILE is a test of a checkout, such as PyTorch's test/inductor/test_flex_attention.py
or a test of meta-pytorch/attention-gym (whose package must be importable). Such tests
compare `torch.compile(flex_attention)` with the eager one. Here the first is
`fovea.flex_attention`; the second stays PyTorch's, and is its reference. Without a
GPU, "cuda" in a copy of the file becomes "cpu"; `--set S=256` changes a constant that
it assigns at the top, such as a length that takes a processor long.
"""

import argparse
import functools
import pathlib
import re
import sys
import tempfile

import pytest
import torch
from torch.nn.attention import flex_attention as module
from torch.nn.attention.experimental import _paged_attention

import fovea
from fovea import _explain

_compile = torch.compile
_theirs = module.flex_attention
_their_assign = _paged_attention.PagedAttention.assign


def _replace(function):
    """Returns what a test compiles, with Fovea's attention in it."""
    if function is _theirs:
        return fovea.flex_attention
    if isinstance(function, functools.partial):
        return functools.partial(_replace(function.func), *function.args,
                                 **function.keywords)
    scope = getattr(function, "__globals__", {})

    @functools.wraps(function)
    def call(*args, **kwargs):
        names = [name for name, value in scope.items() if value is _theirs]
        scope.update(dict.fromkeys(names, fovea.flex_attention))
        try:
            return function(*args, **kwargs)
        finally:
            scope.update(dict.fromkeys(names, _theirs))

    return call


def _fake_compile(model=None, **options):
    if model is None:
        return functools.partial(_fake_compile, **options)
    if getattr(model, "__module__", None) == module.__name__ and (
            model is not _theirs):
        # The reference itself.
        return _compile(model, **options)
    return _replace(model)


def _assign(cache, batch_idx, input_pos, *values):
    """Gives each sequence the positions that tests of PyTorch 2.6 have for all."""
    if input_pos.dim() == 1:
        input_pos = input_pos.expand(len(batch_idx), -1)
    return _their_assign(cache, batch_idx, input_pos, *values)


# This module is pytest's plugin, so that the processes of pytest-xdist (-n) have it.


def pytest_sessionstart():
    """Puts Fovea in place."""
    torch.compile = _fake_compile
    _paged_attention.PagedAttention.assign = _assign
    # The reference has gradients on the CPU too, though it refuses them.
    module._validate_device = lambda *_: None
    if not torch.cuda.is_available():
        torch.cuda.get_device_capability = lambda *_: (9, 0)
        cache = _paged_attention.PagedAttention.__init__
        cache.__defaults__ = tuple(
            "cpu" if default == "cuda" else default
            for default in cache.__defaults__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _explain.recording() as kernels:
        try:
            return (yield)
        finally:
            item.user_properties.append(("used", bool(kernels)))


def pytest_terminal_summary(terminalreporter):
    """Counts the tests that ran Fovea, and passed or failed."""
    used = sum(("used", True) in report.user_properties
               for name in ("passed", "failed")
               for report in terminalreporter.getreports(name)
               if report.when == "call")
    terminalreporter.write_line(f"{used} tests ran Fovea's kernels")


def _prepare(source, constants):
    """Returns the text of a test as it is run."""
    for constant in constants:
        name, _, value = constant.partition("=")
        source, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", source,
                                flags=re.M)
        if not count:
            sys.exit(f"--set {constant}: no test assigns {name}")
    if not torch.cuda.is_available():
        # Conditions for skipping see a function, which is true.
        for old, new in (('"cuda"', '"cpu"'), ('"cuda:0"', '"cpu"'),
                         (".cuda()", ".cpu()"),
                         ("cuda.is_available()", "cuda.is_available")):
            source = source.replace(old, new)
    return source


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--set", action="append", default=[],
                        metavar="NAME=VALUE", dest="constants")
    options = parser.parse_args(arguments[:split])
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for path in options.files:
            copy = pathlib.Path(folder) / path.name
            copy.write_text(_prepare(path.read_text(), options.constants))
            copies.append(str(copy))
        sys.exit(pytest.main(["-p", "no:cacheprovider", "-p", "run_flex_suite", "-q",
                              *copies, *arguments[split + 1:]]))


if __name__ == "__main__":
    main()

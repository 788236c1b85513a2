# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs JAX's tests of `jax.nn.dot_product_attention`, with Fovea in its place.

    python run_jax_suite.py FILE [OPTION OF PYTEST...]

FILE is tests/nn_test.py of a checkout of JAX. Its tests compare the function with
`implementation=None`, which stays JAX's, with the same function with "xla", or given
none, which is `fovea.jax.dot_product_attention` here. On a GPU those that would take
cuDNN take "xla", too.
"""

import sys

import jax
import pytest
from jax._src import test_util

import fovea.jax

_theirs = jax.nn.dot_product_attention


class _Plugin:
    """Puts Fovea in place, and counts the tests that call it."""

    def __init__(self):
        self.calls = self.used = 0

    def attend(self, *args, implementation="xla", **kwargs):
        if implementation != "xla":
            return _theirs(*args, implementation=implementation, **kwargs)
        self.calls += 1
        return fovea.jax.dot_product_attention(*args, **kwargs)

    def pytest_sessionstart(self):
        test_util.is_device_cuda = lambda: False
        jax.nn.dot_product_attention = self.attend

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        before = self.calls
        try:
            return (yield)
        finally:
            self.used += self.calls > before

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(f"{self.used} tests called Fovea")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", "-k",
                          "DotProductAttention", *sys.argv[1:]], [_Plugin()]))

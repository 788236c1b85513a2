# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Dynamo has to know of Fovea's functions. Importing Dynamo takes seconds, which a
process that never calls `torch.compile` does not spend: its decorators are applied when
something else has imported it."""

import functools
import importlib.abc
import importlib.util
import sys

#: Functions to disable, by their places: a module's name, and the qualified name.
_waiting = []


def disable(function):
    """As `torch._dynamo.disable`: Dynamo traces neither the function, which is one of
    a module or of a class, nor what it calls."""
    if "torch._dynamo" in sys.modules:
        return sys.modules["torch._dynamo"].disable(function)
    _waiting.append((function.__module__, function.__qualname__))
    return function


def assume_constant_result(function):
    """As `torch._dynamo.assume_constant_result`, which sets this attribute: Dynamo calls
    the function while it traces, and takes the result for a constant."""
    function._dynamo_marked_constant = True
    return function


def _disable_waiting(dynamo):
    for module, name in _waiting:
        *path, name = name.split(".")
        owner = functools.reduce(getattr, path, sys.modules[module])
        setattr(owner, name, dynamo.disable(vars(owner)[name]))
    _waiting.clear()


class _Finder(importlib.abc.MetaPathFinder):
    """Sees that Dynamo is imported, and leaves the work to the finders behind it."""

    def find_spec(self, name, path, target=None):
        if name != "torch._dynamo":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_disable(module):
            execute(module)
            _disable_waiting(module)

        spec.loader.exec_module = execute_and_disable
        return spec


if "torch._dynamo" not in sys.modules:
    sys.meta_path.insert(0, _Finder())

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looking inside: the kernels that a call has run."""

import contextlib
import html
import threading

_lock = threading.Lock()
_open = []
_followers = []


def follow(function):
    """Calls a function with True when kernels begin to be recorded, and with False
    when they no longer are."""
    with _lock:
        _followers.append(function)
        if _open:
            function(True)


class Kernel:
    """A compiled function that a call has run, and its operands.

    It has the attributes of a `fovea.Function`: `mlir(level)`, `asm`,
    `ptx`, `cubin`, `resources`, `remarks`, `operands`, `results`.
    """

    def __init__(self, kind, function, operands):
        #: "forward" or "backward".
        self.kind = kind
        #: The `fovea.Function`.
        self.function = function
        self._operands = operands

    def __getattr__(self, name):
        return getattr(self.function, name)

    def report(self):
        """Runs every strategy on the operands of the call and compares them, as
        a `fovea.Report`."""
        return self.function.report(*self._get_operands())

    def tune(self, candidates=None):
        """Measures schedules on the operands of the call; see
        `fovea.Function.tune`."""
        return self.function.tune(*self._get_operands(), candidates=candidates)

    def _get_operands(self):
        # Measurements take operands in host memory.
        return [x.detach().cpu() if hasattr(x, "detach") else x
                for x in self._operands]

    def __repr__(self):
        return f"<{self.kind}: {self.function!r}>"

    def _repr_html_(self):
        return write_html(self.function, repr(self))


class Explanation:
    """A record of what a call has run. The kernels of the forward pass come first."""

    def __init__(self, result, kernels):
        #: The result of the call.
        self.result = result
        #: A `Kernel` for each kernel that ran, in order, each once.
        self.kernels = kernels

    def _first(self):
        if not self.kernels:
            from ._library import Error
            raise Error("the call ran no kernel of Fovea's")
        return self.kernels[0]

    def mlir(self, level="fused"):
        """The first kernel's text at a level; see `fovea.Function.mlir`."""
        return self._first().mlir(level)

    def report(self):
        """Compares the first kernel's strategies; see
        `fovea.Function.report`."""
        return self._first().report()

    def tune(self, candidates=None):
        """Measures the first kernel's schedules; see `fovea.Function.tune`."""
        return self._first().tune(candidates)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._first(), name)

    def __repr__(self):
        return "\n".join(map(repr, self.kernels)) or "<no kernels>"

    def _repr_html_(self):
        return "".join(kernel._repr_html_() for kernel in self.kernels) or (
            "<p>no kernels</p>")


def write_html(function, title):
    """Returns a function as a notebook shows it: its remarks, and below what can be
    opened its graph and its text for the machine's threads and vectors."""
    parts = [f"<p><code>{html.escape(title)}</code></p>"]
    parts += [f"<p>{html.escape(remark)}</p>" for remark in function.remarks]
    parts += [f"<details><summary>{level}</summary><pre>"
              f"{html.escape(function.mlir(level))}</pre></details>"
              for level in ("fused", "tiled")]
    return f"<div>{''.join(parts)}</div>"


def record(kind, function, operands):
    """Notes that a kernel runs, where somebody asks."""
    for kernels in _open:
        if all(kernel.function is not function for kernel in kernels):
            kernels.append(Kernel(kind, function, operands))


def explain(function, *args, **kwargs):
    """Calls a function and returns what Fovea ran for it.

        found = fovea.explain(fovea.flex_attention, q, k, v, score_mod)
        print(found.mlir("tiled"))      # any level; found.ptx on a GPU
        print(found.report())           # strategies, times, memory
        found.result                    # what the call returned

    `function` may be any: a model, a training step, a `fovea.Function`. Kernels of the backward
    pass are found if it calls `backward()`. Calls from other threads at the
    same time are found as well.
    """
    with recording() as kernels:
        if hasattr(function, "mlir"):
            # A `fovea.Function` itself.
            record("forward", function, args)
        result = function(*args, **kwargs)
    return Explanation(result, kernels)


@contextlib.contextmanager
def recording():
    """Gives the list of the kernels that run in its block, each once."""
    kernels = []
    with _lock:
        _open.append(kernels)
        if len(_open) == 1:
            for function in _followers:
                function(True)
    try:
        yield kernels
    finally:
        with _lock:
            _open[:] = [other for other in _open if other is not kernels]
            if not _open:
                for function in _followers:
                    function(False)

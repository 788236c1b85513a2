# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The line that says what takes seconds."""

import io
import threading
import types

import pytest

import fovea
from fovea import _progress


class Terminal(io.StringIO):

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        self.written.set()
        return super().write(text)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    # pytest exchanges that of sys before each test.
    monkeypatch.setattr(_progress, "sys", types.SimpleNamespace(stderr=Terminal()))
    return _progress.sys.stderr


def test_a_line_comes_and_goes(terminal):
    with pytest.raises(KeyError):
        with _progress.show("working"):
            assert terminal.written.wait(10)
            raise KeyError
    text = terminal.getvalue()
    assert text.startswith("\rfovea: working, 0 s")
    assert text.endswith(f"\r{' ' * len('fovea: working, 0 s')}\r")


def test_one_line_at_a_time(terminal):
    with _progress.show("outer"):
        assert terminal.written.wait(10)
        with _progress.show("inner"):
            pass
    assert "outer" in terminal.getvalue() and "inner" not in terminal.getvalue()


def test_nothing_is_written_of_what_is_short(terminal, monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 100.0)
    with _progress.show("working"):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("how", ["file", "closed", "none", "off"])
def test_nobody_reads(terminal, monkeypatch, how):
    stream = {"file": io.StringIO(), "closed": io.StringIO(), "none": None,
              "off": terminal}[how]
    if how == "closed":
        stream.close()
    if how == "off":
        monkeypatch.setenv("FOVEA_PROGRESS", "0")
    _progress.sys.stderr = stream
    before = threading.active_count()
    with _progress.show("working"):
        assert threading.active_count() == before


def test_what_takes_seconds(terminal, monkeypatch):
    """Compilations and reports say what they are."""
    shown = []

    def show(what):
        shown.append(what)
        return _progress.contextlib.nullcontext()

    monkeypatch.setattr(fovea, "show", show)
    function = fovea.compile("""
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}""")
    function.report()
    assert shown == ["compiling for host", "measuring @double by every strategy"]

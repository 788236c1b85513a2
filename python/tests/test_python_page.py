# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/python.md runs, and prints what it says."""

import fnmatch
import pathlib
import re
from importlib.util import find_spec

import pytest

pytest.importorskip("torch", "2.11")

import fovea.torch
import torch
from mods import compile_eagerly

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


def test_page(capsys, tmp_path, monkeypatch):
    # test_torch_backend.py runs inductor, which takes its time.
    monkeypatch.setattr("fovea.torch.compile_fx", compile_eagerly)
    # The page sets it.
    monkeypatch.setattr(torch._inductor.config, "pre_grad_custom_pass", None)
    if not PAGE.exists():
        pytest.fail(f"there is no {PAGE}")
    blocks = re.findall(r"```python\n(.*?)```\n(?:```(?:text|mlir)\n(.*?)```)?",
                        PAGE.read_text(), re.S)
    assert len(blocks) == PAGE.read_text().count("```python") >= 8
    scope = {}
    for number, (code, expected) in enumerate(blocks):
        if any(word in code and not find_spec(name) for word, name in (
                ("transformers", "transformers"), ("jax", "jax"),
                ("plot_", "matplotlib"),
                ("from_torch", "torch_mlir"))):
            continue
        # Errors name the file.
        file = tmp_path / f"block{number}.py"
        file.write_text(code)
        exec(compile(code, str(file), "exec"), scope)
        printed = capsys.readouterr().out
        if expected:
            pattern = re.sub(r"[\[\]?*]", "[\\g<0>]", expected.strip())
            assert fnmatch.fnmatchcase(printed.strip(), pattern.replace(
                "...", "*") + "*"), printed

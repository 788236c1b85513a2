# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/flash-attention.md and its example run, and print what they say."""

import fnmatch
import pathlib
import re
import runpy

import pytest

pytest.importorskip("torch", "2.11")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/flash-attention.md"


def test_page(capsys):
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?",
                        PAGE.read_text(), re.S)
    assert len(blocks) == PAGE.read_text().count("```python") >= 6
    scope = {}
    for code, expected in blocks:
        exec(compile(code, str(PAGE), "exec"), scope)
        printed = capsys.readouterr().out
        if expected:
            pattern = re.sub(r"[\[\]?*]", "[\\g<0>]", expected.strip())
            assert fnmatch.fnmatchcase(printed.strip(),
                                       pattern.replace("...", "*"))


def test_example(capsys):
    pytest.importorskip("transformers", "5")
    runpy.run_path(str(ROOT / "examples/paged_decode.py"), run_name="__main__")
    assert "96 tokens of 4 prompts are those of eager attention" in (
        capsys.readouterr().out)

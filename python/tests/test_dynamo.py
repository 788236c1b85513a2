# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dynamo is imported by those who use it, and then knows what it must not trace."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

EAGER = """
import sys, torch, fovea
assert "torch._dynamo" not in sys.modules, "Fovea imports Dynamo"
q = torch.randn(1, 2, 8, 16)
fovea.attention(q, q, q, causal=True)
mods = dict(score_mod=lambda s, b, h, i, j: s + i, mask_mod=lambda b, h, i, j: i >= j)
expected = fovea.flex_attention(q, q, q, **mods)
assert "torch._dynamo" not in sys.modules, "a call imports Dynamo"
"""

COMPILE = EAGER + """
attend = lambda q: fovea.flex_attention(q * 1, q, q, **mods) * 1
torch.testing.assert_close(torch.compile(attend, backend="eager")(q), expected)
import fovea._flash_options, fovea._flex
for function in (fovea._flex._attend_now, fovea._flex._attend_outside,
                 fovea._flash_options.Options._trace_rows):
    assert function._torchdynamo_disable, function
breaks = torch._dynamo.explain(attend)(q).break_reasons
assert any("_attend_outside" in str(reason.reason) for reason in breaks), breaks
"""


@pytest.mark.parametrize("program", [EAGER, COMPILE], ids=["eager", "compiled"])
def test_process(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True,
                          text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr

"""Writes the functions of an attention, and of its gradients, whose results have
heads behind positions in memory, for `orders.py FOLDER`."""

import pathlib
import sys

import fovea
from fovea._orders import swap

ROWS = """
!query = tensor<?x4x?x64xf16>
!output = tensor<?x4x?x64xf16>
func.func @attention(%query: !query, %key: !query, %value: !query) -> (!output) {
  %output = attn.attention %query, %key, %value scale(0.125)
    : !query, !query, !query -> !output
  return %output : !output
}
"""

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
(folder / "forward.mlir").write_text(swap(ROWS, "attention", [0]))
lse = ROWS.replace("!output =", "!lse = tensor<?x4x?xf64>\n!output =").replace(
    "(!output) {", "(!output, !lse) {").replace("%output", "%output, %lse").replace(
    ": !output\n}", ": !output, !lse\n}").replace("-> !output", "-> !output, !lse")
gradients = fovea.differentiate(lse, partition=True, recompute="always",
                                target="sm_90a")
gradients = swap(gradients, "attention_forward", [0])
(folder / "gradients.mlir").write_text(swap(gradients, "attention_backward",
                                            [0, 1, 2]))

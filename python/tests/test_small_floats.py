# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of 8 bits, which are bytes where they cross."""

import numpy as np
import pytest

import fovea

torch = pytest.importorskip("torch")

TEXT = """
#map = affine_map<(i) -> (i)>
func.func @widen(%x: tensor<?xi8>) -> (tensor<?xbf16>, tensor<?xf16>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi8>
  %e = tensor.empty(%n) : tensor<?xbf16>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<?xi8>) outs(%e : tensor<?xbf16>) {
  ^bb0(%a: i8, %o: bf16):
    %s = arith.bitcast %a : i8 to f8E4M3FN
    %z = arith.extf %s : f8E4M3FN to bf16
    linalg.yield %z : bf16
  } -> tensor<?xbf16>
  %b = arith.bitcast %x : tensor<?xi8> to tensor<?xf8E4M3FN>
  %h = arith.extf %b : tensor<?xf8E4M3FN> to tensor<?xf16>
  %w = arith.extf %b : tensor<?xf8E4M3FN> to tensor<?xf32>
  return %r, %h, %w : tensor<?xbf16>, tensor<?xf16>, tensor<?xf32>
}
"""


@pytest.mark.parametrize("arch", ["native", "generic"])
def test_every_byte(arch):
    """Zeros of both signs, subnormals, the largest number, and NaN."""
    bits = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    wanted = bits.view(torch.float8_e4m3fn).float().numpy()
    for found in fovea.compile(TEXT, arch=arch)(bits):
        found = found.float().numpy()
        np.testing.assert_array_equal(found, wanted)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]),
                                      np.signbit(wanted[numbers]))

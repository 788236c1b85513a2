"""Writes the operands of files.test, or checks its results."""

import sys

import numpy as np

action, folder = sys.argv[1:]
rng = np.random.default_rng(0)
a = rng.standard_normal((3, 5)).astype(np.float32)
b = rng.standard_normal((3, 5)).astype(np.float32)
c = np.arange(15, dtype=np.int32).reshape(3, 5)
bits = np.array([0x3f80, 0x4000, 0xc040, 0x0000], np.uint16)

if action == "write":
    np.save(f"{folder}/a.npy", a)
    np.save(f"{folder}/b.npy", np.asfortranarray(b))
    np.save(f"{folder}/c.npy", c.astype(">i4"))
    np.save(f"{folder}/flat.npy", a.ravel())
    np.save(f"{folder}/tall.npy", np.zeros((4, 5), np.float32))
    np.save(f"{folder}/bits.npy", bits)
elif action == "check":
    expected = (a + b) * (c + 7).astype(np.float32)
    np.testing.assert_array_equal(np.load(f"{folder}/out.npy"), expected)
else:
    # Twice a number: one more in the exponent.
    expected = np.where(bits == 0, 0, bits + 0x80).astype(np.uint16)
    np.testing.assert_array_equal(np.load(f"{folder}/bits_out.npy"), expected)

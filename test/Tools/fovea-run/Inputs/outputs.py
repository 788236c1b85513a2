"""Writes the operand of outputs.test, or checks that a file, or what a command
writes to a FIFO, is that operand."""

import io
import subprocess
import sys

import numpy as np

action, *rest = sys.argv[1:]
x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
if action == "write":
    with open(f"{rest[0]}/in.npy", "wb") as file:
        np.lib.format.write_array(file, x, version=(1, 0))
elif action == "check":
    np.testing.assert_array_equal(np.load(rest[0]), x)
else:
    with subprocess.Popen(rest, stdout=subprocess.DEVNULL) as process:
        with open("fifo", "rb") as fifo:
            np.testing.assert_array_equal(np.load(io.BytesIO(fifo.read())), x)
        assert process.wait() == 0

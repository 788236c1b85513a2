"""What writes poisoned operands beside clean ones also compares their results."""

import pathlib
import sys

import numpy as np


def run(write):
    """Runs a script: `write FOLDER` calls the function; `compare CLEAN OTHER...`
    checks that results are finite and the same, bit by bit."""
    command, *arguments = sys.argv[1:]
    if command == "write":
        write(pathlib.Path(arguments[0]))
    else:
        compare(arguments)


def compare(names):
    clean, *others = (np.load(name) for name in names)
    assert np.isfinite(clean).all(), f"{names[0]} is not finite"
    for name, other in zip(names[1:], others):
        assert np.array_equal(clean, other), f"{name} differs from {names[0]}"

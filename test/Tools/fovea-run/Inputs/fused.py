"""Prints the fused level of a file as Python compiles it for a target."""
import sys

import fovea

with open(sys.argv[1]) as file:
    print(fovea.compile(file.read(), target=sys.argv[2]).mlir("fused"))

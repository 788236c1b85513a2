# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A differential fuzzer of the whole system.

`generate` makes a random graph (`graph`, `expressions`), which is printed as
MLIR for the compiler and computed by PyTorch in float64 for the reference, whose
autograd gives the gradients. `approx` and the `track` methods follow the error
that each step may have, which gives the bound of each element of each result;
nothing in it is tuned. `check` compiles, runs and compares; `pool` does so in
processes that may crash or hang; `shrink` makes failures small; `main` is the
command line of `scripts/fuzz`.
"""

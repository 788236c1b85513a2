# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole functions of PyTorch and of JAX, as linalg, compiled by Fovea."""

import re

from . import compile
from ._library import Error

#: From StableHLO to linalg, by passes that jaxlib has.
_FROM_STABLEHLO = ("builtin.module(inline,symbol-dce,"
                   "func.func(chlo-legalize-to-stablehlo),"
                   "stablehlo-legalize-to-linalg,canonicalize,cse)")


#: Operations from which linalg is made.
_OTHERS = re.compile(
    r'^ *(?:%[^=]* = )?"?'
    r"((?:stablehlo|chlo|torch|torch_c|tm_tensor)\.(?!return)[\w.]+)", re.M)


def from_torch(function, *examples, target="host", **options):
    """Compiles a function or a module of PyTorch, in which attention is found
    and fused, by torch-mlir (`pip install torch-mlir`).

        attend = fovea.from_torch(model, q, k, v)
        output = attend(q, k, v)
        print(attend.mlir("fused"))    # what was fused

    examples: a tensor for each argument, on the CPU, of the types and shapes
        that calls will have. Parameters of a module become constants.
    target, options: those of `fovea.compile`.

    Returns a `fovea.Function` of the arguments, without gradients; its
    `remarks` say what was not fused, and why. Raises `fovea.Error` where
    torch-mlir is missing, or leaves what Fovea does not compile; torch-mlir
    raises its own errors.
    """
    try:
        from torch_mlir import fx
    except ImportError:
        raise Error("from_torch needs torch-mlir: pip install torch-mlir"
                    ) from None
    import torch

    module = function
    if not isinstance(function, torch.nn.Module):
        module = torch.nn.Module()
        module.forward = function
    graph = fx.export_and_import(
        module, *examples, output_type="linalg-on-tensors", func_name="main")
    return _compile("from_torch", str(graph), target, options)


def from_jax(function, *shapes, target="host", **options):
    """Compiles a function of JAX, in which attention is found and fused.

        shape = jax.ShapeDtypeStruct((2, 300, 8, 64), "float32")
        attend = fovea.from_jax(jax.nn.dot_product_attention, shape, shape, shape)
        output = attend(q, k, v)       # NumPy arrays
        print(attend.mlir("fused"))    # what was fused

    shapes: an array or a `jax.ShapeDtypeStruct` for each argument, or a tree of
        them. Sizes are static.
    target, options: those of `fovea.compile`.

    Returns a `fovea.Function` of the leaves of the arguments, in order, without
    gradients; its results are the leaves of the function's, and its `remarks`
    say what was not fused, and why. Raises `fovea.Error` for what the passes of
    jaxlib or Fovea cannot convert. To call Fovea from within JAX, use `fovea.jax`.
    """
    import jax
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir.passmanager import PassManager

    stablehlo.register_stablehlo_passes()
    lowered = jax.jit(function, keep_unused=True).lower(*shapes)
    with mlir.make_ir_context():
        module = ir.Module.parse(lowered.as_text())
        try:
            PassManager.parse(_FROM_STABLEHLO).run(module.operation)
        except ir.MLIRError as error:
            raise Error(f"from_jax: StableHLO that jaxlib cannot convert to "
                        f"linalg: {error}") from None
        text = str(module)
    return _compile("from_jax", text, target, options)


def _compile(name, text, target, options):
    """Compiles linalg, in which no operation of another road may be left."""
    left = sorted({match[1] for match in _OTHERS.finditer(text)})
    if left:
        raise Error(f"{name}: no linalg was made of {', '.join(left)}")
    return compile(text, target, **options)

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that PyTorch differentiates, by Fovea's own backward pass."""

import re
import sys

from ._library import Error

_PASSED_ON = re.compile(r"(result|saved|cotangent)(\d+)")


class Differentiable:
    """A function of PyTorch tensors, and its gradients for autograd. Operands
    that are numbers are constants."""

    def __init__(self, forward, backward):
        #: `@f_forward(operands) -> (results, saved)`, a `Function`.
        self.forward = forward
        #: `@f_backward(operands, results, saved, cotangents) -> gradients`.
        self.backward = backward
        self._call = None
        self.name = forward.name.removesuffix("_forward")
        self.operands = forward.operands
        names = {operand.name or f"arg{index}": index
                 for index, operand in enumerate(forward.operands)}
        for name in names:
            if _PASSED_ON.fullmatch(name):
                raise Error(f"operand {names[name]} (%{name}) of @{self.name}: "
                            "the name is one of those that the backward pass "
                            "uses; expected another")
        #: The source of each operand of the backward pass: its kind ("operand",
        #: "result", "saved" or "cotangent") and its number.
        self.sources = []
        for operand in backward.operands:
            match = _PASSED_ON.fullmatch(operand.name)
            if match:
                self.sources.append((match[1], int(match[2])))
            else:
                self.sources.append(("operand", names[operand.name]))
        saved = sum(kind == "saved" for kind, _ in self.sources)
        self.results = forward.results[:len(forward.results) - saved]
        #: Operands that are given a gradient, in order.
        self.variables = [
            index for index, operand in enumerate(forward.operands)
            if not operand.is_scalar
            and operand.dtype in ("f16", "bf16", "f32", "f64")]

    def __call__(self, *operands):
        if self._call is None:
            self._call = self._make_call()
        if len(operands) != len(self.operands):
            raise Error(f"@{self.name}: expected {len(self.operands)} operands, "
                        f"got {len(operands)}")
        results = self._call.apply(*operands)
        return results[0] if len(results) == 1 else results

    def _make_call(self):
        torch = sys.modules.get("torch")
        if torch is None:
            raise Error(f"@{self.name}: expected PyTorch tensors, but PyTorch "
                        "is not imported")
        owner = self

        class Call(torch.autograd.Function):

            @staticmethod
            def forward(ctx, *operands):
                results = owner.forward(*operands)
                if not isinstance(results, tuple):
                    results = (results,)
                count = len(owner.results)
                kept = {"operand": operands, "result": results[:count],
                        "saved": results[count:]}
                # Tensors go through autograd, which finds changes in place.
                tensors, ctx.numbers = [], []
                for kind, index in owner.sources:
                    value = None if kind == "cotangent" else kept[kind][index]
                    is_tensor = isinstance(value, torch.Tensor)
                    tensors.append(value if is_tensor else None)
                    ctx.numbers.append(None if is_tensor else value)
                ctx.save_for_backward(*tensors)
                ctx.mark_non_differentiable(*[
                    result for result in results[:count]
                    if not result.is_floating_point()])
                return results[:count]

            @staticmethod
            def backward(ctx, *cotangents):
                # The work that this avoids takes longer than finding that it is
                # not needed.
                if torch.is_grad_enabled():
                    return backward_once(ctx, *cotangents)
                return owner._find_gradients(ctx, cotangents)

        @torch.autograd.function.once_differentiable
        def backward_once(ctx, *cotangents):
            return owner._find_gradients(ctx, cotangents)

        return Call

    def _find_gradients(self, ctx, cotangents):
        """Computes gradients of all operands; none of theirs are requested."""
        values = []
        for (kind, index), tensor, number in zip(
                self.sources, ctx.saved_tensors, ctx.numbers):
            if kind == "cotangent":
                values.append(cotangents[index])
            else:
                values.append(number if tensor is None else tensor)
        gradients = self.backward(*values)
        if not isinstance(gradients, tuple):
            gradients = (gradients,)
        results = [None] * len(self.operands)
        for index, gradient in zip(self.variables, gradients):
            results[index] = gradient
        return tuple(results)

    def __repr__(self):
        operands = ", ".join(map(str, self.operands))
        results = ", ".join(map(str, self.results))
        return (f"<fovea.Differentiable @{self.name}({operands}) -> "
                f"({results})>")

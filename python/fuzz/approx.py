# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running error analysis: numbers with a bound of their error.

An `Approx` is what a computation in exact arithmetic gives (`value`, which
float64 stands for) and a bound of how far a computation with rounding may be
from it (`error`), element by element. Each operation adds

- what it makes of its operands' errors: of a product |a| eb + |b| ea + ea eb, of a
  function the largest |f'| nearby times the error;
- its own rounding: u |result| for a correctly rounded operation with unit
  roundoff u, and `FUNCTION` units for functions, which machines compute to two
  to four units in the last place (an ulp is up to 2 u);
- a sum of n terms in any order: gamma_n = n u / (1 - n u), times the sum of the
  terms' magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms",
  chapter 4);
- what is stored in a type whose largest number it may exceed is not known;
- what a result that is too small for a normal number loses: fl(a op b) =
  (a op b)(1 + d) + h with |d| <= u and |h| <= `least` (the same, chapter 2). h is
  absolute, and what follows may multiply it: two small factors whose product is 0
  give 0 with a large third. A sum of n products has n of them.

The reference is rounded as well, as float64 is. So `Format.unit` has 2^-53 added,
which matters in f64 only.
"""

import dataclasses
import math

import torch

#: Units of rounding of a function (exp, tanh, ...): four ulps.
FUNCTION = 8
#: Units of a quotient or a square root: GPUs have them to two ulps.
QUOTIENT = 4

TORCH = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
         "bf16": torch.bfloat16}

#: Unit roundoff, and half of the least number, by element type. f32 and bf16
#: flush what is not normal on GPUs.
_UNITS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
_LEAST = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-25,
          "bf16": 2.0**-126}
LARGEST = {name: torch.finfo(dtype).max for name, dtype in TORCH.items()}


def unit(dtype):
    """The unit of a rounding to `dtype`, with the reference's own."""
    return _UNITS[dtype] + _UNITS["f64"]


def least(dtype):
    return _LEAST[dtype]


def lost(u):
    """What an operation with unit roundoff u may lose where its result is not
    normal: `least` of the type that has this unit. Exact ones lose nothing."""
    return _LOST[u]


_LOST = {0: 0.0, **{unit(name): least(name) for name in _UNITS}}


def gamma(n, u):
    """The relative error of a sum of n terms; 1 where nothing is left."""
    return n * u / (1 - n * u) if n * u < 0.5 else 1.0


def wider(*dtypes):
    """The accumulation type."""
    return "f64" if "f64" in dtypes else "f32"


@dataclasses.dataclass
class Approx:
    value: torch.Tensor
    error: torch.Tensor

    def __post_init__(self):
        # Zero times a number that may be anything may be anything.
        self.error = self.error.nan_to_num(math.inf, math.inf)

    @staticmethod
    def exact(value):
        value = torch.as_tensor(value, dtype=torch.float64)
        return Approx(value, torch.zeros_like(value))

    @property
    def shape(self):
        return self.value.shape

    def map(self, function):
        """A change of shape or place."""
        return Approx(function(self.value), function(self.error))

    def round(self, dtype):
        return Approx(self.value, self.error + unit(dtype) * self.value.abs()
                      + least(dtype))

    def store(self, dtype):
        """As an element of a tensor. One that may be beyond the largest number may
        become infinite, or be that number, and then anything comes of it. (Scores
        may not be what is stored: what hides one is near the largest.)"""
        over = self.value.abs() + self.error > LARGEST[dtype]
        stored = self.round(dtype)
        stored.error = torch.where(over & self.value.isfinite(), math.inf,
                                   stored.error)
        return stored


def expand(a, shape):
    return a.map(lambda x: x.expand(shape))


def add(a, b, u, sign=1):
    value = a.value + sign * b.value
    return Approx(value, a.error + b.error
                  + u * (value.abs() + a.error + b.error) + lost(u))


def sub(a, b, u):
    return add(a, b, u, -1)


def mul(a, b, u):
    value = a.value * b.value
    error = (a.value.abs() * b.error + b.value.abs() * a.error
             + a.error * b.error)
    return Approx(value, error + u * (value.abs() + error) + lost(u))


def times(a, factor):
    """Multiplies by a number that is exact, without rounding."""
    return Approx(a.value * factor, a.error * abs(factor))


def divide(a, b, u):
    """Divides; if b may be 0 within its error, the result may be anything."""
    size = b.value.abs() - b.error
    value = a.value / b.value
    error = torch.where(
        size > 0, (a.error + value.abs() * b.error) / size.clamp_min(1e-300),
        math.inf)
    return Approx(value, error + QUOTIENT * u * value.abs() + lost(u))


def total(a, dims, u, extra=0):
    """The sum over dimensions, in any order."""
    if not dims:
        return a
    n = math.prod(a.shape[d] for d in dims) + extra
    value = a.value.sum(dims)
    error = a.error.sum(dims)
    return Approx(value, error + gamma(n, u)
                  * ((a.value.abs()).sum(dims) + error) + n * lost(u))


def matmul(a, b, u, extra=4):
    """Products of matrices, summed in any order, with `extra` more roundings of
    each term. Tensor cores truncate sums, so a rounding there is 2 u."""
    x, y = a.value.abs(), b.value.abs()
    error = x @ b.error + a.error @ y + a.error @ b.error
    size = x @ y + error
    n = 2 * a.shape[-1] + extra
    return Approx(a.value @ b.value, error + gamma(n, u) * size + n * lost(u))


def function(a, u, off, f, derivative, low=-math.inf, high=math.inf,
             least_size=0.0):
    """f(a), whose values lie between `low` and `high`, with a relative error of
    `off`; `least_size` is what that is relative to at least."""
    value = f(a.value)
    slope = derivative(a.value).abs()
    for side in (a.value - a.error, a.value + a.error):
        near = derivative(side).abs()
        slope = torch.maximum(slope, torch.where(near.isnan(), math.inf, near))
    error = torch.where(a.error > 0, slope * a.error, 0.0)
    error = torch.minimum(error, torch.maximum(value - low, high - value))
    return Approx(value, error + off * value.abs().clamp_min(least_size)
                  + lost(u))


def sum_to(a, shape, u):
    """The adjoint of broadcasting: the sum that has `shape`."""
    extra = len(a.shape) - len(shape)
    dims = list(range(extra))
    dims += [extra + d for d, size in enumerate(shape)
             if size == 1 and a.shape[extra + d] != 1]
    return total(a, dims, u).map(lambda x: x.reshape(shape))

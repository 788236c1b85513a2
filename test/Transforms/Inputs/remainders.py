"""Remainders as --expand-math=all writes them, against the C library's."""

import pathlib
import subprocess
import sys

import numpy as np

TEXT = """
#id = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<?xTYPE>, %y: tensor<?xTYPE>) -> tensor<?xTYPE> {
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xTYPE>, tensor<?xTYPE>) outs(%x : tensor<?xTYPE>) {
  ^bb0(%a: TYPE, %b: TYPE, %c: TYPE):
    %d = arith.remf %a, %b : TYPE
    linalg.yield %d : TYPE
  } -> tensor<?xTYPE>
  return %r : tensor<?xTYPE>
}
"""

folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
random = np.random.default_rng(0)
for name, dtype, exponents in (("f32", np.float32, 126), ("f64", np.float64, 150)):
    special = np.array([0.0, -0.0, 1.0, -1.0, 3.5, 2.5, np.inf, -np.inf, np.nan,
                        np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal,
                        np.finfo(dtype).max if name == "f32" else 1e60])
    pairs = [grid.ravel() for grid in np.meshgrid(special, special)]
    operands = []
    for values in pairs:
        scale = 2.0 ** random.integers(-exponents, exponents, 20000)
        drawn = random.standard_normal(20000) * scale
        operands.append(np.concatenate([values, drawn]).astype(dtype))
    x, y = operands
    # Whole quotients, and those next to them.
    x[-5000:] = y[-5000:] * random.integers(-1000, 1000, 5000).astype(dtype)
    for operand, values in (("x", x), ("y", y)):
        np.save(folder / f"{operand}.npy", values)
    expanded = subprocess.run(
        ["fovea-opt", "--expand-math=all=true"], input=TEXT.replace("TYPE", name),
        capture_output=True, text=True, check=True).stdout
    assert "arith.remf" not in expanded
    (folder / "f.mlir").write_text(expanded)
    subprocess.run(
        ["fovea-run", folder / "f.mlir", f"--input={folder}/x.npy",
         f"--input={folder}/y.npy", f"--output={folder}/r.npy"],
        check=True, capture_output=True)
    result = np.load(folder / "r.npy")
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
        far = np.abs(x.astype(np.longdouble) / y) > 2.0 ** 312
    same = (result == expected) & (np.signbit(result) == np.signbit(expected))
    same |= np.isnan(result) & np.isnan(expected)
    same |= far & np.isfinite(x) & (y != 0)
    if not same.all():
        wrong = np.flatnonzero(~same)[:5]
        sys.exit(f"{name}: {x[wrong]} rem {y[wrong]} are {result[wrong]}, "
                 f"expected {expected[wrong]}")

"""Attention in f32 on the tile interpreter, as parts in bf16 and by FMA, beside
float64."""
import pathlib
import re
import subprocess
import sys

import numpy as np

FOLDER = pathlib.Path(sys.argv[1])


def write(d, value_dim, queries, keys, schedule=None):
    """Writes causal attention with a schedule, or with the model's choice."""
    q, k = f"tensor<1x4x{queries}x{d}xf32>", f"tensor<1x2x{keys}x{d}xf32>"
    v, o = f"tensor<1x2x{keys}x{value_dim}xf32>", f"tensor<1x4x{queries}x{value_dim}xf32>"
    chosen = schedule and f"{{schedule = #attn.schedule<{schedule}>}}" or ""
    path = FOLDER / "attend.mlir"
    path.write_text(f"""func.func @attend(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
  %o = attn.attention %q, %k, %v scale(0.125) mask {{
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  }} {chosen} : {q}, {k}, {v} -> {o}
  return %o : {o}
}}
""")
    return path


def run(path, operands, *flags):
    files = []
    for number, operand in enumerate(operands):
        files.append(FOLDER / f"{number}.npy")
        np.save(files[-1], operand)
    subprocess.run(["fovea-run", path, "--target=sm_90a", "--simulate", "--seeds=2",
                    f"--output={FOLDER}/out.npy", *flags,
                    *(f"--input={file}" for file in files)],
                   check=True, stdout=subprocess.DEVNULL)
    return np.load(FOLDER / "out.npy")


def exact(q, k, v):
    q, k, v = (np.float64(x) for x in (q, k.repeat(2, 1), v.repeat(2, 1)))
    s = q @ k.swapaxes(-1, -2) * 0.125
    s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def get_schedule(path, *flags):
    text = subprocess.run(["fovea-compile", path, "--target=sm_90a", "--emit=fused", *flags],
                          check=True, capture_output=True, text=True).stdout
    return re.search("#attn.schedule<(.*?)>", text)[1]


def make(d, value_dim, queries, keys, seed):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape, dtype=np.float32)
            for shape in [(1, 4, queries, d), (1, 2, keys, d), (1, 2, keys, value_dim)]]


PARTS = "tile = {0}, order = longest_first, warps = {1}, stages = {2}, parts = 3"
for d, value_dim, queries, keys, schedule in [
        (64, 64, 77, 130, PARTS.format("64x64", 4, 2)),
        (128, 64, 130, 70, PARTS.format("128x32", 8, 1)),
        (40, 24, 65, 65, PARTS.format("64x48", 4, 2)),
        (64, 192, 77, 100, PARTS.format("64x32", 4, 2)),
        (256, 256, 65, 70, PARTS.format("64x32", 4, 1))]:
    # Wide values take long here.
    for factor in (1, 8, 30) if value_dim <= 64 else (1, 8):
        q, k, v = make(d, value_dim, queries, keys, factor)
        q *= factor
        want = exact(q, k, v)
        parts = run(write(d, value_dim, queries, keys, schedule), (q, k, v))
        path = write(d, value_dim, queries, keys)
        assert "parts" not in get_schedule(path, "--exact-functions")
        fma = run(path, (q, k, v), "--exact-functions")
        assert (parts != fma).any(), d
        errors = np.abs(parts - want), np.abs(fma - want)
        root = [np.sqrt((x ** 2).mean()) for x in errors]
        assert root[0] <= 1.15 * root[1], (d, factor, root)
        assert errors[0].max() <= 1.5 * errors[1].max(), (d, factor, errors)
    print(f"{d} and {value_dim} features: as near as f32 by FMA")

# With other choices of a schedule.
q, k, v = make(64, 64, 130, 330, 7)
want = exact(q, k, v)
for choice in ("maximum = stale", "blocks = persistent", "products = alternating", "split = 2"):
    schedule = PARTS.format("128x32", 8, 2).replace("parts", f"{choice}, parts")
    error = np.abs(run(write(64, 64, 130, 330, schedule), (q, k, v)) - want).max()
    assert error < 1e-6, (choice, error)

# The model's choice, where there is enough to multiply.
path = write(64, 64, 2000, 2000)
assert "parts = 3" in get_schedule(path)
assert "parts" not in get_schedule(path, "--exact-functions")

path = write(64, 64, 96, 96, PARTS.format("64x32", 4, 2))
q, k, v = make(64, 64, 96, 96, 5)
q[0, 0, 5, 3] = np.inf
q[0, 3, 6] = 3.4e38
k[0, 1, 9, 2] = np.nan
k[0, 0, 50, 1] = -np.inf
k[0, 0, 20] = 0
k[0, 1, 30] = -3.4e38
v[0, 0, 60, 4] = np.inf
v[0, 0, 60, 5] = -np.inf
v[0, 0, 61, 5] = np.inf
v[0, 1, 2, 6] = np.finfo(np.float32).max
parts = run(path, (q, k, v))
fma = run(write(64, 64, 96, 96), (q, k, v), "--exact-functions")
finite = np.isfinite(fma)
np.testing.assert_array_equal(np.isnan(parts), np.isnan(fma))
np.testing.assert_array_equal(parts[np.isinf(fma)], fma[np.isinf(fma)])
np.testing.assert_allclose(parts[finite], fma[finite], rtol=1e-4, atol=1e-6)
print(f"infinite and NaN alike: {np.isnan(fma).sum()} NaN, {np.isinf(fma).sum()} infinite")

q, k, v = make(64, 64, 96, 96, 6)
v *= np.float32(1e-36)
path = write(64, 64, 96, 96, PARTS.format("64x32", 4, 2))
error = np.abs(run(path, (q, k, v)).astype(np.float64) - exact(q, k, v))
assert error.max() <= 2.0 ** -133 + 4 * 2.0 ** -24 * np.abs(v).max(), error.max()
print("small values are multiples of 2^-133")

"""Numbers that break attention: NaN, the lowest float, scores of any size.

Runs fovea-run on operands made here, with the arguments given, and compares with
float64. Scores are exact in f32, so that no bound is for their rounding. With
`--schedule=...` attention gets this schedule.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

QUERIES, KEYS, DIM = 40, 50, 16
LOWEST = np.finfo(np.float32).min
BOUNDS = {"f32": 5e-6, "f16": 2e-3, "bf16": 1e-2}


def to_bits(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def narrow(values, dtype):
    kind = {"f32": np.float32, "f16": np.float16}
    return to_bits(values) if dtype == "bf16" else values.astype(kind[dtype])


def widen(array, dtype):
    if dtype == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def graph(dtype, region, mask, scale, schedule):
    """Attention with a bias, or of products alone."""
    q, k = (f"tensor<1x1x{size}x{DIM}x{dtype}>" for size in (QUERIES, KEYS))
    places = "%b: index, %h: index, %i: index, %j: index"
    text = f"func.func @f(%q: {q}, %k: {k}, %v: {k}"
    if region:
        text += f", %bias: tensor<{QUERIES}x{KEYS}xf32>"
    text += f") -> {q} {{\n %o = attn.attention %q, %k, %v scale({scale})"
    if region:
        text += f""" score {{
  ^bb0(%s: f32, {places}):
    %e = tensor.extract %bias[%i, %j] : tensor<{QUERIES}x{KEYS}xf32>
    %r = arith.addf %s, %e : f32
    attn.yield %r : f32
  }}"""
    if mask:
        text += f""" mask {{
  ^bb0({places}):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  }}"""
    # Only f32 has parts.
    if schedule and dtype != "f32":
        schedule = schedule.replace(", parts = 3", "")
    if schedule:
        text += f" {{schedule = #attn.schedule<{schedule}>}}"
    return text + f" : {q}, {k}, {k} -> {q}\n return %o : {q}\n}}\n"


def get_probabilities(scores):
    top = np.fmax.reduce(scores, axis=1, keepdims=True)
    p = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = p.sum(1, keepdims=True)
    return p / np.where(total == 0, 1, total)


class Case:
    def __init__(self, name, dtype, region=False, mask=False):
        self.name, self.dtype = name, dtype
        self.region, self.mask = region, mask
        rng = np.random.default_rng(3)
        self.q = rng.integers(-2, 3, (QUERIES, DIM)) / 2
        self.k = rng.integers(-2, 3, (KEYS, DIM)) / 2
        self.v = rng.integers(-4, 5, (KEYS, DIM)) / 4
        self.bias = np.zeros((QUERIES, KEYS))
        # Whether several keys may have the largest score of a row.
        self.is_tied = False
        self.scale = 0.25

    def run(self, folder, arguments, schedule):
        """The results that `--output` is for, as float64."""
        path = folder / "case.mlir"
        path.write_text(graph(self.dtype, self.region, self.mask, self.scale,
                              schedule))
        operands = [narrow(x, self.dtype)[None, None]
                    for x in (self.q, self.k, self.v)]
        if self.region:
            operands.append(self.bias.astype(np.float32))
        command = ["fovea-run", str(path), *arguments]
        if self.dtype == "bf16":
            command.append("--bf16-bits")
        grad = "--grad" in arguments
        if grad:
            operands.append(narrow(np.ones((QUERIES, DIM)) * self.v[0],
                                   self.dtype)[None, None])
        for number, operand in enumerate(operands):
            np.save(folder / f"{number}.npy", operand)
            command.append(f"--input={folder / f'{number}.npy'}")
        results = (5 if self.region else 4) if grad else 1
        for number in range(results):
            command.append(f"--output={folder / f'r{number}.npy'}")
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{self.name}: {' '.join(command)}\n{done.stderr}")
        return [widen(np.load(folder / f"r{number}.npy"),
                      "f32" if number == 4 else self.dtype).reshape(-1, DIM)
                if number < 4 else np.load(folder / "r4.npy")
                for number in range(results)]

    def get_scores(self):
        """As f32 has them."""
        products = (self.q @ self.k.T * self.scale).astype(np.float32)
        scores = (products + self.bias.astype(np.float32)).astype(np.float64)
        if self.mask:
            later = np.arange(QUERIES)[:, None] < np.arange(KEYS)
            scores[later] = -np.inf
        return scores

    def get_bound(self, expected, is_host):
        bound = BOUNDS[self.dtype]
        # A host rounds queries times the scale and log2(e), and so scores.
        if is_host and not self.region and not self.is_tied:
            scores = self.get_scores()
            bound += 2**-23 * np.abs(scores[np.isfinite(scores)]).max()
        return bound * max(np.abs(expected).max(initial=0), 1)

    def has_one_top(self):
        """Which rows have one largest score."""
        top = self.get_scores()
        return (top == top.max(1, keepdims=True)).sum(1) == 1

    def expected(self, grad):
        with np.errstate(invalid="ignore"):
            p = get_probabilities(self.get_scores())
            results = [np.where(p.any(1, keepdims=True), p @ self.v, 0)]
            if grad:
                do = np.ones((QUERIES, DIM)) * self.v[0]
                dp = do @ self.v.T
                ds = p * (dp - (p * dp).sum(1, keepdims=True))
                results += [ds @ self.k * self.scale, ds.T @ self.q * self.scale,
                            p.T @ do]
                if self.region:
                    results.append(ds)
        return results


def cases():
    for dtype in ("f32", "bf16", "f16"):
        for region in (False, True):
            # One NaN: a row of it, behind a mask as without.
            case = Case("nan", dtype, region, mask=region)
            case.q[[3, 39], 5] = np.nan
            yield case, False
            # Scores have 2^n in common, which changes nothing.
            for size in (10, 14, 18):
                case = Case(f"common {size}", dtype, region)
                if dtype == "f16" and size > 15 and not region:
                    continue
                if region:
                    case.bias[:] = -(2.0**size)
                else:
                    case.q[:, 0], case.k[:, 0] = 2.0**size, 1
                # Gradients of 16-bit products have |score| * 2^-24 more.
                yield case, region or dtype == "f32" or size == 10
        # Rows that a captured mask hides as a whole, as low as it can be.
        for lowest in (-1e9, LOWEST, -np.inf):
            case = Case(f"mask of {lowest}", dtype, region=True)
            hidden = np.arange(QUERIES)[:, None] % 3 == 0
            case.bias[:] = np.where(
                hidden | (np.arange(KEYS) % 5 == 0), lowest, 0)
            # In the lowest number f64 has no room for a logarithm either.
            yield case, lowest != LOWEST
        # NaN among the values, which rows without a key do not have.
        case = Case("value", dtype, region=True)
        case.v[7, 2] = np.nan
        case.bias[np.arange(QUERIES) % 3 == 0] = -np.inf
        yield case, False
        # Scores far apart: the largest alone count.
        for size in (30, 60, 100) if dtype != "f16" else ():
            case = Case(f"large {size}", dtype, mask=True)
            case.q *= 2.0**size
            case.is_tied = True
            yield case, False


        # Scores that grow along the keys, slowly, and too far for f16 and f32,
        # behind keys that some rows do not see.
        for factor, scale in ((8, 0.25), (30, 0.25), (30, -0.25), (512, 2.0)):
            for region in (False, True):
                case = Case(f"growing {factor} {scale}", dtype, region,
                            mask=factor == 8)
                case.k[KEYS // 3:] *= 8
                case.k[KEYS // 2:] *= factor / 8
                case.scale = scale
                hidden = np.arange(QUERIES)[:, None] % 3 == 0
                if region:
                    case.bias[hidden & (np.arange(KEYS) < KEYS // 2)] = -np.inf
                yield case, False
        # Scores that grow from tile to tile of keys, of which none is most of
        # its row: sums stay in range, or grow too large for f16 at last.
        for growth in (2, 6):
            case = Case(f"stairs of {growth}", dtype, region=True)
            case.k[:] = 0
            case.bias[:] = growth * (np.arange(KEYS) // 16)
            yield case, False
        # Scores of one size, whose sums grow with each key.
        case = Case("equal", dtype)
        case.k[:] = 0
        yield case, True


def main():
    arguments = sys.argv[1:]
    schedule = None
    for argument in arguments:
        if argument.startswith("--schedule="):
            schedule = argument.removeprefix("--schedule=")
            arguments.remove(argument)
            break
    is_host = not any("--target" in argument for argument in arguments)
    failures = count = 0
    with tempfile.TemporaryDirectory() as name:
        for case, has_gradient in cases():
            if "--grad" in arguments and not has_gradient:
                continue
            results = case.run(pathlib.Path(name), arguments, schedule)
            for number, (result, expected) in enumerate(
                    zip(results, case.expected("--grad" in arguments))):
                if case.name.startswith("common") and not case.region:
                    # Of the common part itself gradients are small sums of
                    # large numbers.
                    if number in (1, 2):
                        result, expected = result[:, 1:], expected[:, 1:]
                if is_host and case.is_tied:
                    rows = case.has_one_top()
                    result, expected = result[rows], expected[rows]
                count += 1
                isnan = np.isnan(expected)
                same = np.array_equal(np.isnan(result), isnan)
                error = np.abs(result - expected)[~isnan].max(initial=0)
                bound = case.get_bound(expected[~isnan], is_host)
                if same and error <= bound:
                    continue
                failures += 1
                print(f"{case.name}, {case.dtype}, region {case.region}, result "
                      f"{number}: error {error:.3g}, bound {bound:.3g}, NaN "
                      f"{np.isnan(result).sum()} of {isnan.sum()}")
    print(f"{count} results, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

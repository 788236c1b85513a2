# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of scripts/fuzz."""

import argparse
import collections
import os
import pathlib
import pickle
import sys
import time

from .generate import generate
from .pool import Pool

#: For all failures: after a fault of a GPU a worker starts anew each time.
SHRINK_SECONDS = 240


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="fuzz", description="Compiles and runs random graphs and compares "
        "them with PyTorch in float64, within bounds that follow from the "
        "arithmetic.")
    add = parser.add_argument
    add("--cases", type=int, default=100, help="how many (default: 100)")
    add("--seed", type=int, default=1, help="of all cases (default: 1)")
    add("--start", type=int, default=0,
        help="number of the first case, to run one again")
    add("--target", default="host", choices=["host", "sm_80", "sm_90a"])
    add("--simulate", action="store_true",
        help="a GPU's kernels in the tile interpreter, at small sizes")
    add("--compile", action="store_true",
        help="compile for a GPU and run nothing, which takes no GPU")
    add("--schedules", action="store_true",
        help="random schedules of attention and its gradients, on a GPU")
    add("--gradients", default="both", choices=["no", "yes", "both"],
        help="whether cases have a backward pass (default: some)")
    add("--jobs", type=int, default=os.cpu_count(), help="processes")
    add("--timeout", type=float, default=120, help="seconds for a case")
    add("--seconds", type=float, default=0,
        help="start no case after this time (default: run all)")
    add("--out", type=pathlib.Path, default=pathlib.Path("fuzz-out"),
        help="folder for what fails (default: fuzz-out)")
    add("--shrink", type=int, default=40,
        help="smaller cases to try for each of the first ten failures")
    add("--replay", type=pathlib.Path, help="run the case of such a folder")
    add("--verbose", action="store_true", help="a line for each case")
    arguments = parser.parse_args(arguments)
    if arguments.target == "host" and (arguments.simulate or arguments.compile):
        parser.error("--simulate and --compile are of a GPU: --target is host, "
                     "expected sm_80 or sm_90a")
    if arguments.target == "host" and arguments.schedules:
        parser.error("--schedules are of a GPU: --target is host, expected "
                     "sm_80 or sm_90a")
    return arguments


class Distribution:
    """Distribution of errors relative to their bounds, and of bounds relative
    to what they bound."""

    def __init__(self):
        self.ratios = collections.defaultdict(list)
        self.widths = collections.defaultdict(list)

    def add(self, case, outcome):
        dtypes = case.program.tensors
        for table, values in ((self.ratios, outcome.ratios),
                              (self.widths, outcome.widths)):
            for name, value in values.items():
                plain = name.removeprefix("gradient of ")
                kind = "gradient" if plain != name else "result"
                table[f"{kind} {dtypes[plain].dtype}"].append(value)

    def print(self):
        print("largest error of a result / its bound; bound / largest value")
        print(f"{'':15}{'results':>8}" + "".join(
            f"{name:>10}" for name in
            ("median", "90%", "99%", "most", "median", "90%")))
        for name, values in sorted(self.ratios.items()):
            values = sorted(values)
            widths = sorted(self.widths.get(name) or [0.0])
            at = lambda x, p: x[min(int(p * len(x)), len(x) - 1)]
            row = [at(values, p) for p in (0.5, 0.9, 0.99, 1)]
            row += [at(widths, p) for p in (0.5, 0.9)]
            print(f"{name:15}{len(values):8}"
                  + "".join(f"{x:10.2g}" for x in row))


def save(case, outcome, folder, arguments):
    """Saves a folder with everything needed to see the failure again."""
    from . import check
    folder.mkdir(parents=True, exist_ok=True)
    try:
        text = check.get_text(case)
    except check.Wrong:
        text = case.program.text
    (folder / "case.mlir").write_text(text)
    with open(folder / "case.pickle", "wb") as file:
        pickle.dump(case, file)
    operands = check.make_operands(case)
    cotangents = check.make_cotangents(case)
    inputs = check.save_operands(case, operands, cotangents, folder)
    layouts = [f"{t.name} {t.layout}" for t in case.program.operands
               if t.layout != "contiguous"]
    lines = [f"{outcome.kind}: {outcome.message}",
             f"scripts/fuzz --replay {folder}",
             f"scripts/fuzz --cases 1 --start {case.index} --seed {case.seed} "
             f"--target {case.target} --gradients {arguments.gradients}"
             + (" --simulate" if case.simulate else "")
             + (" --compile" if case.compile_only else "")
             + (" --schedules" if arguments.schedules else ""),
             "fovea-run case.mlir " + " ".join(check.command(case) + inputs),
             f"mode {case.mode}, textbook {case.textbook}, partition "
             f"{case.partition}; memory: {', '.join(layouts) or 'contiguous'}"]
    try:
        reference = check.make_reference(case, operands, cotangents)
        import numpy as np
        for name, value in reference.values.items():
            stem = name.replace(" ", "-")
            np.save(folder / f"expected-{stem}.npy", value.numpy())
            np.save(folder / f"bound-{stem}.npy",
                    reference.bounds[name].numpy())
    except Exception as error:
        lines.append(f"no reference: {error}")
    (folder / "failure.txt").write_text("\n".join(lines) + "\n")


def one_line(text, width=200):
    """Returns the line that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error: " in line]
    return (errors or lines or [""])[0][:width]


def main(arguments=None):
    arguments = parse(arguments)
    started = time.monotonic()
    if arguments.replay:
        with open(arguments.replay / "case.pickle", "rb") as file:
            case = pickle.load(file)
        tasks = [(0, case)]
        make = lambda key: case
    else:
        options = (arguments.target, arguments.simulate, arguments.gradients,
                   arguments.compile, arguments.schedules)

        def make(key):
            return generate(arguments.seed, key, *options)

        def give():
            for key in range(arguments.start,
                             arguments.start + arguments.cases):
                if (arguments.seconds
                        and time.monotonic() - started > arguments.seconds):
                    return
                yield key, (arguments.seed, key, *options)
        tasks = give()
    counts = collections.Counter()
    distribution = Distribution()
    failures = []
    with Pool(arguments.jobs, arguments.timeout) as pool:
        for key, outcome in pool.run(tasks):
            counts[outcome.kind] += 1
            if outcome.kind == "passed":
                distribution.add(make(key), outcome)
            if arguments.verbose or arguments.replay:
                print(f"case {key}: {outcome.kind} {outcome.message}",
                      flush=True)
            if not outcome.failed:
                continue
            case = make(key)
            folder = arguments.out / f"{key:06}-{outcome.kind}"
            print(f"case {key}: {outcome.kind}: {one_line(outcome.message)}\n"
                  f"    {folder}", flush=True)
            if not arguments.replay:
                save(case, outcome, folder, arguments)
                failures.append((key, outcome, folder))
        if arguments.shrink and failures:
            _shrink(pool, failures, make, arguments)
    if distribution.ratios:
        distribution.print()
    seconds = time.monotonic() - started
    total = sum(counts.values())
    print(f"{total} cases in {seconds:.1f} s: " + ", ".join(
        f"{count} {kind}" for kind, count in counts.most_common()))
    failed = total - counts["passed"] - counts["limit"]
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


def _shrink(pool, failures, make, arguments):
    """Shrinks the first of each kind of failure, for some minutes."""
    from .check import Outcome
    from .shrink import shrink
    seen = set()
    deadline = time.monotonic() + SHRINK_SECONDS
    for key, outcome, folder in failures:
        mark = (outcome.kind, one_line(outcome.message, 60)
                if outcome.kind == "refused" else key % 10)
        if outcome.kind in ("fuzzer", "hang") or mark in seen or len(seen) > 9:
            continue
        seen.add(mark)

        def fails(case):
            if time.monotonic() > deadline:
                return Outcome("passed")
            for _, found in pool.run([(0, case)]):
                return found

        small, found = shrink(make(key), outcome.kind, fails, arguments.shrink)
        if found:
            save(small, found, folder / "small", arguments)
            print(f"case {key}: smaller in {folder / 'small'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

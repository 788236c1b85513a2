# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots of a mask's tiles and of a report's roofline, by matplotlib."""

from ._library import Error

#: By a tile's number: what its mask leaves of it, and the color.
_KINDS = (("empty", "#ffffff"), ("partial", "#9ecae1"), ("whole", "#2171b5"))

#: Scores whose mask is computed at once.
_MOST = 1 << 24


def _import_pyplot():
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    return pyplot


def find_tiles(mask_mod, queries, keys, tile=128, *, batch=0, head=0, device="cpu"):
    """Returns what a mask leaves of each tile of scores, as NumPy's int8: 0 if
    nothing, 1 if a part, 2 if all of it.

    mask_mod: a function of a batch, a head, a query and a key, or what has one, as a
        BlockMask.
    queries, keys: lengths.
    tile: queries and keys of a tile, one number or two.
    batch, head: those whose mask is looked at.
    device: where tensors are that the mask captures.
    """
    import numpy
    import torch

    from ._flex import create_mask
    mask_mod = getattr(mask_mod, "mask_mod", mask_mod)
    if not callable(mask_mod):
        raise TypeError("mask_mod: expected a function or a BlockMask, got "
                        f"{type(mask_mod).__name__}")
    rows, columns = tile if isinstance(tile, (tuple, list)) else (tile, tile)
    for name, number in (("queries", queries), ("keys", keys), ("tile", rows),
                         ("tile", columns)):
        if number < 1:
            raise ValueError(f"{name}: expected 1 or more, got {number}")
    place = torch.tensor([batch, head], device=device)
    height, width = -(-queries // rows), -(-keys // columns)
    found = numpy.zeros((height, width), numpy.int8)
    # Bands of whole tiles.
    step = max(_MOST // (keys * rows), 1) * rows
    for start in range(0, queries, step):
        count = min(step, queries - start)
        keep = create_mask(
            lambda b, h, i, j: mask_mod(place[0], place[1], i + start, j), 1, 1,
            count, keys, device=device)[0, 0].cpu().numpy()
        down, right = range(0, count, rows), range(0, keys, columns)
        sums = numpy.add.reduceat(numpy.add.reduceat(
            keep, right, axis=1, dtype=numpy.int64), down, axis=0)
        sizes = numpy.outer([min(rows, count - at) for at in down],
                            [min(columns, keys - at) for at in right])
        found[start // rows:start // rows + len(down)] = numpy.where(
            sums == sizes, 2, sums > 0)
    return found


def plot_mask(mask_mod, queries, keys, tile=128, *, batch=0, head=0, device="cpu",
              ax=None):
    """Plots which tiles of scores a mask leaves empty, in part or whole, and returns
    matplotlib's axes. Arguments are those of `find_tiles`. Kernels compute nothing
    for empty tiles, and need no mask in whole ones; their own tiles have other sizes.

        fovea.plot_mask(lambda b, h, q, kv: q >= kv, 4096, 4096)
    """
    pyplot = _import_pyplot()
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch
    found = find_tiles(mask_mod, queries, keys, tile, batch=batch, head=head,
                       device=device)
    rows, columns = tile if isinstance(tile, (tuple, list)) else (tile, tile)
    height, width = found.shape
    ax = ax or pyplot.subplots()[1]
    ax.imshow(found, ListedColormap([color for _, color in _KINDS]),
              norm=BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3), interpolation="nearest",
              extent=(0, width * columns, height * rows, 0))
    ax.set(xlim=(0, keys), ylim=(queries, 0), xlabel="key", ylabel="query",
           title=f"tiles of {rows} x {columns}: {(found > 0).mean():.0%} computed")
    ax.legend(handles=[
        Patch(facecolor=color, edgecolor="gray",
              label=f"{name}: {(found == kind).mean():.0%}")
        for kind, (name, color) in enumerate(_KINDS)],
        loc="upper left", bbox_to_anchor=(1.02, 1))
    return ax


def plot_roofline(report, ax=None):
    """Plots what a report measured below the bounds of its machine, and returns
    matplotlib's axes.

        fovea.plot_roofline(fovea.explain(fovea.attention, q, k, v))

    report: a `Report`, or what has a `report()`, such as an `Explanation`, which takes
        some seconds.
    """
    pyplot = _import_pyplot()
    if not isinstance(report, dict):
        if not hasattr(report, "report"):
            raise TypeError("report: expected a Report or an Explanation, got "
                            f"{type(report).__name__}")
        report = report.report()
    measured = {name: found for name, found in report["strategies"].items()
                if found.get("measured_seconds")}
    if not measured:
        raise Error("report: expected a strategy that was measured, got none")
    ax = ax or pyplot.subplots()[1]
    bandwidth = report["bandwidth"]
    peaks = {name: report.get(f"peak_{name}") for name in ("f64", "f32", "matrix")}
    peaks = {name: peak for name, peak in peaks.items() if peak}
    points = [found["intensity"] for found in measured.values()]
    ridges = [peak / bandwidth for peak in peaks.values()]
    left, right = min(points + ridges) / 4, max(points + ridges) * 4
    for name, peak in peaks.items():
        ax.plot([left, peak / bandwidth, right],
                [left * bandwidth / 1e9, peak / 1e9, peak / 1e9], color="gray")
        ax.annotate(f"{name}: {peak / 1e9:.3g}", (right, peak / 1e9), ha="right",
                    va="bottom", color="gray")
    for name, found in measured.items():
        rate = found["flops"] / found["measured_seconds"] / 1e9
        ax.plot(found["intensity"], rate, "o", label=name)
    ax.set(xscale="log", yscale="log", xlabel="FLOP per byte", ylabel="GFLOP/s",
           title=f"{report['machine']}, {bandwidth / 1e9:.3g} GB/s")
    ax.legend()
    return ax

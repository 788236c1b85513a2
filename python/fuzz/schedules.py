# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as a person may write them, most of which suit a graph: those that do
not are refused by an error that names the schedule."""


def draw(rng, target, has_mask):
    """A schedule of attention on a GPU, as MLIR."""

    def pick(*choices):
        return choices[rng.integers(len(choices))]

    def chance(p):
        return rng.random() < p

    is_hopper = target == "sm_90a"
    warps = pick(4, 8, 12, 16) if is_hopper else pick(4, 8)
    rows = 16 * warps * (2 if chance(0.2) else 1)
    keys = pick(16, 32, 48, 64, 64, 80, 96, 128, 128)
    order = "longest_first" if has_mask and chance(0.8) else "linear"
    parts = [f"tile = {rows}x{keys}", f"order = {order}", f"warps = {warps}",
             f"stages = {pick(1, 2, 2, 3, 4)}"]
    is_stale = is_hopper and chance(0.6)
    if is_stale:
        parts.append("maximum = stale")
    if chance(0.3):
        parts.append("keys = descending")
    blocks = pick("tiles", "persistent", "persistent",
                  "dealt" if order == "longest_first" else "shared")
    if blocks == "dealt" and chance(0.2):
        parts.append("queries = sequences")
    if blocks != "tiles":
        parts.append(f"blocks = {blocks}")
    if chance(0.3):
        parts.append("products = alternating")
    if is_hopper and warps >= 8 and chance(0.4):
        parts.append("groups = in_turn")
    if chance(0.3):
        parts.append("captures = tiled")
    is_split = blocks == "tiles" and chance(0.3)
    if is_split:
        is_fixed = not is_stale and chance(0.5)
        parts.append(f"split = fixed({keys * pick(1, 2)})" if is_fixed
                     else f"split = {pick(2, 3, 7)}")
    elif is_hopper and not has_mask and chance(0.2):
        parts.append(f"cluster = {pick(2, 4)}")
    return f"#attn.schedule<{', '.join(parts)}>"

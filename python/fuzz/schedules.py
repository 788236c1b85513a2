# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as a person may write them, most of which suit a graph: those that do
not are refused by an error that names the schedule."""

import re


def _draws(rng):
    def pick(*choices):
        return choices[rng.integers(len(choices))]

    def chance(p):
        return rng.random() < p
    return pick, chance


def draw(rng, target, has_mask):
    """A schedule of attention on a GPU, as MLIR."""
    pick, chance = _draws(rng)
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
    elif is_hopper and chance(0.2):
        parts.append(f"cluster = {pick(2, 4)}")
    return f"#attn.schedule<{', '.join(parts)}>"


# How a schedule says the number of shares, which follows.
_SHARES = ", gradients = <parallel = [batch, head, key], shares = "


def draw_backward(rng, has_mask):
    """A schedule of attention's backward pass on a GPU, as MLIR, but for the number of
    shares of a group's heads, `some` or `all`, which `set_backward` knows."""
    pick, chance = _draws(rng)
    warps = pick(4, 8, 8, 12)
    keys = 16 * warps * pick(1, 1, 1, 2)
    if chance(0.25):
        # Two warps share their keys.
        keys = 8 * warps
    order = "longest_first" if has_mask and chance(0.7) else "linear"
    tile = f"{pick(16, 32, 64, 64, 96, 128)}x{keys}"
    stages = pick(1, 2, 2, 3)
    captures = ", captures = tiled" if chance(0.5) else ""
    shares = f"{_SHARES}{pick('some', 'all')}>" if chance(0.6) else ""
    return (f"#attn.schedule<tile = {tile}, order = {order}, warps = {warps}, "
            f"stages = {stages}{captures}{shares}>")


def _set_shares(schedule, step, types):
    """The schedule of a backward pass with a number of shares that divides the heads
    of a group; without shares if there is none, or if a captured tensor has a gradient,
    for whose sums a schedule with shares has to have a way as well."""
    head, found, rest = schedule.partition(_SHARES)
    if not found:
        return schedule
    heads, kv_heads = (shape.split("x")[1]
                       for shape in re.findall(r"tensor<([^>]*)>", types)[:2])
    if "captures(" in step or "?" in (heads, kv_heads) or int(heads) <= int(kv_heads):
        return head + ">"
    group = int(heads) // int(kv_heads)
    some = next(n for n in range(2, group + 1) if group % n == 0)
    return f"{head}{_SHARES}{group if rest.startswith('all') else some}>>"


def set_backward(text, schedule):
    """The text of gradients with a schedule for each backward pass that computes
    probabilities again."""
    done = 0
    while (at := text.find("attn.attention_backward", done)) >= 0:
        # The types follow a colon outside of all parentheses and regions.
        depth, end = 0, at
        while depth or text[end:end + 3] != " : ":
            depth += (text[end] in "({[") - (text[end] in ")}]")
            end += 1
        done = end
        if "statistics(" in text[at:end]:
            chosen = _set_shares(schedule, text[at:end], text[end:])
            attribute = f" {{schedule = {chosen}}}"
            text = text[:end] + attribute + text[end:]
            done += len(attribute)
    return text

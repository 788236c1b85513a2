"""Writes where sequences of several lists begin among the rows that lie packed, how many
keys each has, where these begin if they lie packed, too, and a table of pages, to a
folder."""
import sys

import numpy as np

folder = sys.argv[1]
LISTS = {
    # Rows of each sequence: 0, 1, 130, 129, 0, 41. The last one has fewer keys.
    "some": ([0, 0, 1, 131, 260, 260, 301], [7, 140, 300, 129, 0, 30]),
    # The first row is 3, and the last one 149.
    "gaps": ([3, 3, 10, 10, 150], [5, 20, 0, 150]),
    "many": (np.repeat(np.arange(21) * 2, 2)[:42], np.arange(41) % 10),
    "one": ([0, 300], [320]),
    "empty": ([7, 7], [20]),
    "none": ([0], []),
    # Rows of each sequence: 3, 40, 1, 0, 20.
    "long": ([0, 3, 43, 44, 44, 64], [700, 300, 90, 10, 640]),
    "prompt": ([0, 40], [700]),
}
for name, (starts, lengths) in LISTS.items():
    np.save(f"{folder}/{name}-starts.npy", np.array(starts, dtype=np.int32))
    np.save(f"{folder}/{name}-lengths.npy", np.array(lengths, dtype=np.int32))
    # Keys of no sequence are in front of all others.
    ends = 2 + np.cumsum([0, *lengths])
    np.save(f"{folder}/{name}-keys.npy", ends.astype(np.int32))
pages = np.random.default_rng(0).permutation(40)
np.save(f"{folder}/table.npy", np.resize(pages, (6, 20)).astype(np.int32))

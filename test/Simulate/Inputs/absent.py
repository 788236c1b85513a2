"""Operands whose keys and values are no numbers where a mask removes them for
all queries, and the same with zeros there; and whether results are the same."""

import numpy as np

import poisoned

BATCHES, QUERIES, KEYS, DIM = 3, 40, 150, 64
# Within a tile, all keys, none; the starts leave out all keys before.
BOUNDS = np.array([70, KEYS, 0], np.int32)


def write(folder):
    rng = np.random.default_rng(1)
    j = np.arange(KEYS)
    absent = {"lengths": j >= BOUNDS[:, None], "starts": j < BOUNDS[:, None],
              "positions": j > QUERIES - 1 + BOUNDS[:, None]}
    np.save(folder / "bounds", BOUNDS)
    for dtype in np.float16, np.float32:
        kind = np.dtype(dtype).name
        for name, heads, length in (("q", 4, QUERIES), ("k", 2, KEYS),
                                    ("v", 2, KEYS), ("g", 4, QUERIES)):
            values = rng.standard_normal((BATCHES, heads, length, DIM))
            if length == QUERIES:
                np.save(folder / f"{kind}-{name}", values.astype(dtype))
                continue
            for mask, keys in absent.items():
                for state, value in ("clean", 0), ("nan", np.nan), ("inf", np.inf):
                    poisoned = np.where(keys[:, None, :, None], value, values)
                    np.save(folder / f"{kind}-{mask}-{state}-{name}",
                            poisoned.astype(dtype))


poisoned.run(write)

"""A paged cache of keys and values, and results compared bit by bit.

In the clean cache, slots behind a sequence's length hold zeros and the numbers of
pages behind it are 0. In the poisoned one the slots hold NaN, and so do pages
that no sequence has; the numbers are far out of range."""

import numpy as np

import poisoned

# No key; one; a tile of 64 less, exactly and more; two tiles less; all.
LENGTHS = np.array([0, 1, 63, 64, 65, 127, 140], np.int32)
ROWS, MANY, DIM = 3, 70, 64


def write(folder):
    rng = np.random.default_rng(1)
    batches = len(LENGTHS)

    def save(name, values):
        for dtype in np.float16, np.float32:
            np.save(folder / f"{np.dtype(dtype).name}-{name}",
                    values.astype(dtype))

    np.save(folder / "lengths", LENGTHS)
    np.save(folder / "all", np.full_like(LENGTHS, LENGTHS.max()))
    save("q", rng.standard_normal((batches, 1, ROWS, DIM)))
    save("many", rng.standard_normal((batches, 1, MANY, DIM)))
    for page in 1, 5, 8, 16, 64, 128:
        pages = -(-LENGTHS.max() // page)
        used = -(-LENGTHS // page)
        # Pages in no order, two of them nobody's.
        free = rng.permutation(used.sum() + 2)
        values = {name: rng.standard_normal((len(free), page, 1, DIM))
                  for name in "kv"}
        absent = np.ones((len(free), page), bool)
        tables = {"clean": np.zeros((batches, pages), np.int32),
                  "nan": rng.choice([-7, 2**31 - 1, 10**6], (batches, pages))
                  .astype(np.int32)}
        for b, count in enumerate(used):
            own, free = free[:count], free[count:]
            for table in tables.values():
                table[b, :count] = own
            for number, place in enumerate(own):
                absent[place, :LENGTHS[b] - number * page] = False
        # Numbers of 8 bits, of magnitudes up to 4, whose NaN is 0x7f.
        bytes = {name: rng.integers(0, 0x48, values[name].shape, np.uint8)
                 | rng.choice([0, 0x80], values[name].shape).astype(np.uint8)
                 for name in "kv"}
        for state, value, byte in ("clean", 0, 0), ("nan", np.nan, 0x7f):
            np.save(folder / f"{page}-{state}-table", tables[state])
            for name in "kv":
                save(f"{page}-{state}-{name}",
                     np.where(absent[..., None, None], value, values[name]))
                small = np.where(absent[..., None, None], byte, bytes[name])
                np.save(folder / f"int8-{page}-{state}-{name}",
                        small.astype(np.uint8).view(np.int8))
    # Rows behind the last sequence, since places behind a sequence's end exist.
    starts = np.cumsum([0, 5, 64, 1, 131], dtype=np.int32)
    np.save(folder / "starts", starts)
    for name in "qkv":
        rows = rng.standard_normal((starts[-1] + 140, 2, DIM))
        np.save(folder / f"rows-{name}", rows.astype(np.float16))


poisoned.run(write)

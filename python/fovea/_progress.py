# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A line that says what takes seconds, in a terminal or a notebook."""

import contextlib
import os
import sys
import threading
import time

#: Seconds that pass without a line, and from one update of it to the next.
_DELAY, _PERIOD = 1.0, 0.5

_lock = threading.Lock()


def _find_stream():
    """Returns where a person reads, None if there is nobody."""
    stream = sys.stderr
    if os.environ.get("FOVEA_PROGRESS", "1") == "0" or stream is None:
        return None
    try:
        reads = stream.isatty()
    except (AttributeError, ValueError):
        return None
    # A notebook's stream is no terminal.
    return stream if reads or type(stream).__module__.startswith("ipykernel") else None


@contextlib.contextmanager
def show(what):
    """Shows a line with `what` and the seconds so far, while its block takes more than
    a second."""
    stream = _find_stream()
    # Of several at a time one is shown.
    if stream is None or not _lock.acquire(blocking=False):
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_write, args=(stream, what, over), daemon=True)
    try:
        thread.start()
        yield
    finally:
        over.set()
        thread.join()
        _lock.release()


def _write(stream, what, over):
    start = time.monotonic()
    if over.wait(_DELAY):
        return
    width = 0
    while True:
        line = f"fovea: {what}, {time.monotonic() - start:.0f} s"
        width = max(width, len(line))
        stream.write(f"\r{line}")
        stream.flush()
        if over.wait(_PERIOD):
            break
    stream.write(f"\r{' ' * width}\r")
    stream.flush()

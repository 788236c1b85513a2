# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases in processes of their own, which may crash or hang without an end to the
run."""

import collections
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import tempfile
import time
import traceback

from .check import Outcome


def _serve(connection, log, change):
    """Runs a worker: it receives cases and sends outcomes."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    # This folder is not the user's; it saves asking ptxas for its version each
    # time.
    cache = pathlib.Path(log).with_suffix("")
    os.environ["FOVEA_CACHE_DIR"] = str(cache)
    os.environ.setdefault("FOVEA_NUM_THREADS", "2")
    import torch
    torch.set_num_threads(1)
    from .check import check
    from .generate import generate
    for number in itertools.count():
        if number % 100 == 0:
            # Compiled code is not needed again.
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
        try:
            what = connection.recv()
        except EOFError:
            return
        os.ftruncate(2, 0)
        try:
            case = generate(*what) if isinstance(what, tuple) else what
            outcome = check(case, change)
        except Exception:
            outcome = Outcome("fuzzer", traceback.format_exc())
        connection.send(outcome)
        if outcome.kind == "fault":
            # The device's context is lost.
            return


class _Worker:
    def __init__(self, folder, number, change):
        self.log = folder / f"worker{number}.txt"
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(other, str(self.log), change), daemon=True)
        self.process.start()
        other.close()
        self.task = None
        self.started = 0.0

    def give(self, key, what):
        self.task, self.started = key, time.monotonic()
        self.connection.send(what)

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()


class Pool:
    """`run` yields (key, outcome) for an iterable of (key, what), where `what` is
    a Case or the arguments of `generate`."""

    def __init__(self, jobs, timeout, change=None):
        self.jobs, self.timeout, self.change = jobs, timeout, change
        self.folder = tempfile.TemporaryDirectory(prefix="fovea-fuzz-")
        self.workers = []
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()
        self.folder.cleanup()

    def _start(self):
        self.count += 1
        worker = _Worker(pathlib.Path(self.folder.name), self.count, self.change)
        self.workers.append(worker)
        return worker

    def _end(self, worker, outcome):
        key = worker.task
        self.workers.remove(worker)
        worker.stop()
        log = worker.log.read_text(errors="replace") if worker.log.exists() else ""
        outcome.message += log[-20000:]
        return key, outcome

    def run(self, tasks):
        tasks = iter(tasks)
        waiting = collections.deque()
        while True:
            while sum(w.task is not None for w in self.workers) < self.jobs:
                task = next(tasks, None)
                if task is None:
                    break
                idle = [w for w in self.workers if w.task is None]
                (idle[0] if idle else self._start()).give(*task)
            busy = {w.connection: w for w in self.workers if w.task is not None}
            if not busy:
                return
            for connection in multiprocessing.connection.wait(busy, 1.0):
                worker = busy[connection]
                try:
                    outcome = connection.recv()
                except EOFError:
                    worker.process.join(5)
                    code = worker.process.exitcode
                    waiting.append(self._end(worker, Outcome(
                        "crash", f"the process ended with {code}\n")))
                    continue
                key, worker.task = worker.task, None
                if outcome.kind == "fault":
                    worker.task = key
                    waiting.append(self._end(worker, outcome))
                else:
                    waiting.append((key, outcome))
            now = time.monotonic()
            for worker in list(self.workers):
                if worker.task is not None and now - worker.started > self.timeout:
                    waiting.append(self._end(worker, Outcome(
                        "hang", f"no result after {self.timeout:g} s\n")))
            while waiting:
                yield waiting.popleft()

# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled code on disk: kept, shared by processes and threads, made again
where it is damaged, and done without where it cannot be written."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import fovea

TARGET = os.environ.get("FOVEA_TEST_TARGET", "host")

# Compiles graphs in several threads, each all of them in another order, and
# prints what was amiss.
PROGRAM = """
import sys, threading
import numpy as np
import fovea

def text(scale):
    t, s = "tensor<1x2x?x16xf32>", "tensor<1x2x?x?xf32>"
    return f'''func.func @attend(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
      %s = attn.scores %q, %k : {t}, {t} -> {s}
      %t = attn.scale %s by {scale} : {s}
      %p = attn.softmax %t : {s} -> {s}
      %o = attn.values %p, %v : {s}, {t} -> {t}
      return %o : {t}
    }}'''

def attend(q, k, v, scale):
    s = np.exp(q @ k.swapaxes(-1, -2) * scale)
    return s / s.sum(-1, keepdims=True) @ v

target, threads, graphs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
remarks, errors = [], []
random = np.random.default_rng(1)
q, k, v = (random.standard_normal((1, 2, 33, 16), dtype=np.float32)
           for _ in range(3))

def work(first):
    try:
        for number in range(graphs):
            scale = 0.125 * (1 + (first + number) % graphs)
            function = fovea.compile(text(scale), target=target)
            remarks.extend(function.remarks)
            np.testing.assert_allclose(function(q, k, v),
                                       attend(q, k, v, scale), atol=1e-5)
    except BaseException as error:
        errors.append(error)

workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
for error in errors:
    raise error
print("\\n".join(remarks))
"""


def start(folder, threads=1, graphs=1):
    here = pathlib.Path(fovea.__file__).resolve().parents[1]
    environment = dict(os.environ, FOVEA_CACHE_DIR=str(folder),
                       PYTHONPATH=str(here))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, TARGET, str(threads), str(graphs)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)


def finish(process):
    """The remarks of a process."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output.split("\n")[:-1] if output.strip() else []


def list_entries(folder):
    """What was written when."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in pathlib.Path(folder).glob("llvmcache-*")
            if not path.name.endswith(".timestamp")}


def test_second_process_compiles_nothing(tmp_path):
    assert finish(start(tmp_path)) == []
    entries = list_entries(tmp_path)
    assert entries
    assert finish(start(tmp_path)) == []
    assert list_entries(tmp_path) == entries


def test_processes_and_threads_share(tmp_path):
    processes = [start(tmp_path, threads=8, graphs=4) for _ in range(2)]
    for process in processes:
        assert finish(process) == []
    entries = list_entries(tmp_path)
    assert len(entries) >= 4
    assert not list(tmp_path.glob("*.tmp"))
    assert finish(start(tmp_path, graphs=4)) == []
    assert list_entries(tmp_path) == entries


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied"])
def test_damaged_entry_is_made_again(tmp_path, damage):
    assert finish(start(tmp_path)) == []
    entries = list_entries(tmp_path)
    assert entries
    for name in entries:
        path = tmp_path / name
        content = bytearray(path.read_bytes())
        if damage == "cut":
            del content[len(content) // 2:]
        elif damage == "changed":
            content[len(content) // 2] ^= 1
        else:
            content.clear()
        path.write_bytes(content)
    remarks = finish(start(tmp_path))
    assert remarks and all("is damaged" in remark for remark in remarks)
    assert finish(start(tmp_path)) == []


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    remark, = finish(start(tmp_path / "file" / "cache"))
    assert "compiled code is not kept: cannot write to" in remark


def test_no_cache(tmp_path):
    assert finish(start("")) == []


# Tunes a graph, or prints the schedule with which it is compiled.
TUNE = """
import json, re, sys
import fovea

t, s = "tensor<1x2x64x16xf32>", "tensor<1x2x64x64xf32>"
attend = fovea.compile(f'''func.func @attend(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %s = attn.scores %q, %k : {t}, {t} -> {s}
  %p = attn.softmax %s : {s} -> {s}
  %o = attn.values %p, %v : {s}, {t} -> {t}
  return %o : {t}
}}''', target=sys.argv[1])
if sys.argv[2] == "show":
    print(re.search("#attn.schedule<.*?>", attend.mlir("fused"))[0])
else:
    tuning = attend.tune(candidates=int(sys.argv[2]) or None)
    assert str(tuning).startswith("attention of line 4: "), str(tuning)
    print(json.dumps(tuning))
"""


def tune(folder, what):
    here = pathlib.Path(fovea.__file__).resolve().parents[1]
    environment = dict(os.environ, FOVEA_CACHE_DIR=str(folder),
                       PYTHONPATH=str(here))
    result = subprocess.run([sys.executable, "-c", TUNE, TARGET, str(what)],
                            env=environment, capture_output=True, text=True,
                            timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_tuned_schedule_is_taken(tmp_path):
    model = tune(tmp_path, "show")
    attention, = json.loads(tune(tmp_path, 5))["attentions"]
    schedules = attention["schedules"]
    assert len(schedules) == 5 and attention["valid"] >= 5
    assert schedules[0]["schedule"] == model
    predicted = [x["predicted_seconds"] for x in schedules]
    assert predicted == sorted(predicted)
    measured = [x["measured_seconds"] for x in schedules]
    assert measured[attention["best"]] == min(measured) > 0
    assert tune(tmp_path, "show") == schedules[attention["best"]]["schedule"]
    # What was kept belongs to the folder, and the model's choice stays the first.
    assert tune(tmp_path / "other", "show") == model
    everything, = json.loads(tune(tmp_path, 0))["attentions"]
    assert len(everything["schedules"]) == everything["valid"]
    assert everything["schedules"][0]["schedule"] == model


def test_tuning_needs_candidates_and_sizes():
    function = fovea.compile(
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  return %x : tensor<?xf32>\n}", target=TARGET)
    with pytest.raises(fovea.Error, match="candidates=0: expected at least 1"):
        function.tune(candidates=0)
    with pytest.raises(fovea.Error, match="dynamic sizes; give it operands"):
        function.tune()

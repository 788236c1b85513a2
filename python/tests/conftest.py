# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests import the package of this checkout, and their helpers."""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

if "FOVEA_CACHE_DIR" not in os.environ:
    # Not the user's.
    os.environ["FOVEA_CACHE_DIR"] = tempfile.mkdtemp(prefix="fovea-cache-")
    atexit.register(shutil.rmtree, os.environ["FOVEA_CACHE_DIR"],
                    ignore_errors=True)

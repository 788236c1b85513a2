"""Damages every entry of a cache folder."""
import pathlib
import sys

for path in pathlib.Path(sys.argv[1]).glob("llvmcache-*"):
    if not path.name.endswith(".timestamp"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

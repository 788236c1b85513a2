"""Runs the commands of a Markdown page, so that they cannot rot.

usage: markdown-commands.py PAGE ROOT

Commands are the lines of ```sh blocks; ```python blocks run as programs. All
run in a copy-free temporary folder in which ROOT's examples are visible. Exits
with 1 and the output of the first one that fails.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def main(page, root):
    text = pathlib.Path(page).read_text()
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.M | re.S)
    if not blocks:
        sys.exit(f"{page} has no commands")
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "python"))
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        for language, block in blocks:
            preload = ""
            if language == "python":
                command = [sys.executable, "-c", block]
                preload = os.environ.get("FOVEA_PRELOAD", "")
            else:
                command = ["bash", "-euo", "pipefail", "-c", block]
            done = subprocess.run(command, cwd=folder, text=True,
                                  env=dict(environment, LD_PRELOAD=preload),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                sys.exit(f"{page}: failed with {done.returncode}:\n{block}\n{done.stdout}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

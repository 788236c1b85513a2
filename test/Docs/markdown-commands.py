"""Runs the commands of a Markdown page as a reader would, and compares what they
print with what the page shows.

usage: markdown-commands.py PAGE ROOT BUILD [LIBRARY]

```sh blocks run in bash and ```python blocks as programs, in order, in a folder
in which all that ROOT has and BUILD (as build) are: the root of a checkout, but
that what commands write stays out of it. What a block exports, the later ones
have. The environment is a reader's: build/bin is not on the path, and Python's
and Fovea's variables are not set, unless the page does it.

Two things are not done again for `pip install`: the wheel takes LIBRARY, which
the build has made, and PyTorch, where a page installs it, is this Python's own,
with what it depends on.

A ```text block shows what the block in front of it prints. Its lines must come in
that order; between them may be others. In them
  ...  stands for anything, and
  a number with a fraction, an exponent or a percent sign for any such: it was
  measured, or differs between machines. Other numbers are as shown.

Every line of a ```sh block is a command, but for what ends in a backslash, and
must print something or write a file that is new: what a page tells a reader to
look at is there. `export` and `cd` need not.

Exits with 1 and says what is amiss at the first block that fails. That
scripts/demo, which the pages say is enough, builds the tools that they use is
checked, too.
"""

import importlib.metadata
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
MEASURED = re.compile(r"[-+]?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+|(?=%))")
# Of whoever runs the test.
PRIVATE = ("PYTHONPATH", "FOVEA_LIBRARY", "FOVEA_PTXAS", "VIRTUAL_ENV")
SILENT = ("export", "cd", ".")


class Failure(Exception):
    pass


def commands(block):
    return [line for line in block.replace("\\\n", " ").splitlines()
            if line.strip() and not line.startswith("#")]


def pattern(line):
    """What a shown line matches."""
    parts = []
    for part in re.split(r"(\.\.\.)", " ".join(line.split())):
        if part == "...":
            parts.append(".*")
            continue
        pieces = MEASURED.split(part)
        parts.append(MEASURED.pattern.join(re.escape(piece) for piece in pieces))
    return re.compile("".join(parts) + "$")


def compare(shown, output):
    """Raises Failure unless the lines of `shown` are in `output`, in order."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    next_line = 0
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        matches = pattern(line).match
        found = next((number for number in range(next_line, len(lines))
                      if matches(lines[number])), None)
        if found is None:
            raise Failure(f"the page shows\n{line}\nand printed was\n{output}")
        next_line = found + 1


class Reader:
    """Somebody at a shell, in a checkout that was built."""

    def __init__(self, folder, root, build, library=None):
        self.folder = folder
        self.state = pathlib.Path(folder) / ".state"
        for entry in root.iterdir():
            if not entry.name.startswith((".", "build")):
                os.symlink(entry, os.path.join(folder, entry.name))
        os.symlink(build, os.path.join(folder, "build"))
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in PRIVATE}
        bins = {os.path.realpath(build / "bin"), os.path.realpath(root / "build/bin")}
        self.environment["PATH"] = os.pathsep.join(
            entry for entry in os.environ["PATH"].split(os.pathsep)
            if os.path.realpath(entry) not in bins)
        if os.path.realpath(build) != os.path.realpath(root / "build"):
            # The package looks in build; another build is the reader's to name.
            self.environment["FOVEA_LIBRARY"] = str(build / "lib/libfovea.so")
        if library:
            self.environment["CMAKE_ARGS"] = f"-DFOVEA_PREBUILT={library}"

    def run(self, command, preload=""):
        script = (f"[ ! -e {self.state} ] || . {self.state}\n"
                  f"export LD_PRELOAD={shlex.quote(preload)}\n{command}\n"
                  f"unset LD_PRELOAD; export -p >{self.state}\n")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script],
                              cwd=self.folder, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failure(f"failed with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def shell(self, block):
        output = ""
        for command in commands(block):
            if re.match("pip install.* torch( |$)", command):
                self.lend("torch")
            before = set(os.listdir(self.folder))
            printed = self.run(command)
            made = set(os.listdir(self.folder)) - before - {".state"}
            if (not printed.strip() and not made
                    and shlex.split(command)[0] not in SILENT):
                raise Failure(f"prints nothing:\n{command}")
            output += printed
        return output

    def lend(self, name):
        """Shows a distribution of this Python, and what it depends on, to the
        environments that the page has made."""
        shelf = os.path.join(self.folder, ".lent")
        os.makedirs(shelf, exist_ok=True)
        pending, known = [name], set()
        while pending:
            name = pending.pop()
            if name in known:
                continue
            known.add(name)
            try:
                found = importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                continue  # For another platform.
            for top in {file.parts[0] for file in found.files} - {".."}:
                if not os.path.lexists(os.path.join(shelf, top)):
                    os.symlink(found.locate_file(top), os.path.join(shelf, top))
            pending += [re.match(r"[\w.-]+", text)[0]
                        for text in found.requires or () if "extra ==" not in text]
        for site in pathlib.Path(self.folder).glob("*/lib/python*/site-packages"):
            (site / "lent.pth").write_text(shelf)

    def python(self, block):
        file = pathlib.Path(self.folder) / "program.py"
        file.write_text(block)
        return self.run("python3 program.py", os.environ.get("FOVEA_PRELOAD", ""))


def check_demo(root, blocks):
    """What the commands use is what scripts/demo builds."""
    demo = (root / "scripts/demo").read_text()
    built = set(re.search(r"^build default (.*)$", demo, re.M).group(1).split())
    for language, block in blocks:
        needed = set()
        if language == "sh":
            needed = set(re.findall(r"(?:^|[|;&] *)(fovea-[a-z-]+)", block, re.M))
        elif language == "python":
            needed = {"FoveaCAPI"}
        if needed - built:
            raise Failure(f"scripts/demo does not build {needed - built}")


def main(page, root, build, library=None):
    root, build = pathlib.Path(root), pathlib.Path(build)
    blocks = FENCE.findall(pathlib.Path(page).read_text())
    if not any(language in ("sh", "python") for language, _ in blocks):
        sys.exit(f"{page} has no commands")
    block = output = ""
    try:
        check_demo(root, blocks)
        with tempfile.TemporaryDirectory() as folder:
            reader = Reader(folder, root, build, library)
            for language, block in blocks:
                if language == "sh":
                    output = reader.shell(block)
                elif language == "python":
                    output = reader.python(block)
                elif language == "text":
                    compare(block, output)
    except Failure as failure:
        sys.exit(f"{page}:\n{block}\n{failure}")


if __name__ == "__main__":
    main(*sys.argv[1:])

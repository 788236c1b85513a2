"""Compares the table of layers in docs/architecture.md with the tree.

Usage: layers.py ROOT. Prints what does not fit, or a summary."""
import os
import re
import sys

root = sys.argv[1]
errors = []


def read(*path):
    with open(os.path.join(root, *path), encoding="utf-8") as file:
        return file.read()


def read_table():
    """The folders that each folder may know, by the table."""
    rows = re.findall(r"^\| `([\w/]+)` \|[^|]*\|([^|]*)\|$",
                      read("docs", "architecture.md"), re.M)
    table = {}
    for folder, known in rows:
        names = set(re.findall(r"[A-Z]\w+(?:/\w+)*", known.split(";")[0]))
        names -= {"LLVM", "MLIR"}
        if "all above" in known:
            names = set(table)
        for name in sorted(names - set(table)):
            errors.append("architecture.md: `%s` names `%s`, which is not a "
                          "row above it" % (folder, name))
        table[folder] = names
    return table


def find_folder(path):
    """The row that a path below lib or include/fovea belongs to."""
    parts = os.path.normpath(path).split(os.sep)
    return "/".join(parts[:3]) if parts[0] == "Dialect" else parts[0]


def find_files():
    """Every file, by its path and by that below lib or include/fovea."""
    for top in ("lib", os.path.join("include", "fovea")):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), root)
                yield path, os.path.relpath(path, top)


def find_conversion(path):
    """The folder of Conversion that a path is in, or nothing."""
    parts = os.path.normpath(path).split(os.sep)
    return parts[1] if parts[0] == "Conversion" and len(parts) > 2 else None


def check(folder, other, what):
    if folder in table and other != folder and other not in table[folder]:
        errors.append("%s: %s may not know %s" % (what, folder, other))


table = read_table()
includes = links = 0
libraries, lists = {}, []
for path, place in find_files():
    folder = find_folder(place)
    if path.endswith((".h", ".cpp", ".td")):
        if folder not in table:
            errors.append("%s: the table has no row `%s`" % (path, folder))
        for name in re.findall(r'include "([^"]+)"', read(path)):
            if name.startswith(("mlir/", "llvm/", "fovea-c/")):
                continue
            target = (name[len("fovea/"):] if name.startswith("fovea/") else
                      os.path.join(os.path.dirname(place), name))
            includes += 1
            what = "%s includes %s" % (path, name)
            check(folder, find_folder(target), what)
            if find_conversion(target) not in (None, "Utils",
                                               find_conversion(place)):
                errors.append(what + ": conversions do not know one another")
    elif os.path.basename(path) == "CMakeLists.txt":
        text = read(path)
        lists.append((path, folder, text))
        for name in re.findall(r"add_library\((Fovea\w+)", text):
            libraries[name] = folder
for path, folder, text in lists:
    for names in re.findall(r"(?:LINK|PRIVATE|PUBLIC|INTERFACE)\s([^)]*)\)", text):
        for name in re.findall(r"Fovea\w+", names):
            if name in libraries:
                links += 1
                check(folder, libraries[name], "%s links %s" % (path, name))

# A source that no library builds is one that a move left behind.
built = {os.path.normpath(os.path.join(os.path.dirname(path), name))
         for path, _, text in lists for name in re.findall(r"[\w/]+\.cpp", text)}
errors += [path + ": no library builds it" for path, _ in find_files()
           if path.endswith(".cpp") and path.startswith("lib" + os.sep)
           and path not in built]

if errors:
    print("\n".join(errors))
    sys.exit(1)
print("%d folders, %d includes and %d links follow the table"
      % (len(table), includes, links))

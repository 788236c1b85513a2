# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a pass, its definition, its file and its tests have one name, by
the rule in CONTRIBUTING.md.

Usage: passes.py ROOT. Prints what does not fit, or a summary."""
import glob
import os
import re
import sys

root = sys.argv[1]
errors = []


def check_pass(folder, definition, flag):
    dialect = re.match(r"Dialect/(\w+)/", folder + "/")
    name = re.sub("^convert-", "", flag)
    if definition.lower() != name.replace("-", ""):
        errors.append("--%s: Passes.td calls it %s" % (flag, definition))
    if dialect:
        name = re.sub("^%s-" % dialect[1].lower(), "", name)

    lib = os.path.join(root, "lib", folder)
    files = [path for path in glob.glob(lib + "/**/*.cpp", recursive=True)
             if re.search(r"^#define GEN_PASS_DEF_%s$" % definition.upper(),
                          open(path, encoding="utf-8").read(), re.M)]
    stem = name.replace("-", "")
    for path in files:
        place = os.path.relpath(path, root)
        if os.path.basename(path)[:-len(".cpp")].lower() != stem:
            errors.append("--%s: is in %s" % (flag, place))
        debug = re.search(r'^#define DEBUG_TYPE "(.*)"',
                          open(path, encoding="utf-8").read(), re.M)
        if debug and debug[1] != flag:
            errors.append("--%s: its DEBUG_TYPE is %s" % (flag, debug[1]))
    if len(files) != 1:
        errors.append("--%s: %d files below lib/%s define it"
                      % (flag, len(files), folder))

    if folder == "Conversion":
        tests = "test/Conversion/%s/*" % definition
    elif dialect:
        tests = "test/Dialect/%s/%s*" % (dialect[1], name)
    else:
        tests = "test/%s/%s*" % (folder, name)
    if not any(flag in open(path, encoding="utf-8").read()
               for path in glob.glob(os.path.join(root, tests))):
        errors.append("--%s: no test of it is %s" % (flag, tests))


count = 0
include = os.path.join(root, "include", "fovea")
for path in sorted(glob.glob(include + "/**/Passes.td", recursive=True)):
    folder = os.path.relpath(os.path.dirname(path), include)
    text = open(path, encoding="utf-8").read()
    for found in re.finditer(r'^def (\w+)\s*: Pass<"([\w-]+)"', text, re.M):
        check_pass(folder, *found.groups())
        count += 1

for error in errors:
    print(error)
if not errors:
    print("%d passes follow the rule" % count)
sys.exit(bool(errors))

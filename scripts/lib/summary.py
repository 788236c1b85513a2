"""Adds up the results of lit, GoogleTest and pytest in a folder.

Prints what was skipped and why, and at last one line, "N passed, N failed, N
skipped". Exits with 1 if a test failed, if a runner ran none (but for tests of
others whose source could not be fetched, which are named), or if a test was
skipped for another reason than those below: the machine that runs the tests has
all that scripts/test can install.
"""

import ast
import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# Requirements that no script can install, and reasons that others have.
ALLOWED = re.compile("needs (a GPU|a user who is not root"
                     "|a processor with AVX-512|a build without AddressSanitizer)"
                     "|theirs: ")
# Features of lit's tests that stand for one of these requirements.
FEATURES = {"no-sanitizer": "a build without AddressSanitizer",
            "avx512": "a processor with AVX-512",
            "avx512-bf16": "a processor with AVX-512 and products of bf16"}


def lit(path):
    """Counts (passed, failed) and a list of (test, why it was skipped)."""
    tests = json.loads(path.read_text())["tests"]
    skipped = []
    for test in tests:
        if test["code"] == "UNSUPPORTED":
            missing = re.search("unavailable features: (.*)", test["output"])
            names = missing.group(1).split(", ") if missing else ["unknown"]
            skipped.append((test["name"].replace("Fovea :: ", ""), "needs " +
                            ", ".join(FEATURES.get(n, n) for n in names)))
    passed = sum(test["code"] == "PASS" for test in tests)
    return passed, len(tests) - passed - len(skipped), skipped


def junit(path):
    """As lit(), of the XML that GoogleTest and pytest write."""
    passed, failed, skipped = 0, 0, []
    for test in ElementTree.parse(path).getroot().iter("testcase"):
        reason = test.find("skipped")
        if test.get("status") == "notrun":
            skipped.append((test.get("name"), "disabled"))
        elif reason is not None:
            # GoogleTest's message starts with the line in the source. For a
            # file that pytest skips as a whole, the reason is in the text.
            why = reason.get("message").split("\n", 1)[-1].strip()
            if why == "collection skipped":
                why = ast.literal_eval(reason.text)[-1].removeprefix("Skipped: ")
            skipped.append((f"{test.get('classname')}.{test.get('name')}", why))
        elif test.find("failure") is not None or test.find("error") is not None:
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped


def others(path):
    """As junit(); tests that others wrote skip what they like."""
    passed, failed, skipped = junit(path)
    return passed, failed, [(test, f"theirs: {why}") for test, why in skipped]


def show_skipped(skipped):
    """Prints the skipped tests by reason; returns if all of them may be."""
    reasons = collections.defaultdict(list)
    for test, reason in skipped:
        reasons[reason].append(test)
    fine = True
    for reason, tests in sorted(reasons.items()):
        allowed = ALLOWED.match(reason)
        fine &= bool(allowed)
        print("\n{}: {} {}:".format("skipped" if allowed else "SKIPPED, which fails"
                                    " this run", len(tests), reason))
        for test in sorted(tests):
            print("    " + test)
    return fine


def main(folder):
    totals = [0, 0]
    skipped = []
    runners = {"lit": ("lit.json", lit), "unit": ("gtest-*.xml", junit),
               "python": ("pytest.xml", junit), "others": ("others-*.xml", others)}
    complete = True
    print()
    for name, (pattern, read) in runners.items():
        if (folder / f"without-{name}").exists():
            continue
        counts = [0, 0]
        missing = []
        for path in sorted(folder.glob(pattern)):
            *numbers, some = read(path)
            counts = [a + b for a, b in zip(counts, numbers)]
            missing += some
        print("{:>8}: {:5} passed, {} failed, {} skipped".format(
            name, *counts, len(missing)))
        complete &= counts[0] > 0 or any(folder.glob(f"{name}-*.missing"))
        totals = [a + b for a, b in zip(totals, counts)]
        skipped += missing
    fine = show_skipped(skipped)
    for path in sorted(folder.glob("others-*.missing")):
        print(f"\nNOT RUN, as its source could not be fetched: {path.stem}")
    print("\n{} passed, {} failed, {} skipped".format(*totals, len(skipped)))
    return 0 if complete and fine and totals[1] == 0 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

"""Adds up the results of lit, GoogleTest and pytest in a folder.

Prints one line, "N passed, N failed, N skipped", where skipped counts what this
machine does not support. Exits with 1 if a test failed or a runner ran none.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def lit(path):
    codes = [test["code"] for test in json.loads(path.read_text())["tests"]]
    passed = codes.count("PASS")
    skipped = codes.count("UNSUPPORTED")
    return passed, len(codes) - passed - skipped, skipped


def gtest(path):
    report = json.loads(path.read_text())
    skipped = sum(test["result"] == "SKIPPED" for suite in report["testsuites"]
                  for test in suite["testsuite"])
    failed = report["failures"] + report.get("errors", 0)
    return report["tests"] - failed - skipped, failed, skipped


def pytest(path):
    suite = ElementTree.parse(path).getroot().find("testsuite")
    count = lambda key: int(suite.get(key))
    failed = count("failures") + count("errors")
    return count("tests") - failed - count("skipped"), failed, count("skipped")


def main(folder):
    totals = [0, 0, 0]
    runners = {"lit": ("lit.json", lit), "unit": ("gtest-*.json", gtest),
               "python": ("pytest.xml", pytest)}
    complete = True
    print()
    for name, (pattern, read) in runners.items():
        counts = [0, 0, 0]
        for path in sorted(folder.glob(pattern)):
            counts = [a + b for a, b in zip(counts, read(path))]
        print("{:>8}: {:5} passed, {} failed, {} unsupported".format(name, *counts))
        complete &= counts[0] > 0
        totals = [a + b for a, b in zip(totals, counts)]
    print("\n{} passed, {} failed, {} skipped".format(*totals))
    return 0 if complete and totals[1] == 0 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

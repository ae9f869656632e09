"""Every test that docs/promises.md names exists: a promise does not outlive the test that could
refute it."""

import pathlib
import re
import sys

NAMES = re.compile(r"`([A-Z]\w+\.[A-Z]\w+|test_\w+|tests/\w+\.py|fuzz/replay\.cc)`")
UNIT_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
COMMAND_TEST = re.compile(r"def (test_\w+)")


def existing_tests(root):
    tests = {f"tests/{path.name}" for path in (root / "tests").glob("*.py")} | {"fuzz/replay.cc"}
    for path in [*(root / "src").rglob("*_test.cc"), *(root / "tests").glob("*_test.cc")]:
        tests |= {f"{suite}.{name}" for suite, name in UNIT_TEST.findall(path.read_text())}
    for path in (root / "tests").glob("*_test.py"):
        tests |= set(COMMAND_TEST.findall(path.read_text()))
    return tests


def main(root):
    named = NAMES.findall((root / "docs" / "promises.md").read_text())
    missing = sorted(set(named) - existing_tests(root))
    for name in missing:
        print(f"docs/promises.md names {name}, which is no test")
    rows = [line for line in (root / "docs" / "promises.md").read_text().splitlines()
            if line.startswith("|") and "---" not in line and not line.startswith("| promise")]
    without = [row for row in rows if not NAMES.search(row)]
    for row in without:
        print(f"docs/promises.md has a promise without a test: {row}")
    print(f"{len(rows)} promises, {len(set(named))} tests")
    return 1 if missing or without or not rows else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

"""Fails when clang-format would change a source file."""

import pathlib
import subprocess
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    files = [p for folder in ("src", "include", "bench", "examples", "fuzz")
             for p in sorted((root / folder).rglob("*")) if p.suffix in {".h", ".cc"}]
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", *files],
                            capture_output=True, text=True)
    print(result.stderr[:4000] or f"{len(files)} files are formatted")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())

"""Fails when a folder of src/ includes a higher one, or torch appears where it must not.

The numbers are those of docs/ARCHITECTURE.md: a folder includes only folders of a lower number.
"""

import pathlib
import re
import sys

LEVELS = {
    "base": 0,
    "os": 1,
    "kernel": 2,
    "formats": 1,
    "kinds": 1,
    "compression": 1,
    "optimizer": 1,
    "cluster": 2,
    "transport": 3,
    "rpc": 3,
    "meet": 3,
    "collective": 4,
    "tensor": 4,
    "group": 5,
    "programs": 5,
    "server": 5,
    "gossip": 5,
    "checkpoint": 5,
    "events": 5,
    "data": 5,
    "model": 5,
    "launch": 5,
    "artefact": 6,
    "strategy": 6,
    "job": 7,
    "parallel": 8,
    "train": 8,
    "score": 9,
    "bench": 9,
    "chaos": 9,
    "cli": 12,
}
TORCH_FREE = {"base", "os", "formats", "kernel", "kinds", "cluster", "compression", "optimizer", "transport", "rpc", "collective",
              "group", "programs", "server", "gossip", "launch", "checkpoint", "events", "chaos"}
# Public headers that bring torch with them.
TORCH_HEADERS = {"cohort/dataset.h", "cohort/loaded_model.h", "cohort/model.h", "cohort/cohort.h",
                 "cohort/group.h", "cohort/data_parallel.h", "cohort/distributed_sampler.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def complaints_of(path, room, source):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        where = f"{path.relative_to(source.parent)}:{number}"
        other = header.split("/")[0]
        if '"' in line and other not in LEVELS and not (path.parent / header).exists() \
                and not header.endswith(".pb.h"):
            yield f'{where}: "{header}" is in no known folder'
        if other in LEVELS and "/" in header and other != room and LEVELS[other] >= LEVELS[room]:
            yield (f"{where}: {room} ({LEVELS[room]}) must not include {other} ({LEVELS[other]})")
        if room in TORCH_FREE and other in LEVELS and "/" in header and other not in TORCH_FREE:
            yield f"{where}: {room} must be free of torch, but includes {other}, which need not be"
        is_torch = other in {"torch", "ATen", "c10"} or header in TORCH_HEADERS
        if is_torch and room in TORCH_FREE and not path.name.endswith("_torch_test.cc"):
            yield f"{where}: {room} must be free of torch, but includes {header}"


def check(source):
    complaints = []
    for folder in sorted(p for p in source.iterdir() if p.is_dir()):
        if folder.name not in LEVELS:
            complaints.append(f"src/{folder.name} has no number in tests/include_order.py")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".h", ".cc"}:
                complaints += complaints_of(path, folder.name, source)
    return complaints


def main():
    complaints = check(pathlib.Path(sys.argv[1]) / "src")
    print("\n".join(complaints) or "every folder includes only lower ones")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

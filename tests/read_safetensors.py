#!/usr/bin/env python3
"""Prints a JSON line {name, dtype, shape, sum} per tensor of a file: read_safetensors.py FILE

Written from the format's description alone. Exits with 1 and the reason where the file is wrong.
"""
import json
import math
import pathlib
import struct
import sys

TYPES = {"F32": "f", "F64": "d", "I64": "q"}


def arrays(content):
    """(name, dtype, shape, numbers) of every tensor, in the order in which they stand."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    values = content[8 + length:]
    reached = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if begin != reached:
            raise ValueError(f"tensor {name!r} begins at {begin} instead of {reached}")
        numbers = struct.unpack(f"<{math.prod(entry['shape'])}{TYPES[entry['dtype']]}",
                                values[begin:end])
        yield name, entry["dtype"], entry["shape"], numbers
        reached = end
    if reached != len(values):
        raise ValueError(f"{len(values) - reached} bytes belong to no tensor")


def tensors(content):
    for name, dtype, shape, numbers in arrays(content):
        yield {"name": name, "dtype": dtype, "shape": shape, "sum": sum(numbers)}


def main():
    try:
        for tensor in tensors(pathlib.Path(sys.argv[1]).read_bytes()):
            print(json.dumps(tensor))
    except (ValueError, KeyError, OSError, struct.error) as wrong:
        sys.exit(f"{sys.argv[1]}: {wrong}")


if __name__ == "__main__":
    main()

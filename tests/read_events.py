#!/usr/bin/env python3
"""Reads the TensorBoard event files of a folder and checks them: read_events.py FOLDER

Written from the description of the format alone, with nothing but Python's own library, so that it
cannot share a mistake with the program that wrote the files. Prints a JSON line {step, tag, value}
per value (a histogram's value is an object), and {step, "session", "start"} where a session starts:
from there on TensorBoard forgets what was said before of that step and later ones. Exits with 1 and
the reason where anything is wrong.
"""
import json
import pathlib
import re
import struct
import sys

FILE_NAME = re.compile(r"events\.out\.tfevents\.\d{10}\.[^/]+\.\d+\.\d+")
VERSION = "brain.Event:2"
SESSION_START = 1


class Wrong(Exception):
    pass


def make_crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = make_crc_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The data of every frame: length, checksum of the length, data, checksum of the data."""
    at = 0
    while at < len(content):
        if len(content) - at < 16:
            raise Wrong(f"truncated frame at byte {at}")
        length, length_crc = struct.unpack_from("<QI", content, at)
        if masked_crc32c(content[at:at + 8]) != length_crc:
            raise Wrong(f"wrong checksum of the length at byte {at}")
        begin, end = at + 12, at + 12 + length
        if end + 4 > len(content):
            raise Wrong(f"truncated record at byte {at}")
        data = content[begin:end]
        if masked_crc32c(data) != struct.unpack_from("<I", content, end)[0]:
            raise Wrong(f"wrong checksum of the data at byte {at}")
        yield data
        at = end + 4


def varint(data, at):
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Wrong("a message ends inside a number")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value & (1 << 64) - 1, at
    raise Wrong("a number of more than ten bytes")


def fields(data):
    """The fields of a protobuf message: (number, wire type, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == 2:
            length, at = varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise Wrong(f"unknown wire type {wire}")
        if at + length > len(data):
            raise Wrong("a field goes beyond its message")
        yield number, wire, data[at:at + length]
        at += length


def expect(wire, wanted, what):
    if wire != wanted:
        raise Wrong(f"{what} has wire type {wire} instead of {wanted}")


def double(wire, value, what):
    expect(wire, 1, what)
    return struct.unpack("<d", value)[0]


def doubles(wire, value, what):
    expect(wire, 2, what)
    return list(struct.unpack(f"<{len(value) // 8}d", value))


def parse_histogram(data):
    names = {1: "min", 2: "max", 3: "num", 4: "sum", 5: "sum_squares"}
    histogram = dict.fromkeys(names.values(), 0.0) | {"bucket_limit": [], "bucket": []}
    for number, wire, value in fields(data):
        if number in names:
            histogram[names[number]] = double(wire, value, names[number])
        elif number in (6, 7):
            name = "bucket_limit" if number == 6 else "bucket"
            histogram[name] += doubles(wire, value, name)
    limits, counts = histogram["bucket_limit"], histogram["bucket"]
    if not limits or len(limits) != len(counts):
        raise Wrong(f"a histogram of {len(limits)} limits and {len(counts)} buckets")
    if any(a >= b for a, b in zip(limits, limits[1:])):
        raise Wrong("a histogram whose limits do not rise")
    if sum(counts) != histogram["num"]:
        raise Wrong(f"a histogram of {histogram['num']} values with {sum(counts)} in its buckets")
    return histogram


def parse_value(data):
    tag = value = None
    for number, wire, content in fields(data):
        if number == 1:
            expect(wire, 2, "tag")
            tag = content.decode()
        elif number == 2:
            expect(wire, 5, "simple_value")
            value = struct.unpack("<f", content)[0]
        elif number == 5:
            expect(wire, 2, "histo")
            value = parse_histogram(content)
    if not tag or value is None:
        raise Wrong(f"a summary value with tag {tag!r} and value {value!r}")
    return tag, value


def parse_event(data):
    event = {"wall_time": 0.0, "step": 0, "version": None, "values": [], "session": None}
    for number, wire, value in fields(data):
        if number == 1:
            event["wall_time"] = double(wire, value, "wall_time")
        elif number == 2:
            expect(wire, 0, "step")
            event["step"] = value - (1 << 64) if value >> 63 else value
        elif number == 3:
            expect(wire, 2, "file_version")
            event["version"] = value.decode()
        elif number == 5:
            expect(wire, 2, "summary")
            event["values"] += [parse_value(v) for n, _, v in fields(value) if n == 1]
        elif number == 7:
            expect(wire, 2, "session_log")
            event["session"] = dict((n, v) for n, _, v in fields(value)).get(1, 0)
    return event


def read_file(path):
    if not FILE_NAME.fullmatch(path.name):
        raise Wrong("the name is not events.out.tfevents.<10-digit seconds>.<host>.<pid>.<uid>")
    events = [parse_event(data) for data in records(path.read_bytes())]
    if not events:
        raise Wrong("no events")
    if events[0]["version"] != VERSION:
        raise Wrong(f"the first event has file_version {events[0]['version']!r}, not {VERSION!r}")
    for event in events:
        if event["wall_time"] <= 0:
            raise Wrong("an event without wall_time")
        if event is not events[0] and event["version"] is not None:
            raise Wrong("a second file_version")
    return events


def check_order(event, last_step):
    """Steps of a tag never go back, but for a session that starts again at an earlier step."""
    if event["session"] == SESSION_START:
        for tag in last_step:
            last_step[tag] = min(last_step[tag], event["step"])
    for tag, _ in event["values"]:
        if event["step"] < last_step.get(tag, 0):
            raise Wrong(f"step {event['step']} of {tag!r} comes after step {last_step[tag]}")
        last_step[tag] = event["step"]


def read_folder(folder):
    paths = [path for path in pathlib.Path(folder).iterdir() if "tfevents" in path.name]
    if not paths:
        raise Wrong(f"{folder}: no event file")
    files = []
    for path in paths:
        try:
            files.append((path, read_file(path)))
        except (Wrong, UnicodeDecodeError, struct.error) as wrong:
            raise Wrong(f"{path}: {wrong}")
    files.sort(key=lambda file: file[0].name)
    if files != sorted(files, key=lambda file: file[1][0]["wall_time"]):
        raise Wrong(f"{folder}: the names of the files are not in the order of their times")
    last_step = {}
    for path, events in files:
        for event in events:
            try:
                check_order(event, last_step)
            except Wrong as wrong:
                raise Wrong(f"{path}: {wrong}")
            if event["session"] == SESSION_START:
                yield {"step": event["step"], "tag": "session", "value": "start"}
            for tag, value in event["values"]:
                yield {"step": event["step"], "tag": tag, "value": value}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: read_events.py FOLDER")
    try:
        for value in read_folder(sys.argv[1]):
            print(json.dumps(value))
    except (Wrong, OSError) as wrong:
        sys.exit(f"read_events.py: {wrong}")


if __name__ == "__main__":
    main()

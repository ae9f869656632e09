"""Compression on a slow link: two hosts (network namespaces) with 100 Mbit/s between them.

    sudo python3 bench/slow_link.py build/release/cohort [--rate 100mbit] [--rounds 7] [--steps 12]

Trains the 11.6 M parameter MLP on digits with plain all-reduce and with each codec, in turn, round
by round, and prints samples/s and how many times faster each codec is (median of the rounds).
"""

import argparse
import pathlib
import statistics
import tempfile

from two_namespaces import WIDE_MLP, TwoHosts

CODECS = ["none", "fp16", "int8", "sign", "topk", "lowrank", "auto"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--rate", default="100mbit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--only", nargs="*", default=CODECS)
    options = parser.parse_args()
    rates = {codec: [] for codec in CODECS if codec in options.only or codec == "none"}
    sent = {}
    with TwoHosts(options.rate) as hosts, tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder, "job.toml")
        for number in range(options.rounds):
            for codec, values in rates.items():
                # auto tries for its first 16 steps.
                steps = options.steps + (20 if codec == "auto" else 0)
                job.write_text(WIDE_MLP.format(steps=steps, batch=256))
                summary = hosts.train(options.command, job, f"{folder}/{codec}-{number}",
                                      ["--set", f"strategy.compression.kind={codec}"])
                values.append(summary["samples_per_second"])
                sent[codec] = summary["bytes_sent"] / summary["steps"] / 2
    print(f"{'codec':<8} {'samples/s':>10} {'lowest':>8} {'highest':>8} {'x plain':>8} {'MB/step':>8}")
    for codec, values in rates.items():
        ratios = [own / plain for own, plain in zip(values, rates["none"])]
        print(f"{codec:<8} {statistics.median(values):>10.0f} {min(values):>8.0f} "
              f"{max(values):>8.0f} {statistics.median(ratios):>8.2f} {sent[codec] / 1e6:>8.2f}")


main()

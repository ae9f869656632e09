"""Compression on a slow link: two hosts (network namespaces) with 100 Mbit/s between them.

    sudo python3 bench/slow_link.py build/release/cohort [--rate 100mbit] [--rounds 7] [--steps 12]

Trains the 11.6 M parameter MLP on digits with plain all-reduce and with each codec, in turn, round
by round, and prints samples/s and how many times faster each codec is (median of the rounds).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

JOB = """
[job]
name = "slow-link"
seed = 3
[model]
preset = "mlp"
hidden = [4096, 2048]
[data]
kind = "generated"
task = "digits"
samples = 6000
[train]
steps = {steps}
batch = 256
validate = "never"
optimizer = {{ kind = "sgd", lr = 0.02, momentum = 0.9 }}
[log]
tensorboard = false
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class TwoHosts:
    """Two namespaces joined by a cable of limited rate, removed at the end."""

    def __init__(self, rate):
        self.names = [f"slow-{os.getpid()}-{i}" for i in range(2)]
        cards = [f"s{os.getpid()}n{i}" for i in range(2)]
        for name in self.names:
            ip("netns", "add", name)
        ip("link", "add", cards[0], "netns", self.names[0], "type", "veth",
           "peer", "name", cards[1], "netns", self.names[1])
        for i, (name, card) in enumerate(zip(self.names, cards)):
            ip("-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", card)
            ip("-n", name, "link", "set", card, "up")
            ip("-n", name, "link", "set", "lo", "up")
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", card, "root",
                            "tbf", "rate", rate, "burst", "256kb", "latency", "400ms"], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names:
            ip("netns", "del", name)

    def train(self, command, job, run_dir, words):
        environment = dict(os.environ, WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="10.78.0.1",
                           MASTER_PORT="29544")
        ranks = [subprocess.Popen(
            ["ip", "netns", "exec", name, "taskset", "-c", str(rank % os.cpu_count()), command,
             "train", job, "--quiet", "--run-dir", f"{run_dir}-{rank}",
             "--set", "cluster.timeout_seconds=300", *words],
            env=environment | {"RANK": str(rank)}) for rank, name in enumerate(self.names)]
        if any([rank.wait(timeout=900) for rank in ranks]):
            raise SystemExit(f"training with {words} failed")
        return json.loads(pathlib.Path(f"{run_dir}-0", "summary.json").read_text())


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
                job.write_text(JOB.format(steps=steps))
                summary = hosts.train(os.path.abspath(options.command), job,
                                      f"{folder}/{codec}-{number}",
                                      ["--set", f"strategy.compression.kind={codec}"])
                values.append(summary["samples_per_second"])
                sent[codec] = summary["bytes_sent"] / summary["steps"] / 2
    print(f"{'codec':<8} {'samples/s':>10} {'lowest':>8} {'highest':>8} {'x plain':>8} {'MB/step':>8}")
    for codec, values in rates.items():
        ratios = [own / plain for own, plain in zip(values, rates["none"])]
        print(f"{codec:<8} {statistics.median(values):>10.0f} {min(values):>8.0f} "
              f"{max(values):>8.0f} {statistics.median(ratios):>8.2f} {sent[codec] / 1e6:>8.2f}")


main()

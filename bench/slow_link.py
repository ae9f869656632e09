"""Compression on a slow link: two hosts (network namespaces) with 100 Mbit/s between them.

    sudo python3 bench/slow_link.py build/release/cohort [--rate 100mbit] [--rounds 7] [--steps 12]
        [--learn-steps 60] [--only CODEC ...]

Trains the 11.6 M parameter MLP on digits with gradients as they are, with factors (what the job
does that says nothing) and with each codec, in turn, round by round, and prints samples/s and how many times faster each codec is (median of the rounds). Then
each trains once more on that link, all for the same number of steps, for the accuracy it reaches
on the validation set by then.
"""

import argparse
import pathlib
import statistics
import tempfile

from two_namespaces import WIDE_MLP, TwoHosts

FACTORS = "factors"
CODECS = ["none", FACTORS, "fp16", "int8", "sign", "topk", "lowrank", "auto"]
BATCH = 256


def settings_of(codec):
    """Exact factors are no codec, but stand in the same table."""
    if codec == FACTORS:
        return ["--set", "strategy.factors=true"]
    return ["--set", f"strategy.compression.kind={codec}", "--set", "strategy.factors=false"]


class SlowLink:
    def __init__(self, hosts, command, folder):
        self.hosts, self.command, self.folder = hosts, command, folder

    def train(self, codec, steps, *words):
        job = pathlib.Path(self.folder, "job.toml")
        job.write_text(WIDE_MLP.format(steps=steps, batch=BATCH))
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            return self.hosts.train(self.command, job, f"{run}/run",
                                    [*settings_of(codec), *words])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--rate", default="100mbit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--learn-steps", type=int, default=60)
    parser.add_argument("--only", nargs="*", default=CODECS)
    options = parser.parse_args()
    rates = {codec: [] for codec in CODECS if codec in options.only or codec == "none"}
    sent, accuracy = {}, {}
    with TwoHosts(options.rate) as hosts, tempfile.TemporaryDirectory() as folder:
        link = SlowLink(hosts, options.command, folder)
        for number in range(options.rounds):
            for codec, values in rates.items():
                # auto may try for its first 16 steps.
                summary = link.train(codec, options.steps + (20 if codec == "auto" else 0))
                if summary["samples_per_second"] is None:
                    raise SystemExit(f"{options.steps} steps are too few to tell a rate")
                values.append(summary["samples_per_second"])
                sent[codec] = summary["bytes_sent"] / summary["steps"] / 2
                print(f"round {number + 1}: {codec} {values[-1]:.0f} samples/s", flush=True)
        for codec in rates:
            summary = link.train(codec, options.learn_steps, "--set", "train.validate=end")
            accuracy[codec] = summary["accuracy"]
            print(f"{codec}: {accuracy[codec]:.2%}", flush=True)
    print(f"{options.rate}, median of {options.rounds} rounds; "
          f"accuracy after {options.learn_steps} steps of {BATCH} samples, one run each")
    print(f"{'codec':<8} {'samples/s':>10} {'lowest':>8} {'highest':>8} {'x plain':>8} "
          f"{'MB/step':>8} {'accuracy':>9}")
    for codec, values in rates.items():
        ratios = [own / plain for own, plain in zip(values, rates["none"])]
        print(f"{codec:<8} {statistics.median(values):>10.0f} {min(values):>8.0f} "
              f"{max(values):>8.0f} {statistics.median(ratios):>8.2f} {sent[codec] / 1e6:>8.2f} "
              f"{accuracy[codec]:>9.2%}")


main()

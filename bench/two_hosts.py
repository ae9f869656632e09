"""Training between two hosts (network namespaces): Cohort beside PyTorch's DDP.

    sudo python3 bench/two_hosts.py build/release/cohort [--rate 1gbit|none] [--rounds 7]
        [--steps 30] [--batch 128] [--python /usr/bin/python3] [--against OTHER_COHORT]

The wide MLP of `cohort bench train`, one rank and one core per host, Gloo between them. In every
round Cohort and DDP train one after the other, DDP as it is installed and tuned, which is with
all that Cohort gives itself. Cohort sends what linear layers' gradients are the products of, as it
does by itself with layers this wide ("Cohort"); or, with `strategy.factors = false`, gradients as they
are, and these with `compression.kind = "auto"` (whose rate is of all steps after the first ones, those
in which it tries included). The limit is two trainings that do not talk. Prints the time of a step and how many times faster Cohort is, by itself and with gradients:
the median of the rounds' own ratios, and the lowest and highest.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from two_namespaces import WIDE_MLP, TwoHosts

SKIPPED = 5  # Steps that Cohort leaves out of its rate.
GRADIENTS = "Cohort, gradients"
DDP = pathlib.Path(__file__).with_name("ddp_train.py")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "17179869184",
          "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def settings_of_cohort(command):
    """What Cohort's kernels need in the environment on this CPU."""
    lines = subprocess.run([command, "doctor", "--settings"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def cohort_step(hosts, command, options, folder, strategy=""):
    job = pathlib.Path(folder, "job.toml")
    job.write_text(WIDE_MLP.format(steps=SKIPPED + options.steps, batch=2 * options.batch)
                   + f"[strategy]\n{strategy}\n")
    with tempfile.TemporaryDirectory(dir=folder) as run:
        summary = hosts.train(command, job, f"{run}/run")
    return 2 * options.batch / summary["samples_per_second"]


def silent_step(hosts, options, folder):
    """Each host trains for itself."""
    job = pathlib.Path(folder, "job.toml")
    job.write_text(WIDE_MLP.format(steps=SKIPPED + options.steps, batch=options.batch))
    unset = [word for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") for word in ("-u", name)]
    with tempfile.TemporaryDirectory(dir=folder) as runs:
        hosts.run(lambda rank: ["env", *unset, os.path.abspath(options.command), "train", job, "--workers", "1", "--quiet",
                                "--run-dir", f"{runs}/{rank}"], os.environ)
        rates = [json.loads(pathlib.Path(runs, str(rank), "summary.json").read_text())["samples_per_second"]
                 for rank in (0, 1)]
    return options.batch / min(rates)


def ddp_step(hosts, options, variables):
    words = [options.python, DDP, "wide-mlp", str(SKIPPED), str(options.steps), str(options.batch)]
    outputs = hosts.run(lambda rank: words, dict(os.environ) | ONE_THREAD | variables)
    return max(options.batch / json.loads(line)["samples_per_second"] for line in outputs)


def cpu():
    with open("/proc/cpuinfo") as lines:
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores of {name}, load {os.getloadavg()[0]:.1f} before"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--rate", default="1gbit", help="of the cable, or none")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=30, help="that are timed")
    parser.add_argument("--batch", type=int, default=128, help="of each host")
    parser.add_argument("--python", default="/usr/bin/python3", help="whose torch is the peer")
    parser.add_argument("--against", help="another build of Cohort")
    options = parser.parse_args()
    print(f"rate {options.rate}, batch {options.batch} per host, {options.rounds} rounds; {cpu()}")
    settings = settings_of_cohort(options.command)
    with TwoHosts(options.rate) as hosts, tempfile.TemporaryDirectory() as folder:
        ways = {"Cohort": lambda: cohort_step(hosts, options.command, options, folder),
                GRADIENTS: lambda: cohort_step(hosts, options.command, options, folder,
                                               "factors = false"),
                "gradients, auto": lambda: cohort_step(
                    hosts, options.command, options, folder,
                    'factors = false\ncompression.kind = "auto"'),
                "nobody talks": lambda: silent_step(hosts, options, folder),
                "PyTorch DDP": lambda: ddp_step(hosts, options, {}),
                "PyTorch DDP, tuned": lambda: ddp_step(hosts, options, MALLOC | settings)}
        if options.against:
            ways["other Cohort"] = lambda: cohort_step(hosts, options.against, options, folder)
        times = {name: [] for name in ways}
        for number in range(options.rounds):
            order = list(ways)
            for name in order[number % len(order):] + order[:number % len(order)]:
                times[name].append(ways[name]())
    print(f"{'':<20} {'ms a step':>10} {'lowest':>8} {'highest':>8} {'Cohort is':>22} "
          f"{'with gradients':>22}")
    for name, values in times.items():
        shown = ""
        for ours in ("Cohort", GRADIENTS):
            ratios = [other / own for own, other in zip(times[ours], values)]
            shown += f" {statistics.median(ratios):>6.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{name:<20} {statistics.median(values) * 1e3:>10.1f} {min(values) * 1e3:>8.1f} "
              f"{max(values) * 1e3:>8.1f}{shown}")


main()

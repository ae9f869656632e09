"""Uneven machines: four workers, one of them held to a quarter of a core (a control group's quota).

    sudo python3 bench/uneven.py build/release/cohort [--epochs 1]

For each strategy: how long a fast worker stands still for others, as a share of the run's steps.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

SLOW = 3
STRATEGIES = {
    "all-reduce": [],
    "server, sync": ["--strategy", "parameter-server"],
    "server, bounded 8": ["--strategy", "parameter-server", "--set", "strategy.consistency=bounded",
                          "--set", "strategy.staleness=8"],
    "server, async": ["--strategy", "parameter-server", "--set", "strategy.consistency=async"],
    "gossip": ["--strategy", "gossip"],
}


@contextlib.contextmanager
def quarter_of_a_core():
    """A control group; yields a function that puts a process into it."""
    old = pathlib.Path("/sys/fs/cgroup/cpu")
    group = (old if old.exists() else pathlib.Path("/sys/fs/cgroup")) / f"cohort-{os.getpid()}"
    group.mkdir()
    try:
        if old.exists():
            (group / "cpu.cfs_period_us").write_text("20000")
            (group / "cpu.cfs_quota_us").write_text("5000")
        else:
            (group / "cpu.max").write_text("5000 20000")
        yield lambda pid: (group / "cgroup.procs").write_text(str(pid))
    finally:
        group.rmdir()


def children_of(pid):
    """Of all threads of a process; none where it, or a thread, has just ended."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    except OSError:
        pass
    return found


def tasks_of(command):
    """Workers of the run that the process `command` has started: its launcher's children."""
    return [task for launcher in children_of(command) for task in children_of(launcher)]


def idle_shares(command, job, folder, words):
    with quarter_of_a_core() as hold:
        process = subprocess.Popen([command, "train", job, "--workers", "4", "--quiet", "--run-dir",
                                    folder, "--set", "train.validate=never", *words])
        while len(tasks_of(process.pid)) <= SLOW:
            time.sleep(0.001)
        hold(tasks_of(process.pid)[SLOW])
        if process.wait() != 0:
            raise SystemExit(f"{words} failed")
    summary = json.loads(pathlib.Path(folder, "summary.json").read_text())
    workers = [task for task in summary["tasks"] if task["role"] != "server"]
    shares = [task["wait_seconds"] / (task["wait_seconds"] + task["steps"] * task["step_seconds"])
              for task in workers if task["rank"] != SLOW]
    return shares, [task["steps"] for task in workers], summary["samples_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--job", default="examples/mnist.toml")
    parser.add_argument("--steps", default="400")
    options = parser.parse_args()
    print(f"{'strategy':<20} {'idle, fast workers':>20}   steps of each worker   samples/s")
    for name, words in STRATEGIES.items():
        with tempfile.TemporaryDirectory() as folder:
            shares, steps, rate = idle_shares(
                options.command, options.job, folder + "/run",
                ["--set", "train.epochs=0", "--set", f"train.steps={options.steps}", *words])
        print(f"{name:<20} {min(shares):>8.1%} to {max(shares):>6.1%}   {steps}   {rate:.0f}",
              flush=True)


main()

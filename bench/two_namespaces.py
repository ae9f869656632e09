"""Two hosts on one machine: network namespaces joined by a cable, one core for each.

For the benchmarks of this folder, as root.
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import sys


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class TwoHosts:
    """Two namespaces and the cable between them, of limited rate unless it is "none". Rank r is
    what runs on host r. Removed at the end, also where that is SIGTERM."""

    def __init__(self, rate):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
        self.ranks = []
        self.names = [f"bench-{os.getpid()}-{i}" for i in range(2)]
        self.cards = [f"b{os.getpid()}n{i}" for i in range(2)]
        for name in self.names:
            ip("netns", "add", name)
        ip("link", "add", self.cards[0], "netns", self.names[0], "type", "veth",
           "peer", "name", self.cards[1], "netns", self.names[1])
        for i, (name, card) in enumerate(zip(self.names, self.cards)):
            ip("-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", card)
            ip("-n", name, "link", "set", card, "up")
            ip("-n", name, "link", "set", "lo", "up")
            if rate != "none":
                limit = ["tbf", "rate", rate, "burst", "256kb", "latency", "400ms"]
                subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", card,
                                "root", *limit], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()  # Of a training that was broken off; its workers end with it.
            rank.wait()
        for name in self.names:
            ip("netns", "del", name)

    def run(self, words_of, variables):
        """Runs words_of(rank) on both hosts, each on its core; what both have printed."""
        environment = variables | {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "10.78.0.1",
                                   "MASTER_PORT": "29544"}
        self.ranks = ranks = [subprocess.Popen(
            ["ip", "netns", "exec", name, "taskset", "-c", str(rank % os.cpu_count()),
             *words_of(rank)], stdout=subprocess.PIPE, text=True,
            env=environment | {"RANK": str(rank), "GLOO_SOCKET_IFNAME": self.cards[rank]})
            for rank, name in enumerate(self.names)]
        outputs = [rank.communicate(timeout=900)[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            raise SystemExit(f"{words_of(0)} failed")
        return outputs

    def train(self, command, job, run_dir, words=()):
        """The summary of a training by Cohort."""
        with tempfile.NamedTemporaryFile() as secret:  # Mode 0600.
            secret.write(os.urandom(32))
            secret.flush()
            self.run(lambda rank: [os.path.abspath(command), "train", job, "--quiet",
                                   "--run-dir", f"{run_dir}-{rank}",
                                   "--set", "cluster.timeout_seconds=300", *words],
                     os.environ | {"COHORT_SECRET_FILE": secret.name, "COHORT_INSECURE": "1"})
        return json.loads(pathlib.Path(f"{run_dir}-0", "summary.json").read_text())


# The 11.6 M parameter MLP on digits, with {steps} and {batch} of both ranks together.
WIDE_MLP = """
[job]
name = "two-hosts"
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
batch = {batch}
validate = "never"
optimizer = {{ kind = "sgd", lr = 0.02, momentum = 0.9 }}
[log]
tensorboard = false
"""

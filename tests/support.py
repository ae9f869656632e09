"""What the tests that run the real command share."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

# A script's background job ignores Ctrl-C, and with it all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

COMMAND = os.environ["COHORT_COMMAND"]
SOURCE = pathlib.Path(os.environ["COHORT_SOURCE"])
LIMIT = 120  # Seconds any one command may take; reached only by a hang.

BLOBS = """
[job]
name = "blobs"
seed = 5
[model]
layers = [ {type="linear", out=16}, {type="relu"}, {type="linear", out=4} ]
[data]
kind = "generated"
task = "blobs"
samples = 2000
features = 8
classes = 4
[train]
epochs = 2
batch = 64
optimizer = { kind = "sgd", lr = 0.1, momentum = 0.9 }
[cluster]
workers = 2
"""


def environment(**more):
    """This process's environment without what would place it in somebody else's run."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "COHORT_SECRET_FILE", "COHORT_INSECURE", "COHORT_ADDRESS",
             "TORCHELASTIC_", "OMPI_", "PMIX_", "PMI_", "MPI_", "SLURM_")
    return {k: v for k, v in os.environ.items() if not k.startswith(names)} | more


def free_port():
    """A TCP port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def state_of(pid):
    """The kernel's letter for what a process does: R, S, T, …; X where there is none."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


def is_running(pid):
    return state_of(pid) not in "ZX"


def children_of(pid):
    """Of all threads of a process; none where it, or a thread, has just ended."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                found += map(int, children.read().split())
    except OSError:
        pass
    return found


def tasks_of(command):
    """Workers and servers of the run that the process `command` has started: its launcher's children."""
    return [task for launcher in children_of(command) for task in children_of(launcher)]


def processes_of(command):
    """The command, its launcher, and all their children."""
    found = [command]
    for pid in found:
        found += children_of(pid)
    return found


def inodes_of(pids):
    found = set()
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    found.add(target[8:-1])
        except OSError:
            pass
    return found


def unix_listeners(pids):
    """Paths (abstract ones begin with @) of unix sockets on which the processes listen."""
    inodes = inodes_of(pids)
    listening = 0x10000  # __SO_ACCEPTCON
    with open("/proc/net/unix") as table:
        rows = [line.split() for line in table.read().splitlines()[1:]]
    return sorted({row[7] for row in rows if len(row) > 7 and row[6] in inodes and int(row[3], 16) & listening})


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {LIMIT} s in vain: {what}")
        time.sleep(0.02)


class SlowDisk:
    """A disk that syncs nothing below `folder` while it is held; see slow_disk.cc. Start commands
    with `**disk.environment`."""

    def __init__(self, folder, gate):
        self.gate = gate
        self.environment = {"LD_PRELOAD": os.environ["COHORT_SLOW_DISK"],
                            "SLOW_DISK_FOLDER": str(folder.resolve()), "SLOW_DISK_GATE": str(gate)}

    def hold(self):
        self.gate.with_name(self.gate.name + ".waiting").unlink(missing_ok=True)
        self.gate.touch()

    def wait_until_used(self):
        wait_until(self.gate.with_name(self.gate.name + ".waiting").exists, "somebody syncs")

    def release(self):
        self.gate.unlink(missing_ok=True)


class CohortTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.job = self.write("job.toml", BLOBS)
        self.run_dir = self.folder / "run"

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *words, prefix=(), program=COMMAND, **more):
        process = subprocess.Popen(
            [*prefix, program, *map(str, words)], cwd=self.folder, env=environment(**more),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_command(self, *words, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=LIMIT)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def train(self, *words, **more):
        return self.run_command("train", self.job, "--run-dir", self.run_dir, *words, **more)

    def start_long_training(self, *words, workers=2, servers=0, **more):
        """A run that does not end by itself; returns it with its tasks, once they train."""
        process = self.start("train", self.job, "--run-dir", self.run_dir,
                             "--set", "train.epochs=0", "--set", "train.steps=100000000",
                             "--set", "log.every_steps=1", "--set", "log.tensorboard=false",
                             *words, **more)
        metrics = self.run_dir / "metrics.jsonl"

        def trains():
            self.assertIsNone(process.poll(), "the run ended early")
            return metrics.exists() and len(metrics.read_text().splitlines()) > 3

        wait_until(trains, "the workers train")
        tasks = tasks_of(process.pid)
        self.assertEqual(len(tasks), workers + servers)
        return process, tasks

    def summary(self):
        return json.loads((self.run_dir / "summary.json").read_text())

    def assert_ends(self, process, code):
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, code, out + err)
        return out + err

    def assert_gone(self, pids):
        wait_until(lambda: not any(map(is_running, pids)), f"processes {pids} end")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class TwoHostsCase(CohortTest):
    """Two namespaces joined by a cable: to Cohort they are two hosts, 10.77.0.1 and 10.77.0.2."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may make network namespaces")
        self.trust = {"COHORT_INSECURE": "1", "COHORT_SECRET_FILE": str(self.secret("secret"))}
        self.hosts = [f"cohort-{os.getpid()}-{i}" for i in range(2)]
        for host in self.hosts:
            ip("netns", "add", host)
            self.addCleanup(ip, "netns", "del", host)
        cable = self.cable = [f"c{os.getpid()}n{i}" for i in range(2)]
        ip("link", "add", cable[0], "netns", self.hosts[0], "type", "veth",
           "peer", "name", cable[1], "netns", self.hosts[1])
        for i in range(2):
            ip("-n", self.hosts[i], "addr", "add", f"10.77.0.{i + 1}/24", "dev", cable[i])
            ip("-n", self.hosts[i], "link", "set", cable[i], "up")
            ip("-n", self.hosts[i], "link", "set", "lo", "up")

    def secret(self, name):
        file = self.folder / name
        file.write_bytes(os.urandom(32))
        file.chmod(0o600)
        return file


def freeze(pid):
    os.kill(pid, signal.SIGSTOP)

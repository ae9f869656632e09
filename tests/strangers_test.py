"""Strangers on the same machine: another user, and a process of the same user that does not know the run's secret.
They connect to everything that a run listens on, and try what once worked; the model must come out to the byte as if
nobody had come."""

import os
import pathlib
import resource
import signal
import socket
import stat
import struct
import subprocess
import time
import unittest

from support import COMMAND, CohortTest, children_of, is_running, wait_until

NOBODY = 65534


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


def tcp_listeners(pids):
    """(address, port) of TCP sockets on which the processes listen."""
    inodes = inodes_of(pids)
    found = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as table:
            for row in map(str.split, table.read().splitlines()[1:]):
                if row[3] == "0A" and row[9] in inodes:
                    address, port = row[1].split(":")
                    found.append((address, int(port, 16)))
    return found


def memory_of(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as sizes:
                total += int(sizes.read().split()[1]) * 4096
        except OSError:
            pass
    return total


def store_message(kind, key, value):
    return struct.pack("<IIQII", 0x31534843, kind, 1, len(key), len(value)) + key + value


def opening(purpose, number=0):
    return struct.pack("<IIIiqq", 0x31414843, purpose, 0, number, -1, 0) + os.urandom(32)


# What a stranger says first. Announced sizes are of gigabytes; the openings are right but for the proof.
ATTACKS = [
    b"",
    os.urandom(64),
    os.urandom(100_000),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    store_message(0, b"group/1/region/0", b"made"),
    store_message(0, b"stop", b"1"),
    struct.pack("<IIQII", 0x31534843, 0, 1, 0xFFFFFFFF, 0xFFFFFFFF),
    opening(1) + os.urandom(32),
    opening(2) + os.urandom(32),
    opening(2, number=1) + os.urandom(32) + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    opening(3) + os.urandom(32),
    opening(2)[:40],
]


def connect(place):
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    connection = socket.socket(family)
    connection.settimeout(5)
    connection.connect(place)
    return connection


def attack(place, words):
    """What came back. The door answers an opening with 64 bytes, of which nobody without the secret can make anything."""
    heard = b""
    try:
        with connect(place) as connection:
            connection.sendall(words)
            connection.settimeout(0.05)
            while part := connection.recv(65536):
                heard += part
    except OSError:
        pass
    return heard


class StrangersTest(CohortTest):
    def start_run(self, name, *words, steps):
        self.run_dir = self.folder / name
        process = self.start(
            "train", self.job, "--run-dir", self.run_dir, "--set", "train.epochs=0", "--set", f"train.steps={steps}",
            "--set", "log.every_steps=10", "--set", "log.tensorboard=false", "--set", "train.validate=never", *words)
        metrics = self.run_dir / "metrics.jsonl"
        wait_until(lambda: process.poll() is not None or metrics.exists() and metrics.read_text().count("\n") > 3,
                   "the workers train")
        self.assertIsNone(process.poll(), "the run ended early")
        return process

    def model(self):
        return (self.run_dir / "model.safetensors").read_bytes()

    def check_unchanged(self, *words, steps, loopback=False):
        """`steps`: some seconds of training, so that it goes on while strangers come."""
        quiet = self.start_run("quiet", *words, steps=steps)
        pids = processes_of(quiet.pid)
        paths = unix_listeners(pids)
        self.assertTrue(paths, "nothing listens, so nothing was tested")
        self.assert_locked(paths, pids, loopback)
        self.assert_ends(quiet, 0)
        for path in paths:
            self.assertFalse(os.path.exists(path), "nothing is left behind")
        expected = self.model()

        process = self.start_run("attacked", *words, steps=steps)
        pids = processes_of(process.pid)
        before = memory_of(pids)
        places = unix_listeners(pids) + [("127.0.0.1", port) for _, port in tcp_listeners(pids)]
        for place in places:
            self.assert_kept_out(place)
            for words_said in ATTACKS:
                heard = attack(place, words_said)
                self.assertLessEqual(len(heard), 64, f"{place} says {heard[:80]} to a stranger")
        self.assertIsNone(process.poll(), "the run was over before the attacks were; give it more steps")
        self.assertLess(memory_of(pids), before + (256 << 20))
        self.assert_ends(process, 0)
        summary = self.summary()
        self.assertEqual((summary["status"], summary["restarts"]), ("completed", 0))
        self.assertEqual(self.model(), expected, "to the byte")

    def assert_locked(self, paths, pids, loopback):
        """On one host nothing but sockets in a folder that its user alone can enter."""
        for path in paths:
            self.assertTrue(path.startswith("/"), f"{path} is an abstract socket")
            folder = os.stat(pathlib.Path(path).parent)
            self.assertEqual(stat.S_IMODE(folder.st_mode), 0o700, path)
            self.assertEqual(folder.st_uid, os.geteuid())
        for address, port in tcp_listeners(pids):
            self.assertTrue(loopback, f"a run of one host listens on TCP port {port}")
            self.assertEqual(address, "0100007F", "only this host can reach it")

    def assert_kept_out(self, place):
        """Another user cannot even connect."""
        if os.geteuid() != 0 or not isinstance(place, str):
            return
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                connect(place)
                os._exit(1)
            except PermissionError:
                os._exit(0)
            except OSError:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0, f"another user can connect to {place}")

    def test_all_reduce_in_shared_memory(self):
        self.check_unchanged(steps=30000)

    def test_parameter_servers(self):
        self.check_unchanged("--strategy", "parameter-server", "--servers", "2", "--set", "strategy.mode=sync",
                             steps=12000)

    def test_gloo_on_one_host(self):
        self.check_unchanged("--engine", "gloo", steps=6000, loopback=True)

    def test_idle_strangers_keep_no_newcomer_out(self):
        process = self.start_run("crowded", "--strategy", "parameter-server", steps=1_000_000)
        pids = processes_of(process.pid)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most), most))
        idle = []
        self.addCleanup(lambda: [connection.close() for connection in idle])
        for path in unix_listeners(pids):
            for _ in range(1100):
                connection = socket.socket(socket.AF_UNIX)
                idle.append(connection)
                connection.setblocking(False)
                try:
                    connection.connect(path)
                except BlockingIOError:
                    time.sleep(0.001)  # The queue of the listener is full for a moment.
        launcher = children_of(process.pid)[0]
        workers = children_of(launcher)
        os.kill(workers[0], signal.SIGKILL)
        history = self.run_dir / "history.jsonl"
        wait_until(lambda: process.poll() is not None or
                   len([pid for pid in children_of(launcher) if is_running(pid)]) >= len(workers) and
                   '"group":2' in history.read_text().replace(" ", ""), "the lost worker is replaced")
        self.assertIsNone(process.poll(), "the run goes on")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 138)
        self.assertGreaterEqual(self.summary()["restarts"], 1)


class HoleTest(unittest.TestCase):
    def test_who_finds_a_hole_finds_it_guarded(self):
        def says(*command):
            return subprocess.run([*command, COMMAND], capture_output=True, text=True, check=True).stdout

        self.assertIn("NOW", says("readelf", "--dynamic", "--wide"))
        self.assertIn("GNU_RELRO", says("readelf", "--segments", "--wide"))
        calls = says("nm", "--dynamic", "--undefined-only", "--demangle")
        for guard in ("__stack_chk_fail@", "__memcpy_chk@", "std::__glibcxx_assert_fail("):
            self.assertIn(guard, calls)


if __name__ == "__main__":
    unittest.main(verbosity=2)

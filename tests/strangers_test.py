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
import unittest

import read_safetensors
from support import (COMMAND, LIMIT, CohortTest, children_of, inodes_of, is_running, processes_of, unix_listeners,
                     wait_until)

NOBODY = 65534


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


def gossip_call(kind, weight, message=b""):
    return struct.pack("<IidBBBBiqdd", 0x70736F67, 0, weight, kind, 0, 1, 0, 0, 0, 1, 1) + message


def server_call(kind, rest=b""):
    """Of a worker to a parameter server: its numbers are those of a build that nobody has."""
    return struct.pack("<IIIIQQ", 0xC0406000, kind, 0, 0, 0, 1) + bytes(96) + rest


# What once worked, of what each of those who listen understands. Announced sizes are of gigabytes.
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
NAN = struct.pack("<f", float("nan"))
ATTACKS = {
    "presets the memory of the next group": store_message(0, b"group/1/region/0", b"made"),
    "takes the memory of all": store_message(7, b"host/0/region/0", b""),
    "gives memory of its own": store_message(6, b"host/0/region/0", b"4096 1"),
    "ends the run": store_message(0, b"stop", b"1"),
    "fills the launcher's memory": struct.pack("<IIQII", 0x31534843, 0, 1, 0xFFFFFFFF, 0xFFFFFFFF),
    "reads the model of a server": server_call(5),
    "brings a model": server_call(4, bytes(64)),
    "greets with a path": server_call(2, b"1 64 0 /etc/hostname /dev/shm/model"),
    "copies a shard of overflowing sizes": server_call(6, b"\xff" * 512),
    "pushes what is no number": server_call(0, 64 * NAN),
    "leaves as a worker": server_call(1),
    "calls": HTTP2,
    "puts a parcel of weight 1e30": gossip_call(0, 1e30, 64 * NAN),
    "stops gossip": gossip_call(3, 0),
    "talks without end": os.urandom(8 << 20),
}
PURPOSES = {"store": 1, "calls": 2, "messages": 3}
IDLE = 1100


def sayings():
    """Every attack as it stands, and behind an opening that is right but for its proof."""
    yield b""
    for words in ATTACKS.values():
        yield words
        for purpose in PURPOSES.values():
            yield opening(purpose, number=1) + os.urandom(32) + words


def connect(place):
    """Waits where the listener's queue is full: somebody takes from it, or the run hangs."""
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    connection = socket.socket(family)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", LIMIT, 0))
    try:
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


def attack(place, words):
    """What came back. The door answers an opening with 64 bytes, of which nobody without the secret can make anything.
    Who listens knows that no more will come, and ends the connection (libgloo does not: it is waited for in vain)."""
    heard = b""
    connection = connect(place)
    try:
        connection.settimeout(LIMIT if isinstance(place, str) else 0.05)
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65536):
            heard += part
    except OSError:
        pass
    finally:
        connection.close()
    return heard


def not_refused_to_another_user(tries):
    """What of the (name, function) another user was not refused, in words; empty where all was."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            for name, do in tries:
                try:
                    do()
                    os.write(writer, f"{name}: done; ".encode())
                except PermissionError:
                    pass
                except OSError as error:
                    os.write(writer, f"{name}: {error}; ".encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    return said + ("" if os.waitpid(child, 0)[1] == 0 else "it died")


class StrangersTest(CohortTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # What is below must keep others out by itself.

    def start_run(self, name, *words, steps):
        self.run_dir = self.folder / name
        process = self.start(
            "train", self.job, "--run-dir", self.run_dir, "--set", "train.epochs=0", "--set", f"train.steps={steps}",
            "--set", "log.every_steps=10", "--set", "log.tensorboard=false", "--set", "train.validate=never",
            "--set", f"cluster.timeout_seconds={5 * LIMIT}", *words)
        return process

    def start_endless_run(self, name, *words):
        process = self.start_run(name, *words, steps=1_000_000_000)
        metrics = self.run_dir / "metrics.jsonl"
        wait_until(lambda: process.poll() is not None or metrics.exists() and metrics.read_text().count("\n") > 3,
                   "the workers train")
        self.assertIsNone(process.poll(), "the run ended early")
        return process

    def model(self):
        return (self.run_dir / "model.safetensors").read_bytes()

    def check_unchanged(self, *words, loopback=False, differ=0):
        """The run goes on until the strangers are done, however long that takes, and is then asked to stop. One that
        nobody disturbs makes as many steps: it must come to the same bytes, or to floats that differ by no more."""
        process = self.start_endless_run("attacked", *words)
        paths = self.visit(process, loopback)
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        for path in paths:
            self.assertFalse(os.path.exists(path), "nothing is left behind")
        attacked, model = self.summary(), self.model()
        self.assertEqual((attacked["status"], attacked["restarts"], attacked["failures"]), ("interrupted", 0, []))

        self.assert_ends(self.start_run("quiet", *words, steps=attacked["steps"]), 0)
        self.assert_same(model, self.model(), differ)
        return attacked

    def visit(self, process, loopback):
        """All strangers, at all that listens; returns the unix sockets."""
        pids = processes_of(process.pid)
        before = memory_of(pids)
        paths = unix_listeners(pids)
        self.assertTrue(paths, "nothing listens, so nothing was tested")
        self.assert_locked(paths, pids, loopback)
        self.assert_other_users_are_kept_out(paths, pids)
        for place in paths + [("127.0.0.1", port) for _, port in tcp_listeners(pids)]:
            for saying in sayings():
                heard = attack(place, saying)
                self.assertLessEqual(len(heard), 64, f"{place} says {heard[:80]} to a stranger")
        self.come_and_stay(paths)
        self.assertIsNone(process.poll(), "the run was ended")
        self.assertTrue(all(map(is_running, pids)), "no task was lost")
        self.assertLess(memory_of(pids), before + (256 << 20))
        return paths

    def assert_same(self, model, quiet, differ):
        if differ == 0:
            self.assertEqual(model, quiet, "to the byte")
        for one, other in zip(*map(read_safetensors.arrays, (model, quiet)), strict=True):
            self.assertEqual(one[:3], other[:3])
            self.assertLessEqual(max(abs(x - y) for x, y in zip(one[3], other[3])), differ, one[0])

    def come_and_stay(self, paths):
        """A crowd at every door that says half an opening and no more, for as long as the test goes on."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for path in paths:
            for _ in range(IDLE):
                connection = connect(path)
                self.addCleanup(connection.close)
                try:
                    connection.send(opening(1)[:40])
                except BrokenPipeError:
                    pass  # It has been shown the door already.

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

    def assert_other_users_are_kept_out(self, paths, pids):
        """They can neither connect nor see what listens, nor read and overwrite the model where it is."""
        if os.geteuid() != 0:
            return
        tries = [(path, lambda path=path: connect(path)) for path in paths]
        tries += [(path, lambda path=path: os.listdir(pathlib.Path(path).parent)) for path in paths]
        for pid in pids:
            tries += [(f"/proc/{pid}/{name}", lambda file=f"/proc/{pid}/{name}", do=do: do(file))
                      for name, do in (("mem", lambda file: open(file, "r+b")), ("fd", os.listdir),
                                       ("map_files", os.listdir), ("environ", lambda file: open(file).read()))]
        tries += [(f"the run's {name}", lambda name=name: open(self.run_dir / name, "r+b"))
                  for name in ("metrics.jsonl", "config.toml")]
        self.assertEqual(not_refused_to_another_user(tries), "")

    def test_all_reduce_in_shared_memory(self):
        self.check_unchanged()

    def test_parameter_servers(self):
        self.check_unchanged("--strategy", "parameter-server", "--servers", "2", "--set", "strategy.mode=sync")

    def test_gloo_on_one_host(self):
        self.check_unchanged("--engine", "gloo", loopback=True)

    # Workers that gossip by calls. What comes of several depends on who was quicker; one that is alone comes to the
    # same bytes whenever nobody tells it anything.
    def test_gossip_of_a_worker_that_learns(self):
        self.check_unchanged("--strategy", "gossip", "--engine", "gloo", "--workers", "1", loopback=True)

    # Models that stand still are the same however they are mixed, and another one among them would be seen.
    def check_gossip_between_workers(self, send, differ):
        summary = self.check_unchanged("--strategy", "gossip", "--engine", "gloo", "--set", f"strategy.send={send}",
                                       "--set", "train.optimizer.lr=0", loopback=True, differ=differ)
        self.assertGreater(summary["bytes_sent"], 0)

    def test_gossip_of_gradients(self):
        self.check_gossip_between_workers("gradients", differ=0)

    # A mean of equal models is rounded by weights that depend on who was quicker.
    def test_gossip_of_parameters(self):
        self.check_gossip_between_workers("parameters", differ=1e-6)

    def test_idle_strangers_keep_no_newcomer_out(self):
        process = self.start_endless_run("crowded", "--strategy", "parameter-server")
        self.come_and_stay(unix_listeners(processes_of(process.pid)))
        launcher = children_of(process.pid)[0]
        workers = children_of(launcher)
        os.kill(workers[0], signal.SIGKILL)
        history = self.run_dir / "history.jsonl"
        wait_until(lambda: process.poll() is not None or
                   len([pid for pid in children_of(launcher) if is_running(pid)]) >= len(workers) and
                   '"group":2' in history.read_text().replace(" ", ""), "the lost worker is replaced")
        self.assertIsNone(process.poll(), "the run goes on")
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
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

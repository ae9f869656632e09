"""Tasks that die, freeze or are asked to end: the run goes on, or can be gone on with, and nothing
of it is lost."""

import json
import os
import signal
import struct
import time
import unittest

from support import CohortTest, SlowDisk, freeze, state_of, wait_until

# One word changes the strategy; synchronous ones end with the parameters of a run nobody disturbed.
SYNCHRONOUS = {
    "in place": [],
    "messages": ["--engine", "shm", "--set", "strategy.algorithm=ring"],
    "gloo": ["--engine", "gloo"],
    "servers": ["--strategy", "parameter-server", "--servers", "2"],
}
ASYNCHRONOUS = {
    "async": ["--strategy", "parameter-server", "--set", "strategy.consistency=async"],
    "bounded": ["--strategy", "parameter-server", "--set", "strategy.consistency=bounded"],
    "partial": ["--strategy", "averaging", "--set", "strategy.mode=partial",
                "--set", "strategy.quorum=1", "--set", "strategy.every=2"],
    "gossip": ["--strategy", "gossip"],
}
STEPS = ["--set", "train.epochs=0", "--set", "train.steps=60", "--set", "log.every_steps=1"]


def tensors(path):
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    result = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        body = data[8 + size + begin:8 + size + end]
        result[name] = struct.unpack(f"<{len(body) // 4}f", body)
    return result


def largest_difference(first, second):
    a, b = tensors(first), tensors(second)
    assert a.keys() == b.keys() and a
    return max(abs(x - y) for name in a for x, y in zip(a[name], b[name]))


def sleeps(pid):
    """Whether its first thread does nothing, at many looks in a row."""
    for _ in range(25):
        if state_of(pid) != "S":
            return False
        time.sleep(0.01)
    return True


class FailuresTest(CohortTest):
    def records(self, run_dir=None):
        text = (run_dir or self.run_dir).joinpath("metrics.jsonl").read_text()
        lines = text[:text.rfind("\n") + 1].splitlines()  # One may just be being written.
        return [entry for entry in map(json.loads, lines) if "lr" in entry]

    def logged_steps(self):
        return [entry["step"] for entry in self.records()]

    def losses(self, run_dir=None):
        return {entry["step"]: entry["loss"] for entry in self.records(run_dir)}

    def quiet_run(self, *words):
        run_dir = self.folder / "quiet"
        result = self.run_command("train", self.job, "--run-dir", run_dir, *STEPS, *words)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return run_dir

    def disturbed_run(self, *words, code=0):
        result = self.train(*STEPS, *words)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return result

    def history(self, event):
        lines = map(json.loads, (self.run_dir / "history.jsonl").read_text().splitlines())
        return [line for line in lines if line["event"] == event]

    def worker_pids(self, run_dir):
        wait_until((run_dir / "tasks.json").exists, "the tasks are started")
        tasks = json.loads((run_dir / "tasks.json").read_text())["tasks"]
        return {task["number"]: task["pid"] for task in tasks if task["role"] == "worker"}

    def checkpoint_step(self):
        return int((self.run_dir / "checkpoints" / "LATEST").read_text().split("-")[-1])

    def assert_is_like_a_run_of(self, steps, words):
        """To stop is to end there: all that was learned is in the model."""
        quiet = self.folder / f"quiet of {self.run_dir.name}"
        result = self.run_command("train", self.job, "--run-dir", quiet, *STEPS, *words,
                                  "--set", f"train.steps={steps}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.run_dir / "model.safetensors").read_bytes(),
                         (quiet / "model.safetensors").read_bytes())

    def assert_like_quiet(self, quiet):
        self.assertLess(largest_difference(quiet / "model.safetensors",
                                           self.run_dir / "model.safetensors"), 1e-5)
        steps = self.logged_steps()
        self.assertEqual(steps, sorted(set(steps)), "no step is told of twice")
        # A step that was applied when everybody who knew its loss was gone is not told of.
        untold = set(range(1, 61)) - set(steps)
        self.assertLessEqual(len(untold), len(self.history("lost")), f"steps {untold}")


class WorkerTest(FailuresTest):
    def test_a_killed_worker_is_replaced_and_no_step_is_lost_or_made_twice(self):
        for name, words in SYNCHRONOUS.items():
            with self.subTest(name):
                self.setUp()
                quiet = self.quiet_run("--workers", 3, *words)
                self.disturbed_run("--workers", 3, *words,
                                   "--faults", "worker-1:worker.step=kill@20")
                summary = self.summary()
                self.assertEqual(summary["status"], "completed")
                self.assertEqual(summary["restarts"], 1)
                self.assertIn("worker 1", summary["failures"][0])
                self.assertIn("SIGKILL", summary["failures"][0])
                self.assert_like_quiet(quiet)

    def test_when_the_chief_is_killed_another_one_takes_over_the_duty(self):
        quiet = self.quiet_run("--workers", 3)
        self.disturbed_run("--workers", 3, "--faults", "worker-0:worker.step=kill@20")
        self.assert_like_quiet(quiet)
        self.assertNotEqual(self.history("group")[-1]["workers"][0], 0)
        lost = [entry["pid"] for entry in self.history("lost")]
        ended = {entry["number"]: entry["pid"] for entry in self.history("ended")}
        self.assertEqual(sorted(ended), [0, 1, 2])
        self.assertEqual(len(lost), 1)
        self.assertNotIn(lost[0], ended.values())
        roles = {task["rank"]: task["role"] for task in self.summary()["tasks"]}
        self.assertEqual(roles[self.history("group")[-1]["workers"][0]], "chief")

    def test_asynchronous_workers_do_not_stop_when_one_is_killed(self):
        for name, words in ASYNCHRONOUS.items():
            with self.subTest(name):
                self.setUp()
                self.disturbed_run("--workers", 3, *words,
                                   "--faults", "worker-1:worker.step=kill@10")
                self.assertEqual(self.summary()["status"], "completed")
                self.assertEqual(self.summary()["steps"], 60)

    def test_a_crash_at_every_stage_of_a_workers_life(self):
        quiet = self.quiet_run("--workers", 3)
        for stage in ["start", "rendezvous", "step", "shutdown"]:
            for action in ["kill", "exit"]:
                with self.subTest(stage=stage, action=action):
                    self.run_dir = self.folder / f"{stage}-{action}"
                    self.disturbed_run("--workers", 3, "--faults",
                                       f"worker-2:worker.{stage}={action}")
                    self.assert_like_quiet(quiet)

    def test_who_comes_after_an_epoch_does_what_the_others_do(self):
        """The end of an epoch is validated together; a newcomer has not seen it."""
        for name, words in SYNCHRONOUS.items():
            with self.subTest(name):
                self.setUp()
                quiet = self.quiet_run("--workers", 3, *words)
                self.disturbed_run("--workers", 3, *words, "--set", "cluster.timeout_seconds=20",
                                   "--faults", "worker-1:worker.step=kill@40")
                self.assertEqual(len(self.history("group")), 2)
                self.assert_like_quiet(quiet)

    def test_a_death_while_others_come_together_is_seen_at_once(self):
        for name, words in ASYNCHRONOUS.items():
            for stage in ["start", "rendezvous"]:
                with self.subTest(name, stage=stage):
                    self.run_dir = self.folder / f"{name} {stage}"
                    # Who waited for the timeout would not be done in time.
                    self.disturbed_run("--workers", 3, *words, "--set",
                                       "cluster.timeout_seconds=600", "--faults",
                                       f"worker-0:worker.{stage}=kill")

    def test_the_chiefs_logs_have_no_step_twice_and_lose_none_that_was_done(self):
        for name, words in (ASYNCHRONOUS | {"averaging": ["--strategy", "averaging"]}).items():
            with self.subTest(name):
                self.run_dir = self.folder / name
                self.disturbed_run("--workers", 3, *words, "--faults",
                                   "worker-1:worker.step=kill@15")
                steps = self.logged_steps()
                self.assertEqual(steps, sorted(set(steps)))
                self.assertGreater(len(steps), 10)

    def assert_every_step_is_logged(self, steps):
        self.assertEqual(self.logged_steps(), list(range(1, steps + 1)))
        self.assertTrue(all(loss > 0 for loss in self.losses().values()))

    def test_steps_are_logged_though_the_chief_makes_none_of_them(self):
        """It freezes with its first piece and is lost when the others have done all else: whoever
        takes over knows what was made."""
        for name, words in ASYNCHRONOUS.items():
            with self.subTest(name):
                self.run_dir = self.folder / name
                self.disturbed_run("--workers", 3, *words, "--set",
                                   "cluster.silence_lost_seconds=1.5", "--set",
                                   "cluster.silence_warn_seconds=1", "--faults",
                                   "worker-0:worker.step=stop")
                self.assertEqual(len(self.history("lost")), 1)
                self.assert_every_step_is_logged(60)

    def test_a_slow_chief_logs_what_the_others_have_made(self):
        """It freezes before it asks for any work, and comes back when the others have done all."""
        process = self.start("train", self.job, "--run-dir", self.run_dir, *STEPS, "--workers", 3,
                             "--strategy", "gossip", "--set", "cluster.silence_warn_seconds=1",
                             "--set", "cluster.silence_lost_seconds=100",
                             "--faults", "worker-0:worker.joined=stop")
        while "no sign of life" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        tasks = json.loads((self.run_dir / "tasks.json").read_text())["tasks"]
        os.kill(next(task["pid"] for task in tasks if task["number"] == 0), signal.SIGCONT)
        self.assert_ends(process, 0)
        self.assert_every_step_is_logged(60)

    def test_the_rest_go_on_alone_where_enough_are_left(self):
        quiet = self.quiet_run("--workers", 3)
        self.disturbed_run("--workers", 3, "--max-restarts", 0, "--min-workers", 2,
                           "--faults", "worker-1:worker.step=kill@20")
        self.assertEqual(self.summary()["restarts"], 0)
        self.assertEqual(len(self.history("group")[-1]["workers"]), 2)
        self.assert_like_quiet(quiet)

    def test_without_restarts_the_rest_saves_and_the_run_can_be_gone_on_with(self):
        quiet = self.quiet_run("--workers", 3)
        result = self.disturbed_run("--workers", 3, "--max-restarts", 0,
                                    "--faults", "worker-1:worker.step=kill@20", code=138)
        self.assertIn("worker 1", result.stderr)
        self.assertTrue((self.run_dir / "checkpoints" / "LATEST").exists())
        self.disturbed_run("--workers", 3, "--resume", "auto")
        self.assert_like_quiet(quiet)

    def test_several_deaths_at_once_when_nobody_is_replaced_still_save(self):
        self.disturbed_run("--workers", 4, "--max-restarts", 0, "--faults",
                           "worker-1:worker.step=kill@20;worker-2:worker.step=kill@20", code=138)
        self.assertTrue((self.run_dir / "checkpoints" / "LATEST").exists())

    def test_when_all_workers_are_killed_the_newest_checkpoint_is_gone_on_with(self):
        quiet = self.quiet_run("--workers", 2)
        self.disturbed_run("--workers", 2, "--set", "checkpoint.every_steps=5", "--faults",
                           "worker-0:worker.step=kill@33;worker-1:worker.step=kill@33")
        self.assert_like_quiet(quiet)

    def test_a_frozen_worker_is_warned_of_then_declared_lost_and_replaced(self):
        process, workers = self.start_long_training("--set", "cluster.silence_warn_seconds=0.6",
                                                    "--set", "cluster.silence_lost_seconds=1.5")
        freeze(workers[1])
        wait_until(lambda: len(self.history("group")) > 1, "a new group")
        process.send_signal(signal.SIGINT)
        output = self.assert_ends(process, 130)
        self.assertIn("no sign of life", output)
        self.assertIn("worker 1", self.history("lost")[0]["cause"])
        self.assert_gone(workers)


class TwoFaultsTest(FailuresTest):
    """A second fault while the first is still being dealt with."""

    def start_with_fault(self, fault, *words):
        process = self.start("train", self.job, "--run-dir", self.run_dir, *STEPS, *words,
                             "--faults", fault, "--set", "cluster.silence_lost_seconds=600")
        return process, self.worker_pids(self.run_dir)

    def test_of_two_deaths_at_a_barrier_none_hides_the_other(self):
        """Worker 1 has come to the barrier when it dies, worker 2 has not."""
        quiet = self.quiet_run("--workers", 4)
        process, pids = self.start_with_fault(
            "worker-2:allreduce.before-gradients=stop@20", "--workers", 4,
            "--set", "cluster.timeout_seconds=600")  # Who waited for it would not be done in time.
        wait_until(lambda: state_of(pids[2]) == "T", "worker 2 stands still")
        wait_until(lambda: sleeps(pids[1]), "worker 1 waits for it")
        os.kill(pids[1], signal.SIGKILL)
        wait_until(lambda: self.history("lost"), "the first death is known")
        os.kill(pids[2], signal.SIGKILL)
        self.assert_ends(process, 0)
        self.assertEqual([line["number"] for line in self.history("lost")], [1, 2])
        self.assertEqual([line["step"] for line in self.history("group")], [-1, 19])
        self.assert_like_quiet(quiet)


    def test_a_death_while_another_one_takes_long_to_come_ends_nobody_else(self):
        process, pids = self.start_with_fault(
            "worker-1:worker.rendezvous=stop", "--workers", 3,
            "--set", "cluster.timeout_seconds=3")
        wait_until(lambda: state_of(pids[1]) == "T", "worker 1 takes its time")
        os.kill(pids[2], signal.SIGKILL)
        wait_until(lambda: self.history("lost"), "the death is known")
        time.sleep(4)  # Longer than the timeout, which is what must not matter.
        os.kill(pids[1], signal.SIGCONT)
        self.assert_ends(process, 0)
        self.assertEqual([line["number"] for line in self.history("lost")], [2])

    def test_a_death_while_a_checkpoint_is_written_costs_no_step(self):
        self.run_dir.mkdir()
        disk = SlowDisk(self.run_dir, self.folder / "gate")
        process, workers = self.start_long_training(
            "--set", "checkpoint.every_steps=5", "--set", "cluster.timeout_seconds=5",
            **disk.environment)
        disk.hold()
        disk.wait_until_used()
        os.kill(workers[1], signal.SIGKILL)
        wait_until(lambda: len(self.history("group")) > 1, "a new group")
        self.assertGreaterEqual(self.history("group")[1]["step"], 5)
        steps = max(self.losses())
        wait_until(lambda: max(self.losses()) > steps + 3, "the new group trains")
        self.assertEqual([line["number"] for line in self.history("lost")], [1])
        latest = self.run_dir / "checkpoints" / "LATEST"
        saved = self.checkpoint_step() if latest.exists() else 0
        disk.release()
        wait_until(lambda: latest.exists() and self.checkpoint_step() > saved,
                   "it is written all the same")
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        self.assertEqual(self.checkpoint_step(), max(self.losses()))

    def test_the_chief_may_die_while_it_saves_a_run_that_was_stopped_between_two_averages(self):
        disk = SlowDisk(self.run_dir / "checkpoints", self.folder / "gate")
        disk.hold()
        words = ["--strategy", "averaging", "--set", "strategy.every=1000000000"]
        process, _ = self.start_long_training(*words, servers=1, **disk.environment)
        process.send_signal(signal.SIGTERM)
        disk.wait_until_used()
        os.kill(self.worker_pids(self.run_dir)[0], signal.SIGKILL)
        wait_until(lambda: self.history("lost"), "the death is known")
        disk.release()
        self.assert_ends(process, 138)
        self.assert_is_like_a_run_of(self.checkpoint_step(), words)


class PatienceTest(FailuresTest):
    """Who works is waited for, however long it takes: the timeout is for those who do not. All
    strategies at the same time, because time must pass here."""

    STRATEGIES = {"in place": [], "gloo": SYNCHRONOUS["gloo"], "servers": SYNCHRONOUS["servers"],
                  "async": ASYNCHRONOUS["async"], "gossip": ASYNCHRONOUS["gossip"]}
    TIMEOUT = 3

    def start_in(self, run_dir, *words, **more):
        return self.start("train", self.job, "--run-dir", run_dir, *STEPS, *words, "--set",
                          f"cluster.timeout_seconds={self.TIMEOUT}", **more)

    def assert_undisturbed(self, processes):
        for self.run_dir, process in processes.items():
            with self.subTest(self.run_dir.name):
                self.assert_ends(process, 0)
                self.assertEqual(self.summary()["status"], "completed")
                self.assertEqual(len(self.history("group")), 1)
                self.assertEqual(self.history("lost"), [])

    def test_for_the_chief_to_save_at_the_end(self):
        disks, processes = [], {}
        for name, words in self.STRATEGIES.items():
            run_dir = self.folder / name
            disks.append(SlowDisk(run_dir / "checkpoints", self.folder / f"{name}.gate"))
            disks[-1].hold()
            processes[run_dir] = self.start_in(
                run_dir, *words, "--set", "checkpoint.every_steps=1000", **disks[-1].environment)
        for disk in disks:
            disk.wait_until_used()
        time.sleep(self.TIMEOUT + 1)
        for disk in disks:
            disk.release()
        self.assert_undisturbed(processes)

    def test_for_a_worker_to_make_its_model(self):
        processes = {}
        for name, words in self.STRATEGIES.items():
            run_dir = self.folder / name
            processes[run_dir] = self.start_in(
                run_dir, *words, "--set", "cluster.silence_lost_seconds=600",
                "--faults", "worker-1:worker.rendezvous=stop")
        slow = [self.worker_pids(run_dir)[1] for run_dir in processes]
        for pid in slow:
            wait_until(lambda: state_of(pid) == "T", "worker 1 takes its time")
        time.sleep(self.TIMEOUT + 1)
        for pid in slow:
            os.kill(pid, signal.SIGCONT)
        self.assert_undisturbed(processes)


class ServerTest(FailuresTest):
    WORDS = ["--workers", 2, "--strategy", "parameter-server", "--servers", 2]

    def test_a_killed_server_loses_nothing(self):
        quiet = self.quiet_run(*self.WORDS)
        for point in ["before-update", "in-update", "before-commit", "before-answer"]:
            with self.subTest(point):
                self.run_dir = self.folder / point
                self.disturbed_run(*self.WORDS, "--faults", f"server-1:server.{point}=kill@20")
                self.assertIn("server 1", self.summary()["failures"][0])
                self.assert_like_quiet(quiet)

    def test_asynchronous_workers_go_on_with_the_next_server(self):
        for name in ["async", "bounded", "partial"]:
            with self.subTest(name):
                self.run_dir = self.folder / name
                self.disturbed_run("--workers", 2, *ASYNCHRONOUS[name], "--faults",
                                   "server-0:server.before-commit=kill@20")
                self.assertEqual(self.summary()["steps"], 60)


class ShardsTest(FailuresTest):
    """Servers that apply each push when it comes, in orders of their own."""

    WORDS = ["--workers", 2, "--strategy", "parameter-server", "--servers", 2]
    PUSHES = 2 * 60
    LOOSE = {
        "async": ["--set", "strategy.consistency=async"],
        "bounded": ["--set", "strategy.consistency=bounded"],
        "k-of-n": ["--set", "strategy.consistency=k-of-n", "--set", "strategy.quorum=2"],
    }

    def shards(self):
        return self.summary()["shards"]

    def assert_shards_have_the_same_pushes(self, pushes=PUSHES):
        first, second = self.shards()
        self.assertEqual(first["fingerprint"], second["fingerprint"], self.shards())
        for shard in (first, second):
            self.assertEqual((shard["applied"], shard["dropped"], shard["missing"]),
                             (pushes, 0, 0), self.shards())

    def test_after_a_servers_death_every_push_is_on_every_shard_once(self):
        deaths = [("async", 0, "before-update"), ("async", 1, "before-update"),
                  ("async", 0, "before-commit"), ("async", 1, "before-commit"),
                  ("async", 0, "before-answer"), ("async", 1, "before-answer"),
                  ("bounded", 1, "before-update"), ("k-of-n", 0, "before-commit"),
                  ("k-of-n", 1, "before-answer")]
        samples = None
        for way, server, point in deaths:
            with self.subTest(way, server=server, point=point):
                self.run_dir = self.folder / f"{way} {server} {point}"
                self.disturbed_run(*self.WORDS, *self.LOOSE[way], "--faults",
                                   f"server-{server}:server.{point}=kill@40")
                self.assertEqual(len(self.history("lost")), 1)
                self.assert_shards_have_the_same_pushes()
                samples = samples or self.summary()["samples"]
                self.assertEqual(self.summary()["samples"], samples)

    def test_changes_that_were_not_pushed_yet_are_pushed_to_the_next_servers(self):
        self.disturbed_run("--workers", 2, *ASYNCHRONOUS["partial"], "--servers", 2,
                           "--faults", "server-1:server.before-update=kill@15")
        first, second = self.shards()
        self.assertEqual(first["fingerprint"], second["fingerprint"])
        self.assertEqual(first["missing"] + second["missing"], 0)
        self.assertEqual(first["applied"], second["applied"])

    def test_what_a_worker_had_pushed_to_one_server_only_is_told_of(self):
        for way in ["async", "k-of-n"]:
            with self.subTest(way):
                self.run_dir = self.folder / way
                self.disturbed_run(*self.WORDS, *self.LOOSE[way], "--faults",
                                   "worker-1:worker.between-pushes=kill@10")
                first, second = self.shards()
                self.assertEqual((first["applied"], first["missing"]), (self.PUSHES, 0))
                # Server 0 may see the death before the push; then nobody has it, and it is made again.
                self.assertEqual(second["applied"] + second["missing"], self.PUSHES)
                self.assertLessEqual(second["missing"], 1)
                self.assertEqual(second["missing"] == 0,
                                 first["fingerprint"] == second["fingerprint"])


class ReplicaTest(FailuresTest):
    WORDS = ["--workers", 2, "--strategy", "parameter-server", "--servers", 2,
             "--set", "strategy.replicas=2"]

    def test_a_shard_whose_memory_is_lost_goes_on_from_its_copy(self):
        quiet = self.quiet_run(*self.WORDS)
        for server in [0, 1]:
            with self.subTest(server):
                self.run_dir = self.folder / f"server {server}"
                result = self.disturbed_run(*self.WORDS, "--faults",
                                            f"server-{server}:server.lose-memory=error@20")
                self.assertIn(f"the memory of server {server} was lost", result.stdout)
                self.assertEqual([entry["number"] for entry in self.history("lost")], [server])
                self.assert_like_quiet(quiet)

    def test_loose_servers_do_so_too_and_no_push_is_lost(self):
        for server in [0, 1]:
            with self.subTest(server):
                self.run_dir = self.folder / f"server {server}"
                result = self.disturbed_run(*self.WORDS, *ShardsTest.LOOSE["async"], "--faults",
                                            f"server-{server}:server.lose-memory=error@40")
                self.assertIn(f"the memory of server {server} was lost", result.stdout)
                first, second = self.summary()["shards"]
                self.assertEqual(first["fingerprint"], second["fingerprint"])
                self.assertEqual([first["applied"], second["applied"]], [ShardsTest.PUSHES] * 2)

    def test_without_a_copy_the_run_ends_at_once(self):
        for words in ([], ShardsTest.LOOSE["async"]):
            with self.subTest(words):
                self.run_dir = self.folder / f"run {len(words)}"
                result = self.train(*STEPS, *self.WORDS[:-2], *words, "--faults",
                                    "server-1:server.lose-memory=error@20")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("no worker has it", result.stderr)
                self.assertEqual(len(self.history("group")), 2)

    def test_a_servers_death_is_not_held_against_the_one_before_it(self):
        process = self.start("train", self.job, "--run-dir", self.run_dir, *self.WORDS,
                             "--set", "train.epochs=0", "--set", "train.steps=100000000",
                             "--set", "log.every_steps=1", "--set", "log.tensorboard=false")
        for deaths in [1, 2, 3]:
            wait_until(lambda: self.is_training(process), "the group trains")
            os.kill(self.pid_of_server(1), signal.SIGKILL)
            wait_until(lambda: len(self.history("group")) == deaths + 1, "a new group")
        wait_until(lambda: self.is_training(process), "the last group trains")
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        lost = [(entry["role"], entry["number"]) for entry in self.history("lost")]
        self.assertEqual(lost, [("server", 1)] * 3)
        self.assertEqual(self.summary()["restarts"], 3)

    def pid_of_server(self, number):
        tasks = json.loads((self.run_dir / "tasks.json").read_text())["tasks"]
        return next(t["pid"] for t in tasks if t["role"] == "server" and t["number"] == number)

    def is_training(self, process):
        """A step of the newest group is logged."""
        self.assertIsNone(process.poll(), "the run has ended")
        if not (self.run_dir / "metrics.jsonl").exists():
            return False
        return max(self.logged_steps(), default=0) > self.history("group")[-1]["step"]


class ResumeTest(FailuresTest):
    def test_a_run_that_was_asked_to_end_goes_on_as_if_it_never_had(self):
        quiet = self.quiet_run()
        for number, sign in enumerate([signal.SIGTERM, signal.SIGUSR1]):
            with self.subTest(sign):
                self.run_dir = self.folder / f"run{number}"
                process, workers = self.start_long_training()
                process.send_signal(sign)
                self.assert_ends(process, 138)
                self.assert_gone(workers)
                done = max(self.losses())
                self.train(*STEPS, "--set", f"train.steps={done + 20}", "--resume", "auto")
                longer = self.folder / f"longer{number}"
                self.run_command("train", self.job, "--run-dir", longer, *STEPS,
                                 "--set", f"train.steps={done + 20}")
                self.assertEqual(self.losses(), self.losses(longer), "byte for byte")
                self.assertEqual((self.run_dir / "model.safetensors").read_bytes(),
                                 (longer / "model.safetensors").read_bytes())
        self.assertTrue(quiet)

    def test_a_run_that_is_stopped_long_before_the_next_average_loses_no_step(self):
        ways = {"averaging": ["--strategy", "averaging", "--set", "strategy.every=1000000000"],
                "deltas": ["--strategy", "parameter-server", "--set", "strategy.push=delta",
                           "--set", "strategy.local_steps=1000000000"]}
        for name, words in ways.items():
            with self.subTest(name):
                self.run_dir = self.folder / name
                process, tasks = self.start_long_training(*words, servers=1)
                process.send_signal(signal.SIGTERM)
                self.assert_ends(process, 138)
                self.assert_gone(tasks)
                self.assertEqual(self.checkpoint_step(), max(self.losses()))
                self.assert_is_like_a_run_of(self.checkpoint_step(), words)

    def test_a_run_that_is_stopped_shortly_before_an_average_makes_no_other(self):
        process, _ = self.start_long_training("--strategy", "averaging", "--set",
                                              "strategy.every=4", servers=1)
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        self.assertEqual(self.checkpoint_step() % 4, 0)
        self.assertEqual(self.checkpoint_step(), max(self.losses()))

    def test_the_launchers_death_is_survived_by_the_last_checkpoint(self):
        process, workers = self.start_long_training("--set", "checkpoint.every_steps=5")
        wait_until(lambda: (self.run_dir / "checkpoints" / "LATEST").exists(), "a checkpoint")
        process.kill()
        process.wait()
        self.assert_gone(workers)
        steps = max(self.checkpoint_step(), max(self.losses())) + 10
        resumed = self.train(*STEPS, "--set", f"train.steps={steps}", "--resume", "auto")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn("going on from", resumed.stdout)
        longer = self.folder / "longer"
        self.run_command("train", self.job, "--run-dir", longer, *STEPS,
                         "--set", f"train.steps={steps}")
        self.assertEqual(self.losses(), self.losses(longer))

    def test_a_broken_checkpoint_is_named_and_passed_over(self):
        self.train(*STEPS, "--set", "checkpoint.every_steps=20")
        newest = sorted((self.run_dir / "checkpoints").glob("step-*"))[-1]
        file = newest / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[-3] ^= 1
        file.write_bytes(data)
        result = self.train(*STEPS, "--set", "train.steps=70", "--resume", "auto")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(newest.name, result.stdout)
        self.assertIn("going on from", result.stdout)

    def test_where_no_checkpoint_can_be_read_nothing_is_started_over_it(self):
        self.train(*STEPS, "--set", "checkpoint.every_steps=20")
        for checkpoint in (self.run_dir / "checkpoints").glob("step-*"):
            (checkpoint / "manifest.json").write_text("nothing")
        result = self.train(*STEPS, "--resume", "auto")
        self.assertEqual(result.returncode, 2)
        self.assertIn("step-", result.stderr)

    def test_two_runs_do_not_share_a_folder(self):
        # Checkpoints come and go meanwhile.
        process, _ = self.start_long_training("--set", "checkpoint.every_steps=20")
        for _ in range(2):
            second = self.train("--resume", "auto")
            self.assertEqual(second.returncode, 2)
            self.assertIn("still goes on", second.stderr)
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)

    def test_every_strategy_goes_on_from_every_other(self):
        ways = {"all-reduce": [], **{name: SYNCHRONOUS[name] for name in ["servers"]},
                **ASYNCHRONOUS}
        for name, words in ways.items():
            self.run_dir = self.folder / name
            made = self.train(*STEPS, "--set", "train.steps=20",
                              "--set", "checkpoint.every_steps=10", *words)
            self.assertEqual(made.returncode, 0, made.stderr)
        for first in ways:
            for second, words in ways.items():
                with self.subTest(first=first, second=second):
                    self.run_dir = self.folder / f"{first} then {second}"
                    result = self.train("--resume", self.folder / first, *STEPS, "--set",
                                        "train.steps=30", "--workers", 3, *words)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertEqual(self.summary()["steps"], 30)
                    self.assertGreater(min(self.losses()), 10)

    def test_what_cannot_be_gone_on_with_is_refused_with_its_reason(self):
        nothing = self.train("--resume", self.folder / "nowhere")
        self.assertEqual(nothing.returncode, 2)
        self.assertIn("nowhere", nothing.stderr)
        self.run_dir = self.folder / "first"
        self.train(*STEPS, "--set", "checkpoint.every_steps=20")
        other = self.run_command("train", self.job, "--run-dir", self.folder / "other", "--resume",
                                 self.run_dir, "--set",
                                 'model.layers=[{type="linear", out=4}]')
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("tensor", other.stderr)


class ScaleTest(FailuresTest):
    def test_workers_come_and_go_while_every_step_is_made_once(self):
        # Small steps: sums of other workers' parts round differently, and many steps add that up.
        slowly = ["--set", "train.optimizer.lr=0.001"]
        process, _ = self.start_long_training(*slowly)
        for workers in [3, 1, 2]:
            answer = self.run_command("scale", self.run_dir, "--workers", workers)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            wait_until(lambda: len(self.history("group")[-1]["workers"]) == workers, "new group")
            steps = len(self.losses())
            wait_until(lambda: len(self.losses()) > steps + 3, "the new group trains")
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        steps = max(self.losses())
        self.assertEqual(list(self.losses()), list(range(1, steps + 1)))
        quiet = self.folder / "quiet"
        self.run_command("train", self.job, "--run-dir", quiet, *STEPS, *slowly,
                         "--set", f"train.steps={steps}")
        self.assertLess(largest_difference(quiet / "model.safetensors",
                                           self.run_dir / "model.safetensors"), 1e-4)

    def test_one_that_began_as_a_thread_of_its_own_process_may_get_others(self):
        process, _ = self.start_long_training(
            "--workers", 1, "--engine", "inproc", "--set", "cluster.replication=in-graph", workers=1)
        answer = self.run_command("scale", self.run_dir, "--workers", 2)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        wait_until(lambda: len(self.history("group")[-1]["workers"]) == 2, "new group")
        steps = len(self.losses())
        wait_until(lambda: len(self.losses()) > steps + 3, "the new group trains")
        process.send_signal(signal.SIGTERM)
        self.assert_ends(process, 138)
        self.assertEqual(self.history("lost"), [])

    def test_a_run_that_is_over_or_no_run_is_named(self):
        self.train()
        over = self.run_command("scale", self.run_dir, "--workers", 3)
        self.assertEqual(over.returncode, 2)
        self.assertIn("over", over.stderr)
        none = self.run_command("scale", self.folder, "--workers", 3)
        self.assertIn("not the folder of a run", none.stderr)

    def test_too_few_or_too_many_workers_are_refused(self):
        process, _ = self.start_long_training("--min-workers", 2)
        for workers in [1, 1000]:
            answer = self.run_command("scale", self.run_dir, "--workers", workers)
            self.assertEqual(answer.returncode, 2)
            self.assertIn("2 to 64", answer.stderr)
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Ctrl-C, killed and frozen tasks: the right words, the right exit code, nothing left behind."""

import os
import signal
import unittest

from support import CohortTest, freeze, wait_until


class StopTest(CohortTest):
    def test_ctrl_c_stops_all_after_the_step_and_keeps_what_was_written(self):
        process, workers = self.start_long_training()
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)
        self.assert_gone(workers)
        self.assertEqual(self.summary()["status"], "interrupted")
        self.assertEqual(self.summary()["failures"], [])
        self.assertTrue((self.run_dir / "model.safetensors").exists())

    def test_a_second_ctrl_c_stops_at_once(self):
        process, workers = self.start_long_training()
        freeze(workers[1])  # So that no worker can finish its step.
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None or self.said_stopping(process), "answer")
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)
        self.assert_gone(workers)

    def said_stopping(self, process):
        return "stopping" in process.stdout.readline()

    def test_a_signal_that_a_run_was_started_to_ignore_does_not_stop_it(self):
        process, _ = self.start_long_training(prefix=["nohup"])
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)  # 129, if the first had been taken.

    def test_the_launchers_death_takes_its_workers_along(self):
        process, workers = self.start_long_training()
        process.kill()
        process.wait()
        self.assert_gone(workers)


class DeathTest(CohortTest):
    """Of runs that replace nobody; those that do are in failures_test.py."""

    def check_killed(self, *words):
        process, workers = self.start_long_training("--max-restarts", "0", *words)
        os.kill(workers[1], signal.SIGKILL)
        output = self.assert_ends(process, 138)
        self.assert_gone(workers)
        self.assertIn("worker 1", output)
        self.assertIn("SIGKILL", output)
        summary = self.summary()
        self.assertEqual(summary["status"], "failed")
        self.assertIn("SIGKILL", summary["failures"][0])
        self.assertTrue((self.run_dir / "metrics.jsonl").exists())

    def test_a_killed_worker_is_named_in_shared_memory(self):
        self.check_killed()

    def test_a_killed_worker_is_named_over_a_socket(self):
        self.check_killed("--engine", "gloo")

    def test_a_killed_worker_is_named_in_a_ring_of_messages(self):
        self.check_killed("--engine", "shm", "--set", "strategy.algorithm=ring")

    def check_frozen(self, *words):
        process, workers = self.start_long_training(
            "--max-restarts", "0", "--set", "cluster.timeout_seconds=2", *words)
        freeze(workers[1])
        output = self.assert_ends(process, 138)
        self.assertIn("worker 1", output)
        self.assert_gone(workers)

    def test_a_frozen_worker_is_named_in_shared_memory(self):
        self.check_frozen()

    def test_a_frozen_worker_is_named_over_a_socket(self):
        self.check_frozen("--engine", "gloo")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Runs of many workers, and of large models: what they take of the machine."""

import os
import signal
import unittest

from support import CohortTest, tasks_of

# 4 M parameters: with momentum and the gradients of three workers about 85 MB of shared memory.
LARGE = ["--set", 'model.layers=[{type="linear", out=2048}, {type="relu"}, '
                  '{type="linear", out=2048}, {type="relu"}, {type="linear", out=4}]',
         "--set", "train.epochs=0", "--set", "train.steps=30", "--set", "train.batch=12",
         "--workers", "3"]


def shared_memory(launcher):
    """Bytes of all memory that the tasks of a run share, by what the kernel has taken for it."""
    files = {}
    for pid in tasks_of(launcher):
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{fd}"
                if os.readlink(path).startswith("/memfd:cohort"):
                    status = os.stat(path)
                    files[status.st_ino] = status.st_blocks * 512
        except OSError:
            continue  # It has just ended, or closed it.
    return sum(files.values())


class SizeTest(CohortTest):
    def peak_of(self, run_dir, *words):
        process = self.start("train", self.job, "--run-dir", run_dir, "--quiet", *words)
        peak = 0
        while process.poll() is None:
            peak = max(peak, shared_memory(process.pid))
        self.assert_ends(process, 0)
        return peak

    def test_a_new_group_of_workers_takes_no_memory_beside_that_of_the_old_one(self):
        quiet = self.peak_of(self.folder / "quiet", *LARGE)
        self.assertGreater(quiet, 80e6)
        for victim in [1, 0]:
            run_dir = self.folder / f"lost-{victim}"
            peak = self.peak_of(run_dir, *LARGE, "--faults", f"worker-{victim}:worker.step=kill@10")
            self.assertIn('"group":2', (run_dir / "history.jsonl").read_text())
            self.assertLess(peak, 1.2 * quiet)

    def test_a_run_may_grow_to_as_many_workers_as_it_could_have_been_started_with(self):
        process, _ = self.start_long_training("--set", "train.batch=300")
        for workers, limit in [(301, "1 to 300"), (0, "1 to 300")]:
            answer = self.run_command("scale", self.run_dir, "--workers", workers)
            self.assertEqual(answer.returncode, 2)
            self.assertIn(limit, answer.stderr)
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)
        self.run_dir = self.folder / "other"
        result = self.train("--set", "train.batch=2000", "--workers", "1025")
        self.assertEqual(result.returncode, 2)
        self.assertIn("at most 1024", result.stderr)

    def test_seventy_workers_share_little_for_what_they_say_to_each_other(self):
        """By rings of messages; each pair would have had a quarter of a MiB each way."""
        words = ["--workers", "70", "--set", "train.batch=70", "--set", "train.epochs=0",
                 "--set", "train.steps=3", "--set", "strategy.algorithm=tree", "--engine", "shm"]
        self.assertLess(self.peak_of(self.run_dir, *words), 100e6)
        self.assertEqual(self.summary()["steps"], 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""`cohort chaos`: a short session loses nothing, and what is lost is found."""

import json
import subprocess
import unittest

from support import CohortTest

SESSION_LIMIT = 600  # Seconds, reached only by a hang that is not noticed.

JOB = """
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
steps = 6000
batch = 64
validate = "end"
optimizer = { kind = "sgd", lr = 0.05, momentum = 0.9 }
[cluster]
workers = 3
silence_warn_seconds = 1
silence_lost_seconds = 2
"""


class ChaosTest(CohortTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.toml", JOB)

    def chaos(self, *words):
        process = self.start("chaos", self.job, "--run-dir", self.run_dir, "--slow-seconds", 1,
                             *words)
        out, err = process.communicate(timeout=SESSION_LIMIT)
        outcome = subprocess.CompletedProcess(words, process.returncode, out, err)
        report = self.run_dir / "chaos.json"
        self.assertTrue(report.exists(), outcome.stdout + outcome.stderr)
        return outcome, json.loads(report.read_text())

    def test_nothing_is_lost(self):
        outcome, report = self.chaos(
            "--seed", 3, "--events", 8,
            "--strategies", "allreduce,server-sync,server-async,gossip")
        text = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, text)
        self.assertEqual(report["violations"], [], text)
        self.assertEqual(report["events"]["happened"], 8, text)
        self.assertEqual(report["events"]["recovered"], 8, text)
        self.assertEqual(len(report["by_strategy"]), 4)
        self.assertIn("8 events, 8 recovered, nothing lost", outcome.stdout)
        self.assertIn("--seed 3", report["replay"])

    def test_a_run_that_does_not_survive_is_found(self):
        outcome, report = self.chaos("--seed", 1, "--events", 1, "--strategies", "allreduce",
                                     "--set", "cluster.max_restarts=0")
        self.assertEqual(outcome.returncode, 1, outcome.stdout + outcome.stderr)
        event = report["rounds"][0]["events"][0]
        self.assertTrue(event["happened"])
        self.assertFalse(event["recovered"])
        found = "\n".join(report["violations"])
        self.assertIn("did not recover", found)
        self.assertIn(event["target"], found)
        self.assertIn("the run ended with exit code", found)
        self.assertNotEqual(report["rounds"][0]["log_tails"], "")

    def test_a_job_that_cannot_lose_anybody_is_refused(self):
        outcome = self.run_command("chaos", self.job, "--set", "cluster.workers=1")
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("at least 2 workers", outcome.stderr)
        outcome = self.run_command("chaos", self.job, "--strategies", "gosip")
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("gossip", outcome.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

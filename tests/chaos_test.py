"""`cohort chaos`: a short session loses nothing, and what is lost is found."""

import json
import os
import subprocess
import unittest

from support import CohortTest

SESSION_LIMIT = 600  # Seconds, reached only by a hang that is not noticed.

# What happens when follows from the seed; these have what the tests are about.
SEED_OF_TWO = 1001
SEED_OF_CHECKPOINT = 4
SEED_OF_A_KILL = 17

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
            "--seed", 26, "--events", 8,
            "--strategies", "allreduce,server-sync,server-async,gossip")
        text = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, text)
        self.assertEqual(report["violations"], [], text)
        self.assertEqual(report["events"]["happened"], 8, text)
        self.assertEqual(report["events"]["recovered"], 8, text)
        self.assertEqual(len(report["by_strategy"]), 4)
        self.assertIn("8 events, 8 recovered, nothing lost", outcome.stdout)
        self.assertIn("--seed 26", report["replay"])

    def test_two_faults_at_once_and_one_in_the_recovery_from_another(self):
        outcome, report = self.chaos(
            "--seed", SEED_OF_TWO, "--events", 9, "--strategies", "allreduce,server-sync,gossip",
            "--slow-disk", os.environ["COHORT_SLOW_DISK"])
        text = outcome.stdout + outcome.stderr
        self.assertEqual(report["violations"], [], text)
        self.assertEqual(outcome.returncode, 0, text)
        events = [event for one in report["rounds"] for event in one["events"]]
        self.assertLessEqual({"kill with another at once", "crash while another is replaced",
                              "kill while the disk is slow", "crash between pushes"},
                             {event["fault"] for event in events if event["happened"]}, text)
        targets = [event["target"] for event in events
                   if event["fault"] == "kill with another at once" and event["happened"]]
        self.assertTrue(all(" and " in target for target in targets), targets)

    def test_movement_is_measured(self):
        """Of a run in which every step counts once, whatever happens to its workers."""
        outcome, report = self.chaos("--seed", SEED_OF_A_KILL, "--events", 1,
                                     "--strategies", "server-async-movement")
        text = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, text)
        moved = report["rounds"][0]["moved_steps"]
        self.assertAlmostEqual(moved, 4000, delta=80)

    def test_a_fault_that_never_happens_fails_its_round(self):
        """The chief shall crash in a checkpoint, but no checkpoint is ever written."""
        outcome, report = self.chaos("--seed", SEED_OF_CHECKPOINT, "--events", 1, "--minutes", 0.001,
                                     "--strategies", "allreduce", "--set", "train.steps=300",
                                     "--set", "checkpoint.every_steps=0")
        self.assertEqual(report["rounds"][0]["events"][0]["fault"], "crash in checkpoint")
        self.assertEqual(outcome.returncode, 1, outcome.stdout + outcome.stderr)
        self.assertFalse(report["rounds"][0]["events"][0]["happened"])
        self.assertIn("never happened", report["violations"][0])
        self.assertIn("checkpoint.", report["violations"][0])

    def test_a_run_that_does_not_survive_is_found(self):
        outcome, report = self.chaos("--seed", 2, "--events", 1, "--strategies", "allreduce",
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

"""Every job under examples/ trains, from the folder its comments say to start it in."""

import json
import subprocess
import tempfile
import unittest

from support import COMMAND, LIMIT, SOURCE, environment


class ExamplesTest(unittest.TestCase):
    def test_every_example_trains_a_few_steps(self):
        jobs = sorted((SOURCE / "examples").glob("*.toml"))
        self.assertGreaterEqual(len(jobs), 8)
        for job in jobs:
            with self.subTest(job.name), tempfile.TemporaryDirectory() as folder:
                self.check(job, folder)

    def check(self, job, folder):
        words = ["--set", "train.epochs=0", "--set", "train.steps=3"]
        if 'kind = "mnist"' in job.read_text():
            words += ["--set", "data.kind=generated", "--set", "data.task=digits",
                      "--set", "data.path=", "--set", "data.samples=1000"]
        result = subprocess.run([COMMAND, "train", job, "--run-dir", folder, "--quiet", *words],
                                cwd=SOURCE, env=environment(), capture_output=True, text=True,
                                timeout=LIMIT)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(folder + "/summary.json") as file:
            summary = json.load(file)
        self.assertEqual((summary["status"], summary["steps"]), ("completed", 3))
        self.assertIsNotNone(summary["loss"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

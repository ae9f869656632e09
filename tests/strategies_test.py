"""Strategies as a user meets them: refusals, lost servers, slow workers, what the summary says."""

import os
import signal
import unittest

from support import CohortTest, tasks_of, wait_until


class RefusedTest(CohortTest):
    """Each is named with what would be valid, before anything is started."""

    def refused(self, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        result = self.train(*words)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertFalse(self.run_dir.exists())
        return result.stderr

    def test_an_unknown_kind_or_mode(self):
        self.assertIn("parameter-server", self.refused("strategy.kind=parameter-servers"))
        self.assertIn("bounded", self.refused("strategy.kind=parameter-server",
                                              "strategy.consistency=bound"))

    def test_a_quorum_above_the_workers(self):
        said = self.refused("strategy.kind=parameter-server", "strategy.consistency=k-of-n",
                            "strategy.quorum=3")
        self.assertIn("quorum is 3; with 2 workers it can be 1 to 2", said)

    def test_a_staleness_below_zero(self):
        said = self.refused("strategy.kind=parameter-server", "strategy.consistency=bounded",
                            "strategy.staleness=-1")
        self.assertIn("strategy.staleness", said)

    def test_a_codec_that_the_strategy_cannot_use(self):
        said = self.refused("strategy.kind=gossip", "strategy.compression.kind=sign")
        self.assertIn('"sign"', said)
        self.assertIn("int8", said)

    def test_more_servers_than_the_parameters_fill(self):
        said = self.refused("strategy.kind=parameter-server", "cluster.servers=100")
        self.assertIn("at most", said)

    def test_servers_nobody_uses(self):
        self.assertIn("uses no servers", self.refused("cluster.servers=1"))


class OneWordTest(CohortTest):
    def test_each_strategy_is_one_word_away(self):
        for kind in ("parameter-server", "averaging", "gossip"):
            with self.subTest(kind):
                self.run_dir = self.folder / kind
                result = self.train("--strategy", kind)
                self.assertEqual(result.returncode, 0, result.stderr)
                summary = self.summary()
                self.assertEqual(summary["strategy"], kind)
                self.assertEqual(summary["servers"], 0 if kind == "gossip" else 1)
                self.assertEqual(summary["samples"], 2 * 1800)
                self.assertGreater(summary["accuracy"], 0.9)
                self.assertIn("worker 1:", result.stdout)

    def test_the_summary_counts_every_push(self):
        result = self.train("--strategy", "parameter-server", "--set", "strategy.consistency=async")
        self.assertEqual(result.returncode, 0, result.stderr)
        staleness = self.summary()["staleness"]
        self.assertEqual(sum(staleness["histogram"].values()), 2 * 2 * 29)
        self.assertEqual(staleness["applied"], 2 * 2 * 29)
        self.assertEqual((staleness["dropped"], staleness["missing"]), (0, 0))
        roles = [task["role"] for task in self.summary()["tasks"]]
        self.assertEqual(roles, ["chief", "worker", "server"])


class CompressionTest(CohortTest):
    # A rate and a momentum at which what a codec says too much must not go on by itself.
    JOB = """
[job]
seed = 4
[model]
preset = "mlp"
hidden = [64]
[data]
kind = "generated"
task = "digits"
samples = 3000
[train]
steps = 150
batch = 96
validate = "end"
optimizer = { kind = "sgd", lr = 0.05, momentum = 0.9 }
[cluster]
workers = 3
"""

    def accuracy(self, name, *words):
        self.run_dir = self.folder / name
        result = self.train(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return 100 * self.summary()["accuracy"]

    def test_one_bit_of_a_gradient_teaches_as_much_as_all_of_it(self):
        self.job = self.write("digits.toml", self.JOB)
        sign = ["--set", "strategy.compression.kind=sign"]
        plain = self.accuracy("plain")
        self.assertGreater(self.accuracy("sign", *sign), plain - 3)
        servers = ["--strategy", "parameter-server", *sign]
        self.assertGreater(self.accuracy("sign by servers", *servers), plain - 3)
        self.assertGreater(self.accuracy("looking ahead", *servers,
                                         "--set", "train.optimizer.nesterov=true"), plain - 3)


class LostServerTest(CohortTest):
    def test_a_killed_server_is_named_and_nobody_stays(self):
        process = self.start("train", self.job, "--run-dir", self.run_dir,
                             "--strategy", "parameter-server", "--servers", "2",
                             "--max-restarts", "0",
                             "--set", "train.epochs=0", "--set", "train.steps=100000000",
                             "--set", "log.every_steps=1")
        metrics = self.run_dir / "metrics.jsonl"
        wait_until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 3,
                   "the workers train")
        tasks = tasks_of(process.pid)
        self.assertEqual(len(tasks), 4)
        os.kill(tasks[3], signal.SIGKILL)  # Workers are started first.
        said = self.assert_ends(process, 138)
        self.assertRegex(said, rf"server 1 \(pid {tasks[3]} on \S+\) was killed by SIGKILL")
        self.assert_gone(tasks)


if __name__ == "__main__":
    unittest.main(verbosity=2)

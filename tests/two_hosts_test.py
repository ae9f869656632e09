"""Workers started by somebody else: by hand on two hosts (network namespaces), and by torchrun."""

import os
import subprocess
import unittest

import read_safetensors
from support import BLOBS, COMMAND, LIMIT, CohortTest, TwoHostsCase, environment


class TwoHostsTest(TwoHostsCase):
    def test_nobody_goes_between_hosts_unasked(self):
        without_word = {"COHORT_SECRET_FILE": self.trust["COHORT_SECRET_FILE"]}
        self.assertIn("--insecure", self.assert_ends(self.start_rank(0, trust=without_word), 2))
        without_secret = self.start_rank(0, "--insecure", trust={})
        self.assertIn("COHORT_SECRET_FILE", self.assert_ends(without_secret, 2))
        os.chmod(self.trust["COHORT_SECRET_FILE"], 0o644)
        self.assertIn("chmod 600", self.assert_ends(self.start_rank(0), 2))

    def test_a_rank_with_another_secret_is_kept_out(self):
        """Whoever comes with the right one afterwards trains as if nobody had come before."""
        patience = ("--set", f"cluster.timeout_seconds={5 * LIMIT}")
        other = self.trust | {"COHORT_SECRET_FILE": str(self.secret("other"))}
        first = self.start_rank(0, *patience)
        refused = self.assert_ends(self.start_rank(1, *patience, trust=other), 2)
        self.assertIn("does not know the secret of this run", refused)
        self.assertIsNone(first.poll(), "rank 0 still waits for rank 1")
        for process in (self.start_rank(1, *patience), first):
            self.assert_ends(process, 0)

    def start_rank(self, rank, *words, run="run", each=1, trust=None):
        """One of the `each` ranks of a host."""
        return self.start(
            "train", self.job, "--run-dir", self.folder / f"{run}-{rank}", *words,
            prefix=("ip", "netns", "exec", self.hosts[rank // each]),
            RANK=str(rank), WORLD_SIZE=str(2 * each), LOCAL_RANK=str(rank % each),
            MASTER_ADDR="10.77.0.1", MASTER_PORT="29533", **(self.trust if trust is None else trust))

    def test_find_each_other_and_train_over_gloo(self):
        self.run_dir = self.folder / "run-0"
        ranks = [self.start_rank(rank) for rank in (1, 0)]
        for process in ranks:
            self.assert_ends(process, 0)
        summary = self.summary()
        self.assertEqual(summary["engine"], "gloo")
        self.assertEqual(summary["workers"], 2)
        self.assertGreater(summary["accuracy"], 0.9)
        self.assertGreater(summary["bytes_sent"], 0)
        self.assertTrue(all(task["pid"] > 0 for task in summary["tasks"]))
        self.assertFalse((self.folder / "run-1").exists(), "only the chief writes a run folder")

        alone = self.folder / "alone"
        self.run_command("train", self.job, "--run-dir", alone, "--workers", "1")
        self.run_dir = alone
        self.assertAlmostEqual(self.summary()["loss"], summary["loss"], places=4)

    def bytes_on_the_cable(self):
        """Sent by both hosts, as the kernel counts them at their network cards."""
        return sum(int(subprocess.run(
            ["ip", "netns", "exec", host, "cat", f"/sys/class/net/{card}/statistics/tx_bytes"],
            check=True, capture_output=True, text=True).stdout)
            for host, card in zip(self.hosts, self.cable))

    def test_the_summary_says_what_went_over_the_cable(self):
        self.job = self.write("wide.toml", BLOBS.replace("out=16", "out=20000"))
        strategies = {
            "plain": (),
            "topk": ("--set", "strategy.compression.kind=topk"),
            "int8": ("--set", "strategy.compression.kind=int8"),
            "servers": ("--strategy", "parameter-server", "--servers", "2"),
            "gossip": ("--strategy", "gossip"),
        }
        said = {}
        for name, words in strategies.items():
            with self.subTest(name):
                before = self.bytes_on_the_cable()
                ranks = [self.start_rank(rank, "--set", "train.validate=never",
                                         "--set", "train.epochs=0", "--set", "train.steps=20",
                                         *words, run=name) for rank in (1, 0)]
                for process in ranks:
                    self.assert_ends(process, 0)
                self.run_dir = self.folder / f"{name}-0"
                summary = self.summary()
                counted = self.bytes_on_the_cable() - before
                said[name] = summary["bytes_sent"]
                if name == "servers":  # Both stand on the first host: only rank 1's bytes travel.
                    continue
                # The cable also carries TCP's own bytes, and how the ranks found each other.
                self.assertGreater(counted, said[name])
                self.assertLess(counted, 1.15 * said[name] + 200000)
        self.assertLess(said["topk"], said["plain"] / 10)
        self.assertLess(said["int8"], said["plain"] / 3)

    def train_two_each(self, name, *words):
        """Two ranks on each host: the summary, the floats of the model, and what the cable carried."""
        before = self.bytes_on_the_cable()
        ranks = [self.start_rank(rank, "--set", "train.epochs=0", "--set", "train.steps=30", *words,
                                 run=name, each=2) for rank in (3, 2, 1, 0)]
        for process in ranks:
            self.assert_ends(process, 0)
        self.run_dir = self.folder / f"{name}-0"
        content = (self.run_dir / "model.safetensors").read_bytes()
        tensors = {name: numbers for name, _, _, numbers in read_safetensors.arrays(content)}
        return self.summary(), tensors, self.bytes_on_the_cable() - before

    def test_memory_inside_hosts_and_a_network_between_them_equal_one_network(self):
        self.job = self.write("wide.toml", BLOBS.replace("out=16", "out=20000"))
        ring = ("--set", "strategy.algorithm=ring")
        summary, composed, _ = self.train_two_each("composed", *ring)
        self.assertEqual(summary["engine"], "shm+gloo")
        self.assertEqual(summary["workers"], 4)
        summary, plain, carried = self.train_two_each("plain", *ring, "--engine", "gloo")
        self.assertEqual(summary["engine"], "gloo")
        self.assertEqual(composed, plain, "the same sums in the same order are the same bytes")

        # Hosts sum up inside first, and only then tell each other: once, not once a rank.
        summary, hosts, less = self.train_two_each("hosts")
        self.assertEqual(summary["engine"], "shm+gloo")
        for name, values in hosts.items():
            for value, expected in zip(values, plain[name]):
                self.assertAlmostEqual(value, expected, delta=1e-4)
        self.assertLess(less, 0.8 * carried)

    def test_shared_memory_between_hosts_is_refused(self):
        ranks = [self.start_rank(rank, "--engine", "shm") for rank in (0, 1)]
        self.assertIn("rank 1 is on another", self.assert_ends(ranks[0], 2))
        # The other one finds out by itself, or finds rank 0 gone because it was quicker.
        ranks[1].communicate(timeout=LIMIT)
        self.assertIn(ranks[1].returncode, (2, 138))


class TorchrunTest(CohortTest):
    def test_starts_two_workers_of_one_host(self):
        result = subprocess.run(
            # Without -r and -t Debian's torchrun 1.13 fails in itself under Python 3.11.
            ["torchrun", "-r", "1", "-t", "1", "--standalone", "--nproc_per_node", "2",
             "--no_python", COMMAND, "train", self.job, "--run-dir", self.run_dir],
            cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        summary = self.summary()
        self.assertEqual(summary["engine"], "shm")
        self.assertEqual(summary["workers"], 2)
        self.assertGreater(summary["accuracy"], 0.9)

    def test_a_part_of_the_variables_is_an_error(self):
        result = self.train(RANK="0")
        self.assertEqual(result.returncode, 2)
        self.assertIn("WORLD_SIZE is not set", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

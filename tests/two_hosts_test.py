"""Workers started by somebody else: by hand on two hosts (network namespaces), and by torchrun."""

import os
import subprocess
import unittest

from support import COMMAND, LIMIT, CohortTest, environment


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class TwoHostsTest(CohortTest):
    """Two namespaces joined by a cable: to Cohort they are two hosts."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may make network namespaces")
        self.hosts = [f"cohort-{os.getpid()}-{i}" for i in range(2)]
        for host in self.hosts:
            ip("netns", "add", host)
            self.addCleanup(ip, "netns", "del", host)
        cable = [f"c{os.getpid()}n{i}" for i in range(2)]
        ip("link", "add", cable[0], "netns", self.hosts[0], "type", "veth",
           "peer", "name", cable[1], "netns", self.hosts[1])
        for i in range(2):
            ip("-n", self.hosts[i], "addr", "add", f"10.77.0.{i + 1}/24", "dev", cable[i])
            ip("-n", self.hosts[i], "link", "set", cable[i], "up")
            ip("-n", self.hosts[i], "link", "set", "lo", "up")

    def start_rank(self, rank, *words):
        return self.start(
            "train", self.job, "--run-dir", self.folder / f"run-{rank}", *words,
            prefix=("ip", "netns", "exec", self.hosts[rank]),
            RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0",
            MASTER_ADDR="10.77.0.1", MASTER_PORT="29533")

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

"""Ranks on one host that something else starts, by hand or mpirun: they find each other, without a port, in a folder of
their user, train what workers of one command train, and leave nothing behind."""

import os
import shutil
import signal
import unittest

from support import COMMAND, LIMIT, CohortTest, free_port, processes_of, unix_listeners, wait_until

LONG = ("--set", "train.epochs=0", "--set", "train.steps=100000000", "--set", "log.every_steps=1",
        "--set", "log.tensorboard=false")


def folder_of(ranks):
    """In which they listen."""
    folders = {os.path.dirname(path) for rank in ranks for path in unix_listeners(processes_of(rank.pid))}
    assert len(folders) == 1, folders
    return folders.pop()


class LaunchersTest(CohortTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def start_rank(self, rank, *words, run="run", port=None):
        return self.start(
            "train", self.job, "--run-dir", self.folder / run, *words, RANK=str(rank), WORLD_SIZE="2",
            LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port or self.port))

    def model(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()

    def model_of_one_command(self):
        self.assertEqual(self.run_command("train", self.job, "--run-dir", self.folder / "one").returncode, 0)
        return self.model("one")

    def start_long_run(self, run, **more):
        ranks = [self.start_rank(rank, *LONG, run=run, **more) for rank in (1, 0)]
        metrics = self.folder / run / "metrics.jsonl"
        wait_until(lambda: any(rank.poll() is not None for rank in ranks) or
                   metrics.exists() and metrics.read_text().count("\n") > 3, "the ranks train")
        self.assertEqual([rank.poll() for rank in ranks], [None, None], "the run ended early")
        return ranks, folder_of(ranks)

    def stop(self, ranks):
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
        self.assert_ends(ranks[1], 138)  # The chief. The other may end of the signal, or of the loss of its peer.
        self.assertNotEqual(ranks[0].wait(timeout=LIMIT), 0)

    def test_ranks_by_hand_train_what_one_command_trains(self):
        for rank in [self.start_rank(rank) for rank in (1, 0)]:
            self.assert_ends(rank, 0)
        self.assertEqual(self.model("run"), self.model_of_one_command())

    def test_ranks_of_mpirun_need_no_address(self):
        self.assertTrue(shutil.which("mpirun"), "the set-up of the tests installs Open MPI")
        process = self.start(
            "--allow-run-as-root", "--oversubscribe", "-n", "2", COMMAND, "train", self.job,
            "--run-dir", self.folder / "run", program="mpirun")
        self.assert_ends(process, 0)
        self.assertEqual(self.model("run"), self.model_of_one_command())

    def test_two_runs_of_one_port_do_not_mix(self):
        first, folder = self.start_long_run("first")
        refused = self.assert_ends(self.start_rank(0, run="second"), 1)
        self.assertIn("another process listens there", refused)
        self.assertTrue(os.path.exists(folder), "the first run's")
        self.stop(first)
        self.assertFalse(os.path.exists(folder), "the folder of the run goes with its last rank")

    def test_what_killed_ranks_leave_is_removed_by_the_next_run(self):
        ranks, folder = self.start_long_run("killed")
        for rank in ranks:
            rank.kill()
            rank.communicate()
        wait_until(lambda: not os.path.exists(folder) or not self.is_held(folder), "their children end")
        other_port = free_port()
        for rank in [self.start_rank(rank, port=other_port) for rank in (1, 0)]:
            self.assert_ends(rank, 0)
        self.assertFalse(os.path.exists(folder))
        for rank in [self.start_rank(rank, run="again") for rank in (1, 0)]:
            self.assert_ends(rank, 0)

    @staticmethod
    def is_held(folder):
        number = str(os.stat(folder).st_ino)
        with open("/proc/locks") as locks:
            return any(f":{number} " in line for line in locks)


if __name__ == "__main__":
    unittest.main(verbosity=2)

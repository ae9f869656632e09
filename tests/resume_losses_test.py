"""What a resume loses today, as docs/checkpoints.md lists it: each line there has a test here that
fails when it is no longer true, or never was."""

import json
import struct
import unittest

from support import CohortTest

FIRST, ALL = 20, 40
COMMON = ["--set", "train.epochs=0", "--set", "log.every_steps=1", "--set", "log.tensorboard=false"]
SERVERS = ["--strategy", "parameter-server"]
AVERAGING = ["--strategy", "averaging", "--set", "strategy.every=5"]
PLAIN_SGD = ["--set", "train.optimizer.momentum=0"]
TOPK = ["--engine", "shm", "--set", "strategy.algorithm=ring", "--set",
        "strategy.compression.kind=topk", "--set", "strategy.compression.ratio=0.1"]


def tensors(path):
    """The bytes of every tensor of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


class ResumeLossesTest(CohortTest):
    def steps(self, folder, steps, *words):
        result = self.run_command("train", self.job, "--run-dir", folder, *COMMON,
                                  "--set", f"train.steps={steps}", *words)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return folder

    def checkpointed(self, *words):
        self.first = self.steps(self.folder / "first", FIRST, "--set",
                                f"checkpoint.every_steps={FIRST}", *words)

    def checkpoint(self):
        return sorted((self.first / "checkpoints").glob("step-*"))[-1]

    def stopped_and_resumed(self, *words):
        """Whether a run that was stopped and gone on with ends with the bytes of one that was not."""
        whole = self.steps(self.folder / "whole", ALL, *words)
        self.checkpointed(*words)
        second = self.steps(self.folder / "second", ALL, "--resume", self.first, *words)
        return tensors(whole / "model.safetensors") == tensors(second / "model.safetensors")

    def own_files(self):
        return sorted(file.name for file in self.checkpoint().glob("worker-*"))

    def compare(self, lost, kept):
        self.assertTrue(self.stopped_and_resumed(*kept), "nothing is lost")
        self.setUp()
        self.assertFalse(self.stopped_and_resumed(*lost), "no longer lost: mend the docs")

    def test_all_reduce_loses_what_compression_left_over_on_workers_but_the_chief(self):
        self.compare(lost=["--workers", 2, *TOPK], kept=["--workers", 2, *TOPK[:4]])
        self.assertEqual(self.own_files(), ["worker-0.safetensors"])

    def test_synchronous_servers_lose_what_compression_left_over(self):
        self.compare(lost=["--workers", 2, *SERVERS, *TOPK[4:]], kept=["--workers", 2, *SERVERS])
        self.assertEqual(self.own_files(), [])

    def test_averaging_loses_the_optimizers_of_workers_but_the_chief(self):
        self.compare(lost=["--workers", 2, *AVERAGING],
                     kept=["--workers", 2, *AVERAGING, *PLAIN_SGD])

    def test_averaging_with_one_worker_loses_nothing(self):
        self.assertTrue(self.stopped_and_resumed("--workers", 1, *AVERAGING))

    def test_synchronous_deltas_lose_the_optimizers_of_workers_but_the_chief(self):
        deltas = [*SERVERS, "--set", "strategy.push=delta", "--set", "strategy.local_steps=5"]
        self.compare(lost=["--workers", 2, *deltas], kept=["--workers", 2, *deltas, *PLAIN_SGD])

    def test_where_nobody_waits_there_is_one_velocity_for_all_workers(self):
        self.checkpointed("--workers", 3, *SERVERS, "--set", "strategy.consistency=async")
        self.assertEqual(self.own_files(), [])
        slots = tensors(self.checkpoint() / "optimizer.safetensors")
        model = tensors(self.checkpoint() / "model.safetensors")
        self.assertEqual(set(slots), {f"momentum/{name}" for name in model})
        self.assertTrue(any(any(values) for values in slots.values()), "not zero")

    def test_gossip_has_the_chiefs_model_and_its_age_alone(self):
        self.checkpointed("--workers", 3, "--strategy", "gossip")
        self.assertEqual(self.own_files(), ["worker-0.safetensors"])

    def test_the_counts_of_a_run_begin_anew(self):
        self.stopped_and_resumed("--workers", 2, *SERVERS, "--set", "strategy.consistency=async")
        applied = {run: json.loads((self.folder / run / "summary.json").read_text())["staleness"]
                   ["applied"] for run in ["whole", "second"]}
        self.assertEqual(applied["whole"], 2 * applied["second"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

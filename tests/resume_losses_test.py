"""What a resume loses, as docs/checkpoints.md says: nothing. Lockstep strategies go on to the byte,
whatever single workers had; others have in the checkpoint what every worker had. With another number
of workers what was left out is added up and dealt out."""

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import unittest

from support import SOURCE, CohortTest, state_of, wait_until

FIRST, ALL = 20, 40
COMMON = ["--set", "train.epochs=0", "--set", "log.every_steps=1", "--set", "log.tensorboard=false"]
SERVERS = ["--strategy", "parameter-server"]
ASYNC = [*SERVERS, "--set", "strategy.consistency=async"]
AVERAGING = ["--strategy", "averaging", "--set", "strategy.every=5"]
DELTAS = [*SERVERS, "--set", "strategy.push=delta", "--set", "strategy.local_steps=5"]
RING = ["--engine", "shm", "--set", "strategy.algorithm=ring"]
FORMAT_1 = SOURCE / "tests" / "data" / "checkpoint-format-1"


def codec(kind):
    return ["--set", f"strategy.compression.kind={kind}", "--set", "strategy.compression.ratio=0.1"]


def header_and_data(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def tensors(path):
    """The bytes of every tensor of a safetensors file."""
    header, data = header_and_data(path)
    return {name: data[entry["data_offsets"][0]:entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def total(checkpoint, workers, name):
    """The sum over the workers of a tensor of their files, place by place."""
    parts = [floats(tensors(checkpoint / f"worker-{rank}.safetensors")[name])
             for rank in range(workers)]
    return [sum(values) for values in zip(*(part for part in parts if part))]


class Resumes(CohortTest):
    def steps(self, folder, steps, *words):
        result = self.run_command("train", self.job, "--run-dir", folder, *COMMON,
                                  "--set", f"train.steps={steps}", *words)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return folder

    def checkpointed(self, *words):
        self.first = self.steps(self.folder / "first", FIRST, "--set",
                                f"checkpoint.every_steps={FIRST}", *words)

    def checkpoint(self, run=None):
        return sorted(((run or self.first) / "checkpoints").glob("step-*"))[-1]

    def own_files(self, run=None):
        return sorted(file.name for file in self.checkpoint(run).glob("worker-*"))

    def expect_same_end(self, *words):
        """A run that was stopped and gone on with ends with the bytes of one that was not."""
        whole = self.steps(self.folder / "whole", ALL, *words)
        self.checkpointed(*words)
        second = self.steps(self.folder / "second", ALL, "--resume", self.first, *words)
        self.assertEqual(tensors(whole / "model.safetensors"),
                         tensors(second / "model.safetensors"))

    def test_a_death_while_a_resumed_group_forms_costs_nothing(self):
        words = ["--workers", 2, *RING, *codec("topk")]
        whole = self.steps(self.folder / "whole", ALL, *words)
        self.checkpointed(*words)
        for worker in (0, 1):
            with self.subTest(worker=worker):
                second = self.steps(self.folder / f"second-{worker}", ALL, "--resume", self.first,
                                    *words, "--faults", f"worker-{worker}:worker.rendezvous=kill")
                self.assertEqual(json.loads((second / "summary.json").read_text())["restarts"], 1)
                self.assertEqual(tensors(whole / "model.safetensors"),
                                 tensors(second / "model.safetensors"))

    def expect_all_have_files(self, workers):
        self.assertEqual(self.own_files(), [f"worker-{n}.safetensors" for n in range(workers)])

    def resume_and_read(self, *words):
        """Goes on from the checkpoint, makes no step, and leaves a checkpoint of its own."""
        self.second = self.steps(self.folder / "second", FIRST, "--resume", self.first, "--set",
                                 f"checkpoint.every_steps={FIRST}", *words)

    def checkpoint_steps(self):
        return {int(path.name[5:]) for path in (self.run_dir / "checkpoints").glob("step-*")}

    def wait_for_checkpoints(self, count):
        seen = set()

        def enough():
            seen.update(self.checkpoint_steps())
            return len(seen) >= count
        wait_until(enough, f"{count} checkpoints")

    def expect_sums_kept(self, words, before, after, names):
        self.checkpointed("--workers", before, *words)
        sums = {name: total(self.checkpoint(), before, name) for name in names}
        self.assertTrue(all(any(values) for values in sums.values()), "there is something to lose")
        self.resume_and_read("--workers", after, *words)
        for name, values in sums.items():
            again = total(self.checkpoint(self.second), after, name)
            self.assertEqual(len(values), len(again))
            for one, other in zip(values, again):
                self.assertAlmostEqual(one, other, delta=1e-6, msg=name)

    def expect_goes_on(self, *words):
        self.steps(self.folder / "whole", ALL, "--workers", 2, *words)
        self.checkpointed("--workers", 2, *words)
        self.steps(self.folder / "second", ALL, "--workers", 2, "--resume", self.first, *words)


class ResumeLossesTest(Resumes):
    def test_every_way_that_is_said_to_goes_on_to_the_byte(self):
        lines = self.run_command("train", "--keys").stdout.splitlines()
        title = next(line for line in lines if "| resumes to the byte |" in line)
        column = [cell.strip() for cell in title.split("|")].index("resumes to the byte")
        tested = 0
        for line in lines[lines.index(title) + 2:]:
            cells = [cell.strip(" `") for cell in line.split("|")]
            if len(cells) <= column:
                break
            if cells[column] != "yes":
                continue
            with self.subTest(cells[1:3]):
                self.setUp()
                way = ["--set", "strategy." + cells[2].replace(" ", "")] if cells[2] else []
                if cells[1] == "averaging":
                    way += ["--set", "strategy.every=5"]  # A checkpoint is of an average.
                self.expect_same_end("--workers", 2, "--strategy", cells[1], *way)
                tested += 1
        self.assertGreaterEqual(tested, 3)

    def test_all_reduce_with_every_codec_goes_on_to_the_byte(self):
        for kind in ["topk", "sign", "int8", "lowrank"]:
            with self.subTest(kind):
                self.setUp()
                self.expect_same_end("--workers", 2, *RING, *codec(kind))
                self.expect_all_have_files(2)

    def test_all_reduce_without_a_codec_has_no_files_of_workers(self):
        self.expect_same_end("--workers", 2, *RING)
        self.assertEqual(self.own_files(), [])

    def test_synchronous_servers_with_every_codec_go_on_to_the_byte(self):
        for kind in ["topk", "sign", "lowrank"]:
            with self.subTest(kind):
                self.setUp()
                self.expect_same_end("--workers", 2, *SERVERS, *codec(kind))
                self.expect_all_have_files(2)

    def test_two_servers_by_sockets_with_a_codec_go_on_to_the_byte(self):
        self.expect_same_end("--workers", 2, *SERVERS, "--set", "cluster.servers=2", "--engine",
                             "gloo", *codec("int8"))

    def test_averaging_goes_on_to_the_byte(self):
        self.expect_same_end("--workers", 3, *AVERAGING)
        self.assertEqual(self.own_files(), ["worker-1.safetensors", "worker-2.safetensors"],
                         "the chief's optimizer is that of the checkpoint")

    def test_averaging_with_one_worker_goes_on_to_the_byte(self):
        self.expect_same_end("--workers", 1, *AVERAGING)

    def test_synchronous_deltas_go_on_to_the_byte(self):
        self.expect_same_end("--workers", 2, *DELTAS)
        self.setUp()
        self.expect_same_end("--workers", 2, *DELTAS, "--set", "train.optimizer.kind=adam", "--set",
                             "train.optimizer.momentum=0", *codec("topk"))

    def test_a_run_that_is_told_to_stop_goes_on_to_the_byte(self):
        words = ["--workers", 2, *RING, *codec("topk")]
        process, tasks = self.start_long_training(*words)
        process.terminate()
        process.communicate()
        stopped = self.checkpoint(self.run_dir)
        step = json.loads((stopped / "state.json").read_text())["step"]
        self.assertEqual(self.own_files(self.run_dir),
                         ["worker-0.safetensors", "worker-1.safetensors"])
        whole = self.steps(self.folder / "whole", step + 20, *words)
        second = self.steps(self.folder / "second", step + 20, "--resume", self.run_dir, *words)
        self.assertEqual(tensors(whole / "model.safetensors"),
                         tensors(second / "model.safetensors"))

    def test_a_checkpoint_by_time_has_the_parts_of_one_step(self):
        process, tasks = self.start_long_training("--workers", 2, *RING, *codec("topk"), "--set",
                                                  "checkpoint.every_seconds=0.05")
        self.wait_for_checkpoints(3)
        process.terminate()
        process.communicate()
        for checkpoint in (self.run_dir / "checkpoints").glob("step-*"):
            step = json.loads((checkpoint / "state.json").read_text())["step"]
            header, _ = header_and_data(checkpoint / "worker-1.safetensors")
            self.assertEqual(json.loads(header["__metadata__"]["state"])["step"], step)

    def expect_one_checkpoint_less(self, fault, complaint, most=1):
        """Worker 1 fails in writing its first part: the run goes on, and saves the next ones. A few
        steps are quick, and may all be made before it comes to that: then the one of the end has to
        be written again, too (`most`)."""
        run = self.steps(self.folder / "run", 60, "--workers", 2, *RING, *codec("topk"), "--set",
                         "checkpoint.every_steps=10", "--set", "checkpoint.keep=100", "--faults",
                         f"worker-1:{fault}")
        logs = "".join(log.read_text() for log in (run / "logs").glob("worker-*.log"))
        self.assertIn(len(re.findall(complaint, logs)), range(1, most + 1), logs)
        self.assertEqual(json.loads((self.checkpoint(run) / "state.json").read_text())["step"], 60)
        for checkpoint in (run / "checkpoints").glob("step-*"):
            names = {file["name"] for file in
                     json.loads((checkpoint / "manifest.json").read_text())["files"]}
            self.assertLessEqual({"worker-0.safetensors", "worker-1.safetensors"}, names)
        self.assertEqual([path for path in (run / "checkpoints").glob(".part*")], [])

    def test_a_worker_that_cannot_write_its_part_costs_one_checkpoint(self):
        self.expect_one_checkpoint_less("checkpoint.part=error",
                                        "could not be saved: worker 1 could not write its part")

    def test_a_worker_that_dies_while_it_writes_its_part_costs_one_checkpoint(self):
        self.expect_one_checkpoint_less("checkpoint.report=kill",
                                        "could not be saved: worker 1 has not written its part", 2)

    def test_a_writer_of_the_group_before_that_is_late_takes_nothing_of_the_next_ones(self):
        # A file that another program has locked keeps the chief from writing, until the replacement
        # of the worker that dies has written its part of the checkpoint of the end.
        process = self.start("train", self.job, "--run-dir", self.run_dir, *COMMON, "--set",
                             "train.steps=60", "--workers", 2, *RING, *codec("topk"), "--set",
                             "checkpoint.every_steps=10", "--faults",
                             "worker-0:worker.step=stop@5;worker-1:worker.step=kill@30")
        wait_until(lambda: self.pid_of_worker(0) and state_of(self.pid_of_worker(0)) == "T",
                   "the chief stops")
        folder = self.run_dir / "checkpoints"
        folder.mkdir(exist_ok=True)
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.kill(self.pid_of_worker(0), signal.SIGCONT)
            wait_until(lambda: list(folder.glob(".part-all-2-*/report-1")), "worker 1 writes")
        self.assert_ends(process, 0)
        self.assertIn(60, self.checkpoint_steps())
        self.assertEqual(list(folder.glob(".part*")), [])

    def test_where_nobody_waits_a_lost_worker_keeps_no_checkpoint_waiting(self):
        for more, files in ([], 3), (["--max-restarts", 0, "--min-workers", 2], 1):
            with self.subTest(more):
                self.setUp()
                run = self.steps(self.folder / "run", 2000, "--workers", 3, *ASYNC, "--set",
                                 "checkpoint.every_steps=20", "--set", "checkpoint.keep=100",
                                 "--faults", "worker-2:worker.step=kill@100", *more)
                self.assertEqual(len(json.loads((run / "summary.json").read_text())["failures"]), 1)
                last = json.loads((self.checkpoint(run) / "state.json").read_text())
                self.assertEqual(last["step"], 2000)
                self.assertGreaterEqual(len(self.own_files(run)), files)

    def test_servers_that_outlive_all_workers_are_gone_on_with_from_where_they_are(self):
        """The only worker dies some steps after a checkpoint, which the servers are ahead of."""
        process, tasks = self.start_long_training(
            "--workers", 1, *SERVERS, *codec("topk"), "--set", "checkpoint.every_steps=200",
            workers=1, servers=1)
        wait_until(self.checkpoint_steps, "a checkpoint")
        saved = max(self.checkpoint_steps())
        wait_until(lambda: len(self.logged_steps()) > saved + 20, "the servers are ahead of it")
        os.kill(self.pid_of_worker(0), signal.SIGKILL)
        wait_until(lambda: '"group":2' in (self.run_dir / "history.jsonl").read_text(),
                   "another worker goes on")
        logged = len(self.logged_steps())
        wait_until(lambda: len(self.logged_steps()) > logged + 20, "it makes steps")
        process.terminate()
        process.communicate()
        steps = self.logged_steps()
        self.assertEqual(steps, sorted(set(steps)), "none is made twice")
        # The servers may have made one that nobody has lived to log.
        self.assertLessEqual(steps[-1] - len(steps), 1, "none is left out")

    def logged_steps(self):
        lines = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["step"] for line in lines if line.endswith("}") and '"loss"' in line]

    def pid_of_worker(self, number):
        path = self.run_dir / "tasks.json"
        tasks = json.loads(path.read_text())["tasks"] if path.exists() else []
        return next((t["pid"] for t in tasks if t["role"] != "server" and t["number"] == number), None)

    def test_where_nobody_waits_every_worker_has_its_velocity(self):
        self.checkpointed("--workers", 3, *ASYNC)
        self.expect_all_have_files(3)
        velocities = [tensors(self.checkpoint() / name)["own/0"] for name in self.own_files()]
        self.assertEqual(len(set(velocities)), 3, "each its own")
        self.resume_and_read("--workers", 3, *ASYNC)
        again = [tensors(self.checkpoint(self.second) / name)["own/0"]
                 for name in self.own_files(self.second)]
        self.assertEqual(again, velocities)

    def test_gossip_has_every_workers_model_and_its_age(self):
        self.checkpointed("--workers", 3, "--strategy", "gossip")
        self.expect_all_have_files(3)
        for name in self.own_files()[1:]:
            header, _ = header_and_data(self.checkpoint() / name)
            self.assertIn("model/0.weight", header)
            self.assertIn("slot/momentum/0.weight", header)
            self.assertIn("steps in this worker's model", header["__metadata__"]["meaning"])
        self.expect_optimizers_taken_up("--workers", 3, "--strategy", "gossip")

    def expect_optimizers_taken_up(self, *words):
        """Each worker goes on with its own."""
        def momenta(run):
            return [{name: value for name, value in tensors(path).items() if "momentum" in name}
                    for path in sorted(self.checkpoint(run).glob("worker-[12].*"))]
        before = momenta(self.first)
        self.assertEqual(len(before), 2)
        self.assertNotEqual(before[0], before[1], "each has its own")
        self.resume_and_read(*words)
        self.assertEqual(momenta(self.second), before)

    def test_averages_that_do_not_wait_have_every_workers_optimizer(self):
        words = ["--workers", 3, *AVERAGING, "--set", "strategy.mode=partial", "--set",
                 "strategy.quorum=2"]
        self.checkpointed(*words)
        self.expect_optimizers_taken_up(*words)

    def test_with_other_workers_what_all_reduce_left_out_is_dealt_out(self):
        for before, after in [(3, 2), (2, 3)]:
            with self.subTest(f"{before} to {after}"):
                self.setUp()
                self.expect_sums_kept([*RING, *codec("topk")], before, after, ["own/0", "own/1"])

    def test_with_one_worker_the_velocity_is_its_optimizers(self):
        self.checkpointed("--workers", 3, *RING, *codec("topk"))
        velocity = total(self.checkpoint(), 3, "own/1")
        self.resume_and_read("--workers", 1, *RING, *codec("topk"))
        slots = tensors(self.checkpoint(self.second) / "optimizer.safetensors")
        again = sum(sum(floats(values)) for values in slots.values())
        self.assertAlmostEqual(sum(velocity), again, delta=1e-5)

    def test_with_more_workers_than_one_its_optimizers_velocity_is_theirs(self):
        self.checkpointed("--workers", 1, *RING, *codec("topk"))
        slots = tensors(self.checkpoint() / "optimizer.safetensors")
        momentum = sum(sum(floats(values)) for values in slots.values())
        self.assertNotEqual(momentum, 0)
        self.resume_and_read("--workers", 2, *RING, *codec("topk"))
        again = total(self.checkpoint(self.second), 2, "own/1")
        self.assertAlmostEqual(sum(again), momentum, delta=1e-5)

    def test_velocities_fit_the_parts_of_a_step_whatever_they_were_of(self):
        """A run that was begun with two workers and made larger is gone on with by three."""
        process, tasks = self.start_long_training(*ASYNC, "--workers", 2, servers=1)
        answer = self.run_command("scale", self.run_dir, "--workers", 3)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        wait_until(lambda: '"workers":[0,1,2]' in (self.run_dir / "history.jsonl").read_text(),
                   "three train")
        step = len((self.run_dir / "metrics.jsonl").read_text().splitlines())
        wait_until(lambda: len((self.run_dir / "metrics.jsonl").read_text().splitlines())
                   > step + 100, "they do for a while")
        process.terminate()
        process.communicate()
        before = total(self.checkpoint(self.run_dir), 3, "own/0")
        state = json.loads((self.checkpoint(self.run_dir) / "state.json").read_text())
        self.second = self.steps(self.folder / "second", state["step"], "--resume", self.run_dir,
                                 "--set", "checkpoint.every_steps=1", "--workers", 3, *ASYNC)
        after = total(self.checkpoint(self.second), 3, "own/0")
        self.assertTrue(any(before))
        for one, other in zip(before, after):
            self.assertAlmostEqual(2 * one, 3 * other, delta=1e-5, msg="a part is a third now")

    def test_with_other_workers_what_pushes_left_out_is_dealt_out(self):
        self.expect_sums_kept([*SERVERS, *codec("topk")], 3, 2, ["link/0", "link/1"])

    def test_with_other_workers_the_velocities_of_pieces_are_dealt_out(self):
        self.expect_sums_kept(ASYNC, 3, 2, ["own/0"])

    def test_the_counts_of_a_run_begin_anew(self):
        self.expect_goes_on(*ASYNC)
        applied = {run: json.loads((self.folder / run / "summary.json").read_text())["staleness"]
                   ["applied"] for run in ["whole", "second"]}
        self.assertEqual(applied["whole"], 2 * applied["second"])


class FormatOneTest(Resumes):
    """Checkpoints that were written before every worker had a file."""

    def load(self, kind, *words):
        self.first = self.folder / "old" / "checkpoints" / "step-0000000020"
        shutil.copytree(FORMAT_1 / kind, self.first)
        self.assertEqual(json.loads((self.first / "state.json").read_text())["format"], 1)
        self.resume_and_read("--workers", 2, *RING, *words)
        return self.checkpoint(self.second)

    def test_model_and_optimizer_are_taken_over(self):
        again = self.load("plain")
        for name in ["model.safetensors", "optimizer.safetensors"]:
            self.assertEqual(tensors(again / name), tensors(self.first / name))

    def test_what_the_chief_had_alone_is_taken_over(self):
        again = self.load("topk", *codec("topk"))
        own = tensors(again / "worker-0.safetensors")
        self.assertEqual(own, tensors(self.first / "worker-0.safetensors"))
        self.assertTrue(any(floats(own["own/0"])))

    def test_it_is_gone_on_from(self):
        self.load("topk", *codec("topk"))
        self.steps(self.folder / "third", ALL, "--workers", 2, "--resume", self.first, *RING,
                   *codec("topk"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

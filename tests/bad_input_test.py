"""Every wrong input is a clear sentence and the right exit code, never a stack trace."""

import json
import os
import pathlib
import struct
import unittest

from support import CohortTest

# No wrong input may take more than this of anything: LibTorch alone maps half of it.
MEMORY = 4 << 30
SENTENCE = 5000
HUGE = 2**63 - 1


def crc32c(data):
    """As in the manifests of checkpoints; bit by bit, for small files."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 0xFF]
    return f"{checksum ^ 0xFFFFFFFF:08x}"


def sign(checkpoint):
    """Makes the manifest fit what is in the folder now, as whoever wants to harm us would."""
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_text())
    for file in manifest["files"]:
        data = (checkpoint / file["name"]).read_bytes()
        file["size"], file["crc32c"] = len(data), crc32c(data)
    del manifest["crc32c"]
    compact = json.dumps(manifest, separators=(",", ":"))
    manifest["crc32c"] = crc32c(compact.encode())
    path.write_text(json.dumps(manifest, indent=1, separators=(",", ": ")) + "\n")


class RefusalTest(CohortTest):
    def assert_refused(self, result, *words, code=2):
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, output)
        for word in words:
            self.assertIn(word, result.stderr)
        for trace in ("terminate called", "Exception raised from", "frame #", "what():"):
            self.assertNotIn(trace, output)


class BadInputTest(RefusalTest):
    def test_no_such_job(self):
        self.assert_refused(self.run_command("train", "nowhere.toml"), "nowhere.toml")

    def test_unknown_key_names_line_and_nearest(self):
        self.job.write_text(self.job.read_text().replace("epochs = 2", "epcohs = 2"))
        self.assert_refused(self.train(), "job.toml:", "train.epcohs", "train.epochs")

    def test_zero_workers(self):
        self.assert_refused(self.train("--workers", "0"), "workers")

    def test_more_workers_than_samples_in_a_batch(self):
        self.assert_refused(self.train("--workers", "3", "--set", "train.batch=2"), "batch", "3")

    def test_wrong_shapes_name_the_layer(self):
        result = self.train("--set", "model.layers=[{type=\"conv2d\", out=4, kernel=3}]")
        self.assert_refused(result, "layer 1", "conv2d")

    def test_wrong_number_of_outputs(self):
        result = self.train("--set", "model.layers=[{type=\"linear\", out=7}]")
        self.assert_refused(result, "7", "4")

    def test_missing_data_file(self):
        result = self.train("--set", "data.kind=csv", "--set", "data.task=classes", "--set", "data.path=none.csv")
        self.assert_refused(result, "none.csv")

    def test_data_with_a_broken_line(self):
        self.write("broken.csv", "a,b,label\n1,2,x\n1,oops,y\n")
        result = self.train("--set", "data.kind=csv", "--set", "data.task=classes", "--set", "data.path=broken.csv")
        self.assert_refused(result, "broken.csv", "3", "oops")

    def test_truncated_mnist(self):
        folder = self.folder / "mnist"
        folder.mkdir()
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
            (folder / name).write_bytes(b"\0\0\x08\x03\0\0\0\x05")
        result = self.train("--set", "data.kind=mnist", "--set", "data.path=mnist")
        self.assert_refused(result, "train-images-idx3-ubyte", code=1)

    def test_a_loss_that_is_not_finite(self):
        result = self.train("--set", "train.optimizer.lr=1e30")
        self.assert_refused(result, "not a finite number", "rank", "step", code=1)
        self.assertEqual(self.summary()["status"], "failed")

    def test_a_run_folder_that_cannot_be_made(self):
        self.write("file", "")
        result = self.run_command("train", self.job, "--run-dir", self.folder / "file" / "run")
        self.assert_refused(result, str(self.folder / "file"), code=1)

    def test_a_model_larger_than_the_memory(self):
        # 10^12 floats: more than any machine has. (Shared memory alone: os/memory_test.)
        result = self.train("--set", "model.layers=[{type=\"linear\", out=200000}, "
                            "{type=\"linear\", out=5000000}, {type=\"linear\", out=4}]")
        self.assertIn(result.returncode, (1, 2), result.stderr)
        self.assertIn("memory", result.stderr)
        self.assertNotIn("frame #", result.stderr)

    def test_unknown_engine_strategy_and_command(self):
        self.assert_refused(self.train("--engine", "shmm"), "shmm", "shm")
        self.assert_refused(self.train("--strategy", "allreduc"), "allreduce")
        self.assert_refused(self.run_command("trian"), "train")


class HostileInputTest(RefusalTest):
    """What was made to harm: refused in a sentence, soon, and without the memory it asks for."""

    def assert_harmless(self, *words, say=(), command=None, codes=(1, 2)):
        command = command or ("train", self.job, "--run-dir", self.run_dir)
        result = self.run_command(*command, *words, prefix=("prlimit", f"--as={MEMORY}"))
        output = result.stdout + result.stderr
        self.assertIn(result.returncode, codes, output[:SENTENCE])  # A signal would be negative.
        self.assertLess(len(output), SENTENCE)
        self.assertIn("cohort: ", result.stderr)
        for word in say:
            self.assertIn(word, result.stderr)
        for trace in ("terminate called", "Exception raised from", "frame #", "what():", "SIG"):
            self.assertNotIn(trace, output)

    def set_data(self, kind, path):
        return ("--set", f"data.kind={kind}", "--set", "data.task=classes",
                "--set", f"data.path={path}")

    def test_numbers_beyond_their_range(self):
        for key in ("train.batch", "train.steps", "data.samples", "cluster.workers",
                    "train.accumulate", "cluster.servers"):
            self.assert_harmless("--set", f"{key}={HUGE}", say=(key, "must be from"), codes=(2,))
        self.assert_harmless("--workers", HUGE, say=("cluster.workers",), codes=(2,))
        self.assert_harmless("--set", f"train.steps={HUGE}", "--strategy", "gossip",
                             say=("train.steps",), codes=(2,))

    def test_numbers_that_overflow_together(self):
        huge = 2**32
        self.assert_harmless("--set", f"data.features={huge}", "--set", f"data.classes={huge}",
                             say=("data.features",), codes=(2,))
        most = 2**24
        self.assert_harmless("--set", f"data.features={most}", "--set", f"data.classes={most}",
                             say=("memory",))
        self.assert_harmless("--set", "train.epochs=1000000000", "--set", "train.batch=2",
                             say=("train.epochs", "steps"), codes=(2,))
        self.assert_harmless("--set", f"model.layers=[{{type='linear', out={most}}}, "
                             f"{{type='linear', out={most}}}]", say=("layer 2",), codes=(2,))

    def test_a_key_or_a_list_that_nests_without_end(self):
        for text in ("a." * 100_000 + "a = 1", "a = " + "[" * 100_000, "a = " + "{a = " * 100_000):
            self.write("deep.toml", text)
            self.assert_harmless(command=("train", "deep.toml"), say=("deep.toml:1",), codes=(2,))

    def test_a_name_that_leads_out_of_runs(self):
        for name in ("../../x", "/x", "", ".", "a\nb", "n" * 300):
            self.assert_harmless("--set", f"job.name={json.dumps(name)}",
                                 command=("train", self.job), say=("job.name",), codes=(2,))
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"job.toml"})

    def test_a_line_of_twenty_bytes_that_asks_for_gigabytes(self):
        self.write("a.svm", "1 4294967295:1\n2 1:1\n")
        self.assert_harmless(*self.set_data("libsvm", "a.svm"), say=("a.svm", "4294967295"))

    def test_a_field_of_megabytes_is_not_quoted(self):
        self.write("a.csv", "a,label\n1,x\n" + "f" * 20_000_000 + ",y\n")
        self.assert_harmless(*self.set_data("csv", "a.csv"), say=("a.csv line 3", "ffff"))

    def test_data_that_is_no_file(self):
        os.mkfifo(self.folder / "fifo")
        for kind, path in (("csv", "fifo"), ("libsvm", "/dev/zero"), ("text", self.folder)):
            self.assert_harmless(*self.set_data(kind, path), say=(str(path),))
        self.assert_harmless(command=("train", "fifo"), say=("fifo",))
        self.assert_harmless("--set", "model.layers=[]", "--set", "model.torchscript=fifo",
                             say=("fifo",))

    def write_checkpoint(self):
        """Of a finished run."""
        result = self.train("--set", "checkpoint.every_steps=20", "--set", "train.epochs=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.run_dir / "checkpoints" / "LATEST").read_text()[:5], "step-")
        *_, newest = sorted((self.run_dir / "checkpoints").glob("step-*"))
        for other in set((self.run_dir / "checkpoints").glob("step-*")) - {newest}:
            for file in other.iterdir():
                file.unlink()
            other.rmdir()
        return newest

    def assert_not_resumed(self, checkpoint, *say):
        command = ("train", self.job, "--run-dir", self.folder / "next", "--resume", checkpoint)
        self.assert_harmless(command=command, say=say)
        run = self.folder / "next"
        if run.exists():
            run.rename(self.folder / f"before-{len(list(self.folder.iterdir()))}")

    def test_a_checkpoint_with_something_else_than_files(self):
        checkpoint = self.write_checkpoint()
        aside = self.folder / "aside"
        for name, target in (("state.json", None), ("manifest.json", None),
                             ("model.safetensors", "/dev/zero"), ("state.json", aside)):
            path = checkpoint / name
            path.rename(aside)
            path.symlink_to(target) if target else os.mkfifo(path)
            self.assert_not_resumed(checkpoint, name)
            path.unlink()
            aside.rename(path)

    def test_a_checkpoint_whose_state_no_training_can_have(self):
        checkpoint = self.write_checkpoint()
        path = checkpoint / "state.json"
        right = path.read_text()
        changes = [{"step": HUGE}, {"work": {"next": 0, "parts": 0, "again": []}},
                   {"work": {"next": 0, "parts": -3, "again": []}},
                   {"work": {"next": 4, "parts": 2, "again": [[HUGE, 1]]}}]
        for change in changes:
            path.write_text(json.dumps(json.loads(right) | change))
            sign(checkpoint)
            self.assert_not_resumed(checkpoint, "state.json")
        path.write_text("[" * 100_000)
        sign(checkpoint)
        self.assert_not_resumed(checkpoint, "state.json")

    def test_a_checkpoint_whose_tensors_are_not_what_they_seem(self):
        checkpoint = self.write_checkpoint()
        deep = '{"a":{"dtype":' + "[" * 100_000 + "]" * 100_000 + "}}"
        wide = json.dumps({"a": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}})
        for name in ("model.safetensors", "optimizer.safetensors"):
            right = (checkpoint / name).read_bytes()
            for header in (deep, wide):
                (checkpoint / name).write_bytes(struct.pack("<Q", len(header)) + header.encode())
                sign(checkpoint)
                self.assert_not_resumed(checkpoint, name)
            (checkpoint / name).write_bytes(right)

    def test_nothing_is_written_through_links_of_a_run_folder(self):
        self.write_checkpoint()
        victim = self.write("victim", "precious")
        for name in ("metrics.jsonl", "history.jsonl", "logs/worker-0.log", ".lock"):
            path = self.run_dir / name
            path.unlink(missing_ok=True)
            path.symlink_to(victim)
            self.train("--resume", "auto", "--set", "train.epochs=2", "--max-restarts", "0")
            self.assertEqual(victim.read_text(), "precious", name)
            path.unlink(missing_ok=True)

    def test_a_run_folder_is_its_owners_alone(self):
        self.run_dir.mkdir(mode=0o777)
        self.run_dir.chmod(0o777)
        self.assertEqual(self.train("--set", "train.epochs=1").returncode, 0)
        self.assertEqual(self.run_dir.stat().st_mode & 0o777, 0o700)

    def test_a_run_folder_of_somebody_else_is_refused(self):
        """Root gives one away; others find one that is root's."""
        theirs = pathlib.Path("/")
        if os.geteuid() == 0:
            theirs = self.run_dir
            theirs.mkdir()
            os.chown(theirs, 12345, 12345)
        before = sorted(theirs.iterdir())
        for words in ([], ["--resume", "auto"]):
            if words or os.geteuid() == 0:  # / is not empty, which is said first.
                result = self.run_command("train", self.job, "--run-dir", theirs, *words)
                self.assert_refused(result, "belongs to another user")
        self.assertEqual(sorted(theirs.iterdir()), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)

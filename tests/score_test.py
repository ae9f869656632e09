"""A model leaves its run: `cohort score`, and what model.json holds."""

import csv
import io
import json
import math
import os
import random
import shutil
import struct
import subprocess
import unittest

from support import COMMAND, SOURCE, CohortTest, environment

TRAIN = """
[job]
name = "score"
seed = 3
[model]
layers = [ {{type="linear", out=12}}, {{type="relu"}}, {{type="linear"}} ]
[data]
{data}
[train]
epochs = 4
batch = 20
loss = "{loss}"
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
[log]
tensorboard = false
[cluster]
workers = 2
"""

NAMES = ["ash", "birch, white", "cedar"]


def leaves(rows, seed, header=True, target=True):
    """Three kinds of leaves whose measures overlap, so that accuracy is not 1."""
    numbers = random.Random(seed)
    lines = ["length,width,kind" if target else "length,width"] if header else []
    for i in range(rows):
        kind = i % 3
        fields = [f"{numbers.gauss(20 + 3 * kind, 2):.3f}", f"{numbers.gauss(5 - kind, 1):.3f}"]
        if target:
            fields.append(f'"{NAMES[kind]}"')
        lines.append(",".join(fields))
    return "\n".join(lines) + "\n"


class ScoreTest(CohortTest):
    def train_on(self, data, *words, loss="cross-entropy"):
        self.job.write_text(TRAIN.format(data=data, loss=loss))
        result = self.train("--quiet", *words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def train_on_leaves(self, *words, more=""):
        self.write("leaves.csv", leaves(300, 1))
        self.write("more.csv", leaves(101, 2))
        self.train_on('kind = "csv"\npath = "leaves.csv"\nvalidation_path = "more.csv"\n' + more, *words)

    def score(self, *words, code=0, run=None):
        # What is refused is refused with any kernels; those that are there take less time to start.
        more = {"COHORT_KERNELS": "off"} if code != 0 else {}
        result = self.run_command("score", run or self.run_dir, *words, **more)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        if code != 0:
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertTrue(result.stderr.startswith("cohort: "), result.stderr)
            self.assertNotIn("json.exception", result.stderr)
            return result.stderr
        return result

    def rows(self, text):
        return list(csv.DictReader(io.StringIO(text)))

    def assert_scores_as_its_summary(self, *words):
        """The accuracy of the summary is found again, to the last bit."""
        found = json.loads(self.score("--format", "json", *words).stdout)
        summary = self.summary()
        self.assertEqual(found["accuracy"], summary["accuracy"])
        self.assertLess(abs(found["loss"] - summary["loss"]), 1e-6 * max(1, abs(summary["loss"])))
        return found

    # ---- the run's own samples ----

    def test_csv_gives_the_accuracy_of_the_summary(self):
        self.train_on_leaves()
        found = self.assert_scores_as_its_summary()
        self.assertEqual(found["samples"], 101)
        self.assertTrue(0.4 < found["accuracy"] < 1, found)
        table = self.rows(self.score().stdout)
        self.assertEqual(float(table[0]["accuracy"]), self.summary()["accuracy"])

    def test_every_strategy_gives_the_accuracy_of_the_summary(self):
        self.write("leaves.csv", leaves(300, 1))
        for strategy, workers in (("allreduce", 3), ("gossip", 2), ("parameter-server", 2)):
            with self.subTest(strategy):
                self.run_dir = self.folder / strategy
                self.train_on('kind = "csv"\npath = "leaves.csv"\nvalidation_fraction = 0.4',
                              "--strategy", strategy, "--workers", str(workers))
                self.assert_scores_as_its_summary()

    def test_libsvm_gives_the_accuracy_of_the_summary(self):
        numbers = random.Random(5)
        lines = []
        for i in range(200):
            shift = 1.2 * (i % 2)
            lines.append(f"{'-1' if i % 2 else '+1'} 2:{numbers.gauss(shift, 1):.3f} 5:{numbers.gauss(-shift, 1):.3f}")
        path = self.write("points.svm", "\n".join(lines) + "\n")
        self.train_on('kind = "libsvm"\npath = "points.svm"\nvalidation_fraction = 0.3')
        self.assert_scores_as_its_summary()
        scored = self.score("--input", path)
        self.assertEqual({row["prediction"] for row in self.rows(scored.stdout)}, {"-1", "1"})
        self.assertIn("200 rows", scored.stderr)
        self.assertIn("accuracy", scored.stderr)
        unlabelled = self.write("new.svm", "2:0.5 5:1\n# nothing\n5:2\n")
        scored = self.score("--input", unlabelled)
        self.assertEqual(len(self.rows(scored.stdout)), 2)
        self.assertNotIn("accuracy", scored.stderr)
        self.write("new.svm", "1 2:0.5\n5:2\n")
        self.assertIn("new.svm line 2: it has no label", self.score("--input", unlabelled, code=2))
        self.write("new.svm", "1 2:0.5\n1 6:2\n")
        self.assertIn("new.svm line 2: index 6 is beyond the 5 features", self.score("--input", unlabelled, code=2))
        self.write("new.svm", "1 2:0.5\n7 2:2\n")
        self.assertIn('new.svm line 2: the class "7" does not occur', self.score("--input", unlabelled, code=2))

    def write_mnist(self, folder, train, test):
        """Images of 6x6 pixels whose brightest row tells the class."""
        folder.mkdir()
        numbers = random.Random(9)
        for part, count in (("train", train), ("t10k", test)):
            pixels, labels = bytearray(), bytearray()
            for i in range(count):
                label = i % 4
                labels.append(label)
                for row in range(6):
                    pixels += bytes(min(255, numbers.randrange(180) + (120 if row == label else 0)) for _ in range(6))
            (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 6, 6) + pixels)
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)

    def test_images_give_the_accuracy_of_the_summary(self):
        images = self.folder / "images"
        self.write_mnist(images, 200, 90)
        self.train_on(f'kind = "mnist"\npath = "{images}"', "--set", "model.layers=[]",
                      "--set", "model.preset=mlp", "--set", "model.hidden=[8]")
        self.assert_scores_as_its_summary()
        own = self.folder / "own.csv"
        self.score("--output", own)
        scored = self.score("--input", images / "t10k-images-idx3-ubyte")
        self.assert_same_predictions(own.read_text(), scored.stdout, 90)
        wrong = self.folder / "wrong"
        wrong.write_bytes(struct.pack(">4I", 0x803, 1, 2, 3) + bytes(6))
        self.assertIn("2x3 pixels; the model was trained on 1x6x6", self.score("--input", wrong, code=2))
        self.assertIn("not an IDX file", self.score("--input", images / "t10k-labels-idx1-ubyte", code=1))
        shutil.rmtree(images)
        self.assertIn("is not what the model was trained on any more", self.score(code=2))

    def test_text_gives_the_accuracy_of_the_summary(self):
        text = (SOURCE / "examples/data/sentences.txt").read_text()[:6000]
        path = self.write("words.txt", text)
        self.train_on('kind = "text"\npath = "words.txt"\ncontext = 16', "--set", "model.layers=[]",
                      "--set", "model.preset=gpt-mini", "--set", "model.width=16", "--set", "model.depth=1",
                      "--set", "model.heads=2", "--set", "train.epochs=1")
        self.assert_scores_as_its_summary()
        scored = self.score("--input", path, "--format", "json")
        self.assertEqual(len(scored.stdout.splitlines()), 5999 // 16)
        self.assertIn("accuracy", scored.stderr)
        first = json.loads(scored.stdout.splitlines()[0])
        self.assertIn(first["prediction"], first["scores"])
        self.assertAlmostEqual(sum(first["scores"].values()), 1, places=4)
        strange = self.write("strange.txt", text[:40] + "\nand \x07" + text[:40])
        lines = text[:40].count("\n") + 2
        self.assertIn(f"strange.txt line {lines}: the character byte 0x07", self.score("--input", strange, code=2))

    def test_bytes_that_are_no_text_have_names_of_their_own_in_json(self):
        (self.folder / "bytes.txt").write_bytes(b"caf\xe9 p\xe8re \xc3 " * 40)
        self.train_on('kind = "text"\npath = "bytes.txt"\ncontext = 8', "--set", "model.layers=[]",
                      "--set", "model.preset=gpt-mini", "--set", "model.width=8", "--set", "model.depth=1",
                      "--set", "model.heads=1", "--set", "train.epochs=1")
        scored = self.score("--input", "bytes.txt", "--format", "json")
        names = []
        json.loads(scored.stdout.splitlines()[0], object_pairs_hook=lambda pairs: names.extend(k for k, _ in pairs))
        self.assertEqual(sorted(set(names)), sorted(names))
        for name in ("byte 0xc3", "byte 0xe8", "byte 0xe9", "a"):
            self.assertIn(name, names)

    def test_generated_samples_give_the_accuracy_of_the_summary(self):
        for task, loss in (("blobs", "cross-entropy"), ("regression", "mean-squared-error"),
                           ("digits", "cross-entropy")):
            with self.subTest(task):
                self.run_dir = self.folder / task
                layers = ["--set", "model.layers=[]", "--set", "model.preset=mlp", "--set", "model.hidden=[6]",
                          "--set", "train.optimizer.lr=0.01"]
                self.train_on(f'kind = "generated"\ntask = "{task}"\nsamples = 300\nnoise = 0.9', *layers, loss=loss)
                self.assert_scores_as_its_summary()
        said = self.score("--input", self.write("some.csv", "1,2\n"), run=self.folder / "blobs", code=2)
        self.assertIn("come out of no file", said)

    # ---- a file of raw rows ----

    def assert_same_predictions(self, left, right, count):
        left, right = self.rows(left), self.rows(right)
        self.assertEqual(len(left), count)
        self.assertEqual([row["prediction"] for row in left], [row["prediction"] for row in right])
        for a, b in zip(left, right, strict=True):
            for name in a:
                if name != "prediction":
                    self.assertTrue(math.isclose(float(a[name]), float(b[name]), rel_tol=1e-4, abs_tol=1e-6))

    def test_raw_rows_give_what_validation_gives(self):
        self.train_on_leaves()
        own = self.folder / "own.csv"
        self.score("--output", own)
        scored = self.score("--input", "more.csv")
        self.assert_same_predictions(own.read_text(), scored.stdout, 101)
        self.assertEqual(list(self.rows(scored.stdout)[0]), ["prediction", *(f"score:{name}" for name in NAMES)])
        self.assertIn(f"accuracy {self.summary()['accuracy']}", scored.stderr)
        # Without the target, in another order, and from another folder that has the model alone.
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        for name in ("model.json", "model.safetensors"):
            shutil.copy(self.run_dir / name, elsewhere)
        shutil.rmtree(self.run_dir)
        turned = "\n".join(",".join(reversed(line.split(",")))
                           for line in leaves(101, 2, target=False).splitlines()) + "\n"
        # The numbers that leaves() draws are the same with and without the target.
        turned = self.score("--input", self.write("turned.csv", turned), run=elsewhere)
        self.assert_same_predictions(own.read_text(), turned.stdout, 101)
        self.assertNotIn("accuracy", turned.stderr)
        self.assertIn("config.toml", self.score(run=elsewhere, code=2))

    def test_values_are_predicted(self):
        numbers = random.Random(4)
        lines = ["a,b,y"]
        for _ in range(120):
            a, b = numbers.gauss(100, 20), numbers.gauss(0, 1)
            lines.append(f"{a:.4f},{b:.4f},{0.02 * a - b:.4f}")
        path = self.write("values.csv", "\n".join(lines) + "\n")
        self.train_on('kind = "csv"\npath = "values.csv"\ntask = "values"', loss="mean-squared-error")
        self.assert_scores_as_its_summary()
        scored = self.score("--input", path, "--format", "json")
        self.assertIsInstance(json.loads(scored.stdout.splitlines()[0])["prediction"], float)
        self.assertIn("loss", scored.stderr)
        self.assertNotIn("accuracy", scored.stderr)

    def test_wrong_rows_are_named(self):
        self.train_on_leaves()
        for content, said in (
                ("", "new.csv is empty"),
                ("length,kind\n1,ash\n", 'new.csv has no column "width"'),
                ("length,width,colour\n1,2,3\n", 'new.csv has the column "colour"'),
                ("length,width,width\n1,2,3\n", 'new.csv has the column "width" twice'),
                ("length,width\n1,2\n1\n", "new.csv line 3: it has 1 fields, expected 2"),
                ("length,width\n1,2\n1,x\n", 'new.csv line 3, column "width": "x" is not a number'),
                ('length,width\n1,"2\n', "new.csv line 2: a quote is opened and never closed"),
                ('length,width\n1,"2"x\n', "new.csv line 2: there is text after a closing quote"),
                ("length,width\n1,2\n\x001,2\n", "new.csv line 3: there is a NUL byte"),
                ("length,width,kind\n1,2,oak\n", 'new.csv line 2: the class "oak" does not occur'),
                ("length,width,kind\n1,2,\n", "the target is missing")):
            with self.subTest(said):
                path = self.write("new.csv", content)
                out = self.folder / "out.csv"
                self.assertIn(said, self.score("--input", path, "--output", out, code=2))
                self.assertFalse(out.exists(), "a part of the predictions was left")
        self.assertIn("nowhere.csv", self.score("--input", "nowhere.csv", code=2))

    def test_without_a_header_columns_go_by_their_place(self):
        self.write("leaves.csv", leaves(90, 1, header=False))
        self.train_on('kind = "csv"\npath = "leaves.csv"\nheader = false')
        self.assert_scores_as_its_summary()
        with_target = self.score("--input", self.write("a.csv", leaves(20, 2, header=False)))
        without = self.score("--input", self.write("b.csv", leaves(20, 2, header=False, target=False)))
        self.assertEqual(with_target.stdout, without.stdout)
        self.assertIn("accuracy", with_target.stderr)
        self.assertNotIn("accuracy", without.stderr)
        said = self.score("--input", self.write("c.csv", "1,2,3,4\n"), code=2)
        self.assertIn("c.csv has 4 columns; the model was trained with 2, or 3 with the target", said)

    def test_a_pipe_is_written_to_and_a_link_is_followed(self):
        self.train_on_leaves()
        expected = self.score("--input", "more.csv").stdout
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
            self.score("--input", "more.csv", "--output", pipe)
            self.assertTrue(pipe.is_fifo())
            self.assertEqual(reader.read(), expected)
        link, behind = self.folder / "link", self.write("behind.csv", "before")
        link.symlink_to(behind)
        self.score("--input", "more.csv", "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(behind.read_text(), expected)

    def test_the_rows_are_not_overwritten_by_their_predictions(self):
        self.train_on_leaves()
        link = self.folder / "link.csv"
        link.symlink_to("more.csv")
        before = (self.folder / "more.csv").read_bytes()
        for output in ("more.csv", link):
            said = self.score("--input", "more.csv", "--output", output, code=2)
            self.assertIn("the same file", said)
        self.assertEqual((self.folder / "more.csv").read_bytes(), before)

    def test_no_class_is_named_by_what_is_no_number(self):
        self.train_on_leaves()
        described = json.loads((self.run_dir / "model.json").read_text())

        def enlarge(value):
            if isinstance(value, dict):
                return {key: [1e38] * len(inner) if key == "factor" else enlarge(inner)
                        for key, inner in value.items()}
            return value
        (self.run_dir / "model.json").write_text(json.dumps(enlarge(described)))
        said = self.score("--input", "more.csv", "--output", "out.csv", code=2)
        self.assertIn("gives outputs that are not finite numbers", said)
        self.assertFalse((self.folder / "out.csv").exists())

    def test_a_full_disk_is_a_failure(self):
        self.train_on_leaves()
        for words in ([], ["--input", "more.csv"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                result = subprocess.run([COMMAND, "score", self.run_dir, *words], cwd=self.folder, text=True,
                                        env=environment(), stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("cannot write to standard output", result.stderr)

    def peak_of_scoring(self, rows):
        """What the command needed at most, in bytes, to score a file of so many rows."""
        path = self.write("many.csv", "length,width\n" + "21.375,4.125\n" * rows)
        process = subprocess.Popen([COMMAND, "score", self.run_dir, "--input", path, "--output", "many.out"],
                                   cwd=self.folder, env=environment(COHORT_KERNELS="off"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return used.ru_maxrss * 1024

    def test_a_file_of_any_size_is_scored_in_the_same_memory(self):
        self.train_on_leaves()
        rows = 500_000
        grown = self.peak_of_scoring(rows) - self.peak_of_scoring(1000)
        self.assertLess(grown, 6 << 20, "the file alone has 6.5 MB, and a row is more in memory than in it")

    # ---- what training never saw ----

    def test_an_unknown_class_is_accepted_where_the_job_says_so(self):
        oak = leaves(30, 8).replace('"birch, white"', "oak")
        self.write("leaves.csv", leaves(90, 1))
        self.write("more.csv", oak)
        data = 'kind = "csv"\npath = "leaves.csv"\nvalidation_path = "more.csv"\n'
        self.job.write_text(TRAIN.format(data=data, loss="cross-entropy"))
        refused = self.train("--quiet")
        self.assertEqual(refused.returncode, 2)
        self.assertIn('more.csv line 3: the class "oak" does not occur', refused.stderr)
        self.train_on(data + 'unknown = "accept"')
        self.assert_scores_as_its_summary()
        scored = self.score("--input", "more.csv")
        self.assertIn("score:<unknown>", self.rows(scored.stdout)[0])
        self.assertIn(f"accuracy {self.summary()['accuracy']}", scored.stderr)

    def test_an_unknown_character_is_accepted_where_the_job_says_so(self):
        text = "abcabcabbc" * 30
        self.write("train.txt", text)
        self.write("valid.txt", text[:100] + "xyz" + text[:60])
        self.train_on('kind = "text"\npath = "train.txt"\nvalidation_path = "valid.txt"\ncontext = 4\n'
                      'unknown = "accept"', "--set",
                      'model.layers=[{type="embedding", out=4}, {type="linear"}]')
        self.assert_scores_as_its_summary()
        names = json.loads((self.run_dir / "model.json").read_text())["preprocessing"]
        self.assertEqual(names["bytes"], [ord("a"), ord("b"), ord("c")])
        self.assertTrue(names["unknown"])
        scored = self.score("--input", self.write("new.txt", "abcQabcabcab"), "--format", "json")
        self.assertIn("<unknown>", json.loads(scored.stdout.splitlines()[0])["scores"])

    # ---- folders that are not right ----

    def test_a_folder_without_a_model(self):
        self.assertIn("there is no folder", self.score(code=2))
        self.run_dir.mkdir()
        self.assertIn("has no model.json: it is no folder of a run", self.score(code=2))
        (self.run_dir / "model.safetensors").write_bytes(b"old")
        said = self.score("--input", self.write("a.csv", "1\n"), code=2)
        self.assertIn("an older Cohort wrote its weights", said)

    def test_weights_of_another_model_are_refused(self):
        self.train_on_leaves()
        weights = self.run_dir / "model.safetensors"
        other = self.folder / "other"
        self.assertEqual(self.run_command("train", self.job, "--run-dir", other, "--quiet",
                                          "--set", "job.seed=4").returncode, 0)
        shutil.copy(other / "model.safetensors", weights)
        self.assertIn("do not belong together", self.score(code=1))
        weights.write_bytes(weights.read_bytes()[:-4])
        self.assertIn("do not belong together", self.score(code=1))

    def test_a_run_that_was_stopped_or_diverged_leaves_a_model(self):
        process, _ = self.start_long_training("--set", "data.noise=0.9")
        process.terminate()
        self.assert_ends(process, 138)
        self.score()
        self.run_dir = self.folder / "diverged"
        result = self.train("--quiet", "--set", "train.optimizer.lr=1e30")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.score("--format", "json")

    def test_wrong_use(self):
        self.assertIn("score needs the folder of a run", self.run_command("score").stderr)
        self.assertEqual(self.run_command("score", "x", "--format", "xml").returncode, 2)
        self.assertIn("--input", self.run_command("score", "--help").stdout)


if __name__ == "__main__":
    unittest.main()

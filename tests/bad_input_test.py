"""Every wrong input is a clear sentence and the right exit code, never a stack trace."""

import unittest

from support import CohortTest


class BadInputTest(CohortTest):
    def assert_refused(self, result, *words, code=2):
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, output)
        for word in words:
            self.assertIn(word, result.stderr)
        for trace in ("terminate called", "Exception raised from", "frame #", "what():"):
            self.assertNotIn(trace, output)

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
        self.assert_refused(result, "file/run", code=1)

    def test_a_model_larger_than_the_memory(self):
        # 10^12 floats: more than any machine has. (Shared memory alone: cluster/shared_memory_test.)
        result = self.train("--set", "model.layers=[{type=\"linear\", out=200000}, "
                            "{type=\"linear\", out=5000000}, {type=\"linear\", out=4}]")
        self.assertIn(result.returncode, (1, 2), result.stderr)
        self.assertIn("memory", result.stderr)
        self.assertNotIn("frame #", result.stderr)

    def test_unknown_engine_strategy_and_command(self):
        self.assert_refused(self.train("--engine", "shmm"), "shmm", "shm")
        self.assert_refused(self.train("--strategy", "allreduc"), "allreduce")
        self.assert_refused(self.run_command("trian"), "train")


if __name__ == "__main__":
    unittest.main(verbosity=2)

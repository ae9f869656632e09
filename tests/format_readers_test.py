"""Checks what Cohort writes with readers that share no code with it.

format_readers_test.py WRITE_SAMPLES [TEST…]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
WRITE_SAMPLES = sys.argv.pop(1)


def run_reader(script, path):
    return subprocess.run([sys.executable, HERE / script, path], capture_output=True, text=True)


class SampleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        subprocess.run([WRITE_SAMPLES, self.folder], check=True)

    def values(self, script, path):
        done = run_reader(script, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_refused(self, script, path, words):
        done = run_reader(script, path)
        self.assertEqual(done.returncode, 1, f"accepted, though: {words}")
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)


class EventReader(SampleTest):
    def setUp(self):
        super().setUp()
        self.events = self.folder / "events"
        self.files = sorted(self.events.iterdir())

    def refuse(self, words):
        self.assert_refused("read_events.py", self.events, words)

    def test_reads_what_was_written(self):
        values = self.values("read_events.py", self.events)
        losses = [(v["step"], v["value"]) for v in values if v["tag"] == "loss"]
        self.assertEqual([step for step, _ in losses], [0, 10, 20, 10, 3_000_000_000])
        for (_, value), wanted in zip(losses, [1, 1 / 11, 1 / 21, 0.25, 0]):
            self.assertAlmostEqual(value, wanted, places=6)
        self.assertEqual([v for v in values if v["tag"] == "session"],
                         [{"step": 10, "tag": "session", "value": "start"}])
        (histogram,) = [v["value"] for v in values if v["tag"] == "weights"]
        self.assertEqual((histogram["min"], histogram["max"], histogram["num"]), (-1, 4, 6))
        self.assertEqual((histogram["sum"], histogram["sum_squares"]), (6.5, 22.25))

    def test_refuses_every_flipped_byte(self):
        path = self.files[1]
        whole = path.read_bytes()
        for at in range(0, len(whole), 7):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1:])
            self.refuse("at byte")

    def test_refuses_a_truncated_file(self):
        path = self.files[0]
        path.write_bytes(path.read_bytes()[:-3])
        self.refuse("truncated")

    def test_refuses_names_that_are_not_in_the_order_of_time(self):
        later = self.files[0].name.replace("tfevents.1", "tfevents.9")
        self.files[0].rename(self.events / later)
        self.refuse("order of their times")

    def test_refuses_a_wrong_name(self):
        self.files[0].rename(self.events / "tfevents.log")
        self.refuse("the name is not")

    def test_refuses_a_file_that_does_not_begin_with_the_version(self):
        path = self.files[0]
        content = path.read_bytes()
        first = 16 + int.from_bytes(content[:8], "little")
        path.write_bytes(content[first:])
        self.refuse("file_version")

    def test_refuses_steps_that_go_back_without_a_new_session(self):
        path = self.files[0]
        content = path.read_bytes()
        first = 16 + int.from_bytes(content[:8], "little")
        path.write_bytes(content + content[first:])
        self.refuse("comes after step")

    def test_refuses_an_empty_folder(self):
        for path in self.files:
            path.unlink()
        self.refuse("no event file")


class SafetensorsReader(SampleTest):
    def test_reads_what_was_written(self):
        values = self.values("read_safetensors.py", self.folder / "sample.safetensors")
        self.assertEqual(values, [
            {"name": "batches", "dtype": "I64", "shape": [], "sum": -7},
            {"name": "weights", "dtype": "F32", "shape": [2, 3], "sum": 6.5},
        ])

    def test_refuses_a_truncated_file(self):
        path = self.folder / "sample.safetensors"
        path.write_bytes(path.read_bytes()[:-4])
        self.assert_refused("read_safetensors.py", path, "sample.safetensors")


if __name__ == "__main__":
    unittest.main()

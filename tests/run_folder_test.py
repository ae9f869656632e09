"""What a run shows and leaves behind."""

import json
import math
import struct
import subprocess
import sys
import unittest

from support import SOURCE, CohortTest

SUMMARY_KEYS = {
    "status", "strategy", "engine", "workers", "servers", "steps", "epochs", "samples", "seconds",
    "samples_per_second", "loss", "accuracy", "bytes_sent", "bytes_received", "left_out", "restarts",
    "failures", "staleness", "shards", "phase_seconds", "tasks"}


class RunFolderTest(CohortTest):
    def test_holds_everything_a_user_may_want_later(self):
        result = self.train("--trace", "--set", "log.histograms=true")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        names = {path.name for path in self.run_dir.iterdir()}
        self.assertLessEqual({"config.toml", "env.json", "summary.json", "metrics.jsonl",
                              "model.safetensors", "model.json", "trace.json", "logs"}, names)
        self.assertEqual({p.name for p in (self.run_dir / "logs").iterdir()},
                         {"worker-0.log", "worker-1.log"})
        self.check_summary()
        self.check_metrics()
        self.check_model()
        self.check_trace()
        self.check_events()
        self.check_config()

    def check_summary(self):
        summary = self.summary()
        self.assertEqual(set(summary), SUMMARY_KEYS)
        self.assertEqual(summary["status"], "completed")
        self.assertEqual(summary["engine"], "shm")
        self.assertEqual(summary["workers"], 2)
        self.assertEqual(summary["samples"], 2 * 1800)
        self.assertEqual(summary["steps"], 2 * math.ceil(1800 / 64))
        self.assertGreater(summary["accuracy"], 0.9)
        self.assertGreater(summary["samples_per_second"], 0)
        self.assertGreater(summary["bytes_received"], 0)
        self.assertEqual(set(summary["phase_seconds"]),
                         {"data", "forward", "backward", "communication", "optimizer",
                          "checkpoint", "wait"})
        self.assertEqual([(t["role"], t["rank"]) for t in summary["tasks"]],
                         [("chief", 0), ("worker", 1)])
        for task in summary["tasks"]:
            self.assertGreater(task["peak_rss_bytes"], 1 << 20)

    def check_metrics(self):
        lines = [json.loads(line) for line in (self.run_dir / "metrics.jsonl").open()]
        steps = [line for line in lines if "loss" in line]
        self.assertLess(steps[-1]["loss"], steps[0]["loss"])
        for line in steps:
            self.assertLessEqual({"step", "epoch", "loss", "lr", "samples_per_second"}, set(line))
        self.assertEqual(len([line for line in lines if "validation_loss" in line]), 2)

    def check_model(self):
        data = (self.run_dir / "model.safetensors").read_bytes()
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        shapes = {k: v["shape"] for k, v in header.items() if k != "__metadata__"}
        self.assertEqual(sorted(map(tuple, shapes.values())), [(4,), (4, 16), (16,), (16, 8)])
        self.assertEqual(max(v["data_offsets"][1] for k, v in header.items()
                             if k != "__metadata__"), len(data) - 8 - length)

    def check_trace(self):
        trace = json.loads((self.run_dir / "trace.json").read_text())
        events = [e for e in (trace["traceEvents"] if isinstance(trace, dict) else trace)
                  if e["ph"] == "X"]
        self.assertEqual({e["pid"] for e in events}, {0, 1})
        self.assertLessEqual({"data", "forward", "backward", "reduce", "optimizer", "wait"},
                             {e["name"] for e in events})
        rows = {}
        for event in events:
            rows.setdefault((event["pid"], event["tid"]), []).append(event)
        for row in rows.values():
            row.sort(key=lambda e: e["ts"])
            for before, after in zip(row, row[1:]):
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 0.002)

    def check_events(self):
        result = subprocess.run(
            [sys.executable, SOURCE / "tests" / "read_events.py", self.run_dir],
            capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        tags = {json.loads(line)["tag"] for line in result.stdout.splitlines()}
        for tag in ("train/loss", "train/learning_rate", "train/samples_per_second",
                    "train/gradient_norm", "train/communication_share", "validation/loss",
                    "validation/accuracy"):
            self.assertIn(tag, tags)
        self.assertTrue(any(tag.startswith("parameters/") for tag in tags))

    def check_config(self):
        again = self.run_command("train", self.run_dir / "config.toml", "--print-config")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout.strip(), (self.run_dir / "config.toml").read_text().strip())

    def test_json_log_is_lines_of_json(self):
        result = self.train("--log-format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in result.stdout.splitlines():
            json.loads(line)

    def test_quiet_prints_nothing(self):
        result = self.train("--quiet")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_an_existing_folder_is_not_touched(self):
        self.run_dir.mkdir()
        (self.run_dir / "precious").write_text("mine")
        result = self.train()
        self.assertEqual(result.returncode, 2)
        self.assertIn("exists already", result.stderr)
        self.assertEqual([p.name for p in self.run_dir.iterdir()], ["precious"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

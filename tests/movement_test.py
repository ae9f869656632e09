"""Whoever does the pieces of a step, and in however many updates: all of them together move the
model by one step. The job here has no gradient, so that only weight decay moves its weights: a step
leaves (1 - lr * weight_decay) of them, and what is left at the end tells how many steps were made.
"""

import json
import math
import os
import signal
import unittest

from read_safetensors import arrays
from support import CohortTest, tasks_of, state_of, wait_until

STEPS = 200
WORKERS = 4
DECAY = 0.002  # lr * weight_decay: what a step takes away.
JOB = f"""
[job]
name = "movement"
seed = 3
[model]
layers = [ {{type="linear", out=1, bias=false}} ]
[data]
kind = "csv"
task = "values"
path = "data.csv"
[train]
steps = {STEPS}
batch = 40
loss = "mean-squared-error"
validate = "never"
optimizer = {{ kind = "sgd", lr = 0.1, weight_decay = {DECAY / 0.1} }}
[cluster]
workers = {WORKERS}
silence_lost_seconds = 100
[log]
every_steps = 1
tensorboard = false
"""
COLUMNS = 200  # All constant, so they become 0.

GRADIENTS = ["--strategy", "gossip", "--set", "strategy.send=gradients"]
SERVERS = ["--strategy", "parameter-server"]
WAITING = "gossip of gradients, topk"
DROPPING = "3 of 4, late ones dropped"


def setting(*words):
    return [part for word in words for part in ("--set", word)]


def quorum(number, *more):
    return SERVERS + setting("strategy.consistency=k-of-n", f"strategy.quorum={number}", *more)


def partial(number):
    return ["--strategy", "averaging"] + setting(
        "strategy.mode=partial", f"strategy.quorum={number}", "strategy.every=2")


def compressed(kind):
    return ["--engine", "shm"] + setting(f"strategy.compression.kind={kind}")


# In step: to the digits that floats have.
EXACT = {
    "all-reduce in place": [],
    "all-reduce, ring": ["--engine", "shm"] + setting("strategy.algorithm=ring"),
    "all-reduce, int8": compressed("int8"),
    "all-reduce, sign": compressed("sign"),
    "all-reduce, topk": compressed("topk"),
    "all-reduce, lowrank": compressed("lowrank"),
    "server, sync": SERVERS + ["--servers", "2"],
    "averaging, sync": ["--strategy", "averaging"] + setting("strategy.every=2"),
}
IN_STEP = ("all-reduce in place", "server, sync", "averaging, sync")
# A step is made of several updates, which differs from a whole one by the square of DECAY.
LOOSE = {
    "async": SERVERS + setting("strategy.consistency=async"),
    "bounded": SERVERS + setting("strategy.consistency=bounded"),
    "1 of 4": quorum(1),
    "3 of 4": quorum(3),
    DROPPING: quorum(3, "strategy.late=drop"),
    "async deltas": SERVERS + setting("strategy.consistency=async", "strategy.push=delta",
                                      "strategy.local_steps=2"),
    "partial, 1 of 4": partial(1),
    "partial, 2 of 4": partial(2),
    "gossip of parameters": ["--strategy", "gossip"],
    "gossip of gradients": GRADIENTS,
    WAITING: GRADIENTS + setting("strategy.compression.kind=topk"),
}
# Rates that fall with the steps, steps that have a size of their own, decay that goes through a
# velocity: each with how much it may differ. Adagrad's first steps are its longest, and made in
# parts they are longer still. A velocity begins with nothing: once in one process, in every worker
# where each has its own, not at all where the decay does not go through it.
OPTIMIZERS = [
    ('{kind="adagrad", lr=0.01, weight_decay=0.02, lr_decay=0.3}', 0.2, ["async", "3 of 4"]),
    ('{kind="adam", lr=0.0001, weight_decay=0.02}', 0.02, ["async", "gossip of gradients"]),
    ('{kind="adamw", lr=0.1, weight_decay=0.02}', 0.02, ["async", "partial, 2 of 4"]),
    ('{kind="sgd", lr=0.01, momentum=0.9, weight_decay=0.02}', 0.06,
     ["all-reduce, topk", "async", WAITING]),
    ('{kind="sgd", lr=0.05, momentum=0.5, weight_decay=0.02}', 0.06, ["gossip of parameters"]),
]
# Models of workers that are not in step differ in age by some steps when they meet at the end.
TOLERANCE = {"gossip of parameters": 0.03}


class MovementTest(CohortTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.toml", JOB)
        columns = ",".join([f"c{i}" for i in range(COLUMNS)] + ["target"])
        self.write("data.csv", "\n".join([columns] + [",".join(["1"] * COLUMNS + ["0"])] * 80))
        self.runs = 0
        self.first = self.first_weights()

    def next_run(self):
        self.runs += 1
        self.run_dir = self.folder / f"run-{self.runs}"

    def weights(self):
        content = (self.run_dir / "model.safetensors").read_bytes()
        return [number for *_, numbers in arrays(content) for number in numbers]

    def first_weights(self):
        """The same in all runs, because the seed is."""
        self.next_run()
        result = self.train("--workers", 1, *setting("train.steps=1"))
        self.assertEqual(result.returncode, 0, result.stderr)
        return [weight / (1 - DECAY) for weight in self.weights()]

    def steps_moved(self):
        left = sum(map(abs, self.weights())) / sum(map(abs, self.first))
        return math.log(left) / math.log(1 - DECAY)

    def left_out(self, name):
        """Steps whose pushes were left out because the job says so."""
        return self.summary()["staleness"]["dropped"] / WORKERS if name == DROPPING else 0

    def start_run(self, *words, **more):
        self.next_run()
        return self.start("train", self.job, "--run-dir", self.run_dir, *words, **more)

    def check(self, name, process, steps=STEPS, loose=0.01):
        self.assert_ends(process, 0)
        self.assertEqual(self.summary()["steps"], steps)
        moved, wanted = self.steps_moved(), steps - self.left_out(name)
        tolerance = 1e-4 if name in EXACT else TOLERANCE.get(name, loose)
        self.assertLess(abs(moved / wanted - 1), tolerance,
                        f"the model was moved by {moved:.2f} steps instead of {wanted}")


class WhoeverDoesThePieces(MovementTest):
    def test_every_strategy_moves_the_model_by_the_steps_of_the_job(self):
        # On one core, so that there are more workers than cores.
        core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        for name, words in (EXACT | LOOSE).items():
            with self.subTest(name):
                self.check(name, self.start_run(*words, prefix=core))

    def test_workers_that_are_lost_and_not_replaced_change_nothing(self):
        faults = ";".join(f"worker-{worker}:worker.step=kill@{4 + worker}" for worker in (1, 2, 3))
        # Not where late pushes are dropped: those of the lost count as dropped, but are made again.
        # Nor where messages wait for peers that read: who is lost takes along what waits.
        for name in (*IN_STEP, *(LOOSE.keys() - {DROPPING, WAITING})):
            with self.subTest(name):
                # Who is quick may have done all the work before another comes to its death.
                for _ in range(6):
                    process = self.start_run(*(EXACT | LOOSE)[name], "--faults", faults,
                                             "--max-restarts", 0, "--min-workers", 1)
                    self.check(name, process)
                    lost = len(self.summary()["failures"])
                    if lost == 3:
                        break
                self.assertEqual(lost, 3)

    def test_a_worker_that_does_hardly_anything_changes_nothing(self):
        for name in ("async", "1 of 4", "partial, 2 of 4", "gossip of parameters",
                     "gossip of gradients"):
            with self.subTest(name):
                process = self.start_run(*LOOSE[name], "--faults", "worker-2:worker.step=stop@5")
                wait_until(lambda: self.newest_step() > STEPS // 2, "the others do half the steps")
                os.kill(self.pid_of(2), signal.SIGCONT)
                self.check(name, process)

    def test_more_workers_than_the_run_began_with_change_nothing(self):
        faults = ";".join(f"worker-{worker}:worker.step=stop@5" for worker in (0, 1))
        steps = 4 * STEPS  # At the end, models may be some steps apart.
        for name in ("async", "1 of 4", "partial, 1 of 4", "gossip of parameters",
                     "gossip of gradients"):
            with self.subTest(name):
                # The two may have done all the work before the others are ready.
                for _ in range(6):
                    process = self.start_run(*LOOSE[name], "--workers", 2, "--faults", faults,
                                             *setting(f"train.steps={steps}"))
                    wait_until(lambda: self.are_stopped(0, 1), "both stop")
                    tasks = len(tasks_of(process.pid))
                    answer = self.run_command("scale", self.run_dir, "--workers", 4)
                    self.assertEqual(answer.returncode, 0, answer.stderr)
                    wait_until(lambda: len(tasks_of(process.pid)) == tasks + 2, "two start")
                    for worker in (0, 1):
                        os.kill(self.pid_of(worker), signal.SIGCONT)
                    # Updates are late by two steps, and more where every other one is pushed.
                    self.check(name, process, steps, loose=8 * DECAY)
                    if self.largest_group() == 4:
                        break
                self.assertEqual(self.largest_group(), 4)

    def test_every_optimizer_moves_the_model_as_one_process_does(self):
        for optimizer, tolerance, ways in OPTIMIZERS:
            words = setting(f"train.optimizer={optimizer}")
            self.assert_ends(self.start_run("--workers", 1, *words), 0)
            alone = self.steps_moved()
            for name in ways:
                with self.subTest(f"{optimizer}, {name}"):
                    self.assert_ends(self.start_run(*(EXACT | LOOSE)[name], *words), 0)
                    self.assertLess(abs(self.steps_moved() / alone - 1), tolerance)

    def newest_step(self):
        path = self.run_dir / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)

    def largest_group(self):
        lines = (self.run_dir / "history.jsonl").read_text().splitlines()
        return max(len(line["workers"]) for line in map(json.loads, lines)
                   if line["event"] == "group")

    def are_stopped(self, *workers):
        if not (self.run_dir / "tasks.json").exists():
            return False
        return all(state_of(self.pid_of(worker)) == "T" for worker in workers)

    def pid_of(self, worker):
        tasks = json.loads((self.run_dir / "tasks.json").read_text())["tasks"]
        return next(task["pid"] for task in tasks
                    if task["role"] != "server" and task["number"] == worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)

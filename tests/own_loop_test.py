"""The programs of examples/own_loop, built against the installed library alone: any number of ranks learns what one
learns, under every launcher; a killed rank ends the others with its name, and a restart goes on from what was saved."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import LIMIT, SOURCE, CohortTest, TwoHostsCase, children_of, environment, free_port

BUILD = pathlib.Path(os.environ["COHORT_BUILD"])
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch.

# Which words a short run takes, after the file it saves to, and how far its weights may be from those of one rank. Adam
# divides by what is nearly nothing, so that the last bits of a sum move a weight further than SGD would.
PROGRAMS = {"mnist": (["2"], 1e-5), "gan": (["60"], 1e-4), "sequence": (["60"], 1e-4)}

# For every line of two saved files: the largest difference between their parameters, and how much weight there is at all.
COMPARE = """
import sys, torch
weights = lambda file: {k: v.detach() for k, v in torch.jit.load(file).named_parameters()}
for line in sys.stdin:
    one, other = map(weights, line.split())
    assert one.keys() == other.keys() and len(one) > 3, (one.keys(), other.keys())
    print(max((one[k] - other[k]).abs().max().item() for k in one), sum(v.abs().sum().item() for v in one.values()), flush=True)
"""


def build(*words, **more):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=10 * LIMIT, **more)
    if result.returncode != 0:
        raise AssertionError(f"{words}\n{result.stdout}\n{result.stderr}")


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    Programs.folder_of_programs = pathlib.Path(folder.name) / "build"
    prefix = pathlib.Path(folder.name) / "installed"
    build("cmake", "--install", BUILD, "--prefix", prefix)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    build("cmake", "-S", SOURCE / "examples" / "own_loop", "-B", Programs.folder_of_programs, "-G", "Ninja",
          f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *launcher)
    build("cmake", "--build", Programs.folder_of_programs,
          env=environment(CCACHE_BASEDIR=folder.name, CCACHE_NOHASHDIR="1"))
    Programs.reader = subprocess.Popen([PYTHON, "-c", COMPARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    unittest.addModuleCleanup(Programs.reader.communicate)


class Programs:
    """What tests do with the programs, beside what CohortTest has."""

    def program(self, name):
        return self.folder_of_programs / name

    def saved(self, name):
        return self.folder / f"{name}.pt"

    def start_ranks(self, name, ranks, saved, words, *options):
        return self.start("run", "-n", ranks, *options, self.program(name), self.saved(saved), *words)

    def run_ranks(self, name, ranks, saved, words, *options):
        """What rank 0 said."""
        process = self.start_ranks(name, ranks, saved, words, *options)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, out + err)
        return out

    def difference(self, one, other):
        """Of the weights, at most."""
        print(self.saved(one), self.saved(other), file=self.reader.stdin, flush=True)
        difference, size = map(float, self.reader.stdout.readline().split())
        self.assertGreater(size, 1)
        return difference

    def weights_are_equal(self, one, other):
        self.assertEqual(self.difference(one, other), 0, f"{one} and {other}")

    def kill_a_rank(self, process, rank):
        """Once rank 0 has saved something."""
        for line in process.stdout:
            if "step 20" in line:
                break
        else:
            self.fail("the ranks ended early: " + process.stderr.read())
        pid = next(pid for guard in [process.pid, *children_of(process.pid)] for pid in children_of(guard)
                   if self.is_rank(pid, rank))
        os.kill(pid, signal.SIGKILL)
        return pid

    @staticmethod
    def is_rank(pid, rank):
        try:
            return f"RANK={rank}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False


class OwnLoopTest(Programs, CohortTest):
    def test_two_and_three_ranks_learn_what_one_learns(self):
        for name, (words, most) in PROGRAMS.items():
            said = self.run_ranks(name, 1, f"{name}1", words)
            for ranks in (2, 5 if name == "gan" else 3):
                with self.subTest(name, ranks=ranks):
                    self.run_ranks(name, ranks, f"{name}{ranks}", words)
                    self.assertLess(self.difference(f"{name}{ranks}", f"{name}1"), most)
            shorter = [str(int(words[0]) // 2)]
            self.run_ranks(name, 1, f"{name}-shorter", shorter)
            self.assertGreater(self.difference(f"{name}-shorter", f"{name}1"), 30 * most, f"{name} does not learn: {said}")

    def test_what_they_learn_is_worth_something(self):
        accuracy = re.search(r"accuracy ([\d.]+)", self.run_ranks("mnist", 2, "digits", ["2"]))
        self.assertGreater(float(accuracy[1]), 0.95)
        distance = re.search(r"points lie ([\d.]+) from", self.run_ranks("gan", 2, "ring", ["600"]))
        self.assertLess(float(distance[1]), 0.25)
        losses = re.findall(r"loss ([\d.]+)", self.run_ranks("sequence", 2, "sums", ["600"]))
        self.assertLess(float(losses[-1]), 0.95, "what is drawn cannot be guessed: 0.7 at best")

    def test_the_same_ranks_come_to_the_same_bytes(self):
        for name, (words, _) in PROGRAMS.items():
            for attempt in ("once", "again"):
                self.run_ranks(name, 3, f"{name}-{attempt}", words)
            self.weights_are_equal(f"{name}-once", f"{name}-again")

    def test_a_killed_rank_ends_the_others_with_its_name(self):
        for killed, name in enumerate(PROGRAMS):  # Rank 0 is where the others meet.
            with self.subTest(name):
                process = self.start_ranks(name, 3, f"{name}-killed", ["100000"])
                pid = self.kill_a_rank(process, killed)
                said = self.assert_ends(process, 128 + signal.SIGKILL)
                self.assertIn(f"rank {killed} (pid {pid}) was killed by SIGKILL", said)
                for other in {0, 1, 2} - {killed}:
                    self.assertRegex(said, rf"\[rank {other}\] cohort: .*: rank {killed} is gone")

    def test_a_restart_goes_on_from_what_was_saved(self):
        for name, (words, _) in PROGRAMS.items():
            with self.subTest(name):
                longer = ["6" if name == "mnist" else "600"]
                self.run_ranks(name, 2, f"{name}-quiet", longer)
                process = self.start_ranks(name, 2, f"{name}-hurt", longer, "--max-restarts", 1)
                self.kill_a_rank(process, 0 if name == "gan" else 1)
                self.assertIn("restart 1 of 1", self.assert_ends(process, 0))
                self.weights_are_equal(f"{name}-hurt", f"{name}-quiet")

    def test_what_three_ranks_saved_two_go_on_from(self):
        """In the middle of an epoch: the file says how many samples of it are done."""
        process = self.start_ranks("mnist", 3, "moved", ["100000"])
        self.kill_a_rank(process, 2)
        self.assert_ends(process, 128 + signal.SIGKILL)
        epochs = str(self.epochs_of("moved") + 2)
        self.run_ranks("mnist", 2, "moved", [epochs])
        self.run_ranks("mnist", 1, "stayed", [epochs])
        self.assertLess(self.difference("moved", "stayed"), 1e-4)

    def epochs_of(self, saved):
        read = "import sys, torch; print(torch.jit.load(sys.argv[1]).place[0].item())"
        return int(subprocess.run([PYTHON, "-c", read, self.saved(saved)], capture_output=True, check=True, text=True,
                                  timeout=LIMIT).stdout)

    def by_launcher(self, saved, launcher, *options):
        name, words = "sequence", PROGRAMS["sequence"][0]
        process = self.start(*options, self.program(name), self.saved(saved), *words, program=launcher)
        self.assert_ends(process, 0)
        self.run_ranks(name, 2, "by-cohort", words)
        self.weights_are_equal(saved, "by-cohort")

    def test_mpirun_starts_the_same_program(self):
        self.by_launcher("by-mpirun", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")

    def test_torchrun_starts_the_same_program(self):
        # Torch 1.13 under Python 3.11 fails where its outputs are not redirected.
        self.by_launcher("by-torchrun", PYTHON, "-m", "torch.distributed.run", "--no_python", "--nproc_per_node", "2",
                         "--master_port", free_port(), "--redirects", "1", "--tee", "1", "--log_dir", self.folder / "logs")

    def test_ranks_by_hand_and_alone(self):
        words = PROGRAMS["sequence"][0]
        port = str(free_port())
        ranks = [self.start(self.saved("by-hand"), *words, program=self.program("sequence"), RANK=str(rank),
                            WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in (1, 0)]
        for rank in ranks:
            self.assert_ends(rank, 0)
        self.run_ranks("sequence", 2, "by-cohort", words)
        self.weights_are_equal("by-hand", "by-cohort")
        self.assert_ends(self.start(self.saved("alone"), *words, program=self.program("sequence")), 0)
        self.run_ranks("sequence", 1, "by-cohort-1", words)
        self.assertLess(self.difference("alone", "by-cohort-1"), 1e-4, "other threads")


class OwnLoopOfTwoHostsTest(Programs, TwoHostsCase):
    def start_hosts(self, saved, steps, *options):
        return [self.start(
            "run", "-n", 2, "--nnodes", 2, "--node-rank", host, "--master-addr", "10.77.0.1", "--master-port", "29555",
            "--run-id", saved, *options, self.program("sequence"), self.saved(saved), steps,
            prefix=("ip", "netns", "exec", self.hosts[host]), **self.trust) for host in (1, 0)]

    def test_four_ranks_of_two_hosts_learn_what_one_learns(self):
        for process in self.start_hosts("both", 60):
            self.assert_ends(process, 0)
        self.run_ranks("sequence", 1, "one", ["60"])
        self.assertLess(self.difference("both", "one"), 1e-4)

    def test_between_hosts_a_restart_goes_on_from_what_was_saved(self):
        for process in self.start_hosts("quiet", 200):
            self.assert_ends(process, 0)
        other, first = self.start_hosts("hurt", 200, "--max-restarts", 1)
        self.kill_a_rank(first, 0)
        self.assertIn("rank 0", self.assert_ends(first, 0))
        self.assertRegex(self.assert_ends(other, 0), r"\[rank [23]\] cohort: rank [23] in .*rank 0(?s:.*)restart 1 of 1")
        self.weights_are_equal("hurt", "quiet")


if __name__ == "__main__":
    unittest.main(verbosity=2)

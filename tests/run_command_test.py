"""`cohort run`: a user's own program as several ranks. The programs here are scripts of /bin/sh and python3 that know
nothing of Cohort."""

import os
import pty
import re
import signal
import subprocess
import sys
import unittest

from support import COMMAND, CohortTest, children_of, free_port, is_running, processes_of, wait_until

# What torchrun sets, beside what follows from the number of the rank.
TORCHRUN = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2", "ROLE_WORLD_SIZE": "4",
            "ROLE_NAME": "default", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3",
            "TORCHELASTIC_RUN_ID": "job-7"}
PRINT_ENVIRONMENT = "import os\nfor k, v in os.environ.items(): print(f'{k}={v}')\n"


class RunCommandTest(CohortTest):
    def run_shell(self, script, *options, **more):
        return self.run_command("run", *options, "/bin/sh", "-c", script, **more)

    def assert_refused(self, sentence, *words, **more):
        result = self.run_command("run", *words, **more)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(sentence, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(result.stdout, "", "nothing was started")

    def environments(self, output):
        """By rank."""
        found = {}
        for rank, name, value in re.findall(r"^\[rank (\d+)\] (\w+)=(.*)$", output, re.MULTILINE):
            found.setdefault(int(rank), {})[name] = value
        return found

    def test_variables_are_those_of_torchrun(self):
        program = self.write("print.py", PRINT_ENVIRONMENT)
        port = free_port()
        for host in (0, 1):
            result = self.run_command(
                "run", "--nproc_per_node=2", "--nnodes", 2, "--node_rank", host, "--master_addr=127.0.0.1",
                "--master-port", port, "--rdzv_id=job-7", "--max_restarts=3", sys.executable, program,
                TORCHELASTIC_USE_AGENT_STORE="True", COHORT_ADDRESS="elsewhere:1")
            self.assertEqual(result.returncode, 0, result.stderr)
            ranks = self.environments(result.stdout)
            self.assertEqual(sorted(ranks), [2 * host, 2 * host + 1])
            for rank, variables in ranks.items():
                expected = TORCHRUN | {
                    "RANK": str(rank), "ROLE_RANK": str(rank), "LOCAL_RANK": str(rank % 2), "GROUP_RANK": str(host),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                self.assertEqual({name: variables.get(name) for name in expected}, expected)
                self.assertNotIn("TORCHELASTIC_USE_AGENT_STORE", variables)
                self.assertNotIn("COHORT_ADDRESS", variables)

    def test_a_run_of_one_host_is_its_own(self):
        program = self.write("print.py", PRINT_ENVIRONMENT)
        runs = [self.environments(self.run_command("run", "-n", 2, sys.executable, program).stdout) for _ in range(2)]
        for ranks in runs:
            self.assertEqual(ranks[0]["MASTER_ADDR"], "127.0.0.1")
            self.assertGreater(int(ranks[0]["MASTER_PORT"]), 0)
            for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID"):
                self.assertEqual(ranks[0][name], ranks[1][name])
        self.assertNotEqual(runs[0][0]["TORCHELASTIC_RUN_ID"], runs[1][0]["TORCHELASTIC_RUN_ID"])

    def test_ranks_have_their_share_of_cores_and_threads(self):
        program = self.write("cores.py", "import os\nprint('cores=' + ','.join(map(str, sorted(os.sched_getaffinity(0)))))\n"
                             + PRINT_ENVIRONMENT)
        cores = sorted(os.sched_getaffinity(0))
        ranks = self.environments(self.run_command("run", "-n", len(cores), sys.executable, program).stdout)
        self.assertEqual([ranks[rank]["cores"] for rank in range(len(cores))], [str(core) for core in cores])
        for rank in ranks.values():
            self.assertEqual((rank["OMP_NUM_THREADS"], rank["OPENBLAS_NUM_THREADS"]), ("1", "1"))
        more = self.environments(self.run_command("run", "-n", len(cores) + 1, sys.executable, program).stdout)
        self.assertEqual({rank["cores"] for rank in more.values()}, {",".join(map(str, cores))})
        chosen = self.environments(
            self.run_command("run", sys.executable, program, OMP_NUM_THREADS="7", COHORT_KERNELS="off").stdout)[0]
        self.assertEqual(chosen["OMP_NUM_THREADS"], "7")
        self.assertNotIn("OPENBLAS_NUM_THREADS", chosen)

    def test_ranks_get_the_kernel_settings(self):
        settings = self.run_command("doctor", "--settings").stdout.split("\n")
        program = self.write("print.py", PRINT_ENVIRONMENT)
        rank = self.environments(self.run_command("run", sys.executable, program, OMP_NUM_THREADS="2").stdout)[0]
        for setting in filter(None, settings):
            name, value = setting.split("=", 1)
            self.assertEqual(rank.get(name), value)

    def test_all_words_after_the_programs_name_are_its_own(self):
        for words in (["/bin/echo"], ["--", "/bin/echo"], ["-n", "1", "--", "/bin/echo"]):
            result = self.run_command("run", *words, "word", "-n", "3", "--help", "--", "run", "--yes")
            self.assertEqual(result.stdout, "[rank 0] word -n 3 --help -- run --yes\n", result.stderr)

    def test_no_shell_reads_the_words(self):
        for no_prefix in ("--no-prefix", "--no_prefix"):
            result = self.run_command("run", no_prefix, "/bin/echo", "$HOME; `id` *")
            self.assertEqual(result.stdout, "$HOME; `id` *\n", result.stderr)

    def test_streams_stay_apart_and_lines_whole(self):
        result = self.run_shell("echo to out; echo to err >&2; printf 'no end'", "-n", 3)
        lines = [f"[rank {rank}] {words}" for rank in range(3) for words in ("to out", "no end")]
        self.assertEqual(sorted(result.stdout.splitlines()), sorted(lines))
        self.assertEqual(sorted(result.stderr.splitlines()), [f"[rank {rank}] to err" for rank in range(3)])

    def test_exit_codes_and_the_first_cause(self):
        result = self.run_shell("test $RANK = 2 && exit 41; exec sleep 1000", "-n", 3)
        self.assertEqual(result.returncode, 41)
        self.assertRegex(result.stderr, r"^cohort: rank 2 \(pid \d+\) ended with exit code 41\n$")
        result = self.run_shell("test $RANK = 1 && kill -KILL $$; exec sleep 1000", "-n", 2)
        self.assertEqual(result.returncode, 128 + signal.SIGKILL)
        self.assertRegex(result.stderr, r"^cohort: rank 1 \(pid \d+\) was killed by SIGKILL\n$")
        lost = self.write("lost", "")
        result = self.run_shell(
            f"test $RANK = 0 && {{ echo $$ > {lost}; exit 138; }}; until [ -s {lost} ]; do :; done; "
            f"while kill -0 $(cat {lost}) 2> /dev/null; do :; done; exit 5", "-n", 2)
        self.assertEqual(result.returncode, 5, "whoever lost its peer is not the cause")
        self.assertIn("rank 1 ", result.stderr)
        self.assertEqual(self.run_shell("exit 138", "-n", 2).returncode, 138)

    def test_a_restart_starts_all_ranks_again(self):
        result = self.run_shell("echo attempt $TORCHELASTIC_RESTART_COUNT; "
                                "test $TORCHELASTIC_RESTART_COUNT = 1 || test $RANK = 0 || exit 9; "
                                "test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 1000",
                                "-n", 2, "--max-restarts", 2)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()),
                         [f"[rank {rank}] attempt {attempt}" for rank in (0, 1) for attempt in (0, 1)])
        self.assertRegex(result.stderr, r"^cohort: rank 1 \(pid \d+\) ended with exit code 9; all ranks are started again "
                                        r"\(restart 1 of 2\)\n$")
        result = self.run_shell("exit 4", "--max-restarts", 1)
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, r"exit code 4, at restart 1; no restarts are left\n$")

    def test_hosts_start_again_together(self):
        """Two launchers, one of them told by its ranks' 138 only that the other host's rank has failed."""
        port = free_port()
        signs = self.folder / "signs"
        signs.mkdir()
        script = (f"touch {signs}/$RANK-$TORCHELASTIC_RESTART_COUNT; test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0; "
                  f"test $RANK = 0 && exit 3; until [ -e {signs}/0-0 ]; do :; done; exit 138")
        hosts = [self.start("run", "--nnodes", 2, "--node-rank", host, "--master-addr", "127.0.0.1", "--master-port", port,
                            "--max-restarts", 1, "/bin/sh", "-c", script) for host in (0, 1)]
        self.assertIn("exit code 3", self.assert_ends(hosts[0], 0))
        self.assertIn("exit code 138: it lost a peer", self.assert_ends(hosts[1], 0))
        self.assertEqual(sorted(path.name for path in signs.iterdir()), ["0-0", "0-1", "1-0", "1-1"])

    def test_logs_are_kept_by_rank_and_restart(self):
        logs = self.folder / "some" / "logs"
        result = self.run_shell("echo out $RANK; echo err $TORCHELASTIC_RESTART_COUNT >&2; printf end; exit 6",
                                "-n", 2, "--max-restarts=1", "--run-id", "mine", "--log-dir", logs)
        self.assertEqual(result.returncode, 6)
        files = {str(path.relative_to(logs)): path.read_text() for path in logs.rglob("*") if path.is_file()}
        self.assertEqual(files, {f"mine/restart-{restart}/rank-{rank}.{name}": text
                                 for restart in (0, 1) for rank in (0, 1)
                                 for name, text in (("out", f"out {rank}\nend"), ("err", f"err {restart}\n"))})
        self.assertRegex(result.stderr, rf"log: {logs}/mine/restart-1/rank-[01]\.err")
        self.assertEqual((logs / "mine").stat().st_mode & 0o777, 0o700)

    def start_family(self, *options):
        """A run whose ranks have each started a process in a session of its own; returns it and all its processes."""
        process = self.start("run", "-n", 2, *options, "/bin/sh", "-c",
                             f"setsid sh -c 'echo $$ > {self.folder}/left-$RANK; exec sleep 1000' & wait")
        left = [self.folder / f"left-{rank}" for rank in (0, 1)]
        wait_until(lambda: all(path.exists() and path.read_text().endswith("\n") for path in left), "the ranks run")
        return process, processes_of(process.pid) + [int(path.read_text()) for path in left]

    def test_nothing_is_left_where_the_launcher_is_killed(self):
        process, pids = self.start_family()
        process.kill()
        process.wait()
        self.assert_gone(pids)

    def test_nothing_is_left_where_the_process_below_it_is_killed(self):
        process, pids = self.start_family("--max-restarts", 5)
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        self.assertIn("the launcher was killed by SIGKILL", self.assert_ends(process, 128 + signal.SIGKILL))
        self.assertFalse(any(map(is_running, pids)), "they end before the command does")

    def test_what_a_rank_leaves_behind_ends_with_the_run(self):
        process, pids = self.start_family()
        ranks = children_of(children_of(process.pid)[0])
        os.kill(ranks[0], signal.SIGSEGV)
        self.assertIn("was killed by SIGSEGV", self.assert_ends(process, 128 + signal.SIGSEGV))
        self.assertFalse(any(map(is_running, pids)), "they end before the command does")

    def test_signals_are_passed_on_and_nothing_is_started_again(self):
        ready = "echo ready; while :; do sleep 1000 & wait $!; done"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for trap, code in (("trap 'echo saved; exit 0' INT TERM HUP", 0), (":", 128 + number)):
                process = self.start("run", "-n", 2, "--max-restarts", 3, "/bin/sh", "-c", f"{trap}; {ready}")
                lines = [process.stdout.readline(), process.stdout.readline()]
                self.assertEqual(sorted(lines), ["[rank 0] ready\n", "[rank 1] ready\n"])
                process.send_signal(number)
                said = self.assert_ends(process, code)
                self.assertIn(f"stopped by {number.name}", said)
                self.assertEqual(said.count("saved"), 2 if code == 0 else 0)

    def test_a_program_that_ignores_an_interrupt_ends_at_the_second(self):
        process = self.start("run", "/bin/sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 1000 & wait $!; done")
        self.assertEqual(process.stdout.readline(), "[rank 0] ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "[rank 0] no\n")
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 128 + signal.SIGKILL)

    def test_a_reader_that_leaves_ends_the_run(self):
        process = subprocess.Popen([COMMAND, "run", "-n", "2", "yes"], stdout=subprocess.PIPE)
        with process.stdout as output:
            output.readline()
        self.assertEqual(process.wait(), 128 + signal.SIGPIPE)

    def test_rank_zero_reads_the_input(self):
        process = subprocess.run([COMMAND, "run", "-n", "2", "cat"], input="one\ntwo", capture_output=True, text=True)
        self.assertEqual((process.returncode, process.stdout), (0, "[rank 0] one\n[rank 0] two\n"))

    def test_a_terminal_is_rank_zeros_and_its_interrupt_the_commands(self):
        """Typed at a terminal whose foreground the command has; ranks are in sessions of their own."""
        process, terminal = pty.fork()
        if process == 0:
            os.execv(COMMAND, [COMMAND, "run", "-n", "2", "/bin/sh", "-c",
                               "trap 'echo interrupted; exit 0' INT; read word; echo got $word; test $RANK = 1 || "
                               "while :; do sleep 1000 & wait $!; done"])
        self.addCleanup(os.close, terminal)
        os.write(terminal, b"hello\n")
        said = b""
        while b"[rank 0] got hello" not in said or b"[rank 1] got" not in said:
            said += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        while b"[rank 0] interrupted" not in said:
            said += os.read(terminal, 1000)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)

    def test_wrong_use_is_a_sentence(self):
        plain = self.write("plain", "echo\n")
        script = self.write("script", "echo\n")
        script.chmod(0o755)
        self.assert_refused("run needs a program", )
        self.assert_refused("run needs a program", "-n", 2)
        self.assert_refused('did you mean --max-restarts?', "--max-restart", 1, "true")
        self.assert_refused('did you mean --nproc_per_node?', "--nproc_per_nod=2", "true")
        self.assert_refused("--nproc-per-node 0 is not a number from 1", "-n", 0, "true")
        self.assert_refused("--nproc-per-node", "-n", "many", "true")
        self.assert_refused("--node-rank 2 is not a number from 0 to 1", "--nnodes", 2, "--node-rank", 2, "true")
        self.assert_refused("every host needs its own --node-rank", "--nnodes", 2, "true")
        self.assert_refused("there is no program no-such-program on PATH", "no-such-program")
        self.assert_refused("there is no program ./nothing", "./nothing")
        self.assert_refused("is not executable", plain)
        self.assert_refused("is a folder", self.folder)
        self.assert_refused("it is neither a program of this machine nor a script", script)
        self.assert_refused("--run-id ../up is no name of a run", "--run-id", "../up", "true")

    def test_between_hosts_somebody_must_say_so(self):
        hosts = ["--nnodes", 2, "--node-rank", 0]
        place = [*hosts, "--master-addr", "host-of-rank-0", "--master-port", 29500]
        self.assert_refused("must know where to meet", *hosts, "true")
        self.assert_refused("must know where to meet", *hosts, "--master-addr", "host-of-rank-0", "true")
        self.assert_refused("--insecure or COHORT_INSECURE=1", *place, "true")
        self.assert_refused("COHORT_SECRET_FILE", *place, "--insecure", "true")
        self.assert_refused("no-such-secret", *place, "--insecure", "true", COHORT_SECRET_FILE="no-such-secret")
        secret = self.write("secret", "x" * 32)
        secret.chmod(0o600)
        result = self.run_shell("echo $COHORT_INSECURE $TORCHELASTIC_RUN_ID", *place, "--insecure",
                                COHORT_SECRET_FILE=str(secret))
        self.assertEqual(result.stdout, "[rank 0] 1 port-29500\n", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

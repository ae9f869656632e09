"""What ./cohort does before it builds: it says what it will install, and asks before sudo."""

import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["COHORT_SOURCE"])
QUESTION = "install them with sudo?"


class WrapperTest(unittest.TestCase):
    """The wrapper alone, in a folder of its own, on a machine that is all invented: its user, its
    packages, its sudo. Nothing can be built there, which ends it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "cmake").mkdir()
        (self.folder / "bin").mkdir()
        shutil.copy(SOURCE / "cohort", self.folder)
        shutil.copy(SOURCE / "cmake" / "progress.sh", self.folder / "cmake")
        self.calls = self.folder / "calls"
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 1000")
        self.program("cmake", "exit 1")
        for name in ("sudo", "apt-get"):
            self.program(name, f'echo {name} "$@" >> "{self.calls}"')

    def program(self, name, script):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_wrapper(self, *words, answer=None, **more):
        """With an `answer` there is a terminal, and somebody who types it."""
        variables = {k: v for k, v in os.environ.items() if k != "CI"}
        variables["PATH"] = f"{self.folder / 'bin'}:{variables['PATH']}"
        stdin = subprocess.DEVNULL
        if answer is not None:
            ours, stdin = pty.openpty()
            self.addCleanup(os.close, ours)
            os.write(ours, answer.encode())
        result = subprocess.run([self.folder / "cohort", *words], stdin=stdin, env=variables | more,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=60)
        if answer is not None:
            os.close(stdin)
        self.assertEqual(result.returncode, 1, result.stdout)
        return result.stdout

    def called(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def test_it_says_what_it_will_install_and_asks_before_sudo(self):
        for answer in ("n\n", "\n", "\x04"):
            said = self.run_wrapper("build", answer=answer)
            self.assertIn("these packages will be installed, by apt-get: g++ ", said)
            self.assertIn(QUESTION, said)
            self.assertIn("nothing was installed; please install by hand: g++ ", said)
            self.assertEqual(self.called(), "")

    def test_who_says_yes_gets_the_packages(self):
        self.assertIn(QUESTION, self.run_wrapper("build", answer="y\n"))
        self.assertRegex(self.called(), r"(?s)sudo .*install.*g\+\+ .*libtorch-dev")

    def test_a_yes_for_the_users_own_program_is_no_answer(self):
        said = self.run_wrapper("run", "./program", "--yes", answer="n\n")
        self.assertIn(QUESTION, said)
        self.assertEqual(self.called(), "")
        said = self.run_wrapper("--yes", "run", "./program", answer="n\n")
        self.assertNotIn(QUESTION, said)

    def test_yes_a_ci_and_no_terminal_are_not_asked(self):
        for words, more in ((["--yes", "build"], {"answer": "n\n"}),
                            (["build", "--yes"], {"answer": "n\n"}),
                            (["build"], {"answer": "n\n", "CI": "true"}), (["build"], {})):
            said = self.run_wrapper(*words, **more)
            self.assertIn("these packages will be installed", said)
            self.assertNotIn(QUESTION, said)
            self.assertRegex(self.called(), r"(?s)sudo .*install.*g\+\+")
            self.calls.unlink()
            shutil.rmtree(self.folder / "build")

    def test_root_is_not_asked_and_needs_no_sudo(self):
        self.program("id", "echo 0")
        self.assertNotIn(QUESTION, self.run_wrapper("build", answer="n\n"))
        self.assertNotIn("sudo", self.called())
        self.assertRegex(self.called(), r"(?s)apt-get .*install.*g\+\+")

    def test_where_nothing_is_missing_nothing_is_said_of_it(self):
        self.program("dpkg-query", "echo 'ii '")
        self.assertNotIn("install", self.run_wrapper("build", answer="n\n"))
        self.assertEqual(self.called(), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)

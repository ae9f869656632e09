"""cmake --install, and a program of a user's own built against what it installed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import LIMIT, SOURCE, environment

BUILD = pathlib.Path(os.environ["COHORT_BUILD"])


def run(*words, **more):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                            timeout=10 * LIMIT, **more)
    if result.returncode != 0:
        raise AssertionError(f"{words}\n{result.stdout}\n{result.stderr}")
    return result.stdout


class InstallTest(unittest.TestCase):
    def test_own_model_builds_against_the_installed_package_and_trains(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            prefix = folder / "installed"
            run("cmake", "--install", BUILD, "--prefix", prefix)
            headers = {p.name for p in (prefix / "include" / "cohort").iterdir()}
            self.assertEqual(headers, {p.name for p in (SOURCE / "include" / "cohort").iterdir()})
            run("cmake", "-S", SOURCE / "examples" / "own_model", "-B", folder / "build",
                "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
            run("cmake", "--build", folder / "build")
            variables = environment(OMP_NUM_THREADS="2")
            for name in ["COHORT_KERNELS", "OMP_WAIT_POLICY"]:
                variables.pop(name, None)
            output = run(folder / "build" / "own_model", "2", cwd=folder, env=variables)
            last = output.strip().splitlines()[-1]
            self.assertRegex(output, r"the point \(0.3, 0.2\) is on spiral [01]\n")
            self.assertRegex(last, r"^accuracy (0\.9\d*|1\.0*) after 1200 steps$")
            # Its first line is a call that starts it anew where OpenMP's threads would spin.
            env = json.loads(next((folder / "runs").glob("*/env.json")).read_text())
            self.assertEqual(env["kernels"]["set_by_cohort"]["OMP_WAIT_POLICY"], "PASSIVE")
            run(prefix / "bin" / "cohort", "--version", env=environment())


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv[:1])

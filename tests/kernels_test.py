"""The command starts itself anew with the settings that make it fast, once, and says so."""

import json
import os
import pathlib
import re
import signal
import unittest

from support import CohortTest, free_port

for name in ["COHORT_KERNELS", "OPENBLAS_CORETYPE", "OMP_WAIT_POLICY", "OMP_NUM_THREADS",
             "GOMP_SPINCOUNT", "KMP_BLOCKTIME"]:
    os.environ.pop(name, None)

OLD_OPENBLAS = {"LD_PRELOAD": os.environ["COHORT_OLD_OPENBLAS"]}
TWO_THREADS = ["--workers", "1", "--set", "cluster.threads=2"]
ONE_THREAD = ["--workers", "1", "--set", "cluster.threads=1"]


def best_core():
    """What a Prescott should be replaced by on this CPU."""
    flags = re.search(r"^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    flags = set(flags.group(1).split()) if flags else set()
    for core, needed in [("SkylakeX", {"avx512f", "avx512bw", "avx512vl"}), ("Haswell", {"avx2"}),
                         ("Sandybridge", {"avx"})]:
        if needed <= flags:
            return core
    raise unittest.SkipTest("a CPU without AVX has no better core than Prescott")


class KernelsTest(CohortTest):
    def kernels_of(self, *words, **more):
        result = self.train(*words, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stdout
        return self.env()["kernels"]

    def env(self):
        return json.loads((self.run_dir / "env.json").read_text())

    def test_a_core_below_the_cpus_is_replaced_and_said(self):
        core = best_core()
        doctor = self.run_command("doctor", **OLD_OPENBLAS)
        self.assertEqual(doctor.returncode, 0)
        self.assertRegex(doctor.stdout, rf"ok +kernels .*OpenBLAS {core} \(Prescott by itself\)")
        kernels = self.kernels_of(*ONE_THREAD, **OLD_OPENBLAS)
        self.assertEqual(kernels["openblas_core"], core)
        self.assertEqual(kernels["openblas_core_by_itself"], "Prescott")
        self.assertEqual(kernels["set_by_cohort"], {"OPENBLAS_CORETYPE": core})
        self.assertEqual(kernels["slow"], [])
        self.assertIn(f"OpenBLAS {core} (Prescott by itself)", self.said)

    def test_a_users_own_core_is_left_alone_and_warned_of(self):
        best_core()
        doctor = self.run_command("doctor", OPENBLAS_CORETYPE="Prescott")
        self.assertRegex(doctor.stdout, r"warn +kernels .*SLOW: OpenBLAS computes with its Prescott")
        self.assertIn("OPENBLAS_CORETYPE=Prescott is yours", doctor.stdout)
        kernels = self.kernels_of(*ONE_THREAD, OPENBLAS_CORETYPE="Prescott")
        self.assertEqual(kernels["set_by_cohort"], {})
        self.assertEqual(len(kernels["slow"]), 1)

    def test_a_worker_with_several_threads_gets_openmp_that_does_not_spin(self):
        kernels = self.kernels_of(*TWO_THREADS)
        self.assertEqual(kernels["set_by_cohort"]["OMP_WAIT_POLICY"], "PASSIVE")
        self.assertEqual(self.env()["threads_per_worker"], 2)
        self.assertEqual(self.env()["argv"][1:5], ["train", str(self.job), "--run-dir",
                                                   str(self.run_dir)])

    def test_it_is_the_same_process_and_its_workers_have_the_settings_too(self):
        process, workers = self.start_long_training("--set", "cluster.threads=2")
        for pid in [process.pid, *workers]:
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            self.assertIn(b"OMP_WAIT_POLICY=PASSIVE", variables)
        process.send_signal(signal.SIGINT)
        self.assert_ends(process, 130)

    def test_a_worker_with_one_thread_needs_no_policy(self):
        self.assertNotIn("OMP_WAIT_POLICY", self.kernels_of(*ONE_THREAD)["set_by_cohort"])

    def test_a_users_own_policy_is_left_alone(self):
        kernels = self.kernels_of(*TWO_THREADS, OMP_WAIT_POLICY="ACTIVE")
        self.assertNotIn("OMP_WAIT_POLICY", kernels["set_by_cohort"])
        self.assertEqual(kernels["slow"], [])

    def test_what_another_program_was_given_is_not_all_that_this_one_needs(self):
        # As a child of a program with one thread on a CPU that its OpenBLAS does not know.
        kernels = self.kernels_of(*TWO_THREADS, OPENBLAS_CORETYPE="Haswell",
                                  COHORT_KERNELS="OPENBLAS_CORETYPE=Haswell/Prescott")
        self.assertEqual(kernels["set_by_cohort"],
                         {"OPENBLAS_CORETYPE": "Haswell", "OMP_WAIT_POLICY": "PASSIVE"})

    def test_the_jobs_threads_count_under_another_launcher(self):
        kernels = self.kernels_of("--set", "cluster.threads=2", OMP_NUM_THREADS="1", RANK="0",
                                  WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1",
                                  MASTER_PORT=str(free_port()))
        self.assertEqual(kernels["set_by_cohort"]["OMP_WAIT_POLICY"], "PASSIVE")
        self.assertEqual(self.env()["threads_per_worker"], 2)

    def test_a_user_can_forbid_it_and_is_told_what_is_lost(self):
        kernels = self.kernels_of(*TWO_THREADS, COHORT_KERNELS="off")
        self.assertEqual(kernels["set_by_cohort"], {})
        self.assertRegex("\n".join(kernels["slow"]), "2 threads, and OpenMP's spin")

    def test_other_libraries_below_the_cpu_are_warned_of(self):
        if best_core() == "Sandybridge":
            self.skipTest("there is nothing below AVX that they could be told to use")
        doctor = self.run_command("doctor", ONEDNN_MAX_CPU_ISA="AVX", ATEN_CPU_CAPABILITY="default")
        self.assertRegex(doctor.stdout, r"warn +kernels .*SLOW: oneDNN computes with avx,")
        self.assertIn("ONEDNN_MAX_CPU_ISA=AVX is yours", doctor.stdout)
        self.assertRegex(doctor.stdout, r"warn +torch loops .*\n +-> unset ATEN_CPU_CAPABILITY")

    def test_the_settings_can_be_asked_for(self):
        core = best_core()
        settings = self.run_command("doctor", "--settings", **OLD_OPENBLAS).stdout.splitlines()
        self.assertIn(f"OPENBLAS_CORETYPE={core}", settings)
        self.assertIn("OMP_WAIT_POLICY=PASSIVE", settings)
        self.assertRegex(settings[-1], f"^COHORT_KERNELS=OPENBLAS_CORETYPE={core}/Prescott")

    def test_a_small_model_gets_one_thread_whatever_the_cores(self):
        self.kernels_of("--workers", "1")
        self.assertEqual(self.env()["threads_per_worker"], 1)
        self.assertIn("; 1 thread each", self.said)


if __name__ == "__main__":
    unittest.main(verbosity=2)

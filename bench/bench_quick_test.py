"""Runs `cohort bench` once with almost no work: do the table and the JSON file come out?

    bench_quick_test.py COHORT
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def run(cohort, words, folder):
    path = pathlib.Path(folder) / "figures.json"
    done = subprocess.run([cohort, "bench", *words, "--quick", "--json", str(path)],
                          capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout, json.loads(path.read_text())


def check(text, figures, metrics):
    assert "quick: figures mean nothing" in text, text
    assert not figures["problems"], figures["problems"]
    found = {metric["name"]: metric["contenders"] for metric in figures["metrics"]}
    for name in metrics:
        assert name in text, f"no paragraph \"{name}\" in\n{text}"
        names = [contender["name"] for contender in found[name]]
        assert "Cohort" in names, names
        for contender in found[name]:
            assert contender["lowest"] <= contender["median"] <= contender["highest"], contender
            assert contender["lowest"] > 0, contender
            assert contender["name"] == "Cohort" or contender["ratio"]["median"] > 0, contender


def compare_strategies(cohort, folder):
    job = pathlib.Path(__file__).parent.parent / "examples" / "blobs.toml"
    done = subprocess.run([cohort, "bench", "strategies", str(job), "--quick", "--out", "compared"],
                          cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    figures = json.loads((pathlib.Path(folder) / "compared" / "strategies.json").read_text())
    assert "openblas_core" in figures["kernels"], figures["kernels"]
    results = figures["strategies"]
    assert len(results) == 12 and all(r["status"] == "completed" for r in results), results
    plot = (pathlib.Path(folder) / "compared" / "strategies.svg").read_text()
    assert all(r["strategy"] in plot and r["strategy"] in done.stdout for r in results)


def cost_of_checkpoints(cohort, folder):
    text, figures = run(cohort, ["checkpoint", "--only", "mlp"], folder)
    assert not figures["problems"], figures["problems"]
    assert "mlp: checkpoints cost" in text, text
    names = {metric["name"] for metric in figures["metrics"]}
    assert "mlp: writing one in the background" in names, names


def main():
    cohort = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        check(*run(cohort, ["allreduce"], folder),
              ["sum of 1 KiB, 2 ranks", "sum of 64 KiB, 2 ranks"])
        check(*run(cohort, ["train", "--only", "mlp"], folder),
              ["mlp, 2 workers: training", "mlp, 1 worker: training",
               "mlp, 2 workers: memory of the largest",
               "from the command to the end of the first step"])
        check(*run(cohort, ["loop", "--only", "mlp", "sums"], folder),
              ["mlp, 2 workers: training", "mlp, 1 worker: training",
               "sum of 1 KiB, 2 ranks", "sum of 64 KiB, 2 ranks"])
        check(*run(cohort, ["ps", "--only", "1-workers-1-servers"], folder),
              ["push of 4 bytes, 1 worker, 1 server", "push and pull of 64 KiB, 1 worker, 1 server"])
        cost_of_checkpoints(cohort, folder)
        compare_strategies(cohort, folder)


main()

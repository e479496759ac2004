"""Measure what a Slurm job costs on top of `sbatch` itself: from the call until the first line of the cell runs.

    python benchmarks/slurm_start.py [--repeats N]

A real cluster of two nodes in namespaces of its own. In turn: `sbatch` of a script that writes down the time, and
`submit` of the Slurm backend with a cell that does the same. Slurm starts jobs once a second; both kinds are submitted
at the same moment after such a start, so that this does not come into the difference. The figure is the difference of
the medians. Limit: 100 ms.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import jupyter_autotrain
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_until
from tests.labs import slurm_lab

LIMIT_MS = 100.0


def wait_for_turn(cluster: slurm_lab.SlurmLab) -> None:
    """Wait until Slurm has just started a job, and that is gone."""
    subprocess.run(["sbatch", "--output=/dev/null", "--wrap=true"], check=True, capture_output=True)
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "the end of a job")


def stamp(path: Path) -> float:
    """Return the time that a job has written down."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} of a job")
    return float(path.read_text())


def by_sbatch(folder: Path, number: int) -> float:
    """Seconds from the call of `sbatch` to the first line of its script."""
    path = folder / f"sbatch-{number}"
    script = folder / "script"
    script.write_text(f"#!/bin/sh\n#SBATCH --output=/dev/null\ndate +%s.%N > {path}\n")
    begun_s = time.time()
    subprocess.run(["sbatch", "--parsable", str(script)], check=True, capture_output=True)
    return stamp(path) - begun_s


def by_backend(folder: Path, number: int) -> float:
    """Seconds from the call of `submit` to the first line of the cell."""
    home = Home(folder / f"home-{number}")
    path = folder / f"trial-{number}"
    code = f"import time\nwith open({str(path)!r}, 'w') as file: file.write(f'{{time.time()}}\\n')"
    trial = trial_of(home, code)
    backend = SlurmBackend(Profile("cluster", "slurm"), BackendContext(home))
    begun_s = time.time()
    ref = backend.submit(trial, Placement(), {})
    elapsed_s = stamp(path) - begun_s
    wait_until(lambda: backend.poll([ref])[0].state.is_final, "the end of a trial")
    return elapsed_s


def main() -> int:
    """Measure, print, compare with the limit."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=15)
    repeats = arguments.parse_args().repeats
    reason = slurm_lab.missing()
    if reason:
        print(f"skipped: {reason}")
        return 0
    compileall.compile_dir(Path(jupyter_autotrain.__file__).parent, quiet=1)  # as every installer does
    folder = Path(tempfile.mkdtemp(prefix="at-slurm-"))
    (folder / "lab").mkdir()
    cluster = slurm_lab.SlurmLab(folder / "lab")
    os.environ.update(cluster.environment)
    plain, ours = [], []
    try:
        with cluster.inside():
            for number in range(repeats):
                wait_for_turn(cluster)
                plain.append(by_sbatch(folder, number))
                wait_for_turn(cluster)
                ours.append(by_backend(folder, number))
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    over_ms = 1000 * (statistics.median(ours) - statistics.median(plain))
    print(f"sbatch to the first line of its script: median {1000 * statistics.median(plain):.0f} ms")
    print(f"submit to the first line of the cell:   median {1000 * statistics.median(ours):.0f} ms")
    print(f"on top of sbatch: {over_ms:.0f} ms, limit {LIMIT_MS:.0f} ms, ratio {LIMIT_MS / over_ms:.1f}")
    return int(over_ms > LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())

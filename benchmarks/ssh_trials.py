"""Trials on three hosts that are reached by SSH: first contact, submit to first metric, trials per second.

    python benchmarks/ssh_trials.py [--trials N]

The hosts are real OpenSSH servers in network namespaces of this machine, so all of them share its cores. Everything
goes through the manager. The first contact is also that of a process which has imported nothing yet; those to the next
hosts are without that. Limits: 1.5 s for the first contact with a bundle of 1 MB, 0.25 s from submit to the first
metric on a connected host, 10 trials per second; NNI 3.0's remote service took 9.0 s and ran 3.1 trials per minute.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing import ssh_lab

CELL = "for step in range(11):\n    report(step=step, acc=0.5)\n"
LIMIT_CONTACT_S, LIMIT_FIRST_S, LIMIT_PER_S = 1.5, 0.25, 10.0
NNI_FIRST_S, NNI_PER_S = 9.0, 3.1 / 60
BUNDLE_BYTES = 1_000_000
SINGLE = 11
CONCURRENCY = 12
HOSTS = ("h1", "h2", "h3")


def profile(lab: ssh_lab.SshLab, hosts: tuple[str, ...]) -> dict[str, object]:
    """A header's `backend:` for hosts of the lab."""
    return {"type": "ssh", "hosts": list(hosts), "config_file": str(lab.config), "python": sys.executable}


def first_metric_s(home: Home, backend: dict[str, object], cell: str = CELL) -> float:
    """One submit, until its first metric can be read from the store."""
    begun = time.perf_counter()
    experiment = submit(cell, home=home, name="single", backend=backend)
    while not experiment.store.points(experiment.id, limit=1):
        time.sleep(0.001)
    elapsed_s = time.perf_counter() - begun
    experiment.wait()
    return elapsed_s


def first_contact_s(home: Home, lab: ssh_lab.SshLab, host: str) -> float:
    """The first submit to a host on which nothing is yet, with a bundle of its own."""
    big = f"DATA = {secrets.token_hex(BUNDLE_BYTES // 2)!r}\nreport(size=len(DATA))\n"
    return first_metric_s(home, profile(lab, (host,)), big)


def trials_per_s(home: Home, backend: dict[str, object], trials: int) -> float:
    """Many trials over all hosts."""
    begun = time.perf_counter()
    experiment = submit(CELL, home=home, name="many", backend=backend, trials=trials, concurrency=CONCURRENCY)
    experiment.wait()
    elapsed_s = time.perf_counter() - begun
    assert all(trial.state is TrialState.SUCCEEDED for trial in experiment.trials)
    return trials / elapsed_s


def line(what: str, value: float, unit: str, limit: float, peer: float) -> None:
    """Print one figure beside its limit and its peer."""
    print(f"{what:<42}{value:8.3f} {unit:<9} limit {limit:g}: {value / limit:.2f}; NNI 3.0 (measured before) {peer:g}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    options = parser.parse_args()
    if reason := ssh_lab.missing():
        print(f"skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="ssh-") as folder:
        (Path(folder) / "lab").mkdir()
        lab = ssh_lab.SshLab(Path(folder) / "lab", len(HOSTS))
        try:
            with lab.inside():
                measure(lab, Home(Path(folder) / "home"), options.trials)
        finally:
            lab.close()


def measure(lab: ssh_lab.SshLab, home: Home, trials: int) -> None:
    """All figures, in the order in which a user meets them."""
    pid = manager.ensure(home).pid
    try:
        one = profile(lab, HOSTS[:1])
        fresh_s, *others_s = [first_contact_s(home, lab, host) for host in HOSTS]
        line("first contact, 1 MB bundle, fresh process", fresh_s, "s", LIMIT_CONTACT_S, NNI_FIRST_S)
        line("first contact, 1 MB bundle, next hosts", statistics.median(others_s), "s", LIMIT_CONTACT_S, NNI_FIRST_S)
        first_s = statistics.median(first_metric_s(home, one) for _ in range(SINGLE))
        line("submit to first metric, connected", first_s, "s", LIMIT_FIRST_S, NNI_FIRST_S)
        rate = trials_per_s(home, profile(lab, HOSTS), trials)
        line(f"{trials} trials over {len(HOSTS)} hosts", rate, "trials/s", LIMIT_PER_S, round(NNI_PER_S, 3))
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores that hosts, manager and benchmark share")
    finally:
        os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())

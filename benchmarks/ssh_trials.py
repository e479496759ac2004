"""Trials on three hosts that are reached by SSH: first contact, submit to first metric, trials per second.

    python benchmarks/ssh_trials.py [--trials N] [--nni-python PATH]

The hosts are real OpenSSH servers in network namespaces of this machine, so all of them share its cores. Everything
goes through the manager. The first contact is also that of a process which has imported nothing yet; those to the next
hosts are without that. Limits: 1.5 s for the first contact with a bundle of 1 MB, 0.25 s from submit to the first
metric on a connected host, 10 trials per second, and 25 on one host from a warm process there.

With an interpreter that has NNI 3.0 (also by the variable AUTOTRAIN_PEER_PYTHON) its remote service runs on the same
hosts in the same run, as it is by default and with `reuse_mode`; else its figures on one host of a quiet machine are
used. It finds itself installed on the hosts and its bundle is one small file. Its first contact counts from the start
of the experiment, its first metric from the trial's first event. Its manager listens inside the namespaces only.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from tests.labs import ssh_lab

CELL = "for step in range(11):\n    report(step=step, acc=0.5)\n"
LIMIT_CONTACT_S, LIMIT_FIRST_S, LIMIT_PER_S = 1.5, 0.25, 10.0
LIMIT_WARM_PER_S = 25.0
QUIET_NNI = {"contact_s": 9.0, "first_s": 0.85, "per_s": 30.4 / 60, "reuse_per_s": 3.1 / 60}
NNI_TRIALS = 6
# NNI installs itself on each host before it runs anything, which needs no index where it is installed.
NNI_HOST_RC = "export PIP_NO_INDEX=1 TMPDIR=$HOME\n"
BUNDLE_BYTES = 1_000_000
SINGLE = 11
CONCURRENCY = 12
HOSTS = ("h1", "h2", "h3")


def profile(lab: ssh_lab.SshLab, hosts: tuple[str, ...]) -> dict[str, object]:
    """Return a header's `backend:` for hosts of the lab."""
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
    """Measure the first submit to a host on which nothing is yet, with a bundle of its own."""
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


def nni_on(lab: ssh_lab.SshLab, python: str, hosts: int, *flags: str) -> dict[str, float]:
    """Measure what NNI does on some of the hosts, with a slot on each."""
    chosen = lab.hosts[:hosts]
    for host in chosen:
        (host.home() / ".bashrc").write_text(NNI_HOST_RC)
    command = [python, str(Path(__file__).parent / "_nni_peer.py"), str(hosts), str(NNI_TRIALS), *flags]
    command += ["--key", f"{lab.folder}/user_key", "--manager", lab.address, "--hosts", *(h.address for h in chosen)]
    environ = {**os.environ, "HOME": str(lab.folder)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environ)
    for host in chosen:
        (host.home() / ".bashrc").unlink()
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def nni(lab: ssh_lab.SshLab, python: str) -> dict[str, float]:
    """NNI's figures, in seconds and trials per second."""
    if not python:
        return QUIET_NNI
    single = nni_on(lab, python, 1)
    return {
        "contact_s": single["start_to_metric_s"],
        "first_s": single["first_metric_s"],
        "per_s": nni_on(lab, python, len(HOSTS))["trials_per_min"] / 60,
        "reuse_per_s": nni_on(lab, python, len(HOSTS), "--reuse")["trials_per_min"] / 60,
    }


def line(what: str, value: float, unit: str, limit: float, *peers: float) -> None:
    """Print one figure beside its limit and its peer's figures."""
    times = [peer / value if unit == "s" else value / peer for peer in peers]
    compared = ", ".join(f"{n:.1f} x NNI ({peer:.3g})" for n, peer in zip(times, peers, strict=True))
    print(f"{what:<42}{value:8.3f} {unit:<9}limit {limit:g}: {value / limit:.2f}; {compared}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--nni-python", default=os.environ.get("AUTOTRAIN_PEER_PYTHON", ""))
    options = parser.parse_args()
    if reason := ssh_lab.missing():
        print(f"skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="ssh-") as folder:
        (Path(folder) / "lab").mkdir()
        lab = ssh_lab.SshLab(Path(folder) / "lab", len(HOSTS), shares_files=True)
        try:
            with lab.inside():
                theirs = nni(lab, options.nni_python)
                print(f"NNI 3.0: {'the same run' if options.nni_python else 'measured on one host, quiet'}")
                measure(lab, Home(Path(folder) / "home"), options.trials, theirs)
        finally:
            lab.close()


def measure(lab: ssh_lab.SshLab, home: Home, trials: int, theirs: dict[str, float]) -> None:
    """All figures, in the order in which a user meets them."""
    pid = manager.ensure(home).pid
    try:
        one = profile(lab, HOSTS[:1])
        fresh_s, *others_s = [first_contact_s(home, lab, host) for host in HOSTS]
        for which, contact_s in (("fresh process", fresh_s), ("next hosts", statistics.median(others_s))):
            line(f"first contact, 1 MB bundle, {which}", contact_s, "s", LIMIT_CONTACT_S, theirs["contact_s"])
        first_s = statistics.median(first_metric_s(home, one) for _ in range(SINGLE))
        line("submit to first metric, connected", first_s, "s", LIMIT_FIRST_S, theirs["first_s"])
        warm = {**one, "reuse": True}
        first_metric_s(home, warm)  # starts the process on the host
        warm_s = statistics.median(first_metric_s(home, warm) for _ in range(SINGLE))
        line("submit to first metric, warm", warm_s, "s", LIMIT_FIRST_S, theirs["first_s"])
        rates = (theirs["per_s"], theirs["reuse_per_s"])
        warm_rate = trials_per_s(home, warm, trials)
        line(f"{trials} warm trials on 1 host", warm_rate, "trials/s", LIMIT_WARM_PER_S, *rates)
        rate = trials_per_s(home, profile(lab, HOSTS), trials)
        line(f"{trials} trials over {len(HOSTS)} hosts", rate, "trials/s", LIMIT_PER_S, *rates)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores that hosts, manager and benchmark share")
    finally:
        os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())

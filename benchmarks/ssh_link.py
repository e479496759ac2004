"""The link to a host: metric there to store here at two delays, idle traffic, upload beside the OpenSSH binary's own.

    python benchmarks/ssh_link.py [--megabytes N]

The host is a real OpenSSH server in a network namespace of this machine. Limits: median 30 ms from a report there to
the store here at 0.5 ms delay each way, 100 ms at 25 ms; under 1 kB/s while a trial runs and says nothing; 0.8 of what
`tar | ssh HOST tar` reaches in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.backends.ssh.host_configs import host_configs
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from tests.labs import ssh_lab
from tests.labs.link_delay import delayed

REPORTS = 60
CELL = f"import time\nfor step in range({REPORTS}):\n    time.sleep(0.1)\n    report(sent=time.time())\n"
SILENT = "import time\nreport(begun=1)\ntime.sleep(600)\n"
LIMITS_MS = {0.5: 30.0, 25.0: 100.0}
LIMIT_IDLE_BYTES_PER_S, LIMIT_UPLOAD_SHARE = 1000.0, 0.8
IDLE_S = 20.0
UPLOADS = 3


def backend_of(lab: ssh_lab.SshLab) -> dict[str, object]:
    """Return a header's `backend:` for the host."""
    return {"type": "ssh", "hosts": ["h1"], "config_file": str(lab.config), "python": sys.executable}


def submitted(home: Home, lab: ssh_lab.SshLab, cell: str) -> Experiment:
    """Return an experiment that has reported."""
    experiment = submit(cell, home=home, name="link", backend=backend_of(lab))
    while not experiment.store.points(experiment.id, limit=1):
        time.sleep(0.01)
    return experiment


def report_to_store_ms(home: Home, lab: ssh_lab.SshLab) -> float:
    """Return the median over all reports of a trial; there and here is one clock."""
    experiment = submitted(home, lab, CELL)
    seen: dict[int, float] = {}
    while not experiment.state.is_final and len(seen) < REPORTS:
        points = experiment.store.points(experiment.id)
        now_s = time.time()
        for point in points:
            seen.setdefault(point.step, 1e3 * (now_s - float(point.value)))
        time.sleep(0.002)
    experiment.wait()
    first = min(seen)
    return statistics.median(delay_ms for step, delay_ms in seen.items() if step > first)


def bytes_of_link(lab: ssh_lab.SshLab) -> int:
    """Return what went over the host's link so far, both ways."""
    (link,) = json.loads(lab.in_controller("ip", "-s", "-j", "link", "show", "port1"))
    return int(link["stats64"]["rx"]["bytes"]) + int(link["stats64"]["tx"]["bytes"])


def idle_bytes_per_s(home: Home, lab: ssh_lab.SshLab) -> float:
    """Return the traffic while a trial runs and reports nothing."""
    experiment = submitted(home, lab, SILENT)
    time.sleep(2.0)
    before, begun = bytes_of_link(lab), time.monotonic()
    time.sleep(IDLE_S)
    rate = (bytes_of_link(lab) - before) / (time.monotonic() - begun)
    experiment.stop()
    return rate


def upload_mb_per_s(lab: ssh_lab.SshLab, folder: Path) -> tuple[float, float]:
    """Ours, and that of the OpenSSH binary with tar; the same files, in turns, medians."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    rounds = range(UPLOADS)
    times_s = [(own_upload_s(lab, folder, number), plain_upload_s(lab, folder, number)) for number in rounds]
    ours_s, plain_s = map(statistics.median, zip(*times_s, strict=True))
    return size / ours_s / 1e6, size / plain_s / 1e6


def own_upload_s(lab: ssh_lab.SshLab, folder: Path, number: int) -> float:
    """Into a new folder; the connection is there, digests are made anew."""
    workdir = lab.hosts[0].home() / f"own{number}"
    options = {"hosts": ["h1"], "config_file": str(lab.config), "python": sys.executable, "workdir": str(workdir)}
    (config,) = host_configs(Profile("lab", "ssh", options)).values()
    link = HostLink(config)
    link.greeting()
    begun = time.perf_counter()
    link.sent.send_bundle(folder)
    took_s = time.perf_counter() - begun
    link.close()
    return took_s


def plain_upload_s(lab: ssh_lab.SshLab, folder: Path, number: int) -> float:
    """With its connection, which is a small part."""
    there = shlex.quote(str(lab.hosts[0].home() / f"plain{number}"))
    command = f"tar -C {shlex.quote(str(folder))} -c . | ssh -F {lab.config} h1 'mkdir {there} && tar -x -C {there}'"
    begun = time.perf_counter()
    subprocess.run(["sh", "-c", command], check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    if reason := ssh_lab.missing():
        print(f"skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="ssh-") as folder:
        root = Path(folder)
        (root / "lab").mkdir()
        (root / "files").mkdir()
        for number in range(options.megabytes):
            (root / "files" / f"{number}").write_bytes(secrets.token_bytes(1_000_000))
        lab = ssh_lab.SshLab(root / "lab", 1)
        try:
            with lab.inside():
                measure(lab, root)
        finally:
            lab.close()


def measure(lab: ssh_lab.SshLab, root: Path) -> None:
    """All figures."""
    home = Home(root / "home")
    for delay_ms, limit_ms in LIMITS_MS.items():
        with delayed(lab.controller_pid, lab.hosts[0], delay_ms / 1e3):
            pid = manager.ensure(home).pid
            median_ms = report_to_store_ms(home, lab)
            os.kill(pid, signal.SIGTERM)
        share = median_ms / limit_ms
        what = f"report there to store here, {delay_ms:g} ms each way"
        print(f"{what:<48}{median_ms:7.1f} ms  limit {limit_ms:g}: {share:.2f}")
    pid = manager.ensure(home).pid
    rate = idle_bytes_per_s(home, lab)
    os.kill(pid, signal.SIGTERM)
    share = rate / LIMIT_IDLE_BYTES_PER_S
    print(f"idle traffic, one running trial   {rate:7.0f} B/s  limit {LIMIT_IDLE_BYTES_PER_S:g}: {share:.2f}")
    ours, plain = upload_mb_per_s(lab, root / "files")
    print(f"upload   {ours:7.1f} MB/s, the OpenSSH binary {plain:.1f}  share {ours / plain:.2f}, at least 0.8 wanted")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()

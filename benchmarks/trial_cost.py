"""Measure the CPU time of a warm trial: of the manager, the warm process, and the supervisor with its worker.

    python benchmarks/trial_cost.py [--trials N] [--rounds N] [--cells NAME ...]

The figures hardly depend on what else the machine does, so two commits can be compared: run this of one and the other
in turn. Each line is the median of all rounds, in milliseconds; the kernel's part stands behind it. The page faults of
supervisor and worker, which the load does not change at all, are counted on Linux.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import psutil
from warm_trials import CELLS, REPORTS, end, trials_per_min, warm_up

from jupyter_autotrain import manager
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.core.home import Home

Costs = dict[str, tuple[float, float]]  # in seconds: of programs and kernel together, of the kernel


def warm_process(home: Home) -> int:
    """Find the pid of the warm process; it has reaped the supervisors, and these their workers."""
    return warm_list.living(home.root / "warm")[0].process.pid


def page_faults(home: Home) -> int:
    """Return the page faults so far of what the warm process has reaped; 0 where the system does not tell."""
    try:
        stat = Path(f"/proc/{warm_process(home)}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[8])  # `cminflt` of proc(5)


def costs(home: Home, manager_pid: int) -> Costs:
    """CPU time so far."""
    warm_pid = warm_process(home)
    own = psutil.Process(manager_pid).cpu_times()
    warm = psutil.Process(warm_pid).cpu_times()
    return {
        "manager": (own.user + own.system, own.system),
        "warm process": (warm.user + warm.system, warm.system),
        "supervisor, worker": (warm.children_user + warm.children_system, warm.children_system),
    }


def measure(home: Home, manager_pid: int, name: str, trials: int, rounds: int) -> None:
    """Measure one cell, and print."""
    cell = CELLS[name] + REPORTS
    warm_up(home, cell, name.split(", ") if CELLS[name] else [])
    found: list[Costs] = []
    faults_before = page_faults(home)
    for _ in range(rounds):
        before = costs(home, manager_pid)
        trials_per_min(home, cell, trials, reuse=True)
        after = costs(home, manager_pid)
        found.append({who: (after[who][0] - before[who][0], after[who][1] - before[who][1]) for who in after})
    faults = (page_faults(home) - faults_before) / (rounds * trials)
    parts = []
    for who in found[0]:
        whole, kernel = (1e3 * statistics.median(one[who][part] for one in found) / trials for part in (0, 1))
        parts.append((who, whole, kernel))
    shown = ", ".join(f"{who} {whole:.1f} ({kernel:.1f})" for who, whole, kernel in parts)
    in_all = sum(whole for _, whole, _ in parts)
    print(f"{name:<14} CPU ms per trial {in_all:5.1f}: {shown}; {faults:.0f} page faults", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=["no import", "torch"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        home = Home(Path(folder) / "home")
        pid = manager.ensure(home).pid
        try:
            for name in options.cells:
                measure(home, pid, name, options.trials, options.rounds)
        finally:
            end(home)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    sys.exit(main())

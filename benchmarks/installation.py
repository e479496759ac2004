"""Measure the wheel's size, and the time of `%load_ext jupyter_autotrain` in a fresh kernel."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).parents[1]
KERNELS = 7
WHEEL_LIMIT_MB, CPU_LIMIT_S = 2.5, 0.5
LOAD = """
import time
begin = time.perf_counter(), time.process_time()
get_ipython().run_line_magic("load_ext", "jupyter_autotrain")
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""


def wheel_mb() -> float:
    """Build the wheel as people get it, from the tracked files alone; return its size in MB.

    A checkout in use has a front end for development, with maps of its source, which a build there would pack.
    """
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "sources")
        subprocess.run(["git", "checkout-index", "--all", f"--prefix={sources}/"], cwd=ROOT, check=True)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(sources)]
        subprocess.run(command, check=True)
        [wheel] = Path(folder).glob("*.whl")
        return wheel.stat().st_size / 1e6


def load_s() -> tuple[float, float]:
    """Return the time and the CPU time, in seconds, of loading the extension in a kernel that has run nothing."""
    manager, client = start_new_kernel()
    said: list[str] = []
    try:
        client.execute_interactive(
            LOAD, output_hook=lambda message: said.append(message["content"].get("text", "")), timeout=120
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    wall, cpu = "".join(said).split()
    return float(wall), float(cpu)


def line(what: str, value: float, unit: str, limit: float) -> None:
    """Print one figure with its limit."""
    print(f"{what:<38} {value:6.2f} {unit:<3}  limit {limit} {unit}   ratio {value / limit:.2f}")


def main() -> None:
    """Print the figures with their limits."""
    line("wheel", wheel_mb(), "MB", WHEEL_LIMIT_MB)
    times = [load_s() for _ in range(KERNELS)]
    line("%load_ext in a fresh kernel, CPU time", min(spent for _, spent in times), "s", CPU_LIMIT_S)
    print(f"%load_ext in a fresh kernel, median    {statistics.median(passed for passed, _ in times):6.2f} s")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()

"""Run every benchmark, one after another, and append what they print to RESULTS.md.

    python benchmarks/run_all.py [NAME ...] [--peer-python PATH] [--mindspore-python PATH]

Each benchmark is a script of its own that prints its figures, each with the ratio to its limit or its peer.
The interpreters have NNI 3.0 and MindSpore 2.10 (`make bench` makes them): the peers then run in the same run.
While it runs, NNI's manager listens on all interfaces of this machine, ports 18081 to 18083, without a password.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def machine() -> str:
    """Return the kind of machine, in a few words."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"


def main() -> int:
    """Run what was asked for; the exit status is the number of benchmarks that failed."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--peer-python", default="")
    arguments.add_argument("--mindspore-python", default="")
    chosen = arguments.parse_args()
    scripts = [p for p in sorted(HERE.glob("*.py")) if p.name != "run_all.py" and not p.name.startswith("_")]
    scripts = [p for p in scripts if not chosen.names or p.stem in chosen.names]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines, failed = [f"\n## {today}, {machine()}, load {os.getloadavg()[0]:.1f}\n"], 0
    peers = {"AUTOTRAIN_PEER_PYTHON": chosen.peer_python, "AUTOTRAIN_MINDSPORE_PYTHON": chosen.mindspore_python}
    environ = {**os.environ, **peers, "OMP_NUM_THREADS": "1"}
    for script in scripts:
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=environ)
        print(f"--- {script.stem}\n{done.stdout}{done.stderr if done.returncode else ''}", flush=True)
        failed += done.returncode != 0
        lines.append(f"### {script.stem}\n\n```\n{done.stdout.rstrip() or 'failed'}\n```\n")
    with (HERE / "RESULTS.md").open("a", encoding="utf-8") as results:
        results.write("\n".join(lines))
    return failed


if __name__ == "__main__":
    sys.exit(main())

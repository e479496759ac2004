"""From the command that opens the panel of an experiment to its painted chart and table, with 8, 400 and 5,000 trials.

The first opening in a page is the slowest: it loads and compiles what a panel needs. Then how soon the trials are
in another order, and how soon a brush on an axis of the parallel coordinates is painted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

LIMITS_MS = {
    r"panel of (8|400|5000) trials: first opening (?P<ms>\d+) ms": 1000.0,
    r"panel of (400|5000) trials: .*slowest sort (?P<ms>\d+) ms": 200.0,
    r"panel of (400|5000) trials: .*slowest brush (?P<ms>\d+) ms": 100.0,
}
FIGURES = 7
TEST = Path(__file__).parents[1] / "tests" / "browser" / "test_panel_speed.py"


def main() -> None:
    """Run the browser tests that measure it, and hold their figures against the limits."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TEST)]
    environ = {**os.environ, "AUTOTRAIN_LONG_TESTS": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=TEST.parents[2], env=environ)
    told = 0
    for pattern, limit_ms in LIMITS_MS.items():
        for found in re.finditer(pattern, done.stdout):
            print(f"{found.group()}; limit {limit_ms:g} ms; ratio {limit_ms / float(found.group('ms')):.1f}")
            told += 1
    if told != FIGURES or done.returncode != 0:
        raise SystemExit(done.stdout)


if __name__ == "__main__":
    main()

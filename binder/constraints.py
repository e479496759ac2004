"""Print the lines of constraints.txt about packages that are not installed: what conda has stays as it is."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def main() -> None:
    """Write the lines to standard output, for `pip install --constraint`."""
    installed = {canonicalize_name(found.name) for found in distributions()}
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if line and canonicalize_name(Requirement(line).name) not in installed:
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()

"""Count the kinds of choices of a plan that execute, from the table of choices; the comparison's row is made of it.

Run: python benchmarks/strategies.py          prints the row and the names
     python benchmarks/strategies.py --write  writes the row into docs/help/comparison.md
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from jupyter_autotrain.parallel.choices import CHOICES, Support

PAGE = Path(__file__).parents[1] / "docs" / "help" / "comparison.md"
ROW = re.compile(r"^\| strategies execute \|.*$", re.MULTILINE)


def names() -> dict[Support, list[str]]:
    """Return the kinds of choices by how far they go."""
    found: dict[Support, list[str]] = defaultdict(list)
    for choice in CHOICES:
        found[choice.support].append(choice.name)
    return found


def row() -> str:
    """Return the row of the comparison."""
    found = names()
    counts = ", ".join(f"{len(found[support])} {support}" for support in Support)
    return f"| strategies execute | of {len(CHOICES)} kinds of choices: {counts} | - | - | - | - |"


def main() -> None:
    if "--write" in sys.argv:
        PAGE.write_text(ROW.sub(row(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(row())
    for support, kinds in names().items():
        print(f"{support}: {', '.join(kinds)}")


if __name__ == "__main__":
    main()

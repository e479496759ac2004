"""How many kinds of choices of a plan execute, from the table of choices; README's row is made of it.

Run: python benchmarks/strategies.py          prints the row and the names
     python benchmarks/strategies.py --write  writes the row into README.md
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from jupyter_autotrain.parallel.choices import CHOICES, Support

README = Path(__file__).parents[1] / "README.md"
ROW = re.compile(r"^\| strategies execute \|.*$", re.MULTILINE)


def names() -> dict[Support, list[str]]:
    """Return the kinds of choices by how far they go."""
    found: dict[Support, list[str]] = defaultdict(list)
    for choice in CHOICES:
        found[choice.support].append(choice.name)
    return found


def row() -> str:
    """Return README's row."""
    found = names()
    counts = ", ".join(f"{len(found[support])} {support}" for support in Support)
    return f"| strategies execute | of {len(CHOICES)} kinds of choices: {counts} | - | - | - | - |"


def main() -> None:
    if "--write" in sys.argv:
        README.write_text(ROW.sub(row(), README.read_text(encoding="utf-8")), encoding="utf-8")
    print(row())
    for support, kinds in names().items():
        print(f"{support}: {', '.join(kinds)}")


if __name__ == "__main__":
    main()

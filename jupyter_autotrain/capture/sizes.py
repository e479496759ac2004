"""Sizes, for people."""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = ("B", "kB", "MB", "GB", "TB")


def human(size_bytes: float) -> str:
    """A size for people: `4.2 MB` (powers of 1000)."""
    for unit in _UNITS[:-1]:
        if size_bytes < 999.5:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} {_UNITS[-1]}"


def tree(sizes: Mapping[str, int], *, rows: int = 3) -> str:
    """The largest entries of a table of sizes, one line each, and what the rest comes to."""
    largest = sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"  {human(size):>8}  {name}" for name, size in largest[:rows]]
    if rest := largest[rows:]:
        lines.append(f"  {human(sum(size for _, size in rest)):>8}  in {len(rest)} more")
    return "\n".join(lines)

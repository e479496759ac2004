"""A table of sizes as text."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.core.sizes import format_bytes


def tree(sizes: Mapping[str, int], *, rows: int = 3) -> str:
    """The largest entries of a table of sizes, one line each, and what the rest comes to."""
    largest = sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"  {format_bytes(size):>8}  {name}" for name, size in largest[:rows]]
    if rest := largest[rows:]:
        lines.append(f"  {format_bytes(sum(size for _, size in rest)):>8}  in {len(rest)} more")
    return "\n".join(lines)

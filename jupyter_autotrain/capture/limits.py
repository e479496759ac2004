"""The amounts that may travel, and the table of the largest parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_autotrain.agent.sizes import format_bytes


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """The amounts that may travel: data by pickle, files by copy."""

    data_bytes: int = 200_000_000
    files: int = 2_000
    file_bytes: int = 300_000_000


# A table of sizes as text


def tree(sizes: Mapping[str, int], *, rows: int = 3) -> str:
    """Return the largest entries of a table of sizes, one line each, and the sum of the rest."""
    largest = sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"  {format_bytes(size):>8}  {name}" for name, size in largest[:rows]]
    if rest := largest[rows:]:
        lines.append(f"  {format_bytes(sum(size for _, size in rest)):>8}  in {len(rest)} more")
    return "\n".join(lines)

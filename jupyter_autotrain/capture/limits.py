"""How much may travel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How much may travel: data by pickle, files by copy."""

    data_bytes: int = 200_000_000
    files: int = 2_000
    file_bytes: int = 300_000_000

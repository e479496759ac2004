"""Measured constants of the cost model: measurements at a place, what is fitted to them, and the machine they make."""

from importlib import resources
from typing import Final

SAMPLES_FILE: Final = "measured.json"


def probe_source() -> str:
    """Return the source of `probe`, which runs at a place without this package."""
    return resources.files(__name__).joinpath("probe.py").read_text(encoding="utf-8")

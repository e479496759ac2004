"""Measured constants of the cost model: measurements at a place, what is fitted to them, and the machine they make."""

import re
from importlib import resources
from typing import Final

SAMPLES_FILE: Final = "measured.json"
_PARTS: Final = ("probe.py", "probe_ranks.py")
_NOT_THERE: Final = re.compile(r"^from (?:__future__|jupyter_autotrain\S*) import .*\n", re.MULTILINE)


def probe_source() -> str:
    """Return what measures, as one script that runs at a place without this package."""
    folder = resources.files(__name__)
    return "\n".join(_NOT_THERE.sub("", folder.joinpath(part).read_text(encoding="utf-8")) for part in _PARTS)

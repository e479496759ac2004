"""The folder of a pilot job; `worker.slurm_pilot` says what lies in it. Runs on the login node."""

from __future__ import annotations

import contextlib
from pathlib import Path

from jupyter_autotrain.backends.slurm_login.batch import last_line
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker.slurm_pilot import JOB, TAKEN

ENDED = "ended"
TRIED = "tried"


class Pilot:
    """The folder of a pilot.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job_name = f"autotrain-{path.name}"

    @property
    def job(self) -> str:
        """The number of its job; "" while that is not known."""
        return self._text(JOB)

    @property
    def ended(self) -> str:
        """How its job has ended, in Slurm's word; "" while that is not known."""
        return self._text(ENDED)

    def _text(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return files.read(self.path, name, 100).decode(errors="replace")
        return ""

    @property
    def has_begun(self) -> bool:
        """True when it came up on its node."""
        return (self.path / wire.LOCK_FILE).exists()

    @property
    def takes(self) -> int:
        """How many trials it has at this moment."""
        with contextlib.suppress(OSError):
            return sum(path.name.startswith(TAKEN) for path in self.path.iterdir())
        return 0

    def write(self, name: str, text: str) -> None:
        """Write a file of it."""
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile, and removed its folder
            wire.write_atomically(str(self.path / name), text.encode())

    @property
    def is_broken(self) -> bool:
        """True when it ended by itself before it could begin: another one would do the same."""
        return self.ended in {"FAILED", "COMPLETED"} and not self.has_begun

    def last_output(self) -> str:
        """The last line that its script printed, for messages."""
        return last_line(self.path, "output-0")

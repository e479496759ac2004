"""The notebook and kernel session that experiments are submitted from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Origin:
    """A notebook in one session of its kernel.

    Two are the same when their notebooks are; where one notebook is not known, when their sessions are. So a notebook
    finds its experiments again after a restart of its kernel, and no other notebook takes them for its own.

    Attributes:
        notebook: Its path (absolute), or "" where the front end does not provide it.
        session: An identifier of this kernel process, or "".
    """

    notebook: str = ""
    session: str = ""

    @property
    def label(self) -> str:
        """What people call it."""
        return Path(self.notebook).name or "a notebook or script of unknown name"

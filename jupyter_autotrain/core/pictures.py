"""Pictures that trials keep: files in `outputs/pictures/`, announced to the manager by a note of the level `picture`.

The note's text is the file's path in `outputs/`, such as `pictures/0003-step-40.png`; the store holds no bytes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.files import open_regular
from jupyter_autotrain.core.records import Note

LEVEL = "picture"
FOLDER = "pictures"
MOST_BYTES = 2_000_000
_NAME = re.compile(r"pictures/(\d{4,9})(?:-step-(\d{1,19}))?\.(png|jpg|svg)")
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of an attempt of a trial; `step` is the last one reported before it, None before the first."""

    trial: int
    attempt: int
    name: str
    order: int
    step: int | None
    mime_type: str

    @property
    def title(self) -> str:
        """What to call it: `trial 3, step 40`."""
        return f"trial {self.trial}" + ("" if self.step is None else f", step {self.step}")

    def read(self, directory: Path) -> bytes:
        """Its bytes, at most `MOST_BYTES`; none when it is not there, is too big or is no such file.

        Args:
            directory: The directory of the attempt.
        """
        try:
            with open_regular(directory, f"{wire.OUTPUTS}/{self.name}") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError:
            return b""
        return data if len(data) <= MOST_BYTES else b""


def named(trial: int, attempt: int, name: str) -> Picture | None:
    """The picture of this name; None when it is no name of a picture."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    step = None if found[2] is None else int(found[2])
    return Picture(trial, attempt, name, int(found[1]), step, _TYPES[found[3]])


def announced(notes: Iterable[Note]) -> list[Picture]:
    """The pictures that notes announce, in order of arrival."""
    pictures = (named(note.number, note.attempt, note.text) for note in notes if note.level == LEVEL)
    return [picture for picture in pictures if picture is not None]

"""Notes of trials: warnings as sentences, and pictures.

Pictures are files in `outputs/pictures/`, announced to the manager by a note of the level `picture`. The note's text is
the file's path in `outputs/`, such as `pictures/0003-step-40.png`; the store holds no bytes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.files import open_regular
from jupyter_autotrain.core.records import Note
from jupyter_autotrain.core.text_format import count

PICTURE_LEVEL = "picture"
PICTURE_MOST_BYTES = 2_000_000
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
        """The title of the picture: `trial 3, step 40`."""
        return f"trial {self.trial}" + ("" if self.step is None else f", step {self.step}")

    def read(self, directory: Path) -> bytes:
        """Return its bytes, at most `PICTURE_MOST_BYTES`.

        They are empty when the file is not there, is too big or is no such file.

        Args:
            directory: The directory of the attempt.
        """
        try:
            with open_regular(directory, f"{wire.OUTPUTS}/{self.name}") as file:
                data = file.read(PICTURE_MOST_BYTES + 1)
        except OSError:
            return b""
        return data if len(data) <= PICTURE_MOST_BYTES else b""


def picture_of(trial: int, attempt: int, name: str) -> Picture | None:
    """Return the picture of this name; None when it is no name of a picture."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    step = None if found[2] is None else int(found[2])
    return Picture(trial, attempt, name, int(found[1]), step, _TYPES[found[3]])


def announced_pictures(notes: Iterable[Note]) -> list[Picture]:
    """Return the pictures that notes announce, in order of arrival."""
    pictures = (picture_of(note.number, note.attempt, note.text) for note in notes if note.level == PICTURE_LEVEL)
    return [*filter(None, pictures)]


WHOLE_EXPERIMENT: Final = 0
"""The trial number of a note that is about the experiment as a whole; trials count from 1."""
WARNING_LEVELS = frozenset({"warning", "error"})


def summarize_warnings(notes: Iterable[Note], most: int) -> list[str]:
    """Return the first `most` distinct warnings of trials.

    Args:
        notes: Notes of one experiment, in order of arrival.
        most: The largest number of sentences; one more counts those left out.
    """
    groups: dict[str, list[Note]] = {}
    for note in notes:
        if note.level in WARNING_LEVELS:
            groups.setdefault(note.text, []).append(note)
    sentences = list(map(_sentence, list(groups.values())[:most]))
    more = len(groups) - most
    return [*sentences, f"{count(more, 'more warning')}: see the logs (--stderr)."] if more > 0 else sentences


def _sentence(notes: Sequence[Note]) -> str:
    text = notes[0].text.rstrip(".")
    times = sum(note.count for note in notes)
    trials = sorted({note.number for note in notes} - {WHOLE_EXPERIMENT})
    if not trials:
        return f"{text} ({times} times)." if times > 1 else f"{text}."
    others = f" and {count(len(trials) - 1, 'other')}" if len(trials) > 1 else ""
    where = f"trial {trials[0]}{others}"
    return f"{times} warnings in {where}; first: {text}." if times > 1 else f"Warning in {where}: {text}."

"""What trials warned of, in sentences: one for each distinct text, however many trials and steps it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jupyter_autotrain.core.records import Note
from jupyter_autotrain.core.wording import count

TOLD_LEVELS = frozenset({"warning", "error"})


def warned(notes: Iterable[Note], most: int) -> list[str]:
    """Say what trials warned of, refused reports first of all; the first `most` distinct texts.

    Args:
        notes: Notes of one experiment, in order of arrival.
        most: The largest number of sentences; one more says how many are left out.
    """
    groups: dict[str, list[Note]] = {}
    for note in notes:
        if note.level in TOLD_LEVELS:
            groups.setdefault(note.text, []).append(note)
    told = [_sentence(same) for same in list(groups.values())[:most]]
    more = len(groups) - most
    return [*told, f"{count(more, 'more warning')}: see the logs (--stderr)."] if more > 0 else told


def _sentence(notes: Sequence[Note]) -> str:
    trials = sorted({note.number for note in notes})
    others = f" and {count(len(trials) - 1, 'other')}" if len(trials) > 1 else ""
    times = sum(note.count for note in notes)
    often = f" ({times} times)" if times > 1 else ""
    return f"Trial {trials[0]}{others} warned{often}: {notes[0].text.rstrip('.')}."

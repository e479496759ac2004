"""Warnings of an experiment and its trials as sentences: one for each distinct text, however many trials and steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jupyter_autotrain.core.records import Note
from jupyter_autotrain.core.text_format import count

WHOLE_EXPERIMENT: Final = 0
"""The trial number of a note that is about the experiment as a whole; trials count from 1."""
WARNING_LEVELS = frozenset({"warning", "error"})


def summarize_warnings(notes: Iterable[Note], most: int) -> list[str]:
    """The first `most` distinct warnings of trials.

    Args:
        notes: Notes of one experiment, in order of arrival.
        most: The largest number of sentences; one more counts those left out.
    """
    groups: dict[str, list[Note]] = {}
    for note in notes:
        if note.level in WARNING_LEVELS:
            groups.setdefault(note.text, []).append(note)
    sentences = [_sentence(same) for same in list(groups.values())[:most]]
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

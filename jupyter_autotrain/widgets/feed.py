"""From the store to a view: the picture as a whole, or what changed since the last look.

A frame is a JSON object and three byte columns. Rows of a series (one metric of one attempt of a trial) are counted
from 0; each block names the row it begins with, so a view drops what it has and notices what it missed.

```
{"seq": 7,                                       frames are counted; a view that missed one asks for the whole
 "experiment": {id, name, state, final, reason, backend, objective (the metric), objective_label, trials,
                begun_s, ended_s, now_s, eta_s, best (the number of the best trial)},
 "trials": [{number, state, params, value, attempt, started_s, ended_s, reason}, ...],
 "series": [[metric, trial, attempt, first row, rows], ...],
 "warnings": [sentence, ...],                    all of them, in frames where they have changed
 "pictures": [[trial, attempt, name, step], ...]}     the newest, in frames where they have changed
steps, values, times (seconds since the epoch): float64 of all blocks, one after another
```
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from jupyter_autotrain.core import ranking
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.noted import warned
from jupyter_autotrain.core.records import ExperimentRecord, Note, TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store import Piece, Store
from jupyter_autotrain.widgets import images

_WARNINGS: Final = 10
SeriesKey: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """What a view receives at once; `content` as drawn above."""

    content: JsonObject
    steps: bytes = b""
    values: bytes = b""
    times: bytes = b""
    final: bool = False

    @property
    def buffers(self) -> list[bytes]:
        """The columns in the order in which they travel."""
        return [self.steps, self.values, self.times]


@dataclass(slots=True)
class _Block:
    first: int
    rows: int = 0
    steps: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)


class Feed:
    """Follows one experiment for one view; what it has given, it does not give again.

    Args:
        store: The store.
        experiment_id: The experiment.
    """

    def __init__(self, store: Store, experiment_id: str) -> None:
        self._store = store
        self._id = experiment_id
        self._after_id = 0
        self._rows: dict[SeriesKey, int] = {}
        self._trials: dict[int, TrialRecord] = {}
        self._notes: dict[tuple[int, int, str, str], Note] = {}
        self._last_note_id = 0
        self.seq = 0

    def delta(self, now_s: float) -> Frame:
        """What is new since the last call; the first call gives everything."""
        # The state is read first: when it is final, everything read after it is complete.
        record = self._store.experiment(self._id)
        trials = self._store.trials(self._id)
        changed = [trial for trial in trials if self._trials.get(trial.number) != trial]
        pieces = self._store.pieces(self._id, self._after_id)
        self._trials.update((trial.number, trial) for trial in changed)
        self._after_id = pieces[-1].last_id if pieces else self._after_id
        self.seq += 1
        head: dict[str, JsonValue] = {
            "seq": self.seq,
            "experiment": _experiment(record, trials, record.now_s(now_s, BootTime.now())),
            **self._noted(),
        }
        return _frame(head, changed, _blocks(pieces, self._rows), final=record.state.is_final)

    def _noted(self) -> dict[str, JsonValue]:
        """What trials warn of and have displayed, when that has changed."""
        fresh = self._store.notes(self._id, self._last_note_id)
        self._notes.update(((note.number, note.attempt, note.level, note.text), note) for note in fresh)
        if not fresh:
            return {}
        self._last_note_id = fresh[-1].id
        notes = self._notes.values()
        told: dict[str, JsonValue] = {"warnings": list(warned(notes, _WARNINGS))}
        return told | {"pictures": found} if (found := images.listed(notes)) else told


def snapshot(store: Store, experiment_id: str, now_s: float, seq: int = 0) -> Frame:
    """The whole picture, as the first delta of a fresh feed; `seq` is that of the feed that goes on with it."""
    whole = Feed(store, experiment_id).delta(now_s)
    return Frame({**whole.content, "seq": seq}, whole.steps, whole.values, whole.times, whole.final)


def _blocks(pieces: Iterable[Piece], rows: dict[SeriesKey, int]) -> dict[SeriesKey, _Block]:
    blocks: dict[SeriesKey, _Block] = {}
    for piece in pieces:
        key = (piece.name, piece.number, piece.attempt)
        block = blocks.setdefault(key, _Block(rows.get(key, 0)))
        steps, values = piece.columns
        block.steps.append(np.frombuffer(steps, dtype=np.int64).astype(np.float64).tobytes())
        block.values.append(values.tobytes())
        block.times.append(piece.times.tobytes())
        block.rows += len(steps)
        rows[key] = block.first + block.rows
    return blocks


def _frame(
    head: dict[str, JsonValue], trials: Sequence[TrialRecord], blocks: dict[SeriesKey, _Block], *, final: bool
) -> Frame:
    series: list[JsonValue] = [[*key, block.first, block.rows] for key, block in blocks.items()]
    steps = b"".join(chunk for block in blocks.values() for chunk in block.steps)
    values = b"".join(chunk for block in blocks.values() for chunk in block.values)
    times = b"".join(chunk for block in blocks.values() for chunk in block.times)
    content = {**head, "trials": [_trial(trial) for trial in trials], "series": series}
    return Frame(content, steps, values, times, final)


def _experiment(record: ExperimentRecord, trials: Sequence[TrialRecord], now_s: float) -> JsonObject:
    objective = record.spec.objective
    best = ranking.best(objective, trials)
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state,
        "final": record.state.is_final,
        "reason": record.reason,
        "backend": record.spec.backend,
        "objective": objective.metric if objective else None,
        "objective_label": objective.label if objective else None,
        "best": best.number if best else None,
        "trials": max(record.spec.trials, len(trials)),
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
        "now_s": now_s,
        "eta_s": eta_s(record, trials, now_s),
    }


def _trial(trial: TrialRecord) -> JsonObject:
    shown = ("number", "state", "params", "value", "attempt", "started_s", "ended_s", "reason")
    return {name: _finite(to_json(getattr(trial, name))) for name in shown}


def _finite(value: JsonValue) -> JsonValue:
    # JSON in a browser knows neither NaN nor infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def eta_s(record: ExperimentRecord, trials: Sequence[TrialRecord], now_s: float) -> float | None:
    """Seconds until the end, if trials go on as they did; None before the first has ended, and at the end.

    A running trial counts as far as its age says, measured by the mean duration of those that ended well. After a
    retry of an ended experiment only what has happened since counts.
    """
    missing = max(record.spec.trials - len(trials), 0)
    trials = [trial for trial in trials if trial.ended_s is None or trial.ended_s >= record.begun_s]
    spans = [
        trial.ended_s - trial.started_s
        for trial in trials
        if trial.started_s is not None and trial.ended_s is not None and trial.state is not TrialState.FAILED
    ]
    begun = [trial.started_s for trial in trials if trial.started_s is not None]
    if not spans or record.state.is_final:
        return None
    mean_s = max(sum(spans) / len(spans), 1e-3)
    ages = [now_s - trial.started_s for trial in trials if trial.started_s is not None and not trial.state.is_final]
    done = sum(trial.state.is_final for trial in trials) + sum(min(max(age, 0) / mean_s, 0.95) for age in ages)
    total = missing + len(trials)
    return max(now_s - min(begun), 0.0) * max(total - done, 0.0) / done

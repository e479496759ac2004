"""After the repair of a store, or the loss of rows: reports are read again from the trials' own files."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.manager.frames import Frames, parse
from jupyter_autotrain.store import Ingest, Store

_BLOCK_BYTES: Final = 4 << 20
_ALL: Final = 1 << 62


@dataclass(slots=True)
class RestoredReports:
    """The number of attempts whose reports were read again, and the folders of trials that have no row."""

    attempts: int = 0
    lost_trials: list[Path] = field(default_factory=list)


def restore_reports(home: Home, store: Store, only: Collection[tuple[str, int]] | None = None) -> RestoredReports:
    """Read the reports of trials in the home again; where the file is missing, the points in the store stay.

    Args:
        home: The home.
        store: Its store.
        only: These trials, as (experiment id, number); None means all.
    """
    restored = RestoredReports()
    for record in store.experiments(limit=_ALL):
        trials = {str(trial.number): trial for trial in store.trials(record.id)}
        for folder in _numbered(home.experiment(record.id) / "trials"):
            if folder.name not in trials:
                restored.lost_trials.append(folder)
            elif only is None or (record.id, int(folder.name)) in only:
                attempts = [_restore_attempt(store, record, trials[folder.name], one) for one in _numbered(folder)]
                restored.attempts += sum(attempts)
    return restored


def _numbered(folder: Path) -> list[Path]:
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted((path for path in paths if path.name.isdecimal()), key=lambda path: int(path.name))


def _restore_attempt(store: Store, record: ExperimentRecord, trial: TrialRecord, folder: Path) -> bool:
    attempt = int(folder.name)
    objective = record.spec.objective
    ranked_by = objective if attempt == trial.attempt else None
    found = False
    for frames in _frames(folder, objective.metric if objective else ""):
        if not found:
            store.forget_reports(record.id, trial.number, attempt)
            found = True
        row = Ingest(
            record.id, trial.number, attempt, wire.METRICS, frames.cursor, frames.points, frames.notes,
            cursor_before=frames.start, objective=ranked_by,
        )  # fmt: skip
        store.ingest([row])
    return found


def _frames(folder: Path, objective: str) -> Iterator[Frames]:
    offset = 0
    while data := _read(folder, offset):
        frames = parse(data, offset, objective, time.time())
        if frames.cursor == offset:
            return  # the last line is still being written
        yield frames
        offset = frames.cursor


def _read(folder: Path, offset: int) -> bytes:
    try:
        return files.read(folder, wire.METRICS, _BLOCK_BYTES, offset)
    except OSError:
        return b""

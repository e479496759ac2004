"""After rows of the store were lost: trials that no experiment knows, and reports read again from their files.

Trials that run on this machine and that no experiment of the home knows: their rows were lost with the store. A
trial's supervisor keeps its lock file locked, so a held lock proves that the trial lives.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.service import cancelling
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt
from jupyter_autotrain.client.experiment_changes import StopReceipt
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.errors import AutotrainError, DamagedRowError
from jupyter_autotrain.manager.jobs.metrics_stream import Frames, parse
from jupyter_autotrain.store import Ingest, Store

_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class StrayTrial:
    """An attempt of a trial that runs and has no row, or one that says it has ended."""

    experiment_id: str
    number: int
    attempt: int
    directory: Path

    def __str__(self) -> str:
        return f"trial {self.number} of experiment {self.experiment_id}"


def find(home: Home, store: Store) -> list[StrayTrial]:
    """Look at the locks of all trials of the home."""
    found = []
    for lock in sorted(home.root.glob(f"experiments/*/trials/*/*/{wire.LOCK_FILE}")):
        experiment_id, _, number, attempt, _ = lock.relative_to(home.experiment("")).parts
        if number.isdecimal() and attempt.isdecimal():
            stray = StrayTrial(experiment_id, int(number), int(attempt), lock.parent)
            if not _is_known(store, stray) and _lives(stray.directory):
                found.append(stray)
    return found


def stop(stray: StrayTrial) -> StopReceipt:
    """End all processes of a stray trial; returns when they are gone.

    Raises:
        BackendError: It is not known whether they are gone.
    """
    receipt = cancelling.cancel(stray.directory, _GRACE_S)
    given = {field.name: getattr(receipt, field.name) for field in fields(CancelReceipt)}
    return StopReceipt(**given, name=str(stray))


def _is_known(store: Store, stray: StrayTrial) -> bool:
    try:
        trial = store.trial(stray.experiment_id, stray.number)
    except DamagedRowError:
        return True  # it has a row
    except AutotrainError:
        return False
    return trial.attempt == stray.attempt and not trial.state.is_final


def _lives(directory: Path) -> bool:
    """Return True while its supervisor lives and has not written the final status.

    What cannot be looked at proves nothing.
    """
    with suppress(OSError, statuses.UnknownError):
        status = statuses.read(directory) if trial_lock.is_held(str(directory)) else None
        return status is not None and not statuses.is_final(status)
    return False


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

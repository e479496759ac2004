"""Trials that run on this machine and that no experiment of the home knows: their rows were lost with the store.

A trial's supervisor keeps its lock file locked, so a held lock proves that the trial lives.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from jupyter_autotrain.backends.local import cancelling
from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.client.stop_receipt import StopReceipt
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.cancel_receipt import CancelReceipt
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, DamagedRowError
from jupyter_autotrain.store import Store
from jupyter_autotrain.worker import trial_lock

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
    """True while its supervisor lives and has not written the final status; what cannot be looked at proves nothing."""
    with suppress(OSError, statuses.UnknownError):
        status = statuses.read(directory) if trial_lock.is_held(str(directory)) else None
        return status is not None and not statuses.is_final(status)
    return False

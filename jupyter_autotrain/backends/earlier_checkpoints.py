"""What a trial goes on from, as far as backends have it in common: the last checkpoints of its attempts before."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError


def from_last_saved(
    trial: TrialSpec, context: BackendContext, is_there: Callable[[int], bool] = lambda _attempt: False
) -> TrialSpec:
    """The trial, which goes on from the last of its attempts before that has checkpoints.

    An attempt that has saved nothing, has begun anew, or never ran, hides none of those before it.

    Args:
        trial: The trial, with its attempt before; it stays as it is where no attempt has any.
        context: The home.
        is_there: Whether an attempt has some at another place.
    """
    for attempt in range(trial.resume_attempt or 0, 0, -1):
        found = replace(trial, resume_attempt=attempt)
        if in_home(context, found) or is_there(attempt):
            return found
    return trial


def in_home(context: BackendContext, trial: TrialSpec) -> Path | None:
    """The home's folder of them; None where it has none, or a part of them only."""
    if trial.resume_attempt is None:
        return None
    directory = context.directory(trial, trial.resume_attempt)
    kept = KeptCheckpoints.read(directory)
    is_part = kept is not None and bool(kept.sizes)
    folder = directory / wire.CHECKPOINTS
    return folder if not is_part and has_saved(folder) else None


def has_saved(folder: Path) -> bool:
    """Whether a folder has a file that is whole: folders of ranks, and what was being saved at the end, are none."""
    try:
        return any(kind != stat.S_IFDIR and not path.endswith(wire.DRAFT) for path, kind in files.walk(str(folder)))
    except OSError:  # there is none, or the trial itself has made it so that it cannot be looked at
        return False


def are_there(sizes: Callable[[], Mapping[str, int]]) -> bool:
    """Whether a place has some, by the call that gives their sizes there.

    Raises:
        BackendUnavailableError: It does not answer.
    """
    try:
        return any(not path.endswith(wire.DRAFT) for path in sizes())
    except BackendUnavailableError:
        raise
    except AutotrainError:  # it has never seen the attempt
        return False

"""What a trial goes on from, as far as backends have it in common: the checkpoints of its attempt before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError


def in_home(context: BackendContext, trial: TrialSpec) -> Path | None:
    """The home's folder of them; None where it has none, or a part of them only."""
    if trial.resume_attempt is None:
        return None
    directory = context.directory(trial, trial.resume_attempt)
    kept = KeptCheckpoints.read(directory)
    is_part = kept is not None and bool(kept.sizes)
    folder = directory / wire.CHECKPOINTS
    return folder if not is_part and folder.is_dir() and any(folder.iterdir()) else None


def are_there(sizes: Callable[[], Mapping[str, int]]) -> bool:
    """Whether a place has some, by the call that gives their sizes there.

    Raises:
        BackendUnavailableError: It does not answer.
    """
    try:
        return bool(sizes())
    except BackendUnavailableError:
        raise
    except AutotrainError:  # it has never seen the attempt
        return False

"""The beginning of a trial, as far as backends share it: the part of `trial.json` that knows no node, and checkpoints.

A trial goes on from the last checkpoints of its earlier attempts.

A deleted experiment may leave trial directories outside of the home.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.trial.trial_file import TrialFile
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.capabilities import TrialFilesBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.store import Store


def begin(trial: TrialSpec, options: JsonObject, gpus: Sequence[str] = ()) -> TrialFile:
    """Return the fields of a trial that do not depend on its node.

    Args:
        trial: The trial.
        options: Of the backend, for it.
        gpus: The ids of the accelerators that the manager gives it.
    """
    fields = cast("dict[str, JsonValue]", to_json(replace(trial, source=None)))
    del fields["source"]  # the trial has its checkpoints at hand
    content = cast("TrialFile", fields)
    content["options"] = options
    content["gpus"] = list(gpus)
    content["workers"] = trial.resources.workers_per_node
    content["wire"] = wire.VERSION
    return content


def from_last_saved(
    trial: TrialSpec, context: BackendContext, is_there: Callable[[int], bool] = lambda _attempt: False
) -> TrialSpec:
    """Return the trial, set to go on from the last of its earlier attempts that has checkpoints, else from its source.

    An attempt that has saved nothing, has begun anew, or never ran, hides none of those before it.

    Args:
        trial: The trial, with its attempt before; it stays as it is where no attempt has any.
        context: The home.
        is_there: Whether an attempt has some at another place.
    """
    for attempt in range(trial.resume_attempt or 0, -1 if trial.source else 0, -1):
        found = replace(trial, resume_attempt=attempt)
        if in_home(context, found) or is_there(attempt):
            return found
    if trial.source is None:
        return trial
    return replace(trial, resume_attempt=None, resume_note=f"starts over: {trial.source.label} has no checkpoint")


def saved_attempt(home: Home, trial: TrialRecord) -> int | None:
    """Return the last attempt of a trial of which the home has checkpoints, or a note of where they are."""
    for attempt in range(trial.attempt, 0, -1):
        directory = home.trial(trial.experiment_id, trial.number, attempt)
        if has_saved(directory / wire.CHECKPOINTS) or KeptCheckpoints.read(directory) is not None:
            return attempt
    return None


def in_home(context: BackendContext, trial: TrialSpec) -> Path | None:
    """Return the home's folder of the checkpoints, or None where it has none of them or only a part."""
    if trial.resume_attempt is None:
        return None
    directory = context.directory(trial, trial.resume_attempt)
    kept = KeptCheckpoints.read(directory)
    is_part = kept is not None and bool(kept.sizes)
    folder = directory / wire.CHECKPOINTS
    return folder if not is_part and has_saved(folder) else None


def has_saved(folder: Path) -> bool:
    """Tell whether a folder has a whole file.

    Folders of ranks do not count, nor does a file that was still being saved at the end.
    """
    try:
        return any(kind != stat.S_IFDIR and not path.endswith(wire.DRAFT) for path, kind in files.walk(str(folder)))
    except OSError:  # there is none, or the trial itself has made it so that it cannot be looked at
        return False


def are_there(sizes: Callable[[], Mapping[str, int]]) -> bool:
    """Tell whether a place has some checkpoints, by the call that gives their sizes there.

    Raises:
        BackendUnavailableError: It does not answer.
    """
    try:
        return any(not path.endswith(wire.DRAFT) for path in sizes())
    except BackendUnavailableError:
        raise
    except AutotrainError:  # it has never seen the attempt
        return False


def places_of(store: Store, experiment_id: str) -> list[Profile]:
    """Return the profiles that trials of an experiment were put on, as far as its row tells."""
    changes = store.state_changes(experiment_id)
    used = {change.placement.backend for change in changes if change.placement is not None}
    choices = store.experiment(experiment_id).spec.backends
    return [choice.profile for choice in choices if choice.profile.name in used]


def remove(backend: object, experiment_id: str) -> None:
    """Delete the trial directories of an experiment; `clean` finds those of a place that does not answer now."""
    if isinstance(backend, TrialFilesBackend):
        with contextlib.suppress(AutotrainError):
            backend.remove_experiments([experiment_id])

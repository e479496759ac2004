"""The remains of a deleted experiment at its places: the trial directories that lie outside of the home."""

from __future__ import annotations

import contextlib

from jupyter_autotrain.core.capabilities import TrialFilesBackend
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store


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

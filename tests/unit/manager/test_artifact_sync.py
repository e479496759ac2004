"""What comes home of a job that has ended elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.manager.artifact_sync import fetch_results


def test_checkpoints_whose_copy_was_cut_short_are_no_whole_set(world, tmp_path):
    def sizes(ref, path):
        return {"first.pt": 1, "last.pt": 2} if path == wire.CHECKPOINTS else {}

    def fetch(ref, path, target):
        if path == wire.CHECKPOINTS:
            Path(target).mkdir()
            Path(target, "first.pt").touch()
            raise BackendUnavailableError("gpu1 does not answer.")

    backend = world.backend
    backend.sizes = sizes
    backend.fetch = fetch
    backend.capabilities = replace(backend.capabilities, artifacts=True)
    ref = JobRef("lab", "id0-1-1")
    fetch_results(backend, ref, tmp_path, JobStatus(ref, TrialState.FAILED), 1000)
    assert KeptCheckpoints.read(tmp_path).sizes == {"checkpoints/first.pt": 1, "checkpoints/last.pt": 2}


def test_what_was_being_saved_at_the_end_of_an_attempt_is_no_checkpoint(world, tmp_path):
    draft = "rank-1/step-000000000007.pkl.draft"
    backend = world.backend
    backend.sizes = lambda ref, path: {draft: 5_000_000_000} if path == wire.CHECKPOINTS else {}
    backend.capabilities = replace(backend.capabilities, artifacts=True)
    ref = JobRef("lab", "id0-1-2")
    fetch_results(backend, ref, tmp_path, JobStatus(ref, TrialState.FAILED), 1000)
    assert KeptCheckpoints.read(tmp_path) is None

"""Tests of what comes home of a job that has ended elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.manager.artifact_sync import StreamCopy, fetch_results


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


def test_a_part_of_a_stream_that_is_read_again_after_a_kill_is_not_doubled_in_its_copy(tmp_path):
    copy = StreamCopy(tmp_path / "1" / "metrics")
    ref = JobRef("lab", "id0-1-1")
    for offset, data in ((0, b"one\n"), (4, b"two\n"), (4, b"two\nthree\n")):
        copy.write(Chunk(Cursor(ref, wire.METRICS, offset), data))
    assert (tmp_path / "1" / "metrics").read_bytes() == b"one\ntwo\nthree\n"
    assert copy.cursor(ref).offset == 14

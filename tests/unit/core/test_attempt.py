"""The note of what only a trial's place has, which a trial in the home can have written itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import JobRef

REF = {"backend": "lab", "job_id": "e1-1-1"}
SIZES = {"checkpoints/first.pt": 1, "checkpoints/epoch=1/last.pt": 2}


def test_what_was_noted_is_read(tmp_path: Path) -> None:
    kept = KeptCheckpoints(JobRef("lab", "e1-1-1", {"host": "gpu1"}), SIZES)
    kept.write(tmp_path)
    assert KeptCheckpoints.read(tmp_path) == kept
    kept.without("checkpoints/first.pt").write(tmp_path)
    found = KeptCheckpoints.read(tmp_path)
    assert found is not None
    assert found.size_bytes == 2


@pytest.mark.parametrize(
    "note",
    [
        [1],
        "lab",
        {},
        {"ref": "lab", "sizes": SIZES},
        {"ref": {"backend": ["lab"], "job_id": "e1-1-1"}, "sizes": SIZES},
        {"ref": {**REF, "data": "gpu1"}, "sizes": SIZES},
        {"ref": REF, "sizes": ["checkpoints/last.pt"]},
        {"ref": REF, "sizes": {"checkpoints/last.pt": "3 GB"}},
        {"ref": REF, "sizes": {"checkpoints/last.pt": -3}},
        {"ref": REF, "sizes": {"checkpoints/../../x": 3}},
        {"ref": REF, "sizes": {"checkpoints": 3}},
        {"ref": REF, "sizes": {"/tmp/x": 3}},
        {"ref": REF, "sizes": {"outputs/model.pkl": 3}},
    ],
)
def test_what_is_no_such_note_is_none(tmp_path: Path, note: object) -> None:
    (tmp_path / wire.KEPT_FILE).write_text(json.dumps(note))
    assert KeptCheckpoints.read(tmp_path) is None

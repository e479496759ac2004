"""Writing the status of a trial when somebody or something is in the way."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.supervisor import status
from jupyter_autotrain.agent.supervisor.status import StatusFile


@pytest.fixture(autouse=True)
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(status, "_TRY_AGAIN_S", 0.0)
    return tmp_path


def said(trial: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((trial / wire.STATUS_FILE).read_bytes())
    return found


def fails_once(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    real = wire.write_atomically
    faults = [OSError(number, os.strerror(number))]

    def write(path: str, data: bytes, *, sync: bool = True) -> None:
        if faults:
            raise faults.pop()
        real(path, data, sync=sync)

    monkeypatch.setattr(wire, "write_atomically", write)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.EACCES])
def test_a_write_that_fails_is_made_again_while_there_is_patience(
    trial: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fails_once(monkeypatch, number)
    StatusFile({}).write({"state": "SUCCEEDED"}, timeout_s=60.0)
    assert said(trial) == {"state": "SUCCEEDED"}
    fails_once(monkeypatch, number)
    with pytest.raises(OSError, match=os.strerror(number)):
        StatusFile({}).write({"state": "RUNNING"})


def test_a_directory_whose_mode_somebody_took_away_gets_it_back(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial.chmod(0o500)
    fails_once(monkeypatch, errno.EACCES)
    StatusFile({}).write({"state": "SUCCEEDED"}, timeout_s=60.0)
    assert stat.S_IMODE(trial.stat().st_mode) == 0o700


def test_a_full_disk_is_written_into_the_blocks_that_the_file_has(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StatusFile({"reason": "x" * 500})
    file.write()

    def full(path: str, data: bytes, *, sync: bool = True) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(wire, "write_atomically", full)
    file.write({"state": "FAILED", "reason": "the disk is full"}, timeout_s=60.0)
    assert said(trial) == {"state": "FAILED", "reason": "the disk is full"}
    with pytest.raises(OSError, match="No space left"):
        file.write({"reason": "x" * 1_000_000})


def test_a_status_file_that_is_gone_is_written_again_after_a_while(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StatusFile({"state": "RUNNING"})
    file.write()
    (trial / wire.STATUS_FILE).unlink()
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    assert not file.is_abandoned()
    assert not (trial / wire.STATUS_FILE).exists()
    now[0] += 1.5
    assert not file.is_abandoned()
    assert said(trial) == {"state": "RUNNING"}


def test_a_directory_that_is_deleted_is_abandoned(trial: Path) -> None:
    file = StatusFile({"state": "RUNNING"})
    file.write()
    (trial / wire.STATUS_FILE).unlink()
    trial.rmdir()
    assert file.is_abandoned()

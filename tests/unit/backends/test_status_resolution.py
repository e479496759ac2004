"""Tests that an unreadable status file means nothing until the processes are provably gone."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.service import cancelling, status_resolution
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.core.backend import JobRef

Damage = Callable[[Path, pytest.MonkeyPatch], None]
GONE = ProcessIdentity(1 << 22, 5.0, system.boot_id())


@pytest.fixture
def supervisor() -> Iterator[subprocess.Popen[bytes]]:
    """Something that lives and ends when it is asked."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def status_of(who: ProcessIdentity, state: str = "RUNNING") -> statuses.Status:
    return {
        "wire": 1,
        "state": state,
        "reason": "",
        "supervisor": status_resolution.identity_json(who),
        "worker": None,
        "groups": [],
    }


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    directory = tmp_path / "trial"
    directory.mkdir()
    (directory / wire.TRIAL_FILE).write_text('{"bundle": "/nowhere"}')
    return directory


def write_lock_file(trial: Path, who: ProcessIdentity) -> None:
    (trial / wire.LOCK_FILE).write_text(json.dumps({"supervisor": who.to_json(), "groups": []}))


def fails(number: int) -> Damage:
    def damage(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = files.open_regular

        def broken(where: str | os.PathLike[str], name: str) -> object:
            if name == wire.STATUS_FILE:
                raise OSError(number, os.strerror(number), name)
            return real(where, name)

        monkeypatch.setattr(files, "open_regular", broken)

    return damage


def holds(data: bytes) -> Damage:
    return lambda directory, monkeypatch: (directory / wire.STATUS_FILE).write_bytes(data) and None


def flipped(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / wire.STATUS_FILE
    path.write_bytes(path.read_bytes().replace(b"RUNNING", b"RUNNINO"))


def piped(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / wire.STATUS_FILE).unlink(missing_ok=True)
    os.mkfifo(directory / wire.STATUS_FILE)


def linked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / wire.STATUS_FILE).unlink(missing_ok=True)
    (directory / wire.STATUS_FILE).symlink_to("/dev/zero")


DAMAGES = {
    "no descriptor left": fails(errno.EMFILE),
    "no permission": fails(errno.EACCES),
    "a broken disk": fails(errno.EIO),
    "an empty file": holds(b""),
    "no JSON": holds(b'{"state": "RUN'),
    "brackets": holds(b"[" * 100_000),
    "a list": holds(b"[]"),
    "no state": holds(b"{}"),
    "no supervisor": holds(b'{"state": "RUNNING", "reason": "", "supervisor": 7}'),
    "a flipped byte": flipped,
    "a pipe": piped,
    "a link to /dev/zero": linked,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_status_that_cannot_be_read_does_not_make_a_living_trial_lost(
    trial: Path, supervisor: subprocess.Popen[bytes], damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ProcessIdentity.of(supervisor.pid)
    statuses.write(trial, status_of(who))
    with locked(trial, who):
        damage(trial, monkeypatch)
        with pytest.raises(statuses.UnknownError, match=r"status\.json"):
            status_resolution.resolve_status(trial)
        (answer,) = trial_directory.TrialDirectoryBackend().poll([JobRef("local", "e-1-1", {"directory": str(trial)})])
    assert "status.json" in answer.doubt
    assert not answer.state.is_final
    assert supervisor.poll() is None


@pytest.mark.parametrize("has_status", [True, False], ids=["its status too", "its lock alone"])
def test_a_supervisor_that_begins_while_its_trial_is_looked_at_is_not_taken_for_dead(
    trial: Path, supervisor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, has_status: bool
) -> None:
    who = ProcessIdentity.of(supervisor.pid)
    lock = locked(trial, who, is_written=False)
    looks = []

    def look_and_begin(*_: str) -> set[int]:  # the last thing looked for before it counts as gone
        looks.append(1)
        if len(looks) == 1:
            write_lock_file(trial, who)
            lock.__enter__()
            if has_status:
                statuses.write(trial, status_of(who))
        return set()

    monkeypatch.setattr(processes, "running", look_and_begin)
    try:
        if has_status:
            assert status_resolution.resolve_status(trial) == status_of(who)
        else:
            with pytest.raises(statuses.UnknownError, match="it is being started"):
                status_resolution.resolve_status(trial)
    finally:
        lock.__exit__()
    assert looks
    assert supervisor.poll() is None


class locked:  # noqa: N801 - it reads as a word in a with statement
    """The lock file, written and locked by another process, as a living supervisor holds it."""

    def __init__(self, trial: Path, who: ProcessIdentity, *, is_written: bool = True) -> None:
        if is_written:
            write_lock_file(trial, who)
        path = str(trial / wire.LOCK_FILE)
        code = f"input(); import fcntl; f = open({path!r}); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
        self._holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> None:
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        self._holder.stdout.readline()

    def __exit__(self, *_: object) -> None:
        self._holder.communicate(b"\n")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_it_is_lost_when_its_supervisor_is_provably_gone_and_the_reason_names_the_file(
    trial: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses.write(trial, status_of(GONE))
    write_lock_file(trial, GONE)
    damage(trial, monkeypatch)
    found = status_resolution.resolve_status(trial)
    assert found is not None
    assert found["state"] == "LOST"
    assert "status.json" in str(found["reason"])


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_cancel_ends_the_supervisor_of_a_trial_whose_status_cannot_be_read(
    trial: Path, supervisor: subprocess.Popen[bytes], damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ProcessIdentity.of(supervisor.pid)
    statuses.write(trial, status_of(who))
    write_lock_file(trial, who)
    monkeypatch.setattr(status_resolution, "supervisors", lambda directory: processes.living({supervisor.pid}))
    damage(trial, monkeypatch)
    receipt = cancelling.cancel(trial, 5.0)
    assert supervisor.wait() == -15
    assert receipt.pids_left == ()
    assert "never started" not in receipt.note


def test_a_read_that_fails_once_is_made_again_later(
    trial: Path, supervisor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ProcessIdentity.of(supervisor.pid)
    statuses.write(trial, status_of(who))
    with locked(trial, who), monkeypatch.context() as broken:
        fails(errno.EMFILE)(trial, broken)
        with pytest.raises(statuses.UnknownError):
            status_resolution.resolve_status(trial)
    found = status_resolution.resolve_status(trial)
    assert found is not None
    assert found["state"] == "RUNNING"


def test_a_process_that_cannot_be_looked_at_is_not_taken_for_dead(
    trial: Path, supervisor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ProcessIdentity.of(supervisor.pid)
    statuses.write(trial, status_of(who))

    def exhausted(pid: int) -> system.ProcessInfo:
        raise OSError(errno.EMFILE, "Too many open files", f"/proc/{pid}/stat")

    monkeypatch.setattr(system, "look", exhausted)
    for look in (who.is_alive, lambda: processes.living({supervisor.pid})):
        with pytest.raises(OSError, match="Too many open files"):
            look()
    with pytest.raises(statuses.UnknownError, match="Too many open files"):
        status_resolution.resolve_status(trial)


def test_a_last_word_that_comes_between_two_looks_is_heard(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses.write(trial, status_of(GONE))

    def ends_meanwhile(directory: str) -> bool:
        statuses.write(trial, status_of(GONE, "SUCCEEDED"))
        return False

    monkeypatch.setattr(trial_lock, "is_held", ends_meanwhile)
    found = status_resolution.resolve_status(trial)
    assert found is not None
    assert found["state"] == "SUCCEEDED"


def test_a_supervisor_that_is_not_to_be_seen_here_but_holds_its_lock_lives(trial: Path) -> None:
    statuses.write(trial, status_of(GONE))
    with locked(trial, GONE):
        found = status_resolution.resolve_status(trial)
    assert found is not None
    assert found["state"] == "RUNNING"


def test_a_trial_being_started_is_not_called_never_started(trial: Path) -> None:
    with locked(trial, GONE), pytest.raises(statuses.UnknownError, match="being started"):
        status_resolution.resolve_status(trial)
    (trial / wire.LOCK_FILE).unlink()
    assert status_resolution.resolve_status(trial) is None


def test_a_status_file_that_somebody_deleted_is_the_reason_when_the_supervisor_is_gone_too(trial: Path) -> None:
    write_lock_file(trial, GONE)
    found = status_resolution.resolve_status(trial)
    assert found is not None
    assert "status.json is gone" in str(found["reason"])


def test_a_look_at_a_lock_does_not_keep_a_supervisor_from_taking_it(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trial)
    with (trial / wire.LOCK_FILE).open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        tries = []

        def goes_away(seconds: float) -> None:
            tries.append(seconds)
            fcntl.flock(looking, fcntl.LOCK_UN)

        monkeypatch.setattr("time.sleep", goes_away)
        lock = trial_lock.acquire()
    assert lock is not None
    assert tries
    os.close(lock)


def test_an_unreadable_final_status_keeps_a_trial_from_being_started_again(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses.write(trial, status_of(GONE, str(TrialState.SUCCEEDED)))
    fails(errno.EIO)(trial, monkeypatch)
    assert statuses.is_there(trial)


def test_no_trial_can_have_the_processes_of_another_ended_by_naming_their_control_groups(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(
        "jupyter_autotrain.agent.system.cgroups.members", lambda folders: asked.append(folders) or set()
    )
    mine = f"/sys/fs/cgroup/autotrain-{GONE.pid}-500-1"
    named = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/autotrain-7-1-1", 5, mine]
    statuses.write(trial, status_of(GONE) | {"groups": named})
    status_resolution.resolve_status(trial)
    assert asked[0] == [mine]


@pytest.mark.parametrize("receipt", [7, [], {"ended": 7}, {"ended": ["x", None, 5]}, {"killed": {}}])
def test_a_receipt_that_is_none_is_read_as_far_as_it_goes(trial: Path, receipt: object) -> None:
    statuses.write(trial, status_of(GONE, "CANCELLED") | {"receipt": receipt})  # type: ignore[dict-item] # hostile
    assert set(cancelling.cancel(trial, 1.0).pids_ended) <= {5}


def test_a_reason_that_cannot_be_kept_is_cut_and_mended(trial: Path) -> None:
    statuses.write(trial, status_of(GONE, "FAILED") | {"reason": "\ud800" * 100_000})
    (answer,) = trial_directory.TrialDirectoryBackend().poll([JobRef("local", "e-1-1", {"directory": str(trial)})])
    assert answer.reason == "?" * 10_000

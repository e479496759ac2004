"""The end of a trial that Slurm has: by its supervisor where one lives, else by `scancel`; with a receipt.

Runs on the login node.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.slurm import batch, job_queue, pilots, resolution
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt, of_end
from jupyter_autotrain.agent.trial.status import Status, UnknownError

_STUCK_S = 15.0  # a supervisor that takes this much longer than the grace is ended by Slurm
_GONE_S = 60.0  # how long Slurm may take to end a job by force
_FIRST_PAUSE_S = 0.02
_MOST_PAUSE_S = 0.5
_REASON = "Cancelled on request."
Run = Callable[[list[str]], str]


def cancel(
    run: Run, queue: job_queue.JobQueue, pools: pilots.Pools, root: Path, directory: Path, grace_s: float
) -> CancelReceipt:
    """End a trial, and return when Slurm says that its job is gone. Idempotent.

    Raises:
        BackendError: It is not known whether it is gone.
        SlurmDownError: Slurm does not answer.
    """
    begun_s = time.monotonic()
    try:
        entry = batch.read_entry(root, directory)
    except (OSError, ValueError) as error:
        raise BackendError(f"Which job has {directory} is not known: {error}.", "", "Ask again later.") from error
    status = _status(directory)
    if status is not None and statuses.is_final(status):
        return of_end(status, 0.0, f"it had ended before: {status['state']}")
    if entry is None:
        return CancelReceipt(note="it was never started")
    request = json.dumps({"grace_s": grace_s, "reason": _REASON}).encode()
    for place in (directory, *resolution.directories(directory)):
        (place / wire.CONTROL).mkdir(mode=0o700, exist_ok=True)
        wire.write_atomically(str(place / wire.CANCEL_FILE), request)
    job_id = str(entry["job"])
    if entry.get("pool"):
        _end_in_pool(run, queue, pools, directory, entry, grace_s)
    elif job_id:
        _end_job(run, queue, directory, job_id, grace_s)
    batch.BatchFolder(root, str(entry["batch"])).forget_secrets(int(entry["index"]))
    return of_end(_final(directory), time.monotonic() - begun_s)


def _end_job(run: Run, queue: job_queue.JobQueue, directory: Path, job_id: str, grace_s: float) -> None:
    """End a job.

    Slurm ends a job that waits, as that has no process; the supervisor ends one that runs, as far as it can.
    """
    job = queue.find_now(job_id)
    if job is None or job.has_ended:
        return
    if job.is_waiting:
        _scancel(run, job_id)
    else:
        _scancel(run, "--batch", "--signal=TERM", job_id)
        if not _wait(lambda: _is_final(directory) or _has_ended(queue, job_id), grace_s + _STUCK_S):
            _scancel(run, job_id)
    if not _wait(lambda: _has_ended(queue, job_id), _GONE_S):
        _scancel(run, "--full", "--signal=KILL", job_id)
        raise BackendError(f"Slurm job {job_id} is still there.", "", "Ask again later, or see `squeue --me`.")


def _end_in_pool(
    run: Run, queue: job_queue.JobQueue, pools: pilots.Pools, directory: Path, entry: batch.Entry, grace_s: float
) -> None:
    """End a trial of a pool.

    A trial that waits is taken back; one that runs is ended by its supervisor, and its pilot goes on.
    """
    if pools.withdraw(entry):
        return
    pilot = pools.pilot_of(entry)
    if pilot is None or _wait(lambda: _is_final(directory) or _has_ended(queue, pilot.job), grace_s + _STUCK_S):
        return
    _scancel(run, pilot.job)
    if not _wait(lambda: _has_ended(queue, pilot.job), _GONE_S):
        raise BackendError(f"Slurm job {pilot.job} is still there.", "", "Ask again later, or see `squeue --me`.")


def _scancel(run: Run, *arguments: str) -> None:
    with contextlib.suppress(job_queue.SlurmRefusedError):  # it has ended meanwhile
        run(["scancel", *arguments])


def _wait(condition: Callable[[], bool], within_s: float) -> bool:
    """Wait for a condition with looks at growing intervals; return False when time is over."""
    deadline_s = time.monotonic() + within_s
    pause_s = _FIRST_PAUSE_S
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _MOST_PAUSE_S)
    return True


def _has_ended(queue: job_queue.JobQueue, job_id: str) -> bool:
    job = queue.find_now(job_id)
    return job is None or job.has_ended


def _is_final(directory: Path) -> bool:
    status = _status(directory)
    return status is not None and statuses.is_final(status)


def _status(directory: Path) -> Status | None:
    try:
        return statuses.read(directory)
    except UnknownError:
        return None


def _final(directory: Path) -> Status:
    """Return the final status.

    Where the supervisor never was or was killed, it is written from here: Slurm has ended the job.
    """
    status = _status(directory)
    if status is not None and statuses.is_final(status):
        return status
    found: Status = status or {"supervisor": [0, 0.0, ""]}
    last = {**found, "state": str(TrialState.CANCELLED), "reason": _REASON, "ended_s": time.time(), "groups": []}
    with contextlib.suppress(OSError):
        statuses.write(directory, last)
    return last

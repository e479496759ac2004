"""The state of a local job, from its trial directory alone.

Its status file says it. When that cannot be read, or its writer seems gone, the lock file is looked at (a lock that
lives and ends with the supervisor), and the processes themselves. A job is lost only when its supervisor is provably
gone and a second look still finds no final status; a look that fails proves nothing (`UnknownError`).
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.supervisor import termination
from jupyter_autotrain.agent.supervisor.termination import remove_temporary_files
from jupyter_autotrain.agent.system import cgroup_setup, cgroups, processes
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock
from jupyter_autotrain.agent.trial.status import Status, UnknownError

if TYPE_CHECKING:
    from jupyter_autotrain.agent.json import JsonValue

_UNKNOWN = ProcessIdentity(0, 0.0, "")


def resolve_status(directory: Path) -> Status | None:
    """Return the status; None when the job provably never began.

    All that a dead supervisor left is ended, and the job is lost.

    Raises:
        UnknownError: Its state is not known at the moment.
    """
    status, fault = _read_status(directory)
    if status is not None and statuses.is_final(status):
        return status
    owner = identity(directory, status)  # before its process is looked for: what begins meanwhile is not dead
    try:
        if _has_supervisor(directory, status):
            if status is None:
                raise UnknownError(fault or "it is being started")
            return status
        return _resolve_without_supervisor(directory, status, owner)
    except OSError as error:
        raise UnknownError(f"its processes cannot be looked at: {error.strerror}") from error


def _read_status(directory: Path) -> tuple[Status | None, str]:
    """Return the status, and the reason why it cannot be read."""
    try:
        return statuses.read(directory), ""
    except UnknownError as error:
        return None, str(error)


def _has_supervisor(directory: Path, status: Status | None) -> bool:
    """Tell whether the supervisor lives, or is being started.

    Its lock shows that, too, where its pid means nothing: in another container, on another machine.

    Raises:
        OSError: It is not known.
    """
    supervisor = identity(directory, status)
    if supervisor is not None and supervisor.is_alive():
        return True
    if trial_lock.is_held(str(directory)):
        return True
    return status is None and bool(supervisors(directory))


def _resolve_without_supervisor(directory: Path, status: Status | None, owner: ProcessIdentity | None) -> Status | None:
    """Resolve a job whose supervisor `owner` is gone.

    It may have ended well just now, so its status is read once more; else the job is lost. Where none was named, one
    may have begun since.
    """
    last, fault = _read_status(directory)
    if last is not None and statuses.is_final(last):
        return last
    if status is None and owner is None and not fault:
        if last is None and identity(directory, None) is None:
            return None
        return resolve_status(directory)
    status = last or status
    if status is None and not fault:
        fault = f"its {wire.STATUS_FILE} is gone"
    return _mark_lost(directory, status or {}, fault)


def supervisors(directory: Path) -> set[int]:
    """Return the supervisor of a job, and a process that is just starting it, found by their command.

    Raises:
        OSError: It is not known.
    """
    return processes.running("supervisor", str(directory))


def identity(directory: Path, status: Status | None) -> ProcessIdentity | None:
    """Return the supervisor of a job, as its status or its lock file names it."""
    named = status if status is not None else trial_lock.read_owner(str(directory))
    return ProcessIdentity.from_json(named.get("supervisor"))


def identity_json(process: ProcessIdentity | None) -> JsonValue:
    """Return a supervisor as a status file names it, also one that is not known."""
    return cast("JsonValue", (process or _UNKNOWN).to_json())


def _mark_lost(directory: Path, status: Status, fault: str) -> Status:
    receipt = end_tree(directory, status, 0.0)
    who = identity(directory, status or None)
    changes: Status = {
        "state": str(TrialState.LOST),
        "reason": _reason(who, receipt, fault),
        "supervisor": identity_json(who),
        "ended_s": time.time(),
        "groups": [],
        "receipt": cast("JsonValue", receipt.to_json()),
    }
    write_final_status(directory, status | changes)
    return status | changes


def _reason(who: ProcessIdentity | None, receipt: termination.Termination, fault: str) -> str:
    rebooted = who is not None and who.boot_id != system.boot_id()
    killed = f"no process of it is left, and {fault}" if fault else "its supervisor was killed from outside"
    why = "the machine was restarted" if rebooted else killed
    note = f" Processes that it left, now ended: {len(receipt.signalled)}." if receipt.signalled else ""
    return f"Lost: {why} while the trial ran.{note} `%autotrain retry` goes on from its last checkpoint."


def write_final_status(directory: Path, status: Status) -> None:
    """Write the final status of a job without a supervisor, and remove the files that only a running one needs."""
    with contextlib.suppress(OSError, ValueError):
        trial = files.read_json(directory, wire.TRIAL_FILE)
        remove_temporary_files(str(directory), str(trial.get("bundle")) if isinstance(trial, dict) else "")
    with contextlib.suppress(OSError):  # a full disk: the next look settles it again
        statuses.write(directory, status)


def end_tree(directory: Path, status: Status, grace_s: float) -> termination.Termination:
    """End all processes of a job, its supervisor too: known by group, by environment and by command.

    Raises:
        OSError: It is not known which they are.
    """
    named = status.get("groups") or trial_lock.read_owner(str(directory)).get("groups")
    folders = statuses.folders(named, identity(directory, status or None))

    def members() -> set[int]:
        inside = {pid for pid in cgroups.members(folders) if not processes.is_of_manager(pid)}
        marked = processes.marked(wire.TRIAL_VARIABLE, str(directory))
        return processes.living(inside) | marked | supervisors(directory)

    receipt = termination.terminate(members, grace_s)
    cgroups.remove(folders)
    cgroup_setup.remove_stale()  # it may have been killed before it could write down its groups
    return receipt

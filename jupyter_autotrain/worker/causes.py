"""Why a trial ended, in plain words."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.limits import size


class Cause:
    """The end of a trial: state, one reason in plain words, and what helps to find the place."""

    def __init__(self, state: str, reason: str, **more: str | float) -> None:
        self.state, self.reason = state, reason
        self.traceback, self.cell_line = str(more.get("traceback", "")), str(more.get("cell_line", ""))
        self.peak_bytes = int(more.get("peak_bytes", 0))
        self.grace_s = float(more.get("grace_s", -1.0))
        self.kind = str(more.get("kind", ""))


def mapping(value: object) -> dict[str, object]:
    """The value if it is a JSON object, else an empty one."""
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def strings(value: object) -> list[str]:
    """The value if it is a JSON array, as texts, else an empty one."""
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def integer(value: object, default: int) -> int:
    """The value if it is an int, else the default."""
    return value if isinstance(value, int) else default


def refuse(reason: str) -> None:
    """Leave word, from the worker's process, that the cell could not even begin."""
    outcome = {"state": "FAILED", "reason": reason, "kind": "start", "traceback": "", "cell_line": ""}
    wire.write_atomically(wire.OUTCOME_FILE, json.dumps(outcome).encode())


def cancel_request(asked_by_signal: bool) -> Cause | None:
    """A request to end the trial: by file, with a reason; or by a bare signal, as a machine going down sends it."""
    try:
        with open(wire.CANCEL_FILE, encoding="utf-8") as file:
            request = mapping(json.load(file))
    except (OSError, ValueError):
        if asked_by_signal:
            return Cause("PREEMPTED", "The machine or its scheduler ended the trial (the supervisor got SIGTERM).")
        return None
    grace_s = request.get("grace_s")
    return Cause(
        "CANCELLED",
        str(request.get("reason") or "Cancelled on request."),
        grace_s=float(grace_s) if isinstance(grace_s, int | float) else -1,
    )


def grace(cause: Cause | None, default_s: float) -> float:
    """How long the trial may take to end itself."""
    return cause.grace_s if cause is not None and cause.grace_s >= 0 else default_s


def timed_out(trial: Mapping[str, object]) -> Cause:
    """The time limit was reached."""
    limit = trial.get("timeout_s")
    text = f"{limit:g}" if isinstance(limit, int | float) else "?"
    return Cause("FAILED", f"Timeout: the trial ran longer than its limit of {text} s (`timeout:` in the header).")


def abandoned() -> Cause:
    """Somebody has deleted the trial directory: there is nobody left to train for."""
    return Cause("CANCELLED", "The trial directory was deleted.")


def out_of_memory(trial: Mapping[str, object], used_bytes: int) -> Cause:
    """The memory limit was reached."""
    limit = mapping(trial.get("resources")).get("memory_bytes")
    allowed = f" of {size(limit)} allowed" if isinstance(limit, int) else ""
    used = f"used {size(used_bytes)}{allowed}" if used_bytes else f"went over its limit{allowed}"
    return Cause(
        "FAILED",
        f"Out of memory: the trial {used}. Lower the batch size, the model size or the number of loader "
        "processes, or raise `resources: {memory: ...}`.",
        peak_bytes=used_bytes,
        grace_s=0.0,
    )


def of_exit(trial: Mapping[str, object], exit_status: int, oom_kills: int, peak_bytes: int | None) -> Cause:
    """The worker ended by itself, or something else ended it.

    Args:
        trial: `TrialSpec` as JSON.
        exit_status: As waitpid gives it.
        oom_kills: How often the kernel killed a member of the trial's memory group.
        peak_bytes: The most memory the group held.
    """
    code = os.waitstatus_to_exitcode(exit_status)
    outcome = _outcome()
    if outcome.get("state") in {"SUCCEEDED", "EARLY_STOPPED"}:
        late = f"The cell had ended well; then, while it shut down: {_by_signal(-code)}" if code < 0 else ""
        return Cause(str(outcome["state"]), str(outcome.get("reason") or late))
    if oom_kills and code != 0:
        return out_of_memory(trial, peak_bytes or 0)
    if code < 0:
        return Cause("FAILED", _by_signal(-code))
    if outcome:
        return Cause(
            str(outcome.get("state")),
            str(outcome.get("reason", "")),
            traceback=str(outcome.get("traceback", "")),
            cell_line=str(outcome.get("cell_line", "")),
            kind=str(outcome.get("kind", "")),
        )
    if code == 0:
        return Cause("SUCCEEDED", "The cell ended the process itself with exit code 0; `returns:` were not saved.")
    return Cause("FAILED", f"The worker ended with exit code {code} and left no word why; see its stderr.")


def _outcome() -> dict[str, object]:
    try:
        with open(wire.OUTCOME_FILE, encoding="utf-8") as file:
            return mapping(json.load(file))
    except (OSError, ValueError):
        return {}


_HINTS = {
    signal.SIGKILL: "Something outside the trial killed it; often that is the kernel, when the machine's memory is "
    "used up (see `dmesg`). Set `resources: {memory: ...}` to find out.",
    signal.SIGSEGV: "A native library crashed; `python -X faulthandler` or `env: {PYTHONFAULTHANDLER: 1}` shows where.",
    signal.SIGABRT: "A native library gave up; its last words are in stderr.",
    signal.SIGBUS: "Often a full `/dev/shm` or a truncated memory-mapped file.",
    signal.SIGFPE: "A native library divided by zero.",
    signal.SIGILL: "A native library was built for another kind of CPU.",
}


def _by_signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    hint = _HINTS.get(signal.Signals(number), "") if name != "unknown" else ""
    return f"Killed by signal {number} ({name}). {hint}".rstrip()

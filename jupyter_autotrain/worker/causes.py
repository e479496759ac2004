"""Why a trial ended, in plain words."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping

from jupyter_autotrain.core import disk, files, wire
from jupyter_autotrain.core.sizes import format_bytes

_TAIL_BYTES = 4096


class Cause:
    """The end of a trial: state, one reason in plain words, and what helps to find the place."""

    def __init__(self, state: str, reason: str, **more: str | float) -> None:
        self.state = state
        self.reason = reason
        self.traceback = str(more.get("traceback", ""))
        self.cell_line = str(more.get("cell_line", ""))
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


def refusal(python: str, error: OSError) -> dict[str, str]:
    """The outcome of a trial whose interpreter does not start."""
    hint = {
        errno.ENOENT: "There is no such file, or it names a loader that is not installed.",
        errno.EACCES: "It is not executable for this user.",
        errno.ENOEXEC: "It is built for another kind of machine, or is no program.",
    }.get(error.errno or 0, "")
    reason = (
        f"The interpreter {python} cannot be started: {error.strerror}. {hint} A Python that this machine can run was "
        "expected. Submit again from a notebook whose kernel runs here."
    )
    return {"state": "FAILED", "reason": " ".join(reason.split()), "kind": "start", "traceback": "", "cell_line": ""}


def cancel_request(asked_by_signal: bool) -> Cause | None:
    """A request to end the trial: by file, with a reason; or by a bare signal, as a machine going down sends it."""
    try:
        request = mapping(files.read_json(".", wire.CANCEL_FILE))
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
    allowed = f" of {format_bytes(limit)} allowed" if isinstance(limit, int) else ""
    used = f"used {format_bytes(used_bytes)}{allowed}" if used_bytes else f"went over its limit{allowed}"
    return Cause(
        "FAILED",
        f"Out of memory: the trial {used}. Lower the batch size, the model size or the number of loader "
        "processes, or raise `resources: {memory: ...}`.",
        peak_bytes=used_bytes,
        grace_s=0.0,
    )


class End:
    """What is known of the end of a worker.

    Args:
        exit_status: As waitpid gives it.
        begun: True when its interpreter came up.
        outcome: What it said of its end; empty when it said nothing.
        oom_kills: How often the kernel killed a member of the trial's memory group.
        peak_bytes: The most memory the group held; 0 when that is not known.
    """

    def __init__(
        self, exit_status: int, begun: bool, outcome: Mapping[str, object], oom_kills: int, peak_bytes: int
    ) -> None:
        self.code = os.waitstatus_to_exitcode(exit_status)
        self.begun = begun
        self.outcome = outcome
        self.oom_kills = oom_kills
        self.peak_bytes = peak_bytes


def of_exit(trial: Mapping[str, object], end: End) -> Cause:
    """The worker ended by itself, or something else ended it; `trial` is a `TrialSpec` as JSON."""
    code = end.code
    outcome = end.outcome
    if outcome.get("state") in {"SUCCEEDED", "EARLY_STOPPED"}:
        late = f"The cell had ended well; then, while it shut down: {_by_signal(-code)}" if code < 0 else ""
        return Cause(str(outcome["state"]), str(outcome.get("reason") or late))
    if end.oom_kills and code != 0:
        return out_of_memory(trial, end.peak_bytes)
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
    if code == 0 and end.begun:
        return Cause("SUCCEEDED", "The cell ended the process itself with exit code 0; `returns:` were not saved.")
    return Cause("FAILED", _without_a_word(trial, end))


def _without_a_word(trial: Mapping[str, object], end: End) -> str:
    """What can be found out about a worker that did not say why it ended."""
    if disk.is_nearly_full("."):
        found = disk.full(os.getcwd())
        return f"The worker ended with exit code {end.code}, and {found}. Free some of it, then `%autotrain retry`."
    last = _last_line()
    said = f"its stderr ends with: {last}" if last else "it printed nothing on stderr"
    if not end.begun:
        python = trial.get("python")
        return (
            f"The interpreter {python} ended with exit code {end.code} before the cell began; {said}. "
            "A Python of at least 3.11 was expected. Submit again from a notebook whose kernel is one."
        )
    return f"The worker ended with exit code {end.code} and left no word why; {said}."


def _last_line() -> str:
    """The last words on stderr."""
    try:
        with files.open_regular(".", wire.STDERR) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = file.read(_TAIL_BYTES).decode("utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    spoken = [line.strip() for line in lines if line.strip()]
    return spoken[-1][:300].rstrip(".") if spoken else ""


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

"""The causes of a trial's end where its workers ended by themselves, or by another process than the supervisor."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.environments.choice import kind_and_value
from jupyter_autotrain.agent.system import disk
from jupyter_autotrain.agent.trial.termination_causes import Cause, out_of_memory

_MOST_BYTES = 1 << 14
_MOST_CHARACTERS = 300
_ORNAMENTS = "-=* \t\r\0"
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Timeout): *\S")


class WorkerEnd:
    """The end of a worker, as far as it is known.

    Args:
        rank: Its rank.
        code: Its exit code; negative: the signal that ended it.
        begun: True when its interpreter came up.
        outcome: Its outcome, see `agent.trial.outcome`; empty when it wrote none.
        ended_s: When it ended, on the clock of `time.monotonic`.
    """

    def __init__(self, rank: int, code: int, begun: bool, outcome: Mapping[str, object], ended_s: float) -> None:
        self.rank = rank
        self.code = code
        self.begun = begun
        self.outcome = outcome
        at_s = outcome.get("at_s")
        self.ended_s = at_s if isinstance(at_s, float) else ended_s


def of_workers(
    trial: Mapping[str, object], ends: Sequence[WorkerEnd], is_distributed: bool, oom_kills: int, peak_bytes: int
) -> Cause:
    """Return the cause of a trial's end: that of the first of its workers that failed, else that of rank 0.

    Args:
        trial: `TrialSpec` as JSON.
        ends: Those workers, by rank, that the supervisor did not have to end; at least one.
        is_distributed: True when the trial has more than one worker: then the reason names the rank.
        oom_kills: How often the kernel killed a member of the trial's memory group.
        peak_bytes: The most memory the group held; 0 when that is not known.
    """
    failed = [end for end in ends if has_failed(trial, end)]
    if not failed:
        return _of_success(trial, ends)
    if oom_kills and any(end.code != 0 for end in failed):
        return out_of_memory(trial, peak_bytes)
    first = min(failed, key=_order)
    cause = of_exit(trial, first)
    cause.rank = first.rank
    cause.ended_s = first.ended_s
    if is_distributed:
        cause.reason = f"Rank {first.rank} failed: {cause.reason}"
    return cause


def has_failed(trial: Mapping[str, object], end: WorkerEnd) -> bool:
    """Tell whether a worker failed, by whatever cause."""
    return of_exit(trial, end).state == "FAILED"


def _of_success(trial: Mapping[str, object], ends: Sequence[WorkerEnd]) -> Cause:
    """Return the end of rank 0, with the reasons that other ranks give for theirs."""
    cause = of_exit(trial, ends[0])
    others = [(end.rank, of_exit(trial, end).reason) for end in ends[1:]]
    reasons = [f"Rank {rank}: {reason}" for rank, reason in others if reason and reason != cause.reason]
    cause.reason = " ".join([cause.reason, *reasons]).strip()
    return cause


def _order(end: WorkerEnd) -> tuple[bool, float]:
    """Return the sort key of a worker's end.

    First come those killed from outside, which no other rank's failure can cause; then time counts.
    """
    was_killed = not end.outcome and -end.code in {signal.SIGKILL, signal.SIGTERM}
    return not was_killed, end.ended_s


def cannot_start(python: str, error: OSError) -> dict[str, str]:
    """Return the outcome of a trial whose interpreter does not start."""
    hint = {
        errno.ENOENT: "There is no such file, or it names a loader that is not installed.",
        errno.EACCES: "It is not executable for this user.",
        errno.ENOEXEC: "It is built for another kind of machine, or is not a program.",
    }.get(error.errno or 0, "")
    reason = (
        f"The interpreter {python} cannot be started: {error.strerror}. {hint} A Python that this machine can run was "
        "expected. Submit again from a notebook whose kernel runs here."
    )
    return {"state": "FAILED", "reason": " ".join(reason.split()), "kind": "start", "traceback": "", "cell_line": ""}


def of_exit(trial: Mapping[str, object], end: WorkerEnd) -> Cause:
    """Return the cause of one worker's end; `trial` is a `TrialSpec` as JSON."""
    code = end.code
    outcome = end.outcome
    if outcome.get("state") in {"SUCCEEDED", "EARLY_STOPPED"}:
        late = f"The cell had ended well; then, while it shut down: {_by_signal(-code)}" if code < 0 else ""
        return Cause(str(outcome["state"]), str(outcome.get("reason") or late))
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
    return Cause("FAILED", _without_outcome(trial, end))


def _interpreter(trial: Mapping[str, object]) -> str:
    """Return the name of a trial's interpreter or container, for people."""
    kind, value = kind_and_value(trial)
    if kind == "image":
        return f"The container of the image {value}"
    return f"The interpreter {value if kind == 'python' else trial.get('python')}"


def _without_outcome(trial: Mapping[str, object], end: WorkerEnd) -> str:
    """Return the reason for the end of a worker without an outcome, as far as it can be found out."""
    if disk.is_nearly_full("."):
        found = disk.full(os.getcwd())
        return f"The worker ended with exit code {end.code}, and {found}. Free some of it, then `%autotrain retry`."
    shown = _last_words(end.rank)
    if not end.begun:
        return (
            f"{_interpreter(trial)} ended with exit code {end.code} before the cell began; {shown}. "
            "A Python of at least 3.9 was expected. Correct `environment:` or the profile, then submit again."
        )
    return f"The worker ended with exit code {end.code} and gave no reason; {shown}."


def _last_words(rank: int) -> str:
    for stream in (wire.STDERR, wire.STDOUT):
        if last := last_line(wire.stream_of_rank(stream, rank)):
            return f"its {stream} ends with: {last}"
    return "it printed nothing"


def last_line(stream: str) -> str:
    """Return the last line that holds words."""
    filled = [line.strip() for line in _read(stream, os.SEEK_END) if line.strip(_ORNAMENTS)]
    return _shown(filled[-1]) if filled else ""


def first_exception(stream: str) -> str:
    """Return the end of the first traceback of a Python program, the cause of later ones; else as `last_line`."""
    raised = list(filter(_EXCEPTION.match, _read(stream, os.SEEK_END)))
    return _shown(raised[0]) if raised else last_line(stream)


def first_paragraph(stream: str) -> str:
    """Return the first words of `mpiexec` but for warnings: the cause, of which all that follows is a consequence."""
    found: list[str] = []
    for line in [*_read(stream, os.SEEK_SET), ""]:
        words = line.strip(_ORNAMENTS)
        if words and not (found and line.startswith("[")):
            found.append(words)
        elif found and not found[0].lower().startswith("warning"):
            break
        else:
            found = [words] if words else []
    return _shown(" ".join(found))


def _read(stream: str, whence: int) -> list[str]:
    """Return the lines at the beginning or at the end of a stream; none where it cannot be read."""
    try:
        with files.open_regular(".", stream) as file:
            if whence == os.SEEK_END:
                file.seek(max(file.seek(0, os.SEEK_END) - _MOST_BYTES, 0))
            return file.read(_MOST_BYTES).decode("utf-8", errors="replace").split("\n")
    except OSError:
        return []


def _shown(words: str) -> str:
    return words[:_MOST_CHARACTERS].rstrip(".")


_HINTS = {
    signal.SIGKILL: "Something outside the trial killed it; often that is the kernel, when the machine's memory is "
    "used up (see `dmesg`). Set `resources: {memory: ...}` to find out.",
    signal.SIGSEGV: "A native library crashed; `python -X faulthandler` or `env: {PYTHONFAULTHANDLER: 1}` shows where.",
    signal.SIGABRT: "A native library gave up; its last message is in stderr.",
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

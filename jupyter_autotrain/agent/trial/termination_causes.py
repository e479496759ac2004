"""The causes of a trial that was ended: a request, a limit, or the deletion of its directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.sizes import format_bytes

OUT_OF_MEMORY = "Out of memory:"  # how the reason of such an end begins
ENDED_BECAUSE = "Ended because the trial has ended on "  # as above


class Cause:
    """The cause of a trial's end: state, reason, help to find the place; `rank` is that of the worker it is about."""

    def __init__(self, state: str, reason: str, **more: str | float) -> None:
        self.state = state
        self.reason = reason
        self.traceback = str(more.get("traceback", ""))
        self.cell_line = str(more.get("cell_line", ""))
        self.peak_bytes = int(more.get("peak_bytes", 0))
        self.grace_s = float(more.get("grace_s", -1.0))
        self.kind = str(more.get("kind", ""))
        self.rank = 0
        self.ended_s = 0.0  # when that worker ended, or was told to, on the clock of `time.monotonic`


def cancel_request(sigterm_s: float) -> Cause | None:
    """Return the request to end the trial, by file with a reason, or by a bare signal; None without one.

    A machine that goes down sends the bare signal.

    Args:
        sigterm_s: When that signal came, on the clock of `time.monotonic`; 0 where none came.
    """
    try:
        request = fields.mapping(files.read_json(".", wire.CANCEL_FILE))
    except (OSError, ValueError):
        if not sigterm_s:
            return None
        cause = Cause("PREEMPTED", "The machine or its scheduler ended the trial (the supervisor got SIGTERM).")
        cause.ended_s = sigterm_s
        return cause
    grace_s = request.get("grace_s")
    return Cause(
        "CANCELLED",
        str(request.get("reason") or "Cancelled on request."),
        grace_s=float(grace_s) if isinstance(grace_s, (int, float)) else -1,
    )


def grace(cause: Cause | None, default_s: float) -> float:
    """Return the seconds that the trial may take to end itself."""
    return cause.grace_s if cause is not None and cause.grace_s >= 0 else default_s


def ended_because(node: int, why: str) -> str:
    """Return the reason why the other nodes of a trial end, when one has ended or is lost."""
    return f"{ENDED_BECAUSE}node {node}: {why}"


def ended_elsewhere(reason: str) -> Cause:
    """Return the cause of an end because the trial has ended on another node."""
    return Cause("CANCELLED", reason)


def ended_for_another(status: Mapping[str, object]) -> bool:
    """Tell whether a node was ended by its supervisor because the trial had ended on another one."""
    return str(status.get("reason", "")).startswith(ENDED_BECAUSE)


def first_cause(
    nodes: Sequence[Mapping[str, object]],
    kinds: Sequence[Callable[[Mapping[str, object]], bool]],
    at_s: Callable[[int], float],
) -> int | None:
    """Return the number of the node whose end explains those of the others; None where none has ended by itself.

    Args:
        nodes: The status of each.
        kinds: What ends explain others, the strongest first; of several of one kind that counts which came first.
        at_s: When a node ended; asked only where there are several.
    """
    by_themselves = [number for number, status in enumerate(nodes) if not ended_for_another(status)]
    for explains in kinds:
        found = [number for number in by_themselves if explains(nodes[number])]
        if len(found) == 1:
            return found[0]
        if found:
            return min(found, key=at_s)
    return None


def failed_s(status: Mapping[str, object]) -> float:
    """Return the time of the failure that the status names; its node may have ended much later."""
    return float(str(status.get("failed_s") or status.get("ended_s") or "inf"))


def timed_out(trial: Mapping[str, object]) -> Cause:
    """Return the cause of an end at the time limit."""
    limit = trial.get("timeout_s")
    text = f"{limit:g}" if isinstance(limit, (int, float)) else "?"
    return Cause("FAILED", f"Timeout: the trial ran longer than its limit of {text} s (`timeout:` in the header).")


def lease_over(lease_s: float) -> Cause:
    """Return the cause of an end after too long without contact to a manager."""
    option = "`lease_s` or `lost_after` of its profile"
    return Cause("CANCELLED", f"No manager had contact with this machine for {lease_s:g} s ({option}).")


def abandoned() -> Cause:
    """Return the cause of an end by the deletion of the trial directory, with which its results are gone."""
    return Cause("CANCELLED", "The trial directory was deleted.")


def out_of_memory(trial: Mapping[str, object], used_bytes: int) -> Cause:
    """Return the cause of an end at the memory limit."""
    limit = fields.mapping(trial.get("resources")).get("memory_bytes")
    allowed = f" of {format_bytes(limit)} allowed" if isinstance(limit, int) else ""
    used = f"used {format_bytes(used_bytes)}{allowed}" if used_bytes else f"went over its limit{allowed}"
    return Cause(
        "FAILED",
        f"{OUT_OF_MEMORY} the trial {used}. Lower the batch size, the model size or the number of loader "
        "processes, or raise `resources: {memory: ...}`.",
        peak_bytes=used_bytes,
        grace_s=0.0,
    )

"""Why a trial was ended: by a request, at a limit, or because its directory is deleted."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.worker import fields

OUT_OF_MEMORY = "Out of memory:"  # how the reason of such an end begins


class Cause:
    """Why a trial ended: state, reason, what helps to find the place; `rank` is that of the worker it is about."""

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
    """A request to end the trial: by file, with a reason; or by a bare signal, as a machine going down sends it.

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
    """How long the trial may take to end itself."""
    return cause.grace_s if cause is not None and cause.grace_s >= 0 else default_s


def timed_out(trial: Mapping[str, object]) -> Cause:
    """The time limit was reached."""
    limit = trial.get("timeout_s")
    text = f"{limit:g}" if isinstance(limit, (int, float)) else "?"
    return Cause("FAILED", f"Timeout: the trial ran longer than its limit of {text} s (`timeout:` in the header).")


def lease_over(lease_s: float) -> Cause:
    """No manager had contact for too long."""
    option = "`lease_s` or `lost_after` of its profile"
    return Cause("CANCELLED", f"No manager had contact with this machine for {lease_s:g} s ({option}).")


def abandoned() -> Cause:
    """The trial directory was deleted, so its results cannot be read."""
    return Cause("CANCELLED", "The trial directory was deleted.")


def out_of_memory(trial: Mapping[str, object], used_bytes: int) -> Cause:
    """The memory limit was reached."""
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

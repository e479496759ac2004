"""One status from those of the hosts that share a trial. Pure, but for the clocks that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.states import TrialState

ENDED_BECAUSE = "Ended because the trial has ended on "
_WELL = frozenset({TrialState.SUCCEEDED, TrialState.EARLY_STOPPED})
# A host that was lost explains the failures of the ranks that waited for it. One that was told to end may have been
# told so because another one had failed: there the first counts.
_BY_TIME = frozenset({TrialState.PREEMPTED, TrialState.FAILED})
_CAUSES = (
    frozenset({TrialState.LOST}), _BY_TIME, frozenset({TrialState.CANCELLED}), frozenset({TrialState.EARLY_STOPPED}),
)  # fmt: skip


def must_end(own: Sequence[JobStatus]) -> bool:
    """True when one host has ended its part, and not well: then the others shall end theirs."""
    return any(_has_failed(status) for status in own)


def _has_failed(status: JobStatus) -> bool:
    return not status.doubt and status.state.is_final and status.state not in _WELL


def where(own: Sequence[JobStatus], number: int | None = None) -> str:
    """The host that has failed, or the one with this number, with its reason."""
    named = next(status for status in own if _has_failed(status)) if number is None else own[number]
    return f"{node_of(named)}: {named.reason}"


def node_of(status: JobStatus) -> str:
    """The name of the host."""
    return str(status.ref.data.get("host", ""))


def of_first(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """The state of the first host, whatever the others do, with the workers of all."""
    first = own[0]
    if first.doubt:
        return replace(first, ref=ref, unreachable_nodes=(node_of(first),) if first.unreachable else ())
    reason = first.reason if first.state.is_final else first.reason or _missing(own)
    return replace(first, ref=ref, reason=reason, detail=_detail(own, first))


def _missing(own: Sequence[JobStatus]) -> str:
    """The rest of a sentence that begins with a trial: which hosts it goes on without."""
    lost = [node_of(status) for status in own if status.unreachable or status.state is TrialState.LOST]
    if not lost:
        return ""
    return f"goes on without {', '.join(lost)}, from which there is no answer; it takes lost hosts in again"


def unknown(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """Return the status of a job of which not all hosts can tell; it names those that do not answer."""
    doubts = [status for status in own if status.doubt]
    why = "; ".join(dict.fromkeys(status.doubt for status in doubts))
    silent = tuple(node_of(status) for status in doubts if status.unreachable)
    nodes = silent if len(silent) < len(own) else ()
    return JobStatus(ref, doubts[0].state, doubt=why, unreachable=bool(silent), unreachable_nodes=nodes)


def running(ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
    """Not all have ended."""
    states = {status.state for status in own}
    state = TrialState.PREPARING if TrialState.PREPARING in states else TrialState.RUNNING
    return JobStatus(ref, state, detail=_detail(own, own[0]))


def ended(ref: JobRef, own: Sequence[JobStatus], clock_offset_s: Callable[[str], float]) -> JobStatus:
    """All have ended: the state and reason of the host that ended first for a reason of its own.

    Args:
        ref: The job.
        own: The statuses of its hosts, by rank.
        clock_offset_s: How far a host's clock is ahead; asked only when several have failed by themselves.
    """
    cause = _cause(own, clock_offset_s)
    if cause is own[0] and cause.state in _WELL:
        return replace(own[0], ref=ref, detail=_detail(own, cause))
    return JobStatus(ref, cause.state, _named(cause), _detail(own, cause))


def _cause(own: Sequence[JobStatus], clock_offset_s: Callable[[str], float]) -> JobStatus:
    by_themselves = [status for status in own if not status.reason.startswith(ENDED_BECAUSE)]
    for states in _CAUSES:
        found = [status for status in by_themselves if status.state in states]
        if len(found) == 1 or (found and states is not _BY_TIME):
            return found[0]
        if found:
            return min(found, key=lambda status: _failed_s(status) - clock_offset_s(node_of(status)))
    return own[0]


def _failed_s(status: JobStatus) -> float:
    """When the part failed, by the clock of its host."""
    for name in ("failed_s", "ended_s"):
        at_s = status.detail.get(name)
        if isinstance(at_s, (int, float)):
            return float(at_s)
    return float("inf")


def _named(cause: JobStatus) -> str:
    """The reason, with the host."""
    first, colon, rest = cause.reason.partition(" failed: ")
    if colon and first.startswith("Rank "):
        return f"{first} on {node_of(cause)} failed: {rest}"
    return f"On {node_of(cause)}: {cause.reason}" if cause.reason else ""


def _detail(own: Sequence[JobStatus], cause: JobStatus) -> JsonObject:
    """The status file's content of the host that counts, with the workers and processes of all."""
    workers: list[JsonValue] = []
    for status in own:
        rows = cast("Sequence[Mapping[str, JsonValue]]", status.detail.get("workers") or ())
        workers += [{**row, "node": node_of(status)} for row in rows]
    first = own[0].detail
    return {**cause.detail, "worker": first.get("worker"), "workers": workers, "receipt": _receipts(own)}


def _receipts(own: Sequence[JobStatus]) -> JsonObject:
    """What ending it took on all hosts; pids are those of their hosts."""
    total: dict[str, list[JsonValue]] = {"ended": [], "killed": [], "left": []}
    for status in own:
        receipt = status.detail.get("receipt")
        if isinstance(receipt, Mapping):
            for kind in total:
                total[kind] += cast("Sequence[int]", receipt.get(kind) or ())
    return total

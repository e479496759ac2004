"""One trial on several hosts: a supervisor on each, started together, watched together, ended together.

Nothing is kept here: the job's reference names the job on each host, in the order of ranks. What one host tells is
combined with what the others tell; where one of them has failed, the others are told to end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, cast

from jupyter_autotrain.backends.ssh import host, node_statuses
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, SubmitUnknownError

_SEPARATOR = "@"  # between a job's name and the number of its node
_GRACE_S = 5.0


class Nodes(Protocol):
    """What is done on one host."""

    name: str

    def job_name(self, job_id: str) -> str:
        """A job's name on its host."""
        ...

    def link(self, node: str) -> HostLink:
        """The link to a host, by the host's name."""
        ...

    def start_on(
        self, node: NodePlacement, job: str, trial: TrialSpec, secrets: Mapping[str, str], layout: JsonObject
    ) -> None:
        """Start the supervisor on a host."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        ...

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End what runs on the host."""
        ...


def node_refs(ref: JobRef) -> list[JobRef]:
    """The jobs on the single hosts, that of rank 0 first; the job itself where it is on one."""
    nodes = cast("Sequence[tuple[str, str]]", ref.data.get("nodes") or ())
    return [JobRef(ref.backend, ref.job_id, {"host": node, "job": job}) for node, job in nodes] or [ref]


def job_id_of(name: str) -> str:
    """The id of the job that has this name on one of its hosts."""
    return name.partition("/")[2].partition(_SEPARATOR)[0]


def of_stream(cursor: Cursor) -> Cursor:
    """Where a stream of a rank lies."""
    rank = cursor.stream.partition("-")[2]
    refs = node_refs(cursor.ref)
    workers = cast("int", cursor.ref.data.get("workers") or 1)
    number = int(rank) // workers if rank.isdigit() else 0
    return replace(cursor, ref=refs[min(number, len(refs) - 1)])


def read_streams(cursors: Sequence[Cursor], chunks: Callable[[Sequence[Cursor]], list[Chunk]]) -> list[Chunk]:
    """What is new of each stream, from the host that has it."""
    found = chunks([of_stream(cursor) for cursor in cursors])
    return [replace(chunk, cursor=cursor) for cursor, chunk in zip(cursors, found, strict=True)]


class MultiNode:
    """Trials on several hosts.

    Args:
        nodes: What is done on one host.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._side_by_side = SideBySide()

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial on all hosts of its placement, or on none.

        Raises:
            BackendError: A host refuses; what had been started on others is ended.
        """
        endpoints = self._endpoints(trial, placement)
        jobs = [(node.node, self._job(trial, number)) for number, node in enumerate(placement.nodes)]
        order = sorted(range(len(jobs)), key=lambda number: str(endpoints[number][0]))
        listed = [endpoints[number] for number in order]
        data: JsonObject = {
            "host": jobs[order[0]][0],
            "job": jobs[order[0]][1],
            "nodes": [list(jobs[number]) for number in order],
            "workers": trial.resources.workers_per_node,
            "elastic": trial.elastic,
        }
        ref = JobRef(self._nodes.name, trial.job_id, data)
        calls = {}
        for rank, number in enumerate(order):
            layout: JsonObject = {"node_rank": rank, "endpoints": cast("list[list[str]]", listed)}
            calls[jobs[number][0]] = partial(
                self._try, self._nodes.start_on, placement.nodes[number], jobs[number][1], trial, secrets, layout
            )
        self._all_or_none(ref, self._side_by_side.call(calls, None))
        return ref

    def _job(self, trial: TrialSpec, number: int) -> str:
        return f"{self._nodes.job_name(trial.job_id)}{_SEPARATOR}{number}"

    def _endpoints(self, trial: TrialSpec, placement: Placement) -> list[list[object]]:
        """Of each host its address and free ports, as the others reach them."""
        names = [node.node for node in placement.nodes]
        known = [host.resolve(self._nodes.link(name).config.address).hostname for name in names]
        calls = {}
        for number, name in enumerate(names):
            link = self._nodes.link(name)
            calls[name] = partial(
                link.ask, "endpoint", job=self._job(trial, number), address=link.config.address_of_ranks,
                peer=known[1 if number == 0 else 0], count=trial.resources.workers_per_node + 1,
            )  # fmt: skip
        found = self._side_by_side.call(calls, None)
        endpoints: list[list[object]] = []
        for name, hostname in zip(names, known, strict=True):
            address, ports = cast("tuple[str, list[int]]", found[name])
            endpoints.append([address or hostname, ports])
        return endpoints

    @staticmethod
    def _try(call: Callable[..., None], *arguments: object) -> AutotrainError | None:
        try:
            call(*arguments)
        except AutotrainError as error:
            return error
        return None

    def _all_or_none(self, ref: JobRef, errors: Mapping[str, AutotrainError | None]) -> None:
        failed = {node: error for node, error in errors.items() if error is not None}
        for error in failed.values():
            if isinstance(error, SubmitUnknownError):
                raise error  # the same submission again finds what has begun
        if not failed:
            return
        for one in node_refs(ref):
            if str(one.data["host"]) not in failed:
                with contextlib.suppress(AutotrainError):
                    self._nodes.cancel(one, 0.0)
                    link = self._nodes.link(str(one.data["host"]))
                    link.ask("unsubscribe", jobs=[one.data["job"]])
                    link.ask("remove", job=one.data["job"])
        node, error = next(iter(failed.items()))
        kind = type(error) if isinstance(error, BackendUnavailableError) else BackendError
        raise kind(f"{node} cannot start its part of the trial: {error.found}", error.expected, error.action)

    def statuses(self, refs: Sequence[JobRef], ask: Callable[[Sequence[JobRef]], list[JobStatus]]) -> list[JobStatus]:
        """The state of each job; those of several hosts are combined, and ended where a host has failed."""
        parts = [node_refs(ref) for ref in refs]
        flat = ask([one for group in parts for one in group])
        found = []
        begin = 0
        for ref, group in zip(refs, parts, strict=True):
            own = flat[begin : begin + len(group)]
            begin += len(group)
            found.append(own[0] if len(group) == 1 else self._combined(ref, own))
        return found

    def _elastic(self, ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
        """The trial is where its rendezvous is: on the first host. The others may be lost, and begin again."""
        first = own[0]
        if first.state.is_final and not first.doubt:
            self._end_others(own, node_statuses.ENDED_BECAUSE + node_statuses.where(own, 0))
        elif not first.doubt:
            for status in own[1:]:
                if status.state is TrialState.LOST and not status.doubt:
                    self._start_again(status.ref)
        return node_statuses.of_first(ref, own)

    def _start_again(self, one: JobRef) -> None:
        link = self._nodes.link(str(one.data["host"]))
        job = str(one.data["job"])
        with contextlib.suppress(AutotrainError):  # it is tried with the next poll
            link.ask("start_again", job=job)
            link.connection().pushed.forget(job)

    def _combined(self, ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
        if ref.data.get("elastic"):
            return self._elastic(ref, own)
        self._pass_on_launch(own)
        if node_statuses.must_end(own):
            self._end_others(own, node_statuses.ENDED_BECAUSE + node_statuses.where(own))
        doubts = [status for status in own if status.doubt]
        if doubts:
            return JobStatus(
                ref, doubts[0].state, doubt=doubts[0].doubt, unreachable=any(status.unreachable for status in doubts)
            )
        if all(status.state.is_final for status in own):
            return node_statuses.ended(ref, own, self._clock_offset_s)
        return node_statuses.running(ref, own)

    def _pass_on_launch(self, own: Sequence[JobStatus]) -> None:
        """What mpiexec on the first host wants to be run on the others."""
        wanted = own[0].detail.get("launch")
        if own[0].doubt or own[0].state.is_final or not isinstance(wanted, Mapping):
            return
        if all(status.state.is_final and not status.doubt for status in own[1:]):
            with contextlib.suppress(AutotrainError):  # as below
                self._nodes.put(own[0].ref, wire.LAUNCH_ENDED_FILE, b"")
        for number, status in enumerate(own):
            command = wanted.get(str(number))
            is_there = status.doubt or status.state.is_final or status.detail.get("launched")
            if isinstance(command, str) and not is_there:
                with contextlib.suppress(AutotrainError):  # it is told with the next poll
                    self._nodes.put(status.ref, wire.LAUNCH_FILE, command.encode())

    def _end_others(self, own: Sequence[JobStatus], reason: str) -> None:
        request = json.dumps({"grace_s": _GRACE_S, "reason": reason}).encode()
        for status in own:
            if not status.doubt and not status.state.is_final:
                with contextlib.suppress(AutotrainError):  # it is told with the next poll
                    self._nodes.put(status.ref, wire.CANCEL_FILE, request)

    def _clock_offset_s(self, node: str) -> float:
        """How far a host's clock is ahead of this one's; 0 where it cannot be told."""
        import time  # noqa: PLC0415 - only failing trials ask

        try:
            return cast("float", self._nodes.link(node).ask("clock")) - time.time()
        except AutotrainError:
            return 0.0

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End it on all hosts at the same time.

        Raises:
            AutotrainError: A host cannot be asked; the others have ended their parts.
        """
        calls = {str(one.data["host"]): partial(self._cancel_one, one, grace_s) for one in node_refs(ref)}
        answers = list(self._side_by_side.call(calls, None).values())
        for answer in answers:
            if isinstance(answer, AutotrainError):
                raise answer
        receipts = [answer for answer in answers if isinstance(answer, CancelReceipt)]
        return CancelReceipt(
            tuple(pid for receipt in receipts for pid in receipt.pids_ended),
            tuple(pid for receipt in receipts for pid in receipt.pids_killed),
            tuple(pid for receipt in receipts for pid in receipt.pids_left),
            max(receipt.elapsed_s for receipt in receipts),
            receipts[0].note,
        )

    def _cancel_one(self, ref: JobRef, grace_s: float) -> CancelReceipt | AutotrainError:
        try:
            return self._nodes.cancel(ref, grace_s)
        except AutotrainError as error:
            return error

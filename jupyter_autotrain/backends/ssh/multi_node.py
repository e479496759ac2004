"""Trials on several hosts: a supervisor on each, started together, watched together, ended together.

Nothing is kept here: the job's reference names the job on each host, in the order of ranks. The supervisors meet and
talk to each other by themselves (`agent.nodes`). What one host tells is combined with what the others tell; where one
has failed or is silent for too long, the others are told to end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Protocol, TypeVar, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial.termination_causes import ENDED_BECAUSE
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.ssh import host
from jupyter_autotrain.backends.ssh.host_survey import SideBySide
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import CancelReceipt, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, SubmitUnknownError

SEPARATOR = "@"  # between a job's name and the number of its node
T = TypeVar("T")
_GRACE_S = 5.0
_MEET_S = 900  # so that another manager can start the rest where the first one is killed


class Nodes(Protocol):
    """The operations on one host that a trial on several hosts needs."""

    name: str

    def job_name(self, job_id: str) -> str:
        """Return a job's name on its host."""
        ...

    def link(self, node: str) -> HostLink:
        """Return the link to a host, by the host's name."""
        ...

    def start_on(
        self, node: NodePlacement, job: str, trial: TrialSpec, secrets: Mapping[str, str], layout: JsonObject
    ) -> None:
        """Start the supervisor on a host."""
        ...

    def send_to(self, node: NodePlacement, job: str, trial: TrialSpec) -> None:
        """Send to a host what a supervisor there needs."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory."""
        ...

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the job on the host."""
        ...


def node_refs(ref: JobRef) -> list[JobRef]:
    """Return the jobs on the single hosts, that of rank 0 first, or the job itself where it is on one."""
    nodes = cast("Sequence[tuple[str, str]]", ref.data.get("nodes") or ())
    return [JobRef(ref.backend, ref.job_id, {"host": node, "job": job}) for node, job in nodes] or [ref]


def names_of_nodes(name: str, nodes: int) -> list[str]:
    """Return the names of a job on its hosts, in the order of its placement."""
    return [name] if nodes == 1 else [f"{name}{SEPARATOR}{number}" for number in range(nodes)]


def may_lack(ref: JobRef, one: JobRef, is_lost: Callable[[JobRef], bool]) -> tuple[type[Exception], ...]:
    """Return the errors that may keep the files of one host from being read.

    Of several hosts one may be lost; the first of an elastic trial is needed in any case.
    """
    refs = node_refs(ref)
    if ref.data.get("elastic"):
        return (BackendUnavailableError,) if one != refs[0] else ()
    return (BackendUnavailableError,) if len(refs) > 1 and is_lost(one) else ()


def job_id_of(name: str) -> str:
    """Return the id of the job that has this name on one of its hosts."""
    return name.partition("/")[2].partition(SEPARATOR)[0]


def of_stream(cursor: Cursor) -> Cursor:
    """Return the cursor where a stream of a rank lies."""
    rank = cursor.stream.partition("-")[2]
    refs = node_refs(cursor.ref)
    workers = cast("int", cursor.ref.data.get("workers") or 1)
    number = int(rank) // workers if rank.isdigit() else 0
    return replace(cursor, ref=refs[min(number, len(refs) - 1)])


def read_streams(cursors: Sequence[Cursor], chunks: Callable[[Sequence[Cursor]], list[Chunk]]) -> list[Chunk]:
    """Return the new bytes of each stream, from the host that has it."""
    found = chunks(list(map(of_stream, cursors)))
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
        order = sorted(range(len(jobs)), key=lambda number: endpoints[number][0])
        address, port, token = endpoints[order[0]]
        data: JsonObject = {
            "host": jobs[order[0]][0],
            "job": jobs[order[0]][1],
            "nodes": [list(jobs[number]) for number in order],
            "workers": trial.resources.workers_per_node,
            "elastic": trial.elastic,
        }
        ref = JobRef(self._nodes.name, trial.job_id, data)
        sends = {}
        starts = {}
        known = {**secrets, wire.TOKEN_VARIABLE: token}
        for rank, number in enumerate(order):
            name, job = jobs[number]
            layout: JsonObject = {
                "node_rank": rank, "nodes": len(jobs), "first": [address, port], "address": endpoints[number][0],
                "wait_s": _MEET_S,
            }  # fmt: skip
            node = placement.nodes[number]
            sends[name] = partial(_try, self._nodes.send_to, node, job, trial)
            starts[name] = partial(_try, self._nodes.start_on, node, job, trial, known, layout)
        self._all_or_none(ref, self._side_by_side.call(sends, None))  # first, as they wait for each other
        self._all_or_none(ref, self._side_by_side.call(starts, None))
        return ref

    def _job(self, trial: TrialSpec, number: int) -> str:
        return f"{self._nodes.job_name(trial.job_id)}{SEPARATOR}{number}"

    def _endpoints(self, trial: TrialSpec, placement: Placement) -> list[tuple[str, int, str]]:
        """Return the address of each host, as the others reach it, with a free port and a token for the trial."""
        names = [node.node for node in placement.nodes]
        known = [host.resolve(self._nodes.link(name).config.address).hostname for name in names]
        calls = {}
        for number, name in enumerate(names):
            link = self._nodes.link(name)
            calls[name] = partial(
                link.ask, "endpoint", job=self._job(trial, number), address=link.config.address_of_ranks,
                peer=known[1 if number == 0 else 0],
            )  # fmt: skip
        found = self._side_by_side.call(calls, None)
        endpoints = []
        for name, hostname in zip(names, known, strict=True):
            address, port, token = cast("tuple[str, int, str]", found[name])
            endpoints.append((address or hostname, port, token))
        return endpoints

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
        found = error.found.removeprefix(f"{node}: ")
        raise kind(f"{node} cannot start its part of the trial: {found}", error.expected, error.action)

    def statuses(self, refs: Sequence[JobRef], ask: Callable[[Sequence[JobRef]], list[JobStatus]]) -> list[JobStatus]:
        """Return the state of each job; a job of several hosts has one, and is ended where a host has failed."""
        parts = list(map(node_refs, refs))
        flat = ask(list(chain.from_iterable(parts)))
        found = []
        begin = 0
        for ref, group in zip(refs, parts, strict=True):
            own = flat[begin : begin + len(group)]
            begin += len(group)
            found.append(own[0] if len(group) == 1 else self._combined(ref, own))
        return found

    def _elastic(self, ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
        """Return the status of an elastic trial, which is where its rendezvous is: on the first host.

        The other hosts may be lost, and begin again.
        """
        first = own[0]
        if first.state.is_final and not first.doubt:
            self._end_others(own, ENDED_BECAUSE + agent_answers.where(own, 0))
        elif not first.doubt:
            for status in own[1:]:
                if status.state is TrialState.LOST and not status.doubt:
                    self._start_again(status.ref)
        return agent_answers.of_first(ref, own)

    def _start_again(self, one: JobRef) -> None:
        link = self._nodes.link(str(one.data["host"]))
        job = str(one.data["job"])
        with contextlib.suppress(AutotrainError):  # it is tried with the next poll
            link.ask("start_again", job=job)
            link.connection().pushed.forget(job)

    def _combined(self, ref: JobRef, own: Sequence[JobStatus]) -> JobStatus:
        if ref.data.get("elastic"):
            return self._elastic(ref, own)
        if agent_answers.must_end(own):
            self._end_others(own, ENDED_BECAUSE + agent_answers.where(own))
        if any(status.doubt for status in own):
            return agent_answers.unknown(ref, own)
        if all(status.state.is_final for status in own):
            return agent_answers.ended(ref, own, self._clock_offset_s)
        return agent_answers.running(ref, own)

    def _end_others(self, own: Sequence[JobStatus], reason: str) -> None:
        """Tell the hosts whose part runs still to end it: the link by which they tell each other may be cut."""
        request = json.dumps({"grace_s": _GRACE_S, "reason": reason}).encode()
        for status in own:
            if not status.doubt and not status.state.is_final:
                with contextlib.suppress(AutotrainError):  # it is told with the next poll
                    self._nodes.put(status.ref, wire.CANCEL_FILE, request)

    def _clock_offset_s(self, node: str) -> float:
        """Return the seconds by which a host's clock is ahead of this one's, or 0 where it cannot be told."""
        import time  # noqa: PLC0415 - only failing trials ask

        try:
            return cast("float", self._nodes.link(node).ask("clock")) - time.time()
        except AutotrainError:
            return 0.0

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the job on all hosts at the same time, and name the hosts that do not answer.

        Raises:
            BackendUnavailableError: None of them answers.
            BackendError: A host cannot end its part; the others have ended theirs.
        """
        calls = {str(one.data["host"]): partial(_try, self._nodes.cancel, one, grace_s) for one in node_refs(ref)}
        answers = self._side_by_side.call(calls, None)
        receipts = [answer for answer in answers.values() if isinstance(answer, CancelReceipt)]
        silent: list[str] = []
        for name, answer in answers.items():
            if isinstance(answer, BackendUnavailableError) and receipts:
                silent.append(name)
            elif isinstance(answer, AutotrainError):
                raise answer
        joined = replace(receipts[0], unreachable_nodes=tuple(silent))
        for one in receipts[1:]:
            joined = replace(
                joined,
                pids_ended=joined.pids_ended + one.pids_ended,
                pids_killed=joined.pids_killed + one.pids_killed,
                pids_left=joined.pids_left + one.pids_left,
                elapsed_s=max(joined.elapsed_s, one.elapsed_s),
            )
        return joined


def _try(call: Callable[..., T], *arguments: object) -> T | AutotrainError:
    """Call, and return the error where there is one."""
    try:
        return call(*arguments)
    except AutotrainError as error:
        return error

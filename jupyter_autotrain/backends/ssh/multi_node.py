"""One trial on several hosts: a supervisor on each, started together, watched together, ended together.

Nothing is kept here: the job's reference names the job on each host, in the order of ranks. What one host tells is
combined with what the others tell; where one of them has failed, the others are told to end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from jupyter_autotrain.backends.ssh import node_statuses
from jupyter_autotrain.backends.ssh.node_jobs import Nodes, node_refs
from jupyter_autotrain.backends.ssh.node_starting import NodeStarter
from jupyter_autotrain.backends.ssh.partial_carrying import PartialCarrier
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

_GRACE_S = 5.0


class MultiNode:
    """Trials on several hosts.

    Args:
        nodes: What is done on one host.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._side_by_side = SideBySide()
        self._starter = NodeStarter(nodes)
        self._carrier = PartialCarrier(nodes)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """As `NodeStarter.submit`."""
        return self._starter.submit(trial, placement, secrets)

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
        self._carrier.carry(own)
        if node_statuses.must_end(own):
            self._end_others(own, node_statuses.ENDED_BECAUSE + node_statuses.where(own))
        if any(status.doubt for status in own):
            return node_statuses.unknown(ref, own)
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
        """End it on all hosts at the same time; names those that do not answer.

        Raises:
            BackendUnavailableError: None of them answers.
            BackendError: A host cannot end its part; the others have ended theirs.
        """
        calls = {str(one.data["host"]): partial(self._cancel_one, one, grace_s) for one in node_refs(ref)}
        answers = self._side_by_side.call(calls, None)
        receipts = [answer for answer in answers.values() if isinstance(answer, CancelReceipt)]
        silent = [host for host, answer in answers.items() if isinstance(answer, BackendUnavailableError)]
        for answer in answers.values():
            if isinstance(answer, AutotrainError) and not (receipts and isinstance(answer, BackendUnavailableError)):
                raise answer
        return CancelReceipt(
            tuple(pid for receipt in receipts for pid in receipt.pids_ended),
            tuple(pid for receipt in receipts for pid in receipt.pids_killed),
            tuple(pid for receipt in receipts for pid in receipt.pids_left),
            max(receipt.elapsed_s for receipt in receipts),
            receipts[0].note,
            tuple(silent),
        )

    def _cancel_one(self, ref: JobRef, grace_s: float) -> CancelReceipt | AutotrainError:
        try:
            return self._nodes.cancel(ref, grace_s)
        except AutotrainError as error:
            return error

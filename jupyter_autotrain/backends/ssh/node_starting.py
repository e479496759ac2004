"""Starting one trial on several hosts: on all of them, or on none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from jupyter_autotrain.backends.ssh import host
from jupyter_autotrain.backends.ssh.node_jobs import SEPARATOR, Nodes, node_refs
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, SubmitUnknownError


class NodeStarter:
    """Starts the supervisors of a trial.

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
            layout: JsonObject = {
                "node_rank": rank, "endpoints": cast("list[list[str]]", listed), "agrees_on_stop": not trial.elastic
            }  # fmt: skip
            calls[jobs[number][0]] = partial(
                self._try, self._nodes.start_on, placement.nodes[number], jobs[number][1], trial, secrets, layout
            )
        self._all_or_none(ref, self._side_by_side.call(calls, None))
        return ref

    def _job(self, trial: TrialSpec, number: int) -> str:
        return f"{self._nodes.job_name(trial.job_id)}{SEPARATOR}{number}"

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
        found = error.found.removeprefix(f"{node}: ")
        raise kind(f"{node} cannot start its part of the trial: {found}", error.expected, error.action)

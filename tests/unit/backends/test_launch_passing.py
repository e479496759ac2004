"""What mpiexec on the first host wants of the others, and that they have ended, comes through links that are cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from jupyter_autotrain.backends.ssh.multi_node import MultiNode
from jupyter_autotrain.backends.ssh.node_jobs import Nodes
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError

REF = JobRef("lab", "e1-1-1", {"host": "h1", "job": "a", "nodes": [["h1", "a"], ["h2", "b"]]})
LAUNCH: JsonObject = {"launch": {"1": "orted one"}}


class Hosts:
    """Two hosts; what is written there is kept."""

    name = "lab"

    def __init__(self) -> None:
        self.is_cut = False
        self.written: list[tuple[str, str, bytes]] = []

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        if self.is_cut:
            raise BackendUnavailableError("The link is cut.")
        self.written.append((str(ref.data["host"]), path, data))

    def link(self, node: str) -> object:
        raise BackendUnavailableError(f"{node} tells no more.")

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        return [Chunk(cursor, b"") for cursor in cursors]


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


@pytest.fixture
def trial(hosts: Hosts) -> MultiNode:
    return MultiNode(cast("Nodes", hosts))


def poll(
    trial: MultiNode, first: TrialState, second: TrialState, *, launched: bool = False, doubt: str = ""
) -> JobStatus:
    def ask(refs: Sequence[JobRef]) -> list[JobStatus]:
        detail: JsonObject = {"launched": True} if launched else {}
        return [JobStatus(refs[0], first, detail=LAUNCH), JobStatus(refs[1], second, doubt=doubt, detail=detail)]

    return trial.statuses([REF], ask)[0]


def test_a_command_is_told_until_the_host_has_it(hosts: Hosts, trial: MultiNode) -> None:
    hosts.is_cut = True
    poll(trial, TrialState.RUNNING, TrialState.RUNNING)
    hosts.is_cut = False
    poll(trial, TrialState.RUNNING, TrialState.RUNNING)
    poll(trial, TrialState.RUNNING, TrialState.RUNNING, launched=True)
    assert hosts.written == [("h2", wire.LAUNCH_FILE, b"orted one")]


def test_that_the_others_have_ended_is_told_when_it_is_sure_and_until_it_arrives(
    hosts: Hosts, trial: MultiNode
) -> None:
    poll(trial, TrialState.RUNNING, TrialState.SUCCEEDED, launched=True, doubt="h2 does not answer")
    hosts.is_cut = True
    poll(trial, TrialState.RUNNING, TrialState.SUCCEEDED, launched=True)
    hosts.is_cut = False
    assert hosts.written == []
    poll(trial, TrialState.RUNNING, TrialState.SUCCEEDED, launched=True)
    assert ("h1", wire.LAUNCH_ENDED_FILE, b"") in hosts.written


def test_a_first_host_that_has_ended_its_part_is_told_nothing_more(hosts: Hosts, trial: MultiNode) -> None:
    assert poll(trial, TrialState.SUCCEEDED, TrialState.SUCCEEDED, launched=True).state is TrialState.SUCCEEDED
    assert hosts.written == []

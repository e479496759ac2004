"""Carrying partial results to the first host: to the end, also of a host that could not write its end."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.backends.ssh import agent_files
from jupyter_autotrain.backends.ssh.node_jobs import Nodes
from jupyter_autotrain.backends.ssh.partial_carrying import PartialCarrier
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError

STREAM = wire.stream_of_rank(wire.PARTIALS, 1)
LINE = b'["p", 0, "loss", "mean", [1, 2.0, 2.0, 2.0], []]\n'
END = wire.PARTIALS_END.encode()


class Hosts:
    """Two hosts with a folder each; what is asked of them is answered by the agent's own functions."""

    def __init__(self, root: Path) -> None:
        self.folders = {name: root / name for name in ("h1", "h2")}
        for folder in self.folders.values():
            folder.mkdir()
        self.is_cut = False
        self.is_late = False
        self.asked: list[str] = []

    def link(self, host: str) -> object:
        return SimpleNamespace(ask=lambda do, **request: self.ask(self.folders[host], do, request))

    def ask(self, folder: Path, do: str, request: dict[str, Any]) -> object:
        self.asked.append(do)
        if self.is_cut:
            raise BackendUnavailableError("The link is cut.")
        if do == "append":
            data = base64.b64decode(request["data"])
            return agent_files.append(folder, request["path"], request["offset"], data)
        if do == "list":
            return agent_files.listing(folder, request["path"])
        return agent_files.piece(folder, request["path"], request["offset"])

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        cursor = cursors[0]
        path = self.folders[str(cursor.ref.data["host"])] / cursor.stream
        data = path.read_bytes()[cursor.offset :] if path.exists() and not self.is_late else b""
        return [Chunk(cursor, data)]

    def text(self) -> bytes:
        path = self.folders["h1"] / STREAM
        return path.read_bytes() if path.exists() else b""


def statuses(second: TrialState, doubt: str = "") -> list[JobStatus]:
    refs = [JobRef("lab", "e1-1-1", {"host": host, "job": host}) for host in ("h1", "h2")]
    return [JobStatus(refs[0], TrialState.RUNNING), JobStatus(refs[1], second, doubt=doubt)]


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


@pytest.fixture
def carrier(hosts: Hosts) -> PartialCarrier:
    return PartialCarrier(cast("Nodes", hosts))


def test_another_carrier_sends_nothing_twice_and_after_the_end_nobody_is_asked(
    hosts: Hosts, carrier: PartialCarrier
) -> None:
    (hosts.folders["h2"] / STREAM).write_bytes(LINE)
    carrier.carry(statuses(TrialState.RUNNING))
    assert hosts.text() == LINE
    (hosts.folders["h2"] / STREAM).write_bytes(LINE + END)
    other = PartialCarrier(cast("Nodes", hosts))
    other.carry(statuses(TrialState.RUNNING))
    assert hosts.text() == LINE + END
    hosts.asked.clear()
    other.carry(statuses(TrialState.SUCCEEDED))
    assert (hosts.text(), hosts.asked) == (LINE + END, [])


def test_what_cannot_be_sent_now_is_sent_later(hosts: Hosts, carrier: PartialCarrier) -> None:
    (hosts.folders["h2"] / STREAM).write_bytes(LINE)
    hosts.is_cut = True
    carrier.carry(statuses(TrialState.RUNNING))
    assert hosts.text() == b""
    hosts.is_cut = False
    carrier.carry(statuses(TrialState.RUNNING))
    assert hosts.text() == LINE


@pytest.mark.parametrize("written", [None, LINE], ids=["no stream", "no end"])
def test_the_end_that_a_host_could_not_write_is_added_when_its_part_has_ended(
    hosts: Hosts, carrier: PartialCarrier, written: bytes | None
) -> None:
    if written is not None:
        (hosts.folders["h2"] / STREAM).write_bytes(written)
    carrier.carry(statuses(TrialState.RUNNING))
    carrier.carry(statuses(TrialState.SUCCEEDED, doubt="h2 does not answer"))
    assert hosts.text() == (written or b"")
    for _ in range(3):
        carrier.carry(statuses(TrialState.SUCCEEDED))
    assert hosts.text() == (written or b"") + END


def test_the_end_is_not_added_before_what_the_host_still_has(hosts: Hosts, carrier: PartialCarrier) -> None:
    (hosts.folders["h2"] / STREAM).write_bytes(LINE)
    hosts.is_late = True  # what was pushed has not come
    carrier.carry(statuses(TrialState.SUCCEEDED))
    assert hosts.text() == LINE
    carrier.carry(statuses(TrialState.SUCCEEDED))
    assert hosts.text() == LINE + END

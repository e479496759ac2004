"""Folders that are sent to a host: once, verified, resumed, only what changed."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh.address import HostAddress, TransportKind
from jupyter_autotrain.backends.ssh.transport import Transport, start
from jupyter_autotrain.backends.transfer import sending
from jupyter_autotrain.backends.transfer.channels import LinkLostError
from jupyter_autotrain.backends.transfer.folders import scan_folder
from jupyter_autotrain.backends.transfer.sending import (
    RECEIVE_AND_END,
    DamagedFileError,
    ProgressCallback,
    Receiver,
    send_folder,
)
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost, SshLab
from tests.labs.ssh_trials import kill_agents
from tests.ssh.after_a_fault import is_told, nothing_runs_on

MB = 1 << 20


# Where the carrier matters: what is sent is the same with either.
by_both = pytest.mark.parametrize("kind", list(TransportKind), indirect=True)


@pytest.fixture(params=[TransportKind.PARAMIKO, pytest.param(TransportKind.OPENSSH, marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> TransportKind:
    if request.param is TransportKind.PARAMIKO:
        pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    kind: TransportKind = request.param
    return kind


@pytest.fixture
def transport(lab: SshLab, kind: TransportKind) -> Iterator[Transport]:
    made = connect(lab, kind)
    yield made
    made.close()


def connect(lab: SshLab, kind: TransportKind) -> Transport:
    return agent_connection.connect(HostAddress("h1", config_file=str(lab.config)), kind)


def connect_again(lab: SshLab, kind: TransportKind) -> Transport:
    """Return a connection to a host that is back on the network."""

    def connected() -> Transport | None:
        with contextlib.suppress(BackendUnavailableError):
            return connect(lab, kind)
        return None

    return wait_until(connected, "the host")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "empty").mkdir(parents=True)
    (root / "package").mkdir()
    (root / "main.py").write_text("print(1)\n")
    (root / "package" / "ünder score.bin").write_bytes(os.urandom(3 * MB))
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root


@dataclass(frozen=True)
class Place:
    """A folder of the host."""

    host: LabHost
    path: str

    @property
    def blobs(self) -> Path:
        return self.host.path(self.path) / "blobs"


@pytest.fixture
def place(host: LabHost, scratch: str) -> Place:
    return Place(host, scratch)


def receiver_on(transport: Transport, python: str = sys.executable, then: str = RECEIVE_AND_END) -> Receiver:
    return Receiver(lambda argv: start(transport, argv, "h1"), python, "h1", then)


def send(transport: Transport, source: Path, place: Place, progress: ProgressCallback | None = None) -> Path:
    """Send a folder; gives where it lies, as this machine sees it."""
    return place.host.path(send_folder(receiver_on(transport), scan_folder(source), place.path, "files", progress))


def sent_bytes(transport: Transport, source: Path, place: Place) -> int:
    totals = [0]
    send(transport, source, place, lambda _sent, total: totals.append(total))
    return totals[-1]


@by_both
def test_a_folder_arrives_whole_and_private(transport: Transport, source: Path, place: Place) -> None:
    there = send(transport, source, place)
    assert scan_folder(there).digest == scan_folder(source).digest
    assert (there / "empty").is_dir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (there.parent.parent, *there.rglob("*"))}
    assert {mode & 0o077 for mode in modes.values()} == {0}
    assert modes["run.sh"] == 0o700


def test_a_folder_that_is_there_is_not_sent_again(transport: Transport, source: Path, place: Place) -> None:
    first = send(transport, source, place)
    assert sent_bytes(transport, source, place) == 0
    assert send(transport, source, place) == first


def test_only_what_changed_is_sent(transport: Transport, source: Path, place: Place) -> None:
    first = send(transport, source, place)
    (source / "main.py").write_text("print(2)\n")
    assert sent_bytes(transport, source, place) == len("print(2)\n")
    second = send(transport, source, place)
    assert second != first
    assert (second / "main.py").read_text() == "print(2)\n"
    assert (first / "main.py").read_text() == "print(1)\n"


def test_progress_grows_to_the_total(transport: Transport, source: Path, place: Place) -> None:
    seen: list[tuple[int, int]] = []
    send(transport, source, place, lambda sent, total: seen.append((sent, total)))
    assert [sent for sent, _ in seen] == sorted(sent for sent, _ in seen)
    assert seen[-1][0] == seen[-1][1] >= 3 * MB


@contextlib.contextmanager
def ending_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End receivers after 6 s of silence: a host may not notice that its client is gone."""
    text = sending._text
    with monkeypatch.context() as patch:
        patch.setattr(sending, "_text", lambda module: text(module).replace("SILENCE_S = 60\n", "SILENCE_S = 6\n"))
        yield


@by_both
def test_after_a_cut_only_the_rest_is_sent(
    lab: SshLab, host: LabHost, kind: TransportKind, source: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "large.bin").write_bytes(os.urandom(12 * MB))
    cut_at: list[int] = []

    def cut_half_way(sent: int, total: int) -> None:
        if sent > total // 2 and not cut_at:
            host.cut()
            cut_at.append(sent)

    transport = connect(lab, kind)
    with ending_soon(monkeypatch), pytest.raises(LinkLostError) as caught:
        send(transport, source, place, cut_half_way)
    is_told(caught.value, "h1 does not answer")
    transport.close()
    host.heal()
    again = connect_again(lab, kind)
    total = sent_bytes(again, source, place)
    assert 0 < total < 12 * MB
    assert scan_folder(send(again, source, place)).digest == scan_folder(source).digest
    assert not list(place.blobs.glob("*.part-*"))
    again.close()
    nothing_runs_on(host)


@by_both
def test_what_a_killed_receiver_has_half_written_is_told_and_then_made_whole(
    transport: Transport, host: LabHost, source: Path, place: Place
) -> None:
    (source / "large.bin").write_bytes(os.urandom(12 * MB))
    killed: list[int] = []

    def kill_half_way(sent: int, total: int) -> None:
        if sent > total // 2 and not killed:
            killed.append(kill_agents(host))

    with pytest.raises(BackendError) as caught:
        send(transport, source, place, kill_half_way)
    is_told(caught.value, "h1")
    assert killed == [1]
    assert sent_bytes(transport, source, place) < 12 * MB
    assert scan_folder(send(transport, source, place)).digest == scan_folder(source).digest
    transport.close()
    nothing_runs_on(host)


def test_a_file_damaged_in_the_cache_is_named_and_then_sent_again(
    transport: Transport, source: Path, place: Place
) -> None:
    send(transport, source, place)
    damaged = next(path for path in place.blobs.iterdir() if path.stat().st_size > MB)
    damaged.write_bytes(b"other")
    (source / "main.py").write_text("print(3)\n")
    with pytest.raises(DamagedFileError, match="changed in the cache"):
        send(transport, source, place)
    assert scan_folder(send(transport, source, place)).digest == scan_folder(source).digest


def test_a_place_that_cannot_be_written_is_a_clear_error(transport: Transport, source: Path, place: Place) -> None:
    for path in (f"{place.host.write(place.path, '')}/there", "/usr/there"):
        with pytest.raises(BackendError, match="h1 cannot take the files"):
            send(transport, source, Place(place.host, path))


@by_both
def test_a_python_that_is_not_there_is_a_clear_error(transport: Transport, source: Path, place: Place) -> None:
    with pytest.raises(BackendError, match="/no/such/python on h1 ended") as caught:
        send_folder(receiver_on(transport, "/no/such/python"), scan_folder(source), place.path, "bundles")
    assert "python:" in caught.value.action


@pytest.mark.parametrize("size", [10_240 - 2 * 512, 10_240 - 512, 9_000, 0])
def test_whatever_size_an_archive_has_nothing_of_it_is_taken_for_the_next_folder(
    transport: Transport, source: Path, place: Place, size: int
) -> None:
    receiver = receiver_on(transport, sys.executable, "main(); main()")
    only = source.parent / "only"
    only.mkdir()
    (only / "file").write_bytes(b"x" * size)
    receiver.send(scan_folder(only), place.path, "files")
    assert place.host.path(receiver.send(scan_folder(source), place.path, "files")).is_dir()
    receiver.channel.close()

"""Tests of what comes back from hosts: small files at once, large ones on request, checkpoints for the next attempt."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh import large_channels
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.client import outputs
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.manager.artifact_sync import fetch_results
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import LabBackends, end, read_on, start

WRITES = """
import os, pathlib
pathlib.Path("small.txt").write_text("small")
pathlib.Path("deep").mkdir()
pathlib.Path("deep/large.bin").write_bytes(b"x" * 6_000_000)
model = b"y" * 2_000_000
checkpoint.save({"step": 7})
"""
LOADS = "print(checkpoint.load(default={'step': 0})['step'])"


def test_small_files_come_at_once_and_large_ones_on_request_also_after_a_cut(make: LabBackends, home: Home) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES, returns=("model",))
    directory = home.trial("e1", 1, 1)
    notes = fetch_results(backend, ref, directory, end(backend, ref), 3_000_000)
    assert notes == [
        ("warning", "1 file (6 MB) stayed on h1: `%autotrain pull` brings them (`fetch_limit:`)"),
    ]
    assert (directory / wire.WORK / "small.txt").read_text() == "small"
    assert (directory / wire.OUTPUTS / "model.pkl").stat().st_size > 2_000_000
    assert outputs.sizes(directory) == {"work/deep/large.bin": 6_000_000}
    assert not (directory / wire.CHECKPOINTS).exists()
    part = directory / wire.WORK / "deep" / "large.bin.part"
    part.parent.mkdir()
    part.write_bytes(b"x" * 4_000_000)
    choice = BackendChoice(backend._profile)
    spec = ExperimentSpec("e", Bundle(), backends=(choice,))
    trial = TrialRecord("e1", 1, TrialState.SUCCEEDED, {}, ref=ref, placement=Placement(backend="lab"))
    outputs.bring(home, spec, trial, directory, lambda _: None)
    assert (directory / "work" / "deep" / "large.bin").read_bytes() == b"x" * 6_000_000
    assert outputs.sizes(directory) == {}


def test_a_file_that_is_not_what_its_first_part_was_is_told_and_then_brought_from_its_beginning(
    make: LabBackends, home: Home
) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES)
    end(backend, ref)
    target = home.trial("e1", 1, 1) / wire.WORK / "large.bin"
    part = target.with_name("large.bin.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"z" * 4_000_000)
    with pytest.raises(BackendError, match="has changed since its first part came"):
        backend.fetch(ref, "work/deep/large.bin", str(target))
    assert not target.exists()
    backend.fetch(ref, "work/deep/large.bin", str(target))
    assert target.read_bytes() == b"x" * 6_000_000


def test_a_link_that_is_cut_while_a_large_file_comes_leaves_what_came_for_the_next_time(
    make: LabBackends, home: Home, host: LabHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES)
    end(backend, ref)
    target = home.trial("e1", 1, 1) / wire.WORK / "large.bin"
    piece = large_channels._Stream.piece

    def cut_in_the_middle(stream: large_channels._Stream, most_bytes: int) -> bytes:
        if 1_000_000 < most_bytes < 5_000_000:
            host.cut()
        return piece(stream, most_bytes)

    monkeypatch.setattr(large_channels._Stream, "piece", cut_in_the_middle)
    with pytest.raises(BackendUnavailableError, match="does not answer"):
        backend.fetch(ref, "work/deep/large.bin", str(target))
    came_bytes = target.with_name("large.bin.part").stat().st_size
    assert came_bytes > 500_000
    host.heal()
    asked: list[int] = []
    monkeypatch.setattr(large_channels._Stream, "piece", lambda stream, most: asked.append(most) or piece(stream, most))
    wait_until(lambda: is_fetched(backend, ref, target), "the link to be made again")
    assert target.read_bytes() == b"x" * 6_000_000
    assert max(asked) == 6_000_000 - came_bytes


def is_fetched(backend: SshBackend, ref: JobRef, target: Path) -> bool:
    with contextlib.suppress(BackendUnavailableError):
        backend.fetch(ref, "work/deep/large.bin", str(target))
    return target.exists()


def test_a_large_file_that_cannot_be_read_there_is_named_with_why(
    make: LabBackends, home: Home, tmp_path: Path
) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES)
    end(backend, ref)
    with (
        (tmp_path / "part").open("w+b") as part,
        pytest.raises(BackendError, match=r"gone\.bin cannot be read on h1: .*"),
    ):
        backend.link("h1").receive_file(backend.name_there(ref), "work/gone.bin", part)


def test_everything_comes_where_it_is_small(make: LabBackends, home: Home) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES)
    directory = home.trial("e1", 1, 1)
    assert fetch_results(backend, ref, directory, end(backend, ref), 100_000_000) == []
    assert (directory / wire.WORK / "deep" / "large.bin").stat().st_size == 6_000_000
    assert not (directory / wire.ELSEWHERE_FILE).exists()


@pytest.mark.parametrize("host", ["h1", "h2"])
def test_the_next_attempt_finds_the_checkpoints_on_the_same_host_and_on_another(
    make: LabBackends, home: Home, host: str
) -> None:
    backend = make(home, ("h1", "h2"))
    end(backend, start(backend, home, WRITES, "h1"))
    (home.bundle("e1") / "main.py").write_text(LOADS)
    ref = start(make(home, ("h1", "h2")), home, LOADS, host, attempt=2, resume_attempt=1)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read_on(backend, ref, wire.STDOUT, b"") == b"7\n"


def test_an_attempt_whose_checkpoints_cannot_be_had_says_that_it_begins_anew(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home, ("h1", "h2"))
    end(backend, start(backend, home, WRITES, "h1"))
    host.cut()
    (home.bundle("e1") / "main.py").write_text(LOADS)
    ref = start(backend, home, LOADS, "h2", attempt=2, resume_attempt=1)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read_on(backend, ref, wire.STDOUT, b"") == b"0\n"
    frames = [json.loads(line) for line in read_on(backend, ref, wire.METRICS, b"").splitlines()]
    assert [frame[3] for frame in frames if frame[0] == "n"] == [
        "attempt 2 starts over: its checkpoints may be on h1, without an answer"
    ]


def test_the_home_keeps_what_came_private(make: LabBackends, home: Home, tmp_path: Path) -> None:
    backend = make(home)
    ref = start(backend, home, WRITES)
    directory = home.trial("e1", 1, 1)
    fetch_results(backend, ref, directory, end(backend, ref), 100)
    modes = {path.stat().st_mode & 0o077 for path in directory.rglob("*")}
    assert modes == {0}

"""Tests of a host's cache of code: bounded, the least recently used goes first, never what a trial uses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jupyter_autotrain.agent.objects import agent_code
from jupyter_autotrain.agent.objects.agent_code import CodeCache
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import COUNTS, LabBackend, LabBackends, end, end_with_supervisor, start, status

MB = 1_000_000
LIMIT = 10 * MB


@pytest.fixture
def workdir(host: LabHost, scratch: str) -> Path:
    """Return the folder of trials, as this machine sees it."""
    return host.path(scratch)


@pytest.fixture
def backend(make: LabBackends, home: Home, scratch: str) -> LabBackend:
    return make(home, workdir=scratch, cache_limit=LIMIT)


def run(backend: LabBackend, home: Home, number: int) -> Path:
    """Run an experiment whose code is 1 MB; gives its bundle on the host."""
    before = bundles(backend)
    code = f"print({number})\n# {os.urandom(MB // 2).hex()}"
    ended = end_with_supervisor(backend, start(backend, home, code, experiment_id=f"e{number}"))
    assert ended.state is TrialState.SUCCEEDED, ended.reason
    (new,) = bundles(backend) - before
    return new


def bundles(backend: LabBackend) -> set[Path]:
    folder = backend.seen_here(backend._links["h1"].config.workdir) / "bundles"
    return {path for path in folder.glob("*") if "." not in path.name}


def size_bytes(workdir: Path) -> int:
    kinds = ("bundles", "agents", "blobs")
    return sum(path.stat().st_size for kind in kinds for path in (workdir / kind).rglob("*"))


def test_the_cache_stays_below_its_limit_and_the_oldest_bundle_goes_first(
    backend: LabBackend, home: Home, workdir: Path
) -> None:
    made = []
    for number in range(1, 7):
        made.append(run(backend, home, number))
        assert size_bytes(workdir) <= 1.01 * LIMIT  # what is compiled of the newest bundle comes on top
    kept = [path.exists() for path in made]
    assert kept == sorted(kept)
    assert not kept[0]
    assert kept[-1]


def test_the_bundle_of_a_running_trial_stays_whatever_the_limit(make: LabBackends, home: Home, scratch: str) -> None:
    backend = make(home, workdir=scratch, cache_limit=MB)
    ref = start(backend, home, COUNTS, experiment_id="e0")
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the trial")
    (used,) = bundles(backend)
    os.utime(used, (0, 0))
    first = run(backend, home, 1)
    second = run(backend, home, 2)
    assert used.exists()
    assert not first.exists()
    backend.put(ref, "control/enough", b"")
    assert end_with_supervisor(backend, ref).state is TrialState.SUCCEEDED
    run(backend, home, 3)
    assert not used.exists()
    assert not second.exists()


def test_a_bundle_that_is_gone_from_the_host_is_sent_again(backend: LabBackend, home: Home) -> None:
    assert end(backend, start(backend, home, "print(1)")).state is TrialState.SUCCEEDED
    (bundle,) = bundles(backend)
    shutil.rmtree(bundle)
    assert end(backend, start(backend, home, "print(1)", number=2)).state is TrialState.SUCCEEDED
    assert bundle.is_dir()


def test_checkpoints_of_an_earlier_attempt_go_when_no_trial_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("blobs", "agents/own", "bundles", "checkpoints/used", "checkpoints/unused"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(agent_code, "_OWN", tmp_path / "agents" / "own")
    cache = CodeCache(tmp_path)
    assert cache.use([tmp_path / "checkpoints" / "used"], tmp_path / "jobs" / "a trial that has still to begin")
    cache.make_room("bundles/coming", size_bytes=MB, limit_bytes=1)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["used"]


def test_the_code_of_an_agent_goes_only_when_no_agent_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("blobs", "agents/old", "agents/held", "agents/new", "bundles")
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    for name in ("old", "held"):
        os.utime(tmp_path / "agents" / name, (0, 0))
    monkeypatch.setattr(agent_code, "_OWN", tmp_path / "agents" / "held")
    held = agent_code.hold_own()
    CodeCache(tmp_path).make_room("bundles/coming", size_bytes=MB, limit_bytes=1)
    os.close(held)
    assert sorted(path.name for path in (tmp_path / "agents").iterdir()) == ["held", "new"]

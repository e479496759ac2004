"""Data on hosts: sent or fetched once, only what changed, kept within a limit, noticed when damaged."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.client.check import check
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, DataError
from jupyter_autotrain.testing import trial_of, wait_until
from jupyter_autotrain.testing.files import data_of
from tests.labs.ssh_lab import LabHost, SshLab
from tests.labs.ssh_trials import COUNTS, LabBackend, LabBackends, end, end_with_supervisor, read_on, start

MB = 1_000_000
SHOWS = "print(data.train, len(data.train.read_bytes()))"


@pytest.fixture
def workdir(host: LabHost, scratch: str) -> Path:
    """Return the folder of trials, as this machine sees it."""
    return host.path(scratch)


@pytest.fixture
def backend(make: LabBackends, home: Home, scratch: str) -> LabBackend:
    return make(home, workdir=scratch, data_cache_limit=10 * MB)


def run(backend: LabBackend, home: Home, folder: Path, name: str, number: int = 1) -> Path:
    """Run a trial of an experiment of its own that shows where its file lies; gives that as this machine sees it."""
    ref = begin(backend, home, folder, name, number)
    ended = end_with_supervisor(backend, ref)
    assert ended.state is TrialState.SUCCEEDED, ended.reason
    return backend.seen_here(read_on(backend, ref, wire.STDOUT, b"").decode().split()[0])


def begin(
    backend: LabBackend, home: Home, folder: Path, name: str = "train.bin", number: int = 1, code: str = SHOWS
) -> JobRef:
    """Start a trial of an experiment of its own with a file as its data."""
    experiment_id = f"e{number}"
    data = data_of(home, folder, experiment_id=experiment_id, train=name)
    return start(backend, home, code, experiment_id=experiment_id, data=data)


def sent_kinds(
    backend: LabBackend, monkeypatch: pytest.MonkeyPatch, during: Callable[[], object] = lambda: None
) -> list[str]:
    """Return the kinds of folders that are sent from now on; `during` is called while data is being sent."""
    link = backend._links["h1"]
    send = link.send_folder
    kinds: list[str] = []

    def noting(folder: FolderManifest, root: str, kind: str, _: object = None) -> str:
        kinds.append(kind)
        return send(folder, root, kind, (lambda *_: during()) if kind == "folders" else None)

    monkeypatch.setattr(link, "send_folder", noting)
    return kinds


def folders(workdir: Path) -> int:
    return sum(path.is_dir() for path in (workdir / "data" / "folders").iterdir())


def test_a_file_is_sent_once_private_and_without_the_right_to_write(
    backend: LabBackend, home: Home, tmp_path: Path, workdir: Path
) -> None:
    (tmp_path / "train.bin").write_bytes(os.urandom(MB))
    first = run(backend, home, tmp_path, "train.bin")
    received = first.stat().st_ino
    assert run(backend, home, tmp_path, "train.bin", number=2) == first
    assert first.stat().st_ino == received
    assert first.read_bytes() == (tmp_path / "train.bin").read_bytes()
    assert stat.S_IMODE(first.stat().st_mode) == 0o400
    inside = [workdir / "data", *(workdir / "data").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in inside} == {0}
    assert sum({path.stat().st_ino: path.stat().st_size for path in inside if path.is_file()}.values()) < 1.1 * MB


def test_of_a_folder_only_the_changed_file_is_sent(
    backend: LabBackend, home: Home, tmp_path: Path, workdir: Path
) -> None:
    (tmp_path / "all").mkdir()
    for name in ("a", "b"):
        (tmp_path / "all" / name).write_bytes(os.urandom(MB))
    begin(backend, home, tmp_path, "all")
    (tmp_path / "all" / "b").write_bytes(os.urandom(MB // 2))
    begin(backend, home, tmp_path, "all", number=2)
    assert len(list((workdir / "data" / "blobs").iterdir())) == 3
    kept = [path.stat().st_nlink for path in (workdir / "data" / "folders").glob("*/all/a")]
    assert kept == [3, 3]  # both folders hold the file that was received once


def test_of_trials_that_begin_together_one_sends(
    backend: LabBackend, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.bin").write_bytes(os.urandom(MB))
    data = data_of(home, tmp_path, train="train.bin")
    trial_of(home, SHOWS)  # writes the bundle once
    sent = sent_kinds(backend, monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        refs = list(pool.map(lambda n: start(backend, home, SHOWS, number=n, data=data), range(1, 5)))
    assert [end(backend, ref).state for ref in refs] == [TrialState.SUCCEEDED] * 4
    assert sent.count("folders") == 1


def test_what_was_used_least_recently_goes_and_what_a_running_trial_uses_stays(
    backend: LabBackend, home: Home, tmp_path: Path, workdir: Path
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(os.urandom(4 * MB))
    ref = begin(backend, home, tmp_path, "a", code=COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b""), "the first line")
    (used,) = (workdir / "data" / "folders").glob("*/a")
    second = run(backend, home, tmp_path, "b", number=2)
    third = run(backend, home, tmp_path, "c", number=3)
    assert (used.exists(), second.exists(), third.exists()) == (True, False, True)
    blobs = sum(path.stat().st_size for path in (workdir / "data" / "blobs").iterdir())
    assert blobs == 8 * MB
    backend.put(ref, "control/enough", b"")
    end(backend, ref)


def test_data_larger_than_the_limit_is_refused_before_anything_is_sent(
    backend: LabBackend, home: Home, tmp_path: Path, workdir: Path
) -> None:
    (tmp_path / "big").write_bytes(os.urandom(11 * MB))
    with pytest.raises(AutotrainError, match="The data is 11 MB") as caught:
        begin(backend, home, tmp_path, "big")
    assert "data_cache_limit" in caught.value.action
    assert folders(workdir) == 0


def test_data_for_which_no_host_has_room_is_refused_at_submit(lab: SshLab, home: Home, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10**13)  # it takes no room here
    options = {"hosts": ["h1"], "config_file": str(lab.config), "python": sys.executable, "data_cache_limit": 10**14}
    source = DataSource("train", DataKind.COPY, local_path=str(tmp_path / "huge"))
    profile = Profile("lab", "ssh", options)  # type: ignore[arg-type]  # the options are JSON
    spec = ExperimentSpec("big", Bundle(), backends=(BackendChoice(profile),), data=(source,))
    with pytest.raises(BackendError, match="The data is 10 TB; there is room for") as caught:
        check(spec, home, afresh=True)
    assert " on h1." in caught.value.found
    assert "data_cache_limit" in caught.value.expected


def test_damaged_data_is_sent_again(backend: LabBackend, home: Home, tmp_path: Path) -> None:
    content = os.urandom(MB)
    (tmp_path / "train.bin").write_bytes(content)
    path = run(backend, home, tmp_path, "train.bin")
    path.chmod(0o600)
    path.write_bytes(b"other")
    assert run(backend, home, tmp_path, "train.bin", number=2).read_bytes() == content


def test_a_damaged_received_file_is_found_by_its_digest_and_sent_again(
    backend: LabBackend, home: Home, host: LabHost, scratch: str, tmp_path: Path, workdir: Path
) -> None:
    content = os.urandom(MB)
    (tmp_path / "train.bin").write_bytes(content)
    blobs = workdir / "data" / "blobs"
    blobs.mkdir(mode=0o700, parents=True)
    (blobs / hashlib.sha256(content).hexdigest()).write_bytes(b"hostile")
    host.give(scratch)
    assert run(backend, home, tmp_path, "train.bin").read_bytes() == content


def test_a_full_disk_there_is_told_and_the_next_try_goes_on(
    make: LabBackends, home: Home, host: LabHost, scratch: str, tmp_path: Path
) -> None:
    host.run("mount", "-t", "tmpfs", "-o", "size=6m,mode=1777", "none", host.make_folder(scratch))
    backend = make(home, workdir=scratch)
    (tmp_path / "train.bin").write_bytes(os.urandom(8 * MB))
    with pytest.raises(AutotrainError) as caught:
        begin(backend, home, tmp_path)
    assert "free" in caught.value.found
    assert "8 MB" in caught.value.expected
    host.run("mount", "-o", "remount,size=60m", scratch)
    ended = end(backend, begin(backend, home, tmp_path))
    assert ended.state is TrialState.SUCCEEDED, ended.reason


def test_a_file_that_changes_while_it_is_sent_is_told_as_such(
    backend: LabBackend, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.bin"
    path.write_bytes(os.urandom(4 * MB))
    sent_kinds(backend, monkeypatch, lambda: path.write_bytes(os.urandom(4 * MB)))
    with pytest.raises(DataError, match="was changed or removed after the experiment was submitted"):
        begin(backend, home, tmp_path)


def test_a_cut_while_data_is_sent_costs_only_the_rest(
    backend: LabBackend, home: Home, host: LabHost, tmp_path: Path, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.bin").write_bytes(os.urandom(9 * MB))
    cut = threading.Event()

    def cut_once() -> None:
        if not cut.is_set() and list((workdir / "data" / "blobs").glob("*.part-*")):
            cut.set()
            host.cut()

    sent_kinds(backend, monkeypatch, cut_once)
    with pytest.raises(BackendError):
        begin(backend, home, tmp_path)
    host.heal()
    assert list((workdir / "data" / "blobs").glob("*.part-*"))
    wait_until(lambda: backend.probe().usable, "the link")
    run(backend, home, tmp_path, "train.bin", number=2)


def test_trials_of_a_host_share_one_download(backend: LabBackend, home: Home, lab: SshLab, tmp_path: Path) -> None:
    content = os.urandom(MB)
    (tmp_path / "weights.bin").write_bytes(content)
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            asked.append(str(arguments))

    address = lab.hosts[0].address.rpartition(".")[0] + ".1"
    server = http.server.ThreadingHTTPServer((address, 0), functools.partial(Handler, directory=tmp_path))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        url = f"http://{address}:{server.server_port}/weights.bin"
        digest = hashlib.sha256(content).hexdigest()
        data = (DataSource("train", DataKind.URL, url=url, sha256=digest, file_name="weights.bin"),)
        refs = [start(backend, home, SHOWS, number=number, data=data) for number in (1, 2, 3)]
        assert [end(backend, ref).state for ref in refs] == [TrialState.SUCCEEDED] * 3
        wrong = (DataSource("train", DataKind.URL, url=url, sha256="0" * 64, file_name="weights.bin"),)
        ended = end(backend, start(backend, home, SHOWS, number=4, data=wrong))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert len(asked) == 2
    assert ended.state is TrialState.FAILED
    assert digest in ended.reason


def test_a_path_that_one_host_lacks_is_named_with_that_host(
    make: LabBackends, home: Home, lab: SshLab, scratch: str
) -> None:
    backend = make(home, ("h1", "h2"))
    lab.hosts[1].write(f"{scratch}/x", "")
    assert backend.missing_paths([f"{scratch}/x"]) == [("h1", f"{scratch}/x")]

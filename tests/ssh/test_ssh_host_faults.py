"""Full disks, wrong clocks, cuts in the middle of a cancel, hosts that never come back: told, and nothing is left."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.backends.transfer.folders import scan_folder
from jupyter_autotrain.core.backend import CancelReceipt, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.testing import wait_until, write_bundle
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import COUNTS, LabBackends, directory_of, end, read_on, start, status, supervisors
from tests.ssh.after_a_fault import is_told, is_whole, nothing_runs_on

FEW = "for step in range(20):\n    print(step)\n    report(step=step, count=step)"
LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec -= 3600;
    return code;
}
"""


@pytest.fixture
def small_disk(make: LabBackends, host: LabHost, scratch: str) -> Iterator[str]:
    """Yield a folder on the host with room for little; `make` ends whatever uses it."""
    host.run("mount", "-t", "tmpfs", "-o", "size=16m,mode=1777", "tmpfs", host.make_folder(scratch))
    yield scratch
    with contextlib.suppress(Exception):  # a reboot has taken it
        host.run("umount", "-l", scratch)


def test_a_full_disk_there_is_told_with_the_host_and_passes_when_there_is_room(
    make: LabBackends, home: Home, host: LabHost, small_disk: str
) -> None:
    backend = make(home, workdir=small_disk)
    assert backend.probe().usable
    host.run("sh", "-c", f"cat /dev/zero >{small_disk}/filler || true")
    with pytest.raises(BackendUnavailableError) as caught:
        start(backend, home, FEW)
    is_told(caught.value, "h1 cannot take the files", "No space left")
    assert "Room on its disk" in caught.value.expected
    host.run("rm", f"{small_disk}/filler")
    ref = start(backend, home, FEW)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


@pytest.fixture
def late(host: LabHost, tmp_path: Path) -> Iterator[None]:
    """Login shells of the host, and all they start, are an hour late; no namespace shifts the clock that can be set."""
    if shutil.which("cc") is None:
        pytest.skip("there is no `cc` to build what shifts the clock")
    (tmp_path / "late.c").write_text(LATE)
    library = host.path("/scratch/late.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "late.c")], check=True)
    start_up = host.home() / ".bashrc"
    start_up.write_text("export LD_PRELOAD=/scratch/late.so\n")
    yield
    start_up.unlink()


@pytest.mark.usefixtures("late")
def test_a_host_whose_clock_is_an_hour_off_runs_resumes_and_cancels_trials_alike(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home, lease_s=60)
    clock = cast("float", backend.link("h1").ask("clock"))
    assert time.time() - clock > 3500
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.METRICS, b"").count(b"\n") > 5, "metrics")
    assert status(backend, ref).state is TrialState.RUNNING
    first_link = backend.link("h1").connection()
    first_link.close()
    wait_until(lambda: first_link.loss is not None and not status(backend, ref).doubt, "the next link")
    assert backend.cancel(ref, 0.5).pids_left == ()
    cancelled = status(backend, ref)
    assert (cancelled.state, cancelled.reason) == (TrialState.CANCELLED, "Cancelled on request.")
    is_whole(backend, ref)
    again = start(backend, home, FEW, attempt=2, resume_attempt=1, experiment_id="e2")
    assert end(backend, again).state is TrialState.SUCCEEDED
    is_whole(backend, again)
    make.close()
    nothing_runs_on(host)


def test_a_cut_in_the_middle_of_a_cancel_loses_only_its_receipt(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    code = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{COUNTS}"
    ref = start(backend, home, code)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b"").count(b"\n") > 3, "the first lines")
    outcome: list[CancelReceipt | BackendError] = []
    cancelling = threading.Thread(target=lambda: outcome.append(_cancel(backend, ref)))
    cancelling.start()
    trial = directory_of(backend, ref)
    trial_there = f"{backend.link('h1').greeting()['root']}/jobs/{backend.name_there(ref)}"
    wait_until((trial / wire.CANCEL_FILE).exists, "the request there")
    host.cut()
    cancelling.join()
    assert isinstance(outcome[0], BackendError)
    is_told(outcome[0], "h1 does not answer")
    host.run("touch", f"{trial_there}/control/enough")  # the trial ends by itself, within the grace
    host.heal()
    wait_until(lambda: not supervisors(host), "the end there")
    wait_until(lambda: not status(backend, ref).doubt, "the link")
    assert end(backend, ref).state is TrialState.CANCELLED
    assert backend.cancel(ref, 0.0).pids_left == ()
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def _cancel(backend: SshBackend, ref: JobRef) -> CancelReceipt | BackendError:
    try:
        return backend.cancel(ref, 200.0)
    except BackendError as error:
        return error


def test_a_host_that_is_gone_for_good_stays_a_doubt_and_refuses_new_trials_at_once(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the start")
    host.cut()
    wait_until(lambda: status(backend, ref).doubt, "the cut is noticed")
    assert status(backend, ref).unreachable
    with pytest.raises(BackendError) as caught:
        start(backend, home, "", number=2)
    is_told(caught.value, "h1 does not answer since")
    assert not backend.probe().usable
    assert backend.discover().nodes[0].unavailable
    assert status(backend, ref).state is TrialState.PREPARING  # a doubt proves no end, so nothing is lost or run twice
    host.heal()  # only to look: the trial went on there, and nothing else runs
    assert len(supervisors(host)) == 1
    wait_until(lambda: not status(backend, ref).doubt, "the link")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def test_two_kernels_of_one_home_follow_the_same_trial(make: LabBackends, home: Home, host: LabHost) -> None:
    first = make(home)
    second = make(home)
    ref = start(first, home, COUNTS)
    assert start(second, home, COUNTS) == ref
    for backend in (first, second):
        wait_until(lambda one=backend: read_on(one, ref, wire.METRICS, b"").count(b"\n") > 3, "metrics")
    assert len(supervisors(host)) == 1
    first.put(ref, "control/enough", b"")
    for backend in (first, second):
        assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read_on(first, ref, wire.METRICS, b"") == read_on(second, ref, wire.METRICS, b"")


@pytest.mark.parametrize("user", ["printing", "slow", "fish"])
def test_a_trial_behind_a_login_shell_that_prints_is_slow_or_is_fish_is_whole(
    make: LabBackends, home: Home, host: LabHost, user: str
) -> None:
    if not host.home(user).exists():
        pytest.skip(f"there is no shell for the account {user} on this machine")
    backend = make(home, user=user)
    ref = start(backend, home, FEW)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def test_more_trials_at_once_than_the_server_has_sessions_are_whole(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    refs = [start(backend, home, FEW, number=number) for number in range(1, 13)]
    for ref in refs:
        assert end(backend, ref).state is TrialState.SUCCEEDED
        is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def test_a_bundle_that_was_half_written_there_is_not_used_and_made_whole(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    code = f"{FEW}\n# {secrets.token_hex(8)}"  # other tests have sent theirs to this host
    write_bundle(home.bundle("e1"), code, files={"large.txt": secrets.token_hex(1_500_000)})
    bundle = scan_folder(home.bundle("e1"))
    root = host.home() / ".autotrain"
    draft = root / "bundles" / f"{bundle.digest}.draft-1"
    for folder in (root, root / "bundles", root / "blobs", draft):
        folder.mkdir(mode=0o700, exist_ok=True)
    (draft / "main.py").write_text("raise SystemExit('half of it')")
    for file in bundle.files:
        if file.path == "bundle.json":
            continue  # it is not sent
        (root / "blobs" / f"{file.sha256}.part-1").write_bytes(Path(file.source).read_bytes()[: file.size_bytes // 2])
    host.give(f"{host.files.home(host.user)}/.autotrain")
    backend = make(home)
    ref = start(backend, home, code)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    assert not draft.exists()
    assert not list((root / "blobs").glob("*.part-*"))
    make.close()
    nothing_runs_on(host)

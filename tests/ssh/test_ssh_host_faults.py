"""Full disks, wrong clocks, cuts in the middle of a cancel, hosts that never come back: told, and nothing is left."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.testing import wait_until
from jupyter_autotrain.testing.ssh_lab import LabHost
from jupyter_autotrain.testing.ssh_trials import (
    COUNTS,
    LabBackends,
    directory_of,
    end,
    read_on,
    start,
    status,
    supervisors,
)

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
def small_disk(make: LabBackends, host: LabHost) -> Iterator[str]:
    """A folder on the host with room for little; `make` ends whatever uses it."""
    folder = host.folder / "small"
    folder.mkdir(exist_ok=True)
    host.run("mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", str(folder))
    yield str(folder)
    with contextlib.suppress(Exception):  # a reboot has taken it
        host.run("umount", "-l", str(folder))


def test_a_full_disk_there_is_told_with_the_host_and_passes_when_there_is_room(
    make: LabBackends, home: Home, host: LabHost, small_disk: str
) -> None:
    backend = make(home, workdir=small_disk)
    assert backend.probe().usable
    host.run("sh", "-c", f"cat /dev/zero >{small_disk}/filler || true")
    with pytest.raises(BackendUnavailableError, match="h1 cannot take the files") as caught:
        start(backend, home, "report(a=1)")
    assert "No space left" in caught.value.found
    assert "Room on its disk" in caught.value.expected
    host.run("rm", f"{small_disk}/filler")
    assert end(backend, start(backend, home, "report(a=1)")).state is TrialState.SUCCEEDED


@pytest.fixture
def late(host: LabHost, tmp_path: Path) -> Iterator[None]:
    """Login shells of the host, and all they start, are an hour late; no namespace shifts the clock that can be set."""
    if shutil.which("cc") is None:
        pytest.skip("there is no `cc` to build what shifts the clock")
    (tmp_path / "late.c").write_text(LATE)
    library = tmp_path / "late.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "late.c")], check=True)
    start_up = host.home() / ".bashrc"
    start_up.write_text(f"export LD_PRELOAD={library}\n")
    yield
    start_up.unlink()


@pytest.mark.usefixtures("late")
def test_a_host_whose_clock_is_an_hour_off_runs_resumes_and_cancels_trials_alike(make: LabBackends, home: Home) -> None:
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
    assert status(backend, ref).state is TrialState.CANCELLED
    again = start(backend, home, "", attempt=2, resume_attempt=1, experiment_id="e2")
    assert end(backend, again).state is TrialState.SUCCEEDED


def test_a_cut_in_the_middle_of_a_cancel_loses_only_its_receipt(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    code = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{COUNTS}"
    ref = start(backend, home, code)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b"").count(b"\n") > 3, "the first lines")
    outcome: list[CancelReceipt | BackendError] = []
    cancelling = threading.Thread(target=lambda: outcome.append(_cancel(backend, ref)))
    cancelling.start()
    trial = directory_of(backend, ref)
    wait_until((trial / wire.CANCEL_FILE).exists, "the request there")
    host.cut()
    cancelling.join()
    assert isinstance(outcome[0], BackendError)
    assert "h1 does not answer" in outcome[0].found
    (trial / "control" / "enough").touch()  # the trial ends by itself, within the grace
    host.heal()
    wait_until(lambda: not supervisors(host), "the end there")
    wait_until(lambda: not status(backend, ref).doubt, "the link", within_s=60)
    assert end(backend, ref).state is TrialState.CANCELLED
    assert backend.cancel(ref, 0.0).pids_left == ()


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
    with pytest.raises(BackendError, match="h1 does not answer since"):
        start(backend, home, "", number=2)
    assert not backend.probe().usable
    assert backend.discover().nodes[0].unavailable


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

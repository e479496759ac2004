"""Checks after every fault: nothing runs on any host, nothing is lost or there twice, and the user is told."""

from __future__ import annotations

import json
from functools import partial

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import read_on


def nothing_runs_on(*hosts: LabHost) -> None:
    """Wait until no process of a trial, an agent or a receiver is on these hosts; whoever asks has closed its links."""
    for host in hosts:
        try:
            wait_until(partial(_is_empty, host), f"the end of all processes on {host.name}")
        except AssertionError as error:
            raise AssertionError(f"{error}; there are: {_ours(host)}") from error


def _is_empty(host: LabHost) -> bool:
    return not _ours(host)


def _ours(host: LabHost) -> list[str]:
    return [args for args in host.commands().values() if "python" in args and "<defunct>" not in args]


def is_whole(backend: SshBackend, ref: JobRef) -> None:
    """All that an ended trial of `COUNTS` has reported and printed came here, once and in order."""
    printed = [int(line) for line in read_on(backend, ref, wire.STDOUT, b"").splitlines()]
    frames = [json.loads(line) for line in read_on(backend, ref, wire.METRICS, b"").splitlines()]
    assert printed == list(range(len(printed)))
    assert [frame[1] for frame in frames if frame[0] == "m"] == printed
    assert printed


def is_told(error: AutotrainError, *words: str) -> None:
    """Expect an error of three clauses, the first of which says these words."""
    assert all((error.found, error.expected, error.action)), error
    assert all(word in error.found for word in words), error

"""Warm starts: trials that begin in processes which are forked from a warm one (`agent.pool.warm_process`)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_autotrain.agent import VERSION, fields, locks, system, wire
from jupyter_autotrain.agent.environments import choice
from jupyter_autotrain.agent.pool import needed_imports
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.service import starting
from jupyter_autotrain.agent.system import unix_sockets
from jupyter_autotrain.agent.trial import environment, trial_lock
from jupyter_autotrain.agent.trial.trial_file import TrialFile

if TYPE_CHECKING:
    from jupyter_autotrain.agent.json import JsonValue

FOLDER = "warm"
IDLE_S = 60.0
LIMIT_BYTES = 2 << 30
_OPTIONS = ("reuse", "reuse_idle", "reuse_memory")
_LOCK = "lock"
_TRIES = 3
_BEGIN_S = 10.0  # then the trial is started as any other
_KEPT_SCRIPTS = 64
_BLANKS = 5000 * " "  # where the kernel shows command and variables of what is forked: room for those of each trial
_OF_ONE_TRIAL = frozenset({wire.TRIAL_VARIABLE, "CUDA_VISIBLE_DEVICES"})


def options_of(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return those of a profile's options that say how trials begin."""
    return {name: options[name] for name in _OPTIONS if name in options}


def are_for(trial: TrialFile, *, is_default: bool = True) -> bool:
    """Tell whether a trial is to begin warm: on one node, by no launcher, in an interpreter of this machine.

    Args:
        trial: What `trial.json` says.
        is_default: Whether it does where its options do not say.
    """
    kind, _ = choice.kind_and_value(trial)
    is_wanted = fields.mapping(trial.get("options")).get("reuse", is_default)
    is_forked = trial.get("launcher", "env") == "env" and "layout" not in trial
    return bool(system.ADOPTS_ORPHANS and is_wanted and is_forked and kind in {"place", "python"})


class WarmStarts:
    """The warm processes of a home, or of a host.

    Args:
        folder: Their folder.
        is_default: Whether trials begin warm where their options do not say.
    """

    def __init__(self, folder: Path, *, is_default: bool = True) -> None:
        self._folder = folder
        self._is_default = is_default

    def start(self, trial: TrialFile, given: Mapping[str, str], write: Callable[[], object] = bool) -> bool:
        """Begin a trial in a process forked from a warm one, which is started where there is none.

        Args:
            trial: What `trial.json` says, which lies in the trial directory.
            given: Its secrets, by the names of variables: sent to its own process alone.
            write: Writes the trial directory, in any case, while the process is forked.

        Returns:
            Whether it has begun. Where it has not, it may be started as any other: its lock lets only one ever begin.

        Raises:
            OSError: There is no room for its files.
        """
        if not are_for(trial, is_default=self._is_default):
            write()
            return False
        directory = Path(trial["directory"])
        secrets = {name: given[name] for name in fields.strings(trial.get("secrets")) if name in given}
        request = json.dumps({"directory": str(directory), "secrets": secrets}).encode() + b"\n"
        hidden = {*_OF_ONE_TRIAL, *fields.strings(trial.get("secrets"))}
        env = environment.complete(trial, {})
        shared = {name: value for name, value in env.items() if name not in hidden}
        needs = {"python": choice.interpreter(trial), "imports": _imports(trial)}
        seat = self._seat(needs, shared)
        connection = _connect(seat)
        try:
            write()
        except BaseException:
            _close(connection)
            raise
        for _ in range(_TRIES):
            connection = connection or self._start_process(seat, needs, shared, _limits(trial))
            if connection is None:
                return False
            if _ask(connection, request) or starting.has_begun(directory):
                return True
            connection = _connect(seat)
        _close(connection)
        return False

    def _seat(self, needs: Mapping[str, object], shared: Mapping[str, str]) -> Path:
        """Return the folder of the warm process for these needs and variables."""
        key = json.dumps([needs, shared, VERSION, *program("warm")], sort_keys=True)
        return self._folder / hashlib.sha256(key.encode()).hexdigest()[:16]

    def _start_process(
        self, seat: Path, needs: Mapping[str, object], shared: Mapping[str, str], limits: list[str]
    ) -> socket.socket | None:
        """Start a warm process, and connect to it; return None where none comes up."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locks.alone(self._folder / _LOCK):
            connection = _connect(seat)
            if connection is not None:
                return connection
            self._remove_leftovers()
            seat.mkdir(mode=0o700, exist_ok=True)
            (seat / "needs").write_text(json.dumps(needs), encoding="utf-8")
            command = [str(needs["python"]), *program("warm"), str(seat), *limits, _BLANKS]
            if not _run(command, shared):
                shutil.rmtree(seat, ignore_errors=True)
            return _connect(seat)

    def _remove_leftovers(self) -> None:
        """Remove what warm processes that were killed have left."""
        for path in self._folder.iterdir():
            if path.is_dir() and not trial_lock.is_held(str(path)):
                shutil.rmtree(path, ignore_errors=True)


def _limits(trial: TrialFile) -> list[str]:
    """Return how long a warm process waits for another trial, and how much memory all may hold."""
    options = fields.mapping(trial.get("options"))
    return [str(options.get("reuse_idle") or IDLE_S), str(options.get("reuse_memory") or LIMIT_BYTES)]


def _imports(trial: TrialFile) -> list[str]:
    return list(_imports_of(f"{trial['bundle']}/{trial.get('script') or 'main.py'}", f"{trial['bundle']}/files"))


@lru_cache(_KEPT_SCRIPTS)
def _imports_of(script: str, folder: str) -> tuple[str, ...]:
    return tuple(needed_imports.of_script(script, folder))


def _run(command: list[str], shared: Mapping[str, str]) -> bool:
    """Run the starter of a warm process; return False where that does not come up."""
    own = {**shared, wire.MANAGER_VARIABLE: os.environ.get(wire.MANAGER_VARIABLE, ""), wire.TRIAL_VARIABLE: _BLANKS}
    null = subprocess.DEVNULL
    try:
        return subprocess.run(command, env=own, stdin=null, stdout=null, stderr=null, check=False).returncode == 0
    except OSError:  # started as any other, the trial tells of it
        return False


def _connect(seat: Path) -> socket.socket | None:
    """Connect to a warm process; return None where there is none."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_BEGIN_S)
    try:
        with unix_sockets.address(seat / "socket") as address:
            connection.connect(address)
    except OSError:  # none, one that was killed, or one that is overrun
        connection.close()
        return None
    return connection


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()


def _ask(connection: socket.socket, request: bytes) -> bool:
    """Ask for a trial; return whether it has begun in time."""
    with connection, contextlib.suppress(OSError):
        connection.sendall(request)
        return connection.recv(1) != b""
    return False

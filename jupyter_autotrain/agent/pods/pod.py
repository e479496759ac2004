"""The program of a pod. It makes the trial directory, starts the supervisor, relays its files, and ends after it.

The supervisor is that of every other backend, as a child. Nothing here talks to the cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.agent import fields, files, nodes, system, wire
from jupyter_autotrain.agent.errors import DataError
from jupyter_autotrain.agent.pods import places, preparing, rendezvous
from jupyter_autotrain.agent.pods.frames import Relay
from jupyter_autotrain.agent.pods.rendezvous import PeersError
from jupyter_autotrain.agent.service import status_resolution
from jupyter_autotrain.agent.supervisor import supervisor_main
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_file, trial_lock
from jupyter_autotrain.agent.trial.trial_file import TrialFile

_LEAST_PAUSE_S = 0.01
_MOST_PAUSE_S = 0.1
_PAUSE_GROWTH = 1.3
_LINGER_S = 600.0
PREEMPTED_CODE = 143  # what schedulers take for a pod that was asked to end, not for a failure
_GOOD = frozenset({"SUCCEEDED", "EARLY_STOPPED"})
_OWN = "AUTOTRAIN_"


class Pod:
    """One pod of a trial.

    Args:
        environ: The variables of its container.
        run: The folder of everything that the pod makes.
        code: The folder of what was sent.
        goes_on: An earlier process of the same container has begun the trial, and written into the same log.
    """

    def __init__(
        self, environ: Mapping[str, str], run: str = places.RUN, code: str = places.CODE, *, goes_on: bool = False
    ) -> None:
        self._environ = dict(environ)
        self._run = run
        self._code = code
        self._goes_on = goes_on
        self._directory = f"{run}/{places.TRIAL}"
        self._options = fields.mapping(json.loads(environ.get(places.POD_VARIABLE) or "{}"))
        node = rendezvous.node_of(self._options, environ)
        self._relay = Relay(run, _write, node, environ.get(places.JOB_VARIABLE, ""))
        self._waits = False  # for the other pods of the trial
        self._supervisor = 0
        self._has_begun = False  # there is something to tell: how the trial has ended, or why it cannot begin
        self._is_told_to_end = False
        self._is_rescaled = self._options.get("rescales") is True  # others go on with what this pod has made
        self._patience_ends_s = float("inf")
        self._is_started_again = False  # an earlier container of this pod has run the trial, and was killed
        pause_s = self._options.get("pause_s")
        self._busy_pause_s = float(pause_s) if isinstance(pause_s, (int, float)) else _LEAST_PAUSE_S

    def main(self) -> int:
        """Run the trial to its end; return the exit code of the container."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        self._lay_out()
        trial = self._trial()
        if self._is_rescaled:
            self._go_on(trial)
        self._is_started_again = self._has_begun = os.path.exists(f"{self._directory}/{wire.STATUS_FILE}")
        if self._prepare(trial) and self._place(trial):
            self._supervisor = self._start(trial)
            if self._is_told_to_end:
                self._pass_on_sigterm()
            self._follow()
        status = self._final_status()
        if self._is_rescaled and rendezvous.ends_for_others(status, is_told_to_end=self._is_told_to_end):
            self._relay.look()
            return rendezvous.ENDED_CODE
        self._relay.finish()
        self._linger()
        if status.get("state") == "PREEMPTED":
            return PREEMPTED_CODE
        return 0 if status.get("state") in _GOOD else 1

    def _on_sigterm(self, *_: object) -> None:
        self._is_told_to_end = True
        if not self._has_begun or self._still_waits():  # as when data is still fetched, or not all pods got a node
            if self._supervisor:  # it has started nothing yet
                os.kill(self._supervisor, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.unlink(f"{self._directory}/{wire.STATUS_FILE}")
            sys.exit(PREEMPTED_CODE)
        if self._is_rescaled:
            rendezvous.ask_to_stop(self._directory)
            grace_s = fields.integer(self._options.get("grace_s"), 30)
            self._patience_ends_s = time.monotonic() + rendezvous.patience_s(grace_s)
        else:
            self._pass_on_sigterm()

    def _go_on(self, trial: TrialFile) -> None:
        """Begin where the pods before this one have ended."""
        names = fields.mapping(self._options.get("variables"))
        asked = fields.integer(self._options.get("nodes"), 1)
        nodes = rendezvous.node_count(self._environ, str(names.get("count") or ""), asked)
        node = rendezvous.node_of(self._options, self._environ)
        rendezvous.begin(self._directory, node, nodes, fields.integer(trial.get("workers"), 1))
        trial["environment"] = {
            **trial["environment"],
            **rendezvous.variables(self._environ, self._directory, places.STORAGE),
        }
        self._options["nodes"] = nodes

    def _pass_on_sigterm(self) -> None:
        if self._supervisor:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._supervisor, signal.SIGTERM)

    def _lay_out(self) -> None:
        for name in wire.FOLDERS:
            os.makedirs(f"{self._directory}/{name}", mode=0o700, exist_ok=True)
        for name in ("environments", "data"):
            os.makedirs(f"{self._run}/{name}", mode=0o700, exist_ok=True)

    def _trial(self) -> TrialFile:
        """Return the trial that was sent, with the paths of this pod and the variables of its image."""
        text = self._environ.get(places.TRIAL_VARIABLE)
        trial = trial_file.of_json(json.loads(text) if text else files.read_json(self._code, places.TRIAL_FILE))
        trial["directory"] = self._directory
        trial["bundle"] = ""
        trial["python"] = sys.executable
        trial["resume_from"] = ""
        trial["environment"] = self._variables(trial)
        return trial

    def _prepare(self, trial: TrialFile) -> bool:
        """Have all that the trial needs.

        Returns False where something is missing; the status of the trial then says so.
        """
        if self._is_started_again:
            return True
        try:
            for line in preparing.prepare(trial, self._run, self._environ):
                with open(f"{self._directory}/{wire.STDERR}", "a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
        except DataError as error:
            self._fail(error)
            return False
        return True

    def _place(self, trial: TrialFile) -> bool:
        """Say in `trial` where the other pods of a trial on several nodes are.

        Returns False where that cannot be found out; the status of the trial then says so.
        """
        if fields.integer(self._options.get("nodes"), 1) == 1 or self._is_started_again:
            return True
        try:
            trial["layout"] = rendezvous.layout(self._options, self._environ)
        except PeersError as error:
            self._fail(DataError(f"{error}"))
            return False
        self._waits = True
        return True

    def _still_waits(self) -> bool:
        """Tell whether the pods have not met yet; before, there is nothing to tell the manager."""
        if self._waits and self._supervisor:
            with contextlib.suppress(OSError, ValueError):
                status = fields.mapping(files.read_json(self._directory, wire.STATUS_FILE))
                self._waits = str(status.get("reason")).startswith(nodes.WAITS)
        return self._waits

    def _fail(self, error: DataError) -> None:
        self._has_begun = True
        status = json.dumps(preparing.failed_status(error)).encode()
        wire.write_atomically(f"{self._directory}/{wire.STATUS_FILE}", status)

    def _variables(self, trial: Mapping[str, object]) -> dict[str, str]:
        """Return the variables of the container, and those that the submitter's machine and this one share."""
        secrets = fields.strings(trial.get("secrets"))
        own = {name: value for name, value in self._environ.items() if not name.startswith(_OWN)}
        given = {name: str(value) for name, value in fields.mapping(trial.get("environment")).items()}
        return {name: value for name, value in {**own, **given}.items() if name not in secrets}

    def _start(self, trial: TrialFile) -> int:
        """Start the supervisor as a child; return its pid."""
        trial_file.write(trial)
        named = [*fields.strings(trial.get("secrets")), wire.TOKEN_VARIABLE]
        secrets = {name: self._environ[name] for name in named if name in self._environ}
        self._has_begun = True
        ends_with_parent = self._options.get("is_container") is False
        return start(trial, self._directory, {**self._variables(trial), **secrets}, ends_with_parent=ends_with_parent)

    def _follow(self) -> None:
        """Relay until the supervisor has ended."""
        pause_s = _LEAST_PAUSE_S
        while not self._has_ended():
            is_busy = not self._still_waits() and self._relay.look()
            pause_s = self._busy_pause_s if is_busy else min(pause_s * _PAUSE_GROWTH, _MOST_PAUSE_S)
            time.sleep(pause_s)
            if time.monotonic() > self._patience_ends_s:
                self._patience_ends_s = float("inf")
                self._pass_on_sigterm()

    def _has_ended(self) -> bool:
        """Tell whether the supervisor has ended.

        Others that ended are reaped meanwhile, since a container has no other init.
        """
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid in {0, self._supervisor}:
                return pid != 0

    def _final_status(self) -> Mapping[str, object]:
        """Return the last status; a supervisor that was killed has left none that is final, so one is written."""
        with contextlib.suppress(statuses.UnknownError):
            return status_resolution.resolve_status(Path(self._directory)) or {}
        return {}

    def _linger(self) -> None:
        """Wait until all is collected, where the log alone may not hold it: then the pod is deleted, or released.

        A container that was started again keeps in its pod how the one before it has ended.
        """
        is_log_another = self._is_started_again and not self._goes_on
        if self._relay.fits_into_log and not (is_log_another or self._options.get("lingers")):
            return
        linger_s = self._options.get("linger_s")
        end_s = time.monotonic() + (linger_s if isinstance(linger_s, (int, float)) else _LINGER_S)
        released = f"{self._run}/{places.RELEASED}"
        while time.monotonic() < end_s and not self._is_told_to_end and not os.path.exists(released):
            time.sleep(_MOST_PAUSE_S)


def _write(line: str) -> None:
    data = memoryview(line.encode())
    while data:
        data = data[os.write(1, data) :]


def start(trial: TrialFile, directory: str, environ: dict[str, str], *, ends_with_parent: bool = False) -> int:
    """Start the supervisor; return its pid.

    Args:
        trial: What `trial.json` says.
        directory: The trial directory.
        environ: The variables of the trial, with its secrets.
        ends_with_parent: Whether it is killed when this process is, as it is by itself where that ends a container.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if ends_with_parent:
            system.die_with_parent(os.getppid())
        os.setsid()
        os.chdir(directory)
        lock = trial_lock.acquire()
        if lock is not None:  # else an earlier container of this pod has run it
            supervisor_main.supervise(trial, environ, lock)
    except BaseException:  # noqa: BLE001 - the log of the pod says it, whatever it is
        traceback.print_exc()
    finally:
        os._exit(0)

"""Runs on a host: starts supervisors, reads and writes trial directories there, all over its standard streams.

One agent per host and connection. It keeps nothing: whatever it started goes on when it ends, and another agent finds
the same trial directories. It ends when its standard input does, or after a minute without a request.

A line of input is `{"id": number, "do": name, ...}`; its answer is `{"id": number, "ok": ...}` or
`{"id": number, "failure": [found, expected, action]}`. The first line of output is the greeting. Besides, what is new
of subscribed jobs comes unasked: `{"push": job, "status": status file, null or a doubt, "streams": {stream:
[offset, base64, fault, is_lasting]}, "sizes": {stream: size}}`, each part only where it is new, the sizes with a final
state.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_autotrain.backends.local import cancelling, starting
from jupyter_autotrain.backends.ssh import (
    agent_code,
    agent_data,
    agent_experiments,
    agent_files,
    agent_machine,
    agent_ranks,
)  # fmt: skip
from jupyter_autotrain.backends.ssh.agent_watching import JobWatcher
from jupyter_autotrain.core import environment, system, wire
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.worker import start_supervisor
from jupyter_autotrain.worker.data_cache import DataCache
from jupyter_autotrain.worker.environments import eviction, interpreters

if TYPE_CHECKING:
    from jupyter_autotrain.backends.slurm_login.controller import SlurmController

_UNASKED_S = 60.0

AgentRequest = Mapping[str, Any]


class Agent:
    """Answers requests about the trials of one host.

    Args:
        root: The folder of everything that is ours there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._code = agent_code.CodeCache(root)
        self._held = agent_code.hold_own()
        self._asked_s = time.monotonic()
        self._writing = threading.Lock()
        self._slurm_lock = threading.Lock()
        self._controller: SlurmController | None = None
        self._watcher = JobWatcher(self._write)
        self._owners: set[Path] = set()
        self._environments = str(root / "environments")
        self._data = str(root / "data")
        self._handlers: dict[str, Callable[[AgentRequest], object]] = {
            "ping": lambda _: os.statvfs(self._root).f_bavail,  # a host whose file server is gone is of no use
            "machine": lambda _: agent_machine.describe(),
            "python": self._inspect_python,
            "make_room": lambda request: self._code.make_room(
                request["folder"], request["size_bytes"], request["limit_bytes"]
            ),
            "start": self._start,
            "subscribe": self._subscribe,
            "taken": lambda request: self._watcher.acknowledge(request["job"], request["stream"], request["offset"]),
            "unsubscribe": self._unsubscribe,
            "missing": lambda request: agent_data.missing(request["paths"]),
            "data_room": lambda request: agent_data.room_bytes(self._data, request["limit_bytes"]),
            "use_data": self._use_data,
            "keep_data": lambda request: DataCache(self._data).complete(request["digest"]),
            "put": self._put,
            "append": self._append,
            "list": lambda request: agent_files.listing(self._directory(request["job"]), request["path"]),
            "get": lambda request: agent_files.piece(
                self._directory(request["job"]), request["path"], request["offset"]
            ),
            "locate": lambda request: [sys.path[0], str(self._directory(request["job"]))],
            "cancel": self._cancel,
            "remove": lambda request: agent_experiments.remove_job(self._directory(request["job"])),
            "endpoint": self._endpoint,
            "start_again": self._start_again,
            "experiments": lambda request: agent_experiments.sizes(self._trials_of(request)),
            "remove_experiments": lambda request: agent_experiments.remove(self._trials_of(request), request["ids"]),
            "clock": lambda _: time.time(),
            "environments": lambda _: eviction.unused(self._environments),
            "remove_environment": lambda request: eviction.remove(self._environments, request["name"]),
            "slurm": self._slurm,
        }

    def serve(self) -> None:
        """Greet, and answer until the input ends."""
        greeting = {
            "hello": wire.VERSION, "python": ".".join(map(str, sys.version_info[:3])), "root": str(self._root),
            "hostname": socket.gethostname(), "boot_id": system.boot_id(), "executable": sys.executable,
        }  # fmt: skip
        self._write(greeting)
        self._watcher.start()
        threading.Thread(target=self._end_when_unasked, daemon=True).start()
        for line in sys.stdin.buffer:
            self._asked_s = time.monotonic()
            agent_experiments.touch_contacts(list(self._owners))
            threading.Thread(target=self._answer, args=(json.loads(line),), daemon=True).start()
        os._exit(0)

    def _end_when_unasked(self) -> None:
        """A server does not notice that a link is cut, so an agent would never exit."""
        while time.monotonic() - self._asked_s < _UNASKED_S:
            time.sleep(_UNASKED_S / 10)
        os._exit(0)

    def _write(self, message: Mapping[str, object]) -> None:
        with self._writing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def _answer(self, request: AgentRequest) -> None:
        answer: dict[str, object] = {"id": request["id"]}
        try:
            answer["ok"] = self._handlers[request["do"]](request)
        except AutotrainError as error:
            answer["failure"] = [error.found, error.expected, error.action]
        except OSError as error:
            answer["failure"] = [f"{error.filename or request['do']}: {error.strerror}.", "", ""]
        except Exception as error:  # noqa: BLE001 - whatever it is, the requester must not wait forever
            answer["failure"] = [f"The agent failed: {error!r}.", "", traceback.format_exc(limit=-2)]
        self._write(answer)

    def _directory(self, job: str) -> Path:
        directory = agent_files.inside(self._root / "jobs", job)
        self._owners.add(directory.parent)
        return directory

    def _trials_of(self, request: AgentRequest) -> Path:
        return agent_files.inside(self._root / "jobs", request["home"])

    def _inspect_python(self, request: AgentRequest) -> object:
        """What an interpreter of this host has of the distributions asked for."""
        return interpreters.inspect(sys.executable, request["environment"], request["distributions"], os.environ)

    def _start(self, request: AgentRequest) -> bool:
        """Start a job; False where its code or checkpoints are gone, and have to be sent again."""
        directory = self._directory(request["job"])
        needed = [Path(path) for path in (request["bundle"], request["trial"].get("resume_from")) if path]
        if not starting.has_begun(directory) and not self._code.use(needed, directory):
            return False
        self._start_once(directory, request)
        self._watcher.subscribe(request["job"], directory, dict.fromkeys(wire.STREAMS, 0))
        return True

    def _start_once(self, directory: Path, request: AgentRequest) -> None:
        backoff = starting.Backoff()
        while not starting.has_begun(directory):
            try:
                self._begin(directory, request)
            except (OSError, starting.StartError) as error:
                is_system = isinstance(error, OSError)
                number = error.errno if is_system else error.number  # type: ignore[union-attr]  # told apart above
                if not backoff.wait_if_transient(number):
                    raise starting.start_error(request["job"], directory, number, str(error)) from error
            else:
                return

    def _begin(self, directory: Path, request: AgentRequest) -> None:
        trial = dict(request["trial"])
        before = request["before"]
        trial["directory"] = str(directory)
        trial["bundle"] = request["bundle"]
        trial["python"] = sys.executable
        trial["environments"] = self._environments
        trial["environment"] = {**environment.of_this_machine(os.environ), **trial["environment"]}
        trial["contact"] = str(directory.parent / agent_experiments.CONTACT)
        own = str(self._directory(before) / wire.CHECKPOINTS) if before else ""
        trial["resume_from"] = trial.get("resume_from") or own
        for name in wire.FOLDERS:
            (directory / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        wire.write_atomically(str(directory / wire.TRIAL_FILE), json.dumps(trial).encode(), sync=False)
        if trial.get("elastic"):
            agent_ranks.keep(directory, trial)
        argv = (sys.executable, *system.INTERPRETER_FLAGS, str(start_supervisor.__file__), str(directory))
        starting.start(argv, {**os.environ, **request["secrets"]}, directory)

    def _start_again(self, request: AgentRequest) -> None:
        directory = self._directory(request["job"])
        self._watcher.unsubscribe(request["job"])
        if bundle := agent_ranks.prepare_again(directory):
            self._code.use([Path(bundle)], directory)
            argv = (sys.executable, *system.INTERPRETER_FLAGS, str(start_supervisor.__file__), str(directory))
            starting.start(argv, dict(os.environ), directory)

    def _subscribe(self, request: AgentRequest) -> None:
        """Push states and streams, by job and stream with their offsets; what there is now before the answer."""
        for job, offsets in request["jobs"].items():
            self._watcher.subscribe(job, self._directory(job), offsets)

    def _unsubscribe(self, request: AgentRequest) -> None:
        for job in request["jobs"]:
            self._watcher.unsubscribe(job)

    def _use_data(self, request: AgentRequest) -> bool:
        directory = self._directory(request["job"])
        sizes = {name: request[name] for name in ("size_bytes", "limit_bytes")}
        return agent_data.use(Path(self._data), directory, request["digest"], **sizes)

    def _put(self, request: AgentRequest) -> None:
        agent_files.put(self._directory(request["job"]), request["path"], base64.b64decode(request["data"]))

    def _append(self, request: AgentRequest) -> int:
        data = base64.b64decode(request["data"])
        return agent_files.append(self._directory(request["job"]), request["path"], request["offset"], data)

    def _slurm(self, request: AgentRequest) -> object:
        """Ask the controller of a cluster, whose login node this is."""
        with self._slurm_lock:
            if self._controller is None:
                from jupyter_autotrain.backends.slurm_login.controller import SlurmController  # noqa: PLC0415 - few hosts are

                self._controller = SlurmController(self._root)
        return self._controller.handle(request)

    def _cancel(self, request: AgentRequest) -> object:
        receipt = cancelling.cancel(self._directory(request["job"]), request["grace_s"])
        self._watcher.refresh(request["job"])
        return [receipt.pids_ended, receipt.pids_killed, receipt.pids_left, receipt.elapsed_s, receipt.note]

    def _endpoint(self, request: AgentRequest) -> object:
        directory = self._directory(request["job"])
        return agent_ranks.endpoint(directory, request["address"], request["peer"], request["count"])


def main(root: str) -> None:
    """Serve until the input ends."""
    os.umask(0o077)
    Agent(Path(root)).serve()

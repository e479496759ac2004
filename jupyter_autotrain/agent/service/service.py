"""The agent on a host: it starts supervisors and works on trial directories there, all over its standard streams.

One agent per host and connection. It keeps nothing: whatever it started goes on when it ends, and another agent finds
the same trial directories. It ends when its standard input does, or after a minute without a request.

The first line of output is the greeting; requests and answers are those of `request_loop`. Besides, what is new of
subscribed jobs comes unasked: `{"push": job, "status": status file, null or a doubt, "streams": {stream: [offset,
base64, fault, is_lasting]}, "sizes": {stream: size}}`, each part only where it is new, the sizes with a final state.

It tells the resources of the host as far as its account may use them.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_autotrain.agent import environment, system, wire
from jupyter_autotrain.agent.environments import eviction, interpreters
from jupyter_autotrain.agent.nodes import hosts
from jupyter_autotrain.agent.objects import agent_code
from jupyter_autotrain.agent.objects.data_cache import DataCache
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.service import cancelling, experiments, machine, starting, trial_files, warm_starts
from jupyter_autotrain.agent.service.request_loop import Handlers, Request, RequestLoop
from jupyter_autotrain.agent.service.watching import JobWatcher
from jupyter_autotrain.agent.trial import trial_file
from jupyter_autotrain.agent.trial.trial_file import TrialFile

if TYPE_CHECKING:
    from jupyter_autotrain.agent.slurm.controller import SlurmController

_UNASKED_S = 60.0


class Service:
    """The answers to requests about the trials of one host.

    Args:
        root: The folder of everything that is ours there.

    Attributes:
        handlers: The answers, by the names of requests.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._code = agent_code.CodeCache(root)
        self._held = agent_code.hold_own()
        self._asked_s = time.monotonic()
        self._loop = RequestLoop(sys.stdout.buffer)
        self._slurm_lock = threading.Lock()
        self._controller: SlurmController | None = None
        self._watcher = JobWatcher(self._loop.write)
        self._owners: set[Path] = set()
        self._warm_starts = warm_starts.WarmStarts(root / warm_starts.FOLDER, is_default=False)
        self._environments = str(root / "environments")
        self._data = str(root / "data")
        self.handlers: Handlers = {
            **trial_files.handlers(lambda request: self._directory(request["job"])),
            "ping": lambda _: os.statvfs(self._root).f_bavail,  # a host whose file server is gone is of no use
            "machine": lambda _: machine.describe(),
            "python": self._inspect_python,
            "make_room": lambda request: self._code.make_room(
                request["folder"], request["size_bytes"], request["limit_bytes"]
            ),
            "start": self._start,
            "subscribe": self._subscribe,
            "taken": lambda request: self._watcher.acknowledge(request["job"], request["stream"], request["offset"]),
            "unsubscribe": self._unsubscribe,
            "missing": lambda request: [path for path in request["paths"] if not Path(path).expanduser().exists()],
            "data_room": lambda request: DataCache(self._data, request["limit_bytes"]).room_bytes(),
            "use_data": self._use_data,
            "keep_data": lambda request: DataCache(self._data).complete(request["digest"]),
            "read": lambda request: [self._read(*cursor) for cursor in request["cursors"]],
            "locate": lambda request: [sys.path[0], str(self._directory(request["job"]))],
            "cancel": self._cancel,
            "remove": lambda request: experiments.remove_job(self._directory(request["job"])),
            "endpoint": self._endpoint,
            "start_again": self._start_again,
            "experiments": lambda request: experiments.sizes(self._trials_of(request)),
            "remove_experiments": lambda request: experiments.remove(self._trials_of(request), request["ids"]),
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
        self._loop.write(greeting)
        self._watcher.start()
        threading.Thread(target=self._end_when_unasked, daemon=True).start()
        self._loop.serve(sys.stdin.buffer, self.handlers, self._note_request)
        os._exit(0)

    def _note_request(self) -> None:
        self._asked_s = time.monotonic()
        experiments.touch_contacts(list(self._owners))

    def _end_when_unasked(self) -> None:
        """End the process when nobody asks: a server does not notice that a link is cut, so it would never exit."""
        while time.monotonic() - self._asked_s < _UNASKED_S:
            time.sleep(_UNASKED_S / 10)
        os._exit(0)

    def _directory(self, job: str) -> Path:
        directory = trial_files.inside(self._root / "jobs", job)
        self._owners.add(directory.parent)
        return directory

    def _trials_of(self, request: Request) -> Path:
        return trial_files.inside(self._root / "jobs", request["home"])

    def _inspect_python(self, request: Request) -> object:
        """Return the state of this host's interpreter and its versions of the distributions asked for."""
        return interpreters.inspect(sys.executable, request["environment"], request["distributions"], os.environ)

    def _start(self, request: Request) -> bool:
        """Start a job; return False where its code or checkpoints are gone, and have to be sent again."""
        directory = self._directory(request["job"])
        needed = [Path(path) for path in (request["bundle"], request["trial"].get("resume_from")) if path]
        if not starting.has_begun(directory) and not self._code.use(needed, directory):
            return False
        starting.begin_once(request["job"], directory, lambda: self._begin(directory, request))
        self._watcher.subscribe(request["job"], directory, dict.fromkeys(wire.STREAMS, 0))
        return True

    def _begin(self, directory: Path, request: Request) -> None:
        trial: TrialFile = request["trial"]
        before = request["before"]
        trial["directory"] = str(directory)
        trial["bundle"] = request["bundle"]
        trial["python"] = sys.executable
        trial["environments"] = self._environments
        trial["environment"] = {**environment.of_this_machine(os.environ), **trial["environment"]}
        trial["contact"] = str(directory.parent / experiments.CONTACT)
        own = str(self._directory(before) / wire.CHECKPOINTS) if before else ""
        trial["resume_from"] = trial.get("resume_from") or own
        for name in wire.FOLDERS:
            (directory / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        trial_file.write(trial)
        if trial.get("elastic"):
            hosts.keep(directory, trial, request["secrets"].get(wire.TOKEN_VARIABLE, ""))
        if self._warm_starts.start(trial, request["secrets"]):
            return
        argv = (sys.executable, *system.INTERPRETER_FLAGS, *program("supervisor"), str(directory))
        starting.start(argv, {**os.environ, **request["secrets"]}, directory)

    def _start_again(self, request: Request) -> None:
        directory = self._directory(request["job"])
        self._watcher.unsubscribe(request["job"])
        bundle, token = hosts.prepare_again(directory)
        if bundle:
            self._code.use([Path(bundle)], directory)
            argv = (sys.executable, *system.INTERPRETER_FLAGS, *program("supervisor"), str(directory))
            starting.start(argv, {**os.environ, wire.TOKEN_VARIABLE: token}, directory)

    def _subscribe(self, request: Request) -> None:
        """Push states and streams, by job and stream with their offsets; send all that is there before the answer."""
        for job, offsets in request["jobs"].items():
            self._watcher.subscribe(job, self._directory(job), offsets)

    def _unsubscribe(self, request: Request) -> None:
        for job in request["jobs"]:
            self._watcher.unsubscribe(job)

    def _use_data(self, request: Request) -> bool:
        """Keep an entry of the data cache for a trial; where it is not there, make room for it and return False."""
        cache = DataCache(self._data, request["limit_bytes"])
        if cache.use(request["digest"], str(self._directory(request["job"]))):
            return True
        cache.make_room(request["size_bytes"])
        return False

    def _read(self, job: str, stream: str, offset: int) -> list[object]:
        """Return new bytes of a stream that is not watched, the fault of a failed read, and whether it lasts."""
        directory = self._directory(job)
        content, _, fault, is_lasting = trial_files.read_piece(directory, stream, offset, trial_files.MOST_BYTES)
        return [content, fault, is_lasting]

    def _slurm(self, request: Request) -> object:
        """Ask the controller of a cluster, whose login node this is."""
        with self._slurm_lock:
            if self._controller is None:
                from jupyter_autotrain.agent.slurm.controller import SlurmController  # noqa: PLC0415 - few hosts are

                self._controller = SlurmController(self._root)
        return self._controller.handle(request)

    def _cancel(self, request: Request) -> object:
        receipt = cancelling.cancel(self._directory(request["job"]), request["grace_s"])
        self._watcher.refresh(request["job"])
        return receipt.to_json()

    def _endpoint(self, request: Request) -> object:
        directory = self._directory(request["job"])
        return hosts.endpoint(directory, request["address"], request["peer"])


def main(root: str) -> None:
    """Serve until the input ends."""
    os.umask(0o077)
    Service(Path(root)).serve()

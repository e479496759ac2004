"""The requests of an agent for cells: each runs in a process of its own, and is asked for later by its id."""

from __future__ import annotations

import json
import os
import secrets as randomness
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.client.agent_request import CellRequest, Grant, read_answer, write_answer
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.mcp.notebook_file import MAGIC, NotebookFile

_PROGRAM: Final = "jupyter_autotrain.mcp.cell_runner"
_OUTPUT: Final = "output.txt"
_PROCESS: Final = "process.json"
_SHOWN_BYTES: Final = 2000
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A cell as an agent names it.

    Attributes:
        notebook: The notebook's path, relative to the server's folder.
        cell: The cell's number or id.
        trials: How many trials instead of what its header says.
        place: Where it runs instead of where its header says; "": as it says.
        name: The experiment's name; "": as the cell says.
    """

    notebook: str
    cell: str
    trials: int | None = None
    place: str = ""
    name: str = ""


@dataclass(slots=True)
class CellRequests:
    """The requests of one server.

    Attributes:
        home: The home.
        folder: The folder below which notebooks lie.
        environ: The variables that kernels and trials get.
        grant: What may be submitted; its trials are counted down.
        may_stop: Whether earlier runs may be stopped.
    """

    home: Home
    folder: Path
    environ: Mapping[str, str]
    grant: Grant
    may_stop: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reserved: dict[str, int] = field(default_factory=dict)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, kind: Literal["submit", "plan"], wanted: Wanted, asked_by: str) -> str:
        """Begin to fulfil a wish, and return its id at once.

        Raises:
            AutotrainError: There is no such cell, or the grant does not cover it.
        """
        notebook = NotebookFile.read(wanted.notebook, self.folder)
        cell = notebook.training_cell(wanted.cell)
        first, _, body = cell.source.partition("\n")
        place = f" --backend {shlex.quote(wanted.place)}" if wanted.place else ""
        line = f"{first.removeprefix(MAGIC)}{place}"
        parsed = header.parse_cell(line, body, backends.header_context(notebook.path.parent, self.environ))
        with self._lock:
            left = replace(self.grant, trials=self.grant.trials - self._used())
            request = CellRequest(
                kind, str(notebook.path), notebook.kernel, notebook.above(cell), line, body,
                wanted.trials, wanted.name, asked_by, left, self.may_stop,
            )  # fmt: skip
            trials = request.limited(parsed.header).trial_count
            request_id = randomness.token_hex(_ID_BYTES)
            self._spawn(request_id, request)
            if kind == "submit":
                self._reserved[request_id] = trials
        return request_id

    def _used(self) -> int:
        """Return how many trials were asked for; those of requests that have come to nothing are given back."""
        for request_id in list(self._reserved):
            if "error" in self.status(request_id):
                del self._reserved[request_id]
        return sum(self._reserved.values())

    def _spawn(self, request_id: str, request: CellRequest) -> None:
        folder = self.home.agent_requests / request_id
        make_private(self.home)
        self.home.agent_requests.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        request.write(folder)
        self._processes = [process for process in self._processes if process.poll() is None]
        with open(folder / _OUTPUT, "wb", opener=files.private_opener) as output:
            process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(folder)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=Path(request.notebook).parent, env=dict(self.environ), start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        identity = json.dumps(ProcessIdentity.of(process.pid).to_json())
        wire.write_atomically(str(folder / _PROCESS), identity.encode())

    def status(self, request_id: str) -> JsonObject:
        """Return `{"state": "preparing"}`, or what the cell runner has answered.

        Raises:
            AutotrainError: There is no such request.
        """
        folder = self.home.agent_requests / os.path.basename(request_id)  # noqa: PTH119 - an id, no path
        if not request_id or not folder.is_dir():
            raise AutotrainError(f"There is no request {request_id!r}.", "An id that a tool has returned.", "")
        found = read_answer(folder)
        if found is None and not _is_alive(folder):
            found = read_answer(folder)  # it may have answered just before it ended
            if found is None:
                tail = files.read(folder, _OUTPUT, 1 << 20)[-_SHOWN_BYTES:].decode(errors="replace")
                write_answer(folder, {"error": f"The process that ran the cells has ended. It printed: {tail}"})
                found = read_answer(folder)
        return {"state": "preparing"} if found is None else found

    def cancel(self, request_id: str) -> None:
        """End the cells that run for a request; what it has submitted already goes on."""
        if self.status(request_id) == {"state": "preparing"}:
            identity = _process(self.home.agent_requests / request_id)
            if identity is not None and identity.is_alive():
                os.kill(identity.pid, signal.SIGTERM)


def _is_alive(folder: Path) -> bool:
    try:
        identity = _process(folder)
    except OSError as error:
        return files.is_absent(error)
    return identity is not None and identity.is_alive()


def _process(folder: Path) -> ProcessIdentity | None:
    return ProcessIdentity.from_json(files.read_json(folder, _PROCESS))

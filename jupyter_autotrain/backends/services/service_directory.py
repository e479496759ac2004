"""The directory of a trial at a service: asked for in its job while that runs, as collected afterwards."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import IO, Final, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.service import trial_files
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.directories import listing_below, sizes, write_pieces
from jupyter_autotrain.backends.local.trial_directory import LocalDirectory
from jupyter_autotrain.backends.services.following import JobFollower
from jupyter_autotrain.backends.services.service import Service
from jupyter_autotrain.backends.services.tracked_job import ServiceJob
from jupyter_autotrain.errors import BackendError

SETTLE_S: Final = 30.0  # for the service to say how a job stands
_PIECE_BYTES = 2 << 20
_PASSED_ON = frozenset({wire.STOP_FILE, wire.CANCEL_FILE})  # the first node tells the others


class ServiceDirectory:
    """The directory of a trial at a service.

    Args:
        service: The service.
        follower: Follows its job.
        job: The trial.
    """

    def __init__(self, service: Service, follower: JobFollower, job: ServiceJob) -> None:
        self._service = service
        self._follower = follower
        self._job = job
        self._collected = LocalDirectory(job.collected.directory)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, in the running job; in what is collected where it has ended."""
        trial_files.inside(self._collected.path, path)
        if self._job.final is not None:
            self._collected.put(path, data)
            return
        request: JsonObject = {"do": "put", "path": path, "data": base64.b64encode(data).decode()}
        self._ask(request)
        for node in range(1, len(self._job.collected.nodes)):
            if path not in _PASSED_ON and self._job.collected.nodes[node].listing() is None:
                self._ask(request, node)
        self._follower.look_soon()

    def _ask(self, request: JsonObject, node: int = 0) -> object:
        self._follower.wait_known(self._job, SETTLE_S)
        state = self._job.state
        if state is None or state.state is not TrialState.RUNNING:
            raise BackendError(f"Job {self._job.ref.job_id} does not run: {request['path']} is not there.")
        return self._service.ask(self._job.ref, state, request, node)

    def listing(self, path: str) -> Mapping[str, int] | int:
        """Return the size of a file, or the sizes of all below a folder."""
        return listing_below(self._all_sizes(), path, self._job.ref.job_id)

    def _all_sizes(self) -> dict[str, int]:
        if self._job.final is None:
            found = cast("dict[str, int]", self._ask({"do": "list", "path": "."}))
            return {name: size for name, size in found.items() if size >= 0}
        missing = {path: size for path, _, size in self._job.collected.nodes[0].missing()}
        return {**missing, **sizes(self._collected, ".")} if self._collected.path.is_dir() else missing

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:
        """Read a file, in pieces where it is in its job.

        Raises:
            BackendError: It was not collected.
        """
        if self._job.final is None:

            def piece(offset: int) -> bytes:
                return self._follower.piece(self._job, path, offset, min(_PIECE_BYTES, size_bytes - offset))

            write_pieces(part, size_bytes, piece)
            return
        if not (self._collected.path / path).exists():
            raise BackendError(
                f"{path} of job {self._job.ref.job_id} was not collected: its job has ended.", "",
                "Raise `fetch_limit:` of the header.",
            )  # fmt: skip
        self._collected.receive(path, size_bytes, part)

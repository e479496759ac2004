"""A cluster whose commands are on a login node that is reached by SSH."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.slurm.cluster import MOVED
from jupyter_autotrain.backends.ssh import data_sending, fetching
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_configs import host_configs
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.transport import LinkLostError
from jupyter_autotrain.core import home_identity
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, SubmitUnknownError

_LOGIN_OPTIONS = ("transport", "user", "port", "key_file", "config_file", "python", "workdir")


class RemoteCluster:
    """Slurm's commands are on a login node; its agent asks them.

    Args:
        link: The link to the login node.
        context: The home, whose bundles are sent.
    """

    shares_home = False

    def __init__(self, link: HostLink, context: BackendContext) -> None:
        self._link = link
        self._context = context
        self._owner = home_identity.identity(context.home)

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the controller, by way of the agent."""
        try:
            return self._link.ask("slurm", call=call, **content)
        except LinkLostError as error:
            if call != "submit":
                raise
            raise SubmitUnknownError(error.found, error.expected, error.action) from error

    def ref_data(self, job_id: str) -> JsonObject:
        """The host, and the job's folder there."""
        return {"host": self._link.name, "directory": f"{self._owner}/{job_id}"}

    def trials_folder(self) -> str:
        """A folder of this home's own."""
        return self._owner

    def experiments_there(self) -> Mapping[str, int]:
        """Have the agent look."""
        return cast("dict[str, int]", self._link.ask("experiments", home=self._owner))

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Have the agent delete them, and the code that none needs any more."""
        self._link.ask("remove_experiments", home=self._owner, ids=sorted(experiments))
        self.ask("remove_code")

    def send_bundle(self, trial: TrialSpec) -> str:
        """Send it, unless it is there."""
        return self._link.sent.send_bundle(self._context.bundle(trial))

    def forget_bundle(self, path: str) -> None:
        """Another process has had it removed."""
        self._link.sent.forget(path)

    def send_checkpoints(self, kept: Path, job_id: str) -> str:
        """Send them, unless they are there."""
        return self._link.sent.send_to_job(kept, f"{self.ref_data(job_id)['directory']}/{MOVED}")

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:
        """Send it, unless it is there."""
        job = str(self.ref_data(trial.job_id)["directory"])
        return data_sending.place(self._link, job, trial, self._context, limit_bytes)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """One question for all streams. The agent does not watch them by itself: it would look for processes there."""
        asked = [[_directory(cursor.ref), cursor.stream, cursor.offset] for cursor in cursors]
        try:
            told = cast("list[list[str | bool]]", self.ask("read", cursors=asked))
        except AutotrainError as error:
            return [Chunk(cursor, b"", error.found.rstrip(".")) for cursor in cursors]
        chunks = []
        for cursor, (data, fault, is_lasting) in zip(cursors, told, strict=True):
            chunks.append(Chunk(cursor, base64.b64decode(str(data)), str(fault), bool(is_lasting)))
        return chunks

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Have the agent write it."""
        self._link.ask("put", job=_directory(ref), path=path, data=base64.b64encode(data).decode())

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Have the agent read it."""
        fetching.fetch(self._link, _directory(ref), path, Path(target))

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Have the agent look at each file."""
        return fetching.sizes(self._link, _directory(ref), path)

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Those that the login node lacks."""
        missing = cast("list[str]", self._link.ask("missing", paths=list(paths)))
        return [(self._link.name, path) for path in missing]

    def close(self) -> None:
        """Give up the connection."""
        self._link.close()


def login_host(profile: Profile) -> HostConfig | None:
    """How the login node of a profile is reached; None where Slurm's commands are here."""
    options = profile.options
    if not options.get("via"):
        return None
    given = {key: options[key] for key in _LOGIN_OPTIONS if options.get(key) is not None}
    # Slurm begins a job whenever it likes: none of its code may make room for that of another one.
    unlimited: JsonObject = {"hosts": [options["via"]], "cache_limit": None}
    configs = host_configs(Profile(profile.name, "ssh", {**unlimited, **given}))
    return next(iter(configs.values()))


def _directory(ref: JobRef) -> str:
    return str(ref.data.get("directory") or "unknown")

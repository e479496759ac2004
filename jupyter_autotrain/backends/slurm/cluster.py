"""The two ways to a cluster: Slurm's commands are on this machine, or on a login node that is reached by SSH."""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.backends.slurm_login.controller import SlurmController
from jupyter_autotrain.backends.ssh import data_sending, fetching
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.agent_tree import agent_folder
from jupyter_autotrain.backends.ssh.host_configs import host_configs
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.sending import FolderManifest, scan_folder
from jupyter_autotrain.backends.ssh.transport import LinkLostError
from jupyter_autotrain.core import system
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, SubmitUnknownError

_LOGIN_OPTIONS = ("transport", "user", "port", "key_file", "config_file", "python", "workdir")


class Cluster(Protocol):
    """Where Slurm's commands run, and where the trial directories lie as the nodes see them."""

    shares_home: bool  # the trial directories are the home's own

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the `SlurmController` there.

        Raises:
            BackendError: Slurm refuses, or does not answer.
            BackendUnavailableError: The login node does not answer.
        """
        ...

    def ref_data(self, job_id: str) -> JsonObject:
        """What a `JobRef` of this job holds; `directory` is what the controller calls its trial directory."""
        ...

    def trials_folder(self) -> str:
        """What the controller calls the folder of all trial directories of this home."""
        ...

    def send_bundle(self, trial: TrialSpec) -> str:
        """Make the bundle of a trial available to the nodes; gives its path there."""
        ...

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:
        """Make the data of a trial available to the nodes; gives what `trial.json` says of it, where it changes.

        Raises:
            DataError: It was changed since the submission.
        """
        ...

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """As `Backend.read`."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """As `Backend.put`."""
        ...

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """As `Backend.fetch`."""
        ...

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """As `Backend.sizes`."""
        ...

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """As `Backend.missing_paths`."""
        ...

    def close(self) -> None:
        """As `Backend.close`."""
        ...


class LocalCluster(trial_directory.TrialDirectoryBackend):
    """Slurm's commands are here. Trials run in the home's trial directories, or below `workdir`.

    Args:
        workdir: A folder that the nodes share; "" where they share the home.
        context: The home.
    """

    def __init__(self, workdir: str, context: BackendContext) -> None:
        self.shares_home = not workdir
        self._context = context
        self._root = Path(workdir).expanduser().absolute() if workdir else context.home.root / "slurm"
        self._controller = SlurmController(self._root)
        self._has_code = False

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the controller, in this process."""
        return cast("JsonValue", self._controller.handle({"call": call, **content}))

    def ref_data(self, job_id: str) -> JsonObject:
        """The absolute path of the trial directory."""
        if self.shares_home:
            experiment_id, number, attempt = job_id.rsplit("-", 2)
            return {"directory": str(self._context.home.trial(experiment_id, int(number), int(attempt)))}
        return {"directory": str(self._root / "jobs" / owner(self._context) / job_id)}

    def trials_folder(self) -> str:
        """The home's own, or one below `workdir`."""
        return str(self._context.home.root if self.shares_home else self._root / "jobs" / owner(self._context))

    def send_bundle(self, trial: TrialSpec) -> str:
        """The home's own, or a copy below `workdir`."""
        bundle = self._context.bundle(trial)
        if self.shares_home:
            return str(bundle)
        if not self._has_code:
            self._controller.code = _copy(agent_folder(), self._root / "agents")
            self._has_code = True
        return str(_copy(scan_folder(bundle), self._root / "bundles"))

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:  # noqa: ARG002 - nothing is copied
        """It is read where it lies: the nodes see this machine's files."""
        trial_directory.check_data(trial, self._context)
        return {}

    def close(self) -> None:
        """Nothing is held."""


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
        return {"host": self._link.name, "directory": f"{owner(self._context)}/{job_id}"}

    def trials_folder(self) -> str:
        """A folder of this home's own."""
        return owner(self._context)

    def send_bundle(self, trial: TrialSpec) -> str:
        """Send it, unless it is there."""
        return self._link.send_bundle(self._context.bundle(trial))

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


def _directory(ref: JobRef) -> str:
    return str(ref.data.get("directory") or "unknown")


def login_host(profile: Profile) -> HostConfig | None:
    """How the login node of a profile is reached; None where Slurm's commands are here."""
    options = profile.options
    if not options.get("via"):
        return None
    given = {key: options[key] for key in _LOGIN_OPTIONS if options.get(key) is not None}
    configs = host_configs(Profile(profile.name, "ssh", {"hosts": [options["via"]], **given}))
    return next(iter(configs.values()))


def owner(context: BackendContext) -> str:
    """A short name of a home on a machine, so that several may use one account."""
    name = system.machine_name() or platform.node()
    return hashlib.sha256(f"{name}\n{context.home.root}".encode()).hexdigest()[:12]


def _copy(folder: FolderManifest, parent: Path) -> Path:
    """Copy a folder to one named by its digest, unless it is there."""
    goal = parent / folder.digest
    if goal.is_dir():
        return goal
    draft = parent / f"{folder.digest}.draft-{id(folder)}"
    for name in folder.folders:
        (draft / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in folder.files:
        target = draft / file.path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(file.source, target)
        target.chmod(0o700 if file.is_executable else 0o600)
    try:
        draft.rename(goal)
    except OSError:  # another one was faster
        shutil.rmtree(draft, ignore_errors=True)
    return goal

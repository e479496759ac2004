"""A cluster of Slurm: where its commands run, and the trial directories as its nodes see them.

The commands are on this machine, or on a login node whose agent asks them. Checkpoints that a trial goes on from are of
its earlier attempts, on the cluster or on another backend.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.service import experiments as trials_there
from jupyter_autotrain.agent.slurm import leftovers
from jupyter_autotrain.agent.slurm.controller import SlurmController
from jupyter_autotrain.backends import travelling_code, trial_content
from jupyter_autotrain.backends.directories import sizes
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.backends.ssh import trial_needs
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_configs import host_configs
from jupyter_autotrain.backends.ssh.link import HostDirectory, HostLink
from jupyter_autotrain.backends.transfer import folders, sending
from jupyter_autotrain.backends.transfer.channels import LinkLostError
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.backends.trial_content import in_home
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef
from jupyter_autotrain.core.home import home_identity
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, SubmitUnknownError

_LOGIN_OPTIONS = ("transport", "user", "port", "key_file", "config_file", "python", "workdir")
MOVED = "moved"  # in the directory of a job that ran elsewhere: its checkpoints, below their digest


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
        self._jobs_folder = self._root / "jobs" / (home_identity(context.home) if workdir else "")
        self._controller = SlurmController(self._root)
        self._has_code = False

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the controller, in this process."""
        return cast("JsonValue", self._controller.handle({"call": call, **content}))

    def ref_data(self, job_id: str) -> JsonObject:
        """Return the absolute path of the trial directory."""
        if self.shares_home:
            experiment_id, number, attempt = job_id.rsplit("-", 2)
            return {"directory": str(self._context.home.trial(experiment_id, int(number), int(attempt)))}
        return {"directory": str(self._jobs_folder / job_id)}

    def trials_folder(self) -> str:
        """Return the folder of the home itself, or one below `workdir`."""
        return str(self._context.home.root if self.shares_home else self._jobs_folder)

    def experiments_there(self) -> Mapping[str, int]:
        """Return the experiments below `workdir`, with their bytes."""
        return {} if self.shares_home else trials_there.sizes(Path(self.trials_folder()))

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Remove experiments below `workdir`, and the code there that none needs any more."""
        if not self.shares_home:
            trials_there.remove(Path(self.trials_folder()), experiments)
            self.ask("remove_code")

    def send_bundle(self, trial: TrialSpec) -> str:
        """Return the bundle in the home, or a copy of it below `workdir`."""
        bundle = self._context.bundle(trial)
        if self.shares_home:
            return str(bundle)
        if not self._has_code:
            self._controller.code = Path(self._send(folders.of_agent(travelling_code.archive()), "agents"))
            self._has_code = True
        return self._send(folders.scan_folder(bundle), leftovers.FOLDER)

    def forget_bundle(self, path: str) -> None:
        """Do nothing, because the bundle is looked for each time."""

    def send_checkpoints(self, kept: Path, job_id: str) -> str:
        """Return the checkpoints in the home, or a copy of them below `workdir`."""
        if self.shares_home:
            return str(kept)
        directory = Path(str(self.ref_data(job_id)["directory"])).relative_to(self._root)
        return self._send(folders.scan_folder(kept), f"{directory}/{MOVED}")

    def _send(self, folder: FolderManifest, kind: str) -> str:
        return sending.send_here(folder, str(self._root), kind)

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:  # noqa: ARG002 - nothing is copied
        """Check the data, which is read where it lies: the nodes see this machine's files."""
        trial_directory.check_data(trial, self._context)
        return {}

    def close(self) -> None:
        """Do nothing, because nothing is held."""


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
        self._owner = home_identity(context.home)

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the controller, by way of the agent."""
        try:
            return self._link.ask("slurm", call=call, **content)
        except LinkLostError as error:
            if call != "submit":
                raise
            raise SubmitUnknownError(error.found, error.expected, error.action) from error

    def ref_data(self, job_id: str) -> JsonObject:
        """Return the host, and the job's folder there."""
        return {"host": self._link.name, "directory": f"{self._owner}/{job_id}"}

    def trials_folder(self) -> str:
        """Return the folder that is this home's own."""
        return self._owner

    def experiments_there(self) -> Mapping[str, int]:
        """Have the agent find the experiments with trial directories, and their bytes."""
        return cast("dict[str, int]", self._link.ask("experiments", home=self._owner))

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Have the agent delete experiments, and the code that none needs any more."""
        self._link.ask("remove_experiments", home=self._owner, ids=sorted(experiments))
        self.ask("remove_code")

    def send_bundle(self, trial: TrialSpec) -> str:
        """Send it, unless it is there."""
        return self._link.sent.send_bundle(self._context.bundle(trial))

    def forget_bundle(self, path: str) -> None:
        """Forget a bundle that another process has had removed."""
        self._link.sent.forget(path)

    def send_checkpoints(self, kept: Path, job_id: str) -> str:
        """Send them, unless they are there."""
        return self._link.sent.send_to_job(kept, f"{self.ref_data(job_id)['directory']}/{MOVED}")

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:
        """Send it, unless it is there."""
        job = str(self.ref_data(trial.job_id)["directory"])
        return trial_needs.place_data(self._link, job, trial, self._context, limit_bytes)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Ask one question for all streams.

        The agent does not watch them by itself, because it would look for processes there.
        """
        asked = [[_directory(cursor.ref), cursor.stream, cursor.offset] for cursor in cursors]
        try:
            told = cast("list[list[str | bool]]", self._link.ask("read", cursors=asked))
        except AutotrainError as error:
            return [Chunk(cursor, b"", error.found.rstrip(".")) for cursor in cursors]
        chunks = []
        for cursor, (data, fault, is_lasting) in zip(cursors, told, strict=True):
            chunks.append(Chunk(cursor, base64.b64decode(str(data)), str(fault), bool(is_lasting)))
        return chunks

    def directory_of(self, ref: JobRef) -> HostDirectory:
        """Return the directory of a job, by the agent's requests."""
        return HostDirectory(self._link, _directory(ref))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Return the paths that the login node lacks."""
        missing = cast("list[str]", self._link.ask("missing", paths=list(paths)))
        return [(self._link.name, path) for path in missing]

    def close(self) -> None:
        """Give up the connection."""
        self._link.close()


Cluster: TypeAlias = LocalCluster | RemoteCluster


def login_host(profile: Profile) -> HostConfig | None:
    """Return the way to reach the login node of a profile; None where Slurm's commands are here."""
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


def from_last_saved(cluster: Cluster, trial: TrialSpec, context: BackendContext) -> TrialSpec:
    """Return the trial, set to go on from the last attempt with checkpoints in the home or on the cluster.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """
    return trial_content.from_last_saved(trial, context, lambda attempt: _are_there(cluster, trial, attempt))


def _are_there(cluster: Cluster, trial: TrialSpec, attempt: int) -> bool:
    job_id = trial.job_id_of(attempt)
    ref = JobRef("", job_id, cluster.ref_data(job_id))
    return trial_content.are_there(lambda: sizes(cluster.directory_of(ref), wire.CHECKPOINTS))


def folder_there(cluster: Cluster, trial: TrialSpec) -> str:
    """Return the folder of the attempt gone on from, as the controller names it; "" where there is none."""
    before = trial.resume_attempt
    return "" if before is None else f"{cluster.ref_data(trial.job_id_of(before))['directory']}/{wire.CHECKPOINTS}"


def have(cluster: Cluster, trial: TrialSpec, context: BackendContext) -> JsonObject:
    """Send the home's checkpoints of the attempt before to the cluster, where it lacks them.

    Return the entries of `trial.json` that this changes.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """
    found = in_home(context, trial)
    if found is None or trial.resume_attempt is None:
        return {}
    if _are_there(cluster, trial, trial.resume_attempt):
        return {}
    return {"resume_from": cluster.send_checkpoints(found, trial.job_id_of(trial.resume_attempt))}


class CodeGoneError(BackendError):
    """The code of a trial was removed from the cluster after it was sent, as another experiment with the same was."""

    def __init__(self) -> None:
        super().__init__(
            "The code of the trial was removed from the cluster before Slurm had the trial.",
            "It stays while an experiment there needs it.",
            "Retry.",
        )

"""The Slurm backend: trials as jobs of a cluster, or as tasks of its arrays.

The trial directory lies on a file system that the nodes share. The supervisor of every other backend runs in the job
and writes the same files; this side reads them by cursor, and asks Slurm for what they cannot say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import environment as core_environment
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.directories import TrialDirectories, TrialDirectory
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.backends.slurm import cluster, job_script
from jupyter_autotrain.backends.slurm.cluster import Cluster, CodeGoneError, LocalCluster, RemoteCluster, login_host
from jupyter_autotrain.backends.slurm.job_script import Batcher
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import (
    BackendContext,
    CancelReceipt,
    Chunk,
    Cursor,
    JobRef,
    JobStatus,
    Probe,
    Submission,
)
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

if TYPE_CHECKING:
    from pydantic import BaseModel

_LOCAL_POLL = PollInterval(least_s=0.02, most_s=1.0)  # mostly a look at a file
_REMOTE_POLL = PollInterval(least_s=0.05, most_s=2.0)


class SlurmBackend(TrialDirectories):
    """A backend that runs each trial as a job of Slurm; those that are submitted together are the tasks of one array.

    Args:
        profile: Its name and options.
        context: The home.
        link: Makes the link to the login node.
    """

    def __init__(
        self,
        profile: Profile,
        context: BackendContext,
        link: Callable[[HostConfig], HostLink] = HostLink,
    ) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        login = login_host(profile)
        self._cluster: Cluster
        if login is None:
            self._cluster = LocalCluster(str(profile.options.get("workdir") or ""), context)
        else:
            self._cluster = RemoteCluster(link(login), context)
        self.poll_interval = _LOCAL_POLL if login is None else _REMOTE_POLL
        self.capabilities = Capabilities(
            multi_node=True, multi_worker=True, gpu_slots=True, limits_memory=True,
            limits_cpu=True, secrets=True, shares_home=self._cluster.shares_home, queues=True,
        )  # fmt: skip
        self._batcher = Batcher(self._hand_over)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return the model of the options: partition, account, login node, and what else `sbatch` gets."""
        from jupyter_autotrain.backends.slurm.options import SlurmOptions  # noqa: PLC0415 - pydantic is slow

        return SlurmOptions

    def probe(self) -> Probe:
        """Report whether Slurm's commands answer."""
        try:
            version = str(self._cluster.ask("version"))
        except AutotrainError as error:
            is_lasting = "no `" in error.found
            return Probe(False, error.found, is_lasting=is_lasting)
        return Probe(True, f"{version} answers{self._where()}.")

    def _where(self) -> str:
        host = self._cluster.ref_data("e-1-1").get("host")
        return f" on {host}" if host else ""

    def discover(self) -> Inventory:
        """Return the nodes that can run jobs: those of the profile's partition where it names one."""
        partition = str(self._profile.options.get("partition") or "")
        rows = cast("list[JsonObject]", self._cluster.ask("nodes", partition=partition))
        return Inventory(tuple(map(_node, rows)), limits="limits are kept by Slurm and by each supervisor")

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the script that `sbatch` gets, the variables set for the trial, and `trial.json`."""
        content = self._content(trial, placement)
        how = "As one job; trials that are submitted together become an array"
        if pilots := job_script.pilots(trial, self._options(trial)):
            how = f"In a job that runs one trial after another, one of {pilots} at most"
        return Submission(
            argv=("sbatch", "--parsable", f"{job_script.BATCH}/script"),
            env=environment.complete(content, dict.fromkeys(trial.secrets, "(secret, given at submit)")),
            files={
                "script": job_script.render(trial, self._options(trial)),
                wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True),
            },
            notes=(f"{how}{self._where()}.",),
        )

    def _options(self, trial: TrialSpec) -> JsonObject:
        return {**self._profile.options, **trial.options}

    def _content(self, trial: TrialSpec, placement: Placement) -> JsonObject:
        """Return the content of `trial.json`; the login node fills in what is empty."""
        here = trial_directory.trial_file_content(trial, placement, self._profile, self._context)
        local = cast("JsonObject", here)
        directory = self._cluster.ref_data(trial.job_id)["directory"]
        return {
            **local, **(_elsewhere(trial, local) if self._profile.options.get("via") else {}),
            **_given_python(self._profile), "directory": directory, "gpus": [],
            "resume_from": cluster.folder_there(self._cluster, trial),
        }  # fmt: skip

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Hand the trial to Slurm, with those submitted at the same time; a second call starts no second job."""
        trial = cluster.from_last_saved(self._cluster, trial, self._context)
        limit_bytes = cast("int | None", self._options(trial).get("data_cache_limit"))
        content = {
            **self._content(trial, placement), **self._cluster.place_data(trial, limit_bytes),
            **cluster.have(self._cluster, trial, self._context),
        }  # fmt: skip
        data = self._cluster.ref_data(trial.job_id)
        reuse = job_script.pilots(trial, self._options(trial))
        task: JsonObject = {"directory": data["directory"], "secrets": dict(secrets), "reuse": reuse}
        try:
            self._submit_with_code(trial, task, content)
        except CodeGoneError:
            self._submit_with_code(trial, task, content)
        return JobRef(self.name, trial.job_id, data)

    def _submit_with_code(self, trial: TrialSpec, task: JsonObject, content: JsonObject) -> None:
        bundle = self._cluster.send_bundle(trial)
        whole: JsonObject = {**task, "trial": {**content, "bundle": bundle}}
        try:
            self._batcher.submit(whole, job_script.render(trial, self._options(trial)))
        except CodeGoneError:
            self._cluster.forget_bundle(bundle)
            raise

    def _hand_over(self, tasks: Sequence[JsonObject], script: str) -> None:
        python = self._profile.options.get("python") or ""
        if not self._cluster.ask("submit", tasks=tasks, script=script, python=python):
            raise CodeGoneError

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Ask one question for all jobs; a state that cannot be told now is a doubt, never an end."""
        directories = [str(ref.data.get("directory") or "/nonexistent") for ref in refs]
        try:
            told = cast("list[JsonValue]", self._cluster.ask("poll", directories=directories))
        except AutotrainError as error:
            doubt = error.found.rstrip(".")
            unreachable = isinstance(error, BackendUnavailableError)
            return [JobStatus(ref, TrialState.PREPARING, doubt=doubt, unreachable=unreachable) for ref in refs]
        return [agent_answers.status(ref, answer) for ref, answer in zip(refs, told, strict=True)]

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Read the streams' files from their cursors on."""
        return self._cluster.read(cursors)

    def directory_of(self, ref: JobRef) -> TrialDirectory:
        """Return the directory of a job on the nodes' file system."""
        return self._cluster.directory_of(ref)

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Return the paths that the login node lacks; it shares its folders with the nodes."""
        return self._cluster.missing_paths(paths)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """Have the supervisor end the tree, and Slurm the job; the pids are those of the node."""
        directory = str(ref.data.get("directory") or "/nonexistent")
        return agent_answers.receipt(self._cluster.ask("cancel", directory=directory, grace_s=grace_s))

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Return the trials that none of these experiments needs, and the environments that no trial uses."""
        return self._leftovers(experiments, is_removed=False)

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """End and remove the trials and environments that `leftovers` finds."""
        return self._leftovers(experiments, is_removed=True)

    def _leftovers(self, experiments: Collection[str], *, is_removed: bool) -> Sequence[str]:
        folder = self._cluster.trials_folder()
        of = {"folder": folder, "experiments": sorted(experiments), "is_removed": is_removed}
        return cast("list[str]", self._cluster.ask("leftovers", of=of))

    def experiments_there(self) -> Mapping[str, int]:
        """Return the experiments that have trial directories on the nodes' file system, with their bytes."""
        return self._cluster.experiments_there()

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Delete the trial directories of experiments there."""
        self._cluster.remove_experiments(experiments)

    def close(self) -> None:
        """Give up the connection to the login node; jobs continue."""
        self._cluster.close()


def _given_python(profile: Profile) -> JsonObject:
    return {"python": profile.options["python"]} if profile.options.get("python") else {}


def _elsewhere(trial: TrialSpec, local: JsonObject) -> JsonObject:
    """Return the entries that differ where this machine's files are not seen.

    The login node fills in those that are empty.
    """
    variables = dict(core_environment.travelling(trial.environment))
    empty: JsonObject = {"data_folder": ""} if "data_folder" in local else {}
    return {**empty, "python": "", "environments": "", "environment": variables}


def _node(row: JsonObject) -> Node:
    name = str(row["name"])
    gpus: list[Accelerator] = []
    for kind, count in cast("list[tuple[str | None, int]]", row["gpus"]):
        gpus += [Accelerator(index, f"{name}:gpu{index}", kind) for index in range(len(gpus), len(gpus) + count)]
    cpus = cast("int", row["cpus"])
    memory_bytes = cast("int", row["memory_bytes"])
    labels = {"partitions": str(row["partitions"]), "state": str(row["state"])}
    return Node(name, float(cpus) if cpus else None, memory_bytes or None, tuple(gpus), labels=labels)

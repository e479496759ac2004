"""The SSH backend: trials on hosts that are reached by SSH; each host's supervisors outlive the link to it."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environments.python_environment import InterpreterReport, PythonEnvironment
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.directories import TrialDirectories
from jupyter_autotrain.backends.ssh import host_survey, trial_needs
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_checks import HostChecks
from jupyter_autotrain.backends.ssh.host_configs import host_configs, network_of
from jupyter_autotrain.backends.ssh.host_survey import HostSurvey
from jupyter_autotrain.backends.ssh.link import HostDirectory, HostLink
from jupyter_autotrain.backends.ssh.multi_node import MultiNode, job_id_of, may_lack, node_refs, read_streams
from jupyter_autotrain.backends.ssh.observing import Observer
from jupyter_autotrain.backends.ssh.trial_starter import StartedJob, TrialStarter
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
from jupyter_autotrain.core.home import home_identity
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

if TYPE_CHECKING:
    from pydantic import BaseModel


class SshBackend(TrialDirectories, HostChecks):
    """A backend that runs each trial on one of the profile's hosts, beside a supervisor of its own there.

    Args:
        profile: Its name and options.
        context: The home, whose bundles are sent.
        link: Makes the link to a host.
    """

    capabilities = Capabilities(
        multi_node=True,
        multi_worker=True,
        gpu_slots=True,
        limits_memory=True,
        limits_cpu=True,
        secrets=True,
        pushes=True,
    )
    poll_interval = PollInterval(least_s=0.02, most_s=0.5)

    def __init__(
        self, profile: Profile, context: BackendContext, link: Callable[[HostConfig], HostLink] = HostLink
    ) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        self._owner = home_identity(context.home)
        self._links = {name: link(config) for name, config in host_configs(profile).items()}
        self._observer = Observer(self, cast("float | None", profile.options.get("lost_after")))
        self._survey = HostSurvey(self._links)
        self._starter = TrialStarter(profile, context, self._links)
        self._multi_node = MultiNode(self)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return the model of the options: the hosts, and how they are reached."""
        from jupyter_autotrain.backends.ssh.options import SshOptions  # noqa: PLC0415 - pydantic is slow

        return SshOptions

    def probe(self) -> Probe:
        """Report whether at least one host answers."""
        return self._survey.probe()

    def discover(self) -> Inventory:
        """Return the resources of each host; nothing is known of one that does not answer."""
        return self._survey.discover(network_of(self._profile))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Return the paths that are not on a host, and none of them for a host that does not answer now."""
        return self._survey.missing_paths(paths)

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the supervisor's command there, the trial's variables, and `trial.json`, with the host's paths."""
        host = self._host(trial.job_id, placement)
        return self._starter.render(self._links[host].config, self.job_name(trial.job_id), trial, placement)

    def inspect_python(self, environment: PythonEnvironment, distributions: Sequence[str]) -> list[InterpreterReport]:
        """Ask each host that answers for its interpreter; one that does not is asked before its first trial."""
        return host_survey.inspect_python(self._links, environment, distributions)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Send the bundle where it is missing, and have the agents start the supervisors.

        A second call starts no second job.
        """
        trial = trial_needs.from_last_saved(self._links, self.job_name, trial, self._context)
        if trial.resources.nodes > 1:
            return self._multi_node.submit(trial, self._with_nodes(trial, placement), secrets)
        host = self._host(trial.job_id, placement)
        gpus = placement.nodes[0].accelerators if placement.nodes else ()
        self.start_on(NodePlacement(host, gpus), self.job_name(trial.job_id), trial, secrets, {})
        return JobRef(self.name, trial.job_id, {"host": host, "job": self.job_name(trial.job_id)})

    def start_on(
        self, node: NodePlacement, job: str, trial: TrialSpec, secrets: Mapping[str, str], layout: JsonObject
    ) -> None:
        """Have the agent of a host start a supervisor under this name; `layout` where it is one of several."""
        number = job.removeprefix(self.job_name(trial.job_id))
        before = trial.resume_attempt
        earlier = "" if before is None else self.job_name(trial.job_id_of(before)) + number
        self._starter.start(node, StartedJob(job, earlier, layout), trial, secrets)

    def send_to(self, node: NodePlacement, job: str, trial: TrialSpec) -> None:
        """Send to a host what a supervisor under this name needs there."""
        self._starter.send(node.node, job, trial)

    def job_name(self, job_id: str) -> str:
        """Return the name of a job on its host, which differs from the same one of another home."""
        return f"{self._owner}/{job_id}"

    def link(self, node: str) -> HostLink:
        """Return the link to one of the profile's hosts.

        Raises:
            BackendError: The profile does not name it.
        """
        if node not in self._links:
            raise BackendError(
                f"The profile {self.name!r} has no host {node!r}.",
                f"Its hosts: {', '.join(self._links)}.",
                "Name one of them, or add it there.",
            )
        return self._links[node]

    def _with_nodes(self, trial: TrialSpec, placement: Placement) -> Placement:
        """Return the placement, or the profile's first hosts where there is none.

        Raises:
            BackendError: The profile has fewer hosts than the trial needs.
        """
        needed = trial.resources.nodes
        if needed > len(self._links):
            raise BackendError(
                f"The trial needs {needed} hosts; the profile {self.name!r} has {len(self._links)}.",
                "`resources: {nodes: ...}` of at most that.", "Ask for fewer, or add hosts to the profile.",
            )  # fmt: skip
        return placement if placement.nodes else Placement(tuple(map(NodePlacement, list(self._links)[:needed])))

    def name_there(self, ref: JobRef) -> str:
        """Return a job's name on its host."""
        return str(ref.data.get("job") or self.job_name(ref.job_id))

    def _host(self, job_id: str, placement: Placement) -> str:
        """Return the host where the allocator puts a trial.

        Without its word, that is always the same host for the same trial.
        """
        if placement.nodes:
            return self.link(placement.nodes[0].node).name
        names = list(self._links)
        return names[zlib.crc32(job_id.encode()) % len(names)]

    def directory_of(self, ref: JobRef) -> HostDirectory:
        """Return the directory of a job that is on one host."""
        return HostDirectory(self.link_to(ref), self.name_there(ref))

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Return the bytes of all regular files below a folder, on all hosts of a job together."""
        found: dict[str, int] = {}
        for one in reversed(node_refs(ref)):
            with contextlib.suppress(*may_lack(ref, one, self._observer.has_lost)):
                found.update(super().sizes(one, path))
        return found

    def host_of(self, ref: JobRef) -> str:
        """Return the host that a job is on."""
        return str(ref.data.get("host") or self._host(ref.job_id, Placement()))

    def link_to(self, ref: JobRef) -> HostLink:
        """Return the link to a job's host.

        Raises:
            BackendUnavailableError: The profile does not name the host any more.
        """
        host = self.host_of(ref)
        if host not in self._links:
            raise BackendUnavailableError(
                f"Job {ref.job_id} is on {host}, which the profile {self.name!r} does not name any more.",
                f"Hosts of the profile: {', '.join(self._links)}.",
                "Add it to the profile again.",
            )
        return self._links[host]

    def subscribe(self, on_news: Callable[[Collection[str]], None], on_progress: Callable[[str, str], None]) -> None:
        """Do the same as `PushingBackend.subscribe`."""
        self._starter.on_progress = on_progress
        for link in self._links.values():
            link.subscribe(lambda names: on_news(list(map(job_id_of, names))))

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the states that the agents have pushed.

        A state that a host cannot tell now is a doubt, never an end.
        """
        return self._multi_node.statuses(refs, self._observer.statuses)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Return the bytes that the agents have pushed.

        A stream that is not subscribed from its cursor on is subscribed now.
        """
        return read_streams(cursors, self._observer.chunks)

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory on its host; of several, on all that answer."""
        refs = node_refs(ref)
        errors = []
        for one in refs:
            try:
                super().put(one, path, data)
            except AutotrainError as error:
                errors.append(error)
        is_told = path == wire.STOP_FILE and len(errors) < len(refs)  # each host tells the others
        if errors and not is_told:
            raise errors[0]

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder from the trial directory on its host to this machine."""
        for one in reversed(node_refs(ref)):  # of what several hosts have, that of rank 0 counts
            with contextlib.suppress(*may_lack(ref, one, self._observer.has_lost)):
                super().fetch(one, path, target)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """Have the agent end the tree; its pids are those of the host."""
        if ref.data.get("nodes"):
            return self._multi_node.cancel(ref, grace_s)
        return agent_answers.receipt(self.link_to(ref).ask("cancel", job=self.name_there(ref), grace_s=grace_s))

    def close(self) -> None:
        """Give up the connections."""
        for link in self._links.values():
            link.close()

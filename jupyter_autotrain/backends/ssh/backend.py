"""The SSH backend: trials on hosts that are reached by SSH; each host's supervisors outlive the link to it."""

from __future__ import annotations

import base64
import contextlib
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.backends.ssh import checkpoints, fetching, interpreters, stop_carrying
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_checks import HostChecks
from jupyter_autotrain.backends.ssh.host_configs import host_configs, network_of
from jupyter_autotrain.backends.ssh.host_survey import HostSurvey
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.multi_node import MultiNode
from jupyter_autotrain.backends.ssh.node_jobs import job_id_of, may_lack, node_refs, read_streams
from jupyter_autotrain.backends.ssh.observing import Observer
from jupyter_autotrain.backends.ssh.trial_starter import StartedJob, TrialStarter
from jupyter_autotrain.core import home_identity, wire
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
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.python_environment import InterpreterReport, PythonEnvironment
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

if TYPE_CHECKING:
    from pydantic import BaseModel


class SshBackend(HostChecks):
    """Runs each trial on one of the profile's hosts, beside a supervisor of its own there.

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
        self._owner = home_identity.identity(context.home)
        self._links = {name: link(config) for name, config in host_configs(profile).items()}
        self._observer = Observer(self, cast("float | None", profile.options.get("lost_after")))
        self._survey = HostSurvey(self._links)
        self._starter = TrialStarter(profile, context, self._links)
        self._multi_node = MultiNode(self)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """The hosts, and how they are reached."""
        from jupyter_autotrain.backends.ssh.options import SshOptions  # noqa: PLC0415 - pydantic is slow

        return SshOptions

    def probe(self) -> Probe:
        """Usable when at least one host answers."""
        return self._survey.probe()

    def discover(self) -> Inventory:
        """What each host has; of one that does not answer nothing is known."""
        return self._survey.discover(network_of(self._profile))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Those that are not on a host; a host that does not answer now is left out."""
        return self._survey.missing_paths(paths)

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """The supervisor's command there, the variables set for the trial, and `trial.json`; paths as on the host."""
        host = self._host(trial.job_id, placement)
        return self._starter.render(self._links[host].config, self.job_name(trial.job_id), trial, placement)

    def inspect_python(self, environment: PythonEnvironment, distributions: Sequence[str]) -> list[InterpreterReport]:
        """Ask each host that answers; one that does not is asked before its first trial."""
        return interpreters.inspect(self._links, environment, distributions)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Send the bundle where it is missing, and have the agents start the supervisors; twice is once."""
        trial = checkpoints.from_last_saved(self._links, self.job_name, trial, self._context)
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

    def job_name(self, job_id: str) -> str:
        """A job's name on its host, different from the same one of another home."""
        return f"{self._owner}/{job_id}"

    def link(self, node: str) -> HostLink:
        """The link to one of the profile's hosts.

        Raises:
            BackendError: The profile does not name it.
        """
        if node not in self._links:
            raise BackendError(
                f"The profile {self.name!r} has no host {node!r}.",
                f"Its hosts: {', '.join(self._links)}.",
                "Add it there.",
            )
        return self._links[node]

    def _with_nodes(self, trial: TrialSpec, placement: Placement) -> Placement:
        """The placement; without one, the profile's first hosts.

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
        """A job's name on its host."""
        return str(ref.data.get("job") or self.job_name(ref.job_id))

    def _host(self, job_id: str, placement: Placement) -> str:
        """Where the allocator puts a trial; without its word always the same host for the same trial."""
        if placement.nodes:
            return self.link(placement.nodes[0].node).name
        names = list(self._links)
        return names[zlib.crc32(job_id.encode()) % len(names)]

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Have the agents look at each file."""
        found: dict[str, int] = {}
        for one in reversed(node_refs(ref)):
            with contextlib.suppress(*may_lack(ref, one)):
                found.update(fetching.sizes(self.link_to(one), self.name_there(one), path))
        return found

    def host_of(self, ref: JobRef) -> str:
        """The host that a job is on."""
        return str(ref.data.get("host") or self._host(ref.job_id, Placement()))

    def link_to(self, ref: JobRef) -> HostLink:
        """The link to a job's host.

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
        """As `PushingBackend.subscribe`."""
        self._starter.on_progress = on_progress
        for link in self._links.values():
            link.subscribe(lambda names: on_news([job_id_of(name) for name in names]))

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """What the agents have pushed; what a host cannot tell now is a doubt, never an end."""
        return self._multi_node.statuses(refs, self._observer.statuses)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """What the agents have pushed; a stream that is not subscribed from its cursor on is now."""
        return read_streams(cursors, self.chunks)

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """As `read`, of jobs on one host each."""
        return self._observer.chunks(cursors)

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory on its host; of several, on all that answer."""
        text = base64.b64encode(data).decode()
        refs = node_refs(ref)
        errors = []
        for one in refs:
            try:
                self.link_to(one).ask("put", job=self.name_there(one), path=path, data=text)
            except AutotrainError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        if path == wire.STOP_FILE and len(refs) > 1 and not ref.data.get("elastic"):
            stop_carrying.agree(self, refs)

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder from the trial directory on its host to this machine."""
        for one in reversed(node_refs(ref)):  # of what several hosts have, that of rank 0 counts
            with contextlib.suppress(*may_lack(ref, one)):
                fetching.fetch(self.link_to(one), self.name_there(one), path, Path(target))

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """Have the agent end the tree; its pids are those of the host."""
        if ref.data.get("nodes"):
            return self._multi_node.cancel(ref, grace_s)
        answer = self.link_to(ref).ask("cancel", job=self.name_there(ref), grace_s=grace_s)
        ended, killed, left, elapsed_s, note = cast("tuple[list[int], list[int], list[int], float, str]", answer)
        return CancelReceipt(tuple(ended), tuple(killed), tuple(left), elapsed_s, note)

    def close(self) -> None:
        """Give up the connections."""
        for link in self._links.values():
            link.close()

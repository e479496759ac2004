"""The SSH backend: trials on hosts that are reached by SSH; each host's supervisors outlive the link to it."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.backends.environments import InterpreterCheck
from jupyter_autotrain.backends.ssh import agent_responses, checkpoints, data_sending, fetching, interpreters
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_checks import HostChecks
from jupyter_autotrain.backends.ssh.host_configs import host_configs, network_of
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.multi_node import MultiNode, job_id_of, node_refs, read_streams
from jupyter_autotrain.backends.ssh.observing import Observer
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.backends.ssh.transport import LinkLostError
from jupyter_autotrain.backends.ssh.upload_progress import UploadProgress
from jupyter_autotrain.core import system, wire
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
from jupyter_autotrain.core.environment import travelling
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.python_environment import InterpreterReport, PythonEnvironment
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, SubmitUnknownError
from jupyter_autotrain.worker import environment

if TYPE_CHECKING:
    from pydantic import BaseModel

_CHECK_S = 20.0  # for hosts to be reached before a submission
_PATIENCE_S = 3.0  # for the inventory of several hosts: one that does not answer does not hold up the others


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
        self._links = {name: link(config) for name, config in host_configs(profile).items()}
        self._owner = _owner(context)
        self._on_progress: Callable[[str, str], None] = lambda _job_id, _what: None
        self._lease_s = cast("float | None", profile.options.get("lease_s"))
        self._observer = Observer(self)
        self._side_by_side = SideBySide()
        self._interpreters = InterpreterCheck()
        self._multi_node = MultiNode(self)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """The hosts, and how they are reached."""
        from jupyter_autotrain.backends.ssh.options import SshOptions  # noqa: PLC0415 - pydantic is slow

        return SshOptions

    def probe(self) -> Probe:
        """Usable when at least one host answers."""
        answers = self._ask_all("ping", _PATIENCE_S)
        if all(isinstance(answer, AutotrainError) for answer in answers.values()):
            self._side_by_side = SideBySide()
            answers = self._ask_all("ping", None)
        reasons = {name: answer.found for name, answer in answers.items() if isinstance(answer, AutotrainError)}
        if len(reasons) == len(self._links):
            return Probe(False, " ".join(reasons.values()), is_lasting=False)
        hosts = ", ".join(name for name in self._links if name not in reasons)
        silent = f"; without an answer: {', '.join(reasons)}" if reasons else ""
        return Probe(True, f"Hosts that answer: {hosts}{silent}.")

    def discover(self) -> Inventory:
        """What each host has; of one that does not answer nothing is known."""
        nodes = []
        limits = ""
        for name, answer in self._ask_all("machine", _PATIENCE_S).items():
            if isinstance(answer, AutotrainError):
                nodes.append(Node(name, unavailable=answer.found.rstrip(".")))
            else:
                machine = cast("JsonObject", answer)
                nodes.append(agent_responses.node(name, machine))
                limits = limits or str(machine["limits"])
        return Inventory(tuple(nodes), network_of(self._profile), limits or "not known: no host answers")

    def _ask_all(self, do: str, patience_s: float | None) -> dict[str, JsonValue | AutotrainError]:
        """Ask all hosts at the same time; gives each one's answer, or why there is none."""

        def ask(link: HostLink) -> JsonValue | AutotrainError:
            try:
                return link.ask(do)
            except AutotrainError as error:
                return error

        calls = {name: partial(ask, link) for name, link in self._links.items()}
        answers = self._side_by_side.call(calls, None if len(calls) == 1 else patience_s)
        late = {name: BackendUnavailableError(f"{name} has not answered yet.") for name in calls}
        return late | answers

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """The supervisor's command there, the variables set for the trial, and `trial.json`; paths as on the host."""
        config = self._links[self._host(trial.job_id, placement)].config
        directory = f"{config.workdir}/jobs/{self.job_name(trial.job_id)}"
        content = {
            **self._content(trial, placement),
            "directory": directory,
            "bundle": f"{config.workdir}/bundles/DIGEST",
        }
        script = f"{config.workdir}/agents/DIGEST/jupyter_autotrain/worker/start_supervisor.py"
        return Submission(
            argv=(config.python, "-I", "-S", script, directory),
            env=environment.complete(content, dict.fromkeys(trial.secrets, "(secret, given at submit)")),
            files={wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True)},
            notes=(f"On {config.address.name}, through its agent.",),
        )

    def _content(self, trial: TrialSpec, placement: Placement) -> dict[str, JsonValue]:
        known = cast("JsonObject", to_json(trial))
        return {
            **known,
            "environment": travelling(trial.environment),
            "lease_s": self._lease_s,
            "gpus": placement.accelerators,
            "options": dict(trial.options),
            "workers": trial.resources.workers_per_node,
            "wire": wire.VERSION,
        }

    def inspect_python(self, environment: PythonEnvironment, distributions: Sequence[str]) -> list[InterpreterReport]:
        """Ask each host that answers; one that does not is asked before its first trial."""
        return interpreters.inspect(self._links, environment, distributions)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Send the bundle where it is missing, and have the agents start the supervisors; twice is once."""
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
        link = self.link(node.node)
        before = trial.resume_attempt
        self._check_interpreter(node.node, trial)
        number = job.removeprefix(self.job_name(trial.job_id))
        earlier = "" if before is None else self.job_name(f"{trial.experiment_id}-{trial.number}-{before}") + number
        content = self._content(trial, Placement((node,))) | ({"layout": layout} if layout else {})
        if before is not None:
            kept = self._context.directory(trial, before) / wire.CHECKPOINTS
            content |= checkpoints.have(self._links, node.node, earlier, kept)
        progress = UploadProgress(node.node, partial(self._on_progress, trial.job_id))
        bundle = link.send_bundle(self._context.bundle(trial), progress)
        limit_bytes = cast("int | None", self._profile.options.get("data_cache_limit"))
        data = data_sending.place(link, job, trial, self._context, limit_bytes, progress)
        self._on_progress(trial.job_id, "")
        try:
            link.start(job, trial={**content, **data}, bundle=bundle, before=earlier, secrets=dict(secrets))
        except LinkLostError as error:
            raise SubmitUnknownError(error.found, error.expected, error.action) from error

    def _check_interpreter(self, host: str, trial: TrialSpec) -> None:
        names = [package.name for package in trial.python_packages]
        link = {host: self._links[host]}
        self._interpreters.check(host, trial, lambda: interpreters.inspect(link, trial.python_environment, names))

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
            found.update(fetching.sizes(self.link_to(one), self.name_there(one), path))
        return found

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Those that are not on a host; a host that does not answer now is left out."""
        calls = {name: partial(_missing_on, link, paths) for name, link in self._links.items()}
        answers = SideBySide().call(calls, _CHECK_S)
        return [(name, path) for name in self._links for path in answers.get(name, ())]

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
        self._on_progress = on_progress
        for link in self._links.values():
            link.subscribe(lambda names: on_news([job_id_of(name) for name in names]))

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """What the agents have pushed; what a host cannot tell now is a doubt, never an end."""
        return self._multi_node.statuses(refs, self._observer.statuses)

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """What the agents have pushed; a stream that is not subscribed from its cursor on is now."""
        return read_streams(cursors, self._observer.chunks)

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory on its host."""
        text = base64.b64encode(data).decode()
        for one in node_refs(ref):
            self.link_to(one).ask("put", job=self.name_there(one), path=path, data=text)

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder from the trial directory on its host to this machine."""
        for one in reversed(node_refs(ref)):  # of what several hosts have, that of rank 0 counts
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


def _owner(context: BackendContext) -> str:
    """A short name of a home on a machine, so that several may use one account of a host."""
    name = system.machine_name() or platform.node()
    return hashlib.sha256(f"{name}\n{context.home.root}".encode()).hexdigest()[:12]


def _missing_on(link: HostLink, paths: Sequence[str]) -> list[str]:
    """The paths that a host lacks; none where it does not answer."""
    try:
        return cast("list[str]", link.ask("missing", paths=list(paths)))
    except AutotrainError:
        return []

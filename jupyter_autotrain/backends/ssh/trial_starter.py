"""Starting a trial on a host: what it needs is checked and sent, then its supervisor is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from jupyter_autotrain.backends.environments import InterpreterCheck
from jupyter_autotrain.backends.ssh import checkpoints, data_sending, interpreters
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_configs import lease_s
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.transport import LinkLostError
from jupyter_autotrain.backends.ssh.upload_progress import UploadProgress
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, Submission
from jupyter_autotrain.core.environment import travelling
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, SubmitUnknownError
from jupyter_autotrain.worker import environment

_TRIES = 3  # another one may make room on the host just between sending and start


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job by its name on the host.

    Attributes:
        name: Its name.
        before: The name of the attempt whose checkpoints it goes on from, or "".
        layout: Where it is one of several supervisors of the trial.
    """

    name: str
    before: str = ""
    layout: JsonObject = field(default_factory=dict)


class TrialStarter:
    """Starts trials on the hosts of a profile.

    Args:
        profile: Its options.
        context: The home, whose bundles and data are sent.
        links: The hosts.

    Attributes:
        on_progress: Takes a job id and what its submit is doing, as in `PushingBackend.subscribe`.
    """

    def __init__(self, profile: Profile, context: BackendContext, links: Mapping[str, HostLink]) -> None:
        self.on_progress: Callable[[str, str], None] = lambda _job_id, _what: None
        self._context = context
        self._links = links
        self._lease_s = lease_s(profile.options)
        self._data_limit_bytes = cast("int | None", profile.options.get("data_cache_limit"))
        self._interpreters = InterpreterCheck()

    def render(self, config: HostConfig, job: str, trial: TrialSpec, placement: Placement) -> Submission:
        """What a start would send; paths as on the host."""
        directory = f"{config.workdir}/jobs/{job}"
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

    def start(self, node: NodePlacement, job: StartedJob, trial: TrialSpec, secrets: Mapping[str, str]) -> None:
        """Check the interpreter, send bundle and data where they are missing, and start the supervisor.

        Raises:
            SubmitUnknownError: The link was lost meanwhile: it may run.
            BackendError: It cannot be started.
        """
        link = self._links[node.node]
        self._check_interpreter(node.node, trial)
        content = self._content(trial, Placement((node,)))
        progress = UploadProgress(node.node, partial(self.on_progress, trial.job_id))
        for _ in range(_TRIES):
            bundle = link.sent.send_bundle(self._context.bundle(trial), progress)
            data = data_sending.place(link, job.name, trial, self._context, self._data_limit_bytes, progress)
            layout = self._layout(node.node, job, trial)
            self.on_progress(trial.job_id, "")
            try:
                known = {**content, **layout, **data}
                if link.start(job.name, bundle, trial=known, before=job.before, secrets=dict(secrets)):
                    return
            except LinkLostError as error:
                raise SubmitUnknownError(error.found, error.expected, error.action) from error
        raise BackendError(
            f"The code of {trial.job_id} was removed from {node.node} before it began, {_TRIES} times.",
            "Room for it below `cache_limit` of the profile.",
            "Raise the limit, then retry.",
        )

    def _layout(self, host: str, job: StartedJob, trial: TrialSpec) -> JsonObject:
        """What is said of the other supervisors of the trial, and of the checkpoints that it goes on from."""
        layout: JsonObject = {"layout": job.layout} if job.layout else {}
        if trial.resume_attempt is None:
            return layout
        return {**layout, **checkpoints.have(self._links, host, job.before, trial, self._context)}

    def _check_interpreter(self, host: str, trial: TrialSpec) -> None:
        names = [package.name for package in trial.python_packages]
        link = {host: self._links[host]}
        self._interpreters.check(host, trial, lambda: interpreters.inspect(link, trial.python_environment, names))

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

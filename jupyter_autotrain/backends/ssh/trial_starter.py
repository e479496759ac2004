"""Starting a trial on a host: what it needs is checked and sent, then its supervisor is started."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environment import travelling
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.program import PROGRAM
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.agent.trial.trial_file import TrialFile
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.backends.python_packages import InterpreterCheck
from jupyter_autotrain.backends.ssh import host_survey, trial_needs
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host_configs import lease_s
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.transfer.channels import LinkLostError
from jupyter_autotrain.core.backend import BackendContext, Submission
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, SubmitUnknownError

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
    """A starter of trials on the hosts of a profile.

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
        self._reuse = warm_starts.options_of(profile.options)
        self._data_limit_bytes = cast("int | None", profile.options.get("data_cache_limit"))
        self._interpreters = InterpreterCheck()

    def render(self, config: HostConfig, job: str, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the submission that a start would send, with the host's paths."""
        directory = f"{config.workdir}/jobs/{job}"
        content = self._content(trial, placement)
        content["directory"] = directory
        content["bundle"] = f"{config.workdir}/bundles/DIGEST"
        script = f"{config.workdir}/agents/DIGEST/{PROGRAM}"
        return Submission(
            argv=(config.python, "-I", "-S", script, "supervisor", directory),
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
        content = self._content(trial, Placement((node,)))
        for _ in range(_TRIES):
            bundle, data = self.send(node.node, job.name, trial)
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

    def send(self, host: str, job: str, trial: TrialSpec) -> tuple[str, JsonObject]:
        """Check the interpreter, and send bundle and data where they are missing.

        Returns:
            The path of the bundle there, and what `trial.json` says of the data.

        Raises:
            BackendError: It cannot be sent, or the interpreter does not fit.
        """
        link = self._links[host]
        self._check_interpreter(host, trial)
        progress = UploadProgress(host, partial(self.on_progress, trial.job_id))
        bundle = link.sent.send_bundle(self._context.bundle(trial), progress)
        return bundle, trial_needs.place_data(link, job, trial, self._context, self._data_limit_bytes, progress)

    def _layout(self, host: str, job: StartedJob, trial: TrialSpec) -> JsonObject:
        """Return the part about the other supervisors of the trial and the checkpoints that it goes on from."""
        layout: JsonObject = {"layout": job.layout} if job.layout else {}
        if trial.resume_attempt is None:
            return layout
        return {**layout, **trial_needs.have_checkpoints(self._links, host, job.before, trial, self._context)}

    def _check_interpreter(self, host: str, trial: TrialSpec) -> None:
        names = [package.name for package in trial.python_packages]
        link = {host: self._links[host]}
        self._interpreters.check(host, trial, lambda: host_survey.inspect_python(link, trial.python_environment, names))

    def _content(self, trial: TrialSpec, placement: Placement) -> TrialFile:
        content = trial_content.begin(trial, {**self._reuse, **trial.options}, placement.accelerators)
        content["environment"] = travelling(trial.environment)
        content["lease_s"] = self._lease_s
        return content


_PAUSE_S = 0.5  # quick uploads are not told of


class UploadProgress:
    """A `ProgressCallback` that tells in words, twice per second.

    Args:
        host: Where to.
        tell: Takes the rest of a sentence that begins with the trial.
        clock: Gives seconds that never go back.
    """

    def __init__(self, host: str, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._tell = tell
        self._clock = clock
        self._begun: tuple[float, int] | None = None
        self._told_s = clock()

    def __call__(self, sent_bytes: int, total_bytes: int) -> None:
        """Note the bytes that are sent."""
        now_s = self._clock()
        if self._begun is None or sent_bytes < self._begun[1]:  # another folder
            self._begun = now_s, sent_bytes
        if now_s - self._told_s < _PAUSE_S:
            return
        self._told_s = now_s
        begun_s, begun_bytes = self._begun
        rate = (sent_bytes - begun_bytes) / max(now_s - begun_s, _PAUSE_S)
        left = f", {(total_bytes - sent_bytes) / rate:.0f} s left" if rate else ""
        share = sent_bytes / max(total_bytes, 1)
        self._tell(
            f"sends {format_bytes(total_bytes)} to {self._host}: {share:.0%}, {format_bytes(round(rate))}/s{left}"
        )

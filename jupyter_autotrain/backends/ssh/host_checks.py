"""What the SSH backend offers to a check of its hosts, to `clean` and deletions, and to trusting their keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.ssh import agent_responses, connecting, host_environments, host_keys, host_trials
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host import resolve
from jupyter_autotrain.backends.ssh.host_survey import HostSurvey
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.data import DataKind
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.worker.data_cache import DEFAULT_LIMIT_BYTES


class HostChecks(ABC):
    """A part of `SshBackend`, which has the links."""

    name: str
    _links: Mapping[str, HostLink]
    _profile: Profile
    _survey: HostSurvey
    _owner: str  # the folder of this home's jobs on each host

    @abstractmethod
    def link_to(self, ref: JobRef) -> HostLink:
        """The link to a job's host."""

    @abstractmethod
    def name_there(self, ref: JobRef) -> str:
        """A job's name on its host."""

    def node_names(self) -> Sequence[str]:
        """The hosts of the profile."""
        return list(self._links)

    def check_node(self, node: str) -> Iterator[CheckStep]:
        """The steps of one host up to what it has."""
        from jupyter_autotrain.backends.ssh import checking  # noqa: PLC0415 - only a check needs it

        link = self._link_to(node)
        yield from checking.check_host(
            link.config, lambda: agent_responses.node(node, cast("JsonObject", link.ask("machine")))
        )

    def check_trial(self, trial: TrialSpec) -> Sequence[str]:
        """Make sure that a host has room for the trial's data, as `TrialCheckingBackend.check_trial`."""
        limit_bytes = cast("int | None", self._profile.options.get("data_cache_limit")) or DEFAULT_LIMIT_BYTES
        size_bytes = sum(source.size_bytes for source in trial.data if source.kind is DataKind.COPY)
        return self._survey.check_data_room(size_bytes, limit_bytes)

    def upload(self, node: str, bundle: Path) -> None:
        """Send a bundle to a host."""
        self._link_to(node).sent.send_bundle(bundle)

    def remove(self, ref: JobRef) -> None:
        """Delete the directory of a job on its host."""
        self.link_to(ref).ask("remove", job=self.name_there(ref))

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:  # noqa: ARG002 - who uses one holds it there
        """The virtual environments on the hosts that no trial uses."""
        return host_environments.unused(list(self._links.values()))

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:  # noqa: ARG002 - as above
        """Remove them."""
        return host_environments.remove(list(self._links.values()))

    def experiments_there(self) -> Mapping[str, int]:
        """Those that have trial directories on the hosts."""
        return host_trials.sizes(self._links, self._owner)

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Delete them on all hosts that answer."""
        host_trials.remove(self._links, self._owner, experiments)

    def host_key(self, node: str) -> tuple[str, str]:
        """The type and the fingerprint of the key that a host shows now."""
        key = connecting.host_key(self._address(node), self._any_config().transport)
        return key.type, host_keys.fingerprint(key)

    def trust(self, node: str, fingerprint: str) -> str:
        """Add the key that a host shows to the user's known ones, if it has this fingerprint."""
        address = self._address(node)
        key = connecting.host_key(address, self._any_config().transport)
        return str(host_keys.trust(resolve(address), key, fingerprint))

    def _address(self, node: str) -> HostAddress:
        """The address of a host of the profile, or of one in between."""
        if node in self._links:
            return self._links[node].config.address
        return jump_address(node, self._any_config().address.config_file, self.name)

    def _any_config(self) -> HostConfig:
        return next(iter(self._links.values())).config

    def _link_to(self, node: str) -> HostLink:
        if node not in self._links:
            raise BackendError(
                f"The profile {self.name!r} has no host {node!r}.",
                f"Its hosts: {', '.join(self._links)}.",
                "Name one of them.",
            )
        return self._links[node]

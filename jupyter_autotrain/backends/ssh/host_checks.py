"""The SSH backend's part in a check of its hosts, in `clean` and deletions, and in trusting their keys.

Each step of a check says what was found, and what to do where it failed.
"""

from __future__ import annotations

import json
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import cast

from jupyter_autotrain.agent.environments.python_environment import OLDEST_PYTHON
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.ssh import agent_connection, host_keys, host_survey
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.host import ResolvedHost, resolve
from jupyter_autotrain.backends.ssh.host_survey import HostSurvey
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.transport import CONNECT_S, HostKeyError, Transport, run
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.data import DataKind
from jupyter_autotrain.core.inventory import Node
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

_SLOW_SHELL_S = 0.3
_SHELL_CALLS = 3
_LEAST_FREE_BYTES = 1_000_000_000
_LOOK_AROUND = b"""
import json, os, shutil, sys
folder = os.path.abspath(os.path.expanduser(sys.argv[1]))
while not os.path.isdir(folder):
    folder = os.path.dirname(folder)
version = ".".join(map(str, sys.version_info[:3]))
print(json.dumps([version, sys.executable, folder, os.access(folder, os.W_OK), shutil.disk_usage(folder).free]))
"""


def check_host(config: HostConfig, node: Callable[[], Node]) -> Iterator[CheckStep]:
    """Yield the steps up to the survey of the host, and end after the first that fails.

    Args:
        config: The host.
        node: Starts the agent there and asks what the host has.
    """
    timer = StepTimer(config.address.name)
    try:
        yield from _steps(config, node, timer)
    except AutotrainError as error:
        yield timer.refused(error)


def _steps(config: HostConfig, node: Callable[[], Node], timer: StepTimer) -> Iterator[CheckStep]:
    timer.begin("resolve")
    host = resolve(config.address)
    is_direct = not host.jumps and not host.proxy_command
    yield timer.done(f"{host.user}@{_numeric(host) if is_direct else host.hostname}, port {host.port}{_through(host)}")
    if is_direct:
        timer.begin("connect")
        _reach(host)
        yield timer.done("its port answers")
    timer.begin("host key")
    key = agent_connection.host_key(config.address, config.transport)
    try:
        transport = agent_connection.connect(config.address, config.transport)
    except HostKeyError:
        raise
    except AutotrainError as error:
        yield timer.done(f"known: {key.type} {host_keys.fingerprint(key)}")
        timer.begin("log in")
        yield timer.refused(error)
        return
    yield timer.done(f"known: {key.type} {host_keys.fingerprint(key)}")
    try:
        yield from _inside(config, transport, timer)
    finally:
        transport.close()
    timer.begin("what it has")
    yield timer.done(_described(node()))


def _numeric(host: ResolvedHost) -> str:
    try:
        return str(socket.getaddrinfo(host.hostname, host.port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise BackendUnavailableError(
            f"The name {host.hostname} cannot be resolved: {error.strerror}.",
            "A name of the SSH configuration or of the network.",
            "Check its spelling in the profile, or give it a `HostName` in ~/.ssh/config.",
        ) from None


def _through(host: ResolvedHost) -> str:
    return f", through {' and '.join(host.jumps) or 'a ProxyCommand'}" if host.jumps or host.proxy_command else ""


def _reach(host: ResolvedHost) -> None:
    try:
        socket.create_connection((host.hostname, host.port), timeout=CONNECT_S).close()
    except OSError as error:
        raise BackendUnavailableError(
            f"Port {host.port} of {host.hostname} does not answer: {error.strerror or error}.",
            "An SSH server there.",
            "Check that the host is on, and that no VPN or firewall is in between.",
        ) from None


def _inside(config: HostConfig, transport: Transport, timer: StepTimer) -> Iterator[CheckStep]:
    """Yield the steps that run commands on the host."""
    name = config.address.name
    timer.begin("login shell")
    cost_s = median(_shell_cost_s(transport, name) for _ in range(_SHELL_CALLS))
    advice = "Its start-up files are slow; this is paid once per connection." if cost_s > _SLOW_SHELL_S else ""
    yield timer.done(f"{1000 * cost_s:.0f} ms to start a command", advice)
    timer.begin("Python")
    version, executable, folder, is_writable, free_bytes = _look_around(config, transport)
    yield timer.done(f"{version}, {executable}")
    timer.begin("free disk")
    text = f"{format_bytes(free_bytes)} in {folder}"
    if not is_writable:
        raise BackendError(f"{folder} on {name} cannot be written.", "", "Set `workdir:` of the profile to your own.")
    low = "Trials write there: set `workdir:` to a larger disk." if free_bytes < _LEAST_FREE_BYTES else ""
    yield timer.done(text, low)


def _shell_cost_s(transport: Transport, name: str) -> float:
    begun_s = time.monotonic()
    run(transport, ["true"], name)
    return time.monotonic() - begun_s


def _look_around(config: HostConfig, transport: Transport) -> tuple[str, str, str, bool, int]:
    """Return version and path of the interpreter, the folder of trials, whether it can be written, and its free bytes.

    The folder is the nearest above where that of trials does not exist.
    """
    result = run(transport, [config.python, "-I", "-S", "-", config.workdir], config.address.name, _LOOK_AROUND)
    printed = result.stderr if result.exit_code else result.stdout
    lines = printed.decode(errors="replace").strip().splitlines()
    said = lines[-1] if lines else "it printed nothing"
    try:
        version, executable, folder, is_writable, free_bytes = json.loads("" if result.exit_code else said)
    except (ValueError, TypeError):
        raise BackendError(
            f"{config.python} does not run on {config.address.name}: {said[:200]}",
            "An interpreter there.",
            "Install it, or name another one: `python: /opt/venv/bin/python` in the profile.",
        ) from None
    if tuple(map(int, str(version).split(".")[:2])) < OLDEST_PYTHON:
        raise BackendError(
            f"{config.python} on {config.address.name} is Python {version}, which is too old.",
            "A Python of at least 3.9.",
            "Name another one: `python: /opt/venv/bin/python` in the profile.",
        )
    return str(version), str(executable), str(folder), bool(is_writable), int(free_bytes)


def _described(node: Node) -> str:
    kinds = [gpu.kind or "GPU" for gpu in node.accelerators]
    gpus = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds)) or "no GPUs"
    memory = f", {format_bytes(node.memory_bytes)} of memory" if node.memory_bytes else ""
    return f"{gpus}; {node.cpus:g} CPUs{memory}" if node.cpus else f"{gpus}{memory}"


class HostChecks(ABC):
    """A part of `SshBackend`, which has the links."""

    name: str
    _links: Mapping[str, HostLink]
    _profile: Profile
    _survey: HostSurvey
    _owner: str  # the folder of this home's jobs on each host

    @abstractmethod
    def link(self, node: str) -> HostLink:
        """Return the link to one of the profile's hosts."""

    @abstractmethod
    def link_to(self, ref: JobRef) -> HostLink:
        """Return the link to a job's host."""

    @abstractmethod
    def name_there(self, ref: JobRef) -> str:
        """Return a job's name on its host."""

    def node_names(self) -> Sequence[str]:
        """Return the hosts of the profile."""
        return list(self._links)

    def check_node(self, node: str) -> Iterator[CheckStep]:
        """Yield the steps of one host, up to the survey of it."""
        link = self.link(node)
        yield from check_host(link.config, lambda: agent_answers.node(node, cast("JsonObject", link.ask("machine"))))

    def check_trial(self, trial: TrialSpec) -> Sequence[str]:
        """Make sure that a host has room for the trial's data, as `TrialCheckingBackend.check_trial`."""
        limit_bytes = cast("int | None", self._profile.options.get("data_cache_limit")) or DEFAULT_LIMIT_BYTES
        size_bytes = sum(source.size_bytes for source in trial.data if source.kind is DataKind.COPY)
        return self._survey.check_data_room(size_bytes, limit_bytes)

    def upload(self, node: str, bundle: Path) -> None:
        """Send a bundle to a host."""
        self.link(node).sent.send_bundle(bundle)

    def remove(self, ref: JobRef) -> None:
        """Delete the directory of a job on its host."""
        self.link_to(ref).ask("remove", job=self.name_there(ref))

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:  # noqa: ARG002 - who uses one holds it there
        """Return the virtual environments on the hosts that no trial uses."""
        return host_survey.unused_environments(list(self._links.values()))

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:  # noqa: ARG002 - as above
        """Remove the virtual environments that no trial uses."""
        return host_survey.remove_environments(list(self._links.values()))

    def experiments_there(self) -> Mapping[str, int]:
        """Return the experiments that have trial directories on the hosts, with their bytes."""
        return host_survey.trial_sizes(self._links, self._owner)

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Delete the trial directories of experiments on all hosts that answer."""
        host_survey.remove_trials(self._links, self._owner, experiments)

    def host_key(self, node: str) -> tuple[str, str]:
        """Return the type and the fingerprint of the key that a host shows now."""
        key = agent_connection.host_key(self._address(node), self._any_config().transport)
        return key.type, host_keys.fingerprint(key)

    def trust(self, node: str, fingerprint: str) -> str:
        """Add the key that a host shows to the user's known ones, if it has this fingerprint."""
        address = self._address(node)
        key = agent_connection.host_key(address, self._any_config().transport)
        return str(host_keys.trust(resolve(address), key, fingerprint))

    def _address(self, node: str) -> HostAddress:
        """Return the address of a host of the profile, or of one in between."""
        if node in self._links:
            return self._links[node].config.address
        return jump_address(node, self._any_config().address.config_file, self.name)

    def _any_config(self) -> HostConfig:
        return next(iter(self._links.values())).config

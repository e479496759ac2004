"""From the options of a profile to its hosts."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.backends.ssh.address import HostAddress
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.connecting import check_installed
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import BackendError

_PING_S = 15.0
_PINGS_OF_A_LEASE = 5

_NETWORK_LATENCY_S = 10e-6  # as of the networks in `core.devices`
_NETWORK_EFFICIENCY = 0.9


def host_configs(profile: Profile) -> dict[str, HostConfig]:
    """The hosts of a profile, by their names.

    Raises:
        BackendError: It names no host, or one twice.
        MissingExtraError: What its transport needs is not installed.
    """
    from jupyter_autotrain.backends.ssh.options import HostOptions, SshOptions  # noqa: PLC0415 - pydantic is slow

    if not profile.options.get("hosts"):
        raise BackendError(
            f"The profile {profile.name!r} names no host.", "`hosts: [gpu1, gpu2]`.", "Add them to its profile."
        )
    options = SshOptions.model_validate(dict(profile.options))
    check_installed(options.transport)

    ping_s = _PING_S if options.lease_s is None else min(_PING_S, options.lease_s / _PINGS_OF_A_LEASE)

    def config(host: HostOptions) -> HostConfig:
        address = HostAddress(
            host.host,
            host.user or options.user,
            host.port or options.port,
            _path(host.key_file or options.key_file),
            _path(options.config_file),
            profile.name,
        )
        python = host.python or options.python
        workdir = host.workdir or options.workdir
        return HostConfig(address, options.transport, python, workdir, host.address or "", ping_s, options.cache_limit)

    configs = {host.host: config(host) for host in options.hosts}
    if len(configs) < len(options.hosts):
        raise BackendError(f"The profile {profile.name!r} names a host twice.", "", "Remove one of them.")
    return configs


def network_of(profile: Profile) -> Link | None:
    """The network between the hosts, as the profile says; None where it says nothing."""
    rate = profile.options.get("network")
    if not isinstance(rate, int | float):
        return None
    return Link(LinkKind.SWITCH, float(rate), _NETWORK_LATENCY_S, _NETWORK_EFFICIENCY)


def _path(text: str | None) -> str:
    return str(Path(text).expanduser()) if text else ""

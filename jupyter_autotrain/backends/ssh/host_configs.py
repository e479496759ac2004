"""The way from the options of a profile to its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.ssh.address import (
    DEFAULT_CACHE_LIMIT_BYTES,
    DEFAULT_PYTHON,
    DEFAULT_WORKDIR,
    HostAddress,
    TransportKind,
    named_host,
)
from jupyter_autotrain.backends.ssh.agent_connection import HEARTBEAT_S, HostConfig, check_installed
from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import BackendError

_HEARTBEATS_OF_A_LEASE = 5

_NETWORK_LATENCY_S = 10e-6  # as of the networks in `core.devices`
_NETWORK_EFFICIENCY = 0.9


def host_configs(profile: Profile) -> dict[str, HostConfig]:
    """Return the hosts of a profile, by their names.

    Its options have been checked, by the model that their type has.

    Raises:
        BackendError: It names no host, or one twice.
        MissingExtraError: What its transport needs is not installed.
    """
    named = cast("Sequence[object]", profile.options.get("hosts") or ())
    if not named:
        raise BackendError(
            f"The profile {profile.name!r} names no host.", "`hosts: [gpu1, gpu2]`.", "Add them to its profile."
        )
    transport = TransportKind(str(profile.options.get("transport") or TransportKind.PARAMIKO))
    check_installed(transport)
    configs = {}
    for host in named:
        config = _config(profile, transport, cast("JsonObject", named_host(host)))
        configs[config.address.name] = config
    if len(configs) < len(named):
        raise BackendError(f"The profile {profile.name!r} names a host twice.", "", "Remove one of them.")
    return configs


def _config(profile: Profile, transport: TransportKind, host: JsonObject) -> HostConfig:
    """Return the configuration of one host; the profile gives what the host does not say itself."""
    given = {**profile.options, **{key: value for key, value in host.items() if value is not None}}
    port = given.get("port")
    address = HostAddress(
        str(host["host"]),
        cast("str | None", given.get("user")),
        None if port is None else int(cast("int", port)),
        _path(given.get("key_file")),
        _path(given.get("config_file")),
        profile.name,
    )
    return HostConfig(
        address,
        transport,
        str(given.get("python") or DEFAULT_PYTHON),
        str(given.get("workdir") or DEFAULT_WORKDIR),
        str(host.get("address") or ""),
        _heartbeat_s(lease_s(given)),
        cast("int | None", given.get("cache_limit", DEFAULT_CACHE_LIMIT_BYTES)),
    )


def lease_s(options: Mapping[str, JsonValue]) -> float | None:
    """Return after how long without contact a trial ends itself, before a manager takes it for lost; None: never."""
    given = [options.get("lease_s"), options.get("lost_after")]
    return min((float(value) for value in given if isinstance(value, int | float)), default=None)


def _heartbeat_s(lease_s: float | None) -> float:
    return HEARTBEAT_S if lease_s is None else min(HEARTBEAT_S, lease_s / _HEARTBEATS_OF_A_LEASE)


def network_of(profile: Profile) -> Link | None:
    """Return the network between the hosts, as the profile says; None where it says nothing."""
    rate = profile.options.get("network")
    if not isinstance(rate, int | float):
        return None
    return Link(LinkKind.SWITCH, float(rate), _NETWORK_LATENCY_S, _NETWORK_EFFICIENCY)


def _path(text: JsonValue) -> str:
    return str(Path(str(text)).expanduser()) if text else ""

"""The machine a plan is made for: devices, and the links of each level from card to chassis to POD.

Devices are numbered so that the innermost level runs fastest: in `2x8xH100` devices 0-7 share a chassis. A mesh lays
named axes over these numbers, its last axis fastest, so inner axes use the fast links.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.core.cluster_figures import (
    Level,
    check_count,
    check_device,
    check_link,
    check_reserved,
    check_text,
    device_of,
    levels_of,
    link_of,
    parse_part,
    preset_of,
    reserved_of,
)
from jupyter_autotrain.core.devices import Device, Link, presets
from jupyter_autotrain.errors import PlanError

TIMES: Final = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True, slots=True)
class LinkGroup:
    """The part of a mesh axis that runs on one level: `size` of the level's `whole` parts."""

    size: int
    whole: int
    link: Link


SHORT_AXES: Final = MappingProxyType({"dp": "data", "tp": "tensor", "pp": "pipeline", "ep": "expert"})
"""Short names of axes that people know."""


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """Named axes over a cluster's devices; the last axis runs fastest. Axes of one name are tiers of one axis."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def devices(self) -> int:
        """Devices of the mesh."""
        return math.prod(self.shape)

    def stride(self, axis: int) -> int:
        """Return the distance in device numbers between neighbours on `axis`."""
        return math.prod(self.shape[axis + 1 :])

    def __str__(self) -> str:
        words = []
        for name, tiers in groupby(zip(self.axes, self.shape, strict=True), key=itemgetter(0)):
            words.append(f"{name} {math.prod(size for _, size in tiers)}")
        return TIMES.join(words) or "1 device"

    def unique_axes(self) -> tuple[str, ...]:
        """Return the axes by names of their own: tiers of one axis are numbered, `data_0` outside of `data_1`."""
        found = []
        for place, name in enumerate(self.axes):
            number = self.axes[:place].count(name)
            found.append(f"{name}_{number}" if self.axes.count(name) > 1 else name)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Devices and links.

    Attributes:
        kinds: Device kinds with their counts, in device order; one entry unless the cluster is uneven.
        levels: From the innermost (cards of a chassis) to the outermost; their sizes multiply to `devices`.
        name: The string it was made from.
        reserved_bytes: Memory of each device that training cannot have; None: each device's own figure.
        groups: Of an uneven cluster, the levels of each kind's devices by themselves; empty where that is not known.
    """

    kinds: tuple[tuple[Device, int], ...]
    levels: tuple[Level, ...]
    name: str = ""
    reserved_bytes: int | None = None
    groups: tuple[tuple[Level, ...], ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return sum(count for _, count in self.kinds)

    @property
    def device(self) -> Device:
        """The device that a plan over the whole cluster must suit: the slowest, with the least memory."""
        return self.slowest(0, self.devices)

    def slowest(self, start: int, stop: int) -> Device:
        """Return the weakest figures among devices `start` to `stop` (exclusive)."""
        found = []
        first = 0
        for device, count in self.kinds:
            if first < stop and start < first + count:
                found.append(device)
            first += count
        memory_bytes = min(d.memory_bytes for d in found)
        return replace(
            min(found, key=lambda d: d.matrix_flops_per_s),
            memory_bytes=memory_bytes,
            reserved_bytes=memory_bytes - min(map(self._usable_bytes, found)),
            memory_bytes_per_s=min(d.memory_bytes_per_s for d in found),
            host_bytes_per_s=min(d.host_bytes_per_s for d in found),
        )

    def _usable_bytes(self, device: Device) -> int:
        return device.usable_bytes if self.reserved_bytes is None else device.memory_bytes - self.reserved_bytes

    def link_groups(self, stride: int, size: int) -> tuple[LinkGroup, ...]:
        """Return the levels that join the devices 0, stride, 2*stride ... (`size` of them), innermost first.

        An axis that does not fall on level borders is priced on the outermost level it touches, which is safe.
        """
        found = []
        inner = 1
        for level in self.levels:
            low = max(inner, stride)
            high = min(inner * level.size, stride * size)
            if high > low:
                found.append((low, high, LinkGroup(high // low, level.size, level.link)))
            inner *= level.size
        whole = math.prod(high // low if high % low == 0 else 0 for low, high, _ in found)
        if whole == size or not found:
            return tuple(group for _, _, group in found)
        return (replace(found[-1][2], size=size),)

    def scaled(
        self, *, bandwidth: float = 1.0, memory_bytes: int | None = None, devices: int | None = None
    ) -> ClusterSpec:
        """Return the same machine with other links, memory or size: the what-if questions.

        Memory that is given is what training can have, nothing reserved.
        """
        cluster = self if devices is None else _resized(self, devices)
        levels = _faster(cluster.levels, bandwidth)
        cluster = replace(cluster, groups=tuple(_faster(group, bandwidth) for group in cluster.groups))
        if memory_bytes is None:
            return replace(cluster, levels=levels)
        kinds = tuple((replace(d, memory_bytes=memory_bytes, reserved_bytes=0), n) for d, n in cluster.kinds)
        return replace(cluster, kinds=kinds, levels=levels, reserved_bytes=None)

    @classmethod
    def parse(cls, value: str | JsonObject | ClusterSpec) -> ClusterSpec:
        """Read a cluster from its string form, or from a mapping `{device, levels}`.

        Raises:
            PlanError: For an unknown device (with the nearest name), a wrong form, zero sizes or bandwidths.
        """
        if isinstance(value, ClusterSpec):
            return value
        if isinstance(value, Mapping):
            return _from_mapping(value)
        check_text(value)
        parts = list(map(of_part, value.split("+")))
        return replace(parts[0] if len(parts) == 1 else joined(parts), name=value.strip())

    def __str__(self) -> str:
        return self.name or "+".join(f"{count}x{device.name}" for device, count in self.kinds)


def _check(cluster: ClusterSpec) -> None:
    for level in cluster.levels:
        check_link(level.name, level.size, level.link)
    for device, count in cluster.kinds:
        check_device(device)
        check_reserved(device, cluster.reserved_bytes)
        check_count(f"Device {device.name!r}", "count", count)
    sizes = math.prod(level.size for level in cluster.levels)
    if cluster.devices < 1 or sizes != cluster.devices:
        raise PlanError(
            f"The cluster's levels hold {sizes} devices, its device list {cluster.devices}.",
            "Both must be the same, and at least one.",
            "Make the sizes of the levels multiply to the number of devices.",
        )


def _faster(levels: tuple[Level, ...], bandwidth: float) -> tuple[Level, ...]:
    links = [replace(level.link, bytes_per_s=level.link.bytes_per_s * bandwidth) for level in levels]
    return tuple(replace(level, link=link) for level, link in zip(levels, links, strict=True))


def of_part(text: str) -> ClusterSpec:
    """Return the cluster of one part of a string form, such as `2x8xH100`.

    Raises:
        PlanError: For an unknown device (with the nearest name), a wrong form.
    """
    device, levels = parse_part(text)
    return ClusterSpec(((device, math.prod(level.size for level in levels)),), levels)


def joined(parts: list[ClusterSpec]) -> ClusterSpec:
    """Return an uneven cluster: equal groups as large as all parts allow.

    The weakest outside link joins the groups.
    """
    inner = math.gcd(*(part.levels[0].size for part in parts))
    total = sum(part.devices for part in parts)
    inside = min((part.levels[0].link for part in parts), key=lambda link: link.bytes_per_s)
    kinds = tuple(chain.from_iterable(part.kinds for part in parts))
    outsides = [preset_of(device.name).outside for device, _ in kinds]
    outside = min(outsides, key=lambda link: link.bytes_per_s)
    levels = (Level("chassis", inner, inside), Level("pod", total // inner, outside))
    groups = tuple(part.levels for part in parts)
    return ClusterSpec(kinds, levels, reserved_bytes=parts[0].reserved_bytes, groups=groups)


def _resized(cluster: ClusterSpec, devices: int) -> ClusterSpec:
    check_count("The cluster", "devices", devices)
    device = cluster.kinds[0][0]
    inside = cluster.levels[0]
    inner = next(k for k in range(min(inside.size, devices), 0, -1) if devices % k == 0)
    levels: tuple[Level, ...] = (replace(inside, size=inner),)
    if devices > inner:
        levels += (Level("pod", devices // inner, _outside(cluster)),)
    return ClusterSpec(((device, devices),), levels, reserved_bytes=cluster.reserved_bytes)


def _outside(cluster: ClusterSpec) -> Link:
    """Return the link that joins more of a cluster; a device without a data sheet has one kind of link."""
    preset = presets().get(cluster.kinds[0][0].name)
    return cluster.levels[-1].link if len(cluster.levels) > 1 or preset is None else preset.outside


def _from_mapping(value: Mapping[str, JsonValue]) -> ClusterSpec:
    """Return the cluster of a mapping: `{"device": name or figures, "levels": [{"name", "size", ...}, ...]}`.

    The innermost level comes first. The mapping may also be `{"cluster": "8xH100"}`. Both take `reserved`, the memory
    of each device that training cannot have.
    """
    if isinstance(value.get("cluster"), str):
        cluster = ClusterSpec.parse(cast("str", value["cluster"]))
    else:
        device = value.get("device")
        raw = levels_of(value.get("levels"))
        chosen = preset_of(device).device if isinstance(device, str) else device_of(device)
        levels = tuple(Level(str(r["name"]), cast("int", r["size"]), link_of(r)) for r in raw)
        for level in levels:
            check_link(level.name, level.size, level.link)
        devices = math.prod(level.size for level in levels)
        cluster = ClusterSpec(((chosen, devices),), levels, str(value.get("name", "")))
    kept = value.get("reserved")
    return cluster if kept is None else replace(cluster, reserved_bytes=reserved_of(kept))


def find_named(name: str) -> ClusterSpec | None:
    """Return the cluster of a backend by the backend's name; None where no backend has it."""
    found: ClusterSpec | None = import_module("jupyter_autotrain").find_cluster(name)
    return found

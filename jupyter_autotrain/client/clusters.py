"""The devices of a backend as a cluster to plan for."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.client.waiting import Patience
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.cluster import ClusterSpec, joined
from jupyter_autotrain.core.cluster_figures import Level
from jupyter_autotrain.core.devices import Device, Link, LinkKind, Preset, presets
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.header.document import combined_error

_WORDS = re.compile(r"[^A-Z0-9]+")


def find(name: str) -> ClusterSpec | None:
    """As `named`, from this process's folder and variables."""
    return named(name, Path.cwd(), os.environ)


def named(name: str, cwd: Path, environ: Mapping[str, str]) -> ClusterSpec | None:
    """Return the devices of the backend with this name; None where there is no such backend.

    Args:
        name: A profile, or a type that is a backend by its name alone.
        cwd: The folder of the notebook.
        environ: The variables.

    Raises:
        HeaderError: The profile is faulty.
        PlanError: It has no accelerators that are known.
        BackendError: It cannot be made, or does not answer.
    """
    found = inventory(name, cwd, environ)
    if found is None:
        return None
    if not any(node.accelerators for node in found.nodes):
        raise PlanError(
            f"The backend {name!r} has no GPUs that are known ({_nodes(found)}).",
            "Nodes with GPUs, or what was measured there: there is no data sheet for CPUs.",
            f"Measure its CPUs: %autotrain calibrate --backend {name}; or give a cluster such as `8xH100`.",
        )
    return cluster_of(found, name)


def inventory(name: str, cwd: Path, environ: Mapping[str, str]) -> Inventory | None:
    """Return what the backend with this name has; None where there is no such backend.

    Args:
        name: A profile, or a type that is a backend by its name alone.
        cwd: The folder of the notebook.
        environ: The variables.

    Raises:
        HeaderError: The profile is faulty.
        BackendError: It cannot be made, or does not answer.
    """
    profiles, _ = backends.header_context(cwd, environ).profiles()
    if name not in profiles.names():
        return None
    profile, faults = profiles.find(name)
    if profile is None:
        raise combined_error(faults)
    return Patience().ask_one(name, partial(_discover, profile))


def _discover(profile: Profile) -> Inventory:
    with (
        tempfile.TemporaryDirectory(prefix="autotrain-plan-") as folder,
        closing(backends.create(profile, BackendContext(Home(Path(folder))))) as backend,
    ):
        return backend.discover()


def _nodes(inventory: Inventory) -> str:
    return "; ".join(map(_without_gpus, inventory.nodes))


def _without_gpus(node: Node) -> str:
    if node.unavailable:
        return node.unavailable
    return f"{node.name}: {node.cpus:g} CPUs" if node.cpus else node.name


def cluster_of(inventory: Inventory, name: str = "") -> ClusterSpec:
    """Return the cluster of an inventory's accelerators, node by node, without nodes that have none.

    Memory is what the backend reports; rates come from the kind's data sheet, and so do links that are not known.

    Args:
        inventory: What the backend has.
        name: What to call the cluster.

    Raises:
        PlanError: There is no accelerator, a kind is not known, or one node has several kinds.
    """
    nodes = [node for node in inventory.nodes if node.accelerators]
    if not nodes:
        raise PlanError(
            "This backend has no accelerators that are known.",
            "At least one node with an accelerator.",
            "Name the cluster yourself, as in `cluster: 8xH100`.",
        )
    parts = [_part(list(equal), inventory.network) for _, equal in groupby(nodes, key=_likeness)]
    whole = parts[0] if len(parts) == 1 else _joined(parts, inventory.network)
    return replace(whole, name=name)


def _likeness(node: Node) -> tuple[object, ...]:
    """Return a key that is equal for nodes that make up an even cluster."""
    memory = min((gpu.memory_bytes or 0 for gpu in node.accelerators), default=0)
    return _kind(node), len(node.accelerators), memory, node.link


def _kind(node: Node) -> str:
    kinds = {gpu.kind for gpu in node.accelerators}
    kind = node.accelerators[0].kind
    if len(kinds) > 1 or kind is None:
        found = ", ".join(sorted(map(str, kinds))) if kind else "accelerators of an unknown kind"
        raise PlanError(
            f"Node {node.name!r} has {found}.",
            "Accelerators of one known kind on each node.",
            "Name the cluster yourself, as in `cluster: 8xH100`.",
        )
    return kind


def _part(nodes: Sequence[Node], network: Link | None) -> ClusterSpec:
    """Return the cluster of equal nodes."""
    first = nodes[0]
    preset = _preset(_kind(first), first.accelerators)
    device = _device(preset, first.accelerators)
    inner = len(first.accelerators)
    inside = first.link or preset.inside
    chassis = Level("chassis", inner, inside if inner > 1 else replace(inside, kind=LinkKind.SINGLE))
    if len(nodes) == 1:
        return ClusterSpec(((device, inner),), (chassis,))
    pod = Level("pod", len(nodes), network or preset.outside)
    return ClusterSpec(((device, inner * len(nodes)),), (chassis, pod))


def _joined(parts: list[ClusterSpec], network: Link | None) -> ClusterSpec:
    whole = joined(parts)
    if network is None:
        return whole
    *inner, outermost = whole.levels
    return replace(whole, levels=(*inner, replace(outermost, link=network)))


def _device(preset: Preset, accelerators: Sequence[Accelerator]) -> Device:
    """Return the preset's device with the memory that its driver reports, the least of all."""
    known = [gpu.memory_bytes for gpu in accelerators if gpu.memory_bytes is not None]
    if not known:
        return preset.device
    reserved_bytes = min(preset.device.reserved_bytes, *known)
    return replace(preset.device, memory_bytes=min(known), reserved_bytes=reserved_bytes)


def _preset(kind: str, accelerators: Sequence[Accelerator]) -> Preset:
    """Return the preset that a driver's name means: `NVIDIA A100-SXM4-80GB` is an A100.

    Of several, the one nearest in memory, or that with the least where the memory is not known.

    Raises:
        PlanError: It means none.
    """
    words = set(_WORDS.split(kind.upper()))
    known = presets()
    alike = [preset for name, preset in known.items() if _WORDS.split(name.upper())[0] in words]
    if not alike:
        raise PlanError(
            f"The accelerator {kind!r} is not known.",
            f"Known: {', '.join(sorted(known))}.",
            "Name the cluster yourself, or give it as a mapping with the device's figures.",
        )
    memory_bytes = accelerators[0].memory_bytes or 0
    return min(alike, key=lambda preset: abs(preset.device.memory_bytes - memory_bytes))

"""The devices of a backend as a cluster to plan for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.client.patience import Patience
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.inventory_cluster import cluster_of
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.header.faults import combined_error


def find(name: str) -> ClusterSpec | None:
    """As `named`, from this process's folder and environment."""
    return named(name, Path.cwd(), os.environ)


def named(name: str, cwd: Path, environ: Mapping[str, str]) -> ClusterSpec | None:
    """The devices of the backend with this name; None where there is no such backend.

    Args:
        name: A profile, or a type that is a backend by its name alone.
        cwd: The folder of the notebook.
        environ: The environment.

    Raises:
        HeaderError: The profile is faulty.
        PlanError: It has no accelerators that are known.
        BackendError: It cannot be made, or does not answer.
    """
    profiles, _ = backends.header_context(cwd, environ).profiles()
    if name not in profiles.names():
        return None
    profile, faults = profiles.find(name)
    if profile is None:
        raise combined_error(faults)
    inventory = Patience().ask_one(name, partial(_discover, profile))
    if not any(node.accelerators for node in inventory.nodes):
        raise PlanError(
            f"The backend {name!r} has no GPUs that are known ({_nodes(inventory)}).",
            "Nodes with GPUs: a plan splits a model over accelerators, and there is no data sheet for CPUs.",
            "Give a cluster that it may have one day, as `8xH100`, or a mapping with the figures of your devices.",
        )
    return cluster_of(inventory, name)


def _discover(profile: Profile) -> Inventory:
    with tempfile.TemporaryDirectory(prefix="autotrain-plan-") as folder:
        backend = backends.create(profile, BackendContext(Home(Path(folder))))
        try:
            return backend.discover()
        finally:
            backend.close()


def _nodes(inventory: Inventory) -> str:
    return "; ".join(
        node.unavailable or (f"{node.name}: {node.cpus:g} CPUs" if node.cpus else node.name) for node in inventory.nodes
    )

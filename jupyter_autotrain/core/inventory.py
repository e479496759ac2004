"""The resources of a backend: nodes with CPUs, memory and accelerators. An unknown one is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_autotrain.core.devices import Link


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator of a node.

    Attributes:
        index: Its number on its node.
        id: Its name for `Placement`, different from that of every other accelerator of the backend.
        kind: Its model, as its driver calls it.
        busy: Whether a program that is no trial uses it.
    """

    index: int
    id: str
    kind: str | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a backend.

    Attributes:
        name: Different from that of every other node of the backend.
        link: By which its accelerators are joined, as one of them sees it.
        labels: Further facts, such as a zone or a partition.
        machine_id: The same for every backend that has this machine, so that it is shared out once; None: not known.
        unavailable: Why no trial can be started there now, such as that it does not answer; "" when one can.
    """

    name: str
    cpus: float | None = None
    memory_bytes: int | None = None
    accelerators: tuple[Accelerator, ...] = ()
    link: Link | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    machine_id: str | None = None
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The nodes of a backend.

    Attributes:
        network: By which nodes are joined, as one accelerator sees it.
        limits: How limits on memory and CPUs are enforced there, for people.
    """

    nodes: tuple[Node, ...]
    network: Link | None = None
    limits: str = ""


@dataclass(frozen=True, slots=True)
class AcceleratorPolicy:
    """The rule for a backend's accelerators: those that trials may use, and how many trials share one.

    Attributes:
        max_trials_per_gpu: How many trials may hold one accelerator; the least of all that hold it counts.
        use_active_gpu: Whether to use accelerators that other programs are using.
        gpu_indices: The accelerators of each node that may be used; None: all.
    """

    max_trials_per_gpu: int = 1
    use_active_gpu: bool = False
    gpu_indices: tuple[int, ...] | None = None

"""Common things of a pod's containers on its node."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.labs.kubernetes.nodes.volumes import PodVolumes


@dataclass(slots=True)
class Sandbox:
    """A pod's place on a node.

    Attributes:
        uid: Of the pod.
        address: Its IP address.
        volumes: Its volumes.
        gpus: The numbers of its GPUs.
    """

    uid: str
    address: str
    volumes: PodVolumes
    gpus: list[int] = field(default_factory=list)

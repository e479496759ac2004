"""Requests of trials for resources, reservations, and the reason why one does not get them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.core.inventory import AcceleratorPolicy
from jupyter_autotrain.core.spec import Resources


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """The resources that a trial asks for on each of its nodes.

    Attributes:
        label: Its name in messages, such as "trial 2 of mnist@1".
        avoid: Nodes of the backend that lost an earlier attempt: the trial goes there only where no other could do.
        prefer: Nodes that its earlier attempt ran on, where its checkpoints lie: they are taken first when free.
        refused: Nodes that refuse it, with what they say.
        priority: That of its experiment.
        takes_s: How long it takes at most, as far as that is known.
        waited_s: How long it has waited.
    """

    job_id: str
    label: str
    resources: Resources
    policy: AcceleratorPolicy
    avoid: frozenset[str] = frozenset()
    prefer: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    takes_s: float = math.inf
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Allocation:
    """The resources that a trial holds on a node: those it asked for, and the ids of its accelerators.

    `left_s` is how long it goes on holding them, as far as that is known.
    """

    request: ResourceRequest
    accelerators: tuple[str, ...] = ()
    left_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """Why a trial does not get what it asks for.

    Attributes:
        permanent: Nothing that ends could change it.
        machines: What it waits for: trials that come later do not take it away.
        unavailable: No node that could do answers now.
    """

    resource: str
    sentence: str
    permanent: bool = False
    machines: tuple[str, ...] = ()
    unavailable: bool = False

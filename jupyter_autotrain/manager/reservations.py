"""Reservations of machines by trials, whichever backend they came there by: one table for all backends.

A machine that two profiles name, or that is this one, has one entry, so it is shared out once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Node
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """The resources that a trial asks for on each of its nodes.

    Attributes:
        label: Its name in messages, such as "trial 2 of mnist@1".
        avoid: Nodes of the backend that lost an earlier attempt: the trial goes there only where no other could do.
        prefer: Nodes that its earlier attempt ran on, where its checkpoints lie: they are taken first when free.
        refused: Nodes that refuse it, with what they say.
    """

    job_id: str
    label: str
    resources: Resources
    policy: AcceleratorPolicy
    avoid: frozenset[str] = frozenset()
    prefer: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The resources that a trial holds on a node: those it asked for, and the ids of its accelerators."""

    request: ResourceRequest
    accelerators: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class NodeAllocator:
    """One node with its present reservations.

    Attributes:
        node: What it has.
        allocations: What trials hold of it.
        waiting: All that came first and wait for this node.
    """

    node: Node
    allocations: Sequence[Allocation] = ()
    waiting: Sequence[ResourceRequest] = field(default=())

    def try_allocate(self, request: ResourceRequest) -> NodePlacement | Unschedulable:
        """Return what a trial would get here now."""
        if refused := request.refused.get(self.node.name):
            return Unschedulable("node", f"is refused: {refused}", permanent=True)
        if self.node.unavailable:
            return Unschedulable("node", f"waits: {self.node.unavailable}", unavailable=True)
        blocked = self._amount(request, "CPUs") or self._amount(request, "memory") or self._gpus_asked(request)
        return blocked or NodePlacement(self.node.name, self._choose(request), self.node.machine_id or "")

    def capacity(self, request: ResourceRequest) -> float:
        """Return how many such trials the empty node runs at the same time; one per CPU where none is asked for."""
        node = self.node
        asked = request.resources
        limits = [math.inf if node.cpus is None else max(node.cpus // (asked.cpus or 1.0), 1.0)]
        if asked.memory_bytes and node.memory_bytes is not None:
            limits.append(node.memory_bytes // asked.memory_bytes)
        if asked.gpus:
            limits.append(len(self._eligible(request)) * request.policy.max_trials_per_gpu // asked.gpus)
        return min(limits)

    def _amount(self, request: ResourceRequest, resource: str) -> Unschedulable | None:
        asked = _amount_of(request.resources, resource)
        total = self.node.cpus if resource == "CPUs" else self.node.memory_bytes
        if not asked or total is None:
            return None
        if asked > total:
            found = f"asks for {_say(asked, resource)}; this backend has {_say(total, resource)}"
            return Unschedulable(resource, f"{found}: ask for less in `resources:`", permanent=True)
        amounts = {
            allocation.request.label: _amount_of(allocation.request.resources, resource)
            for allocation in self.allocations
        }
        held = {label: amount for label, amount in amounts.items() if amount}
        free = total - sum(held.values())
        if asked > free:
            who = ", ".join(f"{label} holds {_say(amount, resource)}" for label, amount in held.items())
            found = f"waits for {_say(asked, resource)}: {_say(max(free, 0), resource)} of {_say(total, resource)} free"
            return Unschedulable(resource, f"{found}; {who}; it starts when enough of that ends")
        return self._behind(resource, request)

    def _behind(self, resource: str, request: ResourceRequest) -> Unschedulable | None:
        for other in self.waiting:
            if self._compete(request, other) if resource == "GPUs" else _amount_of(other.resources, resource):
                return Unschedulable(resource, f"waits for {resource} behind {other.label}, which came first")
        return None

    def _compete(self, request: ResourceRequest, other: ResourceRequest) -> bool:
        if not other.resources.gpus:
            return False
        return bool({gpu.id for gpu in self._eligible(request)} & {gpu.id for gpu in self._eligible(other)})

    def _gpus_asked(self, request: ResourceRequest) -> Unschedulable | None:
        count = request.resources.gpus
        if not count:
            return None
        eligible = self._eligible(request)
        if count > len(eligible):
            return Unschedulable("GPUs", f"asks for {_gpus(count)}; {self._offer(request, eligible)}", permanent=True)
        reasons = {gpu.index: self._why_taken(gpu, request) for gpu in eligible}
        taken = {index: reason for index, reason in reasons.items() if reason}
        if count > len(eligible) - len(taken):
            who = "; ".join(f"GPU {index} {reason}" for index, reason in taken.items())
            free = len(eligible) - len(taken)
            return Unschedulable("GPUs", f"waits for {_gpus(count)}, {free} free of {len(eligible)}: {who}")
        return self._behind("GPUs", request)

    def _eligible(self, request: ResourceRequest) -> list[Accelerator]:
        """Return the accelerators that are allowed and large enough, in use or not."""
        return [gpu for gpu in self.node.accelerators if _could_do(gpu, request)]

    def _offer(self, request: ResourceRequest, eligible: list[Accelerator]) -> str:
        count = len(self.node.accelerators)
        if count < request.resources.gpus:
            return f"this backend has {_gpus(count)}: ask for fewer in `resources: gpus`"
        keys = "`resources: gpu_memory`"
        if request.policy.gpu_indices is not None:
            keys = f"`gpu_indices` among the backend's options, or {keys}"
        return f"of the {_gpus(count)} here {len(eligible)} can do: change {keys}"

    def _why_taken(self, gpu: Accelerator, request: ResourceRequest) -> str:
        """Why an accelerator cannot be given now, or ""."""
        allocations = self._requests_on(gpu)
        names = ", ".join(allocation.label for allocation in allocations)
        limit = min(one.policy.max_trials_per_gpu for one in (request, *allocations))
        if gpu.busy and not request.policy.use_active_gpu:
            return (
                "is used by a program outside this manager: end it, or set `use_active_gpu: true` among the "
                "backend's options, where it has that option"
            )
        if len(allocations) >= limit:
            return f"is held by {names} (at most {limit} per GPU); it is free when that ends"
        least_bytes = request.resources.gpu_memory_bytes or 0
        if gpu.memory_bytes is None:
            return ""
        free_bytes = _free_bytes(gpu, gpu.memory_bytes, allocations)
        if least_bytes <= free_bytes:
            return ""
        held_by = f", held by {names}" if names else ""
        return f"has {format_bytes(free_bytes)} of {format_bytes(gpu.memory_bytes)} free{held_by}"

    def _requests_on(self, gpu: Accelerator) -> list[ResourceRequest]:
        return [allocation.request for allocation in self.allocations if gpu.id in allocation.accelerators]

    def _choose(self, request: ResourceRequest) -> tuple[str, ...]:
        """Return the free accelerators with the fewest trials and the most memory."""
        if not request.resources.gpus:
            return ()
        free = [gpu for gpu in self._eligible(request) if not self._why_taken(gpu, request)]
        free.sort(key=lambda gpu: (len(self._requests_on(gpu)), gpu.busy, -(gpu.memory_free_bytes or 0), gpu.index))
        return tuple(gpu.id for gpu in free[: request.resources.gpus])


def _could_do(gpu: Accelerator, request: ResourceRequest) -> bool:
    wanted = request.policy.gpu_indices
    least_bytes = request.resources.gpu_memory_bytes or 0
    is_wanted = wanted is None or gpu.index in wanted
    return is_wanted and (gpu.memory_bytes is None or gpu.memory_bytes >= least_bytes)


def _free_bytes(gpu: Accelerator, memory_bytes: int, allocations: list[ResourceRequest]) -> int:
    promised_bytes = sum(allocation.resources.gpu_memory_bytes or 0 for allocation in allocations)
    # What our own trials use already shows in the free memory, and what they may still use is promised.
    is_measured = not allocations and gpu.memory_free_bytes is not None
    measured_bytes = gpu.memory_free_bytes if is_measured else memory_bytes
    return max(min(memory_bytes - promised_bytes, measured_bytes or 0), 0)


def _amount_of(resources: Resources, resource: str) -> float:
    return (resources.cpus if resource == "CPUs" else resources.memory_bytes) or 0


def _say(amount: float, resource: str) -> str:
    if resource == "memory":
        return f"{format_bytes(amount)} memory"
    return f"{amount:g} CPU" if amount == 1 else f"{amount:g} CPUs"


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The resources that a trial holds; `backend` is the key of its profile."""

    request: ResourceRequest
    placement: Placement = Placement()  # noqa: RUF009 - frozen
    backend: str = ""


@dataclass(slots=True)
class ReservationTable:
    """The reservations of all trials.

    Attributes:
        jobs: By job id.
        waiting: By machine: the trials that wait for it in this round, oldest first.
    """

    jobs: dict[str, Reservation] = field(default_factory=dict)
    waiting: dict[str, list[ResourceRequest]] = field(default_factory=dict)
    _by_machine: dict[str, dict[str, Allocation]] = field(default_factory=dict)

    def reserve(self, reservation: Reservation) -> None:
        """Record what a trial has been given."""
        job_id = reservation.request.job_id
        self.jobs[job_id] = reservation
        for placed in reservation.placement.nodes or (NodePlacement(""),):
            held = self._by_machine.setdefault(_machine_of(reservation.backend, placed), {})
            held[job_id] = Allocation(reservation.request, placed.accelerators)

    def release(self, job_id: str) -> None:
        """Release what a job held, if anything."""
        self.jobs.pop(job_id, None)
        for held in self._by_machine.values():
            held.pop(job_id, None)

    def on(self, backend: str, node: Node) -> list[Allocation]:
        """Return what trials hold of a node of a backend."""
        # Also what was kept when its machine, or its name, was not known.
        names = (machine_of(backend, node), _local_name(backend, node.name), _local_name(backend, ""))
        found: dict[str, Allocation] = {}
        for name in names:
            found |= self._by_machine.get(name, {})
        return list(found.values())

    def through(self, backend: str) -> list[Allocation]:
        """Return what trials hold that came by a backend.

        A backend with a single node counts also what it had under another name.
        """
        held = [one for one in self.jobs.values() if one.backend == backend]
        return [Allocation(one.request, one.placement.accelerators) for one in held]


def machine_of(backend: str, node: Node) -> str:
    """Return the name under which a node is shared out; one whose machine is not known is a machine of its own."""
    return node.machine_id or _local_name(backend, node.name)


def _machine_of(backend: str, placed: NodePlacement) -> str:
    return placed.machine_id or _local_name(backend, placed.node)


def _local_name(backend: str, node: str) -> str:
    return f"{backend}/{node}"

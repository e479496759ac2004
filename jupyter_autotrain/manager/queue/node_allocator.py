"""Resources of one node: CPUs, memory and accelerators, beside what trials hold of them and others wait for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.core.inventory import Accelerator, Node
from jupyter_autotrain.core.spec import NodePlacement, Resources
from jupyter_autotrain.manager.queue.adjacency import device_sets, disjoint, free_neighbours
from jupyter_autotrain.manager.queue.resource_request import Allocation, ResourceRequest, Unschedulable

_PATIENCE_S = 600.0  # a trial that has waited longer is overtaken by none


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
            limits.append(self._shares(request))
        return min(limits)

    def _shares(self, request: ResourceRequest) -> int:
        """Return how many trials the devices of the empty node run at the same time."""
        eligible = self._eligible(request)
        sets = device_sets(self.node, eligible, request.resources)
        trials_per_gpu = request.policy.max_trials_per_gpu
        if sets is None:
            return len(eligible) * trials_per_gpu // request.resources.gpus
        return len(disjoint(sets)) * trials_per_gpu

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
            behind = self._and_behind(resource, request)
            return Unschedulable(resource, f"{found}; {who}; it starts when enough of that ends{behind}")
        return self._behind(resource, request)

    def _behind(self, resource: str, request: ResourceRequest) -> Unschedulable | None:
        """Return the refusal of what would delay a trial that comes first; one that ends before that starts may go."""
        for other in self._competing(resource, request):
            if not self._ends_before(request, other):
                first = _first(request, other)
                return Unschedulable(resource, f"waits for {resource} behind {other.label}, which {first}")
        return None

    def _competing(self, resource: str, request: ResourceRequest) -> Iterator[ResourceRequest]:
        """Yield those that come first and wait for the same."""
        for other in self.waiting:
            if self._compete(request, other) if resource == "GPUs" else _amount_of(other.resources, resource):
                yield other

    def _and_behind(self, resource: str, request: ResourceRequest) -> str:
        """Return the end of a refusal's sentence: what comes first, if anything."""
        for other in self._competing(resource, request):
            return f"; {other.label} {_first(request, other)}"
        return ""

    def _ends_before(self, request: ResourceRequest, other: ResourceRequest) -> bool:
        """Return whether a trial is known to end before one that comes first could start here (EASY backfilling)."""
        return other.waited_s < _PATIENCE_S and request.takes_s <= self._starts_in_s(other)

    def _starts_in_s(self, request: ResourceRequest) -> float:
        """Return in how long a trial could start here; 0 where that is not known, or only other nodes keep it."""
        left = sorted(self.allocations, key=lambda allocation: allocation.left_s)
        for ended, allocation in enumerate(left, 1):
            if isinstance(NodeAllocator(self.node, left[ended:]).try_allocate(request), NodePlacement):
                return 0.0 if math.isinf(allocation.left_s) else allocation.left_s
        return 0.0

    def spare(self, request: ResourceRequest) -> float:
        """Return how much a trial would leave of what it asks for: the less, the better it fills the node."""
        asked = request.resources
        if asked.gpus:
            free = [gpu for gpu in self._eligible(request) if not self._requests_on(gpu)]
            return len(free) - asked.gpus
        resource = "CPUs" if asked.cpus else "memory"
        total = self.node.cpus if asked.cpus else self.node.memory_bytes
        if not _amount_of(asked, resource) or total is None:
            return (len(self.allocations) + 1) / (self.node.cpus or 1.0)
        return total - sum(_amount_of(one.request.resources, resource) for one in self.allocations)

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
        sets = device_sets(self.node, eligible, request.resources)
        if sets == []:
            found = f"asks for {_gpus(count)} side by side ({request.resources.adjacent}); here no {count} are"
            return Unschedulable("GPUs", f"{found}: ask for fewer, or remove `adjacent`", permanent=True)
        reasons = {gpu.index: self._why_taken(gpu, request) for gpu in eligible}
        taken = {index: reason for index, reason in reasons.items() if reason}
        left = [gpu for gpu in eligible if gpu.index not in taken]
        if count > len(left) or device_sets(self.node, left, request.resources) == []:
            wanted = _gpus(count) + (f" side by side ({request.resources.adjacent})" if sets else "")
            who = "; ".join(_by_holder(taken))
            who += self._and_behind("GPUs", request)
            return Unschedulable("GPUs", f"waits for {wanted}, {len(left)} free of {len(eligible)}: {who}")
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
        sets = device_sets(self.node, free, request.resources)
        if sets is not None:
            return tuple(gpu.id for gpu in min(sets, key=lambda one: self._split_by(one, free)))
        free.sort(key=lambda gpu: (len(self._requests_on(gpu)), gpu.busy, -(gpu.memory_free_bytes or 0), gpu.index))
        return tuple(gpu.id for gpu in free[: request.resources.gpus])

    def _split_by(self, chosen: Sequence[Accelerator], free: Sequence[Accelerator]) -> tuple[int, int]:
        """Return the order of sets of neighbours, the least first: few trials on them, few free ones beside them."""
        trials = sum(len(self._requests_on(gpu)) for gpu in chosen)
        return trials, free_neighbours(chosen, free, len(self.node.accelerators))


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


def _first(request: ResourceRequest, other: ResourceRequest) -> str:
    return "comes first" + (f" by its priority of {other.priority}" if other.priority > request.priority else "")


def _by_holder(taken: Mapping[int, str]) -> list[str]:
    """Return why accelerators are taken, those that are so for the same reason together."""
    groups: dict[str, list[str]] = {}
    for index, reason in taken.items():
        groups.setdefault(reason, []).append(str(index))
    return [f"{_named(indices)} {reason}" for reason, indices in groups.items()]


def _named(indices: Sequence[str]) -> str:
    return f"GPU {indices[0]}" if len(indices) == 1 else f"each of GPUs {', '.join(indices)}"


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"

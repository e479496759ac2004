"""Whether one node has what a trial asks for, and which of its accelerators the trial gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Node
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import NodePlacement, Resources


@dataclass(frozen=True, slots=True)
class Need:
    """What a trial asks for on each of its nodes; `label` is how sentences call it, such as "trial 2 of mnist@1"."""

    job_id: str
    label: str
    resources: Resources
    policy: AcceleratorPolicy


@dataclass(frozen=True, slots=True)
class Holder:
    """A trial on a node, and the ids of the accelerators that it holds there."""

    need: Need
    accelerators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a trial does not get what it asks for; `permanent` when nothing that ends could change it."""

    resource: str
    sentence: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class NodeAllocator:
    """One node, as things stand.

    Attributes:
        node: What it has.
        holders: The trials that hold something of it.
        waiting: Resource and trial of all that came first and wait for it here.
    """

    node: Node
    holders: Sequence[Holder] = ()
    waiting: Sequence[tuple[str, Need]] = field(default=())

    def ask(self, need: Need) -> NodePlacement | Blocked:
        """Say what a trial would get here now."""
        blocked = self._amount(need, "CPUs") or self._amount(need, "memory") or self._gpus_asked(need)
        return blocked or NodePlacement(self.node.name, self._choose(need))

    def _amount(self, need: Need, resource: str) -> Blocked | None:
        asked = _amount_of(need.resources, resource)
        total = self.node.cpus if resource == "CPUs" else self.node.memory_bytes
        if not asked or total is None:
            return None
        if asked > total:
            found = f"asks for {_say(asked, resource)}; this backend has {_say(total, resource)}"
            return Blocked(resource, f"{found}: ask for less in `resources:`", permanent=True)
        amounts = {holder.need.label: _amount_of(holder.need.resources, resource) for holder in self.holders}
        held = {label: amount for label, amount in amounts.items() if amount}
        free = total - sum(held.values())
        if asked > free:
            who = ", ".join(f"{label} holds {_say(amount, resource)}" for label, amount in held.items())
            found = f"waits for {_say(asked, resource)}: {_say(max(free, 0), resource)} of {_say(total, resource)} free"
            return Blocked(resource, f"{found}; {who}; it starts when enough of that ends")
        return self._behind(resource, need)

    def _behind(self, resource: str, need: Need) -> Blocked | None:
        for wanted, other in self.waiting:
            if wanted == resource and (resource != "GPUs" or self._compete(need, other)):
                return Blocked(resource, f"waits for {resource} behind {other.label}, which came first")
        return None

    def _compete(self, need: Need, other: Need) -> bool:
        return bool({gpu.id for gpu in self._eligible(need)} & {gpu.id for gpu in self._eligible(other)})

    def _gpus_asked(self, need: Need) -> Blocked | None:
        count = need.resources.gpus
        if not count:
            return None
        eligible = self._eligible(need)
        if count > len(eligible):
            return Blocked("GPUs", f"asks for {_gpus(count)}; {self._offer(need, eligible)}", permanent=True)
        reasons = {gpu.index: self._why_taken(gpu, need) for gpu in eligible}
        taken = {index: reason for index, reason in reasons.items() if reason}
        if count > len(eligible) - len(taken):
            who = "; ".join(f"GPU {index} {reason}" for index, reason in taken.items())
            free = len(eligible) - len(taken)
            return Blocked("GPUs", f"waits for {_gpus(count)}, {free} free of {len(eligible)}: {who}")
        return self._behind("GPUs", need)

    def _eligible(self, need: Need) -> list[Accelerator]:
        """The accelerators that could ever do."""
        return [gpu for gpu in self.node.accelerators if _could_do(gpu, need)]

    def _offer(self, need: Need, eligible: list[Accelerator]) -> str:
        count = len(self.node.accelerators)
        if count < need.resources.gpus:
            return f"this backend has {_gpus(count)}: ask for fewer in `resources: gpus`"
        return (
            f"of the {_gpus(count)} here {len(eligible)} can do: change `local: gpu_indices` or `resources: gpu_memory`"
        )

    def _why_taken(self, gpu: Accelerator, need: Need) -> str:
        """Why an accelerator cannot be given now, or ""."""
        holders = self._holders(gpu)
        names = ", ".join(holder.label for holder in holders)
        limit = min(one.policy.max_trials_per_gpu for one in (need, *holders))
        if gpu.busy and not need.policy.use_active_gpu:
            return "is used by a program outside this manager: end it, or set `local: use_active_gpu: true`"
        if len(holders) >= limit:
            return f"is held by {names} (at most {limit} per GPU); it is free when that ends"
        least_bytes = need.resources.gpu_memory_bytes or 0
        if gpu.memory_bytes is None:
            return ""
        free_bytes = _free_bytes(gpu, gpu.memory_bytes, holders)
        if least_bytes <= free_bytes:
            return ""
        held_by = f", held by {names}" if names else ""
        return f"has {format_bytes(free_bytes)} of {format_bytes(gpu.memory_bytes)} free{held_by}"

    def _holders(self, gpu: Accelerator) -> list[Need]:
        return [holder.need for holder in self.holders if gpu.id in holder.accelerators]

    def _choose(self, need: Need) -> tuple[str, ...]:
        """The free accelerators with the fewest trials and the most memory."""
        if not need.resources.gpus:
            return ()
        free = [gpu for gpu in self._eligible(need) if not self._why_taken(gpu, need)]
        free.sort(key=lambda gpu: (len(self._holders(gpu)), gpu.busy, -(gpu.memory_free_bytes or 0), gpu.index))
        return tuple(gpu.id for gpu in free[: need.resources.gpus])


def _could_do(gpu: Accelerator, need: Need) -> bool:
    wanted = need.policy.gpu_indices
    least_bytes = need.resources.gpu_memory_bytes or 0
    is_wanted = wanted is None or gpu.index in wanted
    return is_wanted and (gpu.memory_bytes is None or gpu.memory_bytes >= least_bytes)


def _free_bytes(gpu: Accelerator, memory_bytes: int, holders: list[Need]) -> int:
    promised_bytes = sum(holder.resources.gpu_memory_bytes or 0 for holder in holders)
    # What our own trials use already shows in the free memory, and what they may still use is promised.
    is_measured = not holders and gpu.memory_free_bytes is not None
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

"""Who holds what of a place: CPUs, memory, GPU slots. Pure bookkeeping, so that each refusal can name its true cause.

First come, first served: who waits for something keeps it from those behind, so that nobody starves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_autotrain.core.inventory import AcceleratorPolicy, Gpu, Inventory
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources


@dataclass(frozen=True, slots=True)
class Need:
    """What a trial asks for; `label` is how sentences call it, such as "trial 2 of mnist@1"."""

    job_id: str
    label: str
    resources: Resources
    policy: AcceleratorPolicy


@dataclass(frozen=True, slots=True)
class Grant:
    """What a trial holds."""

    need: Need
    placement: Placement = Placement()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a trial does not get what it asks for; `for_ever` when nothing that ends could change it."""

    resource: str
    sentence: str
    for_ever: bool = False


class ResourceAllocator:
    """The holders of one place. `inventory` is None for a place that queues by itself: then all is granted."""

    def __init__(self, inventory: Inventory | None) -> None:
        self.inventory = inventory
        self.held: dict[str, Grant] = {}
        self._ahead: list[tuple[str, Need]] = []

    def begin_round(self) -> None:
        """Forget who waits; then `ask` is called for all, the oldest first."""
        self._ahead.clear()

    def ask(self, need: Need) -> Grant | Blocked:
        """Say what a trial would get now; nothing is held yet."""
        if self.inventory is None:
            return Grant(need)
        blocked = self._amount(need, "CPUs") or self._amount(need, "memory") or self._gpus_asked(need)
        if blocked is None:
            return Grant(need, Placement((NodePlacement("", self._choose(need)),)))
        if not blocked.for_ever:
            self._ahead.append((blocked.resource, need))
        return blocked

    def hold(self, grant: Grant) -> None:
        """Take it."""
        self.held[grant.need.job_id] = grant

    def free(self, job_id: str) -> None:
        """Give back what a job held, if anything."""
        self.held.pop(job_id, None)

    def _amount(self, need: Need, resource: str) -> Blocked | None:
        assert self.inventory is not None
        asked = _amount_of(need.resources, resource)
        total = _total_of(self.inventory, resource)
        if not asked or not total:  # nothing asked, or the place does not know what it has
            return None
        if asked > total:
            found = f"asks for {_say(asked, resource)}; this place has {_say(total, resource)}"
            return Blocked(resource, f"{found}: ask for less in `resources:`", for_ever=True)
        holders = {g.need.label: _amount_of(g.need.resources, resource) for g in self.held.values()}
        holders = {label: held for label, held in holders.items() if held}
        free = total - sum(holders.values())
        if asked > free:
            who = ", ".join(f"{label} holds {_say(held, resource)}" for label, held in holders.items())
            found = f"waits for {_say(asked, resource)}: {_say(max(free, 0), resource)} of {_say(total, resource)} free"
            return Blocked(resource, f"{found}; {who}; it starts when enough of that ends")
        return self._behind(resource, need)

    def _behind(self, resource: str, need: Need) -> Blocked | None:
        for wanted, other in self._ahead:
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
            return Blocked("GPUs", f"asks for {_gpus(count)}; {self._offer(need, eligible)}", for_ever=True)
        taken = {gpu.index: reason for gpu in eligible if (reason := self._why_taken(gpu, need))}
        if count > len(eligible) - len(taken):
            who = "; ".join(f"GPU {index} {reason}" for index, reason in taken.items())
            free = len(eligible) - len(taken)
            return Blocked("GPUs", f"waits for {_gpus(count)}, {free} free of {len(eligible)}: {who}")
        return self._behind("GPUs", need)

    def _eligible(self, need: Need) -> list[Gpu]:
        """The GPUs that could ever do."""
        assert self.inventory is not None
        wanted = need.policy.gpu_indices
        least = need.resources.gpu_memory_bytes or 0
        return [
            gpu
            for gpu in self.inventory.gpus
            if (wanted is None or gpu.index in wanted) and (not gpu.memory_bytes or gpu.memory_bytes >= least)
        ]

    def _offer(self, need: Need, eligible: list[Gpu]) -> str:
        assert self.inventory is not None
        if len(self.inventory.gpus) < need.resources.gpus:
            return f"this place has {_gpus(len(self.inventory.gpus))}: ask for fewer in `resources: gpus`"
        return (
            f"of the {_gpus(len(self.inventory.gpus))} here {len(eligible)} can do: "
            "change `local: gpu_indices` or `resources: gpu_memory`"
        )

    def _why_taken(self, gpu: Gpu, need: Need) -> str:
        """Why a GPU cannot be given now, or ""."""
        holders = list(self._holders(gpu))
        limit = min([need.policy.max_trials_per_gpu, *(h.policy.max_trials_per_gpu for h in holders)])
        names = ", ".join(h.label for h in holders)
        if gpu.busy and not need.policy.use_active_gpu:
            return "is used by a program outside this manager: end it, or set `local: use_active_gpu: true`"
        if len(holders) >= limit:
            return f"is held by {names} (at most {limit} per GPU); it is free when that ends"
        least = need.resources.gpu_memory_bytes or 0
        free = self._free_memory(gpu, holders)
        if gpu.memory_bytes and least > free:
            return f"has {format_bytes(free)} of {format_bytes(gpu.memory_bytes)} free" + (
                f", held by {names}" if names else ""
            )
        return ""

    def _holders(self, gpu: Gpu) -> Iterable[Need]:
        return (grant.need for grant in self.held.values() if gpu.id in grant.placement.accelerators)

    def _free_memory(self, gpu: Gpu, holders: list[Need]) -> int:
        promised = sum(h.resources.gpu_memory_bytes or 0 for h in holders)
        # What our own trials use already shows in the free memory, and what they may still use is promised.
        return max(min(gpu.memory_bytes - promised, gpu.memory_bytes if holders else gpu.memory_free_bytes), 0)

    def _choose(self, need: Need) -> tuple[str, ...]:
        """The free GPUs with the fewest trials and the most memory."""
        free = [gpu for gpu in self._eligible(need) if not self._why_taken(gpu, need)] if need.resources.gpus else []
        free.sort(key=lambda gpu: (len(list(self._holders(gpu))), gpu.busy, -gpu.memory_free_bytes, gpu.index))
        return tuple(gpu.id for gpu in free[: need.resources.gpus])


def _amount_of(resources: Resources, resource: str) -> float:
    return (resources.cpus if resource == "CPUs" else resources.memory_bytes) or 0


def _total_of(inventory: Inventory, resource: str) -> float:
    return inventory.cpus if resource == "CPUs" else inventory.memory_bytes


def _say(amount: float, resource: str) -> str:
    return f"{amount:g} {'CPU' if amount == 1 else 'CPUs'}" if resource == "CPUs" else f"{format_bytes(amount)} memory"


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"

"""Who gets which nodes of a backend: CPUs, memory and accelerators, on one node or on several at once.

Bookkeeping without side effects, so that each refusal can name its cause. A trial gets all of its nodes or none, so
trials never wait for each other. The oldest that waits keeps its machines: as many nodes as it asks for, those that are
free first, and nothing that comes later takes what it needs of them, unless it is known to end before. So what is free
for it only grows: no starvation. A trial goes where it leaves the least, so that large ones find whole nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.backends.trial_content import from_last_saved, in_home
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.inventory import AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSpec
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager.artifact_sync import CheckpointMove, begun_anew
from jupyter_autotrain.manager.attempts import Attempt
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.queue.adjacency import node_sets
from jupyter_autotrain.manager.queue.node_allocator import NodeAllocator
from jupyter_autotrain.manager.queue.node_answers import NodeAnswer, NodeAnswers
from jupyter_autotrain.manager.queue.reservations import Reservation, ReservationTable, machine_of
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable


def resource_request(run: ExperimentRun, number: int, choice: BackendChoice) -> ResourceRequest:
    """Return what a trial requests of one of its backends, and which of its nodes it avoids or prefers."""
    trial = run.trials[number]
    label = f"trial {number} of {run.label}"
    policy = from_json(AcceleratorPolicy, {**choice.profile.options, **choice.options})
    avoid = run.history.lost_by(number, choice.profile.name)
    prefer = run.history.last_on(number, choice.profile.name)
    refused = run.history.refused_by(number, choice.profile.name)
    job_id = f"{run.id}-{number}-{trial.attempt}"
    spec = run.record.spec
    takes_s = min(run.history.times(choice.profile.name).longest_s, spec.timeout_s or math.inf)
    waited_s = run.now_s() - trial.created_s
    return ResourceRequest(
        job_id, label, spec.resources, policy, avoid, prefer, refused, spec.priority, takes_s, waited_s
    )


def kept_elsewhere(run: ExperimentRun, number: int) -> KeptCheckpoints | None:
    """Return the last checkpoints of a trial's attempts before, as far as only a backend has them."""
    context = BackendContext(run.context.home)
    present = run.trial_spec(number)
    trial = from_last_saved(present, context, lambda attempt: _kept(run, present, attempt) is not None)
    return None if trial.resume_attempt is None else _kept(run, present, trial.resume_attempt)


def source_backend(run: ExperimentRun, number: int) -> str:
    """Return the backend of a trial's source, where that alone has its checkpoint; "" where the trial may go anywhere.

    What has succeeded elsewhere leaves its checkpoints there, so what goes on from it goes there too.
    """
    trial = run.trials[number]
    source = trial.source
    if source is None or trial.attempt > 1 or len(run.record.spec.backends) == 1:
        return ""
    context = BackendContext(run.context.home)
    if in_home(context, run.trial_spec(number)) is not None or kept_elsewhere(run, number) is not None:
        return ""
    try:
        found = run.context.retry_store(run.context.store.trial, source.experiment_id, source.number).backend
    except AutotrainError:  # it was deleted since
        return ""
    return found if found in {choice.profile.name for choice in run.record.spec.backends} else ""


def _kept(run: ExperimentRun, trial: TrialSpec, attempt: int) -> KeptCheckpoints | None:
    """Return what is noted of an attempt; None where that is nothing, or another's."""
    kept = KeptCheckpoints.read(BackendContext(run.context.home).directory(trial, attempt))
    names = {choice.profile.name for choice in run.record.spec.backends}
    is_own = kept is not None and kept.ref.backend in names and kept.ref.job_id == trial.job_id_of(attempt)
    return kept if is_own and kept is not None and kept.sizes else None


def begin_move(run: ExperimentRun, attempt: Attempt, find: Callable[[BackendChoice], Backend | str]) -> TrialSpec:
    """Give an attempt its move where another backend has its checkpoints; gives what is submitted.

    Args:
        run: The experiment.
        attempt: The attempt; one that is only submitted to be cancelled, as it may run already, needs none.
        find: Gives a backend, or why it cannot be used.
    """
    trial = attempt.trial
    attempt.move = None
    kept = kept_elsewhere(run, trial.number)
    if kept is None or kept.ref.backend == attempt.placement.backend:
        return trial
    if attempt.final_state is not None:
        return begun_anew(trial, kept, "it is to be stopped")
    backend = find(run.record.spec.choice(kept.ref.backend))
    if isinstance(backend, str):
        return begun_anew(trial, kept, backend)
    is_source = trial.source is not None and kept.ref.job_id == trial.source.job_id
    saved_by = 0 if is_source else int(kept.ref.job_id.rpartition("-")[2])
    directory = BackendContext(run.context.home).directory(trial, saved_by)
    attempt.move = CheckpointMove(kept, backend, directory, run.context.clocks)
    return trial


_SHOWN = 3  # reasons, and nodes of each


@dataclass(slots=True)
class ResourceAllocator:
    """Shares out the nodes of one backend.

    Attributes:
        inventory: What it has; None for a backend that queues by itself: then all is granted.
        table: What trials hold, of all backends.
        backend: The key of its profile.
        is_remote: Whether its nodes are other machines, so that refusals name them.
    """

    inventory: Inventory | None
    table: ReservationTable = field(default_factory=ReservationTable)
    backend: str = ""
    is_remote: bool = False
    _answers: NodeAnswers = field(init=False)

    def __post_init__(self) -> None:
        self._answers = NodeAnswers(self.table, self.backend)

    def try_allocate(self, request: ResourceRequest) -> Reservation | Unschedulable:
        """Return what a trial would get now, on as many nodes as it asks for, or on none; nothing is reserved yet."""
        if self.inventory is None:
            return Reservation(request, backend=self.backend)
        asked = {node.name: self._ask(node, request) for node in self.inventory.nodes}
        answers = {name: one.answer for name, one in asked.items()}
        chosen = self._chosen(request, answers, asked)
        if chosen:
            return Reservation(request, Placement(tuple(chosen)), self.backend)
        return self._refuse(request, answers)

    def has_other_place(self, request: ResourceRequest) -> bool:
        """Return whether enough nodes could do, now or later, and not only those that the request avoids.

        Of a backend that queues by itself no node is known: it is another place where nothing of it is avoided.
        """
        if self.inventory is None:
            return not request.avoid
        able = [node.name for node in self.inventory.nodes if _could_do(self._ask(node, request).answer)]
        return len(able) >= request.resources.nodes and not request.avoid.issuperset(able)

    def wait(self, request: ResourceRequest, refusal: Unschedulable) -> None:
        """Let a refused trial wait in this round, so that none that comes later takes what it waits for."""
        for machine in refusal.machines:
            self.table.waiting.setdefault(machine, []).append(request)

    def capacity(self, request: ResourceRequest) -> float:
        """Return how many such trials the backend could run at the same time, if it had no others."""
        if self.inventory is None:
            return float("inf")
        nodes = [node for node in self.inventory.nodes if not node.unavailable]
        return sum(NodeAllocator(node).capacity(request) for node in nodes) // request.resources.nodes

    def set_unavailable(self, names: Sequence[str], reason: str) -> None:
        """Place nothing on these nodes until the inventory is read again."""
        if self.inventory is not None:
            nodes = [replace(one, unavailable=reason) if one.name in names else one for one in self.inventory.nodes]
            self.inventory = replace(self.inventory, nodes=tuple(nodes))

    @property
    def has_unavailable_nodes(self) -> bool:
        """True when a node is known not to answer."""
        return self.inventory is not None and any(node.unavailable for node in self.inventory.nodes)

    def _ask(self, node: Node, request: ResourceRequest) -> NodeAnswer:
        assert self.inventory is not None
        return self._answers.ask(node, request, is_only=len(self.inventory.nodes) == 1)

    def _chosen(
        self,
        request: ResourceRequest,
        answers: Mapping[str, NodePlacement | Unschedulable],
        nodes: Mapping[str, NodeAnswer],
    ) -> list[NodePlacement]:
        """Return the nodes that a trial gets, none where there are too few; those that it fills best."""
        granted = [answer for answer in answers.values() if isinstance(answer, NodePlacement)]
        others = [name for name, answer in answers.items() if name not in request.avoid and _could_do(answer)]
        if self._first_nodes(request, others):
            granted = [placed for placed in granted if placed.node not in request.avoid]
        granted.sort(key=lambda placed: _rank(request, nodes[placed.node]))
        chosen = self._first_nodes(request, [placed.node for placed in granted])
        return [placed for placed in granted if placed.node in chosen]

    def _first_nodes(self, request: ResourceRequest, names: Sequence[str]) -> Sequence[str]:
        """Return the first of these nodes, as many as asked for and neighbours where that is; none of too few."""
        asked = request.resources
        assert self.inventory is not None
        sets = node_sets(self.inventory.nodes, asked)
        if sets is None:
            return names[: asked.nodes] if len(names) >= asked.nodes else []
        possible = [one for one in sets if {*one} <= {*names}]
        return min(possible, key=lambda one: sorted(map(names.index, one)), default=[])

    def _refuse(self, request: ResourceRequest, answers: dict[str, NodePlacement | Unschedulable]) -> Unschedulable:
        assert self.inventory is not None
        blocked = {name: answer for name, answer in answers.items() if isinstance(answer, Unschedulable)}
        asked = request.resources.nodes
        nodes = len(self.inventory.nodes)
        possible = [name for name, answer in answers.items() if not _is_permanent(answer)]
        if nodes < asked:
            found = f"asks for {count(asked, 'node')}; this backend has {nodes}: ask for fewer"
            return Unschedulable("nodes", found, permanent=True)
        if len(possible) < asked:
            return self._joined("asks for", asked, blocked)
        if not self._first_nodes(request, possible):
            found = f"asks for {count(asked, 'node')} side by side ({request.resources.adjacent}); here no {asked} are"
            return Unschedulable("nodes", f"{found}: ask for fewer, or remove `adjacent`", permanent=True)
        refusal = self._joined("waits for", asked, {name: blocked[name] for name in possible if name in blocked})
        return replace(refusal, machines=self._reserved(request, answers), unavailable=self._silent(asked, answers))

    def _reserved(self, request: ResourceRequest, answers: dict[str, NodePlacement | Unschedulable]) -> tuple[str, ...]:
        """Return the machines that a refused trial waits for.

        They come in the order in which they get free for it, then in their own.
        """
        assert self.inventory is not None
        nodes = [node for node in self.inventory.nodes if _could_do(answers[node.name])]
        nodes.sort(key=lambda node: (node.name in request.avoid, isinstance(answers[node.name], Unschedulable)))
        first = self._first_nodes(request, [node.name for node in nodes]) or [node.name for node in nodes]
        reserved = [node for node in nodes if node.name in first]
        return tuple(machine_of(self.backend, node) for node in reserved[: request.resources.nodes])

    def _silent(self, asked: int, answers: dict[str, NodePlacement | Unschedulable]) -> bool:
        return sum(map(_could_do, answers.values())) < asked

    def _joined(self, verb: str, asked: int, blocked: dict[str, Unschedulable]) -> Unschedulable:
        """One answer for all nodes."""
        assert self.inventory is not None
        first = next(iter(blocked.values()))
        if len(self.inventory.nodes) == 1:
            (name,) = blocked
            return replace(first, sentence=f"{first.sentence} (on {name})") if self.is_remote else first
        sentence = f"{verb} {count(asked, 'node')}: {_by_reason(blocked)}"
        return Unschedulable(first.resource, sentence, permanent=all(one.permanent for one in blocked.values()))


def _rank(request: ResourceRequest, node: NodeAnswer) -> tuple[bool, bool, float]:
    """Return the order of choices, the least first."""
    return node.node.name in request.avoid, node.node.name not in request.prefer, node.spare


def _by_reason(blocked: dict[str, Unschedulable]) -> str:
    """Return what each node says; those that say the same once, and of many the first ones."""
    names: dict[str, list[str]] = {}
    for name, one in blocked.items():
        names.setdefault(one.sentence, []).append(name)
    told = [f"on {_first(group)} it {sentence}" for sentence, group in names.items()]
    left = sum(map(len, list(names.values())[_SHOWN:]))
    more = [f"{count(left, 'more node')} cannot either, for other reasons"] if left else []
    return "; ".join([*told[:_SHOWN], *more])


def _first(names: list[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])


def _is_permanent(answer: NodePlacement | Unschedulable) -> bool:
    return isinstance(answer, Unschedulable) and answer.permanent


def _could_do(answer: NodePlacement | Unschedulable) -> bool:
    """Return whether the node answers and has enough, now or when trials there have ended."""
    return not isinstance(answer, Unschedulable) or not (answer.permanent or answer.unavailable)

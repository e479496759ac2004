"""The start of trials: those that wait are placed on a backend anew in each round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.completion_time import Candidate, Estimate, choose, estimates, explain
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.queue.reservations import Reservation
from jupyter_autotrain.manager.queue.resource_request import Unschedulable
from jupyter_autotrain.manager.resources import kept_elsewhere, resource_request, source_backend


@dataclass(frozen=True, slots=True)
class Placed:
    """A trial starts now, on this backend, for this reason ("" where there is no other)."""

    choice: BackendChoice
    reservation: Reservation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Offer:
    """The answer of a backend to a trial."""

    choice: BackendChoice
    answer: Reservation | Unschedulable
    is_avoided: bool = False

    @property
    def is_possible(self) -> bool:
        """Return whether it would take the trial, now or later."""
        return isinstance(self.answer, Reservation) or not (self.answer.permanent or self.answer.unavailable)


@dataclass(slots=True)
class TrialPlacer:
    """Decides for the waiting trials of all experiments, in their turn.

    Attributes:
        pool: The backends.
    """

    pool: BackendPool
    _waiting: Counter[tuple[str, str]] = field(default_factory=Counter)  # by experiment and backend, in this round
    _full: dict[Hashable, Unschedulable] = field(default_factory=dict)  # what those alike were told in this round

    def begin_round(self) -> None:
        """Begin a round, in which `place` is called for all waiting trials in order."""
        self._waiting.clear()
        self._full.clear()
        self.pool.begin_round()

    def place(self, run: ExperimentRun, number: int) -> Placed | Unschedulable:
        """Return where a trial goes; nothing is reserved for it, but what it waits for is kept from later ones."""
        federated = run.record.spec.federated
        client = str(run.trials[number].params.get("client"))
        bound = federated.client(client).place if federated else source_backend(run, number)
        is_usual = run.history.is_usual(number) and not bound
        if is_usual and (refusal := self.refusal(run)):
            return refusal
        choices = [choice for choice in run.record.spec.backends if bound in {"", choice.profile.name}]
        offers = [self._offer(run, number, choice) for choice in choices]
        possible = _possible(offers)
        if not possible:
            return self._keep(run, _joined(offers), is_kept=is_usual)
        if placed := _where_its_checkpoints_are(run, number, possible):
            return placed
        answer = self._where_it_ends_first(run, number, offers, possible)
        if isinstance(answer, Placed):
            return answer
        return self._keep(run, answer, is_kept=is_usual and not _has_reservation(offers))

    def refusal(self, run: ExperimentRun) -> Unschedulable | None:
        """Return what all usual trials of an experiment are told from now on: nothing becomes free within a round."""
        return self._full.get(_kind(run))

    def _keep(self, run: ExperimentRun, answer: Unschedulable, *, is_kept: bool) -> Unschedulable:
        if is_kept and not answer.permanent:
            self._full[_kind(run)] = answer
        return answer

    def _where_it_ends_first(
        self, run: ExperimentRun, number: int, offers: Sequence[_Offer], possible: Sequence[_Offer]
    ) -> Placed | Unschedulable:
        found = estimates([self._candidate(run, number, offer) for offer in possible])
        chosen = choose(found)
        offer = possible[found.index(chosen)]
        reason = _reason(run, number, explain(chosen, found))
        if isinstance(offer.answer, Reservation):
            return Placed(offer.choice, offer.answer, reason)
        self._wait_for(run, number, offer, possible)
        return _waits_for(offer, chosen, offers, reason)

    def _wait_for(self, run: ExperimentRun, number: int, offer: _Offer, possible: Sequence[_Offer]) -> None:
        """Keep what a trial waits for, on each backend that it may go to, from trials that come later."""
        for one in possible:
            if isinstance(one.answer, Unschedulable):
                self.pool.allocator(one.choice).wait(resource_request(run, number, one.choice), one.answer)
        self._waiting[run.id, offer.choice.profile.name] += 1

    def _offer(self, run: ExperimentRun, number: int, choice: BackendChoice) -> _Offer:
        if refused := run.history.refused_by(number, choice.profile.name).get(""):
            return _Offer(choice, Unschedulable("backend", f"is refused: {refused}", permanent=True))
        there = run.history.count(choice.profile.name)
        if choice.at_most is not None and there >= choice.at_most:
            limit = f"waits: {count(there, 'trial')} of this experiment run there, its limit (`at_most`)"
            return _Offer(choice, Unschedulable("trials", limit))
        request = resource_request(run, number, choice)
        return _Offer(choice, self.pool.try_allocate(choice, request), self.pool.is_avoided(choice, request))

    def _candidate(self, run: ExperimentRun, number: int, offer: _Offer) -> Candidate:
        choice = offer.choice
        name = choice.profile.name
        slots = self.pool.capacity(choice, resource_request(run, number, choice))
        return Candidate(
            name,
            run.history.times(name),
            run.history.ages_s(name, run.now_s()),
            slots if choice.at_most is None else min(slots, choice.at_most),
            isinstance(offer.answer, Reservation),
            self._waiting[run.id, name],
            choice.prefer,
            self.pool.is_pending(choice),
        )


def _kind(run: ExperimentRun) -> Hashable:
    """Return what trials have in common that get the same answer: of one experiment, or alike at one place."""
    spec = run.record.spec
    choice = spec.backends[0]
    if len(spec.backends) > 1 or choice.at_most is not None:
        return run.id
    longest_s = run.history.times(choice.profile.name).longest_s
    return choice.profile.key, str(choice.options), spec.resources, spec.priority, spec.timeout_s, longest_s


def _possible(offers: Sequence[_Offer]) -> list[_Offer]:
    """Return the offers that would take a trial, now or later; those that are avoided only where all are."""
    possible = [offer for offer in offers if offer.is_possible]
    return [offer for offer in possible if not offer.is_avoided] or possible


def _has_reservation(offers: Sequence[_Offer]) -> bool:
    return any(isinstance(offer.answer, Reservation) for offer in offers)


def _reason(run: ExperimentRun, number: int, why: str) -> str:
    """Return why a trial goes to one of several backends, and what others said; "" where there is one alone."""
    if len(run.record.spec.backends) < 2:
        return ""
    return "; ".join((why, *run.history.refusals(number)))


def _where_its_checkpoints_are(run: ExperimentRun, number: int, possible: Sequence[_Offer]) -> Placed | None:
    """Place a trial at once where its checkpoints are, if they were too large to be brought here."""
    kept = kept_elsewhere(run, number)
    for offer in possible:
        name = offer.choice.profile.name
        if kept is not None and name == kept.ref.backend and isinstance(offer.answer, Reservation):
            return Placed(offer.choice, offer.answer, _reason(run, number, f"{name}, where its checkpoints are"))
    return None


def _waits_for(offer: _Offer, chosen: Estimate, offers: Sequence[_Offer], reason: str) -> Unschedulable:
    """Return the backend where the trial ends first, to wait for; any, where all that are possible are full."""
    assert isinstance(offer.answer, Unschedulable)
    if not _has_reservation(offers):
        return _joined(offers)
    return Unschedulable(
        offer.answer.resource, f"waits for {reason}; on {chosen.candidate.name} it {offer.answer.sentence}"
    )


def _joined(offers: Sequence[_Offer]) -> Unschedulable:
    """Return what all backends of an experiment answer; of one backend its own sentence."""
    refusals = [
        (offer.choice.profile.name, offer.answer) for offer in offers if isinstance(offer.answer, Unschedulable)
    ]
    if len(refusals) == 1:
        return refusals[0][1]
    sentence = "; ".join(f"on {name} it {one.sentence}" for name, one in refusals)
    return Unschedulable("backend", sentence, permanent=all(one.permanent for _, one in refusals))

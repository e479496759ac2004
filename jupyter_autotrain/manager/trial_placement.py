"""Where the waiting trials go, decided anew in each round: on a backend that has what they ask for, or nowhere yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.completion_time import Candidate, Estimate, choose, estimates, explain
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.moved_checkpoints import kept_elsewhere
from jupyter_autotrain.manager.node_allocator import Unschedulable
from jupyter_autotrain.manager.reservations import Reservation
from jupyter_autotrain.manager.trial_resources import resource_request


@dataclass(frozen=True, slots=True)
class Placed:
    """A trial starts now, on this backend, for this reason ("" where there is no other)."""

    choice: BackendChoice
    reservation: Reservation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a backend answers to a trial."""

    choice: BackendChoice
    answer: Reservation | Unschedulable
    is_avoided: bool = False

    @property
    def is_possible(self) -> bool:
        """Whether it would take the trial, now or later."""
        return isinstance(self.answer, Reservation) or not (self.answer.permanent or self.answer.unavailable)


@dataclass(slots=True)
class TrialPlacer:
    """Decides for the waiting trials of all experiments, oldest first.

    Attributes:
        pool: The backends.
    """

    pool: BackendPool
    _waiting: Counter[tuple[str, str]] = field(default_factory=Counter)  # by experiment and backend, in this round
    _full: dict[str, Unschedulable] = field(
        default_factory=dict
    )  # by experiment: what its trials were told in this round

    def begin_round(self) -> None:
        """Begin a round, in which `place` is called for all waiting trials in order."""
        self._waiting.clear()
        self._full.clear()
        self.pool.begin_round()

    def place(self, run: ExperimentRun, number: int) -> Placed | Unschedulable:
        """Where a trial goes; nothing is reserved for it, but what it waits for is kept from those that come later."""
        refusals = run.history.refusals(number)
        is_usual = not run.history.is_lost(number) and not refusals
        if is_usual and run.id in self._full:  # nothing becomes free within a round
            return self._full[run.id]
        offers = [self._offer(run, number, choice) for choice in run.record.spec.backends]
        possible = [offer for offer in offers if offer.is_possible]
        possible = [offer for offer in possible if not offer.is_avoided] or possible
        if not possible:
            return _joined(offers)
        if placed := _where_its_checkpoints_are(run, number, possible, refusals):
            return placed
        found = estimates([self._candidate(run, number, offer) for offer in possible])
        chosen = choose(found)
        offer = possible[found.index(chosen)]
        reason = "; ".join((explain(chosen, found), *refusals)) if len(offers) > 1 else ""
        if isinstance(offer.answer, Reservation):
            return Placed(offer.choice, offer.answer, reason)
        for one in possible:
            if isinstance(one.answer, Unschedulable):
                self.pool.allocator(one.choice).wait(resource_request(run, number, one.choice), one.answer)
        self._waiting[run.id, offer.choice.profile.name] += 1
        refusal = _waits_for(offer, chosen, offers, reason)
        if is_usual and not any(isinstance(one.answer, Reservation) for one in offers):
            self._full[run.id] = refusal
        return refusal

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


def _where_its_checkpoints_are(
    run: ExperimentRun, number: int, possible: Sequence[_Offer], refusals: Sequence[str]
) -> Placed | None:
    """A trial goes on at once where its checkpoints are, if they were too large to be brought here."""
    kept = kept_elsewhere(run, number)
    for offer in possible:
        name = offer.choice.profile.name
        if kept is not None and name == kept.ref.backend and isinstance(offer.answer, Reservation):
            is_choice = len(run.record.spec.backends) > 1
            reason = "; ".join((f"{name}, where its checkpoints are", *refusals)) if is_choice else ""
            return Placed(offer.choice, offer.answer, reason)
    return None


def _waits_for(offer: _Offer, chosen: Estimate, offers: Sequence[_Offer], reason: str) -> Unschedulable:
    """A trial waits for the backend where it ends first; where all that are possible are full, it waits for any."""
    assert isinstance(offer.answer, Unschedulable)
    if not any(isinstance(one.answer, Reservation) for one in offers):
        return _joined(offers)
    return Unschedulable(
        offer.answer.resource, f"waits for {reason}; on {chosen.candidate.name} it {offer.answer.sentence}"
    )


def _joined(offers: Sequence[_Offer]) -> Unschedulable:
    """What all backends of an experiment answer; of one backend its own sentence."""
    refusals = [
        (offer.choice.profile.name, offer.answer) for offer in offers if isinstance(offer.answer, Unschedulable)
    ]
    if len(refusals) == 1:
        return refusals[0][1]
    sentence = "; ".join(f"on {name} it {one.sentence}" for name, one in refusals)
    return Unschedulable("backend", sentence, permanent=all(one.permanent for _, one in refusals))

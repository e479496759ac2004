"""Stops in progress: each is answered when all that it stops has ended, or with what has not, by name."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import CancelReceipt, JobRef, receipt_of
from jupyter_autotrain.core.records import ExperimentRecord, Request
from jupyter_autotrain.core.text_format import trial_numbers
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.reasons import node_names

_KINDS = ("pids_ended", "pids_killed", "pids_left")
_log = logging.getLogger(__name__)


def receipts_since(
    context: ManagerContext, record: ExperimentRecord, numbers: Collection[int] | None, since_s: float
) -> dict[int, CancelReceipt]:
    """Return the receipts of trials that ended after a stop was requested and before it was handled.

    Args:
        context: The home.
        record: The experiment.
        numbers: The trials meant; None means all.
        since_s: When the stop was requested.
    """
    refs: dict[str, dict[int, JobRef]] = {}
    for trial in context.retry_store(context.store.trials, record.id):
        ended = trial.state.is_final and trial.ended_s is not None and trial.ended_s >= since_s
        if ended and trial.ref is not None and (numbers is None or trial.number in numbers):
            refs.setdefault(trial.placement.backend, {})[trial.number] = trial.ref
    found: dict[int, CancelReceipt] = {}
    for backend, jobs in refs.items():
        found |= _receipts(context, record, backend, jobs)
    return found


def _receipts(
    context: ManagerContext, record: ExperimentRecord, backend: str, refs: Mapping[int, JobRef]
) -> dict[int, CancelReceipt]:
    """Return the receipts of jobs on one backend, by trial."""
    try:
        statuses = context.open_backend(record.spec.choice(backend).profile).poll([*refs.values()])
    except Exception:  # noqa: BLE001 - whatever a plugin raises: then the processes that ended are not known
        _log.exception("%s: the receipts of its trials cannot be read", record.label)
        return {}
    return {number: receipt_of(status.detail) for number, status in zip(refs, statuses, strict=True)}


def merge(receipts: Iterable[CancelReceipt]) -> dict[str, JsonValue]:
    """Return the processes of several receipts, each once."""
    found: dict[str, set[int]] = {kind: set() for kind in _KINDS}
    for receipt in receipts:
        for kind in _KINDS:
            found[kind].update(getattr(receipt, kind))
    return {kind: sorted(pids) for kind, pids in found.items()}


_STOPPED = FinalState(TrialState.CANCELLED, "stopped on request")
_GRACE_S = 5.0
_WITHIN_S = 40.0  # it is answered, where the request asks for nothing else
_STARTING = "Still being started{}: {}, and stopped when that is through."
_RESULTS_LEFT = "Ended{}, its results are still to come: {}."
_ENDING = "Not ended yet{}: {}, and stopped as soon as possible."
_SILENCE_S = 4.0  # a node that does not answer for a moment only is waited for


@dataclass(slots=True)
class _Stop:
    """A stop in progress.

    Attributes:
        run: The experiment; None where it had ended when the stop was taken in.
        left: The trials that have not ended yet.
        unreported: The trials without a receipt.
        gone: Those of which a receipt says that no process is left.
        earlier: The receipts of trials that had ended when the stop was taken in.
    """

    run: ExperimentRun | None
    begun_s: float
    within_s: float
    earlier: Future[dict[int, CancelReceipt]]
    numbers: list[int] = field(default_factory=list)
    left: set[int] = field(default_factory=set)
    unreported: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    receipts: list[CancelReceipt] = field(default_factory=list)

    def is_over(self, tick_s: float) -> bool:
        """Get whether it is answered now: what does not answer is waited for a little, and nothing without an end."""
        waited_s = tick_s - self.begun_s
        if waited_s >= self.within_s:
            return True
        if waited_s < _SILENCE_S:
            return not self.left and self.earlier.done()
        return self.run is None or self.left <= self.gone | self.run.published.unreachable | _slow(self.run, tick_s)


class Stops:
    """The stops of a home's experiments.

    Args:
        context: The home.
        threads: Where places are asked.
    """

    def __init__(self, context: ManagerContext, threads: Executor) -> None:
        self._context = context
        self._threads = threads
        self._stops: dict[int, _Stop] = {}

    def __bool__(self) -> bool:
        return bool(self._stops)

    def __contains__(self, request_id: int) -> bool:
        return request_id in self._stops

    def begin(self, request: Request, run: ExperimentRun | None) -> None:
        """Begin to stop an experiment, or the trials that the request names; `run` is None where it has ended.

        Raises:
            UnknownExperimentError: There is no such experiment.
        """
        context = self._context
        wanted = numbers_of(request.args)
        record = context.retry_store(context.store.experiment, request.experiment_id)
        read = partial(receipts_since, context, record, wanted, request.created_s)
        within_s = _seconds(request.args, "within_s", _WITHIN_S)
        stop = _Stop(run, context.clocks.tick_s(), within_s, self._threads.submit(read))
        self._stops[request.id] = stop
        if run is None:
            return
        stop.numbers = sorted(run.active if wanted is None else run.active & set(wanted))
        stop.left = set(stop.numbers)
        stop.unreported = set(run.attempts) & stop.left
        grace_s = _seconds(request.args, "grace_s", _GRACE_S)
        if wanted is None:
            context.retry_store(context.store.request_stop, run.id)
            run.cancel_all(_STOPPED, grace_s)
        else:
            run.cancel_trials(stop.numbers, _STOPPED, grace_s)

    def note_receipt(self, experiment_id: str, number: int, receipt: CancelReceipt) -> None:
        """Keep the receipt of a cancel for the stop that caused it."""
        for stop in self._stops.values():
            if stop.run is not None and stop.run.id == experiment_id and number in stop.numbers:
                stop.unreported.discard(number)
                stop.receipts.append(receipt)
                if not receipt.unreachable_nodes and not receipt.pids_left:
                    stop.gone.add(number)

    def finish(self) -> Iterator[tuple[int, JsonObject]]:
        """Give the id and the answer of each stop that is through; what is left then is ended later."""
        tick_s = self._context.clocks.tick_s()
        for request_id, stop in list(self._stops.items()):
            if stop.run is not None:
                stop.left &= stop.run.active
            if stop.is_over(tick_s):
                del self._stops[request_id]
                yield request_id, _receipt(stop, tick_s)


def numbers_of(args: JsonObject) -> list[int] | None:
    """Return the trials that a request names; None means all."""
    trials = args.get("trials")
    return [n for n in trials if isinstance(n, int)] if isinstance(trials, list) else None


def _seconds(args: JsonObject, name: str, default_s: float) -> float:
    asked = args.get(name, default_s)
    return float(asked) if isinstance(asked, int | float) else default_s


def _being_started(run: ExperimentRun) -> set[int]:
    return {number for number, attempt in run.attempts.items() if attempt.is_being_started}


def _slow(run: ExperimentRun, tick_s: float) -> set[int]:
    """Return the trials that cannot be cancelled yet, as they are being started, and those whose cancel takes long."""
    overdue = {n for n, attempt in run.attempts.items() if attempt.cancelling and tick_s > attempt.overdue_s}
    return _being_started(run) | overdue


def _receipt(stop: _Stop, tick_s: float) -> JsonObject:
    is_known = stop.earlier.done() and stop.earlier.exception() is None
    known = stop.earlier.result() if is_known else {}
    return {
        **merge([*known.values(), *stop.receipts]),
        "elapsed_s": round(tick_s - stop.begun_s, 3),
        "trials": [*(stop.numbers or sorted(known))],
        "unreported": sorted(stop.unreported - stop.left),
        "unreachable": _unreachable(stop),
        "pending": _pending(stop),
    }


def _unreachable(stop: _Stop) -> list[str]:
    """Return the nodes that do not answer, of what has not ended."""
    if stop.run is None:
        return []
    names: set[str] = set()
    for number, attempt in stop.run.attempts.items():
        if number in stop.left:
            names.update(node_names(attempt))
    return [str(node) for node in stop.run.published.nodes if node.name in names]


def _pending(stop: _Stop) -> list[str]:
    """Return what has not ended though its node answers, a sentence for each place."""
    if stop.run is None:
        return []
    starting = _being_started(stop.run)
    groups: dict[tuple[str, str], list[int]] = {}
    for number in sorted(stop.left - stop.run.published.unreachable):
        attempt = stop.run.attempts.get(number)
        where = f" on {', '.join(node_names(attempt))}" if attempt else ""
        sentence = _STARTING if number in starting else _ENDING
        if number in stop.gone:
            sentence = _RESULTS_LEFT
        groups.setdefault((sentence, where), []).append(number)
    return [sentence.format(where, trial_numbers(numbers)) for (sentence, where), numbers in groups.items()]

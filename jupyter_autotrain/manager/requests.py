"""What clients request: stop, retry, concurrency, clean. Each is answered in the store, also when it is refused."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jupyter_autotrain.backends import trial_files
from jupyter_autotrain.core.backend import CancelReceipt
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import Request
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager import stop_receipts
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.recovery import recover_run
from jupyter_autotrain.manager.trial_end import earlier
from jupyter_autotrain.manager.unreachable import node_names

_STOPPED = FinalState(TrialState.CANCELLED, "stopped on request")
_GRACE_S = 5.0
_UNREACHABLE_WAIT_S = 4.0  # a node that does not answer for a moment only is waited for
_TRIED_AGAIN = frozenset({TrialState.FAILED, TrialState.LOST, TrialState.PREEMPTED, TrialState.CANCELLED})
_log = logging.getLogger(__name__)


class RunRegistry(Protocol):
    """The experiments under way, as the manager keeps them."""

    runs: dict[str, ExperimentRun]

    def adopt(self, run: ExperimentRun) -> None:
        """Begin with an experiment."""

    def remove_trials(self, profiles: Sequence[Profile], experiment_id: str) -> None:
        """Have the trial directories of an experiment deleted at these places."""


@dataclass(slots=True)
class _StopInProgress:
    """A stop in progress; `left` are the jobs that have not ended yet, `unreported` those without a receipt."""

    request_id: int
    run: ExperimentRun
    begun_s: float
    numbers: list[int]
    left: set[int]
    unreported: set[int]
    receipts: list[CancelReceipt] = field(default_factory=list)


class RequestHandler:
    """Takes requests in and answers them, at once or when they are done."""

    def __init__(self, context: ManagerContext, manager: RunRegistry) -> None:
        self._context = context
        self._manager = manager
        self._stops: dict[int, _StopInProgress] = {}
        self._kinds: Mapping[str, Callable[[Request], JsonObject | None]] = {
            "stop": self._stop,
            "retry": self._retry,
            "concurrency": self._concurrency,
            "clean": self._clean,
        }

    @property
    def is_busy(self) -> bool:
        """True while a request waits for its answer."""
        return bool(self._stops)

    def handle(self, requests: list[Request]) -> None:
        """Answer the requests, or begin with them; those in progress stay."""
        for request in requests:
            if request.id in self._stops:
                continue
            try:
                result = self._kinds.get(request.kind, _unknown)(request)
            except AutotrainError as error:
                result = {"error": str(error)}
            except Exception as error:  # noqa: BLE001 - one bad request must not stop the manager
                _log.exception("request %d failed", request.id)
                result = {"error": f"{type(error).__name__}: {error}"}
            if result is not None:
                self._answer(request.id, result)

    def note_receipt(self, experiment_id: str, number: int, receipt: CancelReceipt) -> None:
        """Keep the receipt of a cancel for the request that caused it."""
        for stop in self._stops.values():
            if stop.run.id == experiment_id and number in stop.numbers:
                stop.unreported.discard(number)
                stop.receipts.append(receipt)

    def finish_stops(self) -> None:
        """Answer the stops that are through; what nodes that do not answer have is stopped as soon as they do."""
        for stop in list(self._stops.values()):
            stop.left &= stop.run.active
            tick_s = self._context.clocks.tick_s()
            is_waited_for = (
                tick_s - stop.begun_s < _UNREACHABLE_WAIT_S or not stop.left <= stop.run.published.unreachable
            )
            if not stop.left or not is_waited_for:
                del self._stops[stop.request_id]
                self._answer(stop.request_id, _receipt(stop, tick_s))

    def _answer(self, request_id: int, result: JsonObject) -> None:
        self._context.retry_store(self._context.store.finish_request, request_id, result)

    def _stop(self, request: Request) -> JsonObject | None:
        run = self._manager.runs.get(request.experiment_id)
        wanted = _numbers(request.args)
        grace_s = request.args.get("grace_s", _GRACE_S)
        grace_s = float(grace_s) if isinstance(grace_s, int | float) else _GRACE_S
        record = self._context.retry_store(self._context.store.experiment, request.experiment_id)
        known = stop_receipts.receipts_since(self._context, record, wanted, request.created_s)
        if run is None:
            return {**stop_receipts.merge(known.values()), "elapsed_s": 0.0, "trials": sorted(known)}
        chosen = sorted(run.active if wanted is None else run.active & set(wanted))
        stop = _StopInProgress(
            request.id, run, self._context.clocks.tick_s(), chosen, set(chosen), set(run.attempts) & set(chosen)
        )
        stop.receipts += known.values()
        self._stops[request.id] = stop
        if wanted is None:
            self._context.retry_store(self._context.store.request_stop, run.id)
            run.cancel_all(_STOPPED, grace_s)
        else:
            run.cancel_trials(chosen, _STOPPED, grace_s)
        return None

    def _retry(self, request: Request) -> JsonObject:
        context = self._context
        wanted = _numbers(request.args)
        run = self._manager.runs.get(request.experiment_id)
        if run is None:
            record = context.retry_store(context.store.experiment, request.experiment_id)
            run = recover_run(context, record, again=True)
        ended = request.experiment_id not in self._manager.runs
        chosen = [
            number
            for number, trial in run.trials.items()
            if trial.state in _TRIED_AGAIN and (wanted is None or number in wanted)
        ]
        if chosen:
            context.retry_store(context.store.withdraw_stop, run.id)
            if ended:
                context.retry_store(context.store.begin_retry, run.id, run.now_s())
            run.stopping = False
            self._manager.adopt(run)
        for number in chosen:
            run.change_state(number, TrialState.WAITING, f"tried again on request; {earlier(run.trials[number])}")
        return {"trials": list(chosen)}

    def _concurrency(self, request: Request) -> JsonObject:
        asked = request.args.get("concurrency")
        if not isinstance(asked, int) or asked < 1:
            return {"error": f"concurrency is {asked!r}: a whole number of at least 1 was expected"}
        self._context.retry_store(self._context.store.experiment, request.experiment_id)
        run = self._manager.runs.get(request.experiment_id)
        if run is not None:
            run.concurrency = asked
        return {"concurrency": asked}

    def _clean(self, request: Request) -> JsonObject:
        if request.experiment_id in self._manager.runs:
            return {"error": "the experiment is under way: stop it first"}
        folder = self._context.home.experiment(request.experiment_id)
        size_bytes = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        places = self._context.retry_store(trial_files.places_of, self._context.store, request.experiment_id)
        self._context.retry_store(self._context.store.delete_experiment, request.experiment_id)
        shutil.rmtree(folder, ignore_errors=True)
        self._manager.remove_trials(places, request.experiment_id)
        return {"deleted": True, "size_bytes": size_bytes}


def _unknown(request: Request) -> JsonObject:
    return {"error": f"there is no request of the kind {request.kind!r}"}


def _numbers(args: JsonObject) -> list[int] | None:
    trials = args.get("trials")
    return [n for n in trials if isinstance(n, int)] if isinstance(trials, list) else None


def _receipt(stop: _StopInProgress, tick_s: float) -> JsonObject:
    attempts = stop.run.attempts
    names = {name for number in stop.left if number in attempts for name in node_names(attempts[number])}
    return {
        **stop_receipts.merge(stop.receipts),
        "elapsed_s": round(tick_s - stop.begun_s, 3),
        "trials": [*stop.numbers],
        "unreported": sorted(stop.unreported - stop.left),
        "unreachable": [str(node) for node in stop.run.published.nodes if node.name in names],
    }

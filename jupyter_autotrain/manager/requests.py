"""Requests of clients: stop, clean, and changes. Each is answered in the store, also when it is refused."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.core.backend import CancelReceipt
from jupyter_autotrain.core.records import Request
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager.changes import ExperimentChanges, RunRegistry
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.stops import Stops

_log = logging.getLogger(__name__)


class RequestHandler:
    """Takes requests in and answers them, at once or when they are done.

    Args:
        context: The home.
        manager: The experiments under way.
        threads: Where places are asked.
    """

    def __init__(self, context: ManagerContext, manager: RunRegistry, threads: Executor) -> None:
        self._context = context
        self._manager = manager
        self._stops = Stops(context, threads)
        changes = ExperimentChanges(context, manager)
        self._kinds: Mapping[str, Callable[[Request], JsonObject | None]] = {
            "stop": self._stop,
            "retry": changes.retry,
            "resume": changes.resume,
            "update": changes.update,
            "continue": changes.clone,
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
        self._stops.note_receipt(experiment_id, number, receipt)

    def finish_stops(self) -> None:
        """Answer the stops that are through; what nodes that do not answer have is stopped as soon as they do."""
        for request_id, result in self._stops.finish():
            self._answer(request_id, result)

    def _answer(self, request_id: int, result: JsonObject) -> None:
        self._context.retry_store(self._context.store.finish_request, request_id, result)

    def _stop(self, request: Request) -> None:
        self._stops.begin(request, self._manager.runs.get(request.experiment_id))

    def _clean(self, request: Request) -> JsonObject:
        if request.experiment_id in self._manager.runs:
            return {"error": "the experiment is under way: stop it first"}
        folder = self._context.home.experiment(request.experiment_id)
        size_bytes = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        places = self._context.retry_store(trial_content.places_of, self._context.store, request.experiment_id)
        self._context.retry_store(self._context.store.delete_experiment, request.experiment_id)
        shutil.rmtree(folder, ignore_errors=True)
        self._manager.remove_trials(places, request.experiment_id)
        return {"deleted": True, "size_bytes": size_bytes}


def _unknown(request: Request) -> JsonObject:
    return {"error": f"there is no request of the kind {request.kind!r}"}

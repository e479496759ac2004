"""The tools that act: a cell is submitted or planned, an experiment is stopped; each gives an id to ask for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.client.lookup import find
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, StoreError, UnknownExperimentError
from jupyter_autotrain.mcp.cell_requests import CellRequests, Wanted
from jupyter_autotrain.mcp.reading import answer, facts_of, from_code
from jupyter_autotrain.store import Store

_STOP: Final = "stop-"
_FROM_CODE: Final = ("error", "would_be_sent")


@dataclass(frozen=True, slots=True)
class ActingTools:
    """The tools that act on one home.

    Attributes:
        home: The home.
        environ: The server's variables, where secrets are looked up.
        requests: The cells that were asked for.
    """

    home: Home
    environ: Mapping[str, str]
    requests: CellRequests

    def begin_submit(self, wanted: Wanted, asked_by: str) -> str:
        """Begin to submit a cell, and give the id of the request; raises what `CellRequests.start` does."""
        return self.requests.start("submit", wanted, asked_by)

    def begin_plan(self, wanted: Wanted, asked_by: str) -> str:
        """Begin to plan a cell, likewise."""
        return self.requests.start("plan", wanted, asked_by)

    def stop(self, experiment: str, trials: list[int] | None = None) -> str:
        """Stop an experiment, or some of its trials. Returns the id of a request; its receipt: show_request."""
        found = find(experiment, self.home, None)
        try:
            if found.state.is_final:
                raise AutotrainError(f"{found.name} is {found.state}.", "A running experiment.", "Nothing to stop.")
            args: dict[str, JsonValue] = {"grace_s": 5.0}
            if trials is not None:
                args["trials"] = [*trials]
            return answer({"request": f"{_STOP}{found.request('stop', args)}", "experiment": found.id})
        finally:
            found.store.close()

    def show_request(self, request: str) -> str:
        """Tell how far a request is: preparing, or what has come of it; of a submission its experiment as it is now."""
        return answer(self.state_of(request))

    def state_of(self, request: str) -> JsonObject:
        """Return how far a request is, its texts marked.

        Raises:
            AutotrainError: There is no such request.
        """
        if request.startswith(_STOP):
            return self._stop_state(request)
        found = dict(self.requests.status(request))
        for name in _FROM_CODE:
            if name in found:
                found[name] = from_code(str(found[name]))
        if "experiment" in found:
            found["experiment"] = self.experiment(str(found["experiment"]))
        return {"request": request, **found}

    def experiment(self, experiment_id: str) -> JsonObject:
        """Return an experiment; of one that was deleted only that."""
        try:
            handle = find(experiment_id, self.home, None)
        except UnknownExperimentError:
            return {"id": experiment_id, "state": "DELETED"}
        try:
            return facts_of(handle)
        finally:
            handle.store.close()

    def _stop_state(self, request: str) -> JsonObject:
        digits = request.removeprefix(_STOP)
        try:
            with Store.open(self.home) as store:
                found = store.request(int(digits))
        except (StoreError, ValueError):
            raise AutotrainError(f"There is no request {request!r}.", "An id that a tool has returned.", "") from None
        return {"request": request, "kind": found.kind, "done": found.done, "result": from_code(str(found.result))}

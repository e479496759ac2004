"""The tools that act: a cell is submitted or planned, an experiment is stopped; each gives an id to ask for later.

By MCP's extension `io.modelcontextprotocol/tasks` a submission is a task until its experiment has ended. A client that
declares the extension gets a task of `submit_cell` and asks it with `tasks/get`; any other gets the id of a request and
asks with `show_request`. Both are the same id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, RequestParams

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.client.lookup import find
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, StoreError, UnknownExperimentError
from jupyter_autotrain.mcp.cell_requests import CellRequests, Wanted
from jupyter_autotrain.mcp.reading import answer, facts_of, from_code
from jupyter_autotrain.store import Store

_STOP: Final = "stop-"
_FROM_CODE: Final = ("error", "would_be_sent")

EXTENSION: Final = "io.modelcontextprotocol/tasks"
SUBMIT: Final = "submit_cell"
_POLL_MS: Final = 2000
_INVALID_PARAMS: Final = -32602
_FINAL: Final = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "DELETED"})


class TaskParams(RequestParams):
    """The parameters of the methods of a task."""

    task_id: str


class Tasks(Extension):
    """The submissions of one server as tasks.

    Args:
        tools: What submits and tells how far a request is.
        may_stop: Whether cancelling a task stops its experiment; else it ends only what runs before the submission.
    """

    identifier = EXTENSION

    def __init__(self, tools: ActingTools, *, may_stop: bool) -> None:
        self._tools = tools
        self._may_stop = may_stop

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods of the extension."""
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", TaskParams, self._update),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> Any:  # noqa: ANN401 - the SDK's own type of results
        """Answer a submission with a task, where the client knows tasks."""
        result = await call_next(ctx)
        capabilities = ctx.session.client_capabilities
        knows_tasks = capabilities is not None and EXTENSION in (capabilities.extensions or {})
        if params.name != SUBMIT or not knows_tasks or not isinstance(result, CallToolResult) or result.is_error:
            return result
        request = json.loads(getattr(result.content[0], "text", "{}"))["request"]
        return {**_task(request, self._created(request), "working", "preparing"), "resultType": "task"}

    async def _get(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        return await self._in_thread(params.task_id)

    async def _update(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        await self._in_thread(params.task_id)  # no task asks for input; an unknown one is an error
        return {"resultType": "complete"}

    async def _cancel(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        await self._in_thread(params.task_id)
        await anyio.to_thread.run_sync(self._cancel_now, params.task_id)
        return {"resultType": "complete"}

    async def _in_thread(self, task_id: str) -> dict[str, Any]:
        try:
            return dict(await anyio.to_thread.run_sync(self._state, task_id))
        except AutotrainError as error:
            raise MCPError(_INVALID_PARAMS, str(error)) from None

    def _state(self, task_id: str) -> JsonObject:
        found = self._tools.state_of(task_id)
        experiment = found.get("experiment")
        state = str(experiment["state"]) if isinstance(experiment, Mapping) else ""
        created = self._created(task_id)
        if "error" not in found and state not in _FINAL:
            return _task(task_id, created, "working", state or "preparing")
        if state == "CANCELLED":
            return _task(task_id, created, "cancelled", state)
        content: JsonObject = {"type": "text", "text": answer(found)}
        result: JsonObject = {"content": [content], "isError": "error" in found, "resultType": "complete"}
        return {**_task(task_id, created, "completed", state or "not submitted"), "result": result}

    def _cancel_now(self, task_id: str) -> None:
        self._tools.requests.cancel(task_id)
        experiment = self._tools.state_of(task_id).get("experiment")
        if self._may_stop and isinstance(experiment, Mapping) and experiment["state"] not in _FINAL:
            self._tools.stop(str(experiment["id"]))

    def _created(self, task_id: str) -> str:
        folder: Path = self._tools.home.agent_requests / task_id
        return _iso(folder.stat().st_mtime if folder.is_dir() else 0.0)


def _task(task_id: str, created: str, status: str, message: str) -> JsonObject:
    return {
        "taskId": task_id,
        "status": status,
        "statusMessage": message,
        "createdAt": created,
        "lastUpdatedAt": _iso(datetime.now(UTC).timestamp()),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
        "resultType": "complete",
    }


def _iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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

"""MCP's tasks (extension `io.modelcontextprotocol/tasks`): a submission is a task until its experiment has ended.

A client that declares the extension gets a task of `submit_cell` and asks it with `tasks/get`; any other gets the id of
a request and asks with `show_request`. Both are the same id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, RequestParams

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.mcp.acting import ActingTools
from jupyter_autotrain.mcp.reading import answer

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

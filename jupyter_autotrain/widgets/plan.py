"""The preview of a plan: an anywidget that draws it, and plans again when a user moves a slider.

From the front end: `replan` (seq, devices, bandwidth, memory_bytes, batch, sequence; the last two may be null),
`explain` (op, seq: which plan, 0 for the first).
To the front end: `plan` (seq, view, text, seconds) or `refused` (seq, text, seconds), `explanation` (op, seq; text:
why; heads and rows: the splits that there are).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast, runtime_checkable

import anywidget
import traitlets
from IPython.core.getipython import get_ipython

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.widgets import marimo_page
from jupyter_autotrain.widgets.display import display_page, display_view, new_view_id

_STATIC: Final = Path(__file__).parent.parent / "static"


class Rows(Protocol):
    """A table."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Explained(Protocol):
    """Why an op is split as it is, such as `parallel.plan.Explanation`."""

    why: str

    @property
    def table(self) -> Rows:
        """The splits that there are."""


@runtime_checkable
class Previewable(Protocol):
    """A plan that can be shown, such as `parallel.plan.Plan`."""

    def view(self) -> JsonObject:
        """Everything to draw; see `jupyter_autotrain.parallel.plan.view`."""

    def explain(self, op: str, /) -> Explained:
        """Why an op is split as it is."""

    def what_if(
        self, *, bandwidth: float, memory: float, devices: int, batch: int | None, sequence: int | None
    ) -> Previewable:
        """Return the plan for another machine or other inputs; `bandwidth` is a factor, `memory` bytes per device."""

    def to_html(self) -> str:
        """Return a static page for readers without a kernel."""


class LatestOnly:
    """Runs requests one by one on a thread; of those that wait only the newest is run, the others are dropped."""

    def __init__(self, work: Callable[[Mapping[str, Any]], None], name: str) -> None:
        self._work = work
        self._name = name
        self._waiting: Mapping[str, Any] | None = None
        self._busy = False
        self._lock = threading.Lock()

    def put(self, request: Mapping[str, Any]) -> None:
        """Queue a request; returns immediately."""
        with self._lock:
            self._waiting = request
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                request, self._waiting = self._waiting, None
                if request is None:
                    self._busy = False
                    return
            self._work(request)


class PlanView(anywidget.AnyWidget):
    """Shows a plan; its sliders plan again with the instant search."""

    _esm = _STATIC / "plan.js"
    _css = _STATIC / "plan.css"
    view = traitlets.Dict().tag(sync=True)
    view_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, plan: Previewable) -> None:
        self._plan = plan
        self._found: tuple[int, Previewable] = (0, plan)
        self._planner = LatestOnly(self._replan, "autotrain-replan")
        self._explainer = LatestOnly(self._explain, "autotrain-explain")
        super().__init__(view=_plain(plan.view()), view_id=new_view_id())
        self.on_msg(self._receive)

    def _receive(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        # This may run on the main thread or on a subshell's while a cell runs: nothing here waits.
        kind = content.get("kind")
        if kind == "replan":
            self._planner.put(content)
        elif kind == "explain":
            self._explainer.put(content)

    def _replan(self, request: Mapping[str, Any]) -> None:
        began = time.perf_counter()
        try:
            found = self._plan.what_if(
                bandwidth=float(request["bandwidth"]),
                memory=float(request["memory_bytes"]),
                devices=int(request["devices"]),
                batch=request.get("batch"),
                sequence=request.get("sequence"),
            )
            answer = {"kind": "plan", "view": _plain(found.view()), "text": ""}
            self._found = (int(request["seq"]), found)
        except AutotrainError as error:
            answer = {"kind": "refused", "text": str(error)}
        self.send({**answer, "seq": request["seq"], "seconds": time.perf_counter() - began})

    def _explain(self, request: Mapping[str, Any]) -> None:
        op = str(request["op"])
        seq = int(request["seq"])
        newest, found = self._found
        if seq not in {0, newest}:
            # The page will show the newest plan in a moment, and sends the request again then.
            return
        answer = {"kind": "explanation", "op": op, "seq": seq, "heads": [], "rows": []}
        try:
            told = (found if seq else self._plan).explain(op)
            answer |= {"text": told.why, "heads": told.table.heads, "rows": told.table.rows}
        except AutotrainError as error:
            answer["text"] = str(error)
        self.send(answer)


def show_plan(plan: Previewable) -> object:
    """Show a plan in the richest form that works here.

    In a notebook there are two outputs: the static page, for readers without a kernel, and the preview; a terminal gets
    the plan's text.

    Returns:
        The handle of the page's output; None in a terminal. In marimo nothing is shown but what this returns.
    """
    if marimo_page.is_running():
        return marimo_page.page(plan.to_html(), PlanView(plan))
    shell = get_ipython()
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write(f"{plan!r}\n")
        return None
    handle = display_page(plan.to_html(), repr(plan))
    display_view(PlanView(plan))
    return handle


def _plain(view: JsonObject) -> dict[str, Any]:
    # A browser's JSON knows neither infinity nor tuples, and the widget's traits compare what they hold.
    return cast("dict[str, Any]", json.loads(json.dumps(view), parse_constant=lambda _: None))

"""The live view: an anywidget that shows one experiment from the store.

From the front end: `attach` (seq: its newest frame), `picture` (trial, attempt, name), `stop` (trials: null for all),
`continue` (trial, params: a new trial from its checkpoint, with these changed);
about a log (trial, attempt: 0 for the present one, stream, rank): `log` to follow it, `search` (query, match: its
number), `download`. To the front end: `frame` (see `views.feed`), `picture` (with its bytes), `receipt` (text, trials);
about a log: `log` (text, left_out: what is before the text), `found` (see `views.log_search`), `file` (name, with its
bytes; or text: why there are none).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets
from IPython.core.getipython import get_ipython

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import trial_pictures
from jupyter_autotrain.views.feed import snapshot
from jupyter_autotrain.views.log_requests import LogRequest
from jupyter_autotrain.views.sender import FeedSender
from jupyter_autotrain.widgets.display import new_view_id

_STATIC: Final = Path(__file__).parent.parent / "static"


class LiveView(anywidget.AnyWidget):
    """Shows an experiment while it runs and after it has ended.

    The trait `snapshot` is empty here and is filled from the store when a front end attaches: a view that attaches
    late, after a reload or in a second tab, gets the whole state, and following an experiment costs nothing more.

    Args:
        experiment: The experiment.
        is_ended: Whether it had ended before anything of it was read to be shown.
        ended: Called after the last frame when the experiment ends while it is shown, and when it ends again.
        folded: True to show one line first, which unfolds to the view.
    """

    _esm = _STATIC / "live.js"
    _css = _STATIC / "live.css"
    snapshot = traitlets.Dict().tag(sync=True)
    folded = traitlets.Bool().tag(sync=True)
    view_id = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, experiment: Experiment, ended: Callable[[], None], *, is_ended: bool, folded: bool = False
    ) -> None:
        self._experiment = experiment
        fault = experiment.manager_fault
        self._sender = FeedSender(experiment.store, experiment.id, self._send_message, ended, fault)
        comm_context(partial(super().__init__, folded=folded, view_id=new_view_id()))
        self.on_msg(self._receive)
        self._sender.start(is_ended=is_ended)

    def get_state(self, key: object = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return the state for a front end that attaches, with the snapshot of the experiment."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        if "snapshot" in state:
            state["snapshot"] = self._snapshot()
        return state

    def close(self) -> None:
        """Close the view; the experiment continues."""
        self._sender.stop()
        super().close()

    def _snapshot(self) -> dict[str, Any]:
        # The number is read first: a frame sent meanwhile then arrives twice, which a view detects, instead of never.
        seq = self._sender.seq
        try:
            frame = snapshot(
                self._experiment.store, self._experiment.id, time.time(), seq, self._experiment.manager_fault
            )
        except AutotrainError as error:
            return {"error": str(error)}
        return {**frame.content, "steps": frame.steps, "values": frame.values, "times": frame.times}

    def _send_message(self, content: Mapping[str, object], buffers: list[bytes]) -> None:
        comm_context(lambda: self.send(content, buffers))

    def _receive(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        # This may run on the main thread or on a subshell's while a cell runs: nothing here waits.
        kind = content.get("kind")
        if kind == "stop":
            trials = _numbers(content.get("trials"))
            threading.Thread(target=self._stop, args=(trials,), name="autotrain-stop", daemon=True).start()
        elif kind == "continue":
            threading.Thread(target=self._continue, args=(content,), name="autotrain-continue", daemon=True).start()
        elif kind == "log":
            self._follow_log(content)
        elif kind in {"search", "download"}:
            threading.Thread(target=self._answer_log, args=(content,), name="autotrain-log", daemon=True).start()
        elif kind == "picture":
            self._send_picture(content)
        elif kind == "attach" and content.get("seq") != self._sender.seq:
            self._sender.send_whole()

    def _send_picture(self, content: Mapping[str, Any]) -> None:
        found = trial_pictures.answer(self._experiment.home, self._experiment.id, content)
        if found is not None:
            message, data = found
            self._send_message(message, [data])

    def _follow_log(self, content: Mapping[str, Any]) -> None:
        with suppress(AutotrainError):
            log = LogRequest.of(self._experiment, content)
            if log is not None:
                self._sender.follow_log(log.json, log.path)

    def _answer_log(self, content: Mapping[str, Any]) -> None:
        with suppress(AutotrainError):
            log = LogRequest.of(self._experiment, content)
            if log is None:
                return
            if content.get("kind") == "download":
                message, data = log.as_file()
                self._send_message(message, [data])
            elif (found := log.found(content)) is not None:
                self._send_message(found, [])

    def _stop(self, trials: list[int] | None) -> None:
        try:
            text = str(self._experiment.stop(trials))
        except AutotrainError as error:
            text = str(error)
        self._send_message({"kind": "receipt", "text": text, "trials": trials}, [])

    def _continue(self, content: Mapping[str, Any]) -> None:
        trial = content.get("trial")
        params = content.get("params")
        if not isinstance(trial, int) or not isinstance(params, dict):
            return
        text = ""
        try:
            self._experiment.continue_from([trial], params)
        except AutotrainError as error:
            text = str(error)
        self._send_message({"kind": "receipt", "text": text, "trials": []}, [])


def _numbers(trials: object) -> list[int] | None:
    """Return the trials that a message names; None means all."""
    return [number for number in trials if isinstance(number, int)] if isinstance(trials, list) else None


def comm_context(call: Callable[[], None]) -> None:
    """Call a function in a context in which what it sends answers no request.

    ipykernel handles a front end's next message on a comm in the thread whose request made the kernel send on that
    comm last. For a view made by a cell that is the main thread: its stop button would wait for the running cell. After
    a message that answers no request, the front end's own choice counts, a subshell, which is served at once. Nor do
    notebook runners save the state of a widget that no cell opened: files stay small.
    """
    contextvars.copy_context().run(_without_request, call)


def _without_request(call: Callable[[], None]) -> None:
    kernel = getattr(get_ipython(), "kernel", None)
    request = getattr(kernel, "_shell_parent", None)
    # The public setter also changes where the user's own threads print. Older kernels have neither this variable
    # nor the rule above.
    if isinstance(request, contextvars.ContextVar):
        request.set({})
    call()

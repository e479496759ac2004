"""Sending to the front end as nobody's reply."""

from __future__ import annotations

import contextvars
from collections.abc import Callable

from IPython.core.getipython import get_ipython


def comm_context(call: Callable[[], None]) -> None:
    """Call, and let what it sends belong to no request.

    ipykernel takes a front end's next message on a comm to where the request came from that made the kernel send on
    it last. For a view made by a cell that is the main thread: its stop button would wait for the running cell. A
    message that answers no request leaves the front end's own choice, a subshell, which is served at once. Nor do
    notebook runners keep the state of a widget that no cell opened: files stay small.
    """
    contextvars.copy_context().run(_forget_request_and, call)


def _forget_request_and(call: Callable[[], None]) -> None:
    kernel = getattr(get_ipython(), "kernel", None)
    request = getattr(kernel, "_shell_parent", None)
    # There is a public setter, but it also changes where the user's own threads print. Older kernels have neither
    # this variable nor the rule above.
    if isinstance(request, contextvars.ContextVar):
        request.set({})
    call()

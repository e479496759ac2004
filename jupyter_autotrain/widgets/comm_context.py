"""Messages to the front end that answer no request."""

from __future__ import annotations

import contextvars
from collections.abc import Callable

from IPython.core.getipython import get_ipython


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

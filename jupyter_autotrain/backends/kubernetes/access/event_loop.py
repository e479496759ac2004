"""One thread with an asyncio loop: all connections to a cluster, however many, cost one thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from jupyter_autotrain.errors import BackendUnavailableError

T = TypeVar("T")
_END_S = 10.0
_TLS_BUFFER_BYTES = 1 << 14  # for all connections; asyncio's own 256 KiB for each would be 125 MB for 500 logs
_GOODBYE_S = 0.1  # for TLS connections that were closed: their sockets are, once the other side has answered


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose TLS connections share a buffer: what is received is decrypted before the next is received."""

    def __init__(self) -> None:
        super().__init__()
        self._received = bytearray(_TLS_BUFFER_BYTES)

    def _make_ssl_transport(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on as they are
        transport = super()._make_ssl_transport(*args, **kwargs)  # type: ignore[misc] # of asyncio itself
        protocol: Any = getattr(transport, "_ssl_protocol", None)
        if hasattr(protocol, "_ssl_buffer"):
            protocol.max_size = _TLS_BUFFER_BYTES
            protocol._ssl_buffer = self._received  # noqa: SLF001 - asyncio has no setting for it
            protocol._ssl_buffer_view = memoryview(self._received)  # noqa: SLF001 - as above
        return transport


class LoopThread:
    """A loop that runs in a thread of its own from the first call on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin something in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Wait for something that runs in the loop.

        Raises:
            BackendUnavailableError: It takes longer than the timeout.
        """
        future = self.start(work)
        try:
            return future.result(timeout_s)
        except TimeoutError as error:
            if future.done():
                raise
            future.cancel()
            raise BackendUnavailableError(f"The cluster does not answer within {timeout_s:g} s.") from error

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _Loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End what runs in the loop, do a last thing there, and end the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread = self._thread
        if loop is None or thread is None:
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_all(last), loop).result(_END_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_END_S)
        if not thread.is_alive():
            loop.close()


async def _end_all(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()
    await asyncio.sleep(_GOODBYE_S)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()

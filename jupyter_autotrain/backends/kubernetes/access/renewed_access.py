"""The access to a cluster, loaded when it is needed first, and anew where the server refuses it. In the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from jupyter_autotrain.backends.kubernetes.access.kubeconfig import Access
from jupyter_autotrain.errors import BackendUnavailableError, MissingExtraError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class LoginRefusedError(Exception):
    """The server takes the login no longer."""


class Send(Protocol[T_co]):
    """Sends a request; raises `LoginRefusedError` where it is refused for its login and this is not the last try."""

    async def __call__(self, access: Access, *, is_last: bool) -> T_co:
        """Send it with an access."""
        ...


class RenewedAccess:
    """The access to one cluster.

    Args:
        load: Loads it; called again when it is refused.
    """

    def __init__(self, load: Callable[[], Access]) -> None:
        self._load = load
        self._loading: asyncio.Lock | None = None
        self.loaded: Access | None = None

    async def get(self) -> Access:
        """The access.

        Raises:
            BackendError: There is none.
        """
        if self.loaded is None:
            await self._renew(None)
        assert self.loaded is not None
        return self.loaded

    async def sent(self, send: Send[T]) -> T:
        """What a request gives; where the access is refused, it is loaded anew and the request sent again.

        Raises:
            BackendUnavailableError: There is no answer.
        """
        import aiohttp  # noqa: PLC0415 - takes 15 MB, which only a manager with a cluster pays

        access = await self.get()
        try:
            return await send(access, is_last=False)
        except (aiohttp.ClientSSLError, LoginRefusedError):  # the server may have another certificate
            await self._renew(access)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unavailable(access, error) from error
        access = await self.get()
        try:
            return await send(access, is_last=True)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unavailable(access, error) from error

    async def _renew(self, refused: Access | None) -> None:
        """Load the access, unless somebody has since it was refused."""
        if self._loading is None:
            self._loading = asyncio.Lock()
        async with self._loading:
            if self.loaded is not refused:
                return
            try:
                import aiohttp  # noqa: F401, PLC0415 - asked for before anything else needs it
            except ImportError as error:
                raise MissingExtraError("aiohttp", "kubernetes", "Trials on Kubernetes") from error
            self.loaded = await asyncio.get_running_loop().run_in_executor(None, self._load)

    def end(self) -> None:
        """The loop ends; another one may come."""
        self._loading = None


def said(error: Exception) -> str:
    """Return what an error says, else its name; the system's words of one that found no connection."""
    system = getattr(error, "os_error", None)  # aiohttp's own text shows the object of the TLS settings
    if isinstance(system, OSError):
        return system.strerror or str(system) or type(error).__name__
    return str(error) or type(error).__name__


def _unavailable(access: Access, error: Exception) -> BackendUnavailableError:
    told = f"The API server {access.host} does not answer: {said(error)}."
    return BackendUnavailableError(told, "", "It is tried again.")

"""The way into a cluster, as a kubeconfig tells it: loaded by the official client, renewed when it is refused."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

from jupyter_autotrain.errors import BackendError, BackendUnavailableError, MissingExtraError

_LOADER = Path(__file__).with_name("load_kubeconfig.py")  # by its path: its packages have nothing that it needs
_NOT_FOUND = "No configuration found"  # so says the library where there is no file, or nothing in it
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # of a pod, as `load_kubeconfig` looks for it
_LOAD_S = 60.0  # an exec plugin may ask a server


@dataclass(frozen=True, slots=True)
class Access:
    """The address and the credentials of a connection.

    Attributes:
        host: The URL of the API server.
        namespace: That of the context.
        authorization: The header of that name; "" where a certificate says who asks.
        tls: None for plain HTTP.
        server_name: What the server's certificate is issued for, where that is not its host name.
        proxy: The URL of a proxy, or "".
    """

    host: str
    namespace: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str = ""


def load(kubeconfig: str = "", context: str = "") -> Access:
    """Load the access to a cluster.

    Args:
        kubeconfig: The file; "": as `KUBECONFIG` says, or the usual one, or that of the pod that this runs in.
        context: Its context; "": the current one.

    Raises:
        BackendError: There is none, or it does not work.
    """
    answer = _ask_loader(str(Path(kubeconfig).expanduser()) if kubeconfig else "", context)
    if "fault" in answer:
        raise _no_access(kubeconfig, context, str(answer["fault"]))
    host = str(answer["host"])
    try:
        tls = _tls(answer) if host.startswith("https") else None
    except (ssl.SSLError, ValueError) as error:
        raise _no_access(kubeconfig, context, f"its certificates cannot be used: {error}") from error
    return Access(
        host=host.rstrip("/"),
        namespace=str(answer["namespace"]),
        authorization=str(answer["authorization"]),
        tls=tls,
        server_name=str(answer["server_name"]),
        proxy=str(answer["proxy"]),
    )


def _no_access(kubeconfig: str, context: str, fault: str) -> BackendError:
    where = f"context {context!r} of " if context else ""
    found = f"Cannot reach a cluster with {where}{kubeconfig or 'the kubeconfig'}: {fault.rstrip('.')}."
    if _NOT_FOUND in fault:
        found = f"There is no kubeconfig {kubeconfig}." if kubeconfig else "No kubeconfig found."
    return BackendError(
        found,
        "A kubeconfig with which `kubectl get pods` works.",
        "Set up a cluster to use this: name its kubeconfig by `kubeconfig:` and `context:` of the profile, or by "
        "KUBECONFIG before the manager starts.",
    )


def _is_somewhere(kubeconfig: str) -> bool:
    """Tell whether there is a kubeconfig, or this runs in a pod; else no process needs to be started."""
    if not kubeconfig and Path(_SERVICE_ACCOUNT).is_dir():
        return True
    names = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    return any(Path(name).expanduser().exists() for name in names.split(os.pathsep))


def _ask_loader(kubeconfig: str, context: str) -> dict[str, object]:
    if not _is_somewhere(kubeconfig):
        return {"fault": _NOT_FOUND}
    argv = [sys.executable, "-P", str(_LOADER), kubeconfig, context]
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=_LOAD_S, stdin=subprocess.DEVNULL)
        return cast("dict[str, object]", json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"fault": f"no answer within {_LOAD_S:g} s"}
    except (ValueError, IndexError):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return {"fault": lines[-1] if lines else f"exit code {done.returncode}"}


def _tls(answer: dict[str, object]) -> ssl.SSLContext:
    """Return the TLS settings. A key goes through a file for a moment, since `ssl` reads it from nowhere else."""
    authority = str(answer["ca"])
    context = ssl.create_default_context(cadata=authority or None)
    if not answer["verifies"]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if answer["certificate"]:
        fd, path = tempfile.mkstemp()
        try:
            with os.fdopen(fd, "w") as file:
                file.write(f"{answer['certificate']}\n{answer['key']}\n")
            context.load_cert_chain(path)
        finally:
            Path(path).unlink()
    return context


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
        """Return the access.

        Raises:
            BackendError: There is none.
        """
        if self.loaded is None:
            await self._renew(None)
        assert self.loaded is not None
        return self.loaded

    async def sent(self, send: Send[T]) -> T:
        """Return what a request gives; where the access is refused, it is loaded anew and the request sent again.

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
                raise MissingExtraError("aiohttp", "kubernetes", "Kubernetes") from error
            self.loaded = await asyncio.get_running_loop().run_in_executor(None, self._load)

    def end(self) -> None:
        """Let go of the loop, which ends; another one may come."""
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

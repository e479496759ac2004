"""The API server of the double: HTTPS on 127.0.0.1, in a thread.

Known differences from a real one:

- JSON only: no YAML, protobuf, CBOR or tables. No JSON patch, no server-side apply (415), no OpenAPI 2, no schemas of
  built-in kinds; exec by WebSocket, not by SPDY.
- Schemas of built-in kinds come from the official client's models, so they have no enumerations and no defaults; the
  usual rules and defaults of pods, Jobs, ConfigMaps, Secrets, Services and claims are written out, others are missing.
  Of the rules of custom kinds (CEL) only `self == oldSelf` is kept.
- There are no webhooks but those of controllers here, no pod security standards; limit ranges have no effect. A quota
  counts what is there at a creation; its `status.used` is not written. Events are kept until they are deleted.
- What a token may do is given when it is issued; Role and RoleBinding objects are kept and say nothing.
- The account `default` is everywhere without an object; namespaces hold no `kube-root-ca.crt`.
- The parts of a long list are of the moment, not of the first part's version; a watch from a version that has not
  been reached waits for it. Objects of a kind whose definition is deleted are there again when it is made again.
- A follow looks at its log ten times a second. A process in a container ends when its client goes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tornado import httpserver, netutil

from tests.labs.kubernetes.server.access import Access, User
from tests.labs.kubernetes.server.api_handler import Server
from tests.labs.kubernetes.server.certificates import Authority
from tests.labs.kubernetes.server.faults import Fault, Faults
from tests.labs.kubernetes.server.kubeconfigs import Kubeconfigs
from tests.labs.kubernetes.server.routes import application
from tests.labs.kubernetes.server.runtime import ContainerRuntime
from tests.labs.kubernetes.server.watch import Wakeups
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.decoding import Decoder

ADMINISTRATOR = User("kubernetes-admin")
_STARTS_WITHIN_S = 60.0


class ApiServer:
    """Serves a store as a cluster does.

    Args:
        store: What is served.
        folder: Where certificates and kubeconfigs are written, mode 0600.
        runtime: Logs and processes of containers.
        addresses: Where it listens; all are to be of this machine.
        bookmark_interval_s: After how long without changes a watch is sent a bookmark.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: Path,
        runtime: ContainerRuntime | None = None,
        *,
        addresses: Sequence[str] = ("127.0.0.1",),
        bookmark_interval_s: float = 10.0,
    ) -> None:
        self.access = Access()
        self._shared = Server(store, self.access, Faults(), runtime, Decoder(store.resources), bookmark_interval_s)
        self._folder = folder
        self._kubeconfigs = Kubeconfigs(folder, self.access)
        self._addresses = addresses
        self._authority = Authority()
        self._authority.write_server(self._certificate, addresses)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://{self._addresses[0]}:{self.port}"

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """Return how many requests there were, by verb and resource."""
        return self._shared.requests

    @property
    def _certificate(self) -> Path:
        return self._folder / "server.pem"

    def start(self, *, new_certificate: bool = False) -> None:
        """Listen; after a stop at the same port."""
        if new_certificate:
            self._authority = Authority()
            self._authority.write_server(self._certificate, self._addresses)
        self._shared.decoder.prepare()
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="api-server", daemon=True)
        self._thread.start()
        if not ready.wait(_STARTS_WITHIN_S):
            raise RuntimeError("The API server of the double did not start.")

    def stop(self) -> None:
        """End all connections, and listen no more."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_STARTS_WITHIN_S)
        self._thread = None

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._shared.wakeups = Wakeups(self._shared.store)
        server = httpserver.HTTPServer(
            application(self._shared), ssl_options=self._ssl(), max_body_size=16 * 1024 * 1024
        )
        sockets = self._sockets()
        server.add_sockets(sockets)
        ready.set()
        await self._stopped.wait()
        server.stop()
        self._shared.wakeups.close()
        await server.close_all_connections()
        for abandon in self._shared.processes.values():
            abandon()
        await asyncio.gather(*self._shared.processes)

    def _sockets(self) -> list[socket.socket]:
        found: list[socket.socket] = []
        for address in self._addresses:
            (listening,) = netutil.bind_sockets(self.port, address, family=socket.AF_INET)
            self.port = listening.getsockname()[1]
            found.append(listening)
        return found

    def _ssl(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        return context

    def kubeconfig(
        self, user: User = ADMINISTRATOR, *, namespace: str = "default", name: str = "", renewing: bool = False
    ) -> Path:
        """Write a kubeconfig of a user, mode 0600.

        Args:
            user: Whose token it holds.
            namespace: Of its context.
            name: Of the file; one of this name is written anew.
            renewing: Whether it asks a program for the token of the moment, which `expire_tokens` renews.
        """
        write = self._kubeconfigs.write_renewing if renewing else self._kubeconfigs.write
        return write(self.url, self._authority.certificate, user, namespace, name)

    def fail_next(self, code: int, *, retry_after_s: int | None = None, match: str = "", count: int = 1) -> None:
        """Refuse the next requests whose verb and path, such as "create /apis/batch/...", have a match."""
        self._shared.faults.add(Fault(code, retry_after_s, match, count))

    def recover(self) -> None:
        """Listen again if it was stopped, refuse and forbid no more."""
        self._shared.faults.clear()
        self.access.allow_again()
        if self._thread is None:
            self.start()

    def compact(self) -> None:
        """Watches from before have to list again: 410."""
        self._shared.store.compact()

    def expire_tokens(self) -> None:
        """All tokens so far are invalid: 401. Renewing kubeconfigs have new ones."""
        self.access.expire()
        self._kubeconfigs.renew()

    def forbid(self, verb: str, resource: str) -> None:
        """Forbid everybody a verb on a resource: 403."""
        self.access.forbid(verb, resource)

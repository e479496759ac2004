"""A web server on the loopback interface that keeps what it was sent, and may be down or hold its answers back."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from jupyter_autotrain.store.mixin import key_of

JsonPayload = Mapping[str, object]
_LONGEST_S = 60.0


class HookReceiver(ThreadingHTTPServer):
    """Has an address from the start; refuses until `open` was called, and holds answers until `may_answer` is set.

    Attributes:
        refusals: So many messages are kept and refused, with status 503.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.server_bind()
        self.received: list[JsonPayload] = []
        self.fields: list[Mapping[str, str]] = []
        self.refusals = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Where messages go."""
        return f"http://127.0.0.1:{self.server_port}/hook"

    def open(self) -> None:
        """Take connections; refused before."""
        self.server_activate()
        self._thread.start()

    def close(self) -> None:
        """End."""
        self.may_answer.set()
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a sender that was killed."""


class _Handler(BaseHTTPRequestHandler):
    server: HookReceiver

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.fields.append(dict(self.headers))
        self.server.received.append(payload)
        self.server.may_answer.wait(_LONGEST_S)
        is_refused = len(self.server.received) <= self.server.refusals
        self.send_response(503 if is_refused else 204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def delivery_states(store, experiment_id):
    """Return the hook, the state and the number of tries of each message of an experiment, in order."""
    query = "SELECT hook, state, tries FROM hook_deliveries WHERE experiment = ? ORDER BY rowid"
    with store._database.read() as connection:
        return list(connection.execute(query, (key_of(connection, experiment_id),)))

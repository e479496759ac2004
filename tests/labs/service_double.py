"""Common part of the doubles of services: an HTTP server with strict routes, and the faults of real ones."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.labs.service_jobs import JobRunner


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        method, path: Of HTTP; the path without its query.
        query: Its parameters.
        headers: By name in lower case.
        body: Its content.
        parts: What the route has found in the path.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: JSON, or text."""

    content: object = None
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """Its bytes."""
        if isinstance(self.content, bytes):
            return self.content
        return b"" if self.content is None else json.dumps(self.content).encode()


class RefusalError(Exception):
    """Refusal by the double, with an HTTP status and a text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True, slots=True)
class _Silence:
    """A time without answers; `is_deaf`: nothing is done, either."""

    is_deaf: bool
    has_come: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)


Route = tuple[str, str, Callable[[Asked], Answer]]


class ServiceDouble:
    """A service on loopback; a request that no route takes is refused.

    Args:
        runner: Runs its jobs.
        certificate: A file with the key and the certificate of an address with https; None for http.

    Attributes:
        asked: All requests, in order.
        loses_answers: Whether a request that starts a job is done, and the connection closed without an answer.
        refuses: What is answered to everything; None: what the service has to say.
    """

    def __init__(self, runner: JobRunner, certificate: Path | None = None) -> None:
        self.runner = runner
        self.asked: list[Asked] = []
        self.loses_answers = False
        self._silence: _Silence | None = None
        self.refuses: Answer | None = None
        double = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                double._serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 - as http.server calls them

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def routes(self) -> Iterator[Route]:
        """Yield method, pattern of the whole path, and what answers."""
        raise NotImplementedError

    def admit(self, asked: Asked) -> None:
        """Refuse a request without credentials."""

    def refusal(self, refusal: RefusalError) -> Answer:
        """Return how the service says no."""
        return Answer({"message": refusal.text}, refusal.code)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.command, url.path, dict(parse_qsl(url.query)), headers, body)
        self.asked.append(asked)
        silence = self._silence
        is_silent = silence is not None and silence.is_deaf
        many = len(self.runner.started)
        answer = Answer() if is_silent else self.refuses or self._answer(asked)
        has_started = asked.method != "GET" and len(self.runner.started) > many
        if silence is not None and (is_silent or has_started):
            silence.has_come.set()
            silence.is_over.wait()
        if is_silent or (has_started and (silence is not None or self.loses_answers)):
            handler.close_connection = True
            return
        handler.send_response(answer.code)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body)

    def _answer(self, asked: Asked) -> Answer:
        try:
            self.admit(asked)
            for method, pattern, route in self.routes():
                match = re.fullmatch(pattern, asked.path)
                if match and method == asked.method:
                    parts = tuple(unquote(part) for part in match.groups())
                    return route(Asked(asked.method, asked.path, asked.query, asked.headers, asked.body, parts))
            return self.refusal(RefusalError(404, f"no such route: {asked.method} {asked.path}"))
        except RefusalError as refusal:
            return self.refusal(refusal)

    @contextmanager
    def refusing(self, code: int, headers: Mapping[str, str] | None = None) -> Iterator[None]:
        """Answer a code to everything meanwhile."""
        self.refuses = Answer({"message": "no"}, code, headers or {})
        try:
            yield
        finally:
            self.refuses = None

    @contextmanager
    def silent(self, *, starts: bool = False) -> Iterator[threading.Event]:
        """Take connections and requests meanwhile, and never answer; yields an event that the first one sets.

        Args:
            starts: Whether requests are done and answered, but for those that start a job: only their answer is kept.
        """
        silence = self._silence = _Silence(is_deaf=not starts)
        try:
            yield silence.has_come
        finally:
            self._silence = None
            silence.is_over.set()

    @property
    def begun(self) -> list[str]:
        """The jobs with trials that were started, in order."""
        return self.runner.started

    def ids(self, name: str) -> list[str]:
        """Return the ids of the jobs of a name."""
        return [name] if name in self.runner.jobs else []

    def lose(self, name: str) -> None:
        """Know the jobs of a name no more, whose processes are gone."""
        for job_id in self.ids(name):
            self.runner.lose(job_id)

    def close(self) -> None:
        """End the server and its jobs."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.runner.close()

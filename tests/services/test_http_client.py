"""Tests of what refusals of a service mean, and what is shown of a request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jupyter_autotrain.backends.services.http_client import HttpService, RefusedError, Request, as_text, json_request
from jupyter_autotrain.backends.services.service import AnswerLostError
from jupyter_autotrain.errors import BackendUnavailableError

TOKEN = "t0ken-0123456789"


class Answering(ThreadingHTTPServer):
    """Answers every request with what a test says.

    Attributes:
        answer: Code, headers and body; None: the connection is closed without one.
        asked: Method, path and token of each request.
    """

    answer: tuple[int, dict[str, str], bytes] | None = (200, {}, b"{}")

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def _any(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.answer is None:
            self.close_connection = True
            return
        code, headers, body = self.server.answer
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Answering]:
    made = Answering()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def client(server: Answering) -> HttpService:
    address = f"http://127.0.0.1:{server.server_port}"
    return HttpService("Lab", address, lambda: {"Authorization": f"Bearer {TOKEN}"}, "LAB_TOKEN")


GET = Request("GET", "/jobs")


def test_a_request_carries_the_credentials_and_gives_json(server: Answering) -> None:
    server.answer = (200, {}, b'{"a": 1}')
    assert client(server).json(Request("GET", "/jobs", {"limit": 2})) == {"a": 1}
    assert server.asked == [("GET", "/jobs?limit=2", f"Bearer {TOKEN}")]


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_login_says_where_the_credentials_come_from(server: Answering, code: int) -> None:
    server.answer = (code, {}, b"no such user")
    with pytest.raises(RefusedError) as told:
        client(server).call(GET)
    assert told.value.code == code
    assert "no such user" in told.value.found
    assert told.value.action == "Log in again: LAB_TOKEN."
    assert TOKEN not in str(told.value)


def test_a_service_that_asks_to_wait_is_not_asked_before(server: Answering) -> None:
    server.answer = (429, {"Retry-After": "120"}, b"")
    own = client(server)
    with pytest.raises(BackendUnavailableError, match="asks to wait 120 s"):
        own.call(GET)
    with pytest.raises(BackendUnavailableError, match="asks not to be asked for another"):
        own.call(GET)
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [(503, {}, b"Traceback\n  File\nValueError: no agent\n.\n"), None])
def test_whether_a_request_was_done_is_not_known_when_the_service_fails_at_it(
    server: Answering, answer: tuple[int, dict[str, str], bytes] | None
) -> None:
    server.answer = answer
    with pytest.raises(AnswerLostError) as told:
        client(server).call(json_request("POST", "/jobs", {}))
    assert answer is None or "ValueError: no agent" in told.value.found


def test_a_service_that_is_not_there_has_certainly_done_nothing() -> None:
    with pytest.raises(BackendUnavailableError) as told:
        HttpService("Lab", "http://127.0.0.1:1", dict, "LAB_TOKEN").call(GET)
    assert not isinstance(told.value, AnswerLostError)
    assert "cannot be reached at http://127.0.0.1:1" in told.value.found


def test_an_answer_that_is_no_json_points_at_the_address(server: Answering) -> None:
    server.answer = (200, {}, b"<html>log in</html>")
    with pytest.raises(BackendUnavailableError, match="something else than JSON"):
        client(server).json(GET)


def test_credentials_of_a_query_are_sent_and_shown_masked(server: Answering) -> None:
    service = HttpService("Lab", f"http://127.0.0.1:{server.server_port}", dict, "", query=lambda: {"key": TOKEN})
    server.answer = (400, {}, b"no")
    with pytest.raises(RefusedError) as told:
        service.call(Request("GET", "/jobs", {"limit": 1}))
    assert server.asked == [("GET", f"/jobs?limit=1&key={TOKEN}", None)]
    assert TOKEN not in f"{told.value}"
    assert as_text([Request("GET", "/jobs", {"limit": 1})], "http://head", (), ["key"]) == (
        "GET http://head/jobs?limit=1&key=***\n"
    )


def test_what_is_shown_of_requests_masks_credentials_and_tells_the_size_of_archives() -> None:
    shown = as_text(
        [json_request("POST", "/jobs", {"b": 1}), Request("PUT", "/package", body=b"\xff" * 10)],
        "http://head:8265/", {"Authorization": TOKEN},
    )  # fmt: skip
    assert shown == (
        'POST http://head:8265/jobs\nAuthorization: ***\nContent-Type: application/json\n\n{\n "b": 1\n}\n\n'
        "PUT http://head:8265/package\nAuthorization: ***\nContent-Type: application/json\n\n(10 bytes)\n"
    )

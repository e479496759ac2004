"""One try of a hook: a real process against a server on the loopback interface, or a real command."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.manager.hooks.process import try_once

PAYLOAD = {"id": "1", "event": "ended", "text": "ä"}
WAIT_S = 240


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def receiving(status=200, location=""):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    server.received = []
    server.status = status
    server.location = location
    server.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_json_is_posted_with_variables_in_their_place():
    with receiving() as server:
        hook = Hook("x", f"{server.url}/${{PART}}", {"Authorization": "Bearer ${KEY}"}, timeout_s=WAIT_S)
        assert try_once(hook, PAYLOAD, {"KEY": "k-1", "PART": "p"}) == ""
    ((path, headers, body),) = server.received
    assert (path, headers["Authorization"], headers["Content-Type"]) == ("/hook/p", "Bearer k-1", "application/json")
    assert body == PAYLOAD


def test_a_service_gets_the_text_with_variables_in_their_place():
    with receiving() as server:
        hook = Hook("x", service="json://ada:${KEY}@127.0.0.1:${PORT}/room", timeout_s=WAIT_S)
        assert try_once(hook, PAYLOAD, {"KEY": "k-1", "PORT": str(server.server_port)}) == ""
    ((path, headers, body),) = server.received
    assert (path, body["title"], body["message"]) == ("/room", "jupyter_autotrain", "ä")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"ada:k-1"


def test_a_service_that_does_not_take_it_is_told_without_values():
    with receiving(403) as server:
        hook = Hook("x", service="json://ada:${KEY}@127.0.0.1:${PORT}", timeout_s=WAIT_S)
        fault = try_once(hook, PAYLOAD, {"KEY": "k-1", "PORT": str(server.server_port)})
    assert fault == "JSON did not take it; look at its address"
    assert try_once(Hook("x", service="${A}", timeout_s=WAIT_S), PAYLOAD, {"A": "nothing://k-1"}).startswith(
        "its address is none"
    )


def test_a_redirect_is_not_followed():
    with receiving() as other, receiving(307, other.url) as server:
        fault = try_once(Hook("x", server.url, {"Authorization": "${KEY}"}, timeout_s=WAIT_S), PAYLOAD, {"KEY": "k-1"})
    assert "HTTP status 307 (redirects are not followed" in fault
    assert (len(server.received), other.received) == (1, [])


def test_refusals_and_unreachable_addresses_are_told_without_values():
    with receiving(500) as server:
        fault = try_once(Hook("x", server.url, timeout_s=WAIT_S), PAYLOAD, {})
    assert fault == "it was answered with HTTP status 500"
    gone = try_once(Hook("x", "${URL}", timeout_s=WAIT_S), PAYLOAD, {"URL": f"{server.url}?token=k-1"})
    assert "cannot be reached" in gone
    assert "k-1" not in gone
    assert "not an http" in try_once(Hook("x", "${URL}", timeout_s=WAIT_S), PAYLOAD, {"URL": "file:///etc/passwd"})
    assert "did not answer as expected" in try_once(Hook("x", "http://a b/", timeout_s=WAIT_S), PAYLOAD, {})
    assert try_once(Hook("x", "${URL}", timeout_s=WAIT_S), PAYLOAD, {}).startswith("URL is not set")


def test_a_command_gets_the_json(tmp_path):
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
    target = tmp_path / "told"
    hook = Hook("x", command=(sys.executable, "-c", code, str(target)), timeout_s=WAIT_S)
    assert try_once(hook, PAYLOAD, {}) == ""
    assert json.loads(target.read_bytes()) == PAYLOAD


def test_a_command_that_fails_or_is_not_there_is_told():
    assert try_once(Hook("x", command=("sh", "-c", "exit 3"), timeout_s=WAIT_S), PAYLOAD, {}).endswith("exit status 3")
    assert "cannot be started" in try_once(Hook("x", command=("/nowhere/at/all",), timeout_s=WAIT_S), PAYLOAD, {})
    large = {"text": "x" * 1_000_000}
    assert try_once(Hook("x", command=("true",), timeout_s=WAIT_S), large, {}) == ""


SPAWNS = """
import os, subprocess, sys, time, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid}")
if sys.argv[2] == "waits":
    time.sleep(600)
"""


@pytest.mark.parametrize(("then", "timeout_s"), [("waits", 3.0), ("ends", WAIT_S)])
def test_the_process_tree_of_a_command_is_ended(tmp_path, then, timeout_s):
    target = tmp_path / "pids"
    hook = Hook("x", command=(sys.executable, "-c", SPAWNS, str(target), then), timeout_s=timeout_s)
    fault = try_once(hook, PAYLOAD, {})
    assert fault == ("its command did not end within 3 s" if then == "waits" else "")
    deadline_s = time.monotonic() + WAIT_S
    while target.exists() and any(map(psutil.pid_exists, map(int, target.read_text().split()))):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)

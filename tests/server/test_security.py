"""Nobody reads or does what is not theirs, nothing leads out of the home, and what trials write stays data."""

import json
import os
import socket

import pytest
import requests
import websocket

from tests.server.jupyter import BASE_URL, Filler, problem_of, running_server

OPERATIONS = [
    ("GET", "/experiments"),
    ("GET", "/notebooks"),
    ("GET", "/experiments/e"),
    ("PATCH", "/experiments/e"),
    ("DELETE", "/experiments/e"),
    ("GET", "/experiments/e/code"),
    ("GET", "/experiments/e/why"),
    ("GET", "/experiments/e/trials"),
    ("GET", "/experiments/e/series"),
    ("GET", "/experiments/e/pictures"),
    ("GET", "/experiments/e/trials/1/log"),
    ("GET", "/experiments/e/trials/1/attempts/1/pictures/0001.png"),
    ("POST", "/experiments/e/actions"),
    ("GET", "/requests/1"),
    ("GET", "/manager"),
    ("POST", "/manager"),
    ("GET", "/backends"),
    ("GET", "/backends/local/inventory"),
    ("GET", "/openapi.json"),
]
SCRIPT = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


def test_every_operation_is_in_the_table_above(server):
    described = server.get("/openapi.json")["paths"]
    found = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert len(found) == len(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_who_is_not_logged_in_is_refused(server, method, path):
    answer = requests.request(method, f"{server.api}{path}", timeout=20, json={} if method != "GET" else None)
    assert problem_of(answer)["status"] == 403
    wrong = requests.request(
        method, f"{server.api}{path}?token=wrong", timeout=20, json={} if method != "GET" else None
    )
    assert wrong.status_code == 403


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_another_origin_is_refused(server, session, method, path):
    headers = {"Origin": "https://elsewhere.example", "X-XSRFToken": xsrf_token(session)}
    answer = session.request(method, f"{server.api}{path}", headers=headers, timeout=20)
    assert answer.status_code in {403, 404}
    problem_of(answer)


@pytest.fixture
def session(server):
    """A browser's session: cookies, no token in its requests."""
    with requests.Session() as opened:
        opened.get(f"{server.url}login?token={server.token}", timeout=20)
        yield opened


def xsrf_token(session):
    return next(cookie.value for cookie in session.cookies if cookie.name == "_xsrf")


def test_a_browser_needs_the_token_against_forged_requests(server, session, filler):
    filler.done("x1")
    assert session.get(f"{server.api}/experiments", headers={"Referer": server.url}, timeout=20).status_code == 200
    body = {"note": "forged"}
    refused = session.patch(f"{server.api}/experiments/x1", json=body, timeout=20)
    assert problem_of(refused)["status"] == 403
    headers = {"X-XSRFToken": xsrf_token(session)}
    allowed = session.patch(f"{server.api}/experiments/x1", json=body, headers=headers, timeout=20)
    assert allowed.status_code == 200, allowed.text


def socket_address(server, query=""):
    return f"{server.api.replace('http', 'ws', 1)}/changes?{query}"


@pytest.mark.parametrize("query", ["", "token=wrong"])
def test_the_socket_refuses_who_is_not_logged_in(server, query):
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(socket_address(server, query), timeout=20)


def test_the_socket_refuses_another_origin(server, session):
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in session.cookies)
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(
            socket_address(server), timeout=20, cookie=cookies, origin="https://elsewhere.example"
        )


@pytest.mark.parametrize("since", ["-1", "x", "1" * 30, "%00"])
def test_the_socket_refuses_an_id_that_is_none(server, since):
    with pytest.raises(websocket.WebSocketBadStatusException, match="400"):
        websocket.create_connection(socket_address(server, f"token={server.token}&since={since}"), timeout=20)


def test_what_a_page_sends_is_bounded_and_means_nothing(server, filler):
    filler.done("x2")
    opened = websocket.create_connection(socket_address(server, f"token={server.token}&since=0"), timeout=20)
    opened.send("{}")
    assert json.loads(opened.recv())["last_id"] > 0
    opened.send("x" * 100_000)
    assert is_closed_by_server(opened)
    opened.shutdown()


def is_closed_by_server(opened):
    """Read what is on its way until the server closes; a socket that stays open runs into its timeout."""
    try:
        opcode = None
        while opcode != websocket.ABNF.OPCODE_CLOSE:
            opcode, _ = opened.recv_data(control_frame=True)
    except (websocket.WebSocketConnectionClosedException, ConnectionError):
        return True
    return True


TRAVERSALS = ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "e%0a", "é", "a" * 65, "%ff"]


@pytest.mark.parametrize("text", TRAVERSALS)
def test_no_parameter_leads_out_of_the_home(server, filler, text):
    paths = [
        f"/experiments/{text}",
        f"/experiments/{text}/code",
        f"/experiments/{text}/trials/1/log",
        f"/experiments/x3/trials/{text}/log",
        f"/experiments/x3/trials/1/log?stream={text}",
        f"/experiments/x3/trials/1/log?rank={text}",
        f"/experiments/x3/trials/1/log?attempt={text}",
        f"/experiments/x3/trials/1/attempts/1/pictures/{text}",
        f"/experiments/x3/trials/1/attempts/{text}/pictures/0001.png",
        f"/requests/{text}",
    ]
    if not filler.store.ids() & {"x3"}:
        filler.done("x3")
    for path in paths:
        status, body = raw(server, path)
        assert status in {400, 404}, (path, status, body)
        assert b"root:" not in body


def raw(server, path):
    """Ask with a path exactly as it is; clients tidy it up."""
    host, _, port = server.url.split("/")[2].partition(":")
    text = f"GET {BASE_URL}jupyter-autotrain/api{path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
    text += f"Authorization: token {server.token}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(text.encode("latin-1"))
        answer = b""
        while block := connection.recv(65_536):
            answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_a_link_that_a_trial_made_is_not_followed(server, filler):
    filler.done("x4")
    log = filler.file("x4", 1, "stdout", b"")
    log.unlink()
    log.symlink_to("/etc/passwd")
    assert problem_of(server.ask("GET", "/experiments/x4/trials/1/log"))["status"] == 409
    log.unlink()
    os.mkfifo(log)
    assert problem_of(server.ask("GET", "/experiments/x4/trials/1/log"))["status"] == 409


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/experiments?limit=100000", 400),
        ("/experiments?limit=0", 400),
        ("/experiments?offset=-1", 400),
        ("/experiments?text=" + "x" * 300, 400),
        ("/experiments?text=" + "x" * 9000, 400),
        ("/experiments?text=a&text=b", 400),
        ("/experiments?unknown=1", 400),
        ("/experiments/x5/series?metric=a&max_points=1000000000", 400),
        ("/experiments/x5/series?metric=a&trials=1,,2", 400),
        ("/experiments/x5/trials?limit=1000000", 400),
        ("/experiments/x5/trials/1/log?most_bytes=100000000000", 400),
    ],
)
def test_oversized_and_unknown_queries_are_refused(server, path, status):
    answer = server.ask("GET", path)
    assert problem_of(answer)["status"] == status


def test_an_oversized_body_is_refused(server, filler):
    filler.done("x6")
    for size in (70_000, 3_000_000):
        assert problem_of(server.ask("PATCH", "/experiments/x6", json={"note": "x" * size}))["status"] == 413
    assert problem_of(server.ask("PATCH", "/experiments/x6", json={"note": "x" * 4001}))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", data="[" * 30_000))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", data="[]"))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", json={"tags": ["x"] * 21}))["status"] == 400


def test_script_in_names_logs_parameters_and_notes_stays_data(server, filler):
    filler.experiment("x7", name=SCRIPT)
    filler.begin("x7", 1, optimizer=SCRIPT)
    filler.file("x7", 1, "stdout", SCRIPT.encode())
    filler.end("x7", 1, "FAILED", SCRIPT)
    assert server.ask("PATCH", "/experiments/x7", json={"note": SCRIPT}).json()["note"] == SCRIPT
    for path in ("/experiments/x7", "/experiments/x7/trials", "/experiments/x7/trials/1/log", "/experiments"):
        answer = server.ask("GET", path)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "alert" in answer.text


def test_a_picture_with_a_script_runs_nothing(server, filler):
    filler.done("x8")
    markup = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    filler.file("x8", 1, "outputs/pictures/0001.svg", markup)
    answer = server.ask("GET", "/experiments/x8/trials/1/attempts/1/pictures/0001.svg")
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


AUTHORIZER = """
from jupyter_server.auth import Authorizer

class ReadOnly(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return action == "read" and resource != "autotrain.backends"

c.ServerApp.authorizer_class = ReadOnly
"""


@pytest.fixture(scope="module")
def read_only_server(tmp_path_factory):
    """A server on which nobody may write, nor look at backends."""
    folder = tmp_path_factory.mktemp("read-only")
    config = folder / "config.py"
    config.write_text(AUTHORIZER)
    with running_server(folder / "run", f"--config={config}") as server:
        filler = Filler(server)
        filler.done("a1")
        filler.store.close()
        yield server


def test_a_read_only_authorizer_is_respected(read_only_server):
    server = read_only_server
    assert server.get("/experiments")["total"] == 1
    for method, path in OPERATIONS:
        if method != "GET" or path.startswith("/backends"):
            body = {"action": "rerun"} if method == "POST" else {}
            answer = server.ask(method, path.replace("/experiments/e", "/experiments/a1"), json=body)
            assert problem_of(answer)["status"] == 403, (method, path)
    opened = websocket.create_connection(socket_address(server, f"token={server.token}"), timeout=20)
    assert json.loads(opened.recv())["last_id"] > 0
    opened.close()
    assert server.get("/experiments")["total"] == 1


@pytest.fixture
def shared_home(read_only_server):
    """The home of a server, which tests give to others; afterwards it is the user's alone."""
    root = read_only_server.home.root
    yield root
    root.chmod(0o700)
    os.chown(root, os.geteuid(), -1)


def test_a_home_that_others_can_write_to_is_refused(read_only_server, shared_home):
    shared_home.chmod(0o777)
    for path in ("/experiments", "/experiments/a1", "/manager", "/notebooks"):
        assert problem_of(read_only_server.ask("GET", path))["status"] == 403
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(socket_address(read_only_server, f"token={read_only_server.token}"), timeout=20)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_home_of_another_user_is_refused(read_only_server, shared_home):
    os.chown(shared_home, 12_345, -1)
    assert "belongs to" in problem_of(read_only_server.ask("GET", "/experiments"))["detail"]

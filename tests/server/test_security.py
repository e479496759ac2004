"""Nobody reads or does what is not theirs."""

import json
import os

import pytest
import requests
import websocket

from tests.server.jupyter import Filler, problem_of, running_server
from tests.server.operations import OPERATIONS, address


def test_every_operation_is_in_the_table_above(server):
    described = server.get("/openapi.json")["paths"]
    found = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert found == set(OPERATIONS)
    assert len(OPERATIONS) == len(found)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_who_is_not_logged_in_is_refused(server, method, path):
    body = {} if method != "GET" else None
    for query in ("", "?token=wrong"):
        answer = requests.request(method, f"{server.api}{address(path)}{query}", timeout=120, json=body)
        assert problem_of(answer)["status"] == 403


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_another_origin_is_refused(server, session, method, path):
    headers = {"Origin": "https://elsewhere.example", "X-XSRFToken": xsrf_token(session)}
    answer = session.request(method, f"{server.api}{address(path)}", headers=headers, timeout=120)
    assert answer.status_code in {403, 404}
    problem_of(answer)


@pytest.fixture
def session(server):
    """Yield a browser's session: cookies, no token in its requests."""
    with requests.Session() as opened:
        opened.get(f"{server.url}login?token={server.token}", timeout=120)
        yield opened


def xsrf_token(session):
    return next(cookie.value for cookie in session.cookies if cookie.name == "_xsrf")


def test_a_browser_needs_the_token_against_forged_requests(server, session, filler):
    filler.done("x1")
    assert session.get(f"{server.api}/experiments", headers={"Referer": server.url}, timeout=120).status_code == 200
    body = {"note": "forged"}
    refused = session.patch(f"{server.api}/experiments/x1", json=body, timeout=120)
    assert problem_of(refused)["status"] == 403
    headers = {"X-XSRFToken": xsrf_token(session)}
    allowed = session.patch(f"{server.api}/experiments/x1", json=body, headers=headers, timeout=120)
    assert allowed.status_code == 200, allowed.text


def socket_address(server, query=""):
    return f"{server.api.replace('http', 'ws', 1)}/changes?{query}"


@pytest.mark.parametrize("query", ["", "token=wrong"])
def test_the_socket_refuses_who_is_not_logged_in(server, query):
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(socket_address(server, query), timeout=120)


def test_the_socket_refuses_another_origin(server, session):
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in session.cookies)
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(
            socket_address(server), timeout=120, cookie=cookies, origin="https://elsewhere.example"
        )


@pytest.mark.parametrize("since", ["-1", "x", "1" * 30, "%00"])
def test_the_socket_refuses_an_id_that_is_none(server, since):
    with pytest.raises(websocket.WebSocketBadStatusException, match="400"):
        websocket.create_connection(socket_address(server, f"token={server.token}&since={since}"), timeout=120)


def test_what_a_page_sends_is_bounded_and_means_nothing(server, filler):
    filler.done("x2")
    opened = websocket.create_connection(socket_address(server, f"token={server.token}&since=0"), timeout=120)
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


AUTHORIZER = """
from jupyter_server.auth import Authorizer

class ReadOnly(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return action == "read" and resource != "autotrain.backends"

c.ServerApp.authorizer_class = ReadOnly
"""


@pytest.fixture(scope="module")
def read_only_server(tmp_path_factory):
    """Yield a server on which nobody may write, nor look at backends."""
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
        if method != "GET" or path.startswith(("/backend", "/checks", "/profiles")):
            body = {"action": "rerun"} if method == "POST" else {}
            answer = server.ask(method, address(path, experiment="a1"), json=body)
            assert problem_of(answer)["status"] == 403, (method, path)
    opened = websocket.create_connection(socket_address(server, f"token={server.token}"), timeout=120)
    assert json.loads(opened.recv())["last_id"] > 0
    opened.close()
    assert server.get("/experiments")["total"] == 1


OF_NO_HOME = {"/backend-types", "/backend-types/{type}", "/openapi.json"}
OF_NO_HOME |= {"/header/schema", "/header/faults", "/header/completions"}


@pytest.fixture
def shared_home(read_only_server):
    """Yield the home of a server, which tests give to others; afterwards it is the user's alone."""
    root = read_only_server.home.root
    yield root
    root.chmod(0o700)
    os.chown(root, os.geteuid(), -1)


def test_a_home_that_others_can_write_to_is_refused(read_only_server, shared_home):
    shared_home.chmod(0o777)
    for method, path in OPERATIONS:
        if path not in OF_NO_HOME:
            answer = read_only_server.ask(method, address(path, experiment="a1"), json={"action": "rerun"})
            expected = {403} if method == "GET" and not path.endswith(("/series", "/matches")) else {400, 403}
            assert problem_of(answer)["status"] in expected, (method, path)
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(socket_address(read_only_server, f"token={read_only_server.token}"), timeout=120)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_home_of_another_user_is_refused(read_only_server, shared_home):
    os.chown(shared_home, 12_345, -1)
    assert "belongs to" in problem_of(read_only_server.ask("GET", "/experiments"))["detail"]


def names(server):
    return {found["name"] for found in server.get("/experiments", limit=200)["experiments"]}


def changes_of(server):
    return websocket.create_connection(socket_address(server, f"token={server.token}"), timeout=120)


def test_tabs_of_two_users_at_once_show_each_user_what_is_theirs(server, read_only_server, filler):
    ours = websocket.create_connection(socket_address(server, f"token={server.token}"), timeout=120)
    theirs = websocket.create_connection(
        socket_address(read_only_server, f"token={read_only_server.token}"), timeout=120
    )
    told = json.loads(theirs.recv())["last_id"]
    json.loads(ours.recv())
    filler.done("x9", name="only ours")
    assert json.loads(ours.recv())["last_id"] > 0
    assert "only ours" in names(server)
    assert "only ours" not in names(read_only_server)
    again = changes_of(read_only_server)
    assert json.loads(again.recv())["last_id"] == told
    for opened in (ours, theirs, again):
        opened.close()


def test_the_token_and_the_session_of_one_user_open_nothing_of_another(server, session, read_only_server):
    refused = read_only_server.ask("GET", "/experiments", headers={"Authorization": f"token {server.token}"})
    assert problem_of(refused)["status"] == 403
    assert session.get(f"{server.api}/experiments", headers={"Referer": server.url}, timeout=120).status_code == 200
    headers = {"Referer": read_only_server.url}
    assert session.get(f"{read_only_server.api}/experiments", headers=headers, timeout=120).status_code == 403
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(socket_address(read_only_server, f"token={server.token}"), timeout=120)
